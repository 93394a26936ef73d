//! Draws by weight, and whole numbers from shares.

use rand::{Rng, RngExt};

/// Draws `count` places without one twice, each next one in proportion to what is left of `exp(log_weights)`: the `count` greatest of
/// `log w - log(-log u)` (Efraimidis and Spirakis 2006, as Gumbel numbers). Places whose weight is 0 or no number come last, in their order;
/// fewer than `count` where there are fewer. Weights may be as small as they like, since their logarithms are compared.
pub fn draw_without_replacement(
    log_weights: &[f64],
    count: usize,
    rng: &mut impl Rng,
) -> Vec<usize> {
    let mut keys: Vec<(f64, usize)> = Vec::with_capacity(log_weights.len());
    for (place, log_weight) in log_weights.iter().enumerate() {
        let uniform: f64 = rng.random::<f64>().max(f64::MIN_POSITIVE);
        let key = log_weight - (-uniform.ln()).max(f64::MIN_POSITIVE).ln();
        keys.push((if key.is_nan() { f64::NEG_INFINITY } else { key }, place));
    }
    keys.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    keys.into_iter().take(count).map(|(_, place)| place).collect()
}

/// Whole numbers that add up to `total`, in proportion to `shares`, each at least `least` (where `total` is enough): what is left behind rounding
/// down goes to the greatest remainders, the first of equal ones first. Shares that are negative or no number count as 0; where all are, all are alike.
pub fn apportion(shares: &[f64], total: usize, least: usize) -> Vec<usize> {
    let count = shares.len();
    if count == 0 {
        return Vec::new();
    }
    let least = least.min(total / count);
    let left = total - least * count;
    let clean = |share: &f64| if share.is_finite() { share.max(0.0) } else { 0.0 };
    let mut clean: Vec<f64> = shares.iter().map(clean).collect();
    if clean.iter().sum::<f64>() <= 0.0 {
        clean.fill(1.0);
    }
    let sum: f64 = clean.iter().sum();
    let exact: Vec<f64> = clean.iter().map(|share| share / sum * left as f64).collect();
    let mut whole: Vec<usize> = exact.iter().map(|it| it.floor() as usize).collect();
    let mut order: Vec<usize> = (0..count).collect();
    let remainder = |place: usize| exact[place] - exact[place].floor();
    order.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)).then(a.cmp(b)));
    let missing = left.saturating_sub(whole.iter().sum());
    order.iter().cycle().take(missing).for_each(|place| whole[*place] += 1);
    whole.into_iter().map(|more| least + more).collect()
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;

    #[test]
    fn first_draws_are_as_frequent_as_their_weights() {
        let mut rng = Seed::from_u64(2).rng();
        let log_weights = [0.5_f64.ln(), 0.3_f64.ln(), 0.2_f64.ln(), f64::NEG_INFINITY];
        let mut firsts = [0_u32; 4];
        for _ in 0..20_000 {
            let drawn = draw_without_replacement(&log_weights, 4, &mut rng);
            firsts[drawn[0]] += 1;
            assert_eq!(drawn[3], 3, "what weighs nothing comes last");
        }
        for (found, expected) in firsts.iter().zip([0.5, 0.3, 0.2, 0.0]) {
            assert!((f64::from(*found) / 20_000.0 - expected).abs() < 0.015, "{firsts:?}");
        }
        // Far beyond what a probability could say.
        let far = [-5_000.0, -100.0, -9_000.0, f64::NAN];
        assert_eq!(draw_without_replacement(&far, 3, &mut rng), [1, 0, 2]);
        assert!(draw_without_replacement(&[], 2, &mut rng).is_empty());
    }

    #[test]
    fn whole_numbers_add_up_to_the_total() {
        assert_eq!(apportion(&[1.0, 1.0, 1.0], 10, 0), [4, 3, 3]);
        assert_eq!(apportion(&[3.0, 1.0], 8, 0), [6, 2]);
        assert_eq!(apportion(&[1.0, 0.0], 8, 2), [6, 2]);
        assert_eq!(apportion(&[f64::NAN, -1.0], 3, 0), [2, 1]);
        assert_eq!(apportion(&[1.0, 1.0, 1.0], 2, 5), [1, 1, 0]);
        assert!(apportion(&[], 3, 1).is_empty());
    }
}
