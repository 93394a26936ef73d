//! What a training run does.

mod chats;
mod data;
mod error;
mod evaluation;
mod extends;
mod hardest;
mod horizon;
mod imitate;
mod keep;
mod learner;
mod offline;
mod predict;
mod prefer;
mod read;
mod reference_hold;
mod reference_model;
mod rehearse;
mod reinforce;
mod replay;
mod roll_in;
mod shipped;
mod stage;
mod validate;
mod value_head;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_agent::EpisodeConfig;
use spar_agent::spend::SpendConfig;
use spar_policy::cuda::DeviceChoice;
use spar_policy::draw_rules::DrawRuleConfig;
use spar_policy::state_heads::StateHeadConfig;
use spar_policy::{LoraConfig, ModelConfig, TokenizerConfig};
use spar_tasks::graders::GraderConfig;

pub use self::chats::{ChatsConfig, TrainedMessages};
pub use self::data::{DataConfig, OpenedData};
pub use self::error::RecipeError;
pub use self::evaluation::EvaluationConfig;
pub use self::hardest::HardestConfig;
pub use self::horizon::HorizonConfig;
pub use self::imitate::ImitateConfig;
pub use self::keep::KeepConfig;
pub use self::learner::{LearnerConfig, POLICY};
pub use self::offline::{DatasetConfig, OfflineConfig};
pub use self::predict::PredictConfig;
pub use self::prefer::{PairsConfig, PreferConfig};
pub use self::read::setting_value;
pub use self::reference_hold::ReferenceHold;
pub use self::reference_model::{ReferenceResetConfig, ResetState, SoupMember};
pub use self::rehearse::RehearseConfig;
pub use self::reinforce::ReinforceConfig;
pub use self::replay::ReplayConfig;
pub use self::roll_in::RollInConfig;
pub(crate) use self::shipped::SHIPPED_RECIPES;
pub use self::shipped::recipe_names;
pub use self::stage::StageConfig;
use crate::judging::{JudgeConfig, JudgingConfig};
use crate::sandboxes::SandboxConfig;
use crate::seats::SeatsConfig;
use crate::secrets::SecretsConfig;
use crate::training::stages::open_stage;

/// What a training run does; written resolved into the run folder.
///
/// A run is a list of `stages`. Where none is listed, it has two, which `warm_start` and `reinforce` describe; see
/// [`Recipe::stage_configs`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// Names the recipe, and runs that are given no name. Default empty.
    pub name: String,
    /// What the recipe is for and which published method it stands for. Default empty.
    pub about: String,
    /// Seed of all random choices. Default 0.
    pub seed: u64,
    /// A checkpoint folder, a GGUF file, or a model's name on the hub, to start from; its model and tokenizer take
    /// the place of those below. Default absent: from nothing.
    pub start_from: Option<PathBuf>,
    /// Whether the recipe is refused without `start_from`, as one is whose tasks no model from nothing can begin with.
    /// Default false; adapters need a model whatever this says.
    #[serde(skip_serializing_if = "is_default")]
    pub needs_model: bool,
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
    /// Low-rank adapters on the frozen weights of `start_from`, by the names that stages call them. Default empty: one
    /// learner, which is all weights, or the adapter above.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub learners: BTreeMap<String, LearnerConfig>,
    /// A head that tells values beside the vocabulary's, where there are no named learners. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_head: Option<StateHeadConfig>,
    /// What makes the logits that the policy's tokens are drawn from, in training and in evaluation; log-probabilities and
    /// gradients are those of what was drawn. Default absent: those of the policy's model as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw_rule: Option<DrawRuleConfig>,
    /// How episodes are played.
    pub episode: EpisodeConfig,
    /// Who takes the seats of environments in which several act. Default as these say.
    #[serde(skip_serializing_if = "is_default")]
    pub seats: SeatsConfig,
    /// Where sandboxes come from, for environments that need them.
    pub sandbox: SandboxConfig,
    /// Who judges episodes beside the graders that their tasks name, or else their environments. Default empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<GraderConfig>,
    /// The model that judges, for graders that ask one. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeConfig>,
    /// What may be spent, and what it is in. Default no limits.
    #[serde(skip_serializing_if = "is_default")]
    pub spend: SpendConfig,
    /// What must not stand in anything that is written, beside the keys of endpoints. Default none.
    #[serde(skip_serializing_if = "is_default")]
    pub secrets: SecretsConfig,
    /// Imitation of demonstrations, where no stages are listed.
    pub warm_start: ImitateConfig,
    /// Reinforcement learning, where no stages are listed.
    pub reinforce: ReinforceConfig,
    /// When and how the policy is evaluated.
    pub evaluation: EvaluationConfig,
    /// What is kept on disk.
    pub keep: KeepConfig,
    /// What the run does, one after the other, in place of `warm_start` and `reinforce`. Default empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageConfig>,
}

impl Recipe {
    /// Every setting by its name, such as `reinforce.credit.kind`, as TOML writes its value.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        for (name, value) in self.to_table() {
            flatten(name, value, &mut settings);
        }
        settings
    }

    /// The recipe as TOML, every setting written out; of two descriptions of stages the one that is used.
    pub fn to_toml(&self) -> String {
        let can_be = "a recipe can be written as TOML";
        if self.stages.is_empty() {
            return toml::to_string(self).expect(can_be);
        }
        let mut resolved = self.clone();
        for stage in &mut resolved.stages {
            // What cannot be opened stays as it was written.
            if let Ok(opened) = open_stage(stage) {
                stage.options = opened.options();
            }
        }
        let mut table = read_back(&toml::to_string(&resolved).expect(can_be));
        table.remove("warm_start");
        table.remove("reinforce");
        toml::to_string(&table).expect(can_be)
    }

    /// Who judges the episodes of its run.
    pub(crate) fn judging(&self) -> JudgingConfig<'_> {
        JudgingConfig {
            graders: &self.graders,
            judge: self.judge.as_ref(),
            reference: self.start_from.as_deref(),
            has_policy: true,
        }
    }

    /// The recipe as a table, as [`Recipe::to_toml`] writes it.
    pub fn to_table(&self) -> toml::Table {
        read_back(&self.to_toml())
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Adds a setting, or those in a table of them.
fn flatten(name: String, value: toml::Value, settings: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (inner, value) in table {
                flatten(format!("{name}.{inner}"), value, settings);
            }
        }
        value => drop(settings.insert(name, value.to_string())),
    }
}

fn read_back(text: &str) -> toml::Table {
    toml::from_str(text).expect("what was written can be read")
}
