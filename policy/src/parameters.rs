//! All weights of a model in one flat buffer.

use std::ops::Range;
use std::sync::Arc;

/// How an optimiser should treat a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterKind {
    /// A matrix between hidden layers.
    Matrix,
    /// The token embedding, and the output matrix where it stands apart.
    Embedding,
    /// Gains, biases and other vectors.
    Vector,
}

/// Where a parameter lies in the flat buffer, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Name as in a Hugging Face checkpoint.
    pub name: String,
    /// Shape; matrices are `[out, in]`.
    pub shape: Vec<usize>,
    /// First element in the flat buffer.
    pub offset: usize,
    /// How an optimiser should treat it.
    pub kind: ParameterKind,
}

impl ParameterSpec {
    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where it lies in the flat buffer.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// All weights of a model in one flat buffer; gradients and optimiser states have the same layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// What lies where; shared, because every copy has the same layout.
    pub specs: Arc<[ParameterSpec]>,
    /// The weights.
    pub data: Vec<f32>,
}

impl Parameters {
    /// Zeros in the layout of `shapes`, given as name, shape and kind in order.
    pub fn zeros(shapes: Vec<(String, Vec<usize>, ParameterKind)>) -> Self {
        let mut offset = 0;
        let mut specs = Vec::with_capacity(shapes.len());
        for (name, shape, kind) in shapes {
            let spec = ParameterSpec { name, shape, offset, kind };
            offset += spec.len();
            specs.push(spec);
        }
        Self { specs: specs.into(), data: vec![0.0; offset] }
    }

    /// The spec of the parameter called `name`.
    pub fn spec(&self, name: &str) -> Option<&ParameterSpec> {
        self.specs.iter().find(|spec| spec.name == name)
    }

    /// The elements of a parameter.
    pub fn view(&self, spec: &ParameterSpec) -> &[f32] {
        &self.data[spec.range()]
    }

    /// The elements of a parameter, to be changed.
    pub fn view_mut(&mut self, spec: &ParameterSpec) -> &mut [f32] {
        &mut self.data[spec.range()]
    }
}
