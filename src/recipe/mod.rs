//! What a training run does.

mod data;
mod error;
mod evaluation;
mod keep;
mod read;
mod reinforce;
mod roll_in;
mod shipped;
mod validate;
mod warm_start;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_agent::EpisodeConfig;
use spar_core::Signal;
use spar_policy::cuda::DeviceChoice;
use spar_policy::{LoraConfig, ModelConfig, TokenizerConfig};

pub use self::data::DataConfig;
pub use self::error::RecipeError;
pub use self::evaluation::EvaluationConfig;
pub use self::keep::KeepConfig;
pub use self::reinforce::{ReferenceHold, ReinforceConfig};
pub use self::roll_in::RollInConfig;
pub use self::shipped::recipe_names;
pub use self::warm_start::WarmStartConfig;
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

impl Recipe {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
