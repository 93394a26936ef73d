//! The bias of scores on equal tokens.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use crate::kernel::per_isa;

per_isa! {
/// Adds the bias to the scores of a query with `token`; `tokens` are the one before the first key
/// and those of the keys, the last of which is the query's own where `own` says so.
pub(super) fn add_bias(scores: &mut [f32], tokens: &[u32], token: u32, own: bool, bias: &[f32]) {
    let (same, next) = (bias[0], bias[1]);
    let earlier = scores.len() - usize::from(own);
    for ((score, key), previous) in
        scores[..earlier].iter_mut().zip(&tokens[1..]).zip(tokens)
    {
        let matched = if *key == token { same } else { 0.0 };
        let followed = if *previous == token { next } else { 0.0 };
        *score += matched + followed;
    }
    // A query does not match itself.
    if own && tokens[earlier] == token {
        scores[earlier] += next;
    }
}
}

per_isa! {
/// Collects the gradient of the bias from those of the scores it was added to.
pub(super) fn add_bias_gradient(dscores: &[f32], tokens: &[u32], token: u32, own: bool, dbias: &mut [f32]) {
    let (mut same, mut next) = (0.0, 0.0);
    let earlier = dscores.len() - usize::from(own);
    for ((d, key), previous) in dscores[..earlier].iter().zip(&tokens[1..]).zip(tokens) {
        same += if *key == token { *d } else { 0.0 };
        next += if *previous == token { *d } else { 0.0 };
    }
    if own && tokens[earlier] == token {
        next += dscores[earlier];
    }
    dbias[0] += same;
    dbias[1] += next;
}
}
