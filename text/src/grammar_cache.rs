//! Grammars that were compiled before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use spar_core::{GrammarHash, GrammarSource};

use crate::{Grammar, GrammarCompiler, GrammarError, Tokenizer};

/// Grammars that are kept at the most; beyond, all are compiled anew.
const MAX_GRAMMARS: usize = 256;

/// Compiles each grammar once for a model.
pub struct GrammarCache {
    tokenizer: Arc<Tokenizer>,
    vocabulary: usize,
    /// Made when the first grammar comes; a large vocabulary takes seconds.
    compiler: OnceLock<Result<GrammarCompiler, GrammarError>>,
    compiled: Mutex<HashMap<GrammarHash, Grammar>>,
}

impl fmt::Debug for GrammarCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCache").finish_non_exhaustive()
    }
}

impl GrammarCache {
    /// For `tokenizer` and a model of `vocabulary` tokens; nothing is compiled yet.
    pub fn new(tokenizer: Arc<Tokenizer>, vocabulary: usize) -> Self {
        Self { tokenizer, vocabulary, compiler: OnceLock::new(), compiled: Mutex::default() }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// A grammar that is there already.
    pub fn find(&self, hash: GrammarHash) -> Option<Grammar> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }

    /// The grammar of `source`. Blocks while it is compiled.
    ///
    /// # Errors
    ///
    /// As [`GrammarCompiler::new`] and [`GrammarCompiler::compile`].
    pub fn get(&self, source: &GrammarSource) -> Result<Grammar, GrammarError> {
        let hash = source.hash();
        if let Some(found) = self.find(hash) {
            return Ok(found);
        }
        let compiler =
            self.compiler.get_or_init(|| GrammarCompiler::new(&self.tokenizer, self.vocabulary));
        let grammar = compiler.as_ref().map_err(Clone::clone)?.compile(source)?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= MAX_GRAMMARS {
            compiled.clear();
        }
        compiled.insert(hash, grammar.clone());
        Ok(grammar)
    }
}
