//! The right-hand sides of products, as they are stored.

use crate::kernel::PANEL;
use crate::matrix::Matrix;

/// The right-hand side of a product, shape `[depth, width]`, in panels of adjacent columns.
#[derive(Debug, Clone, Default)]
pub struct Panels {
    pub(super) depth: usize,
    pub(super) width: usize,
    pub(super) data: Vec<f32>,
}

impl Panels {
    /// Packs `matrix[depth, width]`, stored by rows.
    pub fn from_rows(matrix: &[f32], depth: usize, width: usize) -> Self {
        let mut panels = Self::zeros(depth, width);
        for (index, panel) in panels.panels() {
            let first = index * PANEL;
            let columns = PANEL.min(width - first);
            for (p, row) in panel.chunks_exact_mut(PANEL).enumerate() {
                let start = p * width + first;
                row[..columns].copy_from_slice(&matrix[start..start + columns]);
            }
        }
        panels
    }

    /// Packs the transpose of `matrix[width, depth]`, stored by rows.
    pub fn from_transposed(matrix: &[f32], width: usize, depth: usize) -> Self {
        let mut panels = Self::zeros(depth, width);
        for (index, panel) in panels.panels() {
            let first = index * PANEL;
            for column in 0..PANEL.min(width - first) {
                let row = &matrix[(first + column) * depth..][..depth];
                for (p, value) in row.iter().enumerate() {
                    panel[p * PANEL + column] = *value;
                }
            }
        }
        panels
    }

    fn zeros(depth: usize, width: usize) -> Self {
        Self { depth, width, data: vec![0.0; width.div_ceil(PANEL) * depth * PANEL] }
    }

    fn panels(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        self.data.chunks_exact_mut((self.depth * PANEL).max(1)).enumerate()
    }
}

/// The right-hand side of a product, shape `[depth, width]`, as it is stored.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    /// In panels.
    Panels(&'a Panels),
    /// By rows, which are `stride` apart.
    Rows { data: Matrix<'a>, stride: usize, depth: usize, width: usize },
    /// By columns, which are `stride` apart.
    Columns { data: Matrix<'a>, stride: usize, depth: usize, width: usize },
    /// In whole panels, one behind the other.
    Weight { data: Matrix<'a>, depth: usize, width: usize },
}

impl Right<'_> {
    /// Depth and width.
    pub(super) fn shape(&self) -> (usize, usize) {
        match *self {
            Self::Panels(panels) => (panels.depth, panels.width),
            Self::Rows { depth, width, .. }
            | Self::Columns { depth, width, .. }
            | Self::Weight { depth, width, .. } => (depth, width),
        }
    }

    /// Whether all elements lie within the data.
    pub(super) fn is_whole(&self) -> bool {
        match *self {
            Self::Panels(_) => true,
            Self::Rows { data, stride, depth, width } => (depth - 1) * stride + width <= data.len(),
            Self::Columns { data, stride, depth, width } => {
                (width - 1) * stride + depth <= data.len()
            }
            Self::Weight { data, depth, width } => {
                width.is_multiple_of(PANEL) && width * depth <= data.len()
            }
        }
    }
}
