//! What a training run does.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spar_agent::credit::{CreditConfig, open_estimator};
use spar_agent::filters::{FilterConfig, open_filter};
use spar_agent::strategies::{StrategyConfig, open_strategy};
use spar_agent::{DemonstrationConfig, EpisodeConfig, Guide, RollIn};
use spar_core::{Sampling, Signal};
use spar_policy::cuda::DeviceChoice;
use spar_policy::{LoraConfig, ModelConfig, TokenizerConfig};
use spar_tasks::samplers::{SamplerConfig, open_sampler};
use spar_tasks::{ShaperConfig, open_shaper};
use spar_trainer::{ObjectiveConfig, OptimizerPlace, TrainerConfig, WeightPrecision};

use crate::sandboxes::SandboxConfig;

/// What a training run does; written resolved into the run folder.
///
/// A run has two stages: a warm start, which imitates demonstrations, and reinforcement learning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// Names the recipe, and runs that are given no name. Default empty.
    pub name: String,
    /// What the recipe is for and which published method it stands for. Default empty.
    pub about: String,
    /// Seed of all random choices. Default 0.
    pub seed: u64,
    /// A checkpoint folder, or a model's name on the hub, to start from; its model and tokenizer take
    /// the place of those below. Default absent: from nothing.
    pub start_from: Option<PathBuf>,
    /// Where the decoder computes: `auto` (a GPU where there is one that works), `cpu` or `cuda`.
    /// Default `auto`.
    pub device: DeviceChoice,
    /// GPUs of the machine that share out the shards of every update; the first one also plays. Default
    /// absent: one.
    pub devices: Option<usize>,
    /// What is trained on.
    pub data: DataConfig,
    /// The shape of a model from scratch.
    pub model: ModelConfig,
    /// The tokenizer of a model from scratch.
    pub tokenizer: TokenizerConfig,
    /// Trains a low-rank adapter on the frozen weights of `start_from` instead of all weights.
    /// Default absent.
    pub lora: Option<LoraConfig>,
    /// How episodes are played.
    pub episode: EpisodeConfig,
    /// Where sandboxes come from, for environments that need them.
    pub sandbox: SandboxConfig,
    /// Imitation of demonstrations.
    pub warm_start: WarmStartConfig,
    /// Reinforcement learning.
    pub reinforce: ReinforceConfig,
    /// When and how the policy is evaluated.
    pub evaluation: EvaluationConfig,
    /// What is kept on disk.
    pub keep: KeepConfig,
}

/// What is trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// Name of a suite, or a folder with a suite.toml. Default `household`.
    pub suite: String,
    /// Folder of third-party data, for suites that need it. Default absent.
    pub folder: Option<PathBuf>,
    /// The split that is trained on. Default `train`.
    pub train: String,
    /// The splits that are demonstrated, task by task in turn. Default empty: the one that is
    /// trained on.
    pub demonstrations: Vec<String>,
    /// The split that chooses among checkpoints. Default `dev`.
    pub dev: String,
    /// The splits that are only reported. Default `seen` and `unseen`.
    pub test: Vec<String>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            suite: "household".to_owned(),
            folder: None,
            train: "train".to_owned(),
            demonstrations: Vec::new(),
            dev: "dev".to_owned(),
            test: vec!["seen".to_owned(), "unseen".to_owned()],
        }
    }
}

/// Imitation of demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WarmStartConfig {
    /// Iterations, each on demonstrations of its own; 0 leaves the stage out. Default 40.
    pub iterations: u64,
    /// Tasks that are demonstrated per iteration. Default 128.
    pub tasks: usize,
    /// Tokens per update, roughly. Default 2048.
    pub batch_tokens: usize,
    /// Who demonstrates. Default `expert`.
    pub demonstrator: Guide,
    /// Whether demonstrations that did not solve their task are imitated as well. Default false.
    pub imitate_unsolved: bool,
    /// Whether the policy plays first in some episodes, so that the demonstrator goes on from where it led.
    pub roll_in: RollInConfig,
    /// What tokens weigh.
    pub weights: DemonstrationConfig,
    /// How rows become updates; `minibatches` follows from `batch_tokens` and stays at 1.
    pub trainer: TrainerConfig,
}

impl Default for WarmStartConfig {
    fn default() -> Self {
        Self {
            iterations: 40,
            tasks: 128,
            batch_tokens: 2048,
            demonstrator: Guide::default(),
            imitate_unsolved: false,
            roll_in: RollInConfig::default(),
            weights: DemonstrationConfig::default(),
            trainer: TrainerConfig::default(),
        }
    }
}

impl WarmStartConfig {
    /// The demonstrated tasks that come before an iteration of the stage and in it, as `(first, count)`.
    pub fn tasks_of(&self, iteration: u64) -> (u64, usize) {
        let tasks = self.tasks as u64;
        let is_led = |iteration: u64| self.roll_in_of(iteration).is_some();
        let Some(more) = self.roll_in.tasks.filter(|_| is_led(iteration)) else {
            return (iteration * tasks, self.tasks);
        };
        let alone = (0..iteration).find(|earlier| is_led(*earlier)).unwrap_or(iteration);
        (alone * tasks + (iteration - alone) * more as u64, more)
    }

    /// How the policy leads in an iteration of the stage; absent where the demonstrator plays alone.
    pub fn roll_in_of(&self, iteration: u64) -> Option<RollIn> {
        self.roll_in.at(iteration as f64 / self.iterations as f64)
    }
}

/// In which demonstrations the policy plays first; see [`RollIn`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RollInConfig {
    /// How many of an iteration's episodes the policy begins, from 0 to 1. Default 0.
    pub share: f64,
    /// The part of the stage's iterations that is over before it does, from 0 to 1: what has learned
    /// nothing yet leads nowhere. Default 0.5.
    pub after: f64,
    /// The fewest turns that it plays; at least 1. Default 1.
    pub min_turns: u32,
    /// The most turns that it plays, `min_turns` or more. Default 30.
    pub max_turns: u32,
    /// Tasks per iteration from then on; positive. What the policy solves before the demonstrator's turn comes costs
    /// no update, so that these may be more. Default absent: those of the stage.
    pub tasks: Option<usize>,
}

impl Default for RollInConfig {
    fn default() -> Self {
        Self { share: 0.0, after: 0.5, min_turns: 1, max_turns: 30, tasks: None }
    }
}

impl RollInConfig {
    /// What it comes to when `progress` of the stage, from 0 to 1, is over; absent where the demonstrator
    /// plays alone.
    pub fn at(&self, progress: f64) -> Option<RollIn> {
        let Self { share, after, min_turns, max_turns, .. } = *self;
        (share > 0.0 && progress >= after).then_some(RollIn { share, min_turns, max_turns })
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("share", self.share), ("after", self.after)] {
            if !(0.0..=1.0).contains(&value) {
                problems.push(format!("{name} is {value}, must be from 0 to 1"));
            }
        }
        if self.share > 0.0 && self.after == 1.0 {
            problems
                .push("after is 1, so that the stage is over before the policy plays".to_owned());
        }
        if self.min_turns == 0 {
            problems.push("min_turns is 0, must be at least 1".to_owned());
        }
        if self.max_turns < self.min_turns {
            problems.push(format!(
                "max_turns is {}, must be min_turns ({}) or more",
                self.max_turns, self.min_turns
            ));
        }
        if self.tasks == Some(0) {
            problems.push("tasks is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

/// Reinforcement learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReinforceConfig {
    /// Iterations of collecting and updating; 0 leaves the stage out. Default 200.
    pub iterations: u64,
    /// Tasks per iteration. Default 16.
    pub tasks: usize,
    /// Episodes per task. Default 8.
    pub group_size: usize,
    /// Turns an episode may have in training. Default 20.
    pub max_turns: u32,
    /// Whether turns whose answer was cut off (at `sampling.max_tokens`) carry no weight, so that
    /// nothing is learned from what was not finished. Default false.
    pub mask_cut_off_turns: bool,
    /// Which tasks are played, and which of their groups are trained. Default `uniform`.
    pub sampler: SamplerConfig,
    /// How the episodes of a group come about. Default `independent`.
    pub strategy: StrategyConfig,
    /// What changes the rewards before credit sees them, in this order. Default empty: nothing.
    pub shapers: Vec<ShaperConfig>,
    /// How advantages are assigned to steps. Default `grpo`.
    pub credit: CreditConfig,
    /// Which trajectories of a group are trained; what is left out counts in nothing, also not in what a loss is
    /// divided by. Default absent: all.
    pub filter: Option<FilterConfig>,
    /// What is minimised.
    pub objective: ObjectiveConfig,
    /// How the reference model is held, where the objective asks for one. Default absent:
    /// `adapter_off` where an adapter is trained from the start of the run on, else `memory`.
    pub reference: Option<ReferenceHold>,
    /// How rows become updates.
    pub trainer: TrainerConfig,
}

/// How the reference model is held: the policy as it was when reinforcement learning began, whose
/// log-probabilities are computed once per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceHold {
    /// Its weights stay in memory.
    Memory,
    /// Its weights are read from its checkpoint in every iteration and are in memory only while rows
    /// are read.
    Disk,
    /// The policy without its adapter, which is the model that the run started from; takes no
    /// memory of its own.
    AdapterOff,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self {
            iterations: 200,
            tasks: 16,
            group_size: 8,
            max_turns: 20,
            mask_cut_off_turns: false,
            sampler: SamplerConfig::default(),
            strategy: StrategyConfig::default(),
            shapers: Vec::new(),
            credit: CreditConfig::default(),
            filter: None,
            objective: ObjectiveConfig::default(),
            reference: None,
            trainer: TrainerConfig::default(),
        }
    }
}

/// When and how the policy is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Iterations of reinforcement learning between evaluations on the dev split. Default 20.
    pub every: u64,
    /// Tasks of the dev split that are played each time: a sample, the same throughout a run. Default
    /// 100.
    pub dev_tasks: usize,
    /// Episodes of each of these tasks: where a split is small and answers are drawn, one of each leaves it to
    /// luck which checkpoint is chosen. Default 1.
    pub dev_attempts: usize,
    /// Tasks of each test split that are played before and after reinforcement learning: a sample,
    /// the same both times. Default absent: all.
    pub test_tasks: Option<usize>,
    /// The share of an evaluation's episodes, 0 to below 1, that may be missing because sandbox,
    /// environment or policy server failed. Where more are, it has no score, and the run stops, to be
    /// taken up by `spar resume`. Default 0.05.
    pub max_missing: f64,
    /// Temperature in evaluation; 0 takes the most probable tokens. Default 0.
    pub temperature: f32,
    /// How many of the most probable tokens can be drawn. Default absent: all.
    pub top_k: Option<usize>,
    /// The fewest of the most probable tokens can be drawn that have this probability together.
    /// Above 0 up to 1, default 1: all.
    pub top_p: f32,
    /// Share of the most probable token's probability below which a token cannot be drawn. 0 to 1,
    /// default 0: all can.
    pub min_p: f32,
    /// Turns an episode may have. Default absent: the task's number.
    pub max_turns: Option<u32>,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self {
            every: 20,
            dev_tasks: 100,
            dev_attempts: 1,
            test_tasks: None,
            max_missing: 0.05,
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            max_turns: None,
        }
    }
}

impl EvaluationConfig {
    /// Sets how tokens are drawn in evaluation.
    pub fn apply_to(&self, sampling: &mut Sampling) {
        let Self { temperature, top_k, top_p, min_p, .. } = *self;
        *sampling = Sampling { temperature, top_k, top_p, min_p, ..*sampling };
    }
}

/// What is kept on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepConfig {
    /// Iterations between checkpoints; a crash loses at most so many. Default 10.
    pub checkpoint_every: u64,
    /// Checkpoints kept beside those that are marked. Default 3.
    pub checkpoints: usize,
    /// Iterations between those whose trajectories are kept; 0 keeps none. Default 10.
    pub trajectories_every: u64,
}

impl Default for KeepConfig {
    fn default() -> Self {
        Self { checkpoint_every: 10, checkpoints: 3, trajectories_every: 10 }
    }
}

/// A recipe cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("read recipe `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No recipe has this name.
    #[error("find recipe `{name}`: known are {known}, or the path of a .toml file")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The text is no recipe.
    #[error("understand recipe `{name}`")]
    Malformed {
        /// Name or path of the recipe.
        name: String,
        /// What is wrong with it.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Settings are outside their range.
    #[error("use the recipe:\n{}", problems.iter().map(|p| format!("  - {p}")).collect::<Vec<_>>().join("\n"))]
    Problems {
        /// All that is wrong.
        problems: Vec<String>,
    },
}

/// The recipes that ship, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("household", include_str!("../recipes/household.toml")),
    ("household-few", include_str!("../recipes/household-few.toml")),
    ("household-rewards", include_str!("../recipes/household-rewards.toml")),
    ("alfworld", include_str!("../recipes/alfworld.toml")),
    ("frozen-lake", include_str!("../recipes/frozen-lake.toml")),
    ("terminal", include_str!("../recipes/terminal.toml")),
    ("adapter", include_str!("../recipes/adapter.toml")),
    ("quick", include_str!("../recipes/quick.toml")),
];

/// The names of the recipes that ship.
pub fn recipe_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

impl Recipe {
    /// The text of a recipe that ships, or of the file at a path.
    ///
    /// # Errors
    ///
    /// [`RecipeError`] when there is neither.
    pub fn text(name: &str) -> Result<String, RecipeError> {
        if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
            return Ok((*text).to_owned());
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") {
            let known: Vec<_> = recipe_names().map(|name| format!("`{name}`")).collect();
            return Err(RecipeError::Unknown { name: name.to_owned(), known: known.join(", ") });
        }
        std::fs::read_to_string(path)
            .map_err(|source| RecipeError::Read { path: path.to_owned(), source })
    }

    /// Reads a recipe from TOML; settings left out have their defaults.
    ///
    /// `overrides` are settings such as `reinforce.iterations=50`, which win over the text.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Malformed`] names unknown and mistyped settings.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, RecipeError> {
        let malformed =
            |source| RecipeError::Malformed { name: name.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = toml::from_str(text).map_err(malformed)?;
        for setting in overrides {
            let Some((path, value)) = setting.split_once('=') else {
                let problem = format!("`{setting}` is no setting, write `name.of.it=value`");
                return Err(RecipeError::Problems { problems: vec![problem] });
            };
            // What is no TOML value is a string without its quotes.
            let value = toml::from_str::<toml::Table>(&format!("value = {value}"))
                .ok()
                .and_then(|mut table| table.remove("value"))
                .unwrap_or_else(|| toml::Value::String(value.to_owned()));
            insert(&mut table, path.trim(), value).map_err(|problem| RecipeError::Problems {
                problems: vec![format!("`{setting}`: {problem}")],
            })?;
        }
        if let Some(factor) = length_discount(&table) {
            let problem = format!(
                "`reinforce.length_discount` is a reward shaper now, and off unless it is named: \
                 write shapers = [{{ name = \"length_discount\", options = {{ factor = {factor} }} \
                 }}] under [reinforce]"
            );
            return Err(RecipeError::Problems { problems: vec![problem] });
        }
        // By way of text, so that errors show the line.
        let text = if overrides.is_empty() {
            text.to_owned()
        } else {
            toml::to_string(&table).expect("a table of values can be written")
        };
        toml::from_str(&text).map_err(malformed)
    }

    /// Reads the resolved recipe of a run, which an older version may have written.
    ///
    /// Its `reinforce.length_discount` is the reward shaper of that name here, and its `list_untried` of true or
    /// false one of the moments.
    ///
    /// # Errors
    ///
    /// As [`Recipe::parse`].
    pub fn of_run(name: &str, text: &str) -> Result<Self, RecipeError> {
        let malformed =
            |source| RecipeError::Malformed { name: name.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = toml::from_str(text).map_err(malformed)?;
        let written =
            |table: &toml::Table| toml::to_string(table).expect("a table of values can be written");
        let context = table.get_mut("episode").and_then(|episode| episode.get_mut("context"));
        let untried = context.and_then(|context| context.get_mut("list_untried"));
        let is_older = match untried.map(|when| (when.as_bool(), when)) {
            Some((Some(is_listed), when)) => {
                *when = if is_listed { "repeated" } else { "never" }.into();
                true
            }
            _ => false,
        };
        let Some(factor) = length_discount(&table).cloned() else {
            // As it stands where it can, so that errors show the line.
            let text = if is_older { Cow::Owned(written(&table)) } else { Cow::Borrowed(text) };
            return Self::parse(name, &text, &[]);
        };
        let reinforce = table.get_mut("reinforce").and_then(toml::Value::as_table_mut);
        let reinforce = reinforce.expect("the setting was found in this table");
        reinforce.remove("length_discount");
        // 1 meant that nothing is discounted.
        if factor.as_float() != Some(1.0) && factor.as_integer() != Some(1) {
            let mut shaper = ShaperConfig::new("length_discount");
            shaper.options.insert("factor".to_owned(), factor);
            let shapers = toml::Value::try_from([shaper]).expect("a table can be a value");
            reinforce.insert("shapers".to_owned(), shapers);
        }
        Self::parse(name, &written(&table), &[])
    }

    /// Checks every setting that can be checked before anything is started.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Problems`] lists all that is wrong.
    pub fn validate(&self) -> Result<(), RecipeError> {
        let mut problems = Vec::new();
        let mut within = |part: &str, found: Vec<String>| {
            problems.extend(found.into_iter().map(|problem| format!("{part}: {problem}")));
        };
        let model = ModelConfig { vocab_size: 1, ..self.model.clone() };
        within("model", model.problems());
        if self.model.vocab_size != 0 {
            let problem = "`vocab_size` has no effect: it is that of the tokenizer".to_owned();
            within("model", vec![problem]);
        }
        if self.devices == Some(0) {
            within("devices", vec!["0 is none".to_owned()]);
        }
        if self.devices.is_some_and(|devices| devices > 1) && self.device == DeviceChoice::Cpu {
            within(
                "devices",
                vec!["several are GPUs, and the recipe's device is the CPU".to_owned()],
            );
        }
        let stages =
            [("warm_start", &self.warm_start.trainer), ("reinforce", &self.reinforce.trainer)];
        for (stage, trainer) in stages {
            let devices = self.devices.unwrap_or(1);
            if devices > 1 && !trainer.is_for_device() {
                let problem = "several devices need `adamw` on them, and no `average`".to_owned();
                within(&format!("{stage}.trainer"), vec![problem]);
            }
            if trainer.shards < devices {
                let problem = format!("`shards` is {}, fewer than `devices`", trainer.shards);
                within(&format!("{stage}.trainer"), vec![problem]);
            }
            let is_on_device = trainer.optimizer_on == Some(OptimizerPlace::Device);
            if is_on_device && self.device == DeviceChoice::Cpu {
                let problem = "`optimizer_on` is `device`, and the recipe's device is the CPU";
                within(&format!("{stage}.trainer"), vec![problem.to_owned()]);
            }
        }
        let lines = |error: &dyn std::error::Error| vec![error.to_string()];
        if let Err(error) = self.episode.validate() {
            within("episode", lines(&error));
        }
        if let Err(error) = self.warm_start.weights.validate() {
            within("warm_start.weights", lines(&error));
        }
        within("warm_start.roll_in", self.warm_start.roll_in.problems());
        within("warm_start.trainer", self.warm_start.trainer.problems());
        within("reinforce.trainer", self.reinforce.trainer.problems());
        within("reinforce.objective", self.reinforce.objective.problems());
        for shaper in &self.reinforce.shapers {
            if let Err(error) = open_shaper(shaper) {
                within("reinforce.shapers", vec![format!("{:#}", anyhow::Error::from(error))]);
            }
        }
        if let Err(error) = open_sampler(&self.reinforce.sampler, 0) {
            within("reinforce.sampler", vec![format!("{:#}", anyhow::Error::from(error))]);
        }
        let strategy = open_strategy(&self.reinforce.strategy);
        let strategy = strategy.and_then(|strategy| strategy.check(self.reinforce.group_size));
        if let Err(error) = strategy {
            within("reinforce.strategy", vec![format!("{:#}", anyhow::Error::from(error))]);
        }
        match open_estimator(&self.reinforce.credit) {
            Err(error) => {
                within("reinforce.credit", vec![format!("{:#}", anyhow::Error::from(error))]);
            }
            Ok(credit) => {
                let missing = credit.needs().iter().filter_map(|need| self.missing_signal(*need));
                let tell = |missing| format!("credit `{}` needs {missing}", credit.name());
                within("reinforce.credit", missing.map(tell).collect());
            }
        }
        if let Some(Err(error)) = self.reinforce.filter.as_ref().map(open_filter) {
            within("reinforce.filter", vec![format!("{:#}", anyhow::Error::from(error))]);
        }
        if self.warm_start.trainer.minibatches != 1 {
            let problem = "`minibatches` has no effect: it follows from `batch_tokens`".to_owned();
            within("warm_start.trainer", vec![problem]);
        }
        if self.episode.max_turns.is_some() {
            let problem = "`max_turns` has no effect: set reinforce.max_turns and \
                           evaluation.max_turns";
            within("episode", vec![problem.to_owned()]);
        }
        if self.episode.sampling.temperature <= 0.0 {
            let problem = "`sampling.temperature` must be positive in training".to_owned();
            within("episode", vec![problem]);
        }
        let positive = [
            ("sandbox.concurrency", self.sandbox.concurrency),
            ("warm_start.tasks", self.warm_start.tasks),
            ("warm_start.batch_tokens", self.warm_start.batch_tokens),
            ("reinforce.tasks", self.reinforce.tasks),
            ("reinforce.group_size", self.reinforce.group_size),
            ("reinforce.max_turns", self.reinforce.max_turns as usize),
            ("evaluation.every", self.evaluation.every as usize),
            ("evaluation.dev_tasks", self.evaluation.dev_tasks),
            ("evaluation.dev_attempts", self.evaluation.dev_attempts),
            ("keep.checkpoint_every", self.keep.checkpoint_every as usize),
            ("keep.checkpoints", self.keep.checkpoints),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        let max_missing = self.evaluation.max_missing;
        if !(0.0..1.0).contains(&max_missing) {
            problems.push(format!("evaluation.max_missing is {max_missing}, must be in [0, 1)"));
        }
        let mut sampling = Sampling::default();
        self.evaluation.apply_to(&mut sampling);
        let of_evaluation = sampling.problems();
        problems.extend(of_evaluation.into_iter().map(|problem| format!("evaluation.{problem}")));
        if let Some(lora) = &self.lora {
            let lora_problems = lora.problems();
            problems.extend(lora_problems.into_iter().map(|problem| format!("lora: {problem}")));
            if self.start_from.is_none() {
                let problem = "lora: there is no model to adapt, set `start_from`";
                problems.push(problem.to_owned());
            }
            let stages =
                [("warm_start", &self.warm_start.trainer), ("reinforce", &self.reinforce.trainer)];
            for (stage, _) in stages.iter().filter(|(_, t)| t.weights != WeightPrecision::F32) {
                problems.push(format!("{stage}.trainer.weights: an adapter is trained in f32"));
            }
        }
        match self.reinforce.reference {
            Some(_) if !self.has_reference() => {
                let problem = "reinforce.reference has no effect: the objective asks for none";
                problems.push(problem.to_owned());
            }
            Some(ReferenceHold::AdapterOff) if self.lora.is_none() => {
                let problem =
                    "reinforce.reference is `adapter_off`: there is no adapter, set [lora]";
                problems.push(problem.to_owned());
            }
            _ => {}
        }
        if self.warm_start.iterations + self.reinforce.iterations == 0 {
            problems.push("both stages have 0 iterations, nothing would be trained".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(RecipeError::Problems { problems }) }
    }

    /// The recipe as TOML, every setting written out.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a recipe can be written as TOML")
    }

    /// Whether reinforcement learning needs a reference model.
    pub fn has_reference(&self) -> bool {
        let objective = self.reinforce.objective.build();
        objective.is_ok_and(|objective| objective.needs().reference)
    }

    /// What is wrong where an estimator needs a signal that no stage of this recipe gives; `None` where one does.
    ///
    /// A learner or stage that gives a signal is named here, and fills it where the run fills signals.
    pub fn missing_signal(&self, signal: Signal) -> Option<&'static str> {
        match signal {
            Signal::Reference if self.has_reference() => None,
            Signal::Reference => Some("a reference model, and the objective asks for none"),
            Signal::Values => Some("values, and no learner gives them"),
            Signal::Old => Some("older log-probabilities, and no stage gives them"),
            Signal::Teacher => Some("a teacher's log-probabilities, and there is no teacher"),
            Signal::Entropies => Some("entropies, and no stage gives them"),
            Signal::SumSquares => Some("sums of squared probabilities, and no stage gives them"),
        }
    }

    /// How the reference model is held, where there is one.
    pub fn reference_hold(&self) -> Option<ReferenceHold> {
        let default = match self.lora {
            Some(_) if self.warm_start.iterations == 0 => ReferenceHold::AdapterOff,
            _ => ReferenceHold::Memory,
        };
        self.has_reference().then(|| self.reinforce.reference.unwrap_or(default))
    }

    /// Iterations of both stages.
    pub fn num_iterations(&self) -> u64 {
        self.warm_start.iterations + self.reinforce.iterations
    }
}

/// A setting that older versions had.
fn length_discount(table: &toml::Table) -> Option<&toml::Value> {
    table.get("reinforce")?.get("length_discount")
}

/// Sets `path` in nested tables.
fn insert(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
            Ok(())
        }
        Some((first, rest)) => {
            let inner =
                table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            match inner {
                toml::Value::Table(inner) => insert(inner, rest, value),
                _ => Err(format!("`{first}` is a value, not a table")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_agent::ListUntried;

    use super::*;

    #[test]
    fn shipped_recipes_are_valid_and_round_trip() {
        for name in recipe_names() {
            // Those that adapt a model leave open which.
            let text = Recipe::text(name).unwrap();
            let open = text.contains("[lora]");
            let model: Vec<String> =
                open.then(|| "start_from=model".to_owned()).into_iter().collect();
            let recipe = Recipe::parse(name, &text, &model).unwrap();
            recipe.validate().unwrap();
            assert_eq!(recipe.name, name);
            let data = &recipe.data;
            let is_test = data.test.contains(&data.dev) || data.test.contains(&data.train);
            assert!(!is_test, "{name}: what is trained on or chooses is no test");
            assert_eq!(Recipe::parse(name, &recipe.to_toml(), &[]).unwrap(), recipe);
        }
    }

    #[test]
    fn no_task_is_demonstrated_twice_where_roll_in_has_more_of_them() {
        let mut warm = WarmStartConfig { iterations: 10, tasks: 4, ..WarmStartConfig::default() };
        assert_eq!((warm.tasks_of(3), warm.tasks_of(10)), ((12, 4), (40, 4)));
        warm.roll_in = RollInConfig { share: 0.5, after: 0.55, tasks: Some(7), ..warm.roll_in };
        let mut next = 0;
        for iteration in 0..10 {
            let (first, count) = warm.tasks_of(iteration);
            assert_eq!((first, count), (next, if iteration < 6 { 4 } else { 7 }));
            next += count as u64;
        }
        assert_eq!(warm.tasks_of(10).0, next);
        warm.roll_in.share = 0.0;
        assert_eq!(warm.tasks_of(10), (40, 4));
        warm.iterations = 0;
        assert_eq!(warm.tasks_of(0).0, 0);
    }

    #[test]
    fn overrides_win_and_typos_are_refused() {
        let overrides = ["reinforce.iterations=3".to_owned(), "data.suite=frozen-lake".to_owned()];
        let recipe = Recipe::parse("r", "[reinforce]\niterations = 9", &overrides).unwrap();
        assert_eq!((recipe.reinforce.iterations, recipe.data.suite.as_str()), (3, "frozen-lake"));
        let error = Recipe::parse("r", "", &["reinforce.iteration=3".to_owned()]).unwrap_err();
        assert!(matches!(error, RecipeError::Malformed { .. }));
        let error = Recipe::parse("r", "seed = 1\n[rienforce]\ntasks = 2", &[]).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("rienforce") && source.contains("reinforce"), "{source}");
    }

    #[test]
    fn rewards_are_shaped_only_where_a_recipe_says_so() {
        assert!(Recipe::default().reinforce.shapers.is_empty());
        for name in recipe_names() {
            let recipe = Recipe::parse(name, &Recipe::text(name).unwrap(), &[]).unwrap();
            let names: Vec<&str> =
                recipe.reinforce.shapers.iter().map(|shaper| shaper.name.as_str()).collect();
            let wanted: &[&str] = match name {
                "household" | "household-few" | "household-rewards" | "alfworld" | "quick" => {
                    &["length_discount"]
                }
                _ => &[],
            };
            assert_eq!(names, wanted, "{name}");
        }
        let bad = "[[reinforce.shapers]]\nname = 'length_discount'\noptions = { factor = 1.5 }\n\
                   [[reinforce.shapers]]\nname = 'potential'";
        let told = Recipe::parse("r", bad, &[]).unwrap().validate().unwrap_err().to_string();
        for part in ["factor is 1.5, must be", "reward shaper `potential`: known are"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn credit_that_needs_what_nothing_gives_is_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        let gae = told("[reinforce]\ncredit = { kind = 'gae', lambda = 0.95 }");
        assert!(gae.contains("credit `gae` needs values, and no learner gives them"), "{gae}");
        assert_eq!(told("[reinforce]\ncredit = { kind = 'reinforce_pp', discount = 0.99 }"), "");
        assert_eq!(told("[reinforce]\nfilter = { kind = 'max_variance', keep = 2 }"), "");
        let filter = told("[reinforce]\nfilter = { kind = 'max_variance', keep = 0 }");
        assert!(filter.contains("reinforce.filter: use group filter `max_variance`: keep is 0"));
        assert!(told("[reinforce]\nfilter = { kind = 'some' }").contains("known are `all`"));
    }

    #[test]
    fn signals_are_missed_only_where_nothing_gives_them() {
        let recipe = Recipe::default();
        for signal in Signal::ALL {
            assert!(recipe.missing_signal(signal).is_some(), "{signal}");
        }
        let text = "[reinforce.objective]\noptions = { kl_weight = 0.1 }";
        let recipe = Recipe::parse("r", text, &[]).unwrap();
        assert_eq!(recipe.missing_signal(Signal::Reference), None);
    }

    #[test]
    fn the_length_discount_of_older_versions_is_refused_in_recipes_and_read_in_runs() {
        let old = "seed = 3\n[reinforce]\nlength_discount = 0.9\ntasks = 4";
        let overrides = ["reinforce.length_discount=0.9".to_owned()];
        for (text, overrides) in [(old, &[][..]), ("", &overrides)] {
            let told = Recipe::parse("r", text, overrides).unwrap_err().to_string();
            let (_, written) = told.split_once("write ").unwrap();
            let (written, _) = written.split_once(" under [reinforce]").unwrap();
            let new = Recipe::parse("r", &format!("[reinforce]\n{written}"), &[]).unwrap();
            new.validate().unwrap();
            assert_eq!(new.reinforce.shapers[0].options["factor"].as_float(), Some(0.9));
        }
        let run = Recipe::of_run("r", old).unwrap();
        assert_eq!((run.seed, run.reinforce.tasks), (3, 4));
        let [shaper] = &run.reinforce.shapers[..] else { panic!("one shaper") };
        assert_eq!(shaper.options["factor"].as_float(), Some(0.9));
        let off = Recipe::of_run("r", "[reinforce]\nlength_discount = 1.0").unwrap();
        assert!(off.reinforce.shapers.is_empty());
        assert_eq!(Recipe::of_run("r", &run.to_toml()).unwrap(), run);
    }

    #[test]
    fn a_list_of_what_was_not_tried_that_was_on_or_off_is_read_in_runs() {
        let read = |when: bool| {
            let run = format!("[episode.context]\nlist_untried = {when}");
            assert!(Recipe::parse("r", &run, &[]).is_err());
            Recipe::of_run("r", &run).unwrap().episode.context.list_untried
        };
        assert_eq!([read(true), read(false)], [ListUntried::Repeated, ListUntried::Never]);
    }

    #[test]
    fn adapters_and_references_without_effect_are_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(told("[lora]\nrank = 4").contains("start_from"));
        assert!(told("start_from = 'm'\n[lora]\nrank = 0").contains("rank"));
        let bf16 = "start_from = 'm'\n[lora]\n[reinforce.trainer]\nweights = 'bf16'";
        assert!(told(bf16).contains("reinforce.trainer.weights: an adapter"));
        assert!(told("[reinforce]\nreference = 'memory'").contains("no effect"));
        let kl = "[reinforce.objective.options]\nkl_weight = 0.1";
        assert!(told(&format!("[reinforce]\nreference = 'adapter_off'\n{kl}")).contains("[lora]"));
        assert_eq!(told(&format!("[reinforce]\nreference = 'disk'\n{kl}")), "");
        let hold = |text: &str| Recipe::parse("r", text, &[]).unwrap().reference_hold();
        assert_eq!(hold(""), None);
        assert_eq!(hold(kl), Some(ReferenceHold::Memory));
        let adapter = format!("start_from = 'm'\n[lora]\n[warm_start]\niterations = 0\n{kl}");
        assert_eq!(hold(&adapter), Some(ReferenceHold::AdapterOff));
    }

    #[test]
    fn places_of_training_that_cannot_be_are_refused() {
        let told = |text: &str| match Recipe::parse("r", text, &[]).unwrap().validate() {
            Ok(()) => Vec::new(),
            Err(RecipeError::Problems { problems }) => problems,
            Err(other) => panic!("{other}"),
        };
        assert!(told("device = 'cuda'\ndevices = 2").is_empty());
        assert_eq!(told("device = 'cpu'\ndevices = 2").len(), 1);
        assert_eq!(told("devices = 0").len(), 1);
        // Fewer shards than devices, in both stages.
        assert_eq!(told("devices = 5").len(), 2);
        let on_device = "reinforce.trainer.optimizer_on = 'device'";
        assert!(told(on_device).is_empty());
        assert_eq!(told(&format!("device = 'cpu'\n{on_device}")).len(), 1);
        assert_eq!(told("devices = 2\nreinforce.trainer.optimizer_on = 'host'").len(), 1);
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut recipe = Recipe::default();
        recipe.reinforce.tasks = 0;
        recipe.reinforce.credit.kind = "gae".to_owned();
        recipe.model.head_dim = 3;
        recipe.evaluation.max_missing = 1.0;
        let text = recipe.validate().unwrap_err().to_string();
        for part in ["reinforce.tasks", "gae", "head_dim", "evaluation.max_missing is 1"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
