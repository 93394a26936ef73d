//! Grammars that were compiled before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use spar_core::{GrammarHash, GrammarSource};

use crate::{Grammar, GrammarCompiler, GrammarError, Tokenizer};

/// Grammars that are kept at the most; beyond, the one that nobody asked for the longest is forgotten.
const MAX_GRAMMARS: usize = 256;

/// Compiles each grammar once for a model.
pub struct GrammarCache {
    tokenizer: Arc<Tokenizer>,
    vocabulary: usize,
    /// Made when the first grammar comes; a large vocabulary takes seconds.
    compiler: OnceLock<Result<GrammarCompiler, GrammarError>>,
    compiled: Mutex<Compiled>,
}

#[derive(Default)]
struct Compiled {
    /// With when it was asked for last.
    grammars: HashMap<GrammarHash, (Grammar, u64)>,
    /// How often something was asked for.
    asked: u64,
}

impl Compiled {
    fn find(&mut self, hash: GrammarHash) -> Option<Grammar> {
        self.asked += 1;
        let (grammar, last) = self.grammars.get_mut(&hash)?;
        *last = self.asked;
        Some(grammar.clone())
    }

    fn insert(&mut self, hash: GrammarHash, grammar: Grammar) {
        if self.grammars.len() >= MAX_GRAMMARS
            && let Some(oldest) =
                self.grammars.iter().min_by_key(|(_, (_, last))| *last).map(|(hash, _)| *hash)
        {
            self.grammars.remove(&oldest);
        }
        self.grammars.insert(hash, (grammar, self.asked));
    }
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
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).find(hash)
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
        compiled.insert(hash, grammar.clone());
        Ok(grammar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenizerConfig;

    #[test]
    fn what_was_asked_for_lately_is_kept() {
        let texts: [[&str; 0]; 0] = [];
        let tokenizer = Arc::new(Tokenizer::train(texts, &TokenizerConfig::default()).unwrap());
        let vocabulary = tokenizer.vocab_size();
        let cache = GrammarCache::new(tokenizer, vocabulary);
        let source = |index: usize| GrammarSource::regex(format!("a{index}"));
        for index in 0..MAX_GRAMMARS {
            cache.get(&source(index)).unwrap();
        }
        cache.get(&source(0)).unwrap();
        cache.get(&source(MAX_GRAMMARS)).unwrap();
        let is_kept = |index: usize| cache.find(source(index).hash()).is_some();
        assert!(is_kept(0) && !is_kept(1) && is_kept(2) && is_kept(MAX_GRAMMARS));
    }
}
