//! Which optimiser is used.

use std::path::Path;

use serde::{Deserialize, Serialize};
use spar_policy::Parameters;

use super::{AdamW, AdamWOptions, Muon, MuonOptions, Optimizer};
use crate::TrainerError;
use crate::objectives::read_options;

/// Which optimiser is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Name of the optimiser; `adamw` or `muon`. Default `adamw`.
    pub name: String,
    /// Options of the named optimiser: those of [`AdamWOptions`] or [`MuonOptions`].
    /// Default empty.
    pub options: toml::Table,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { name: "adamw".to_owned(), options: toml::Table::new() }
    }
}

type Constructor =
    fn(&toml::Table, &Parameters, Option<&Path>) -> Result<Box<dyn Optimizer>, TrainerError>;

/// An optimiser that has a name.
pub struct OptimizerEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    open: Constructor,
}

/// All optimisers that have a name; a new one is a file in this folder and a row here.
pub fn optimizer_registry() -> &'static [OptimizerEntry] {
    &[
        OptimizerEntry {
            name: "adamw",
            about: "Steps by running means of the gradient and of its square; weights decay apart from it.",
            source: "AdamW, arXiv 1711.05101",
            open: adamw,
        },
        OptimizerEntry {
            name: "muon",
            about: "Orthogonalised momentum for the matrices between hidden layers, AdamW for the rest.",
            source: "Muon, K. Jordan 2024; arXiv 2502.16982",
            open: muon,
        },
    ]
}

impl OptimizerConfig {
    /// Makes the optimiser for weights in the layout of `parameters`; its state is in a file within
    /// `folder` where there is one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::UnknownName`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options; [`TrainerError::StateFile`] that the file cannot be made.
    pub fn build(
        &self,
        parameters: &Parameters,
        folder: Option<&Path>,
    ) -> Result<Box<dyn Optimizer>, TrainerError> {
        let Some(entry) = optimizer_registry().iter().find(|entry| entry.name == self.name) else {
            let names: Vec<_> = optimizer_registry().iter().map(|entry| entry.name).collect();
            return Err(TrainerError::UnknownName {
                what: "optimizer",
                name: self.name.clone(),
                known: names.join(", "),
            });
        };
        (entry.open)(&self.options, parameters, folder)
    }

    /// The options of AdamW, which the config has to name.
    pub(crate) fn adamw(&self) -> Result<AdamWOptions, TrainerError> {
        adamw_options(&self.options).map_err(|problems| TrainerError::Config { problems })
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self.build(&Parameters::zeros(Vec::new()), None) {
            Ok(_) => Vec::new(),
            Err(TrainerError::Config { problems }) => problems,
            Err(other) => vec![other.to_string()],
        }
    }
}

fn adamw(
    options: &toml::Table,
    parameters: &Parameters,
    folder: Option<&Path>,
) -> Result<Box<dyn Optimizer>, TrainerError> {
    let options = adamw_options(options).map_err(wrong)?;
    Ok(Box::new(AdamW::new(options, parameters, folder)?))
}

fn adamw_options(options: &toml::Table) -> Result<AdamWOptions, Vec<String>> {
    let options: AdamWOptions = read_options(options)?;
    let problems = options.problems();
    if problems.is_empty() { Ok(options) } else { Err(problems) }
}

fn wrong(problems: Vec<String>) -> TrainerError {
    TrainerError::Config { problems }
}

fn muon(
    options: &toml::Table,
    parameters: &Parameters,
    folder: Option<&Path>,
) -> Result<Box<dyn Optimizer>, TrainerError> {
    let mut options = options.clone();
    // A table of Adam's options keeps Muon's default rate unless it names one.
    if let Some(toml::Value::Table(adamw)) = options.get_mut("adamw") {
        let rate = MuonOptions::default().adamw.learning_rate;
        adamw.entry("learning_rate").or_insert(toml::Value::Float(rate.into()));
    }
    let options: MuonOptions = read_options(&options).map_err(wrong)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(Muon::new(options, parameters, folder)?)),
        problems => Err(wrong(problems)),
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
        assert_eq!(config.problems(), ["find the optimizer `sgd`; known are adamw, muon"]);
    }
}
