//! What is served.

use std::sync::{Arc, OnceLock};

use spar_core::PolicyVersion;
use spar_policy::{Generator, GeneratorConfig, GrammarCompiler, GrammarError, Tokenizer, Weights};

use crate::ServeError;

/// A model that is served under a name.
pub struct ServedModel {
    pub(crate) name: String,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) generator: Generator,
    /// Made when the first grammar comes; a large vocabulary takes seconds.
    grammars: OnceLock<Result<GrammarCompiler, GrammarError>>,
    vocabulary: usize,
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
        let vocabulary = weights.config().vocab_size;
        Ok(Self {
            name: name.to_owned(),
            tokenizer,
            generator,
            grammars: OnceLock::new(),
            vocabulary,
        })
    }

    /// What compiles grammars for the model's tokens.
    pub(crate) fn grammars(&self) -> Result<&GrammarCompiler, GrammarError> {
        let made =
            self.grammars.get_or_init(|| GrammarCompiler::new(&self.tokenizer, self.vocabulary));
        made.as_ref().map_err(Clone::clone)
    }
}
