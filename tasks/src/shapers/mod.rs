//! Reward shapers: what an episode's rewards are changed to before credit sees them.
//!
//! ```text
//!  Trajectory ──named parts per turn──▶ RewardShaper ──▶ RewardShaper ──▶ ... ──▶ credit
//! ```
//!
//! A recipe names them in the order in which they work; none is there unless it is named. What is
//! recorded and what evaluations report stays unshaped. A new one is one file and one row of
//! [`shaper_registry`].

mod agreement;
mod calibration;
mod completion;
mod consensus;
mod ensemble;
mod flawed;
mod gated;
mod hypervolume;
mod length_discount;
mod likelihood_bonus;
mod normalized;
mod overlong;
mod partial;
mod process;
mod progress_weighted;
mod registry;
mod repetition;
mod shaped;
mod skill_credit;
mod test_results;
mod tool_cost;
mod verpo;
mod weighted;

use std::fmt;

use serde_json::Value;
use spar_core::{RewardPart, Trajectory};

pub use agreement::{Agreement, AgreementOptions};
pub use calibration::{Calibration, CalibrationOptions, stated_confidence};
pub use completion::{Completion, CompletionOptions};
pub use consensus::{Consensus, ConsensusOptions, ConsensusRule};
pub use ensemble::{Ensemble, EnsembleOptions, EnsembleRule};
pub use flawed::{Flawed, FlawedOptions};
pub use gated::{Gate, Gated, GatedOptions};
pub use hypervolume::{Hypervolume, HypervolumeOptions, hypervolume};
pub use length_discount::{LengthDiscount, LengthDiscountOptions};
pub use likelihood_bonus::{LikelihoodBonus, LikelihoodBonusOptions};
pub use normalized::{Normalized, NormalizedOptions};
pub use overlong::{Overlong, OverlongOptions};
pub use partial::{Partial, PartialOptions};
pub use process::{Process, ProcessOptions};
pub use progress_weighted::{ProgressWeighted, ProgressWeightedOptions};
pub use registry::{OpenShaper, ShaperConfig, ShaperRow, open_shaper, shaper_registry};
pub use repetition::{Repetition, RepetitionOptions};
pub use shaped::ShapedGroup;
pub use skill_credit::{SAVE_SKILL, SKILL_PART, SkillCredit, USE_SKILL};
pub use tool_cost::{ToolCost, ToolCostOptions};
pub use verpo::{Verpo, VerpoOptions};
pub use weighted::{Weighted, WeightedOptions};

use crate::ShaperError;

/// Changes the rewards of finished episodes: named parts in, named parts out.
pub trait RewardShaper: Send + Sync + fmt::Debug {
    /// The name in recipes.
    fn name(&self) -> &'static str;

    /// Changes the parts of an episode in place.
    ///
    /// The episode is seen by itself; [`shape_group`](Self::shape_group) is what training calls.
    /// `rewards[t]` holds those of turn `t` of `trajectory`, as the shapers before this one left
    /// them; parts may be changed, added and taken away.
    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]);

    /// Changes the parts of all episodes of a group that are compared with each other: `rewards[i]` are those of `trajectories[i]`. By default each
    /// by itself.
    fn shape_group(&self, trajectories: &[&Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        for (trajectory, rewards) in trajectories.iter().zip(rewards) {
            self.shape(trajectory, rewards);
        }
    }

    /// Sees all groups of an iteration behind its updates, with the parts as they came to this shaper, so that what it does may follow training. By default it
    /// learns nothing.
    fn adapt(&mut self, groups: &[ShapedGroup<'_>]) {
        let _ = groups;
    }

    /// Numbers of it for the metrics of an iteration, by their names. Default none.
    fn metrics(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// What has to be kept between iterations; null where it learns nothing, which is the default.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Goes on from a [state](Self::state).
    ///
    /// # Errors
    ///
    /// [`ShaperError::State`] when it is not one of this shaper.
    fn load(&mut self, state: &Value) -> Result<(), ShaperError> {
        match state {
            Value::Null => Ok(()),
            _ => Err(ShaperError::State { name: self.name() }),
        }
    }
}

/// The shapers of a recipe, in their order; by default there are none.
#[derive(Debug, Default)]
pub struct RewardShapers(Vec<Box<dyn RewardShaper>>);

impl RewardShapers {
    /// These shapers, in this order.
    pub fn new(shapers: Vec<Box<dyn RewardShaper>>) -> Self {
        Self(shapers)
    }

    /// The shapers that a recipe names, in its order.
    ///
    /// # Errors
    ///
    /// [`ShaperError`] of the first that is not known or whose options are wrong.
    pub fn open(configs: &[ShaperConfig]) -> Result<Self, ShaperError> {
        configs.iter().map(open_shaper).collect::<Result<_, _>>().map(Self)
    }

    /// The rewards of the only episode of a group in named parts, one list per turn.
    pub fn shape(&self, trajectory: &Trajectory) -> Vec<Vec<RewardPart>> {
        self.shape_group(&[trajectory]).pop().unwrap_or_default()
    }

    /// The rewards of the episodes of a group that are compared with each other, in named parts, one list per turn of each.
    pub fn shape_group(&self, trajectories: &[&Trajectory]) -> Vec<Vec<Vec<RewardPart>>> {
        let mut rewards = recorded(trajectories);
        self.0.iter().for_each(|shaper| shaper.shape_group(trajectories, &mut rewards));
        rewards
    }

    /// The reward of every turn of an episode that is the only one of its group.
    pub fn rewards(&self, trajectory: &Trajectory) -> Vec<f64> {
        if self.0.is_empty() {
            return trajectory.turns.iter().map(|turn| turn.step.reward()).collect();
        }
        let sum = |parts: &Vec<RewardPart>| parts.iter().fold(0.0, |sum, part| sum + part.value);
        self.shape(trajectory).iter().map(sum).collect()
    }

    /// Has all of them see the groups of an iteration, behind its updates.
    pub fn adapt(&mut self, groups: &[Vec<&Trajectory>]) {
        if self.0.iter().all(|shaper| shaper.state().is_null()) {
            return;
        }
        // All that came in with the weights of this iteration, before any of them learns.
        let mut rewards: Vec<_> = groups.iter().map(|group| recorded(group)).collect();
        let mut seen = Vec::with_capacity(self.0.len());
        for shaper in &self.0 {
            seen.push(rewards.clone());
            for (group, rewards) in groups.iter().zip(&mut rewards) {
                shaper.shape_group(group, rewards);
            }
        }
        for (shaper, seen) in self.0.iter_mut().zip(&seen) {
            let shaped = groups.iter().zip(seen);
            let shaped: Vec<ShapedGroup<'_>> = shaped
                .map(|(trajectories, rewards)| ShapedGroup { trajectories, rewards })
                .collect();
            shaper.adapt(&shaped);
        }
    }

    /// Their numbers for the metrics of an iteration.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        self.0.iter().flat_map(|shaper| shaper.metrics()).collect()
    }

    /// What has to be kept between iterations, one entry for each; none where none learns anything.
    pub fn state(&self) -> Vec<Value> {
        let states: Vec<Value> = self.0.iter().map(|shaper| shaper.state()).collect();
        if states.iter().all(Value::is_null) { Vec::new() } else { states }
    }

    /// Goes on from a [state](Self::state).
    ///
    /// # Errors
    ///
    /// [`ShaperError::State`] when it is not one of these shapers.
    pub fn load(&mut self, states: &[Value]) -> Result<(), ShaperError> {
        // One that learns nothing has written none, and so have runs of older versions.
        for (shaper, state) in self.0.iter_mut().zip(states) {
            shaper.load(state)?;
        }
        Ok(())
    }
}

/// The parts that episodes were recorded with.
fn recorded(trajectories: &[&Trajectory]) -> Vec<Vec<Vec<RewardPart>>> {
    let parts = |trajectory: &&Trajectory| {
        trajectory.turns.iter().map(|turn| turn.step.rewards.clone()).collect()
    };
    trajectories.iter().map(parts).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use spar_core::{
        EndReason, Lineage, Observation, ParsedAction, PromptTokens, SampledTokens, Seat, Seed,
        Source, Step, TRAJECTORY_VERSION, TokenCounts, Turn, TurnKind, Versions,
    };

    use super::*;

    /// An episode whose turns earn these named parts.
    pub(crate) fn episode(rewards: &[&[(&str, f64)]]) -> Trajectory {
        let part = |(name, value): &(&str, f64)| RewardPart { name: (*name).into(), value: *value };
        let turn = |parts: &&[(&str, f64)]| Turn {
            kind: TurnKind::Action,
            prompt: PromptTokens { kept: 0, appended: Vec::new() },
            injected: Vec::new(),
            counts: TokenCounts::default(),
            seat: Seat::FIRST,
            source: Source::Sampled,
            author: String::new(),
            text: String::new(),
            sampled: SampledTokens::default(),
            stop: None,
            parsed: ParsedAction::of(""),
            state_key: String::new(),
            step: Step {
                observation: Observation::default(),
                rewards: parts.iter().map(part).collect(),
                terminated: false,
                success: false,
                valid: true,
                wall_time: Duration::ZERO,
            },
            policy_time: Duration::ZERO,
            environment_time: Duration::ZERO,
        };
        Trajectory {
            version: TRAJECTORY_VERSION,
            episode: 0,
            task: String::new(),
            environment: String::new(),
            seed: Seed::from_u64(0),
            environment_seed: None,
            versions: Versions::default(),
            policy: String::new(),
            first_observation: Observation::default(),
            tools: Vec::new(),
            turns: rewards.iter().map(turn).collect(),
            grammars: Default::default(),
            end: EndReason::Terminated,
            success: true,
            lineage: Lineage::default(),
            seat: Seat::FIRST,
            verdict: None,
            refills: 0,
            spend: None,
            redacted: false,
            wall_time: Duration::ZERO,
        }
    }

    #[derive(Debug)]
    struct Add(f64);

    impl RewardShaper for Add {
        fn name(&self) -> &'static str {
            "add"
        }

        fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
            let part = RewardPart { name: "added".to_owned(), value: self.0 };
            rewards.iter_mut().for_each(|parts| parts.push(part.clone()));
        }
    }

    #[test]
    fn shapers_work_in_their_order_and_none_changes_nothing() {
        let episode = episode(&[&[], &[("success", 1.0), ("invalid_action", -0.5)]]);
        assert_eq!(RewardShapers::default().rewards(&episode), [0.0, 0.5]);
        let halve =
            || Box::new(LengthDiscount::new(&LengthDiscountOptions { factor: 0.5 }).unwrap());
        let add = || Box::new(Add(1.0));
        let first_add = RewardShapers::new(vec![add(), halve()]);
        assert_eq!(first_add.rewards(&episode), [0.25, 0.0]);
        let first_halve = RewardShapers::new(vec![halve(), add()]);
        assert_eq!(first_halve.rewards(&episode), [1.0, 0.75]);
        let names: Vec<String> =
            first_halve.shape(&episode)[1].iter().map(|part| part.name.clone()).collect();
        assert_eq!(names, ["success", "invalid_action", "added"]);
    }
}
