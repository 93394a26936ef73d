//! Element-wise functions and reductions with a fixed order.
#![expect(unsafe_code, reason = "calls of functions compiled for the machine's instruction set")]

use rayon::prelude::*;

use super::kernel::per_isa;
use super::parallel;

/// Partial sums that a reduction keeps; fixed, because it takes part in the rounding.
const LANES: usize = 16;

/// `e^x` by range reduction and a polynomial of degree 6; relative error below 2e-7.
///
/// Below -87 the result is exactly 0, so that masked places vanish.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-0.693_359_4, clamped);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, c);
    }
    // The lowest bits of `shifted` hold the whole number `n`, between -126 and 127; moved into the
    // exponent, they make 2^n.
    let scale = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    if x < -87.0 { 0.0 } else { p * scale }
}

#[inline(always)]
fn sum_lanes(lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    let mut lanes = lanes;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn dot_inline(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    for (i, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[i] = a.mul_add(*b, lanes[i]);
    }
    sum_lanes(lanes)
}

#[inline(always)]
fn dot3_inline(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let (c_blocks, c_rest) = c.as_chunks::<LANES>();
    for ((a, b), c) in a_blocks.iter().zip(b_blocks).zip(c_blocks) {
        for i in 0..LANES {
            lanes[i] += a[i] * b[i] * c[i];
        }
    }
    for (i, ((a, b), c)) in a_rest.iter().zip(b_rest).zip(c_rest).enumerate() {
        lanes[i] += a * b * c;
    }
    sum_lanes(lanes)
}

per_isa! {
/// The sum of `a[i] * b[i]`.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {  dot_inline(a, b) }
}

per_isa! {
/// `y += factor * x`.
pub fn add_scaled(y: &mut [f32], factor: f32, x: &[f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = factor.mul_add(*x, *y);
        }
    }
}

per_isa! {
/// `y += a * x` element by element.
pub fn add_product(y: &mut [f32], a: &[f32], x: &[f32]) {
        for ((y, a), x) in y.iter_mut().zip(a).zip(x) {
            *y = a.mul_add(*x, *y);
        }
    }
}

per_isa! {
/// Replaces scores by `e^(score - maximum)` and returns the maximum and the sum of the results.
///
/// Places of minus infinity become exactly 0; appending such places changes nothing.
pub fn exp_scores(scores: &mut [f32]) -> (f32, f32) {
        let mut maxima = [f32::NEG_INFINITY; LANES];
        let (blocks, rest) = scores.as_chunks::<LANES>();
        for block in blocks {
            for i in 0..LANES {
                maxima[i] = if block[i] > maxima[i] { block[i] } else { maxima[i] };
            }
        }
        for (i, score) in rest.iter().enumerate() {
            maxima[i] = if *score > maxima[i] { *score } else { maxima[i] };
        }
        let maximum = maxima.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0_f32; LANES];
        let (blocks, rest) = scores.as_chunks_mut::<LANES>();
        for block in blocks {
            for i in 0..LANES {
                block[i] = exp(block[i] - maximum);
                sums[i] += block[i];
            }
        }
        for (i, score) in rest.iter_mut().enumerate() {
            *score = exp(*score - maximum);
            sums[i] += *score;
        }
        (maximum, sum_lanes(sums))
    }
}

per_isa! {
/// Takes a block of scores into a running softmax: replaces them by `e^(score - maximum)` for the
/// maximum so far, which is updated with the sum, and returns the factor for what was summed up
/// under the old maximum (Milakov and Gimelshein 2018, algorithm 3).
///
/// A block of minus infinity changes nothing.
pub fn absorb_scores(scores: &mut [f32], maximum: &mut f32, sum: &mut f32) -> f32 {
        let mut maxima = [f32::NEG_INFINITY; LANES];
        let (blocks, rest) = scores.as_chunks::<LANES>();
        for block in blocks {
            for i in 0..LANES {
                maxima[i] = if block[i] > maxima[i] { block[i] } else { maxima[i] };
            }
        }
        for (i, score) in rest.iter().enumerate() {
            maxima[i] = if *score > maxima[i] { *score } else { maxima[i] };
        }
        let new = maxima.into_iter().fold(*maximum, f32::max);
        if new == f32::NEG_INFINITY {
            scores.fill(0.0);
            return 1.0;
        }
        let factor = exp(*maximum - new);
        let mut sums = [0.0_f32; LANES];
        let (blocks, rest) = scores.as_chunks_mut::<LANES>();
        for block in blocks {
            for i in 0..LANES {
                block[i] = exp(block[i] - new);
                sums[i] += block[i];
            }
        }
        for (i, score) in rest.iter_mut().enumerate() {
            *score = exp(*score - new);
            sums[i] += *score;
        }
        *maximum = new;
        *sum = sum.mul_add(factor, sum_lanes(sums));
        factor
    }
}

per_isa! {
/// `y = factor * y + x`.
pub fn scale_add(y: &mut [f32], factor: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = y.mul_add(factor, *x);
    }
}
}

per_isa! {
/// `x *= factor`.
pub fn scale(x: &mut [f32], factor: f32) {
    for x in x {
        *x *= factor;
    }
}
}

per_isa! {
/// `d = p * (d - shared)`: the gradient of scores from that of their probabilities `p`, `shared`
/// being `sum(p * d)`.
pub fn softmax_backward(d: &mut [f32], p: &[f32], shared: f32) {
    for (d, p) in d.iter_mut().zip(p) {
        *d = p * (*d - shared);
    }
}
}

per_isa! {
/// Replaces scores by `e^(score - maximum) / sum`, for a maximum and an inverse sum known before.
pub fn exp_scores_with(scores: &mut [f32], maximum: f32, inverse_sum: f32) {
        for score in scores {
            *score = exp(*score - maximum) * inverse_sum;
        }
    }
}

/// Elements that are worth a piece of their own; fixed, because partial sums per piece take part in
/// the rounding.
const PIECE: usize = 1 << 15;

/// Rows of `width` elements that make a piece.
fn piece_rows(width: usize) -> usize {
    (PIECE / width.max(1)).max(1)
}

/// `out = x * gain / sqrt(mean(x^2) + eps)` row by row (RMSNorm; Zhang and Sennrich 2019, eq. 4).
///
/// `x` and `out` have rows of `gain.len()`; `inverse_rms` gets one entry per row.
pub fn rms_norm(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32], inverse_rms: &mut [f32]) {
    let rows = piece_rows(gain.len());
    if inverse_rms.len() <= rows {
        return rms_norm_rows(x, gain, eps, out, inverse_rms);
    }
    let len = rows * gain.len();
    let pieces =
        x.par_chunks(len).zip(out.par_chunks_mut(len)).zip(inverse_rms.par_chunks_mut(rows));
    parallel::run(pieces, |((x, out), inverse)| rms_norm_rows(x, gain, eps, out, inverse));
}

per_isa! {
fn rms_norm_rows(x: &[f32], gain: &[f32], eps: f32, out: &mut [f32], inverse_rms: &mut [f32]) { let width = gain.len();
        for ((x, out), inverse) in
            x.chunks_exact(width).zip(out.chunks_exact_mut(width)).zip(inverse_rms)
        {
            *inverse = 1.0 / (dot_inline(x, x) / width as f32 + eps).sqrt();
            for ((out, x), gain) in out.iter_mut().zip(x).zip(gain) {
                *out = x * *inverse * gain;
            }
        }
    }
}

/// Adds to `dx` and `dgain` the gradients of [`rms_norm`].
///
/// With `y = x * s * g`, `s` the inverse root mean square and `w` the width:
/// `dx = s * (g * dy - x * s^2 * sum(x * g * dy) / w)`, `dg = sum over rows of x * s * dy`.
pub fn rms_norm_backward(
    dy: &[f32],
    x: &[f32],
    gain: &[f32],
    inverse_rms: &[f32],
    dx: &mut [f32],
    dgain: &mut [f32],
) {
    let width = gain.len();
    let rows = piece_rows(width);
    if inverse_rms.len() <= rows {
        return rms_norm_backward_rows(dy, x, gain, inverse_rms, dx, dgain);
    }
    // Every piece has a sum of its own; they are added up in order.
    let mut sums = vec![0.0; inverse_rms.len().div_ceil(rows) * width];
    let len = rows * width;
    let inputs = dy.par_chunks(len).zip(x.par_chunks(len)).zip(inverse_rms.par_chunks(rows));
    let outputs = dx.par_chunks_mut(len).zip(sums.par_chunks_mut(width));
    let pieces = inputs.zip(outputs);
    parallel::run(pieces, |(((dy, x), inverse), (dx, sums))| {
        rms_norm_backward_rows(dy, x, gain, inverse, dx, sums);
    });
    for sums in sums.chunks_exact(width) {
        add_scaled(dgain, 1.0, sums);
    }
}

per_isa! {
fn rms_norm_backward_rows(
    dy: &[f32],
    x: &[f32],
    gain: &[f32],
    inverse_rms: &[f32],
    dx: &mut [f32],
    dgain: &mut [f32],
) { let width = gain.len();
        for (((dy, x), s), dx) in dy
            .chunks_exact(width)
            .zip(x.chunks_exact(width))
            .zip(inverse_rms)
            .zip(dx.chunks_exact_mut(width))
        {
            let shared = dot3_inline(dy, x, gain) * s * s / width as f32;
            for ((((dx, dy), x), g), dg) in
                dx.iter_mut().zip(dy).zip(x).zip(gain).zip(dgain.iter_mut())
            {
                *dx += s * (g * dy - x * shared);
                *dg += x * s * dy;
            }
        }
    }
}

/// `out = silu(gate) * up`, `gate_up` having rows of the gate's channels and then the up's
/// (SwiGLU; Shazeer 2020, eq. 5).
pub fn swiglu(gate_up: &[f32], width: usize, out: &mut [f32]) {
    let len = piece_rows(width) * width;
    if out.len() <= len {
        return swiglu_rows(gate_up, width, out);
    }
    let pieces = gate_up.par_chunks(2 * len).zip(out.par_chunks_mut(len));
    parallel::run(pieces, |(gate_up, out)| swiglu_rows(gate_up, width, out));
}

per_isa! {
fn swiglu_rows(gate_up: &[f32], width: usize, out: &mut [f32]) {
        for (row, out) in gate_up.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
            let (gate, up) = row.split_at(width);
            for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
                *out = gate / (1.0 + exp(-gate)) * up;
            }
        }
    }
}

/// Writes to `dgate_up` the gradient of [`swiglu`], with `silu'(x) = s + x s (1 - s)`.
pub fn swiglu_backward(dout: &[f32], gate_up: &[f32], width: usize, dgate_up: &mut [f32]) {
    let len = piece_rows(width) * width;
    if dout.len() <= len {
        return swiglu_backward_rows(dout, gate_up, width, dgate_up);
    }
    let inputs = dout.par_chunks(len).zip(gate_up.par_chunks(2 * len));
    let pieces = inputs.zip(dgate_up.par_chunks_mut(2 * len));
    parallel::run(pieces, |((dout, gate_up), dgate_up)| {
        swiglu_backward_rows(dout, gate_up, width, dgate_up);
    });
}

per_isa! {
fn swiglu_backward_rows(dout: &[f32], gate_up: &[f32], width: usize, dgate_up: &mut [f32]) {
        for ((dout, row), drow) in dout
            .chunks_exact(width)
            .zip(gate_up.chunks_exact(2 * width))
            .zip(dgate_up.chunks_exact_mut(2 * width))
        {
            let (gate, up) = row.split_at(width);
            let (dgate, dup) = drow.split_at_mut(width);
            for ((((dout, gate), up), dgate), dup) in
                dout.iter().zip(gate).zip(up).zip(dgate).zip(dup)
            {
                let sigmoid = 1.0 / (1.0 + exp(-gate));
                let silu = gate * sigmoid;
                *dup = dout * silu;
                *dgate = dout * up * (sigmoid + silu * (1.0 - sigmoid));
            }
        }
    }
}

/// What an update of [`adamw`] is made with; the names are those of its formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWStep {
    /// Decay of the mean of gradients.
    pub beta1: f32,
    /// Decay of the mean of squared gradients.
    pub beta2: f32,
    /// Added to the root of the mean square.
    pub epsilon: f32,
    /// Share of the weights that stays.
    pub keep: f32,
    /// Learning rate over `1 - beta1^k`.
    pub step: f32,
    /// Root of `1 - beta2^k`.
    pub root: f32,
}

/// One update of AdamW, everything in one pass:
///
/// ```text
/// m <- m + (1 - beta1) (g - m)          v <- beta2 v + (1 - beta2) g^2
/// w <- keep w - step m / (sqrt(v) / root + epsilon)
/// ```
///
/// # Panics
///
/// When lengths differ.
pub fn adamw(
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradient: &[f32],
    step: AdamWStep,
) {
    let len = weights.len();
    assert!(first.len() == len && second.len() == len && gradient.len() == len, "lengths differ");
    if len <= PIECE {
        return adamw_piece(weights, first, second, gradient, step);
    }
    let moments = first.par_chunks_mut(PIECE).zip(second.par_chunks_mut(PIECE));
    let pieces = weights.par_chunks_mut(PIECE).zip(moments).zip(gradient.par_chunks(PIECE));
    parallel::run(pieces, |((weights, (first, second)), gradient)| {
        adamw_piece(weights, first, second, gradient, step);
    });
}

per_isa! {
fn adamw_piece(
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradient: &[f32],
    step: AdamWStep,
) {
    let AdamWStep { beta1, beta2, epsilon, keep, step, root } = step;
    for (((w, m), v), g) in weights.iter_mut().zip(first).zip(second).zip(gradient) {
        *m += (g - *m) * (1.0 - beta1);
        *v = *v * beta2 + g * g * (1.0 - beta2);
        *w = *w * keep - step * *m / (v.sqrt() / root + epsilon);
    }
}
}

/// The sum of squares in double precision.
pub fn sum_of_squares(x: &[f32]) -> f64 {
    if x.len() <= PIECE {
        return sum_of_squares_piece(x);
    }
    let mut sums = vec![0.0; x.len().div_ceil(PIECE)];
    parallel::run(x.par_chunks(PIECE).zip(sums.par_iter_mut()), |(x, sum)| {
        *sum = sum_of_squares_piece(x);
    });
    sums.iter().sum()
}

per_isa! {
fn sum_of_squares_piece(x: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            let value = f64::from(block[i]);
            lanes[i] = value.mul_add(value, lanes[i]);
        }
    }
    for (i, value) in rest.iter().enumerate() {
        lanes[i] = f64::from(*value).mul_add(f64::from(*value), lanes[i]);
    }
    lanes.iter().sum()
}
}

/// `x *= factor`, over threads.
pub fn scale_all(x: &mut [f32], factor: f32) {
    parallel::run(x.par_chunks_mut(PIECE), |x| scale(x, factor));
}

/// `y += x`, over threads.
pub fn add_all(y: &mut [f32], x: &[f32]) {
    let pieces = y.par_chunks_mut(PIECE).zip(x.par_chunks(PIECE));
    parallel::run(pieces, |(y, x)| add_scaled(y, 1.0, x));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient_check::{assert_gradient, numbers};

    #[test]
    fn exp_is_close_and_vanishes() {
        for i in -860..880 {
            let x = i as f32 * 0.1;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 5e-7, "{x}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn masked_places_change_nothing() {
        let mut short = numbers(37, 0.9);
        let mut long = short.clone();
        long.resize(96, f32::NEG_INFINITY);
        let expected = exp_scores(&mut short);
        assert_eq!(exp_scores(&mut long), expected);
        assert_eq!(long[..37], short[..]);
        assert!(long[37..].iter().all(|p| *p == 0.0));
    }

    #[test]
    fn pieces_and_threads_do_not_change_a_bit() {
        let (rows, width) = (700, 96);
        let (x, gain, dy) =
            (numbers(rows * width, 0.3), numbers(width, 0.8), numbers(rows * width, 0.5));
        let run = || {
            let (mut out, mut inverse) = (vec![0.0; rows * width], vec![0.0; rows]);
            rms_norm(&x, &gain, 1e-6, &mut out, &mut inverse);
            let (mut dx, mut dgain) = (dy.clone(), gain.clone());
            rms_norm_backward(&dy, &x, &gain, &inverse, &mut dx, &mut dgain);
            let mut active = vec![0.0; rows * width / 2];
            swiglu(&x, width / 2, &mut active);
            let mut dgate = vec![0.0; rows * width];
            swiglu_backward(&active, &x, width / 2, &mut dgate);
            let (mut weights, mut first, mut second) = (x.clone(), dy.clone(), vec![0.5; x.len()]);
            let step = AdamWStep {
                beta1: 0.9,
                beta2: 0.99,
                epsilon: 1e-8,
                keep: 0.99,
                step: 0.1,
                root: 0.3,
            };
            adamw(&mut weights, &mut first, &mut second, &dgate, step);
            add_all(&mut weights, &dx);
            let squares = sum_of_squares(&weights);
            scale_all(&mut weights, 0.7);
            (out, inverse, dx, dgain, active, dgate, weights, second, squares)
        };
        let expected = run();
        let exact: f64 = expected.6.iter().map(|w| (f64::from(*w) / 0.7).powi(2)).sum();
        assert!((expected.8 / exact - 1.0).abs() < 1e-6);
        assert!(parallel::serially(run) == expected);
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(run) == expected, "{threads} threads");
        }
    }

    #[test]
    fn gradient_of_rms_norm() {
        let (rows, width) = (3, 20);
        let (x, gain, dy) =
            (numbers(rows * width, 0.3), numbers(width, 0.8), numbers(rows * width, 0.5));
        let loss = |x: &[f32], gain: &[f32]| {
            let (mut out, mut inverse) = (vec![0.0; rows * width], vec![0.0; rows]);
            rms_norm(x, gain, 1e-6, &mut out, &mut inverse);
            f64::from(dot(&out, &dy))
        };
        let (mut out, mut inverse) = (vec![0.0; rows * width], vec![0.0; rows]);
        rms_norm(&x, &gain, 1e-6, &mut out, &mut inverse);
        let (mut dx, mut dgain) = (vec![0.0; rows * width], vec![0.0; width]);
        rms_norm_backward(&dy, &x, &gain, &inverse, &mut dx, &mut dgain);
        assert_gradient(&x, &dx, |x| loss(x, &gain));
        assert_gradient(&gain, &dgain, |gain| loss(&x, gain));
    }

    #[test]
    fn gradient_of_swiglu() {
        let (rows, width) = (3, 9);
        let (x, dy) = (numbers(rows * width * 2, 0.3), numbers(rows * width, 0.5));
        let mut dx = vec![0.0; x.len()];
        swiglu_backward(&dy, &x, width, &mut dx);
        assert_gradient(&x, &dx, |x| {
            let mut out = vec![0.0; rows * width];
            swiglu(x, width, &mut out);
            f64::from(dot(&out, &dy))
        });
    }
}
