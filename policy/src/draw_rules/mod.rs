//! Draw rules: the logits of one or more models in, the logits that a token is drawn from out.
//!
//! ```text
//! main model ───logits──┐
//!                       ├─▶ leave_out ─▶ combine ─▶ bias, penalties, masks, temperature, cuts ─▶ draw
//! other models ─logits──┘        (DrawRule)                      (sampling)
//! ```
//!
//! The main model is the policy, which is served and trained. The others read the same tokens beside it, and are
//! constants to training. A rule sees the logits of the tokens that a constraint allows, or those of the whole
//! vocabulary, before any stage of [`sampling`](crate::sampling).
//!
//! # Which log-probability is recorded
//!
//! That of the draw that was made: of the distribution behind the rule and behind all other stages. A trainer computes it
//! anew with [`LoadedDrawRule::judge`], to the bit, and its gradient by the main model's weights with
//! [`LoadedDrawRule::learn`]. Tokens that a rule leaves out are treated as those that top-p leaves out: the
//! tokens that were left are recorded, and the log-probability is renormalised over them; which ones stay is a constant to the gradient.
//!
//! # Neutral settings
//!
//! Every row has options by which it changes nothing, to the bit, whatever the other models say; tests walk the table.
//!
//! ```
//! use spar_policy::draw_rules::{DrawRuleConfig, open_draw_rule};
//!
//! let written = r#"{ "kind": "contrastive", "amateur": "base", "beta": 0.5, "alpha": 0.1 }"#;
//! let config: DrawRuleConfig = serde_json::from_str(written)?;
//! let rule = open_draw_rule(&config)?;
//! let mut logits = [2.0, 1.0];
//! rule.combine(&mut logits, &[&[1.0, 3.0]]);
//! assert_eq!(logits, [2.5, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod contrastive;
mod cuts;
mod judge;
mod loaded;
mod registry;
mod tuned_difference;
mod value_weighted;

use std::fmt::Debug;

pub use self::loaded::{DrawRuleError, LoadedDrawRule};
pub use self::registry::{
    DrawRuleConfig, DrawRuleRow, NamedDrawRule, PLAIN, draw_rule_registry, open_draw_rule,
};

/// Makes the logits that a token is drawn from of those of one or more models.
///
/// A rule has two parts: which tokens are left out, and what the logits of the others become. The second may be asked
/// for a part of the tokens alone, those that were left in the end, and has to give these the same up to a constant
/// that they have in common.
pub trait DrawRule: Debug + Send + Sync {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// The models beside the main one, in the order in which their logits are handed over. Default: none.
    fn models(&self) -> Vec<RuleModel> {
        Vec::new()
    }

    /// Whether tokens may be left out. Default: none are.
    fn leaves_out(&self) -> bool {
        false
    }

    /// Sets `stays` to false for tokens that cannot be drawn, but never for all; `logits`, each of `others` and `stays` are of
    /// the same tokens, and `stays` is true before. Default: all stay.
    fn leave_out(&self, logits: &[f32], others: &[&[f32]], stays: &mut [bool]) {
        let _ = (logits, others, stays);
    }

    /// Turns the main model's logits into those that are drawn from; each of `others` is of the same tokens.
    fn combine(&self, logits: &mut [f32], others: &[&[f32]]);

    /// Turns the gradient by what [`combine`](Self::combine) makes of these logits into that by the main model's logits: the
    /// product of the vector with the Jacobian, in place.
    fn backward(&self, logits: &[f32], others: &[&[f32]], gradient: &mut [f32]);
}

/// A model beside the main one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleModel {
    /// The option that names it.
    pub option: &'static str,
    /// Which one it is.
    pub source: ModelSource,
}

/// Which model stands beside the main one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// The weights below the main model's adapter; they are in memory once.
    Base,
    /// A checkpoint of its own: a folder, or a name on the hub.
    Checkpoint(String),
}

impl RuleModel {
    /// The model that an option's value means: `base`, or a checkpoint.
    pub fn new(option: &'static str, value: &str) -> Self {
        let source = match value {
            "base" => ModelSource::Base,
            checkpoint => ModelSource::Checkpoint(checkpoint.to_owned()),
        };
        Self { option, source }
    }
}

#[cfg(test)]
mod tests;
