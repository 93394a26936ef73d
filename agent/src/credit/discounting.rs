//! Rewards that are still to come.

/// Makes rewards what is to come from each on: `G_t = r_t + discount * G_{t+1}`.
pub(super) fn returns_to_go(rewards: &mut [f64], discount: f64) {
    for index in (0..rewards.len().saturating_sub(1)).rev() {
        rewards[index] += discount * rewards[index + 1];
    }
}

/// What is wrong with an option `discount`.
pub(super) fn discount_problem(discount: f64) -> Option<String> {
    let good = (0.0..=1.0).contains(&discount);
    (!good).then(|| format!("discount is {discount}, must be 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reward_counts_what_is_behind_it() {
        let mut rewards = [1.0, 0.0, 4.0];
        returns_to_go(&mut rewards, 0.5);
        assert_eq!(rewards, [2.0, 2.0, 4.0]);
        returns_to_go(&mut [], 0.5);
    }

    #[test]
    fn discounts_are_shares() {
        assert_eq!([0.0, 1.0].map(discount_problem), [None, None]);
        assert_eq!(discount_problem(1.5).unwrap(), "discount is 1.5, must be 0 to 1");
        assert!(discount_problem(f64::NAN).is_some());
    }
}
