//! Answers held to a grammar: JSON schema, regular expression, Lark.

use std::collections::HashMap;
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

impl Grammar {
    /// The tokens of an answer that says `text`, with its end, as they come about where a policy is held to this grammar.
    ///
    /// Where several tokens could be drawn that go on with the text, it is the one that the text has there on its own
    /// ([`Tokenizer::choice_ids`]), so that words have the tokens that they have in prompts; else the longest. `None` where the grammar
    /// does not allow the text.
    pub fn spell(&self, tokenizer: &Tokenizer, text: &str) -> Option<SpelledAnswer> {
        // Decoding takes a space off the front, which the grammar has.
        let text = if tokenizer.strips_space() { format!(" {text}") } else { text.to_owned() };
        let (bytes, end) = (text.as_bytes(), tokenizer.end_of_turn());
        let own = tokens_by_place(tokenizer, &text);
        let goes_on = |at: usize, token: u32| {
            let word = tokenizer.token_bytes(token);
            !word.is_empty() && !tokenizer.is_control(token) && bytes[at..].starts_with(word)
        };
        let mut walk = GrammarWalk::new(self, end);
        let (mut forced, mut allowed) = (Vec::new(), Vec::new());
        let (mut spelled, mut at) = (SpelledAnswer::default(), 0);
        loop {
            forced.clear();
            walk.next(&mut forced, &mut allowed).ok()?;
            if let [token] = allowed[..] {
                forced.push(token);
            }
            let is_forced = !forced.is_empty();
            if !is_forced {
                let can_come = |token: &u32| allowed.binary_search(token).is_ok();
                let token = match at == bytes.len() {
                    true => Some(end).filter(can_come)?,
                    false => match own.get(&at).copied().filter(can_come) {
                        Some(token) => token,
                        None => {
                            let fitting = allowed.iter().filter(|token| goes_on(at, **token));
                            *fitting.max_by_key(|token| tokenizer.token_bytes(**token).len())?
                        }
                    },
                };
                forced.push(token);
            }
            for &token in &forced {
                if at == bytes.len() && token == end {
                    spelled.push(token, is_forced);
                    return Some(spelled);
                }
                if !goes_on(at, token) {
                    return None;
                }
                spelled.push(token, is_forced);
                walk.advance(token);
                at += tokenizer.token_bytes(token).len();
            }
        }
    }
}

/// The tokens that a text has on its own, by the byte that each begins at, as far as these are the text's bytes.
fn tokens_by_place(tokenizer: &Tokenizer, text: &str) -> HashMap<usize, u32> {
    let mut at = 0;
    let mut places = HashMap::new();
    for token in tokenizer.choice_ids(text) {
        let word = tokenizer.token_bytes(token);
        if !text.as_bytes()[at..].starts_with(word) {
            break;
        }
        places.insert(at, token);
        at += word.len();
    }
    places
}

/// An answer in the tokens that a grammar has it sampled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpelledAnswer {
    /// The tokens, with the one that ends a turn.
    pub ids: Vec<u32>,
    /// Of each: itself where it was forced, nothing where it would be drawn.
    pub allowed: Vec<Vec<u32>>,
}

impl SpelledAnswer {
    fn push(&mut self, token: u32, is_forced: bool) {
        self.ids.push(token);
        self.allowed.push(if is_forced { vec![token] } else { Vec::new() });
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
    use crate::{Spaces, TokenizerConfig};

    /// A tokenizer whose phrases cross what a grammar forces, and a grammar of calls.
    fn caller() -> (Arc<Tokenizer>, Grammar) {
        let game = |place: usize| {
            let word = ["apple", "melon", "lemon", "olive"][place % 4];
            [
                format!("Press the {word} on the page, number {place}."),
                format!("{{\"name\": \"press\", \"arguments\": {{\"on\": \"{word}\"}}}}"),
            ]
        };
        let games: Vec<_> = (0..40).map(game).collect();
        let config = TokenizerConfig {
            vocab_size: 360,
            spaces: Spaces::Apart,
            ..TokenizerConfig::default()
        };
        let texts = games.iter().map(|game| game.iter().map(String::as_str));
        let tokenizer = Arc::new(Tokenizer::train(texts, &config).unwrap());
        let compiler = GrammarCompiler::new(&tokenizer, tokenizer.vocab_size()).unwrap();
        let grammar = r#"{"name": "(press|wait)", "arguments": {"on": "[^"]{0,20}"}}"#;
        let grammar =
            grammar.replace('{', r"\{").replace('}', r"\}").replace(r"\{0,20\}", "{0,20}");
        (tokenizer, compiler.compile(&GrammarSource::regex(grammar)).unwrap())
    }

    #[test]
    fn answers_are_spelled_as_they_would_be_sampled() {
        let (tokenizer, grammar) = caller();
        let end = tokenizer.end_of_turn();
        let said = |word: &str| format!(r#"{{"name": "press", "arguments": {{"on": "{word}"}}}}"#);
        for word in ["apple", "", "no such word", "\u{e4}\u{1f34e}", "pre", "melonlemon"] {
            let text = said(word);
            let spelled = grammar.spell(&tokenizer, &text).unwrap();
            assert_eq!(spelled.ids.len(), spelled.allowed.len());
            let (last, tokens) = spelled.ids.split_last().unwrap();
            assert_eq!((*last, tokenizer.decode(tokens)), (end, text.clone()));
            // Whoever draws these tokens is forced to the others.
            let mut walk = GrammarWalk::new(&grammar, end);
            let (mut forced, mut allowed, mut place) = (Vec::new(), Vec::new(), 0);
            while place < spelled.ids.len() {
                forced.clear();
                walk.next(&mut forced, &mut allowed).unwrap();
                if let [token] = allowed[..] {
                    forced.push(token);
                }
                let is_drawn = forced.is_empty();
                if is_drawn {
                    assert!(allowed.binary_search(&spelled.ids[place]).is_ok(), "{word}: {place}");
                    forced.push(spelled.ids[place]);
                }
                for token in &forced {
                    assert_eq!(spelled.ids[place], *token, "{word}: {place}");
                    assert_eq!(spelled.allowed[place].is_empty(), is_drawn, "{word}: {place}");
                    walk.advance(*token);
                    place += 1;
                }
            }
            let is_drawn = |place: usize| spelled.allowed[place].is_empty();
            grammar.replay(end, &spelled.ids, is_drawn, |_, _| ()).unwrap();
        }
        // On its own, the text has a phrase where the grammar forces words.
        let text = said("apple");
        assert_ne!(grammar.spell(&tokenizer, &text).unwrap().ids, tokenizer.choice_ids(&text));
        // A word has the token that it has elsewhere.
        let apple = tokenizer.encode("apple");
        assert!(
            grammar
                .spell(&tokenizer, &text)
                .unwrap()
                .ids
                .windows(apple.len())
                .any(|ids| ids == apple)
        );
    }

    #[test]
    fn what_a_grammar_does_not_allow_is_not_spelled() {
        let (tokenizer, grammar) = caller();
        for text in
            ["", "press", r#"{"name": "press"}"#, r#"{"name": "push", "arguments": {"on": "a"}}"#]
        {
            assert_eq!(grammar.spell(&tokenizer, text), None, "{text}");
        }
        let whole = r#"{"name": "wait", "arguments": {"on": "a"}}"#;
        assert!(grammar.spell(&tokenizer, whole).is_some());
        assert_eq!(grammar.spell(&tokenizer, &format!("{whole} ")), None);
        assert_eq!(grammar.spell(&tokenizer, &whole[..whole.len() - 1]), None);
    }

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
