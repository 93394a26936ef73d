//! The draw rules that have a name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use super::DrawRule;
use super::contrastive::{Contrastive, ContrastiveOptions};
use super::cuts::{Cut, MinPOptions, TemperatureOptions, TopKOptions, TopPOptions};
use super::tuned_difference::{TunedDifference, TunedDifferenceOptions};
use super::value_weighted::{ValueWeighted, ValueWeightedOptions};

/// The name of the rule that changes nothing.
pub const PLAIN: &str = "plain";

/// Which rule makes the logits that tokens are drawn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DrawRuleConfig {
    /// Name of the rule; one in [`draw_rule_registry`]. Default `plain`.
    pub kind: String,
    /// The options of the named rule. Default empty.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for DrawRuleConfig {
    fn default() -> Self {
        Self { kind: PLAIN.to_owned(), options: Options::new() }
    }
}

impl DrawRuleConfig {
    /// Whether tokens are drawn from the policy's logits as they are, so that nothing has to be loaded.
    pub fn is_plain(&self) -> bool {
        self.kind == PLAIN
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        open_draw_rule(self).err().iter().flat_map(RowError::problems).collect()
    }
}

/// What opens a rule, and how it changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct NamedDrawRule {
    /// Makes the rule of options.
    pub open: fn(&Given<'_>) -> Result<Arc<dyn DrawRule>, RowError>,
    /// Options by which it changes nothing, to the bit, whatever other models say. Names of checkpoints among them stand for
    /// any.
    pub neutral: fn() -> Options,
}

/// A rule that has a name.
pub type DrawRuleRow = Row<NamedDrawRule>;

const AXIS: Axis = Axis {
    name: "draw-rules",
    what: "draw rule",
    about: "What tokens are drawn by, in `[draw_rule]`.",
};

const ROWS: &[DrawRuleRow] = &[
    Row {
        name: PLAIN,
        about: "Draws from the policy's logits as they are.",
        source: "own",
        formula: "z_v = m_v",
        options: OptionSet::NONE,
        open: NamedDrawRule { open: |_| Ok(Arc::new(Plain)), neutral: Options::new },
    },
    Row {
        name: "temperature",
        about: "Divides the logits, ahead of the temperature that requests ask for.",
        source: "the usual softmax temperature",
        formula: "z_v = m_v / temperature",
        options: OptionSet::of::<TemperatureOptions>(),
        open: NamedDrawRule {
            open: |given| Ok(Arc::new(Cut::temperature(&given.read()?))),
            neutral: || options(json!({ "temperature": 1.0 })),
        },
    },
    Row {
        name: "top_k",
        about: "Leaves the best tokens, counted, ahead of the cuts that requests ask for.",
        source: "Fan et al. 2018, arXiv 1805.04833",
        formula: "z_v = m_v where m_v is at least the k-th best logit",
        options: OptionSet::of::<TopKOptions>(),
        open: NamedDrawRule {
            open: |given| Ok(Arc::new(Cut::top_k(&given.read()?))),
            neutral: Options::new,
        },
    },
    Row {
        name: "top_p",
        about: "Leaves the fewest best tokens with a probability, ahead of the cuts that requests ask for.",
        source: "nucleus sampling, Holtzman et al. 2020, arXiv 1904.09751",
        formula: "z_v = m_v where the better tokens have less than p of the probability",
        options: OptionSet::of::<TopPOptions>(),
        open: NamedDrawRule {
            open: |given| Ok(Arc::new(Cut::top_p(&given.read()?))),
            neutral: || options(json!({ "p": 1.0 })),
        },
    },
    Row {
        name: "min_p",
        about: "Leaves tokens of a share of the best one's probability, ahead of the cuts that requests ask for.",
        source: "Nguyen et al. 2024, arXiv 2407.01082",
        formula: "z_v = m_v where p_v >= p max_w p_w",
        options: OptionSet::of::<MinPOptions>(),
        open: NamedDrawRule {
            open: |given| Ok(Arc::new(Cut::min_p(&given.read()?))),
            neutral: || options(json!({ "p": 0.0 })),
        },
    },
    Row {
        name: "contrastive",
        about: "Goes further where an expert, the policy, differs from an amateur, among what the expert finds plausible.",
        source: "contrastive decoding, Li et al. 2023, arXiv 2210.15097 (plausible tokens); O'Brien and Lewis 2023, arXiv 2309.09117 (the difference)",
        formula: "z_v = (1 + beta) e_v - beta a_v / amateur_temperature where p_e(v) >= alpha max_w p_e(w)",
        options: OptionSet::of::<ContrastiveOptions>(),
        open: NamedDrawRule {
            open: |given| Ok(Arc::new(Contrastive::new(given.read()?))),
            neutral: || options(json!({ "amateur": "amateur", "beta": 0.0, "alpha": 0.0 })),
        },
    },
    Row {
        name: "value_weighted",
        about: "Adds what value models say of the next tokens.",
        source: "value augmented sampling, Han et al. 2024, arXiv 2405.06639; values as the logits of models of their own",
        formula: "z_v = m_v + beta sum_i weights_i q_i(v) where v is one of the candidates",
        options: OptionSet::of::<ValueWeightedOptions>(),
        open: NamedDrawRule {
            open: |given| match ValueWeighted::new(given.read()?) {
                Ok(rule) => Ok(Arc::new(rule)),
                Err(problems) => Err(refused("value_weighted", problems)),
            },
            neutral: || options(json!({ "values": ["one", "another"], "beta": 0.0 })),
        },
    },
    Row {
        name: "tuned_difference",
        about: "Adds what tuning changed of a small model to a large one, the policy.",
        source: "proxy tuning, Liu et al. 2024, arXiv 2401.08565; RAST, arXiv 2506.15710, with its weight; DExperts, arXiv 2105.03023",
        formula: "z_v = m_v + weight (t_v - u_v)",
        options: OptionSet::of::<TunedDifferenceOptions>(),
        open: NamedDrawRule {
            open: |given| match TunedDifference::new(given.read()?) {
                Ok(rule) => Ok(Arc::new(rule)),
                Err(problems) => Err(refused("tuned_difference", problems)),
            },
            neutral: || options(json!({ "tuned": "tuned", "untuned": "untuned", "weight": 0.0 })),
        },
    },
];

static TABLE: Table<NamedDrawRule> = Table::new(AXIS, ROWS);

/// All rules that have a name; a new one is a file in this folder and a row here.
pub fn draw_rule_registry() -> &'static Table<NamedDrawRule> {
    &TABLE
}

/// Makes a rule.
///
/// # Errors
///
/// [`RowError`] when no rule has the name, or tells all that is wrong with the options.
pub fn open_draw_rule(config: &DrawRuleConfig) -> Result<Arc<dyn DrawRule>, RowError> {
    let (row, given) = draw_rule_registry().choose(&config.kind, &config.options)?;
    (row.open.open)(&given)
}

/// The logits as they are.
#[derive(Debug)]
struct Plain;

impl DrawRule for Plain {
    fn name(&self) -> &'static str {
        PLAIN
    }

    fn combine(&self, _: &mut [f32], _: &[&[f32]]) {}

    fn backward(&self, _: &[f32], _: &[&[f32]], _: &mut [f32]) {}
}

fn options(written: serde_json::Value) -> Options {
    match written {
        serde_json::Value::Object(options) => options,
        _ => unreachable!("options are written as an object"),
    }
}

fn refused(name: &str, problems: Vec<String>) -> RowError {
    RowError::refuse(AXIS.what, name, problems).expect_err("something is wrong")
}
