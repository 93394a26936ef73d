//! Networks of linear layers, from features to one number.

use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{Linear, Module};
use rand::RngExt;
use spar_core::Seed;

use crate::StateError;
use crate::state::{StateReader, StateTensor};

/// Rows that are read at a time where nothing is learned, which bounds what is in memory at once.
const PIECE: usize = 1024;

/// Linear layers with ReLU between them, from rows of features to one number each.
#[derive(Debug)]
pub(crate) struct Network {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    /// `[outputs, inputs]`.
    weight: Var,
    /// `[outputs]`.
    bias: Var,
}

/// How large a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Features of a row.
    pub(crate) inputs: usize,
    /// Hidden layers.
    pub(crate) layers: usize,
    /// Numbers in each of them.
    pub(crate) hidden: usize,
}

impl Network {
    /// One with weights and biases drawn evenly from `±1 / sqrt(inputs)` of their layer, PyTorch's initial ones.
    pub(crate) fn fresh(shape: Shape, seed: Seed, device: &Device) -> Result<Self> {
        let mut sizes = vec![shape.inputs];
        sizes.extend(std::iter::repeat_n(shape.hidden, shape.layers));
        sizes.push(1);
        let mut rng = seed.rng();
        let mut layers = Vec::with_capacity(sizes.len() - 1);
        for pair in sizes.windows(2) {
            let bound = 1.0 / (pair[0] as f32).sqrt();
            let mut draw =
                |count| (0..count).map(|_| rng.random_range(-bound..bound)).collect::<Vec<f32>>();
            let weight = Var::from_vec(draw(pair[0] * pair[1]), (pair[1], pair[0]), device)?;
            layers.push(Layer { weight, bias: Var::from_vec(draw(pair[1]), pair[1], device)? });
        }
        Ok(Self { layers })
    }

    /// The numbers of rows `[rows, inputs]`, `[rows]`, to be differentiated.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let mut values = rows.clone();
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                values = values.relu()?;
            }
            let (weight, bias) = (layer.weight.as_tensor(), layer.bias.as_tensor());
            values = Linear::new(weight.clone(), Some(bias.clone())).forward(&values)?;
        }
        values.squeeze(1)
    }

    /// The numbers of rows that lie one behind the other, a piece of them at a time.
    pub(crate) fn values(&self, rows: &[f32], inputs: usize, device: &Device) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(rows.len() / inputs);
        for piece in rows.chunks(PIECE * inputs) {
            let piece = Tensor::from_slice(piece, (piece.len() / inputs, inputs), device)?;
            values.extend(self.forward(&piece)?.detach().to_vec1::<f32>()?);
        }
        Ok(values)
    }

    /// Its variables, in a fixed order.
    pub(crate) fn variables(&self) -> Vec<Var> {
        self.layers.iter().flat_map(|layer| [layer.weight.clone(), layer.bias.clone()]).collect()
    }

    /// One of its own with the same weights.
    pub(crate) fn copy(&self) -> Result<Self> {
        let copy = |var: &Var| Var::from_tensor(&var.as_detached_tensor().copy()?);
        let layer =
            |layer: &Layer| Ok(Layer { weight: copy(&layer.weight)?, bias: copy(&layer.bias)? });
        Ok(Self { layers: self.layers.iter().map(layer).collect::<Result<_>>()? })
    }

    /// Moves it by the share `step` towards another one: Polyak averaging, `own <- (1 - step) own + step other`.
    pub(crate) fn follow(&self, other: &Self, step: f64) -> Result<()> {
        for (own, other) in self.variables().iter().zip(other.variables()) {
            let kept = (own.as_detached_tensor() * (1.0 - step))?;
            own.set(&(kept + (other.as_detached_tensor() * step)?)?)?;
        }
        Ok(())
    }

    /// Its weights under a name, for a state.
    pub(crate) fn tensors(&self, name: &str) -> Result<Vec<StateTensor>> {
        let named = self.variables().into_iter().zip(names(name));
        let read = |(var, name): (Var, String)| {
            let shape = var.dims().to_vec();
            let values = var.as_detached_tensor().flatten_all()?.to_vec1::<f32>()?;
            Ok(StateTensor { name, shape, values })
        };
        named.map(read).collect()
    }

    /// One of the same shape with the weights that a state has under a name.
    pub(crate) fn read(
        &self,
        name: &str,
        state: &StateReader<'_>,
    ) -> std::result::Result<Self, StateError> {
        let mut read = self.variables().into_iter().zip(names(name)).map(|(var, name)| {
            let values = state.numbers(&name, var.dims())?;
            let read = Var::from_vec(values, var.dims(), var.device());
            read.map_err(|error| StateError::Device(Box::new(error)))
        });
        let mut layers = Vec::with_capacity(self.layers.len());
        while let (Some(weight), Some(bias)) = (read.next(), read.next()) {
            layers.push(Layer { weight: weight?, bias: bias? });
        }
        Ok(Self { layers })
    }
}

/// Names of variables in their order.
fn names(network: &str) -> impl Iterator<Item = String> + '_ {
    (0..).flat_map(move |layer| ["weight", "bias"].map(|part| format!("{network}.{layer}.{part}")))
}
