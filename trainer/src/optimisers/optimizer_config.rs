//! Which optimiser is used.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table, to_options};
use spar_policy::Parameters;

use super::{AdamW, AdamWOptions, Muon, MuonOptions, Optimizer};
use crate::TrainerError;

/// Which optimiser is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Name of the optimiser; `adamw` or `muon`. Default `adamw`.
    pub name: String,
    /// Options of the named optimiser: those of [`AdamWOptions`] or [`MuonOptions`].
    /// Default empty.
    #[schemars(with = "Options")]
    pub options: toml::Table,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { name: "adamw".to_owned(), options: toml::Table::new() }
    }
}

/// Makes an optimiser from its options for weights in a layout; its state is in a file within a folder where there is one.
pub type OpenOptimizer =
    fn(&Given<'_>, &Parameters, Option<&Path>) -> Result<Box<dyn Optimizer>, TrainerError>;

/// An optimiser that has a name.
pub type OptimizerRow = Row<OpenOptimizer>;

const AXIS: Axis = Axis {
    name: "optimizers",
    what: "optimizer",
    about: "How gradients become changes of the weights.",
};

const ROWS: &[OptimizerRow] = &[
    Row {
        name: "adamw",
        about: "Steps by running means of the gradient and of its square; weights decay apart from it.",
        source: "AdamW, arXiv 1711.05101, algorithm 2; Adam, arXiv 1412.6980, algorithm 1",
        formula: "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; \
                  w = w (1 - rate decay) - rate (m / (1 - beta1^k)) / (sqrt(v / (1 - beta2^k)) + epsilon)",
        options: OptionSet::of::<AdamWOptions>(),
        open: |given, parameters, folder| {
            Ok(Box::new(AdamW::new(given.read()?, parameters, folder)?))
        },
    },
    Row {
        name: "muon",
        about: "Orthogonalised momentum for the matrices between hidden layers, AdamW for the rest.",
        source: "Muon, K. Jordan 2024; arXiv 2502.16982",
        formula: "m = momentum m + (1 - momentum) g; \
                  w = w (1 - rate decay) - rate sqrt(max(1, out / in)) orthogonalize(m), with Nesterov of the next m",
        options: OptionSet::of::<MuonOptions>(),
        open: |given, parameters, folder| {
            Ok(Box::new(Muon::new(given.read()?, parameters, folder)?))
        },
    },
];

static TABLE: Table<OpenOptimizer> = Table::new(AXIS, ROWS);

/// All optimisers that have a name; a new one is a file in this folder and a row here.
pub fn optimizer_registry() -> &'static Table<OpenOptimizer> {
    &TABLE
}

impl OptimizerConfig {
    /// Makes the optimiser for weights in the layout of `parameters`; its state is in a file within
    /// `folder` where there is one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Row`] lists the known names, or tells all that is wrong with the options;
    /// [`TrainerError::StateFile`] that the file cannot be made.
    pub fn build(
        &self,
        parameters: &Parameters,
        folder: Option<&Path>,
    ) -> Result<Box<dyn Optimizer>, TrainerError> {
        let options = to_options(&self.options);
        let (row, given) = optimizer_registry().choose(&self.name, &options)?;
        (row.open)(&given, parameters, folder)
    }

    /// The options of AdamW, which the config has to name.
    pub(crate) fn adamw(&self) -> Result<AdamWOptions, TrainerError> {
        let options = to_options(&self.options);
        let (_, given) = optimizer_registry().choose("adamw", &options)?;
        Ok(given.read()?)
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let options = to_options(&self.options);
        let chosen = optimizer_registry().choose(&self.name, &options);
        chosen.err().map(|error| error.problems()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use spar_policy::ParameterKind;
    use spar_policy::checkpoint::TensorFile;

    use super::super::{StateReader, write_state};
    use super::*;

    fn parameters() -> Parameters {
        Parameters::zeros(vec![
            ("m".to_owned(), vec![3, 2], ParameterKind::Matrix),
            ("e".to_owned(), vec![2, 2], ParameterKind::Embedding),
            ("v".to_owned(), vec![2], ParameterKind::Vector),
        ])
    }

    #[test]
    fn every_optimizer_goes_on_to_the_bit_from_its_state() {
        let gradient = |k: usize| -> Vec<f32> {
            (0..12).map(|i| ((i * 7 + k * 5) % 11) as f32 - 5.0).collect()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let save = |optimizer: &dyn Optimizer| {
            write_state(&path, &optimizer.state()).unwrap();
            std::fs::read(&path).unwrap()
        };
        for (name, place) in optimizer_registry()
            .iter()
            .map(|entry| entry.name)
            .flat_map(|name| [None, Some(folder.path())].map(|place| (name, place)))
        {
            let config = OptimizerConfig { name: name.to_owned(), ..OptimizerConfig::default() };
            let mut weights = parameters();
            let mut optimizer = config.build(&weights, None).unwrap();
            assert_eq!(optimizer.name(), name);
            (0..3).for_each(|k| optimizer.update(&mut weights, &gradient(k), 1.0).unwrap());
            let mut resumed_weights = weights.clone();
            let mut resumed = config.build(&weights, place).unwrap();
            save(optimizer.as_ref());
            let mut file = TensorFile::open(path.clone()).unwrap();
            resumed.load_state(StateReader::new(&mut file)).unwrap();
            for k in 3..6 {
                optimizer.update(&mut weights, &gradient(k), 0.5).unwrap();
                resumed.update(&mut resumed_weights, &gradient(k), 0.5).unwrap();
            }
            assert_eq!(weights, resumed_weights);
            let state = save(resumed.as_ref());
            assert_eq!(save(optimizer.as_ref()), state);
            write_state(&path, &optimizer.state()[..2]).unwrap();
            let mut file = TensorFile::open(path.clone()).unwrap();
            assert!(resumed.load_state(StateReader::new(&mut file)).is_err());
            assert_eq!(save(resumed.as_ref()), state);
        }
    }

    #[test]
    fn wrong_options_are_told_together() {
        let config: OptimizerConfig =
            toml::from_str("name = 'muon'\noptions = { momentum = 1, adamw = { beta1 = 2 } }")
                .unwrap();
        assert_eq!(config.problems().len(), 2);
        let config: OptimizerConfig = toml::from_str("name = 'sgd'").unwrap();
        assert_eq!(config.problems(), ["find optimizer `sgd`: known are `adamw`, `muon`"]);
    }
}
