//! One try at a task: calls in, results and a judgement out.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::diff::{Change, changes};
use crate::goal::{Passed, assign};
use crate::phone::{FINISH, Finish};
use crate::task::{AppTask, GoldCall, Then};
use crate::tool::call;
use crate::{World, arguments};

/// Calls with different results that are told apart by [`Session::knowledge`].
const MOST_SHOWN: usize = 1_000;

/// One try at a task. A clone goes on by itself; it shares what neither writes.
#[derive(Debug, Clone)]
pub struct Session {
    task: Arc<AppTask>,
    world: World,
    /// Which milestones were passed in their order.
    passed: Vec<bool>,
    /// Which required changes are there now.
    holds: Vec<bool>,
    /// Changes of records of which nothing is demanded.
    num_stray: usize,
    /// The first minefield that was stepped on.
    hit: Option<usize>,
    /// Which calls of the demonstration were made, by their places.
    made: u64,
    /// Hashes of calls with their results.
    shown: BTreeSet<u64>,
    /// The hash of what differs from the beginning.
    changed: u64,
    judgement: Option<Judgement>,
}

/// What a try came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether all that was demanded is there, and nothing else.
    pub success: bool,
    /// The share of required changes that were made in their order, still stand, and do no damage: 0 to 1.
    pub progress: f64,
    /// Whether the answer is right, or none was asked for.
    pub is_answered: bool,
    /// What must not happen and did.
    pub minefield: Option<&'static str>,
    /// Changes that nobody required, in words.
    pub damage: Vec<String>,
}

impl Session {
    /// Begins a task.
    pub fn new(task: Arc<AppTask>) -> Self {
        Self {
            world: task.world.clone(),
            passed: vec![false; task.goal.milestones.len()],
            holds: vec![false; task.goal.required.len()],
            num_stray: 0,
            hit: None,
            made: 0,
            shown: BTreeSet::new(),
            changed: 0,
            judgement: None,
            task,
        }
    }

    /// The task that is tried.
    pub fn task(&self) -> &AppTask {
        &self.task
    }

    /// What it came to; absent as long as nobody has called `finish`.
    pub fn judgement(&self) -> Option<&Judgement> {
        self.judgement.as_ref()
    }

    /// Names what whoever acts can know: equal where the same was done and shown, in whatever order.
    pub fn knowledge(&self) -> u64 {
        self.shown
            .iter()
            .fold(self.changed, |all, one| hash(&[&all.to_le_bytes(), &one.to_le_bytes()]))
    }

    /// Carries out a call.
    ///
    /// # Errors
    ///
    /// What the policy reads where it could not be carried out; nothing has changed then.
    pub fn call(&mut self, name: &str, given: &Map<String, Value>) -> Result<String, String> {
        if self.judgement.is_some() {
            return Err("The task is over.".to_owned());
        }
        let before = self.world.clone();
        let outcome = if name == FINISH {
            arguments::read::<Finish>(FINISH, given).map(|it| {
                self.judgement = Some(self.judge(it.answer.as_deref()));
                "Done.".to_owned()
            })
        } else {
            call(&mut self.world, name, given)
        };
        if let Ok(text) = &outcome {
            self.remember(name, given, text);
            self.look(&changes(&before, &self.world), text);
        }
        outcome
    }

    /// The next call of the demonstration, replanned from where things stand: what was made or looked up already is left
    /// out. `None` behind the end, and where there is no way back: after damage and on a minefield.
    pub fn next_gold(&self) -> Option<&GoldCall> {
        if self.judgement.is_some() || self.hit.is_some() || self.num_stray > 0 {
            return None;
        }
        let is_open = |(place, gold): &(usize, &GoldCall)| match &gold.then {
            Then::Known => self.made >> place & 1 == 0,
            Then::Holds(required) => required.iter().any(|place| !self.holds[*place]),
            Then::Over => true,
        };
        let is_last =
            |gold: &&GoldCall| gold.then != Then::Over || self.holds.iter().all(|holds| *holds);
        self.task.gold.iter().enumerate().find(is_open).map(|(_, gold)| gold).filter(is_last)
    }

    fn remember(&mut self, name: &str, given: &Map<String, Value>, text: &str) {
        for (place, gold) in self.task.gold.iter().enumerate() {
            if gold.tool == name && gold.arguments == *given {
                self.made |= 1 << place;
            }
        }
        if self.shown.len() < MOST_SHOWN {
            let given = Value::Object(given.clone()).to_string();
            self.shown.insert(hash(&[name.as_bytes(), given.as_bytes(), text.as_bytes()]));
        }
    }

    /// Sees to minefields, requirements and milestones behind a call.
    fn look(&mut self, of_call: &[Change], text: &str) {
        let goal = &self.task.goal;
        if !of_call.is_empty() {
            let is_hit = |mine: &crate::goal::Minefield| of_call.iter().any(|it| mine.is_hit(it));
            self.hit = self.hit.or_else(|| goal.minefields.iter().position(is_hit));
            let before = self.holds.clone();
            let all = changes(&self.task.world, &self.world);
            let left;
            (self.holds, left) = assign(&goal.required, &all);
            // A record that has to change in the end may be on its way.
            let is_stray = |place: &&usize| {
                let change = &all[**place];
                let is_it = |key: &String| *key == change.key;
                !goal
                    .required
                    .iter()
                    .any(|it| it.table == change.table && it.key.as_ref().is_some_and(is_it))
            };
            self.num_stray = left.iter().filter(is_stray).count();
            self.changed = all.iter().fold(0, |hashed, change| {
                let after = change.after.as_ref().map(Value::to_string).unwrap_or_default();
                hash(&[&hashed.to_le_bytes(), change.key.as_bytes(), after.as_bytes()])
            });
            for (place, milestone) in goal.milestones.iter().enumerate() {
                let Passed::Made(required) = milestone.what else { continue };
                let (was, is) = (before[required], self.holds[required]);
                if is && !was {
                    self.passed[place] = milestone.after.iter().all(|first| self.passed[*first]);
                } else if !is {
                    self.passed[place] = false;
                }
            }
        }
        for (place, milestone) in goal.milestones.iter().enumerate() {
            if let Passed::Shown(words) = &milestone.what
                && !self.passed[place]
                && milestone.after.iter().all(|first| self.passed[*first])
            {
                self.passed[place] = text.contains(words.as_str());
            }
        }
    }

    fn judge(&self, answer: Option<&str>) -> Judgement {
        let goal = &self.task.goal;
        let found = changes(&self.task.world, &self.world);
        let (holds, left) = assign(&goal.required, &found);
        let is_answered = match (&goal.answer, answer) {
            (None, _) => true,
            (Some(right), Some(given)) => right.is(given),
            (Some(_), None) => false,
        };
        let is_clean = left.is_empty() && self.hit.is_none();
        let of_changes = goal
            .milestones
            .iter()
            .zip(&self.passed)
            .filter_map(|(it, passed)| matches!(it.what, Passed::Made(_)).then_some(*passed));
        let (all, passed) =
            of_changes.fold((0, 0), |(all, passed), is| (all + 1, passed + usize::from(is)));
        let progress = if is_clean && all > 0 { passed as f64 / all as f64 } else { 0.0 };
        Judgement {
            success: is_clean && is_answered && holds.iter().all(|holds| *holds),
            progress,
            is_answered,
            minefield: self.hit.map(|place| goal.minefields[place].what),
            damage: left.into_iter().map(|place| found[place].to_string()).collect(),
        }
    }
}

/// FNV-1a over parts with their lengths, equal on every machine.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        part.len().to_le_bytes().into_iter().chain(part.iter().copied()).for_each(&mut take);
    }
    hash
}

#[cfg(test)]
mod tests;
