//! What requests to models took.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// What requests to models took: how many there were, their tokens as whoever answered told them, and what they cost.
///
/// What nobody told is counted as unknown, never guessed: tokens are those of the requests whose tokens are known, the
/// cost that of those whose price and tokens are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spend {
    /// Requests that were sent, those that were sent again among them.
    pub requests: u64,
    /// Of these, the ones that never arrived or were refused (status 4xx) without `usage`, which cost nothing. Of errors
    /// of the server nobody knows what they took: these are [unknown](Self::unknown).
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Of these, the ones whose tokens nobody told: broken off, or answered without.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Of these, the ones whose cost is not known: without a price, or with unknown tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Turns of policies in this process: no requests, their tokens are among those below, and they have no price.
    #[serde(skip_serializing_if = "is_zero")]
    pub local_turns: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Of these, the ones that the endpoint had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Of these, the ones that were thought and not said, as far as they were told apart.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What those cost whose cost is known, in the currency of their prices.
    pub cost: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Spend {
    /// The cost, where that of every request is known; absent where turns in this process are all there is.
    pub fn known_cost(&self) -> Option<f64> {
        let has_price = self.requests > 0 || self.local_turns == 0;
        (self.unpriced == 0 && has_price).then_some(self.cost)
    }

    /// Whether there was neither a request nor a turn.
    pub fn is_empty(&self) -> bool {
        self.requests == 0 && self.local_turns == 0
    }

    /// Tokens of prompts and answers.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Spend {
    fn add_assign(&mut self, other: Self) {
        let add = |one: &mut u64, other: u64| *one = one.saturating_add(other);
        add(&mut self.requests, other.requests);
        add(&mut self.failed, other.failed);
        add(&mut self.unknown, other.unknown);
        add(&mut self.unpriced, other.unpriced);
        add(&mut self.local_turns, other.local_turns);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        self.cost += other.cost;
    }
}

/// What came to `other` since.
impl Sub for Spend {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            failed: self.failed.saturating_sub(other.failed),
            unknown: self.unknown.saturating_sub(other.unknown),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
            local_turns: self.local_turns.saturating_sub(other.local_turns),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
            cost: (self.cost - other.cost).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_known_where_every_part_of_it_is() {
        let priced = Spend { requests: 2, input_tokens: 7, cost: 0.5, ..Spend::default() };
        let mut all = priced;
        assert_eq!(all.known_cost(), Some(0.5));
        all += Spend { requests: 1, unknown: 1, unpriced: 1, ..Spend::default() };
        assert_eq!((all.requests, all.known_cost(), all.cost), (3, None, 0.5));
        assert_eq!(
            all - priced,
            Spend { requests: 1, unknown: 1, unpriced: 1, ..Spend::default() }
        );
        let written = serde_json::to_string(&priced).unwrap();
        assert!(!written.contains("unknown"), "{written}");
        assert_eq!(serde_json::from_str::<Spend>(&written).unwrap(), priced);
    }
}
