//! Who chooses the actions of an episode.

use std::sync::Arc;

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::{Policy, Seed};

/// Who chooses the actions of an episode, with policies that the episode borrows.
pub type Player<'a> = PlayerWith<&'a dyn Policy>;

/// Who chooses the actions of many episodes, which share the policies: each runs as a task of its own.
pub type SharedPlayer = PlayerWith<Arc<dyn Policy>>;

/// Who chooses the actions of an episode; `P` points to a policy.
#[derive(Clone, Copy)]
pub enum PlayerWith<P> {
    /// A policy.
    Policy(P),
    /// The environment's player who sees the whole state.
    Oracle {
        /// Whose tokens its turns are written in, where they shall have tokens.
        encoder: Option<P>,
    },
    /// The environment's player who knows only what the episode has shown.
    Expert {
        /// Whose tokens its turns are written in, where they shall have tokens.
        encoder: Option<P>,
    },
    /// A policy for the first turns, then one of the environment's players to the end, so that it shows
    /// how to go on from where the policy led.
    RollIn {
        /// Who begins.
        policy: P,
        /// Who takes over.
        guide: Guide,
        /// When.
        roll_in: RollIn,
    },
}

/// One of an environment's own players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guide {
    /// A player who sees the whole state.
    Oracle,
    /// A player who knows only what the episode has shown.
    #[default]
    Expert,
}

impl Guide {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Oracle, Self::Expert];

    /// What its turns are recorded under.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Expert => "expert",
        }
    }

    /// The player whose turns are written in the tokens of `encoder`.
    pub fn player<P>(self, encoder: Option<P>) -> PlayerWith<P> {
        match self {
            Self::Oracle => PlayerWith::Oracle { encoder },
            Self::Expert => PlayerWith::Expert { encoder },
        }
    }
}

/// For how long a policy plays before a demonstrator takes over.
///
/// What is imitated then begins in situations that the policy itself gets into: a demonstrator who never
/// errs does not show how to come back from an error. After DAgger (Ross, Gordon and Bagnell, arXiv
/// 1011.0686), with the switch at a random time of AggreVaTe (Ross and Bagnell, arXiv 1406.5979), where all
/// of the demonstrator's turns are imitated instead of valuing the first one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RollIn {
    /// How many of all episodes the policy begins, from 0 to 1; what lies outside counts as the nearer end.
    pub share: f64,
    /// The fewest turns that it plays in them; at least 1, and 0 counts as 1. Above what an episode takes
    /// that goes well, the demonstrator's time goes into those that do not.
    pub min_turns: u32,
    /// The most turns that it plays in them: the number is drawn from the fewest to this; less than the fewest
    /// counts as that.
    pub max_turns: u32,
}

impl RollIn {
    /// How many turns of an episode with this seed are the policy's.
    fn turns(self, seed: Seed) -> u32 {
        let mut rng = seed.derive("roll_in", 0).rng();
        let share = if self.share.is_nan() { 0.0 } else { self.share.clamp(0.0, 1.0) };
        let least = self.min_turns.max(1);
        if rng.random_bool(share) { rng.random_range(least..=self.max_turns.max(least)) } else { 0 }
    }
}

impl SharedPlayer {
    /// A policy that plays all turns.
    pub fn of(policy: impl Policy + 'static) -> Self {
        Self::Policy(Arc::new(policy))
    }

    /// The policy that plays, or in whose tokens its turns are written.
    pub fn shared_policy(&self) -> Option<&Arc<dyn Policy>> {
        match self {
            Self::Policy(policy) | Self::RollIn { policy, .. } => Some(policy),
            Self::Oracle { encoder } | Self::Expert { encoder } => encoder.as_ref(),
        }
    }

    /// The same for one episode in an environment of this name, which a policy may have [another
    /// one](Policy::for_environment) for.
    pub fn in_environment(&self, environment: &str) -> Player<'_> {
        let player = self.as_player();
        match player {
            Player::Policy(policy) => {
                Player::Policy(policy.for_environment(environment).unwrap_or(policy))
            }
            other => other,
        }
    }

    /// The same for one episode.
    pub fn as_player(&self) -> Player<'_> {
        match self {
            Self::Policy(policy) => Player::Policy(policy.as_ref()),
            Self::Oracle { encoder } => Player::Oracle { encoder: encoder.as_deref() },
            Self::Expert { encoder } => Player::Expert { encoder: encoder.as_deref() },
            Self::RollIn { policy, guide, roll_in } => {
                Player::RollIn { policy: policy.as_ref(), guide: *guide, roll_in: *roll_in }
            }
        }
    }
}

impl<'a> Player<'a> {
    /// A short name for records.
    pub fn name(&self) -> &str {
        match self {
            Self::Policy(policy) => policy.name(),
            Self::Oracle { .. } => Guide::Oracle.name(),
            Self::Expert { .. } => Guide::Expert.name(),
            Self::RollIn { guide, .. } => guide.name(),
        }
    }

    /// Who plays a turn of the episode with this seed.
    pub(crate) fn at(self, turn: u32, seed: Seed) -> Self {
        match self {
            Self::RollIn { policy, roll_in, .. } if turn < roll_in.turns(seed) => {
                Self::Policy(policy)
            }
            Self::RollIn { policy, guide, .. } => guide.player(Some(policy)),
            other => other,
        }
    }

    /// Whose tokens the episode is written in.
    pub(crate) fn encoder(&self) -> Option<&'a dyn Policy> {
        match *self {
            Self::Policy(policy) | Self::RollIn { policy, .. } => Some(policy),
            Self::Oracle { encoder } | Self::Expert { encoder } => encoder,
        }
    }

    /// The policy that samples some or all of its turns.
    pub(crate) fn policy(&self) -> Option<&'a dyn Policy> {
        match *self {
            Self::Policy(policy) | Self::RollIn { policy, .. } => Some(policy),
            Self::Oracle { .. } | Self::Expert { .. } => None,
        }
    }

    /// Whether its turns are demonstrations, which no policy sampled, or lead to them.
    pub(crate) fn is_guide(&self) -> bool {
        !matches!(self, Self::Policy(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_begins_its_share_of_the_episodes() {
        let turns = |roll_in: RollIn| {
            let mut counts = [0; 4];
            (0..400).for_each(|seed| counts[roll_in.turns(Seed::from_u64(seed)) as usize] += 1);
            counts
        };
        for share in [0.0, -1.0, f64::NAN] {
            assert_eq!(turns(RollIn { share, min_turns: 0, max_turns: 3 }), [400, 0, 0, 0]);
        }
        assert_eq!(turns(RollIn { share: 2.0, min_turns: 0, max_turns: 0 }), [0, 400, 0, 0]);
        let half = turns(RollIn { share: 0.5, min_turns: 1, max_turns: 3 });
        assert!((160..240).contains(&half[0]), "{half:?}");
        let all = turns(RollIn { share: 1.0, min_turns: 1, max_turns: 3 });
        assert!(all[0] == 0 && all[1..].iter().all(|count| *count > 100), "{all:?}");
    }
}
