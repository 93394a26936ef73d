//! How tokens are drawn.

use std::sync::Arc;

use super::BadWords;
use crate::GenerateError;

/// How tokens are drawn; see the [module](super) for order and formulas.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingOptions {
    /// Divides the logits; 0 takes the best. Range 0 to 10, default 1.
    pub temperature: f32,
    /// How many of the best tokens are left. At least 1, default absent: all.
    pub top_k: Option<usize>,
    /// Probability that the tokens which are left have together at the least. Above 0 up to 1,
    /// default 1: all are left.
    pub top_p: f32,
    /// Probability, as a share of the best token's, below which a token is left out. 0 to 1,
    /// default 0.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens that were there. Above 0 up to
    /// 10, default 1.
    pub repetition_penalty: f32,
    /// Taken off the logits of tokens that the answer has. -2 to 2, default 0.
    pub presence_penalty: f32,
    /// Taken off per time that the answer has the token. -2 to 2, default 0.
    pub frequency_penalty: f32,
    /// What is added to the logits of tokens; each token once. Default empty.
    pub logit_bias: Arc<[(u32, f32)]>,
    /// Token sequences that do not come about. Default none.
    pub bad_words: BadWords,
    /// Tokens before which nothing ends the answer. Default 0.
    pub min_tokens: usize,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Arc::from([]),
            bad_words: BadWords::default(),
            min_tokens: 0,
        }
    }
}

impl SamplingOptions {
    /// Whether tokens are left out by rank or probability.
    pub fn truncates(&self) -> bool {
        self.temperature > 0.0 && (self.top_k.is_some() || self.top_p < 1.0 || self.min_p > 0.0)
    }

    /// Whether logits depend on the tokens before.
    pub fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }

    /// Whether logits are shifted, so that a training row cannot tell the distribution.
    pub fn shifts_logits(&self) -> bool {
        self.has_penalties() || !self.logit_bias.is_empty()
    }

    /// Checks every value against its range and the vocabulary.
    ///
    /// # Errors
    ///
    /// [`GenerateError::Option`] names the first that is outside.
    pub fn validate(&self, vocabulary: usize) -> Result<(), GenerateError> {
        let refuse = |option, found: String, allowed: &str| {
            Err(GenerateError::Option { option, found, allowed: allowed.to_owned() })
        };
        if !(0.0..=10.0).contains(&self.temperature) {
            return refuse("temperature", self.temperature.to_string(), "0 to 10");
        }
        if self.top_k == Some(0) {
            return refuse("top_k", "0".to_owned(), "1 and more");
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return refuse("top_p", self.top_p.to_string(), "above 0 up to 1");
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return refuse("min_p", self.min_p.to_string(), "0 to 1");
        }
        if !(self.repetition_penalty > 0.0 && self.repetition_penalty <= 10.0) {
            let found = self.repetition_penalty.to_string();
            return refuse("repetition_penalty", found, "above 0 up to 10");
        }
        for (option, value) in [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ] {
            if !(-2.0..=2.0).contains(&value) {
                return refuse(option, value.to_string(), "-2 to 2");
            }
        }
        for (token, bias) in self.logit_bias.iter() {
            if *token as usize >= vocabulary {
                let allowed = format!("tokens below {vocabulary}");
                return refuse("logit_bias", format!("token {token}"), &allowed);
            }
            if !(-100.0..=100.0).contains(bias) {
                return refuse("logit_bias", bias.to_string(), "-100 to 100");
            }
        }
        self.bad_words.validate(vocabulary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_range_are_named() {
        SamplingOptions::default().validate(10).unwrap();
        type Change = fn(&mut SamplingOptions);
        let with = |change: Change| {
            let mut options = SamplingOptions::default();
            change(&mut options);
            options.validate(10).map_err(|error| error.to_string())
        };
        let cases: [(Change, &str); 10] = [
            (|o| o.temperature = f32::NAN, "temperature"),
            (|o| o.temperature = -0.1, "temperature"),
            (|o| o.top_k = Some(0), "top_k"),
            (|o| o.top_p = 0.0, "top_p"),
            (|o| o.min_p = 1.1, "min_p"),
            (|o| o.repetition_penalty = 0.0, "repetition_penalty"),
            (|o| o.presence_penalty = 3.0, "presence_penalty"),
            (|o| o.frequency_penalty = f32::INFINITY, "frequency_penalty"),
            (|o| o.logit_bias = [(10, 1.0)].into(), "logit_bias"),
            (|o| o.bad_words = BadWords::new(vec![vec![]]), "bad_words"),
        ];
        for (change, option) in cases {
            let error = with(change).unwrap_err();
            assert!(error.contains(&format!("`{option}`")), "{error}");
        }
    }
}
