//! Leaving out the improbable.

use super::SamplingOptions;
use spar_ops::elementwise::exp_scores;

/// Leaves out tokens by top-k, top-p and min-p, in this order.
///
/// `logits` are those of `ids`, ascending, or of the whole vocabulary if that is empty, before the
/// division by the temperature, which must be positive. Afterwards `ids` lists the tokens that are
/// left, ascending, with their unchanged logits; at least the best one is.
pub fn truncate(options: &SamplingOptions, ids: &mut Vec<u32>, logits: &mut Vec<f32>) {
    truncate_part(options, ids, logits, None);
}

/// As [`truncate`], where other tokens have been left out before that would not stay: `log_sum` is then
/// the logarithm of the sum of the exponentials of all logits, divided by the temperature.
pub(crate) fn truncate_part(
    options: &SamplingOptions,
    ids: &mut Vec<u32>,
    logits: &mut Vec<f32>,
    log_sum: Option<f32>,
) {
    let inverse = 1.0 / options.temperature;
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    let is_before = |a: &u32, b: &u32| {
        logits[*b as usize].total_cmp(&logits[*a as usize]).then_with(|| a.cmp(b))
    };

    // 1. Top-k: all from the k-th best logit on, equal ones included.
    if let Some(k) = options.top_k.filter(|k| *k < order.len()) {
        let (_, kth, _) = order.select_nth_unstable_by(k - 1, is_before);
        let least = logits[*kth as usize];
        order.retain(|place| logits[*place as usize] >= least);
    }

    if options.top_p < 1.0 || options.min_p > 0.0 {
        // Probabilities among those that are left, in the order of the tokens, so that the sum does
        // not depend on how they were selected.
        order.sort_unstable();
        let mut probabilities: Vec<f32> =
            order.iter().map(|place| logits[*place as usize] * inverse).collect();
        let (maximum, of_part) = exp_scores(&mut probabilities);
        let sum = log_sum.map_or(of_part, |log_sum| (log_sum - maximum).exp());
        probabilities.iter_mut().for_each(|probability| *probability /= sum);
        let mut ranked: Vec<(u32, f32)> = order.into_iter().zip(probabilities).collect();
        let by_rank = |a: &(u32, f32), b: &(u32, f32)| {
            b.1.total_cmp(&a.1).then_with(|| is_before(&a.0, &b.0))
        };

        // 2. Top-p: the fewest of the best that have it together. Only as many are sorted as
        // it takes.
        if options.top_p < 1.0 {
            let (mut sorted, mut kept, mut mass) = (0, 0, 0.0_f64);
            'all: while sorted < ranked.len() {
                let end = (sorted.max(16) * 8).min(ranked.len());
                if end < ranked.len() {
                    ranked[sorted..].select_nth_unstable_by(end - sorted, by_rank);
                }
                ranked[sorted..end].sort_unstable_by(by_rank);
                for (_, probability) in &ranked[sorted..end] {
                    if mass >= f64::from(options.top_p) && kept > 0 {
                        break 'all;
                    }
                    mass += f64::from(*probability);
                    kept += 1;
                }
                sorted = end;
            }
            ranked.truncate(kept);
        }

        // 3. Min-p: relative to the best, so that renormalising changes nothing.
        if options.min_p > 0.0 {
            let best = ranked.iter().map(|(_, probability)| *probability).fold(0.0, f32::max);
            let least = best * options.min_p;
            ranked.retain(|(_, probability)| *probability >= least);
        }
        order = ranked.into_iter().map(|(place, _)| place).collect();
    }

    order.sort_unstable();
    if order.len() == logits.len() {
        return;
    }
    *ids = match &ids[..] {
        [] => order.clone(),
        ids => order.iter().map(|place| ids[*place as usize]).collect(),
    };
    for (to, from) in order.iter().enumerate() {
        logits[to] = logits[*from as usize];
    }
    logits.truncate(order.len());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn options(top_k: Option<usize>, top_p: f32, min_p: f32) -> SamplingOptions {
        SamplingOptions { top_k, top_p, min_p, ..SamplingOptions::default() }
    }

    fn kept(options: &SamplingOptions, logits: &[f32]) -> Vec<u32> {
        let (mut ids, mut left) = (Vec::new(), logits.to_vec());
        truncate(options, &mut ids, &mut left);
        if ids.is_empty() { (0..logits.len() as u32).collect() } else { ids }
    }

    #[test]
    fn equal_logits_stay_together_in_top_k() {
        assert_eq!(kept(&options(Some(2), 1.0, 0.0), &[1.0, 3.0, 2.0, 2.0]), [1, 2, 3]);
        assert_eq!(kept(&options(Some(1), 1.0, 0.0), &[1.0, 3.0, 2.0]), [1]);
        assert_eq!(kept(&options(Some(9), 1.0, 0.0), &[1.0, 3.0]), [0, 1]);
    }

    #[test]
    fn top_p_keeps_the_fewest_that_have_it() {
        let logits: Vec<f32> = [0.5_f32, 0.25, 0.125, 0.125].iter().map(|p| p.ln()).collect();
        assert_eq!(kept(&options(None, 0.4, 0.0), &logits), [0]);
        assert_eq!(kept(&options(None, 0.6, 0.0), &logits), [0, 1]);
        assert_eq!(kept(&options(None, 0.8, 0.0), &logits), [0, 1, 2]);
        assert_eq!(kept(&options(None, 1e-9, 0.0), &logits), [0]);
    }

    #[test]
    fn min_p_is_relative_to_the_best() {
        let logits: Vec<f32> = [0.5_f32, 0.26, 0.24].iter().map(|p| p.ln()).collect();
        assert_eq!(kept(&options(None, 1.0, 0.5), &logits), [0, 1]);
        assert_eq!(kept(&options(None, 1.0, 1.0), &logits), [0]);
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_full_sorting_leaves(
            logits in prop::collection::vec(-8.0_f32..8.0, 1..400),
            top_k in prop::option::of(1_usize..40),
            top_p in 0.01_f32..1.0,
            temperature in 0.2_f32..3.0,
        ) {
            let options = SamplingOptions { top_k, top_p, temperature, ..Default::default() };
            let mut ranked: Vec<u32> = (0..logits.len() as u32).collect();
            ranked.sort_by(|a, b| {
                logits[*b as usize].total_cmp(&logits[*a as usize]).then_with(|| a.cmp(b))
            });
            if let Some(k) = top_k {
                let least = logits[ranked[k.min(ranked.len()) - 1] as usize];
                ranked.retain(|place| logits[*place as usize] >= least);
            }
            let weight = |place: u32| f64::from(logits[place as usize] / temperature).exp();
            let total: f64 = ranked.iter().map(|place| weight(*place)).sum();
            let mut before = 0.0;
            let found = kept(&options, &logits);
            for place in ranked {
                let p = weight(place) / total;
                // Rounding may decide where the sum meets the bound.
                if (before - f64::from(top_p)).abs() > 1e-4 {
                    prop_assert_eq!(found.contains(&place), before < f64::from(top_p));
                }
                before += p;
            }
        }
    }
}
