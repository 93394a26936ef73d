//! Draw rules that were typed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use spar::core::registry::to_options;
use spar::draw_rules::{RuledPolicy, asks_base, load_draw_rule};
use spar::policy::checkpoint::{self, KeepAs};
use spar::policy::draw_rules::{DrawRuleConfig, LoadedDrawRule};
use spar::policy::{Tokenizer, Weights};
use spar::recipe::{Recipe, setting_value};

use crate::cli::DrawRuleArguments;

/// The rule that was typed, or else that of the recipe.
fn draw_rule_config(
    arguments: &DrawRuleArguments,
    recipe: Option<&Recipe>,
) -> anyhow::Result<DrawRuleConfig> {
    let Some(kind) = arguments.draw_rule.clone() else {
        return Ok(recipe.and_then(|recipe| recipe.draw_rule.clone()).unwrap_or_default());
    };
    let mut options = toml::Table::new();
    for option in &arguments.draw_options {
        let (name, value) = option
            .split_once('=')
            .with_context(|| format!("read `--draw-option {option}`: write `NAME=VALUE`"))?;
        ensure!(!options.contains_key(name), "read `--draw-option {name}`: it is there twice");
        options.insert(name.trim().to_owned(), setting_value(value));
    }
    Ok(DrawRuleConfig { kind, options: to_options(&options) })
}

/// Opens the rule that was typed, or else that of the recipe, for the model in `folder`.
pub(crate) async fn open_drawing(
    arguments: &DrawRuleArguments,
    recipe: Option<&Recipe>,
    folder: &Path,
    (weights, tokenizer): (&Weights, &Tokenizer),
    keep: KeepAs,
) -> anyhow::Result<Option<Arc<LoadedDrawRule>>> {
    let config = draw_rule_config(arguments, recipe)?;
    let base = match asks_base(&config)? && checkpoint::is_adapter(folder) {
        true => {
            let below = checkpoint::base_of(folder)?;
            let weights = checkpoint::open_weights(&below, keep);
            Some(Arc::new(weights.with_context(|| format!("load `{}`", below.display()))?))
        }
        false => None,
    };
    let vocabulary = weights.config().vocab_size;
    let policy = RuledPolicy { tokenizer, vocabulary, base: base.as_ref() };
    load_draw_rule(&config, policy, keep).await
}
