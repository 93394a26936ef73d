//! Limits of what is spent.

use serde::{Deserialize, Serialize};

/// What a run, or an evaluation, may spend on models, its judge included; whichever limit is reached first stops it.
///
/// Of what was told it is never more than a limit. What may come beyond it is what an endpoint takes for a request beyond
/// one token for each byte that it was sent and the tokens it was asked for, such as thoughts that it does not count
/// among these; and of a policy in this process, whose tokens are counted as episodes end, the episodes under way. Both
/// are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpendConfig {
    /// What prices are in. Default `USD`.
    pub currency: String,
    /// What an hour of the machine costs, for models in this process; above 0. It counts from the beginning to the end,
    /// pauses between resumptions left out. Default absent: it costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour_price: Option<f64>,
    /// The cost, in that currency; above 0. Every endpoint needs prices then. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Tokens of prompts; at least 1. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Tokens of answers; at least 1. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Tokens of both together; at least 1. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
    /// Requests, those that are sent again among them; at least 1. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// Seconds of wall-clock time, pauses between resumptions left out; at least 1. Default absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_secs: Option<u64>,
}

impl Default for SpendConfig {
    fn default() -> Self {
        Self {
            currency: "USD".to_owned(),
            hour_price: None,
            max_cost: None,
            max_input_tokens: None,
            max_output_tokens: None,
            max_total_tokens: None,
            max_requests: None,
            max_wall_secs: None,
        }
    }
}

impl SpendConfig {
    /// All that is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.currency.trim().is_empty() {
            problems.push("currency is empty".to_owned());
        }
        for (name, value) in [("hour_price", self.hour_price), ("max_cost", self.max_cost)] {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                problems.push(format!("{name} is {value}, must be above 0"));
            }
        }
        for (name, value) in [
            ("max_input_tokens", self.max_input_tokens),
            ("max_output_tokens", self.max_output_tokens),
            ("max_total_tokens", self.max_total_tokens),
            ("max_requests", self.max_requests),
            ("max_wall_secs", self.max_wall_secs),
        ] {
            if value == Some(0) {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        problems
    }

    /// The same with the settings of another one where that has any.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let is_default = other.currency == Self::default().currency;
        Self {
            currency: if is_default { self.currency } else { other.currency },
            hour_price: other.hour_price.or(self.hour_price),
            max_cost: other.max_cost.or(self.max_cost),
            max_input_tokens: other.max_input_tokens.or(self.max_input_tokens),
            max_output_tokens: other.max_output_tokens.or(self.max_output_tokens),
            max_total_tokens: other.max_total_tokens.or(self.max_total_tokens),
            max_requests: other.max_requests.or(self.max_requests),
            max_wall_secs: other.max_wall_secs.or(self.max_wall_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_told_at_once_and_what_was_typed_goes_first() {
        let wrong = "currency = ' '\nmax_cost = -1.0\nhour_price = nan\nmax_requests = 0";
        assert_eq!(toml::from_str::<SpendConfig>(wrong).unwrap().problems().len(), 4);
        assert!(toml::from_str::<SpendConfig>("max_tokens = 3").is_err());
        let own = SpendConfig { max_cost: Some(1.0), max_requests: Some(9), ..Default::default() };
        let typed = SpendConfig { max_cost: Some(2.0), ..Default::default() };
        let both = own.or(typed);
        assert_eq!((both.max_cost, both.max_requests), (Some(2.0), Some(9)));
        assert!(both.problems().is_empty());
    }
}
