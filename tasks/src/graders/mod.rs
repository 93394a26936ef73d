//! Graders: what becomes of an episode when it is over.
//!
//! ```text
//!  Task.graders, recipe ──▶ Graders ──grade──▶ Verdict { parts, success, details, artifacts }
//!                              │ one by one, in their order
//!                              ├─ environment                   what the environment says
//!                              ├─ exact, math, choice, structured, region   what the task calls right
//!                              ├─ rubric                        which criteria of the task's rubric an answer has
//!                              ├─ patch_similarity              how like the right change it is
//!                              ├─ script, fresh_sandbox ──────▶ GradingPlace::run_script
//!                              ├─ unit_tests ─────────────────▶ GradingPlace::fresh_sandbox
//!                              └─ judge, likelihood ──────────▶ GradingModels
//! ```
//!
//! A task names graders, and a recipe can add some; each has a weight, and one decides what success is. Where none is named,
//! the environment judges. What keeps a grader from judging is an error, never a verdict, unless the episode itself has brought
//! it about: then it is worth nothing. A new grader is one file and one row of [`grader_registry`].

mod bleu;
mod choice;
mod environment;
mod evidence;
mod exact;
mod grader;
#[expect(clippy::module_inception, reason = "the type that the folder is named after")]
mod graders;
mod judge;
mod likelihood;
mod math;
mod patch_similarity;
mod reasoning_sql;
mod region;
mod registry;
mod rubric;
mod script;
mod squad;
mod structured;
mod tau2;
#[cfg(test)]
mod test_episodes;
mod unit_tests;

pub use bleu::{Bleu, BleuOptions, BleuSmoothing};
pub(crate) use choice::letter;
pub use choice::{ChoiceAnswer, ChoiceAnswerOptions};
pub use environment::OwnVerdict;
pub use evidence::{Evidence, EvidenceOptions};
pub use exact::{Exact, ExactOptions};
pub use grader::{
    FreshSandbox, GradedEpisode, Grader, GraderNeeds, GradingModel, GradingModels, GradingPlace,
};
pub use graders::Graders;
pub use judge::{Comparison, Criterion, Judge, JudgeMode, JudgeOptions, PROMPT_VERSION, Shown};
pub use likelihood::{Likelihood, LikelihoodMeasure, LikelihoodOptions};
pub use math::{AnswerPlace, MathAnswer, MathAnswerOptions};
pub use patch_similarity::{AnswerShape, PatchSimilarity, PatchSimilarityOptions};
pub use reasoning_sql::{ReasoningSql, ReasoningSqlOptions};
pub use region::{Region, RegionOptions};
pub use registry::{GraderConfig, GraderRow, OpenGrader, grader_registry, open_grader};
pub use rubric::{Rubric, RubricOptions};
pub use script::{FreshSandboxOptions, Script, ScriptFinding, ScriptOptions};
pub use squad::{Squad, SquadOptions, SquadReward};
pub use structured::Structured;
pub use tau2::{Tau2Options, Tau2Reward};
pub use unit_tests::{
    CallCase, ProgramTests, StreamCase, UnitTests, UnitTestsOptions, has_program, program_in,
};

use std::sync::Arc;

use spar_core::{Conversation, Encoded, Message, Policy, Verdict};

use crate::{GraderError, ReferenceAnswer};

/// The tokens of a conversation; none for a policy that works on text.
fn encoded(policy: &dyn Policy, messages: &[Arc<Message>]) -> Result<Vec<u32>, GraderError> {
    let conversation = Conversation { messages, tools: &[], encoded: 0, answer: &[] };
    match policy.encode_conversation(&conversation) {
        Ok(Encoded::Alone(ids) | Encoded::Behind(ids) | Encoded::Anew(ids)) => Ok(ids),
        Err(source) => Err(GraderError::Model { model: policy.name().to_owned(), source }),
    }
}

/// What was judged; where the episode itself kept a model from judging it, that it is worth nothing, and why.
fn or_worth_nothing(
    judged: Result<Verdict, GraderError>,
    judged_by: impl Fn(&str) -> String,
) -> Result<Verdict, GraderError> {
    let error = match judged {
        Err(error) => error,
        judged => return judged,
    };
    let Some(model) = error.model_kept_from_judging() else { return Err(error) };
    Ok(Verdict {
        details: format!("it could not be judged: {}", error_chain(&error)),
        graders: vec![judged_by(model)],
        ..Verdict::default()
    })
}

/// An error with all that it came of, in one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
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
