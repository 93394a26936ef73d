//! GDRO: classes of tasks weigh more the harder they are, and rollouts go where they pay.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How [`ClassWeights`] come about; the defaults are those of the code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassWeightsConfig {
    /// How strongly scores count in the exponent; 0 or more.
    pub learning_rate: f64,
    /// The share of the weight that is spread evenly, 0 to 1.
    pub exploration: f64,
    /// What a class weighs at the most; above 0.
    pub max_weight: f64,
    /// What becomes of a class's mean losses, one for each update in which it came.
    pub score: ScoreOf,
    /// Whether mean losses are divided by the share that their class has in an update.
    pub by_share: bool,
    /// Scores less their mean over all classes, over their deviation, at least `floor`, at most `cap` away from 0; absent: as they are.
    pub standardized: Option<(f64, f64)>,
}

/// What becomes of the mean losses of a class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum ScoreOf {
    /// A running mean, of which the newest one has this share, 0 to 1.
    Average(f64),
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
}

impl Default for ClassWeightsConfig {
    fn default() -> Self {
        Self {
            learning_rate: 0.1,
            exploration: 0.15,
            max_weight: 10.0,
            score: ScoreOf::Average(0.1),
            by_share: false,
            standardized: None,
        }
    }
}

/// Exponentiated weights over classes of tasks (Prompt-GDRO, arXiv 2601.19280, and its code `ClassDroExp3p`).
///
/// A class's score is the running mean of its mean losses, one for each update in which it came; its weight `(1 - exploration) softmax(learning_rate score) + exploration / K` over the `K` classes that are
/// there, at most `max_weight`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassWeights {
    config: ClassWeightsConfig,
    /// The score of each class that came, and how often it did.
    scores: BTreeMap<String, (f64, f64)>,
}

impl ClassWeights {
    /// Weights that are all alike.
    pub fn new(config: ClassWeightsConfig) -> Self {
        Self { config, scores: BTreeMap::new() }
    }

    /// Takes in losses with their classes; what is no number is left out.
    pub fn update<'a>(&mut self, losses: impl IntoIterator<Item = (&'a str, f64)>) {
        let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for (class, loss) in losses.into_iter().filter(|(_, loss)| loss.is_finite()) {
            let (sum, count) = sums.entry(class).or_default();
            *sum += loss;
            *count += 1.0;
        }
        let all: f64 = sums.values().map(|(_, count)| count).sum();
        for (class, (sum, count)) in sums {
            let share = if self.config.by_share { count / all } else { 1.0 };
            let mean = sum / count / share;
            let (score, times) = self.scores.entry(class.to_owned()).or_insert((0.0, 0.0));
            *times += 1.0;
            *score = match self.config.score {
                ScoreOf::Average(_) if *times == 1.0 => mean,
                ScoreOf::Average(newest) => (1.0 - newest) * *score + newest * mean,
                ScoreOf::Mean => *score + (mean - *score) / *times,
                ScoreOf::Sum => *score + mean,
            };
        }
    }

    /// The weight of each of these classes, of which none comes twice.
    pub fn weights(&self, classes: &[&str]) -> Vec<f64> {
        let config = &self.config;
        let count = self.scores.len().max(1) as f64;
        // Sums are standardised by the means behind them, as in the code.
        let of = |(score, times): &(f64, f64)| match config.score {
            ScoreOf::Sum => score / times.max(1.0),
            ScoreOf::Average(_) | ScoreOf::Mean => *score,
        };
        let mean = self.scores.values().map(of).sum::<f64>() / count;
        let variance = self.scores.values().map(|it| (of(it) - mean).powi(2)).sum::<f64>() / count;
        let score = |class: &&str| {
            let score = self.scores.get(*class).map_or(0.0, |(score, _)| *score);
            match config.standardized {
                Some((floor, cap)) => {
                    ((score - mean) / variance.sqrt().max(floor)).clamp(-cap, cap)
                }
                None => score,
            }
        };
        let scores: Vec<f64> = classes.iter().map(score).collect();
        let shares = super::ucb::softmax(&scores, 1.0 / config.learning_rate.max(1e-300));
        let even = config.exploration / classes.len() as f64;
        shares
            .into_iter()
            .map(|share| ((1.0 - config.exploration) * share + even).min(config.max_weight))
            .collect()
    }
}

/// What [`RolloutArms::choose`] has chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArmChoice {
    /// Rollouts for each task of a class, in the order in which classes were given; those without a task have none.
    pub rollouts: Vec<Option<usize>>,
    /// Rollouts in all.
    pub total: usize,
}

/// How many rollouts each class of tasks gets: one arm of a bandit for each number (Rollout-GDRO, arXiv 2601.19280, and its code).
///
/// Numbers that were tried score `-(J + mu (n - budget))`, `J` being less the mean loss; the choice is the one of greatest probability, `(1 - exploration) softmax(learning_rate score) + exploration / arms` for each class, among
/// those whose rollouts in all are nearest to a budget; and the price `mu` rises where more were played than that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RolloutArms {
    arms: Vec<usize>,
    learning_rate: f64,
    exploration: f64,
    scores: BTreeMap<String, Vec<f64>>,
}

impl RolloutArms {
    /// Arms with these numbers of rollouts, none of them twice, in ascending order whatever their order here.
    pub fn new(mut arms: Vec<usize>, learning_rate: f64, exploration: f64) -> Self {
        arms.sort_unstable();
        arms.dedup();
        Self { arms, learning_rate, exploration, scores: BTreeMap::new() }
    }

    /// The score of each arm of a class.
    pub fn scores(&self, class: &str) -> Vec<f64> {
        self.scores.get(class).cloned().unwrap_or_else(|| vec![0.0; self.arms.len()])
    }

    /// The probability of each arm of a class.
    pub fn probabilities(&self, class: &str) -> Vec<f64> {
        let shares = super::ucb::softmax(&self.scores(class), 1.0 / self.learning_rate.max(1e-300));
        let even = self.exploration / self.arms.len() as f64;
        shares.into_iter().map(|share| (1.0 - self.exploration) * share + even).collect()
    }

    /// Chooses an arm for each class, which has so many tasks, so that rollouts in all are as near to `budget` as they can be: of equally near totals
    /// the more probable one, and of equal ones the one that is found first.
    pub fn choose(&self, classes: &[(&str, usize)], budget: usize) -> ArmChoice {
        // By the rollouts of all classes before: the least cost, and the arm of each. In the order in which totals are found first.
        let mut found: Vec<(usize, f64, Vec<Option<usize>>)> = vec![(0, 0.0, Vec::new())];
        for (class, tasks) in classes {
            if *tasks == 0 {
                found.iter_mut().for_each(|(_, _, arms)| arms.push(None));
                continue;
            }
            let costs: Vec<f64> =
                self.probabilities(class).iter().map(|it| -it.max(1e-12).ln()).collect();
            let mut places: BTreeMap<usize, usize> = BTreeMap::new();
            let mut next: Vec<(usize, f64, Vec<Option<usize>>)> = Vec::new();
            for (total, cost, arms) in &found {
                for (arm, more) in costs.iter().enumerate() {
                    let (total, cost) = (total + self.arms[arm] * tasks, cost + more);
                    let extended = || arms.iter().copied().chain([Some(arm)]).collect::<Vec<_>>();
                    match places.get(&total) {
                        Some(place) if cost < next[*place].1 => {
                            next[*place] = (total, cost, extended())
                        }
                        Some(_) => {}
                        None => {
                            places.insert(total, next.len());
                            next.push((total, cost, extended()));
                        }
                    }
                }
            }
            found = next;
        }
        let far = |total: usize| total.abs_diff(budget);
        let best = found.into_iter().reduce(|best, other| {
            let is_better = (far(other.0), other.1) < (far(best.0), best.1);
            if is_better { other } else { best }
        });
        let Some((total, _, arms)) = best else { return ArmChoice::default() };
        ArmChoice { rollouts: arms.into_iter().map(|arm| Some(self.arms[arm?])).collect(), total }
    }

    /// Takes in the mean loss of a class whose tasks had so many rollouts, at the price `mu` of rollouts beyond `mean`. A number that no arm has, and a loss that is
    /// no number, change nothing.
    pub fn update(&mut self, class: &str, rollouts: usize, loss: f64, mean: f64, mu: f64) {
        let Some(arm) = self.arms.iter().position(|arm| *arm == rollouts) else { return };
        if loss.is_finite() {
            let arms = self.arms.len();
            let scores = self.scores.entry(class.to_owned()).or_insert_with(|| vec![0.0; arms]);
            scores[arm] -= -loss + mu * (rollouts as f64 - mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::test_vectors::{floats, number, only_vectors};

    fn names(value: &Value) -> Vec<String> {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn weights_equal_the_reference() {
        only_vectors("gdro_prompt_weights", |case, near| {
            let flag = |name: &str| case.params[name].as_bool().unwrap();
            let param = |name: &str| number(&case.params, name);
            let mut weights = ClassWeights::new(ClassWeightsConfig {
                learning_rate: param("eta_q"),
                exploration: param("gamma"),
                max_weight: param("max_class_weight"),
                score: match (flag("debias_scores_ema"), flag("debias_scores")) {
                    (true, _) => ScoreOf::Average(param("ema_beta")),
                    (false, true) => ScoreOf::Mean,
                    (false, false) => ScoreOf::Sum,
                },
                by_share: flag("loss_norm_by_class"),
                standardized: flag("use_zscore").then(|| (param("z_std_floor"), param("z_cap"))),
            });
            let steps = case.inputs["steps"].as_array().unwrap();
            let expected = case.outputs["weights_after_step"].as_array().unwrap();
            assert_eq!(steps.len(), expected.len());
            for (step, expected) in steps.iter().zip(expected) {
                let (classes, losses) = (names(&step["classes"]), floats(&step["losses"]));
                weights.update(classes.iter().map(String::as_str).zip(losses));
                let expected = expected.as_object().unwrap();
                let present: Vec<&str> = expected.keys().map(String::as_str).collect();
                for (found, name) in weights.weights(&present).iter().zip(&present) {
                    near(*found, expected[*name].as_f64().unwrap());
                }
            }
        });
    }

    #[test]
    fn arms_equal_the_reference() {
        only_vectors("gdro_rollout_arms", |case, near| {
            let arms = floats(&case.params["arms"]).iter().map(|it| *it as usize).collect();
            let mut arms = RolloutArms::new(
                arms,
                number(&case.params, "eta_q"),
                number(&case.params, "gamma"),
            );
            let steps = case.inputs["steps"].as_array().unwrap();
            for (step, expected) in steps.iter().zip(case.outputs["steps"].as_array().unwrap()) {
                // JSON's objects are read in another order than they were written in.
                let mut counts: Vec<(&str, usize)> = step["class_counts"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(name, count)| (name.as_str(), count.as_u64().unwrap() as usize))
                    .collect();
                counts.sort_unstable();
                for (name, odds) in expected["arm_probs_before"].as_object().unwrap() {
                    let found = arms.probabilities(name);
                    found.iter().zip(floats(odds)).for_each(|(it, want)| near(*it, want));
                }
                let budget = number(step, "total_budget") as usize;
                let ArmChoice { rollouts, total } = arms.choose(&counts, budget);
                near(total as f64, number(expected, "achieved_budget"));
                let (ids, losses) = (names(&step["expanded_class_ids"]), floats(&step["losses"]));
                for ((name, tasks), chosen) in counts.iter().zip(rollouts) {
                    assert_eq!(chosen.is_some(), *tasks > 0);
                    let Some(chosen) = chosen else { continue };
                    near(chosen as f64, number(&expected["chosen_arm"], name));
                    let own: Vec<f64> = ids
                        .iter()
                        .zip(&losses)
                        .filter(|(id, _)| id == name)
                        .map(|(_, it)| *it)
                        .collect();
                    if own.is_empty() {
                        continue;
                    }
                    let loss = own.iter().sum::<f64>() / own.len() as f64;
                    arms.update(name, chosen, loss, number(step, "bar_n"), number(step, "mu"));
                }
                for (name, scores) in expected["scores_after"].as_object().unwrap() {
                    arms.scores(name)
                        .iter()
                        .zip(floats(scores))
                        .for_each(|(it, want)| near(*it, want));
                }
            }
        });
    }

    #[test]
    fn harder_classes_weigh_more_by_their_exponential() {
        let mut weights = ClassWeights::new(ClassWeightsConfig {
            learning_rate: 2.0,
            exploration: 0.0,
            ..ClassWeightsConfig::default()
        });
        weights.update([("hard", 1.0), ("hard", 0.0), ("easy", 0.0), ("easy", f64::NAN)]);
        let found = weights.weights(&["easy", "hard"]);
        assert!((found[1] / found[0] - 1.0_f64.exp()).abs() < 1e-12, "{found:?}");
        // The running mean moves a tenth of the way.
        weights.update([("hard", 1.5)]);
        let found = weights.weights(&["easy", "hard"]);
        assert!((found[1] / found[0] - 1.2_f64.exp()).abs() < 1e-12, "{found:?}");
        assert!(weights.weights(&[]).is_empty());
    }

    #[test]
    fn rollouts_in_all_keep_to_the_budget() {
        let mut arms = RolloutArms::new(vec![8, 2, 4], 1.0, 0.1);
        let classes = [("a", 2), ("b", 0), ("c", 2)];
        arms.update("c", 8, 0.0, 4.0, 1.0);
        arms.update("a", 8, 3.0, 4.0, 0.0);
        arms.update("a", 5, 9.0, 4.0, 0.0);
        let choice = arms.choose(&classes, 20);
        assert_eq!(choice, ArmChoice { rollouts: vec![Some(8), None, Some(2)], total: 20 });
        assert_eq!(arms.choose(&[], 4), ArmChoice { rollouts: Vec::new(), total: 0 });
    }
}
