//! Reward shapers: what an episode's rewards are changed to before credit sees them.
//!
//! ```text
//!  Trajectory ──named parts per turn──▶ RewardShaper ──▶ RewardShaper ──▶ ... ──▶ credit
//! ```
//!
//! A recipe names them in the order in which they work; none is there unless it is named. What is
//! recorded and what evaluations report stays unshaped. A new one is one file and one row of
//! [`shaper_registry`].

mod completion;
mod ensemble;
mod gated;
mod length_discount;
mod overlong;
mod partial;
mod registry;
mod test_results;
mod verpo;
mod weighted;

use std::fmt;

use spar_core::{RewardPart, Trajectory};

pub use completion::{Completion, CompletionOptions};
pub use ensemble::{Ensemble, EnsembleOptions, EnsembleRule};
pub use gated::{Gate, Gated, GatedOptions};
pub use length_discount::{LengthDiscount, LengthDiscountOptions};
pub use overlong::{Overlong, OverlongOptions};
pub use partial::{Partial, PartialOptions};
pub use registry::{OpenShaper, ShaperConfig, ShaperRow, open_shaper, shaper_registry};
pub use verpo::{Verpo, VerpoOptions};
pub use weighted::{Weighted, WeightedOptions};

use crate::ShaperError;

/// Changes the rewards of finished episodes: named parts in, named parts out.
pub trait RewardShaper: Send + Sync + fmt::Debug {
    /// The name in recipes.
    fn name(&self) -> &'static str;

    /// Changes the parts of an episode in place.
    ///
    /// The episode is seen by itself; [`shape_group`](Self::shape_group) is what training calls. `rewards[t]` holds those of turn `t` of `trajectory`, as the shapers before this one left
    /// them; parts may be changed, added and taken away.
    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]);

    /// Changes the parts of all episodes of a group in place, which are tries at one task: for those that compare them.
    ///
    /// `rewards[i]` is of `group[i]`, as for [`shape`](Self::shape), by which each is changed by itself unless this is implemented.
    fn shape_group(&self, group: &[Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        for (trajectory, rewards) in group.iter().zip(rewards) {
            self.shape(trajectory, rewards);
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

    /// The rewards of an episode by itself in named parts, one list per turn.
    pub fn shape(&self, trajectory: &Trajectory) -> Vec<Vec<RewardPart>> {
        let mut rewards = recorded(trajectory);
        self.0.iter().for_each(|shaper| shaper.shape(trajectory, &mut rewards));
        rewards
    }

    /// The rewards of the episodes of a group in named parts, a list per turn of each.
    pub fn shape_group(&self, group: &[Trajectory]) -> Vec<Vec<Vec<RewardPart>>> {
        let mut rewards: Vec<_> = group.iter().map(recorded).collect();
        self.0.iter().for_each(|shaper| shaper.shape_group(group, &mut rewards));
        rewards
    }

    /// The reward of every turn of an episode by itself.
    pub fn rewards(&self, trajectory: &Trajectory) -> Vec<f64> {
        if self.0.is_empty() {
            return trajectory.turns.iter().map(|turn| turn.step.reward()).collect();
        }
        let sum = |parts: &Vec<RewardPart>| parts.iter().fold(0.0, |sum, part| sum + part.value);
        self.shape(trajectory).iter().map(sum).collect()
    }
}

/// The named parts of an episode as they were recorded.
fn recorded(trajectory: &Trajectory) -> Vec<Vec<RewardPart>> {
    trajectory.turns.iter().map(|turn| turn.step.rewards.clone()).collect()
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
