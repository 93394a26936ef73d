//! Wrappers: what is put around environments, whatever they are.
//!
//! ```text
//!  Task.parameters.wrappers, suite.toml [[wrappers]] ──▶ open_environment
//!                                                          │
//!                    Environment ──wrap──▶ Environment ──wrap──▶ Environment
//! ```
//!
//! A wrapper is an environment over another one: it passes on what it does not change, forks where that forks, and lets its oracle and expert
//! through. The innermost is named first. One that judges answers within an episode does it by the task's graders, which then have to be such
//! as can judge an answer alone; its verdict is the episode's. A new wrapper is one file and one row of [`wrapper_registry`].

mod matching;
mod semi_online;
mod skill_chain;
mod stochastic;
mod stochastic_options;
mod unary_feedback;
mod wrapped_suite;

use spar_core::registry::{Axis, Given, OptionSet, Row, RowError, Table};
use spar_tasks::graders::Graders;
use spar_tasks::{Task, WrapperConfig};

pub use matching::Matcher;
pub(crate) use matching::matches;
pub(crate) use semi_online::measured;
pub use semi_online::{SemiOnline, SemiOnlineOptions};
pub use skill_chain::SkillChainOptions;
pub use stochastic_options::{
    Concept, ConceptDriftOptions, Drift, MissingObservationsOptions, NoisyObservationsOptions,
    RandomActionsOptions, RandomEventsOptions, Replacement, Unit,
};
pub use unary_feedback::{UnaryFeedback, UnaryFeedbackOptions};
pub use wrapped_suite::WrappedSuite;

use skill_chain::SkillChain;
use stochastic::Stochastic;

use crate::{Environment, EnvironmentError, Graded, Resources, environment_registry};

/// Puts a wrapper with these options around the environment of a task.
pub type Wrap = fn(
    &Given<'_>,
    Box<dyn Environment>,
    &Task,
    &Resources,
) -> Result<Box<dyn Environment>, EnvironmentError>;

/// What puts a wrapper around environments, and what is known of it before.
#[derive(Debug, Clone, Copy)]
pub struct NamedWrapper {
    /// Whether it judges answers by the task's graders, in place of what would judge the episode.
    pub judges: bool,
    /// How many turns a task needs with it and these options.
    pub turns: fn(&Given<'_>) -> Result<u32, RowError>,
    /// How many similar tasks it plays behind a task, in the same episode, with these options: a suite puts them into its option `following`, and the turns of the first one into `turns`.
    pub follows: fn(&Given<'_>) -> Result<usize, RowError>,
    /// Puts it around an environment.
    pub wrap: Wrap,
}

/// A wrapper that has a name.
pub type WrapperRow = Row<NamedWrapper>;

const AXIS: Axis =
    Axis { name: "wrappers", what: "wrapper", about: "What is put around environments." };

/// It plays one task.
const NOTHING_FOLLOWS: fn(&Given<'_>) -> Result<usize, RowError> = |_| Ok(0);

const ROWS: &[WrapperRow] = &[
    Row {
        name: "skill_chain",
        about: "Similar tasks one after the other in one episode, with skills that are saved in one and used in the next.",
        source: "SAGE, arXiv 2512.17102, reconstructed from its abstract; assumed: skills are rows of actions with a name, and the bonus is a number for each task that they were of use in",
        formula: "R = sum_k R_k + bonus 1[k solved, a skill saved before task k used in k]",
        options: OptionSet::of::<SkillChainOptions>(),
        open: NamedWrapper {
            judges: true,
            turns: |_| Ok(1),
            follows: |given| {
                let options = given.read::<SkillChainOptions>()?;
                Ok(if options.following.is_empty() { options.tasks - 1 } else { 0 })
            },
            wrap: |given, inner, task, resources| {
                Ok(Box::new(SkillChain::new(given.read()?, inner, task, resources)?))
            },
        },
    },
    Row {
        name: "unary_feedback",
        about: "A task of one turn may be tried again: all that is told of a wrong answer is that it is wrong.",
        source: "UFO, arXiv 2507.14295, and its code",
        formula: "R = 1[right at try j] decay^j - repetition_penalty (1 - distinct answers / answers), j from 0",
        options: OptionSet::of::<UnaryFeedbackOptions>(),
        open: NamedWrapper {
            judges: true,
            turns: |given| Ok(given.read::<UnaryFeedbackOptions>()?.attempts),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, task, _| {
                Ok(Box::new(UnaryFeedback::new(given.read()?, inner, task)?))
            },
        },
    },
    Row {
        name: "semi_online",
        about: "The policy goes along what the oracle does, or what was recorded; where it differs, its history goes on as that has it.",
        source: "UI-S1, arXiv 2509.11543, sections 3.2 and 3.4, and its code",
        formula: "match = 1[action = shown] / steps; sop = (progress + success) / 2",
        options: OptionSet::of::<SemiOnlineOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| Ok(Box::new(SemiOnline::new(given.read()?, inner)?)),
        },
    },
    Row {
        name: "random_actions",
        about: "Some actions are replaced by a random one or by the last one: stochasticity that depends on actions.",
        source: "STORI, arXiv 2509.01793, and its code; reconstructed for text",
        formula: "action = a listed one, or the last one, with probability `probability`",
        options: OptionSet::of::<RandomActionsOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| {
                Ok(Box::new(Stochastic::random_actions(&given.read()?, inner)?))
            },
        },
    },
    Row {
        name: "random_events",
        about: "Listed actions happen by themselves before some of the policy's: stochasticity that does not depend on actions.",
        source: "STORI, arXiv 2509.01793, and its code; reconstructed for text",
        formula: "an event before the action with probability `probability`",
        options: OptionSet::of::<RandomEventsOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| {
                Ok(Box::new(Stochastic::random_events(&given.read()?, inner)?))
            },
        },
    },
    Row {
        name: "concept_drift",
        about: "From some step on, or every so many steps, the environment is another: actions renamed, replaced or of its own, observations missing or wrong.",
        source: "STORI, arXiv 2509.01793, and its code; reconstructed for text",
        formula: "sudden: step >= threshold; cyclic: floor(step / threshold) odd",
        options: OptionSet::of::<ConceptDriftOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| {
                Ok(Box::new(Stochastic::concept_drift(&given.read()?, inner)?))
            },
        },
    },
    Row {
        name: "missing_observations",
        about: "Sentences, lines or all of what is shown are missing: partial observation.",
        source: "STORI, arXiv 2509.01793, and its code; reconstructed for text",
        formula: "each part is missing with probability `probability`",
        options: OptionSet::of::<MissingObservationsOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| {
                Ok(Box::new(Stochastic::missing_observations(&given.read()?, inner)?))
            },
        },
    },
    Row {
        name: "noisy_observations",
        about: "Letters and digits of what is shown are wrong: another representation of the state.",
        source: "STORI, arXiv 2509.01793, and its code; reconstructed for text",
        formula: "each letter or digit is another with probability `probability`",
        options: OptionSet::of::<NoisyObservationsOptions>(),
        open: NamedWrapper {
            judges: false,
            turns: |_| Ok(1),
            follows: NOTHING_FOLLOWS,
            wrap: |given, inner, _, _| {
                Ok(Box::new(Stochastic::noisy_observations(&given.read()?, inner)?))
            },
        },
    },
];

static TABLE: Table<NamedWrapper> = Table::new(AXIS, ROWS);

/// All wrappers that have a name; a new one is one file and one row here.
pub fn wrapper_registry() -> &'static Table<NamedWrapper> {
    &TABLE
}

/// Makes a task interactive, with wrappers around its environment; graders judge as they would without, unless a wrapper does.
pub(crate) fn open_wrapped(
    wrappers: &[WrapperConfig],
    task: &Task,
    resources: &Resources,
) -> Result<Box<dyn Environment>, EnvironmentError> {
    let graders = match resources.is_ungraded {
        true => Vec::new(),
        false => Graders::merged(&task.graders, &resources.graders),
    };
    let task = Task { graders, ..task.clone() };
    let row = environment_registry().find(&task.environment)?;
    let mut environment = (row.open.open)(&task, resources)?;
    let mut is_judged = task.graders.is_empty();
    for config in wrappers {
        let (row, given) = wrapper_registry().choose(&config.kind, &config.options)?;
        is_judged |= row.open.judges;
        environment = (row.open.wrap)(&given, environment, &task, resources)?;
    }
    if is_judged {
        return Ok(environment);
    }
    let graders = Graders::open(&task.graders)?;
    Ok(Box::new(Graded::new(environment, task, graders, resources.models.clone())?))
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;
    use spar_core::registry::AnyTable;
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;
    use crate::open_environment;

    fn wrapped(kind: &str) -> Task {
        let mut task =
            open_suite("sums", &SuiteOptions::default()).unwrap().task("dev", 3).unwrap();
        task.parameters["wrappers"] = serde_json::json!([{ "kind": kind }]);
        task.max_turns = 64;
        task
    }

    #[tokio::test]
    async fn every_wrapper_forks_and_lets_the_oracle_through() {
        assert_eq!(AnyTable::problems(wrapper_registry()), [""; 0]);
        // Those that judge are around tasks of one turn; the others have tests of their own.
        let alone = |row: &&WrapperRow| row.open.judges && row.name != "skill_chain";
        for row in wrapper_registry().iter().filter(alone) {
            let task = wrapped(row.name);
            let mut env = open_environment(&task, &Resources::default()).unwrap();
            let shown = env.reset(Seed::from_u64(4)).await.unwrap();
            env.prepare().await.unwrap();
            let first = env.step(&"77".into()).await.unwrap();
            let mut fork = env.fork().await.unwrap().unwrap();
            let action = env.oracle_action().unwrap();
            let (one, other) =
                (env.step(&action).await.unwrap(), fork.step(&action).await.unwrap());
            assert_eq!((&one.observation.text, one.terminated), (&other.observation.text, true));
            let verdict = env.verify().await.unwrap().unwrap();
            assert!(
                verdict.success && verdict == fork.verify().await.unwrap().unwrap(),
                "{}",
                row.name
            );
            // Once more from the start: the same is shown.
            assert_eq!(env.reset(Seed::from_u64(4)).await.unwrap(), shown);
            let again = env.step(&"77".into()).await.unwrap();
            assert_eq!(
                (again.observation, again.terminated),
                (first.observation, first.terminated)
            );
        }
    }

    #[test]
    fn wrappers_that_there_are_not_and_options_that_they_have_not_are_told() {
        let told = |wrappers: serde_json::Value| {
            let mut task = wrapped("");
            task.parameters["wrappers"] = wrappers;
            match open_environment(&task, &Resources::default()) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        assert!(told(serde_json::json!([{ "kind": "unary" }])).contains("`unary_feedback`"));
        let typo = told(serde_json::json!([{ "kind": "unary_feedback", "atempts": 3 }]));
        assert!(typo.contains("`atempts`"), "{typo}");
        assert!(told(serde_json::json!({ "kind": "unary_feedback" })).contains("`wrappers`"));
        assert_eq!(told(serde_json::json!([])), "");
    }
}
