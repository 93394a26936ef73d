//! Databases and questions from seeds, each question with the query that answers it.

mod domains;
mod questions;
mod tables;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use self::tables::DrawnTable;
use crate::{Database, DatabaseError, QueryLimits};

pub use self::domains::DomainSet;

/// Questions in a row that are of one database.
const QUESTIONS_PER_DATABASE: u64 = 16;
/// Databases that are kept for the next questions.
const MOST_KEPT: usize = 64;
/// Draws of a question before another form is taken.
const MOST_DRAWS: u64 = 50;
/// Further contents of a database, on which a right query finds what is right as well.
const FURTHER_CONTENTS: u64 = 2;

/// How hard questions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// One table: counting, looking up, filtering.
    #[default]
    Easy,
    /// One table: aggregates, two conditions, order and limit, groups.
    Medium,
    /// Two tables, or a query inside a query: joins, groups with conditions, comparisons with averages, what is lacking.
    Hard,
    /// Any of these, each as often.
    Mixed,
}

/// A database with what it was drawn from.
#[derive(Debug, Clone)]
pub struct GeneratedDatabase {
    /// The database.
    pub database: Database,
    /// Databases of the same tables with other contents: a query that tells what stands in the first one, without looking it
    /// up, finds something else there.
    pub others: Vec<Database>,
    /// What it is about, such as `library`.
    pub domain: &'static str,
    parent: DrawnTable,
    child: DrawnTable,
}

impl GeneratedDatabase {
    /// The database that is asked, and those with other contents behind it.
    pub fn all(&self) -> Vec<Database> {
        std::iter::once(&self.database).chain(&self.others).cloned().collect()
    }
}

/// A question with the query that answers it.
#[derive(Debug, Clone)]
pub struct GeneratedQuestion {
    /// What it is asked of.
    pub database: Arc<GeneratedDatabase>,
    /// The question, in one sentence or two.
    pub question: String,
    /// A query whose result is the answer.
    pub gold: String,
    /// What form the question has, such as `count`.
    pub form: &'static str,
    /// How hard it is; never [`Level::Mixed`].
    pub level: Level,
}

/// The database of a number: sixteen questions in a row, by their seeds, share one.
///
/// Two tables of a domain, of which the second refers to the first, with 4 to 7 and 10 to 24 rows; some columns are left out, so that
/// schemas differ. Two databases of the same tables with other contents stand beside it. Equal numbers give equal databases.
///
/// # Errors
///
/// [`DatabaseError`] when SQLite cannot make it.
pub fn generate_database(
    number: u64,
    domains: DomainSet,
) -> Result<Arc<GeneratedDatabase>, DatabaseError> {
    type Kept = VecDeque<((u64, DomainSet), Arc<GeneratedDatabase>)>;
    static KEPT: Mutex<Kept> = Mutex::new(VecDeque::new());
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (number, domains);
    if let Some((_, found)) = kept().iter().find(|(of, _)| *of == key) {
        return Ok(Arc::clone(found));
    }
    let seed = Seed::from_u64(number).derive("sql database", 0);
    let all = domains.domains();
    let domain = &all[seed.derive("domain", 0).rng().random_range(0..all.len())];
    let (parent, child) = tables::draw(domain, seed);
    let fill = |(parent, child): (&DrawnTable, &DrawnTable)| {
        Database::from_script(&(parent.script(None) + &child.script(Some(parent))))
    };
    let database = fill((&parent, &child))?;
    let others = (0..FURTHER_CONTENTS).map(|place| {
        let (parent, child) =
            tables::refill(domain, (&parent, &child), seed.derive("other", place));
        fill((&parent, &child))
    });
    let others = others.collect::<Result<_, _>>()?;
    let made = Arc::new(GeneratedDatabase { database, others, domain: domain.name, parent, child });
    let mut kept = kept();
    kept.push_back((key, Arc::clone(&made)));
    if kept.len() > MOST_KEPT {
        kept.pop_front();
    }
    Ok(made)
}

/// The question of a seed, on [database](generate_database) `seed / 16`. Its gold query was run, and has a result that is not empty.
///
/// # Errors
///
/// [`DatabaseError`] when the database cannot be made, or SQLite does not answer a gold query.
pub fn generate(
    seed: u64,
    level: Level,
    domains: DomainSet,
) -> Result<GeneratedQuestion, DatabaseError> {
    let database = generate_database(seed / QUESTIONS_PER_DATABASE, domains)?;
    let path = Seed::from_u64(seed).derive("sql question", 0);
    let level = match level {
        Level::Mixed => {
            let levels = [Level::Easy, Level::Medium, Level::Hard];
            levels[path.derive("level", 0).rng().random_range(0..levels.len())]
        }
        level => level,
    };
    let forms = questions::forms(level);
    for draw in 0..MOST_DRAWS {
        let mut rng = path.derive("draw", draw).rng();
        let form = &forms[rng.random_range(0..forms.len())];
        let Some((question, gold)) = (form.draw)(&database.parent, &database.child, &mut rng)
        else {
            continue;
        };
        let found = database.database.query(&gold, &QueryLimits::default());
        let found =
            found.map_err(|error| DatabaseError::Script { detail: format!("{gold}: {error}") })?;
        let is_telling = found.rows.first().is_some_and(|row| !row.contains(&crate::Cell::Null));
        if is_telling {
            return Ok(GeneratedQuestion { database, question, gold, form: form.name, level });
        }
    }
    Err(DatabaseError::Script { detail: format!("no question of seed {seed} has an answer") })
}
