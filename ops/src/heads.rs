//! Norms and positions of query and key heads.

use rayon::prelude::*;

use super::elementwise::{add_scaled, rms_norm, rms_norm_backward};
use super::parallel;
use super::rotary::{Rotary, Turn};

/// Rows of a piece; fixed, because partial sums per piece take part in the rounding.
const PIECE_ROWS: usize = 64;

/// Adjacent heads in the rows of a projection.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    /// Width of the projection's rows.
    pub stride: usize,
    /// Where the heads begin in a row.
    pub start: usize,
    /// Width of all heads together.
    pub width: usize,
    /// Channels of a head; even.
    pub head_dim: usize,
    /// The turn of every position.
    pub rotary: &'a Rotary,
    /// Position of every row.
    pub positions: &'a [usize],
}

impl Heads<'_> {
    fn of<'b>(&self, row: &'b [f32]) -> &'b [f32] {
        &row[self.start..self.start + self.width]
    }

    fn heads(&self) -> usize {
        self.width / self.head_dim
    }

    /// Writes the heads, turned by their positions, to `out[t, width]`.
    pub fn turn(&self, rows: &[f32], out: &mut [f32]) {
        parallel::run(
            rows.par_chunks(PIECE_ROWS * self.stride)
                .zip(out.par_chunks_mut(PIECE_ROWS * self.width))
                .zip(self.positions.par_chunks(PIECE_ROWS)),
            |((rows, out), positions)| {
                let rows = rows.chunks_exact(self.stride).zip(out.chunks_exact_mut(self.width));
                for ((row, out), position) in rows.zip(positions) {
                    out.copy_from_slice(self.of(row));
                    self.rotary.apply(out, self.head_dim, *position, Turn::Forward);
                }
            },
        );
    }

    /// As [`Heads::turn`] behind a norm of each head; `inverse[t, heads]` gets the inverse root mean
    /// squares.
    pub fn norm_and_turn(
        &self,
        rows: &[f32],
        gain: &[f32],
        eps: f32,
        out: &mut [f32],
        inverse: &mut [f32],
    ) {
        let heads = self.heads();
        parallel::run(
            rows.par_chunks(PIECE_ROWS * self.stride)
                .zip(out.par_chunks_mut(PIECE_ROWS * self.width))
                .zip(self.positions.par_chunks(PIECE_ROWS))
                .zip(inverse.par_chunks_mut(PIECE_ROWS * heads)),
            |(((rows, out), positions), inverse)| {
                let rows = rows.chunks_exact(self.stride).zip(out.chunks_exact_mut(self.width));
                let rows = rows.zip(inverse.chunks_exact_mut(heads));
                for (((row, out), inverse), position) in rows.zip(positions) {
                    rms_norm(self.of(row), gain, eps, out, inverse);
                    self.rotary.apply(out, self.head_dim, *position, Turn::Forward);
                }
            },
        );
    }

    /// The gradient of [`Heads::turn`]: writes it to the heads' columns of `drows`; `dout` is
    /// turned back in place.
    pub fn turn_backward(&self, dout: &mut [f32], drows: &mut [f32]) {
        parallel::run(
            dout.par_chunks_mut(PIECE_ROWS * self.width)
                .zip(drows.par_chunks_mut(PIECE_ROWS * self.stride))
                .zip(self.positions.par_chunks(PIECE_ROWS)),
            |((dout, drows), positions)| {
                let rows =
                    dout.chunks_exact_mut(self.width).zip(drows.chunks_exact_mut(self.stride));
                for ((dout, drow), position) in rows.zip(positions) {
                    self.rotary.apply(dout, self.head_dim, *position, Turn::Backward);
                    drow[self.start..self.start + self.width].copy_from_slice(dout);
                }
            },
        );
    }

    /// The gradient of [`Heads::norm_and_turn`]: writes it to the heads' columns of `drows` and adds
    /// that of the gain to `dgain`; `dout` is turned back in place.
    pub fn norm_and_turn_backward(
        &self,
        dout: &mut [f32],
        rows: &[f32],
        gain: &[f32],
        inverse: &[f32],
        drows: &mut [f32],
        dgain: &mut [f32],
    ) {
        let heads = self.heads();
        // Every piece has a sum of its own; they are added up in order.
        let mut sums = vec![0.0; self.positions.len().div_ceil(PIECE_ROWS) * self.head_dim];
        parallel::run(
            dout.par_chunks_mut(PIECE_ROWS * self.width)
                .zip(drows.par_chunks_mut(PIECE_ROWS * self.stride))
                .zip(rows.par_chunks(PIECE_ROWS * self.stride))
                .zip(inverse.par_chunks(PIECE_ROWS * heads))
                .zip(self.positions.par_chunks(PIECE_ROWS))
                .zip(sums.par_chunks_mut(self.head_dim)),
            |(((((dout, drows), rows), inverse), positions), sums)| {
                let drows = drows.chunks_exact_mut(self.stride);
                let pairs = dout.chunks_exact_mut(self.width).zip(drows);
                let inputs = rows.chunks_exact(self.stride).zip(inverse.chunks_exact(heads));
                for (((dout, drow), (row, inverse)), position) in pairs.zip(inputs).zip(positions) {
                    self.rotary.apply(dout, self.head_dim, *position, Turn::Backward);
                    let drow = &mut drow[self.start..self.start + self.width];
                    drow.fill(0.0);
                    rms_norm_backward(dout, self.of(row), gain, inverse, drow, sums);
                }
            },
        );
        for sums in sums.chunks_exact(self.head_dim) {
            add_scaled(dgain, 1.0, sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RopeScaling;
    use crate::elementwise::dot;
    use crate::gradient_check::{assert_gradient, numbers};

    #[test]
    fn gradient_of_normed_and_turned_heads() {
        let rotary = Rotary::new(300, 4, 100.0, RopeScaling::None);
        let positions: Vec<usize> = (0..3).map(|row| row * 7).collect();
        // Two heads of four channels behind one that belongs to others.
        let heads = Heads {
            stride: 14,
            start: 4,
            width: 8,
            head_dim: 4,
            rotary: &rotary,
            positions: &positions,
        };
        let (rows, gain, dout) = (numbers(42, 0.3), numbers(4, 0.8), numbers(24, 0.5));
        let loss = |rows: &[f32], gain: &[f32]| {
            let (mut out, mut inverse) = (vec![0.0; 24], vec![0.0; 6]);
            heads.norm_and_turn(rows, gain, 1e-6, &mut out, &mut inverse);
            f64::from(dot(&out, &dout))
        };
        let (mut out, mut inverse) = (vec![0.0; 24], vec![0.0; 6]);
        heads.norm_and_turn(&rows, &gain, 1e-6, &mut out, &mut inverse);
        let (mut drows, mut dgain) = (vec![0.0; 42], vec![0.0; 4]);
        let (d, g) = (&mut dout.clone(), &mut dgain);
        heads.norm_and_turn_backward(d, &rows, &gain, &inverse, &mut drows, g);
        assert_gradient(&rows, &drows, |rows| loss(rows, &gain));
        assert_gradient(&gain, &dgain, |gain| loss(&rows, gain));

        let mut drows = vec![0.0; 42];
        heads.turn_backward(&mut dout.clone(), &mut drows);
        assert_gradient(&rows, &drows, |rows| {
            let mut out = vec![0.0; 24];
            heads.turn(rows, &mut out);
            f64::from(dot(&out, &dout))
        });
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let rotary = Rotary::new(300, 4, 100.0, RopeScaling::None);
        let positions: Vec<usize> = (0..200).collect();
        let heads = Heads {
            stride: 12,
            start: 4,
            width: 8,
            head_dim: 4,
            rotary: &rotary,
            positions: &positions,
        };
        let (rows, gain) = (numbers(2400, 0.3), numbers(4, 0.8));
        let run = || {
            let (mut out, mut inverse) = (vec![0.0; 1600], vec![0.0; 400]);
            heads.norm_and_turn(&rows, &gain, 1e-6, &mut out, &mut inverse);
            let (mut dout, mut drows, mut dgain) =
                (numbers(1600, 0.5), vec![0.0; 2400], vec![0.0; 4]);
            heads.norm_and_turn_backward(&mut dout, &rows, &gain, &inverse, &mut drows, &mut dgain);
            (out, inverse, drows, dgain)
        };
        let expected = parallel::serially(run);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
        assert!(pool.install(run) == expected);
    }
}
