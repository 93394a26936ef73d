//! Answers held to a grammar: JSON schema, regular expression, Lark.

use std::fmt;
use std::sync::Arc;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use serde_json::Value;
use spar_core::{GrammarHash, GrammarSource};

use crate::tokenizer::LONGEST_TOKEN;
use crate::{GrammarError, ReplayError, Tokenizer};

/// White space in JSON: room for lines that are indented.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,32}";

/// Compiles grammars for a tokenizer; made once per model.
#[derive(Clone)]
pub struct GrammarCompiler {
    factory: Arc<ParserFactory>,
    /// What stands before a grammar's own text, in Lark: a space that decoding takes off the front.
    before: Option<&'static str>,
}

/// A grammar, ready to hold an answer to it.
#[derive(Clone)]
pub struct Grammar {
    start: Arc<Matcher>,
    hash: GrammarHash,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar").finish_non_exhaustive()
    }
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCompiler").finish_non_exhaustive()
    }
}

/// A tokenizer as grammars see it.
struct Vocabulary {
    trie: TokTrie,
    /// Absent where tokens of a text depend on whether it stands at the front.
    tokenizer: Option<Arc<Tokenizer>>,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        match &self.tokenizer {
            Some(tokenizer) => {
                self.trie.tokenize_with_greedy_fallback(bytes, |text| tokenizer.encode(text))
            }
            None => self.trie.greedy_tokenize(bytes),
        }
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.tokenizer.is_some()
    }
}

/// That no token is longer than the tree of tokens can hold, which would panic.
fn check_lengths(words: &[Vec<u8>]) -> Result<(), GrammarError> {
    let Some((id, word)) = words.iter().enumerate().find(|(_, word)| word.len() > LONGEST_TOKEN)
    else {
        return Ok(());
    };
    let detail = format!(
        "token {id} has {} bytes, grammars take at most {LONGEST_TOKEN} a token",
        word.len()
    );
    Err(GrammarError { kind: "vocabulary", detail })
}

impl GrammarCompiler {
    /// A compiler for `tokenizer` and a model of `vocabulary` tokens, which may have more than the
    /// tokenizer.
    ///
    /// # Errors
    ///
    /// [`GrammarError`] when the vocabulary cannot be used for grammars, as where a token has more than 1,024 bytes.
    pub fn new(tokenizer: &Arc<Tokenizer>, vocabulary: usize) -> Result<Self, GrammarError> {
        let ends = tokenizer.end_tokens();
        let words: Vec<Vec<u8>> = (0..vocabulary as u32)
            .map(|id| match tokenizer.token_bytes(id) {
                // Control tokens can be drawn where the grammar ends, and nowhere else.
                bytes if ends.contains(&id) => [b"\xff", bytes].concat(),
                _ if tokenizer.is_control(id) => Vec::new(),
                bytes => bytes.to_vec(),
            })
            .collect();
        check_lengths(&words)?;
        let info = TokRxInfo::new(vocabulary as u32, tokenizer.end_of_turn());
        let trie = TokTrie::from(&info, &words).with_eos_tokens(ends);
        let before = match (tokenizer.strips_space(), tokenizer.always_has_space()) {
            (false, _) => None,
            (true, true) => Some("start: \" \" @inner"),
            (true, false) => Some("start: \" \"? @inner"),
        };
        let tokenizer = before.is_none().then(|| tokenizer.clone());
        let env: TokEnv = Arc::new(Vocabulary { trie, tokenizer });
        let mut factory = ParserFactory::new_simple(&env)
            .map_err(|error| GrammarError { kind: "vocabulary", detail: error.to_string() })?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory: Arc::new(factory), before })
    }

    /// The texts of `source`.
    ///
    /// # Errors
    ///
    /// [`GrammarError`] when it is none of its kind, asks for what cannot be ensured token by token, or accepts nothing.
    pub fn compile(&self, source: &GrammarSource) -> Result<Grammar, GrammarError> {
        let (kind, grammar) = match source {
            GrammarSource::JsonSchema { schema } => {
                let schema = with_bounded_space(schema);
                ("JSON schema", GrammarWithLexer::from_json_schema(schema))
            }
            GrammarSource::JsonBetween { before, schema, after } => {
                let (before, after) = (Value::from(&**before), Value::from(&**after));
                let schema = with_bounded_space(schema);
                let grammar = format!("start: {before} json {after}\njson: %json {schema}\n");
                ("JSON schema", GrammarWithLexer::from_lark(grammar))
            }
            GrammarSource::Regex { expression } => {
                ("regular expression", GrammarWithLexer::from_regex(expression))
            }
            GrammarSource::Lark { grammar } => {
                ("grammar", GrammarWithLexer::from_lark(grammar.clone()))
            }
        };
        self.compile_as(kind, grammar, source.hash())
    }

    fn compile_as(
        &self,
        kind: &'static str,
        mut grammar: GrammarWithLexer,
        hash: GrammarHash,
    ) -> Result<Grammar, GrammarError> {
        let mut grammars = Vec::new();
        if let Some(before) = self.before {
            grammars.push(GrammarWithLexer::from_lark(before.to_owned()));
            grammar.name = Some("inner".to_owned());
        }
        grammars.push(grammar);
        let parser = self.factory.create_parser(TopLevelGrammar { grammars, max_tokens: None });
        let mut start = Matcher::new(parser);
        // Computes the first mask as well, so that a grammar without any text is found now.
        let error = match start.compute_mask() {
            Ok(mask) if mask.is_zero() => Some("no text is in it".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        match start.get_error().or(error) {
            Some(detail) => {
                // The first line says what is wrong; the rest quotes the whole grammar.
                let detail = detail.lines().next().unwrap_or_default().to_owned();
                Err(GrammarError { kind, detail })
            }
            None => Ok(Grammar { start: Arc::new(start), hash }),
        }
    }
}

impl Grammar {
    /// The hash of what it was compiled from.
    pub fn hash(&self) -> GrammarHash {
        self.hash
    }

    /// Goes once more the way of an answer that was drawn, and tells `found` the place in it and the tokens that could
    /// come there, ascending, of each place that is `wanted`.
    ///
    /// That is what [`GrammarWalk::next`] told when the answer was drawn, if those places are wanted in which a token
    /// was drawn, and not those where one was forced. `end` is the token that ends a turn.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] when the answer is none of this grammar.
    pub fn replay(
        &self,
        end: u32,
        tokens: &[u32],
        wanted: impl Fn(usize) -> bool,
        mut found: impl FnMut(usize, &[u32]),
    ) -> Result<(), ReplayError> {
        let mut walk = GrammarWalk::new(self, end);
        let (mut forced, mut allowed) = (Vec::new(), Vec::new());
        for (place, token) in tokens.iter().enumerate() {
            if wanted(place) {
                forced.clear();
                walk.next(&mut forced, &mut allowed)
                    .map_err(|detail| ReplayError::GivenUp { place, detail })?;
                if let Some(first) = forced.first() {
                    allowed = vec![*first];
                }
                if allowed.binary_search(token).is_err() {
                    return Err(ReplayError::NotAllowed { place, token: *token });
                }
                found(place, &allowed);
            }
            walk.advance(*token);
        }
        Ok(())
    }
}

/// The schema, with white space of bounded length between its tokens, where some models would never
/// stop to write it.
fn with_bounded_space(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if schema.is_object() && schema.get("x-guidance").is_none() {
        let whitespace_pattern = Some(WHITE_SPACE.to_owned());
        JsonCompileOptions { whitespace_pattern, ..Default::default() }.apply_to(&mut schema);
    }
    schema
}

/// How far an answer has come in its grammar.
#[derive(Clone)]
pub struct GrammarWalk {
    matcher: Matcher,
    end: u32,
}

impl GrammarWalk {
    /// At the front of `grammar`; `end` is the token that ends a turn.
    pub fn new(grammar: &Grammar, end: u32) -> Self {
        Self { matcher: grammar.start.deep_clone(), end }
    }

    /// Writes into `forced` the tokens that have to come next, or, where there are none, into
    /// `allowed` those that can, ascending: at the end of the grammar, the one that ends a turn.
    ///
    /// # Errors
    ///
    /// Why the grammar gave up: a step took too much work.
    pub fn next(&mut self, forced: &mut Vec<u32>, allowed: &mut Vec<u32>) -> Result<(), String> {
        allowed.clear();
        if !self.matcher.is_stopped() {
            *forced = self.matcher.compute_ff_tokens();
            if !forced.is_empty() {
                return Ok(());
            }
            let mask = self.matcher.compute_mask().map_err(|error| error.to_string())?;
            mask.iter_set_entries(|token| allowed.push(token as u32));
        }
        match self.matcher.get_error() {
            Some(error) => Err(error.lines().next().unwrap_or_default().to_owned()),
            None => {
                if allowed.is_empty() {
                    allowed.push(self.end);
                }
                Ok(())
            }
        }
    }

    /// Goes on by `token`, which must be among the allowed.
    pub fn advance(&mut self, token: u32) {
        // An error shows at the next step.
        if !self.matcher.is_stopped() {
            let _ = self.matcher.consume_token(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_are_too_long_are_told() {
        let words = |length: usize| vec![Vec::new(), vec![b'a'; length]];
        check_lengths(&words(LONGEST_TOKEN)).unwrap();
        // That many do fit.
        TokTrie::from(&TokRxInfo::new(2, 0), &words(LONGEST_TOKEN));
        let error = check_lengths(&words(LONGEST_TOKEN + 1)).unwrap_err();
        assert!(error.to_string().contains("token 1 has 1025 bytes"), "{error}");
    }
}
