//! The optimal token baseline: what is subtracted makes the gradient's variance least.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, PerTurnOrToken, Signal, Signals};

use super::discounting::returns_to_go;
use super::error::refuse;
use super::grpo::epsilon_problem;
use super::token_rewards::{is_told, token_rewards};
use super::{AdvantageEstimator, BatchView, CreditError};

/// Options of [`OptimalTokenBaseline`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptimalTokenBaselineConfig {
    /// Whether tokens of the only longest trajectory of a group that no other one reaches have no baseline; otherwise they are
    /// compared with themselves, and get about 0. Default true.
    pub handle_zero_tail: bool,
    /// Added to the sum of weights; above 0. Default 1e-8.
    pub epsilon: f64,
}

impl Default for OptimalTokenBaselineConfig {
    fn default() -> Self {
        Self { handle_zero_tail: true, epsilon: 1e-8 }
    }
}

impl NamedOptions for OptimalTokenBaselineConfig {
    fn problems(&self) -> Vec<String> {
        epsilon_problem(self.epsilon).into_iter().collect()
    }
}

/// Advantages by token over the baseline of least variance (the optimal token baseline, in the multi-turn form of verl's `compute_multi_turn_optimal_token_baseline_advantage`).
///
/// ```text
/// w_t = 1 - 2 pi_t + sum_v pi_v^2,    W_t = w_1 + ... + w_t
/// B_t = sum_i G_it W_it / (sum_i W_it + epsilon) over the group,    A_t = G_t - B_t
/// ```
///
/// `G_t` is what the episode earns from sampled token `t` on, `pi_t` the token's probability under the weights before the update, and
/// `w_t` the squared length of the gradient by the logits. Time runs over sampled tokens. A trajectory alone in its group has no baseline.
#[derive(Debug, Clone, Default)]
pub struct OptimalTokenBaseline {
    config: OptimalTokenBaselineConfig,
}

/// A sampled token of a trajectory.
#[derive(Debug, Clone, Copy)]
struct Token {
    /// The place in time at which it is compared with tokens of other trajectories.
    time: usize,
    /// What is earned from it on.
    reward_to_go: f64,
    /// Its own `w`.
    own_weight: f64,
}

impl OptimalTokenBaseline {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: OptimalTokenBaselineConfig) -> Result<Self, CreditError> {
        refuse("optimal_token_baseline", config.problems())?;
        Ok(Self { config })
    }

    /// Advantages of the tokens of a group's trajectories.
    fn advantages(&self, group: &[Vec<Token>]) -> Vec<Vec<f64>> {
        let told = group.iter().filter(|tokens| !tokens.is_empty()).count();
        let own = |tokens: &Vec<Token>| tokens.iter().map(|token| token.reward_to_go).collect();
        if told < 2 {
            return group.iter().map(own).collect();
        }
        let end = group.iter().flatten().map(|token| token.time + 1).max().unwrap_or_default();
        let mut sums = vec![(0.0, 0.0); end];
        for tokens in group {
            let mut weight = 0.0;
            for token in tokens {
                weight += token.own_weight;
                sums[token.time].0 += token.reward_to_go * weight;
                sums[token.time].1 += weight;
            }
        }
        let tail = self.config.handle_zero_tail.then(|| tail(group)).flatten();
        let advantage = |index: usize, token: &Token| {
            let is_tail =
                tail.is_some_and(|(longest, from)| index == longest && token.time >= from);
            let (sum, weights) = sums[token.time];
            let baseline = if is_tail { 0.0 } else { sum / (weights + self.config.epsilon) };
            token.reward_to_go - baseline
        };
        let of = |(index, tokens): (usize, &Vec<Token>)| {
            tokens.iter().map(|token| advantage(index, token)).collect()
        };
        group.iter().enumerate().map(of).collect()
    }
}

/// The only longest trajectory, and the time from which no other one is as long; absent where two are the longest.
fn tail(group: &[Vec<Token>]) -> Option<(usize, usize)> {
    let mut lens: Vec<(usize, usize)> =
        group.iter().enumerate().map(|(index, tokens)| (tokens.len(), index)).collect();
    lens.sort_unstable();
    let [.., (second, _), (longest, index)] = lens[..] else { return None };
    (longest > second).then_some((index, second))
}

/// Sums from every place to the end.
fn rewards_to_go(rewards: &[f64]) -> Vec<f64> {
    let mut sums = rewards.to_vec();
    returns_to_go(&mut sums, 1.0);
    sums
}

impl AdvantageEstimator for OptimalTokenBaseline {
    fn name(&self) -> &'static str {
        "optimal_token_baseline"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::Old, Signal::SumSquares]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let old = batch.stream(signals, Signal::Old)?;
        let squares = batch.stream(signals, Signal::SumSquares)?;
        let mut place = 0;
        let mut advantages = Vec::new();
        for group in batch.groups() {
            let mut tokens = Vec::new();
            for trajectory in group.trajectories() {
                // Of what is not known nothing is learned: it has a part in no baseline.
                if !is_told(trajectory.steps) {
                    place += 1;
                    tokens.push(Vec::new());
                    continue;
                }
                let rewards = rewards_to_go(&token_rewards(trajectory.steps));
                let measured = old[place].iter().zip(&squares[place]);
                place += 1;
                let token =
                    |(time, (reward_to_go, (old, squares))): (usize, (f64, (&f64, &f64)))| Token {
                        time,
                        reward_to_go,
                        own_weight: 1.0 - 2.0 * f64::exp(*old) + squares,
                    };
                tokens.push(rewards.into_iter().zip(measured).enumerate().map(token).collect());
            }
            let found = self.advantages(&tokens).into_iter().zip(group.trajectories());
            advantages.extend(found.map(|(found, trajectory)| match is_told(trajectory.steps) {
                true => found,
                false => vec![0.0; trajectory.num_tokens()],
            }));
        }
        let advantages = PerTurnOrToken::Tokens(advantages);
        Ok(Credit { advantages, weights: None, returns: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{
        Case, Rows, batch_of, by_group, cases, check_tokens, masked_rows, number, rows,
    };
    use super::*;

    fn estimator(case: &Case) -> OptimalTokenBaseline {
        OptimalTokenBaseline::new(OptimalTokenBaselineConfig {
            handle_zero_tail: case.params["handle_zero_tail"].as_bool().unwrap(),
            epsilon: number(&case.params, "epsilon"),
        })
        .unwrap()
    }

    /// Tokens of every row, with their weights scaled by the squared importance weights of the case where it has any; their time
    /// is their column, or their number.
    fn tokens(case: &Case, by_column: bool) -> Vec<Vec<Token>> {
        let mask = rows(&case.inputs["response_mask"]);
        let (old, squares) =
            (rows(&case.inputs["old_log_probs"]), rows(&case.inputs["sum_pi_squared"]));
        let weights = case.inputs.get("rollout_is_weights").map(rows);
        let rewards =
            masked_rows(&case.inputs["token_level_rewards"], &case.inputs["response_mask"]);
        let of_row = |row: usize| {
            let columns = (0..mask[row].len()).filter(|column| mask[row][*column] != 0.0);
            let rewards = rewards_to_go(&rewards[row]);
            let token = |(number, (column, reward_to_go)): (usize, (usize, f64))| {
                let weight = weights.as_ref().map_or(1.0, |weights| weights[row][column]);
                Token {
                    time: if by_column { column } else { number },
                    reward_to_go,
                    own_weight: (1.0 - 2.0 * old[row][column].exp() + squares[row][column])
                        * weight
                        * weight,
                }
            };
            columns.zip(rewards).enumerate().map(token).collect()
        };
        (0..mask.len()).map(of_row).collect()
    }

    #[test]
    fn advantages_equal_both_references() {
        for (name, by_column) in
            [("adv_optimal_token_baseline", true), ("adv_tir_optimal_token_baseline", false)]
        {
            cases(name, |case, near| {
                let tokens = tokens(case, by_column);
                let groups = by_group(&case.inputs["index"]);
                let advantages: Vec<Vec<f64>> = groups
                    .iter()
                    .flat_map(|rows| {
                        let group: Vec<_> = rows.iter().map(|row| tokens[*row].clone()).collect();
                        estimator(case).advantages(&group)
                    })
                    .collect();
                let (batch, of_row) = batch_of(case, Rows::Tokens);
                let found = PerTurnOrToken::Tokens(advantages);
                check_tokens(case, near, "advantages", (&batch, &of_row), found);
            });
        }
    }

    #[test]
    fn a_batch_with_its_signals_equals_the_reference() {
        cases("adv_tir_optimal_token_baseline", |case, near| {
            if case.inputs.get("rollout_is_weights").is_some() {
                return;
            }
            let (batch, of_row) = batch_of(case, Rows::Tokens);
            let mut signals = Signals::default();
            for (signal, name) in
                [(Signal::Old, "old_log_probs"), (Signal::SumSquares, "sum_pi_squared")]
            {
                let all = masked_rows(&case.inputs[name], &case.inputs["response_mask"]);
                signals.insert(signal, of_row.iter().map(|row| all[*row].clone()).collect());
            }
            let credit = estimator(case).estimate(&batch, &signals).unwrap();
            check_tokens(case, near, "advantages", (&batch, &of_row), credit.advantages);
        });
    }
}
