//! Tasks, and the suites and splits they come in.
//!
//! ```text
//!  suite.toml ──▶ Suite ──task(split, index)──▶ Task { environment, parameters, instruction }
//!  game folder ─┤
//!  .jsonl ──────┘       │
//!                       └─ShuffledTasks (seed) ──▶ tasks of an iteration, samples
//! ```
//!
//! What an episode earns can be shaped before credit sees it, by [`RewardShapers`] that a recipe names.
//!
//! A suite never holds its tasks: it makes the task of an index when it is asked, so that a
//! generated suite of a million tasks costs nothing.
//!
//! ```
//! use spar_tasks::{SuiteOptions, open_suite};
//!
//! let suite = open_suite("frozen-lake", &SuiteOptions::default())?;
//! let task = suite.task("train", 0)?;
//! assert_eq!(task.environment, "frozen-lake");
//! # Ok::<(), spar_tasks::SuiteError>(())
//! ```

mod bfcl_suite;
mod code_problems;
mod code_task;
pub mod curricula;
mod error;
pub mod formats;
mod game_folder;
pub mod graders;
mod interleaving;
mod lines;
mod mixture;
mod offline;
mod ors_suite;
mod ors_task;
mod process_suite;
mod process_task;
mod published;
mod question_rows;
mod question_suite;
mod registry;
mod rubric;
pub mod samplers;
mod search_suite;
mod search_task;
mod shapers;
mod shop_suite;
mod shuffled_tasks;
mod sql_suite;
mod sql_task;
mod suite;
mod suite_file;
mod swe_suite;
mod swe_task;
mod task;
mod task_folder;
mod tau2_suite;
mod template_suite;
mod terminal_suite;
mod terminal_task;
#[cfg(test)]
mod test_vectors;
mod tool_suite;
mod webarena_suite;
mod wrapper_config;

pub use bfcl_suite::BfclSuite;
pub use code_problems::{CodeProblemSuite, Schema};
pub use code_task::{CodeInterpreter, CodeTask};
pub use error::{GraderError, SamplerError, ShaperError, SuiteError};
pub use game_folder::GameFolderSuite;
pub use graders::UnitTests;
pub use mixture::{MixedSuite, Mixture};
pub use offline::{
    DATASET_VERSION, Dataset, DatasetTier, MEDIUM_EXPERT, OfflineSuite, RecordedEpisode,
    RecordedTurn, Recording, RecordingFile, ScoreReferences, Tier,
};
pub use ors_suite::OrsSuite;
pub use ors_task::{OrsFailure, OrsSpec, OrsTask};
pub use process_suite::ProcessSuite;
pub use process_task::{
    ProcessTask, ProgramActions, ProgramLimits, ProgramSandbox, ProgramSpec, ProgramTimeouts,
};
pub use published::{
    ColumnError, Columns, PublishedQuestion, QuestionSchema, question_schemas, recognise,
};
pub use question_suite::{QuestionSuite, QuestionTask, ReferenceAnswer};
pub use registry::{NamedSuite, SuiteOptions, SuiteRow, open_suite, suite_registry};
pub use rubric::{RubricCriterion, rubric_of};
pub use search_suite::SearchSuite;
pub use search_task::{SearchPrompt, SearchTask};
pub use shapers::{
    Agreement, AgreementOptions, Calibration, CalibrationOptions, Completion, CompletionOptions,
    Consensus, ConsensusOptions, ConsensusRule, Ensemble, EnsembleOptions, EnsembleRule, Flawed,
    FlawedOptions, Gate, Gated, GatedOptions, Hypervolume, HypervolumeOptions, LengthDiscount,
    LengthDiscountOptions, LikelihoodBonus, LikelihoodBonusOptions, Normalized, NormalizedOptions,
    OpenShaper, Overlong, OverlongOptions, Partial, PartialOptions, Process, ProcessOptions,
    ProgressWeighted, ProgressWeightedOptions, Repetition, RepetitionOptions, RewardShaper,
    RewardShapers, SAVE_SKILL, SKILL_PART, ShapedGroup, ShaperConfig, ShaperRow, SkillCredit,
    ToolCost, ToolCostOptions, USE_SKILL, Verpo, VerpoOptions, Weighted, WeightedOptions,
    hypervolume, open_shaper, shaper_registry, stated_confidence,
};
pub use shop_suite::ShopSuite;
pub use shuffled_tasks::ShuffledTasks;
pub use sql_task::SqlTask;
pub use suite::{Share, Suite, SuiteManifest};
pub use swe_suite::SweSuite;
pub use swe_task::SweTask;
pub use task::Task;
pub use tau2_suite::Tau2Suite;
pub use template_suite::TemplateSuite;
pub use terminal_suite::TerminalSuite;
pub use terminal_task::{
    DetailedFile, SERVICE_HOST, TaskFile, TerminalTask, TerminalVerifier, VERIFIER_FOLDER,
    VerifierSandbox,
};
pub use tool_suite::ToolSuite;
pub use webarena_suite::WebArenaSuite;
pub use wrapper_config::WrapperConfig;
