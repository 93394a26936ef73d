//! Problems about graphs, answered in one turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step, Verdict};
use spar_puzzles::extract_answer;
use spar_puzzles::graph_problems::{GraphProblem, Level, graph_families, graph_problem};
use spar_tasks::Task;

use crate::{Environment, EnvironmentError};

const NAME: &str = "graph-problems";

/// A problem about a graph, made of a seed and answered in one turn.
///
/// Parameters: `seed`; `family`, the name of a family of problems, or `families`, several that take turns by seed (default all);
/// `level`: `easy` (5 to 7 nodes), `medium` (8 to 10, the default) or `hard` (11 to 14).
///
/// What stands in the last `<answer>` and `</answer>` is the answer, all that is said where there are no such. It ends the task, and
/// earns 1 where it is right: as a number, as a set, or checked on the graph where many answers are right.
#[derive(Debug, Clone)]
pub(crate) struct GraphProblems {
    problem: Arc<GraphProblem>,
    level: Level,
    is_asked: bool,
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    family: Option<String>,
    #[serde(default)]
    families: Vec<String>,
    #[serde(default)]
    level: Level,
}

impl Parameters {
    /// The family that is named, or one of several by the seed.
    fn family(&self) -> &str {
        let chosen = |count: usize| (self.seed % count.max(1) as u64) as usize;
        if let Some(name) = &self.family {
            return name;
        }
        if let Some(name) = self.families.get(chosen(self.families.len())) {
            return name;
        }
        let mut all = graph_families();
        let number = chosen(all.len());
        all.nth(number).map_or("", |family| family.name)
    }
}

impl GraphProblems {
    /// Makes the problem of a task.
    pub(crate) fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if given.family.is_some() && !given.families.is_empty() {
            return Err(refuse("name a `family` or several `families`, not both".to_owned()));
        }
        let problem = graph_problem(given.family(), given.level, given.seed)
            .map_err(|error| refuse(error.to_string()))?;
        let (problem, level) = (Arc::new(problem), given.level);
        Ok(Self { problem, level, is_asked: false, answer: None })
    }

    /// The family of a task, which its parameters tell.
    pub(crate) fn family(task: &Task) -> Option<String> {
        let given = Parameters::deserialize(&task.parameters).ok()?;
        Some(given.family().to_owned())
    }

    /// The answer in what was said.
    fn given(&self) -> Option<&str> {
        let said = self.answer.as_deref()?;
        Some(extract_answer(said).unwrap_or(said))
    }
}

#[async_trait]
impl Environment for GraphProblems {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let level = match self.level {
            Level::Easy => "easy",
            Level::Medium => "medium",
            Level::Hard => "hard",
        };
        vec![self.problem.family().to_owned(), level.to_owned()]
    }

    fn reads_whole_answers(&self) -> bool {
        true
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        (self.is_asked, self.answer) = (true, None);
        Ok(Observation::new(self.problem.question()))
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
                state_key: format!("{}\n{said}", self.problem.question()),
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
        let Some(answer) = self.given() else { return Ok(None) };
        let success = self.problem.is_right(answer);
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        let parts = if success { vec![part] } else { Vec::new() };
        let details = if success { "" } else { "the answer is not right" }.to_owned();
        Ok(Some(Verdict { parts, success, details, ..Verdict::default() }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let is_open = self.is_asked && self.answer.is_none();
        is_open.then(|| Action::from(format!("<answer>{}</answer>", self.problem.solution())))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn verdict(parameters: Value, said: Option<&str>) -> Verdict {
        let mut env = GraphProblems::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(env.reset(Seed::from_u64(0))).unwrap();
        let action = said.map_or_else(|| env.oracle_action().unwrap(), Action::from);
        assert!(block_on(env.step(&action)).unwrap().terminated);
        assert!(block_on(env.step(&action)).is_err());
        block_on(env.verify()).unwrap().unwrap()
    }

    #[test]
    fn every_family_is_solved_by_its_own_answer_and_not_by_another() {
        for family in graph_families() {
            let parameters = json!({ "seed": 12, "family": family.name });
            let solved = verdict(parameters.clone(), None);
            assert!(solved.success && solved.reward() == 1.0, "{}", family.name);
            let other = verdict(parameters, Some("I think <answer>it depends</answer>"));
            assert!(!other.success && other.parts.is_empty(), "{}", family.name);
        }
    }

    #[test]
    fn seeds_take_turns_among_families() {
        let family = |parameters: Value| {
            let task = crate::test_task(NAME, parameters);
            let found = GraphProblems::family(&task).unwrap();
            assert_eq!(GraphProblems::open(&task).unwrap().tags()[0], found);
            found
        };
        let two = json!(["bfs", "triangles"]);
        assert_eq!(family(json!({ "seed": 4, "families": two })), "bfs");
        assert_eq!(family(json!({ "seed": 5, "families": two })), "triangles");
        assert_eq!(family(json!({ "seed": 0 })), graph_families().next().unwrap().name);
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        for wrong in [
            json!({}),
            json!({ "seed": 1, "family": "crossings" }),
            json!({ "seed": 1, "family": "bfs", "families": ["dfs"] }),
            json!({ "seed": 1, "level": "absurd" }),
            json!({ "seed": 1, "nodes": 9 }),
        ] {
            assert!(
                GraphProblems::open(&crate::test_task(NAME, wrong.clone())).is_err(),
                "{wrong}"
            );
        }
    }
}
