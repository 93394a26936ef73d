//! Crafting by recipes, in words.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step};
use spar_crafting::{Bench, Book, Quest};
use spar_tasks::Task;

use crate::validate::chain;
use crate::{Environment, EnvironmentError};

const NAME: &str = "textcraft";

/// Crafting by recipes, with TextCraft's actions and texts.
///
/// Parameters: `seed`; `depth`, how many crafts lie between what can be fetched and the goal (1 to 4, default 2); `distractors`, recipes that lead elsewhere (0 to 30,
/// default 4); `recipes`: `generated` (default) or `written`; or `folder`, a folder with recipes in Minecraft's JSON form, where depths can be greater.
///
/// Actions are `get 2 bark`, `craft 1 rod using 2 bark` and `inventory`. Crafting the goal gives the reward part `success`, 1, and ends the task.
#[derive(Debug, Clone)]
pub struct TextCraft {
    quest: Arc<Quest>,
    instruction: Arc<str>,
    depth: usize,
    bench: Option<Bench>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Recipes {
    #[default]
    Generated,
    Written,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default = "two")]
    depth: usize,
    #[serde(default = "four")]
    distractors: usize,
    recipes: Option<Recipes>,
    folder: Option<PathBuf>,
}

fn two() -> usize {
    2
}

fn four() -> usize {
    4
}

/// The book of a folder, shared while somebody has it.
fn loaded(folder: &Path) -> Result<Arc<Book>, String> {
    static KNOWN: Mutex<Option<HashMap<PathBuf, Weak<Book>>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(HashMap::new);
    if let Some(book) = known.get(folder).and_then(Weak::upgrade) {
        return Ok(book);
    }
    let book = Arc::new(Book::load(folder).map_err(|error| chain(&error))?);
    known.insert(folder.to_owned(), Arc::downgrade(&book));
    Ok(book)
}

impl TextCraft {
    /// Makes the quest of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or its recipes cannot be read.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let Parameters { depth, distractors, .. } = given;
        let most = if given.folder.is_some() { 64 } else { 4 };
        if !(1..=most).contains(&depth) {
            return Err(refuse(format!("`depth` is {depth}, allowed are 1 to {most}")));
        }
        if distractors > 30 {
            return Err(refuse(format!("`distractors` is {distractors}, allowed are 0 to 30")));
        }
        let seed = Seed::from_u64(given.seed).derive(NAME, "quest");
        let quest = match (given.folder, given.recipes) {
            (Some(_), Some(_)) => {
                return Err(refuse("`recipes` and `folder` exclude each other".to_owned()));
            }
            (Some(folder), None) => {
                let book = loaded(&folder).map_err(refuse)?;
                Quest::of_book(book, seed, depth, distractors)
            }
            (None, Some(Recipes::Written)) => {
                Quest::of_book(Quest::written_book(), seed, depth, distractors)
            }
            (None, _) => Some(Quest::generated(seed, depth, distractors)),
        };
        let quest = quest.ok_or_else(|| refuse(format!("no item is {depth} crafts deep")))?;
        let instruction = quest.goal().into();
        Ok(Self { quest: Arc::new(quest), instruction, depth, bench: None })
    }

    fn observe(&self, bench: &Bench, text: String) -> Observation {
        let listed: Vec<Arc<str>> = bench.listed().into_iter().map(Into::into).collect();
        Observation {
            text,
            admissible: Some(listed.into()),
            state_key: bench.key(),
            ..Observation::default()
        }
    }
}

#[async_trait]
impl Environment for TextCraft {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        vec![format!("depth-{}", self.depth)]
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let bench = Bench::new(Arc::clone(&self.quest));
        let mut first = self.observe(&bench, self.quest.words());
        first.instruction = Some(Arc::clone(&self.instruction));
        self.bench = Some(bench);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let bench = self.bench.as_mut().ok_or(misused("before reset"))?;
        if bench.is_done() {
            return Err(misused("after the end"));
        }
        let (text, valid) = bench.act(action.said().trim());
        let success = bench.is_done();
        let rewards = match success {
            true => vec![RewardPart { name: "success".to_owned(), value: 1.0 }],
            false => Vec::new(),
        };
        let bench = self.bench.as_ref().ok_or(misused("before reset"))?;
        Ok(Step {
            observation: self.observe(bench, text),
            rewards,
            terminated: success,
            success,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.bench.as_ref()?.next_of_solution().map(Action::from)
    }

    fn expert_action(&mut self) -> Option<Action> {
        // All recipes are shown, so that knowing them is no advantage.
        self.oracle_action()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_strict() {
        for wrong in [
            json!({}),
            json!({ "seed": 1, "depth": 5 }),
            json!({ "seed": 1, "depth": 0 }),
            json!({ "seed": 1, "distractors": 31 }),
            json!({ "seed": 1, "recipes": "minecraft" }),
            json!({ "seed": 1, "recipes": "written", "folder": "/tmp" }),
            json!({ "seed": 1, "folder": "/nowhere" }),
        ] {
            assert!(TextCraft::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }

    /// The episode that docs/textcraft.md shows.
    #[test]
    fn the_documented_episode_is_played_so() {
        let parameters = json!({ "seed": 2_000_000, "recipes": "written", "depth": 3 });
        let mut craft = TextCraft::open(&crate::test_task(NAME, parameters)).unwrap();
        let first = block_on(craft.reset(Seed::from_u64(0))).unwrap();
        let mut told = format!("{}\n", first.text);
        let mut actions: Vec<Action> = vec!["inventory".into(), "get 1 moon".into()];
        while let Some(action) = actions.pop().or_else(|| craft.oracle_action()) {
            let step = block_on(craft.step(&action)).unwrap();
            told.push_str(&format!("\n> {action}\n{}\n", step.observation.text.trim_end()));
        }
        let page = include_str!("../../docs/textcraft.md");
        assert!(page.contains(&told), "docs/textcraft.md is to show:\n{told}");
    }
}
