//! Rotary positions.

use std::sync::OnceLock;

use crate::RopeScaling;

/// Positions whose angles are computed together, when the first of them is asked for.
const BLOCK: usize = 512;

/// Cosines and sines of every position and frequency.
///
/// Channel `i < dim / 2` of a head is paired with channel `i + dim / 2` and rotated by
/// `position * theta^(-2 i / dim)` (Su et al. 2021, eq. 34, in the half-split order of Hugging
/// Face checkpoints), the frequency being changed by the scaling; channels from `dim` on stay as
/// they are.
#[derive(Debug, Clone)]
pub struct Rotary {
    /// In radians per position.
    frequencies: Vec<f64>,
    /// Per block of positions, `[position, frequency]` pairs of cosine and sine; a table for long
    /// contexts costs nothing where contexts are short.
    blocks: Vec<OnceLock<Box<[[f32; 2]]>>>,
}

/// Which way to turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// By the position: forward.
    Forward,
    /// Back again: the gradient of forward.
    Backward,
}

impl Rotary {
    /// The angles for positions below `positions` and `dim` rotated channels.
    pub fn new(positions: usize, dim: usize, theta: f32, scaling: RopeScaling) -> Self {
        let frequency = |i| scaling.apply(f64::from(theta).powf(-2.0 * i as f64 / dim as f64));
        Self {
            frequencies: (0..dim / 2).map(frequency).collect(),
            blocks: vec![OnceLock::new(); positions.div_ceil(BLOCK)],
        }
    }

    /// Turns every head of a row of `head_dim` channels each.
    pub fn apply(&self, row: &mut [f32], head_dim: usize, position: usize, turn: Turn) {
        let half = self.frequencies.len();
        let angles = &self.block(position / BLOCK)[position % BLOCK * half..][..half];
        for head in row.chunks_exact_mut(head_dim) {
            let (low, high) = head.split_at_mut(half);
            for ((a, b), [cos, sin]) in low.iter_mut().zip(high).zip(angles) {
                let sin = if turn == Turn::Forward { *sin } else { -sin };
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
    }

    /// Cosines and sines of all positions, `[position, frequency]`.
    pub fn all_angles(&self) -> impl Iterator<Item = [f32; 2]> + '_ {
        (0..self.blocks.len()).flat_map(|index| self.block(index).iter().copied())
    }

    fn block(&self, index: usize) -> &[[f32; 2]] {
        self.blocks[index].get_or_init(|| {
            let positions = index * BLOCK..(index + 1) * BLOCK;
            let of_position = |position: usize| {
                self.frequencies.iter().map(move |frequency| {
                    let angle = position as f64 * frequency;
                    [angle.cos() as f32, angle.sin() as f32]
                })
            };
            positions.flat_map(of_position).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient_check::{assert_gradient, numbers};

    #[test]
    fn angles_are_positions_times_scaled_frequencies() {
        let scaling = RopeScaling::Linear { factor: 2.0 };
        let rotary = Rotary::new(2000, 4, 100.0, scaling);
        for position in [0, 1, 511, 512, 1999] {
            let mut row = [1.0, 1.0, 0.0, 0.0];
            rotary.apply(&mut row, 4, position, Turn::Forward);
            let angle = position as f64 / 2.0;
            for (i, frequency) in [1.0, 0.1].into_iter().enumerate() {
                let (sin, cos) = (angle * frequency).sin_cos();
                assert_eq!((row[i], row[i + 2]), (cos as f32, sin as f32), "{position}");
            }
        }
    }

    #[test]
    fn gradient_of_rotation_is_the_rotation_back() {
        let rotary = Rotary::new(50, 8, 10_000.0, RopeScaling::None);
        let (x, dy) = (numbers(24, 0.3), numbers(24, 0.5));
        let mut dx = dy.clone();
        rotary.apply(&mut dx, 12, 33, Turn::Backward);
        assert_gradient(&x, &dx, |x| {
            let mut y = x.to_vec();
            rotary.apply(&mut y, 12, 33, Turn::Forward);
            y.iter().zip(&dy).map(|(y, d)| f64::from(*y) * f64::from(*d)).sum()
        });
    }
}
