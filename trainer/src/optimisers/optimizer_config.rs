//! Which optimiser is used.

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

type Constructor = fn(&toml::Table, &Parameters) -> Result<Box<dyn Optimizer>, Vec<String>>;

/// Every optimiser; a new one is a file in this folder and a line here.
const OPTIMIZERS: &[(&str, Constructor)] = &[("adamw", adamw), ("muon", muon)];

/// The names [`OptimizerConfig::name`] can have.
pub fn optimizer_names() -> impl Iterator<Item = &'static str> {
    OPTIMIZERS.iter().map(|(name, _)| *name)
}

impl OptimizerConfig {
    /// Makes the optimiser for weights in the layout of `parameters`.
    ///
    /// # Errors
    ///
    /// [`TrainerError::UnknownName`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options.
    pub fn build(&self, parameters: &Parameters) -> Result<Box<dyn Optimizer>, TrainerError> {
        let Some((_, constructor)) = OPTIMIZERS.iter().find(|(name, _)| *name == self.name) else {
            return Err(TrainerError::UnknownName {
                what: "optimizer",
                name: self.name.clone(),
                known: optimizer_names().collect::<Vec<_>>().join(", "),
            });
        };
        constructor(&self.options, parameters).map_err(|problems| TrainerError::Config { problems })
    }

    /// The options of AdamW, which the config has to name.
    pub(crate) fn adamw(&self) -> Result<AdamWOptions, TrainerError> {
        adamw_options(&self.options).map_err(|problems| TrainerError::Config { problems })
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self.build(&Parameters::zeros(Vec::new())) {
            Ok(_) => Vec::new(),
            Err(TrainerError::Config { problems }) => problems,
            Err(other) => vec![other.to_string()],
        }
    }
}

fn adamw(
    options: &toml::Table,
    parameters: &Parameters,
) -> Result<Box<dyn Optimizer>, Vec<String>> {
    Ok(Box::new(AdamW::new(adamw_options(options)?, parameters)))
}

fn adamw_options(options: &toml::Table) -> Result<AdamWOptions, Vec<String>> {
    let options: AdamWOptions = read_options(options)?;
    let problems = options.problems();
    if problems.is_empty() { Ok(options) } else { Err(problems) }
}

fn muon(options: &toml::Table, parameters: &Parameters) -> Result<Box<dyn Optimizer>, Vec<String>> {
    let mut options = options.clone();
    // A table of Adam's options keeps Muon's default rate unless it names one.
    if let Some(toml::Value::Table(adamw)) = options.get_mut("adamw") {
        let rate = MuonOptions::default().adamw.learning_rate;
        adamw.entry("learning_rate").or_insert(toml::Value::Float(rate.into()));
    }
    let options: MuonOptions = read_options(&options)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(Muon::new(options, parameters))),
        problems => Err(problems),
    }
}

#[cfg(test)]
mod tests {
    use spar_policy::ParameterKind;

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
        for name in optimizer_names() {
            let config = OptimizerConfig { name: name.to_owned(), ..OptimizerConfig::default() };
            let mut weights = parameters();
            let mut optimizer = config.build(&weights).unwrap();
            assert_eq!(optimizer.name(), name);
            (0..3).for_each(|k| optimizer.update(&mut weights, &gradient(k), 1.0));
            let mut resumed_weights = weights.clone();
            let mut resumed = config.build(&weights).unwrap();
            resumed.load_state(&optimizer.state()).unwrap();
            for k in 3..6 {
                optimizer.update(&mut weights, &gradient(k), 0.5);
                resumed.update(&mut resumed_weights, &gradient(k), 0.5);
            }
            assert_eq!(weights, resumed_weights);
            assert_eq!(optimizer.state(), resumed.state());
            assert!(resumed.load_state(&optimizer.state()[..2]).is_err());
            assert_eq!(optimizer.state(), resumed.state());
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
