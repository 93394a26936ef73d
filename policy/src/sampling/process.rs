//! All stages between the model's logits and the draw.

use super::{SamplingOptions, TokenCounts, apply_bias, apply_penalties, truncate};

/// What stands before a draw.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The prompt.
    pub prompt: &'a [u32],
    /// The answer so far.
    pub answer: &'a [u32],
    /// Both, counted; needed where there are penalties.
    pub counts: Option<&'a TokenCounts>,
}

/// Takes logits through all stages but the division by the temperature; see the [module](super).
///
/// `logits` are those of `ids`, ascending, or of the whole vocabulary if that is empty. Afterwards
/// they are those of the tokens that can be drawn. `barred` lists tokens that must not come; if
/// nothing is left without them and bad words, both may.
pub fn process(
    options: &SamplingOptions,
    before: &Before<'_>,
    barred: &[u32],
    ids: &mut Vec<u32>,
    logits: &mut Vec<f32>,
) {
    apply_bias(options, ids, logits);
    if let Some(counts) = before.counts {
        apply_penalties(options, counts, ids, logits);
    }
    if !barred.is_empty() || !options.bad_words.is_empty() {
        let mut banned: Vec<u32> = options.bad_words.banned(before.prompt, before.answer).collect();
        banned.extend_from_slice(barred);
        leave_out(&banned, ids, logits);
    }
    if options.truncates() {
        truncate(options, ids, logits);
    }
}

/// Takes tokens out, unless nothing would be left.
fn leave_out(banned: &[u32], ids: &mut Vec<u32>, logits: &mut Vec<f32>) {
    if banned.is_empty() {
        return;
    }
    let id = |at: usize| ids.get(at).copied().unwrap_or(at as u32);
    let left: Vec<usize> = (0..logits.len()).filter(|at| !banned.contains(&id(*at))).collect();
    if left.is_empty() || left.len() == logits.len() {
        return;
    }
    *ids = left.iter().map(|at| id(*at)).collect();
    for (to, from) in left.iter().enumerate() {
        logits[to] = logits[*from];
    }
    logits.truncate(left.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_barred_comes_only_where_nothing_else_can() {
        let before = Before { prompt: &[], answer: &[], counts: None };
        let run = |barred: &[u32], ids: &[u32]| {
            let (mut ids, mut logits) = (ids.to_vec(), vec![1.0, 2.0, 3.0]);
            process(&SamplingOptions::default(), &before, barred, &mut ids, &mut logits);
            (ids, logits)
        };
        assert_eq!(run(&[1], &[]), (vec![0, 2], vec![1.0, 3.0]));
        assert_eq!(run(&[5, 9], &[4, 5, 7]), (vec![4, 7], vec![1.0, 3.0]));
        assert_eq!(run(&[4, 5, 7], &[4, 5, 7]), (vec![4, 5, 7], vec![1.0, 2.0, 3.0]));
        assert_eq!(run(&[], &[]), (vec![], vec![1.0, 2.0, 3.0]));
    }
}
