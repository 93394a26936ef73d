//! A task: a world, what is to be done in it, and a demonstration.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::SliceRandom;
use serde_json::{Map, Value};
use spar_core::Seed;

use crate::families::{FAMILIES, Family};
use crate::goal::Goal;
use crate::{App, Draft, World, phone, tool};

/// Tools beside those of the demonstration where only the needed ones are offered.
const OTHERS: usize = 3;

/// A task: a world, what is to be done in it, and a demonstration.
#[derive(Debug)]
pub struct AppTask {
    /// What is to be done, in words.
    pub instruction: String,
    /// The family it is of.
    pub family: &'static str,
    /// How hard its family is: 1 (nothing is to be found out) to 4 (several applications).
    pub level: u8,
    pub(crate) world: World,
    pub(crate) goal: Goal,
    pub(crate) gold: Vec<GoldCall>,
    /// Tools beside those of the demonstration, for [`Offer::Needed`].
    others: Vec<usize>,
}

/// A call of the demonstration.
#[derive(Debug, Clone, PartialEq)]
pub struct GoldCall {
    /// The tool.
    pub tool: &'static str,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    pub(crate) then: Then,
}

/// What makes a call of the demonstration needless.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Then {
    /// It was made.
    Known,
    /// The required changes at these places are there.
    Holds(Vec<usize>),
    /// Nothing: it is the last.
    Over,
}

/// Which families tasks are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Families {
    /// Those of the training splits.
    #[default]
    Seen,
    /// Those that are kept for tests.
    Unseen,
}

/// Which tools a task offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offer {
    /// Those of the demonstration, and a few others.
    Needed,
    /// Those of the applications that the task is about.
    #[default]
    Apps,
    /// All.
    All,
}

impl AppTask {
    /// The task of a seed, among the families of `families` with a level in `levels`.
    ///
    /// `None` where there are none of these levels.
    pub fn draw(seed: Seed, families: Families, levels: &[u8]) -> Option<Self> {
        drawn(seed, families, levels).map(|family| Self::of_family(family, seed))
    }

    /// The family of the task that [`draw`](Self::draw) makes, without making it.
    pub fn family_of(seed: Seed, families: Families, levels: &[u8]) -> Option<&'static str> {
        drawn(seed, families, levels).map(|family| family.name)
    }

    /// The task of a seed in a family, by its name; `None` where there is no such family.
    pub fn of(family: &str, seed: Seed) -> Option<Self> {
        let family = FAMILIES.iter().find(|known| known.name == family)?;
        Some(Self::of_family(family, seed))
    }

    fn of_family(family: &'static Family, seed: Seed) -> Self {
        let mut draft = Draft::new(seed.derive("world", family.name));
        let problem = (family.make)(&mut draft);
        let (world, mut rng) = draft.finish();
        let (instruction, goal, gold) = problem.finish();
        let needed: BTreeSet<&str> = gold.iter().map(|call| call.tool).collect();
        let mut others: Vec<usize> = (0..tool::tools().len())
            .filter(|place| !needed.contains(tool::tools()[*place].name))
            .collect();
        others.shuffle(&mut rng);
        others.truncate(OTHERS);
        let (family, level) = (family.name, family.level);
        Self { instruction: worded(&goal, instruction), family, level, world, goal, gold, others }
    }

    /// The demonstration, call by call.
    pub fn demonstration(&self) -> &[GoldCall] {
        &self.gold
    }

    /// The applications that the demonstration uses.
    pub fn apps(&self) -> BTreeSet<App> {
        let of = |call: &GoldCall| tool::place(call.tool).map(|place| tool::tools()[place].app);
        self.gold.iter().filter_map(of).collect()
    }

    /// The places of the tools that are offered, among [`tools`](crate::tools), in their order.
    pub fn offered(&self, offer: Offer) -> Vec<usize> {
        let apps = self.apps();
        let needed: BTreeSet<&str> = self.gold.iter().map(|call| call.tool).collect();
        let is_offered = |place: &usize| {
            let tool = &tool::tools()[*place];
            match offer {
                Offer::All => true,
                Offer::Apps => apps.contains(&tool.app) || tool.app == App::Phone,
                Offer::Needed => {
                    tool.name == phone::FINISH
                        || needed.contains(tool.name)
                        || self.others.contains(place)
                }
            }
        };
        (0..tool::tools().len()).filter(is_offered).collect()
    }
}

fn drawn(seed: Seed, families: Families, levels: &[u8]) -> Option<&'static Family> {
    let fits = |family: &&Family| {
        family.is_unseen == (families == Families::Unseen) && levels.contains(&family.level)
    };
    let fitting: Vec<&Family> = FAMILIES.iter().filter(fits).collect();
    if fitting.is_empty() {
        return None;
    }
    let mut rng = seed.derive("family", 0).rng();
    Some(fitting[rng.random_range(0..fitting.len())])
}

/// The instruction with how to end.
fn worded(goal: &Goal, instruction: String) -> String {
    match goal.answer {
        Some(_) => format!("{instruction} Answer with `finish`."),
        None => instruction,
    }
}
