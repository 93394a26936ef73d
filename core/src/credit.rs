//! What turns and tokens of a batch of trajectories were worth.

/// Numbers for every turn of a batch, or for every sampled token.
///
/// The first index is the trajectory's place in the batch.
#[derive(Debug, Clone, PartialEq)]
pub enum PerTurnOrToken {
    /// `[i][t]` belongs to turn `t` of trajectory `i`, and to each of its tokens.
    Turns(Vec<Vec<f64>>),
    /// `[i][k]` belongs to token `k` of trajectory `i`, counted over the sampled tokens of all its turns,
    /// one turn after the other.
    Tokens(Vec<Vec<f64>>),
}

impl PerTurnOrToken {
    /// The number of sampled token `token` of a trajectory, which stands in its turn `turn`; tokens are counted
    /// over all turns of the trajectory.
    ///
    /// # Panics
    ///
    /// When the shape is not that of the batch, which [`PerTurnOrToken::check`] finds out.
    pub fn at(&self, trajectory: usize, turn: usize, token: usize) -> f64 {
        match self {
            Self::Turns(turns) => turns[trajectory][turn],
            Self::Tokens(tokens) => tokens[trajectory][token],
        }
    }

    /// Checks that there is a number for everything: `num_tokens[i][t]` tokens were sampled in turn `t` of
    /// trajectory `i`.
    ///
    /// # Errors
    ///
    /// [`CreditShapeError`] names the first list of another length, as one of `name`.
    pub fn check(
        &self,
        name: &'static str,
        num_tokens: &[Vec<usize>],
    ) -> Result<(), CreditShapeError> {
        let (lists, what) = match self {
            Self::Turns(turns) => (turns, "turns"),
            Self::Tokens(tokens) => (tokens, "sampled tokens"),
        };
        let (found, expected) = (lists.len(), num_tokens.len());
        if found != expected {
            let (trajectory, what) = (None, "trajectories");
            return Err(CreditShapeError { name, trajectory, found, expected, what });
        }
        for (index, (list, turns)) in lists.iter().zip(num_tokens).enumerate() {
            let expected = match self {
                Self::Turns(_) => turns.len(),
                Self::Tokens(_) => turns.iter().sum(),
            };
            let found = list.len();
            if found != expected {
                let trajectory = Some(index);
                return Err(CreditShapeError { name, trajectory, found, expected, what });
            }
        }
        Ok(())
    }

    /// The same, one number per sampled token: those of turns are repeated. Shapes are as in
    /// [`PerTurnOrToken::check`].
    pub fn into_tokens(self, num_tokens: &[Vec<usize>]) -> Vec<Vec<f64>> {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Turns(turns) => turns
                .iter()
                .zip(num_tokens)
                .map(|(values, counts)| {
                    let repeated = values.iter().zip(counts);
                    repeated
                        .flat_map(|(value, &count)| std::iter::repeat_n(*value, count))
                        .collect()
                })
                .collect(),
        }
    }
}

/// What an estimator says of a batch of trajectories.
#[derive(Debug, Clone, PartialEq)]
pub struct Credit {
    /// How much better than expected everything was.
    pub advantages: PerTurnOrToken,
    /// What everything weighs in the loss, 0 or more; absent: 1.
    pub weights: Option<PerTurnOrToken>,
    /// What a value head is to learn to expect; absent where the estimator needs none.
    pub returns: Option<PerTurnOrToken>,
}

impl Credit {
    /// Advantages of turns, and nothing else.
    pub fn of_turns(advantages: Vec<Vec<f64>>) -> Self {
        let advantages = PerTurnOrToken::Turns(advantages);
        Self { advantages, weights: None, returns: None }
    }

    /// Checks that everything there is has the shape of the batch, as [`PerTurnOrToken::check`] says.
    ///
    /// # Errors
    ///
    /// [`CreditShapeError`] names the first list that has not.
    pub fn check(&self, num_tokens: &[Vec<usize>]) -> Result<(), CreditShapeError> {
        self.advantages.check("advantages", num_tokens)?;
        if let Some(weights) = &self.weights {
            weights.check("weights", num_tokens)?;
        }
        if let Some(returns) = &self.returns {
            returns.check("returns", num_tokens)?;
        }
        Ok(())
    }
}

/// Credit that is not that of the batch.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "use the credit of a batch: {found} {name} for {expected} {what}{}",
    trajectory.map(|index| format!(" of trajectory {index}")).unwrap_or_default()
)]
pub struct CreditShapeError {
    /// Advantages, weights or returns.
    pub name: &'static str,
    /// The trajectory's place in the batch; absent where there are too many or too few of them.
    pub trajectory: Option<usize>,
    /// How many there are.
    pub found: usize,
    /// How many there must be.
    pub expected: usize,
    /// Of what.
    pub what: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn num_tokens() -> Vec<Vec<usize>> {
        vec![vec![2, 1], vec![], vec![0, 3]]
    }

    #[test]
    fn tokens_find_their_number_by_turn_or_by_themselves() {
        let turns = PerTurnOrToken::Turns(vec![vec![1.0, 2.0], vec![], vec![3.0, 4.0]]);
        assert_eq!(turns.check("advantages", &num_tokens()), Ok(()));
        assert_eq!([turns.at(0, 0, 1), turns.at(0, 1, 2), turns.at(2, 1, 0)], [1.0, 2.0, 4.0]);
        let tokens = PerTurnOrToken::Tokens(turns.clone().into_tokens(&num_tokens()));
        assert_eq!(tokens.check("advantages", &num_tokens()), Ok(()));
        assert_eq!(
            tokens,
            PerTurnOrToken::Tokens(vec![vec![1.0, 1.0, 2.0], vec![], vec![4.0, 4.0, 4.0]])
        );
        assert_eq!(tokens.at(0, 1, 2), 2.0);
    }

    #[test]
    fn another_shape_is_named() {
        let error = |credit: Credit| credit.check(&num_tokens()).unwrap_err().to_string();
        let good = Credit::of_turns(vec![vec![0.0; 2], vec![], vec![0.0; 2]]);
        assert_eq!(good.check(&num_tokens()), Ok(()));
        assert_eq!(
            error(Credit::of_turns(vec![])),
            "use the credit of a batch: 0 advantages for 3 trajectories"
        );
        let weights = Some(PerTurnOrToken::Turns(vec![vec![0.0; 2], vec![], vec![0.0]]));
        assert_eq!(
            error(Credit { weights, ..good.clone() }),
            "use the credit of a batch: 1 weights for 2 turns of trajectory 2"
        );
        let returns = Some(PerTurnOrToken::Tokens(vec![vec![0.0; 2], vec![], vec![0.0; 3]]));
        assert_eq!(
            error(Credit { returns, ..good }),
            "use the credit of a batch: 2 returns for 3 sampled tokens of trajectory 0"
        );
    }
}
