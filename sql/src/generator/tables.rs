//! Tables with contents, drawn from seeds.

use std::fmt::Write as _;

use rand::RngExt;
use rand::seq::SliceRandom;
use spar_core::Seed;

use super::domains::{Domain, FIRST_NAMES, FIRST_WORDS, LAST_NAMES, LAST_WORDS, Label, TableKind};

/// A table as it was drawn.
#[derive(Debug, Clone)]
pub(super) struct DrawnTable {
    pub(super) name: &'static str,
    pub(super) one: &'static str,
    /// The column that tells rows apart, with its values.
    pub(super) label: (&'static str, Vec<String>),
    /// Columns with a few values.
    pub(super) groups: Vec<(&'static str, Vec<&'static str>)>,
    /// Columns of numbers, in each of which no number stands twice.
    pub(super) numbers: Vec<(&'static str, Vec<i64>)>,
    /// The column that names a row of the parent by its place from 1, with its values.
    pub(super) parent: Option<(String, Vec<usize>)>,
}

/// Draws the two tables of a domain; some of their columns are left out.
pub(super) fn draw(domain: &'static Domain, seed: Seed) -> (DrawnTable, DrawnTable) {
    let mut rng = seed.derive("rows", domain.name).rng();
    let num_parents = rng.random_range(4..=7);
    let num_children = rng.random_range(10..=24);
    let parent = draw_table(&domain.parent, num_parents, seed.derive("table", 0));
    let mut child = draw_table(&domain.child, num_children, seed.derive("table", 1));
    // The last parent has no child, so that there is one without.
    let of = (0..num_children).map(|_| rng.random_range(1..num_parents)).collect();
    child.parent = Some((format!("{}_id", parent.one), of));
    (parent, child)
}

/// The two tables of a domain once more, with the same columns and other contents: all that tells rows apart is still there, in
/// other rows and with more beside it, and everything else is drawn anew.
pub(super) fn refill(
    domain: &'static Domain,
    (parent, child): (&DrawnTable, &DrawnTable),
    seed: Seed,
) -> (DrawnTable, DrawnTable) {
    let more = |table: &DrawnTable, most: usize| {
        table.num_rows() + seed.derive("more", table.name).rng().random_range(1..=most)
    };
    let (num_parents, num_children) = (more(parent, 2), more(child, 4));
    let parent = refill_table(&domain.parent, parent, num_parents, seed.derive("table", 0));
    let mut child = refill_table(&domain.child, child, num_children, seed.derive("table", 1));
    if let Some((_, places)) = &mut child.parent {
        let mut rng = seed.derive("rows", domain.name).rng();
        *places = (0..num_children).map(|_| rng.random_range(1..num_parents)).collect();
    }
    (parent, child)
}

fn refill_table(kind: &TableKind, table: &DrawnTable, rows: usize, seed: Seed) -> DrawnTable {
    let mut rng = seed.rng();
    let mut labels = table.label.1.clone();
    let mut others = all_labels(kind);
    others.shuffle(&mut rng);
    others.retain(|label| !table.label.1.contains(label));
    labels.extend(others.into_iter().take(rows - labels.len()));
    labels.shuffle(&mut rng);
    let groups = table
        .groups
        .iter()
        .filter_map(|(column, _)| kind.groups.iter().find(|it| it.0 == *column))
        .map(|(column, values)| {
            (*column, (0..rows).map(|_| values[rng.random_range(0..values.len())]).collect())
        })
        .collect();
    let numbers = table
        .numbers
        .iter()
        .filter_map(|(column, _)| kind.numbers.iter().find(|it| it.0 == *column))
        .map(|(column, low, high)| (*column, distinct_numbers(*low, *high, rows, &mut rng)))
        .collect();
    DrawnTable { label: (table.label.0, labels), groups, numbers, ..table.clone() }
}

/// All that rows of a kind may be called.
fn all_labels(kind: &TableKind) -> Vec<String> {
    let (first, last) = match kind.label.1 {
        Label::Person => (FIRST_NAMES, LAST_NAMES),
        Label::Title => (FIRST_WORDS, LAST_WORDS),
    };
    first.iter().flat_map(|a| last.iter().map(move |b| format!("{a} {b}"))).collect()
}

fn distinct_numbers(low: i64, high: i64, rows: usize, rng: &mut impl RngExt) -> Vec<i64> {
    let mut all: Vec<i64> = (low..=high).collect();
    all.shuffle(rng);
    all.truncate(rows);
    all
}

fn draw_table(kind: &'static TableKind, rows: usize, seed: Seed) -> DrawnTable {
    let mut rng = seed.rng();
    let mut labels = all_labels(kind);
    labels.shuffle(&mut rng);
    labels.truncate(rows);
    let mut groups: Vec<_> = kind.groups.iter().collect();
    groups.shuffle(&mut rng);
    groups.truncate(rng.random_range(1..=groups.len()));
    let groups = groups
        .into_iter()
        .map(|(column, values)| {
            let drawn = (0..rows).map(|_| values[rng.random_range(0..values.len())]).collect();
            (*column, drawn)
        })
        .collect();
    let mut numbers: Vec<_> = kind.numbers.iter().collect();
    numbers.shuffle(&mut rng);
    numbers.truncate(rng.random_range(1..=numbers.len()));
    let numbers = numbers
        .into_iter()
        .map(|(column, low, high)| (*column, distinct_numbers(*low, *high, rows, &mut rng)))
        .collect();
    DrawnTable {
        name: kind.name,
        one: kind.one,
        label: (kind.label.0, labels),
        groups,
        numbers,
        parent: None,
    }
}

impl DrawnTable {
    pub(super) fn num_rows(&self) -> usize {
        self.label.1.len()
    }

    /// What makes the table, as SQL.
    pub(super) fn script(&self, parent: Option<&Self>) -> String {
        let mut sql =
            format!("CREATE TABLE {}(id INTEGER PRIMARY KEY, {} TEXT", self.name, self.label.0);
        for (column, _) in &self.groups {
            let _ = write!(sql, ", {column} TEXT");
        }
        for (column, _) in &self.numbers {
            let _ = write!(sql, ", {column} INTEGER");
        }
        if let (Some((column, _)), Some(parent)) = (&self.parent, parent) {
            let _ = write!(sql, ", {column} INTEGER REFERENCES {}(id)", parent.name);
        }
        let _ = write!(sql, ");\nINSERT INTO {} VALUES", self.name);
        for row in 0..self.num_rows() {
            let comma = if row == 0 { "" } else { "," };
            let _ = write!(sql, "{comma}\n({}, {}", row + 1, quoted(&self.label.1[row]));
            for (_, values) in &self.groups {
                let _ = write!(sql, ", {}", quoted(values[row]));
            }
            for (_, values) in &self.numbers {
                let _ = write!(sql, ", {}", values[row]);
            }
            if let Some((_, values)) = &self.parent {
                let _ = write!(sql, ", {}", values[row]);
            }
            sql.push(')');
        }
        sql.push_str(";\n");
        sql
    }
}

/// Text as SQL writes it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
