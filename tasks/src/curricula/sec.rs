//! SEC: categories of tasks are drawn by how much is learned from them.

/// A bandit over categories (SEC, arXiv 2505.14970, and its code `JointBandit`).
///
/// `Q_c <- (1 - rate) Q_c + rate q_c`, `q_c` being the mean over the trajectories of category `c` of the mean `|A|` of their tokens, 0 where none was played; category
/// `c` is drawn with probability `softmax(Q / temperature)`.
#[derive(Debug, Clone, PartialEq)]
pub struct SecBandit {
    values: Vec<f64>,
    rate: f64,
    temperature: f64,
}

impl SecBandit {
    /// A bandit over so many categories, all of value 0; `rate` is 0 to 1, `temperature` above 0.
    pub fn new(categories: usize, rate: f64, temperature: f64) -> Self {
        Self::with_values(vec![0.0; categories], rate, temperature)
    }

    /// The same over categories of these values.
    pub fn with_values(values: Vec<f64>, rate: f64, temperature: f64) -> Self {
        Self { values, rate, temperature }
    }

    /// Takes in an iteration: categories of its trajectories, with the mean of the absolute advantages of their tokens. What is not finite, and
    /// categories that there are none of, are left out.
    pub fn update(&mut self, played: &[(usize, f64)]) {
        let mut sums = vec![(0.0, 0.0); self.values.len()];
        for (category, advantage) in played.iter().filter(|(_, advantage)| advantage.is_finite()) {
            if let Some((sum, count)) = sums.get_mut(*category) {
                *sum += advantage;
                *count += 1.0;
            }
        }
        for (value, (sum, count)) in self.values.iter_mut().zip(sums) {
            let mean = if count > 0.0 { sum / count } else { 0.0 };
            *value = (1.0 - self.rate) * *value + self.rate * mean;
        }
    }

    /// The value of each category.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The probability with which each category is drawn.
    pub fn probabilities(&self) -> Vec<f64> {
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exp = |value: &f64| ((value - most) / self.temperature).exp();
        let weights: Vec<f64> = self.values.iter().map(exp).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_vectors::{cases, floats, masked_rows, number};

    #[test]
    fn values_and_probabilities_equal_the_reference() {
        cases("sec_bandit", |case, near| {
            let arms: Vec<String> = serde_json::from_value(case.params["arms"].clone()).unwrap();
            let mut bandit = SecBandit::new(
                arms.len(),
                number(&case.params, "lr"),
                number(&case.params, "temperature"),
            );
            let steps = case.inputs["steps"].as_array().unwrap();
            let expected = case.outputs["steps"].as_array().unwrap();
            assert_eq!(steps.len(), expected.len());
            for (step, expected) in steps.iter().zip(expected) {
                let advantages = masked_rows(&step["advantages"], &step["response_mask"]);
                // As the reference has means of tokens.
                let mean = |row: &Vec<f64>| {
                    row.iter().map(|it| it.abs()).sum::<f64>() / (row.len() as f64 + 1e-8)
                };
                let arm = |name: &serde_json::Value| {
                    let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                    arms.iter().position(|arm| *arm == name).unwrap()
                };
                let played: Vec<(usize, f64)> = step["difficulty"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(arm)
                    .zip(advantages.iter().map(mean))
                    .collect();
                bandit.update(&played);
                let of = |name: &str| floats(&expected[name]);
                bandit.values().iter().zip(of("q_values")).for_each(|(it, want)| near(*it, want));
                bandit
                    .probabilities()
                    .iter()
                    .zip(of("probs"))
                    .for_each(|(it, want)| near(*it, want));
            }
        });
    }
}
