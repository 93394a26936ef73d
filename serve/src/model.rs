//! What is served.

use std::sync::Arc;

use spar_core::PolicyVersion;
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
        let generator = Generator::new(name, &tokenizer, weights, PolicyVersion(0), config)
            .map_err(ServeError::Engines)?;
        let grammars = GrammarCache::new(tokenizer.clone(), weights.config().vocab_size);
        Ok(Self { name: name.to_owned(), tokenizer, generator, grammars })
    }
}
