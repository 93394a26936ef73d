//! All weights of a model in one flat buffer.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Weak};

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

/// Numbers that clones share until one of them changes its own, which then copies them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SharedBuffer(Arc<Vec<f32>>);

impl SharedBuffer {
    /// Whether both are the same memory.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Finds out later whether this is still what it was: a change of the numbers leaves the
    /// reference behind.
    pub(crate) fn downgrade(&self) -> Weak<Vec<f32>> {
        Arc::downgrade(&self.0)
    }

    /// Whether the reference is to these very numbers.
    pub(crate) fn is(&self, reference: &Weak<Vec<f32>>) -> bool {
        reference.upgrade().is_some_and(|values| Arc::ptr_eq(&values, &self.0))
    }
}

impl From<Vec<f32>> for SharedBuffer {
    fn from(values: Vec<f32>) -> Self {
        Self(Arc::new(values))
    }
}

impl<'a> IntoIterator for &'a SharedBuffer {
    type Item = &'a f32;
    type IntoIter = std::slice::Iter<'a, f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Deref for SharedBuffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for SharedBuffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        let values: &mut Vec<f32> = Arc::make_mut(&mut self.0);
        values
    }
}

/// All weights of a model in one flat buffer; gradients and optimiser states have the same layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// What lies where; shared, because every copy has the same layout.
    pub specs: Arc<[ParameterSpec]>,
    /// The weights; a clone costs nothing until one side changes them.
    pub data: SharedBuffer,
}

impl Parameters {
    /// Zeros in the layout of `shapes`, given as name, shape and kind in order.
    pub fn zeros(shapes: Vec<(String, Vec<usize>, ParameterKind)>) -> Self {
        let empty = Self::layout(shapes);
        let len = empty.specs.last().map_or(0, |spec| spec.range().end);
        Self { data: vec![0.0; len].into(), ..empty }
    }

    /// As [`Parameters::zeros`], the layout alone without a number.
    pub(crate) fn layout(shapes: Vec<(String, Vec<usize>, ParameterKind)>) -> Self {
        let mut offset = 0;
        let mut specs = Vec::with_capacity(shapes.len());
        for (name, shape, kind) in shapes {
            let spec = ParameterSpec { name, shape, offset, kind };
            offset += spec.len();
            specs.push(spec);
        }
        Self { specs: specs.into(), data: SharedBuffer::default() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_memory_until_one_changes() {
        let shapes = vec![("a".to_owned(), vec![3], ParameterKind::Vector)];
        let mut parameters = Parameters::zeros(shapes);
        let published = parameters.clone();
        assert!(published.data.is_shared_with(&parameters.data));
        parameters.data[1] = 2.0;
        assert!(!published.data.is_shared_with(&parameters.data));
        assert_eq!((published.data[1], parameters.data[1]), (0.0, 2.0));
    }
}
