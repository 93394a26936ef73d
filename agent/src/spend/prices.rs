//! What tokens cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use spar_core::Spend;

use super::SpendError;

/// What the tokens of a model cost at an endpoint, by the million.
///
/// Thoughts that an endpoint counts among the tokens of its answer cost as these do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A million tokens of prompts; 0 or more.
    pub input: f64,
    /// A million tokens of prompts that the endpoint had cached; 0 or more. Default absent: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// A million tokens of answers; 0 or more.
    pub output: f64,
    /// What these are in. Default `USD`.
    #[serde(default = "usd")]
    pub currency: String,
}

fn usd() -> String {
    "USD".to_owned()
}

/// Where prices come from: the table itself, or a file with those of several models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PriceSource {
    /// A TOML file with a table `models`, in which each model has its prices.
    File(PathBuf),
    /// The prices.
    Inline(Prices),
}

/// What stands in a price list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    models: BTreeMap<String, Prices>,
}

impl Prices {
    /// All that is wrong with them.
    pub fn problems(&self) -> Vec<String> {
        let all = [
            ("input", Some(self.input)),
            ("cached_input", self.cached_input),
            ("output", Some(self.output)),
        ];
        let is_wrong = |price: &f64| !(price.is_finite() && *price >= 0.0);
        let wrong =
            all.into_iter().filter_map(|(name, price)| Some((name, price.filter(is_wrong)?)));
        let told =
            wrong.map(|(name, price)| format!("prices.{name} is {price}, must be 0 or more"));
        told.collect()
    }

    /// What so many tokens cost; those that were cached are among the prompts'.
    pub fn cost(&self, input_tokens: u64, cached_tokens: u64, output_tokens: u64) -> f64 {
        let cached = cached_tokens.min(input_tokens);
        let price_of_cached = self.cached_input.unwrap_or(self.input);
        let input = (input_tokens - cached) as f64 * self.input + cached as f64 * price_of_cached;
        (input + output_tokens as f64 * self.output) / 1e6
    }

    /// Whichever token of a prompt costs most.
    pub(super) fn most_for_input(&self) -> f64 {
        self.input.max(self.cached_input.unwrap_or(self.input))
    }

    /// The same with its cost.
    pub(super) fn priced(&self, spend: Spend) -> Spend {
        let Spend { input_tokens, cached_tokens, output_tokens, .. } = spend;
        Spend { cost: self.cost(input_tokens, cached_tokens, output_tokens), ..spend }
    }
}

impl PriceSource {
    /// The prices of a model.
    ///
    /// # Errors
    ///
    /// [`SpendError`] when the file cannot be read or does not have the model, or a price is out of range.
    pub fn of(&self, model: &str) -> Result<Prices, SpendError> {
        let prices = match self {
            Self::Inline(prices) => prices.clone(),
            Self::File(path) => listed(path, model)?,
        };
        let problems = prices.problems();
        if problems.is_empty() { Ok(prices) } else { Err(SpendError::Problems { problems }) }
    }
}

/// As it is typed: a file, or prices such as `input=2.5,cached_input=0.25,output=10,currency=EUR`.
impl FromStr for PriceSource {
    type Err = SpendError;

    fn from_str(text: &str) -> Result<Self, SpendError> {
        if !text.contains('=') {
            return Ok(Self::File(text.into()));
        }
        let fail = |detail: String| SpendError::Prices { text: text.to_owned(), detail };
        let mut table = toml::Table::new();
        for part in text.split(',') {
            let (name, value) =
                part.split_once('=').ok_or_else(|| fail(format!("`{part}` names no price")))?;
            let value = match value.trim().parse::<f64>() {
                Ok(number) if name.trim() != "currency" => toml::Value::Float(number),
                _ => toml::Value::String(value.trim().to_owned()),
            };
            if table.insert(name.trim().to_owned(), value).is_some() {
                return Err(fail(format!("`{}` stands there twice", name.trim())));
            }
        }
        let prices: Prices = table
            .try_into()
            .map_err(|error: toml::de::Error| fail(error.message().replace('\n', " ")))?;
        Ok(Self::Inline(prices))
    }
}

fn listed(path: &Path, model: &str) -> Result<Prices, SpendError> {
    let fail = |detail: String| SpendError::PriceList { path: path.to_owned(), detail };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let list: PriceList = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
    let known = || {
        let names: Vec<_> = list.models.keys().map(|name| format!("`{name}`")).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    list.models.get(model).cloned().ok_or_else(|| SpendError::UnknownModel {
        model: model.to_owned(),
        path: path.to_owned(),
        known: known(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_a_price_of_their_own() {
        let source: PriceSource =
            "input=2, cached_input=0.5,output=8,currency=EUR".parse().unwrap();
        let prices = source.of("any").unwrap();
        assert_eq!(prices.currency, "EUR");
        assert_eq!(prices.cost(1_000_000, 400_000, 500_000), 1.2 + 0.2 + 4.0);
        assert_eq!(prices.cost(1, 5, 0), 0.5e-6, "no more is cached than there is");
        let flat: PriceSource = "input=2,output=8".parse().unwrap();
        assert_eq!(flat.of("any").unwrap().cost(1_000_000, 400_000, 0), 2.0);
    }

    #[test]
    fn what_is_no_price_is_told() {
        for (text, told) in [
            ("input=2", "output"),
            ("input=2,output=3,inputs=4", "inputs"),
            ("input=2,input=3,output=1", "twice"),
            ("input=two,output=3", "two"),
        ] {
            let error = text.parse::<PriceSource>().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let negative: PriceSource = "input=-2,output=inf".parse().unwrap();
        let error = negative.of("any").unwrap_err().to_string();
        assert!(error.contains("prices.input is -2") && error.contains("prices.output is inf"));
    }

    #[test]
    fn a_list_has_prices_by_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.toml");
        std::fs::write(&path, "[models.\"small-1\"]\ninput = 1\noutput = 2.5\n").unwrap();
        let source: PriceSource = path.to_str().unwrap().parse().unwrap();
        assert_eq!(source.of("small-1").unwrap().output, 2.5);
        let error = source.of("large").unwrap_err().to_string();
        assert!(error.contains("`large`") && error.contains("`small-1`"), "{error}");
        std::fs::write(&path, "[small]\n").unwrap();
        assert!(matches!(source.of("small"), Err(SpendError::PriceList { .. })));
        assert!(PriceSource::File("absent.toml".into()).of("m").is_err());
    }
}
