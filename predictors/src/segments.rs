//! Features of segments.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Features of the segments of sequences, such as the turns of trajectories: one row of equal width for each segment,
/// the segments of a sequence beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segments {
    width: usize,
    /// Row by row.
    features: Vec<f32>,
    /// Where each sequence begins, in rows, and behind them the number of rows.
    bounds: Vec<usize>,
}

/// Why rows are no segments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SegmentsError {
    /// Rows that would say nothing.
    #[error("features have a width of at least 1")]
    NoWidth,
    /// A sequence that is not made of whole rows.
    #[error("sequence {sequence}: {values} values are no whole number of rows of width {width}")]
    Ragged {
        /// Which sequence, from 0.
        sequence: usize,
        /// How many values it has.
        values: usize,
        /// How many a row has.
        width: usize,
    },
    /// A value that no function can be fitted to.
    #[error("sequence {sequence}: value {position} is not finite")]
    NotFinite {
        /// Which sequence, from 0.
        sequence: usize,
        /// Which of its values, from 0.
        position: usize,
    },
}

impl Segments {
    /// None yet, with rows of `width` features.
    ///
    /// # Errors
    ///
    /// [`SegmentsError::NoWidth`] for 0.
    pub fn new(width: usize) -> Result<Self, SegmentsError> {
        if width == 0 {
            return Err(SegmentsError::NoWidth);
        }
        Ok(Self { width, features: Vec::new(), bounds: vec![0] })
    }

    /// Adds a sequence: the rows of its segments, one behind the other; it may have none.
    ///
    /// # Errors
    ///
    /// [`SegmentsError::Ragged`], [`SegmentsError::NotFinite`]; then nothing is added.
    pub fn push(&mut self, rows: &[f32]) -> Result<(), SegmentsError> {
        let sequence = self.sequences();
        if !rows.len().is_multiple_of(self.width) {
            let values = rows.len();
            return Err(SegmentsError::Ragged { sequence, values, width: self.width });
        }
        if let Some(position) = rows.iter().position(|value| !value.is_finite()) {
            return Err(SegmentsError::NotFinite { sequence, position });
        }
        self.features.extend_from_slice(rows);
        self.bounds.push(self.rows());
        Ok(())
    }

    /// Features of a segment.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Segments of all sequences.
    pub fn rows(&self) -> usize {
        self.features.len() / self.width
    }

    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.bounds.len() - 1
    }

    /// All rows, one behind the other.
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// Some of them, by their places, one behind the other.
    ///
    /// # Panics
    ///
    /// When there are not so many.
    pub fn rows_of(&self, rows: Range<usize>) -> &[f32] {
        &self.features[rows.start * self.width..rows.end * self.width]
    }

    /// The sum of a number of each segment, by sequence: of contributions that is the predicted outcome.
    ///
    /// # Panics
    ///
    /// When there is not one for every segment.
    pub fn sums(&self, of_segments: &[f32]) -> Vec<f64> {
        assert_eq!(of_segments.len(), self.rows(), "a number for every segment");
        let sum = |rows: Range<usize>| of_segments[rows].iter().map(|of| f64::from(*of)).sum();
        self.sequence_rows().map(sum).collect()
    }

    /// Which rows are the segments of each sequence, in the order in which they were added.
    pub fn sequence_rows(&self) -> impl Iterator<Item = Range<usize>> {
        self.bounds.windows(2).map(|pair| pair[0]..pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_keep_their_rows() {
        let mut segments = Segments::new(2).unwrap();
        segments.push(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        segments.push(&[]).unwrap();
        segments.push(&[5.0, 6.0]).unwrap();
        assert_eq!((segments.rows(), segments.sequences()), (3, 3));
        assert_eq!(segments.sequence_rows().collect::<Vec<_>>(), [0..2, 2..2, 2..3]);
        assert_eq!(segments.features(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(segments.rows_of(1..3), [3.0, 4.0, 5.0, 6.0]);
        assert_eq!(segments.sums(&[0.5, 1.0, 4.0]), [1.5, 0.0, 4.0]);
    }

    #[test]
    fn what_is_refused_is_not_added() {
        assert_eq!(Segments::new(0), Err(SegmentsError::NoWidth));
        let mut segments = Segments::new(2).unwrap();
        segments.push(&[1.0, 2.0]).unwrap();
        let before = segments.clone();
        let ragged = segments.push(&[1.0]);
        assert_eq!(ragged, Err(SegmentsError::Ragged { sequence: 1, values: 1, width: 2 }));
        let broken = segments.push(&[1.0, f32::NAN]);
        assert_eq!(broken, Err(SegmentsError::NotFinite { sequence: 1, position: 1 }));
        assert_eq!(segments, before);
    }
}
