//! When a rollout is worth branching: the rules of ARPO and LATR, for those who write a strategy.

/// The entropy that ARPO looks at after a call of a tool (arXiv 2507.19849, and its code `_calc_entropy`): the sum of `-p log p` over the most probable tokens of
/// the first `max_tokens` positions, over the logarithm of the vocabulary's size. It is a sum, not a mean, and can be above 1.
pub fn arpo_entropy(top_logprobs: &[Vec<f64>], vocab_size: usize, max_tokens: usize) -> f64 {
    let of_token = |logprobs: &Vec<f64>| -> f64 {
        logprobs.iter().filter(|it| it.is_finite()).map(|logprob| -logprob.exp() * logprob).sum()
    };
    let sum: f64 = top_logprobs.iter().take(max_tokens).map(of_token).sum();
    if vocab_size > 1 { sum / (vocab_size as f64).ln() } else { 0.0 }
}

/// Whether ARPO branches: `clip(u - weight (entropy - first), 0, 1) <= probability`, `u` being drawn evenly from 0 to 1 and `first` the entropy behind the first
/// segment. So more entropy means more branches.
pub fn arpo_branches(u: f64, entropy: f64, first: f64, weight: f64, probability: f64) -> bool {
    (u - weight * (entropy - first)).clamp(0.0, 1.0) <= probability
}

/// Which candidates for a token LATR (lookahead tree rollouts, and its code `ProbFilter`) branches into, of probabilities in descending order: beside the
/// first all with more than `absolute`, and less than `relative` behind it. A threshold that is absent asks for nothing.
pub fn latr_candidates(
    probabilities: &[f64],
    absolute: Option<f64>,
    relative: Option<f64>,
) -> Vec<bool> {
    let first = probabilities.first().copied().unwrap_or_default();
    let is_near = |p: &f64| {
        absolute.is_none_or(|least| *p > least) && relative.is_none_or(|most| first - p < most)
    };
    probabilities.iter().enumerate().map(|(place, p)| place == 0 || is_near(p)).collect()
}

/// How alike two branches are by their longest common subsequence: ROUGE-L's F1, 0 to 1; 0 where one is empty.
pub fn rouge_l(one: &[u32], two: &[u32]) -> f64 {
    let mut before = vec![0_usize; two.len() + 1];
    for a in one {
        let mut now = vec![0_usize; two.len() + 1];
        for (place, b) in two.iter().enumerate() {
            now[place + 1] = match a == b {
                true => before[place] + 1,
                false => before[place + 1].max(now[place]),
            };
        }
        before = now;
    }
    let common = before[two.len()] as f64;
    if common == 0.0 {
        return 0.0;
    }
    let (recall, precision) = (common / one.len() as f64, common / two.len() as f64);
    2.0 * recall * precision / (recall + precision)
}

/// How alike two branches of equal length are by their ends, as LATR sees it: the longest end of one of them that stands anywhere in the other one, over their
/// length; 0 to 1, and 0 where one is empty. Linear in the length.
pub fn suffix_match(one: &[u32], two: &[u32]) -> f64 {
    let backward = |tokens: &[u32]| tokens.iter().rev().copied().collect::<Vec<u32>>();
    let (a, b) = (backward(one), backward(two));
    let longest = longest_beginning_in(&a, &b).max(longest_beginning_in(&b, &a));
    if one.is_empty() { 0.0 } else { longest as f64 / one.len() as f64 }
}

/// How long a beginning of `pattern` stands somewhere in `text` (Knuth, Morris and Pratt 1977).
fn longest_beginning_in(pattern: &[u32], text: &[u32]) -> usize {
    // borders[i]: the longest proper beginning of the first i + 1 tokens that they end with as well.
    let mut borders = vec![0; pattern.len()];
    let step = |borders: &[usize], mut matched: usize, token: u32| {
        while matched > 0 && (matched == pattern.len() || pattern[matched] != token) {
            matched = borders[matched - 1];
        }
        matched + usize::from(pattern.get(matched) == Some(&token))
    };
    for place in 1..pattern.len() {
        borders[place] = step(&borders, borders[place - 1], pattern[place]);
    }
    let mut matched = 0;
    let lengths = text.iter().map(|token| {
        matched = step(&borders, matched, *token);
        matched
    });
    lengths.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::credit::test_vectors::{cases, floats, number, rows};

    #[test]
    fn arpo_branches_where_the_reference_does() {
        cases("arpo_entropy_branch", |case, near| {
            let param = |name: &str| number(&case.params, name);
            let entropy = arpo_entropy(
                &rows(&case.inputs["top10_logprobs_per_token"]),
                number(&case.inputs, "vocab_size") as usize,
                param("max_tokens_used") as usize,
            );
            near(entropy, number(&case.outputs, "entropy"));
            let first = number(&case.inputs, "initial_entropy");
            let draws = floats(&case.inputs["uniform_draws"]);
            for (u, expected) in draws.iter().zip(floats(&case.outputs["branch"])) {
                let (weight, probability) = (param("entropy_weight"), param("branch_probability"));
                assert_eq!(arpo_branches(*u, entropy, first, weight, probability), expected != 0.0);
            }
        });
    }

    #[test]
    fn latr_branches_into_what_the_reference_does() {
        cases("latr_prob_filter", |case, _| {
            let (absolute, relative) =
                (case.params["abs_thres"].as_f64(), case.params["rel_thres"].as_f64());
            let expected = rows(&case.outputs["branch_mask_candidates_2plus"]);
            for (row, expected) in rows(&case.inputs["topk_probs"]).iter().zip(expected) {
                let found = latr_candidates(row, absolute, relative);
                let others: Vec<f64> =
                    found[1..].iter().map(|is_near| f64::from(u8::from(*is_near))).collect();
                assert_eq!(others, expected);
            }
        });
    }

    #[test]
    fn branches_are_as_alike_as_the_reference_says() {
        cases("latr_similarity_metrics", |case, near| {
            let ids = |name: &str| -> Vec<u32> {
                floats(&case.inputs[name]).into_iter().map(|id| id as u32).collect()
            };
            let (a, b) = (ids("a"), ids("b"));
            near(rouge_l(&a, &b), number(&case.outputs, "rouge_l_score"));
            near(suffix_match(&a, &b), number(&case.outputs, "suffix_match_score"));
        });
        assert_eq!((rouge_l(&[], &[1]), suffix_match(&[], &[])), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn ends_are_found_wherever_they_stand(
            one in prop::collection::vec(0_u32..3, 1..12),
            two in prop::collection::vec(0_u32..3, 1..12),
        ) {
            let longest = |a: &[u32], b: &[u32]| {
                (0..=a.len()).rev().find(|len| {
                    let end = &a[a.len() - len..];
                    end.is_empty() || b.windows(*len).any(|window| window == end)
                })
            };
            let expected = longest(&one, &two).max(longest(&two, &one)).unwrap();
            prop_assert_eq!(suffix_match(&one, &two), expected as f64 / one.len() as f64);
        }
    }
}
