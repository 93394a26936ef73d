//! Puzzles of reasoning-gym, answered in one turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::registry::Options;
use spar_core::{Action, Observation, RewardPart, Seed, Step, Verdict};
use spar_puzzles::{Dataset, Item, dataset_registry, extract_answer, open_dataset};
use spar_tasks::Task;

use crate::{Environment, EnvironmentError};

const NAME: &str = "reasoning-gym";

/// How far apart the indices are that are tried where one gives no puzzle: no two tasks come to the same one.
const STRIDE: u64 = 1 << 40;
/// Indices that are tried.
const MOST_TRIES: u64 = 200;
/// The most that the package's datasets give for an answer whatever it is.
const SCORE_FOR_ANY: f64 = 0.05;

/// A puzzle of reasoning-gym, made here and answered in one turn.
///
/// Parameters: `seed` and `index` (default 0), whose sum the puzzle is drawn from; `dataset`, the package's name of its kind,
/// with the `options` of that; or `datasets`, of which the seed chooses one with its defaults (default all); and `tags`: what
/// stands in the last `<answer>` and `</answer>` is the answer where there are such (`optional`, the default), or there has to
/// be some (`required`).
///
/// Where options and index give no puzzle, since the package raises an exception for them, or none whose own answer is worth
/// 1, the puzzle of an index far behind is taken. The answer ends the task. It earns the package's score as reward part
/// `score`, at most 1, and solves the task where that is 1; the 0.01 or 0.05 that some datasets give for any answer are told
/// and not earned.
#[derive(Debug, Clone)]
pub struct ReasoningGym {
    shared: Arc<Shared>,
    is_asked: bool,
    answer: Option<String>,
}

#[derive(Debug)]
struct Shared {
    name: &'static str,
    category: &'static str,
    dataset: Box<dyn Dataset>,
    item: Item,
    solution: String,
    tags: Tags,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default)]
    index: u64,
    dataset: Option<String>,
    #[serde(default)]
    datasets: Vec<String>,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    tags: Tags,
}

/// Whether answers have to stand between tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tags {
    /// Without tags all that is said is the answer.
    #[default]
    Optional,
    /// Without tags there is no answer.
    Required,
}

impl Parameters {
    /// The dataset: the one that is named, or one of several by the seed, each as often as any.
    fn dataset(&self) -> Option<&str> {
        let chosen = |count: usize| (self.seed % count.max(1) as u64) as usize;
        if let Some(name) = &self.dataset {
            return Some(name);
        }
        if let Some(name) = self.datasets.get(chosen(self.datasets.len())) {
            return Some(name);
        }
        let rows = dataset_registry();
        rows.get(chosen(rows.iter().count())).map(|row| row.name)
    }
}

impl ReasoningGym {
    /// Makes the puzzle of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or give no puzzle.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if parameters.dataset.is_none() && !parameters.options.is_empty() {
            return Err(refuse("`options` are those of `dataset`, which is not named".to_owned()));
        }
        if parameters.dataset.is_some() && !parameters.datasets.is_empty() {
            return Err(refuse("name a `dataset` or several `datasets`, not both".to_owned()));
        }
        let name = parameters.dataset().unwrap_or_default();
        let row = dataset_registry().find(name)?;
        let dataset = open_dataset(name, &parameters.options, parameters.seed)?;
        let mut told = String::new();
        for try_of in 0..MOST_TRIES {
            let index = parameters.index.wrapping_add(try_of.wrapping_mul(STRIDE));
            let item = match dataset.item(index) {
                Ok(item) => item,
                Err(error) => {
                    told = error.to_string();
                    continue;
                }
            };
            let solution = item.example().filter(|one| dataset.score(Some(one), &item) >= 1.0);
            let Some(solution) = solution else {
                told = "the puzzles have no known answer that is worth 1".to_owned();
                continue;
            };
            let shared = Shared {
                name: row.name,
                category: row.category,
                dataset,
                item,
                solution,
                tags: parameters.tags,
            };
            return Ok(Self { shared: Arc::new(shared), is_asked: false, answer: None });
        }
        Err(refuse(format!("dataset `{name}`: {told}")))
    }

    /// The dataset of a task, which its parameters tell.
    pub(crate) fn dataset(task: &Task) -> Option<String> {
        let parameters = Parameters::deserialize(&task.parameters).ok()?;
        parameters.dataset().map(str::to_owned)
    }

    /// The answer in what was said; absent where there has to be one between tags and is none.
    fn given(&self) -> Option<&str> {
        let said = self.answer.as_deref()?;
        match (extract_answer(said), self.shared.tags) {
            (Some(answer), _) => Some(answer),
            (None, Tags::Optional) => Some(said),
            (None, Tags::Required) => None,
        }
    }
}

#[async_trait]
impl Environment for ReasoningGym {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        vec![self.shared.name.to_owned(), self.shared.category.to_owned()]
    }

    fn reads_whole_answers(&self) -> bool {
        true
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        (self.is_asked, self.answer) = (true, None);
        Ok(Observation::new(self.shared.item.question.as_str()))
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        if !self.is_asked {
            return Err(misused("before reset"));
        }
        if self.answer.is_some() {
            return Err(misused("after the end"));
        }
        let said = action.said();
        self.answer = Some(said.to_owned());
        Ok(Step {
            observation: Observation {
                text: "The question was answered.".to_owned(),
                state_key: format!("{}\n{said}", self.shared.item.question),
                ..Observation::default()
            },
            rewards: Vec::new(),
            terminated: true,
            success: false,
            valid: self.given().is_some_and(|answer| !answer.trim().is_empty()),
            wall_time: Duration::ZERO,
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        if self.answer.is_none() {
            return Ok(None);
        }
        let Shared { dataset, item, .. } = &*self.shared;
        // Scores a little above 1 are the package's rounding, and one formula that divides by a negative number.
        let score = self.given().map_or(0.0, |answer| dataset.score(Some(answer), item)).min(1.0);
        let for_any = dataset.score(Some("-"), item).max(SCORE_FOR_ANY);
        let part = RewardPart { name: "score".to_owned(), value: score };
        let parts = if score > for_any || score >= 1.0 { vec![part] } else { Vec::new() };
        let details = match (self.given(), score) {
            (None, _) => "no answer stands between `<answer>` and `</answer>`".to_owned(),
            (_, score) if score < 1.0 => format!("the score is {score}"),
            _ => String::new(),
        };
        Ok(Some(Verdict { parts, success: score >= 1.0, details, ..Verdict::default() }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let is_open = self.is_asked && self.answer.is_none();
        is_open.then(|| Action::from(format!("<answer>{}</answer>", self.shared.solution)))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn puzzle(parameters: Value) -> ReasoningGym {
        let mut env = ReasoningGym::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(env.reset(Seed::from_u64(0))).unwrap();
        env
    }

    fn verdict(env: &ReasoningGym, said: &str) -> Verdict {
        let mut env = env.clone();
        block_on(env.step(&said.into())).unwrap();
        block_on(env.verify()).unwrap().unwrap()
    }

    #[test]
    fn an_answer_earns_the_score_of_the_package() {
        let env = puzzle(json!({ "seed": 3, "dataset": "gcd", "options": { "max_value": 50 } }));
        let gold = env.shared.item.answer.clone().unwrap();
        let solved =
            verdict(&env, &format!("I think <answer>7</answer>, no: <answer> {gold} </answer>"));
        assert!(solved.success && solved.reward() == 1.0);
        let partly = verdict(&env, &format!("it is {gold}"));
        assert!(!partly.success && partly.reward() > 0.0 && partly.reward() < 1.0, "{partly:?}");
        assert_eq!(verdict(&env, "x").reward(), 0.0);
        assert_eq!(env.tags(), ["gcd", "arithmetic"]);
    }

    #[test]
    fn tags_can_be_required() {
        let env = puzzle(json!({ "seed": 3, "dataset": "gcd", "tags": "required" }));
        let gold = env.shared.item.answer.clone().unwrap();
        let told = verdict(&env, &gold);
        assert!(!told.success && told.details.starts_with("no answer stands between"));
        assert!(verdict(&env, &format!("<answer>{gold}</answer>")).success);
    }

    #[test]
    fn every_dataset_gives_puzzles_that_their_own_answer_solves() {
        for row in dataset_registry().iter() {
            let task = crate::test_task(NAME, json!({ "seed": 12, "dataset": row.name }));
            assert_eq!(ReasoningGym::dataset(&task).as_deref(), Some(row.name));
            let env = puzzle(task.parameters);
            let action = env.oracle_action().unwrap();
            assert!(verdict(&env, action.said()).success, "{}", row.name);
        }
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        for wrong in [
            json!({}),
            json!({ "seed": 1, "dataset": "gcf" }),
            json!({ "seed": 1, "options": { "max_value": 5 } }),
            json!({ "seed": 1, "dataset": "gcd", "options": { "max_value": 0 } }),
            json!({ "seed": 1, "dataset": "gcd", "datasets": ["lcm"] }),
            json!({ "seed": 1, "tags": "maybe" }),
            json!({ "seed": 1, "data": "gcd" }),
        ] {
            assert!(ReasoningGym::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }
}
