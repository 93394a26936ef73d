//! Graders: what becomes of an episode when it is over.
//!
//! ```text
//!  Task.graders, recipe ──▶ Graders ──grade──▶ Verdict { parts, success, details, artifacts }
//!                              │ one by one, in their order
//!                              ├─ environment, exact            what the environment or the task says
//!                              ├─ script, fresh_sandbox ──────▶ GradingPlace::run_script
//!                              └─ judge, likelihood ──────────▶ GradingModels
//! ```
//!
//! A task names graders, and a recipe can add some; each has a weight, and one decides what success is. Where none is named,
//! the environment judges. What keeps a grader from judging is an error, never a verdict. A new grader is one file and one
//! row of [`grader_registry`].

mod environment;
mod exact;
mod grader;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod graders;
mod judge;
mod likelihood;
mod registry;
mod script;
#[cfg(test)]
mod test_episodes;

pub use environment::OwnVerdict;
pub use exact::{Exact, ExactOptions};
pub use grader::{GradedEpisode, Grader, GraderNeeds, GradingModel, GradingModels, GradingPlace};
pub use graders::Graders;
pub use judge::{Comparison, Criterion, Judge, JudgeMode, JudgeOptions, PROMPT_VERSION, Shown};
pub use likelihood::{Likelihood, LikelihoodMeasure, LikelihoodOptions};
pub use registry::{GraderConfig, GraderRow, OpenGrader, grader_registry, open_grader};
pub use script::{FreshSandboxOptions, Script, ScriptFinding, ScriptOptions};

use std::sync::Arc;

use spar_core::{Message, Policy};

use crate::{GraderError, ReferenceAnswer};

/// The tokens of a conversation, message by message; none for a policy that works on text.
fn encoded(policy: &dyn Policy, messages: &[Arc<Message>]) -> Vec<u32> {
    let mut before: Option<&Message> = None;
    let mut ids = Vec::new();
    for message in messages {
        ids.extend(policy.encode(before, message));
        before = Some(message);
    }
    ids
}

/// What the task calls right, for a grader that cannot do without.
fn expect_reference<'a>(
    episode: &GradedEpisode<'a>,
    grader: &str,
) -> Result<&'a ReferenceAnswer, GraderError> {
    episode.reference.ok_or_else(|| GraderError::Problems {
        problems: vec![format!(
            "`{grader}` needs an answer that is right, and task `{}` has none",
            episode.task.id
        )],
    })
}
