//! What is served.

use std::sync::Arc;

use spar_core::PolicyVersion;
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::{Generator, GeneratorConfig, GrammarCache, Tokenizer, Weights};

use crate::ServeError;

/// A model that is served under a name.
pub struct ServedModel {
    pub(crate) name: String,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) generator: Generator,
    pub(crate) grammars: GrammarCache,
}

impl ServedModel {
    /// Starts engines on the weights, which become version 0.
    ///
    /// # Errors
    ///
    /// [`ServeError::Engines`].
    pub fn new(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: &Arc<Weights>,
        config: GeneratorConfig,
    ) -> Result<Self, ServeError> {
        Self::with_draw_rule(name, tokenizer, weights, None, config)
    }

    /// As [`ServedModel::new`], the tokens of all answers being drawn by a rule where there is one: what requests ask for
    /// (temperature, cuts, penalties, bias, masks) is applied to what the rule gives.
    ///
    /// # Errors
    ///
    /// [`ServeError::Engines`].
    ///
    /// # Panics
    ///
    /// When a model of the rule has another vocabulary than the weights.
    pub fn with_draw_rule(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: &Arc<Weights>,
        rule: Option<&Arc<LoadedDrawRule>>,
        config: GeneratorConfig,
    ) -> Result<Self, ServeError> {
        let version = PolicyVersion(0);
        let generator = match rule {
            Some(rule) => {
                Generator::with_draw_rule(name, &tokenizer, weights, version, rule, config)
            }
            None => Generator::new(name, &tokenizer, weights, version, config),
        };
        let generator = generator.map_err(ServeError::Engines)?;
        let grammars = GrammarCache::new(tokenizer.clone(), weights.config().vocab_size);
        Ok(Self { name: name.to_owned(), tokenizer, generator, grammars })
    }
}
