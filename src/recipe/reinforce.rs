//! Reinforcement learning.

use serde::{Deserialize, Serialize};
use spar_agent::credit::CreditConfig;
use spar_agent::filters::FilterConfig;
use spar_agent::strategies::StrategyConfig;
use spar_tasks::ShaperConfig;
use spar_tasks::samplers::SamplerConfig;
use spar_trainer::{ObjectiveConfig, TrainerConfig};

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
