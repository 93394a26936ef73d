//! The places of those who act in an environment.

use std::borrow::Cow;
use std::fmt::{Display, Formatter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Observation, RewardPart};

/// The place of one who acts in an environment, counted from 0; always 0 where there is one.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Seat(pub u32);

impl Seat {
    /// The only one where there is one.
    pub const FIRST: Self = Self(0);

    /// Its place in lists of seats.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The seat at this place in a list of them.
    ///
    /// # Panics
    ///
    /// Where there are more than `u32` counts, of which there never are so many.
    pub fn at(index: usize) -> Self {
        Self(u32::try_from(index).expect("seats are few"))
    }

    /// Whether it is the first, and so the only one where there is one.
    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl Display for Seat {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A seat as its environment describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeatSpec {
    /// What recipes and reports call it, such as `x` or `user`; another one for every seat of an environment.
    pub name: Cow<'static, str>,
    /// Who sits there, in one line.
    #[serde(default)]
    pub about: Cow<'static, str>,
    /// Who takes it unless somebody says otherwise: `self`, who is the player that is trained or evaluated, or one of
    /// those that need no model, such as `expert`. Default `self`.
    #[serde(default = "SeatSpec::own_player")]
    pub player: Cow<'static, str>,
}

impl SeatSpec {
    /// The player that is trained or evaluated.
    pub const SELF: &'static str = "self";

    /// The seats of an environment in which one acts.
    pub const ONE: &'static [Self] = &[Self::new("player", "Who acts.", Self::SELF)];

    /// A seat of this name, what it is, and who takes it by default.
    pub const fn new(name: &'static str, about: &'static str, player: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            player: Cow::Borrowed(player),
        }
    }

    fn own_player() -> Cow<'static, str> {
        Cow::Borrowed(Self::SELF)
    }
}

/// What has come about for a seat while others moved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Told {
    /// What the seat sees now. Of the seat's own step only the results of calls stand beside it.
    pub observation: Observation,
    /// What the seat earned by the moves of others since it moved, or since it was told last; empty means zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewards: Vec<RewardPart>,
    /// Whether the seat has reached what it is there for, such as having won.
    #[serde(default)]
    pub success: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_numbers_and_may_leave_out_what_is_usual() {
        assert_eq!(serde_json::to_string(&Seat(2)).unwrap(), "2");
        let spec: SeatSpec = serde_json::from_str(r#"{ "name": "x" }"#).unwrap();
        assert_eq!((&*spec.about, &*spec.player), ("", SeatSpec::SELF));
        assert!(serde_json::from_str::<SeatSpec>(r#"{ "name": "x", "chair": 1 }"#).is_err());
        assert!(Seat::at(0).is_first() && !Seat::at(1).is_first());
    }
}
