//! Rotary positions.

/// Cosines and sines of every position and frequency.
///
/// Channel `i < dim / 2` of a head is paired with channel `i + dim / 2` and rotated by
/// `position * theta^(-2 i / dim)` (Su et al. 2021, eq. 34, in the half-split order of Hugging
/// Face checkpoints); channels from `dim` on stay as they are.
#[derive(Debug, Clone)]
pub struct Rotary {
    half: usize,
    /// `[position, frequency]` pairs of cosine and sine.
    table: Vec<[f32; 2]>,
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
    /// The table for positions below `positions` and `dim` rotated channels.
    pub fn new(positions: usize, dim: usize, theta: f32) -> Self {
        let half = dim / 2;
        let mut table = Vec::with_capacity(positions * half);
        for position in 0..positions {
            for i in 0..half {
                let frequency = f64::from(theta).powf(-2.0 * i as f64 / dim as f64);
                let angle = position as f64 * frequency;
                table.push([angle.cos() as f32, angle.sin() as f32]);
            }
        }
        Self { half, table }
    }

    /// Turns every head of a row of `head_dim` channels each.
    pub fn apply(&self, row: &mut [f32], head_dim: usize, position: usize, turn: Turn) {
        let angles = &self.table[position * self.half..(position + 1) * self.half];
        for head in row.chunks_exact_mut(head_dim) {
            let (low, high) = head.split_at_mut(self.half);
            for ((a, b), [cos, sin]) in low.iter_mut().zip(high).zip(angles) {
                let sin = if turn == Turn::Forward { *sin } else { -sin };
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gradient_check::{assert_gradient, numbers};

    #[test]
    fn gradient_of_rotation_is_the_rotation_back() {
        let rotary = Rotary::new(50, 8, 10_000.0);
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
