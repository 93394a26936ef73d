//! What is measured on sampled tokens before credit is estimated.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A measure that a stage can fill in for every sampled token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Log-probability under the reference model.
    Reference,
    /// Log-probability under the weights before the first update of the iteration.
    Old,
    /// Log-probability under a teacher.
    Teacher,
    /// What a value head expects of the rest of the episode, before the token is drawn.
    Values,
    /// Entropy in nats of the distribution that the token was drawn from.
    Entropies,
    /// Sum of the squared probabilities of that distribution.
    SumSquares,
    /// What the token's turn contributes to the outcome, as a predictor of progress has it; the same for all tokens of a
    /// turn, as are the two below.
    Progress,
    /// What a critic expects of the rest of the episode behind the turn's action.
    ActionValues,
    /// What a critic expects of the rest of the episode before the turn's action.
    StateValues,
}

impl Signal {
    /// All signals, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Reference,
        Self::Old,
        Self::Teacher,
        Self::Values,
        Self::Entropies,
        Self::SumSquares,
        Self::Progress,
        Self::ActionValues,
        Self::StateValues,
    ];

    /// Its name in messages and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Old => "old",
            Self::Teacher => "teacher",
            Self::Values => "values",
            Self::Entropies => "entropies",
            Self::SumSquares => "sum_squares",
            Self::Progress => "progress",
            Self::ActionValues => "action_values",
            Self::StateValues => "state_values",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The signals of a batch of trajectories that were filled; by default none is.
///
/// A stream has one list per trajectory, in the order of the batch, with one number per sampled token of
/// all its turns, one turn after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Signals {
    streams: BTreeMap<Signal, Vec<Vec<f64>>>,
}

/// A signal cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalError {
    /// Nothing has filled it.
    #[error("read signal `{signal}`: nothing has filled it")]
    Absent {
        /// The signal.
        signal: Signal,
    },
    /// It was filled for other trajectories.
    #[error("read signal `{signal}`: {found} lists for {expected} trajectories")]
    Trajectories {
        /// The signal.
        signal: Signal,
        /// Lists in the stream.
        found: usize,
        /// Trajectories in the batch.
        expected: usize,
    },
    /// It was filled for other tokens.
    #[error(
        "read signal `{signal}`: {found} numbers for {expected} sampled tokens of trajectory \
         {trajectory}"
    )]
    Tokens {
        /// The signal.
        signal: Signal,
        /// The trajectory's place in the batch.
        trajectory: usize,
        /// Numbers in its list.
        found: usize,
        /// Tokens that it sampled.
        expected: usize,
    },
}

impl Signals {
    /// Fills a signal, `stream[i][k]` for sampled token `k` of trajectory `i`; what stood there is replaced.
    pub fn insert(&mut self, signal: Signal, stream: Vec<Vec<f64>>) {
        self.streams.insert(signal, stream);
    }

    /// The signals that were filled.
    pub fn filled(&self) -> impl Iterator<Item = Signal> {
        self.streams.keys().copied()
    }

    /// The stream of a signal for trajectories that sampled so many tokens each.
    ///
    /// # Errors
    ///
    /// [`SignalError`] when nothing has filled it, or it was filled for something else.
    pub fn get(&self, signal: Signal, num_tokens: &[usize]) -> Result<&[Vec<f64>], SignalError> {
        let stream = self.streams.get(&signal).ok_or(SignalError::Absent { signal })?;
        let (found, expected) = (stream.len(), num_tokens.len());
        if found != expected {
            return Err(SignalError::Trajectories { signal, found, expected });
        }
        for (trajectory, (list, &expected)) in stream.iter().zip(num_tokens).enumerate() {
            let found = list.len();
            if found != expected {
                return Err(SignalError::Tokens { signal, trajectory, found, expected });
            }
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_is_read_and_what_was_not_is_named() {
        let mut signals = Signals::default();
        for signal in Signal::ALL {
            let error = signals.get(signal, &[2, 0]).unwrap_err();
            assert_eq!(error, SignalError::Absent { signal });
            let text = format!("read signal `{}`: nothing has filled it", signal.name());
            assert_eq!(error.to_string(), text);
            signals.insert(signal, vec![vec![0.5, 1.0], vec![]]);
            assert_eq!(signals.get(signal, &[2, 0]).unwrap()[0], [0.5, 1.0]);
        }
        assert_eq!(signals.filled().collect::<Vec<_>>(), Signal::ALL);
    }

    #[test]
    fn a_stream_of_another_shape_is_refused() {
        let mut signals = Signals::default();
        signals.insert(Signal::Values, vec![vec![0.5, 1.0], vec![]]);
        let error = |num_tokens| signals.get(Signal::Values, num_tokens).unwrap_err().to_string();
        assert_eq!(error(&[2]), "read signal `values`: 2 lists for 1 trajectories");
        assert_eq!(
            error(&[2, 1]),
            "read signal `values`: 0 numbers for 1 sampled tokens of trajectory 1"
        );
    }

    #[test]
    fn names_are_those_of_settings() {
        for signal in Signal::ALL {
            assert_eq!(serde_json::to_value(signal).unwrap(), signal.name());
            assert_eq!(signal.to_string(), signal.name());
        }
    }
}
