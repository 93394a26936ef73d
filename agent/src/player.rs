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
    /// One of the environment's players who errs: in some turns a policy plays in its place, such as one that draws its
    /// actions.
    Noisy {
        /// Who plays the other turns.
        policy: P,
        /// Who errs.
        guide: Guide,
        /// How often.
        noise: Noise,
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

/// How often somebody else plays in a player's place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The probability of that in every turn of an episode is drawn evenly from here, from 0 to 1; what lies outside counts as
    /// the nearer end.
    pub low: f64,
    /// To here; less than `low` counts as that.
    pub high: f64,
}

impl Noise {
    /// The probability is the same in all episodes.
    pub fn of(probability: f64) -> Self {
        Self { low: probability, high: probability }
    }

    /// Whether somebody else plays this turn of the episode with this seed.
    fn takes(self, turn: u32, seed: Seed) -> bool {
        let bound = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        let low = bound(self.low);
        let high = bound(self.high).max(low);
        let seed = seed.derive("noise", 0);
        let probability = low + (high - low) * seed.rng().random::<f64>();
        seed.derive("turn", turn).rng().random_bool(probability.clamp(0.0, 1.0))
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
            Self::Policy(policy) | Self::RollIn { policy, .. } | Self::Noisy { policy, .. } => {
                Some(policy)
            }
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

    /// The same for a seat of this name, for which a policy may have another one by `ENVIRONMENT/SEAT`.
    pub fn in_seat(&self, environment: &str, seat: &str) -> Player<'_> {
        if let Player::Policy(policy) = self.as_player()
            && let Some(own) = policy.for_environment(&format!("{environment}/{seat}"))
        {
            return Player::Policy(own);
        }
        self.in_environment(environment)
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
            Self::Noisy { policy, guide, noise } => {
                Player::Noisy { policy: policy.as_ref(), guide: *guide, noise: *noise }
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
            Self::RollIn { guide, .. } | Self::Noisy { guide, .. } => guide.name(),
        }
    }

    /// Who plays a turn of the episode with this seed.
    pub(crate) fn at(self, turn: u32, seed: Seed) -> Self {
        match self {
            Self::RollIn { policy, roll_in, .. } if turn < roll_in.turns(seed) => {
                Self::Policy(policy)
            }
            Self::RollIn { policy, guide, .. } => guide.player(Some(policy)),
            Self::Noisy { policy, noise, .. } if noise.takes(turn, seed) => Self::Policy(policy),
            Self::Noisy { guide, .. } => guide.player(None),
            other => other,
        }
    }

    /// Whose tokens the episode is written in.
    pub(crate) fn encoder(&self) -> Option<&'a dyn Policy> {
        match *self {
            Self::Policy(policy) | Self::RollIn { policy, .. } | Self::Noisy { policy, .. } => {
                Some(policy)
            }
            Self::Oracle { encoder } | Self::Expert { encoder } => encoder,
        }
    }

    /// The policy that samples some or all of its turns.
    pub(crate) fn policy(&self) -> Option<&'a dyn Policy> {
        match *self {
            Self::Policy(policy) | Self::RollIn { policy, .. } | Self::Noisy { policy, .. } => {
                Some(policy)
            }
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

    #[test]
    fn a_noisy_player_errs_as_often_as_it_is_told() {
        let share = |noise: Noise| {
            let taken =
                |seed: u64| (0..10).filter(move |turn| noise.takes(*turn, Seed::from_u64(seed)));
            (0..400).map(|seed| taken(seed).count()).collect::<Vec<_>>()
        };
        assert!(share(Noise::of(0.0)).iter().all(|count| *count == 0));
        assert!(share(Noise::of(2.0)).iter().all(|count| *count == 10));
        assert!(share(Noise::of(f64::NAN)).iter().all(|count| *count == 0));
        let third: usize = share(Noise::of(0.3)).iter().sum();
        assert!((1100..1300).contains(&third), "{third}");
        // From hardly ever to always.
        let spread = share(Noise { low: 0.0, high: 1.0 });
        assert!(spread.iter().filter(|count| **count < 2).count() > 40, "{spread:?}");
        assert!(spread.iter().filter(|count| **count > 8).count() > 40, "{spread:?}");
    }
}
