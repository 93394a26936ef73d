//! The seam between episodes and whatever chooses the actions.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Conversation, Encoded, GrammarHash, GrammarSource, Message, Role, Seed, ToolCall, ToolSpec,
};

/// Counts the updates that made a policy's weights; 0 is the policy a run started from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PolicyVersion(pub u32);

/// How tokens are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most probable token. Range 0 to 10, default 1.
    pub temperature: f32,
    /// How many of the most probable tokens can be drawn; equal ones at the border all can. At
    /// least 1, default absent: all.
    pub top_k: Option<usize>,
    /// Only the fewest of the most probable tokens can be drawn that have this probability
    /// together. Above 0 up to 1, default 1: all.
    pub top_p: f32,
    /// Tokens cannot be drawn whose probability is below this share of the most probable one's.
    /// 0 to 1, default 0: all can.
    pub min_p: f32,
    /// Tokens a turn may have at the most. Default 64.
    pub max_tokens: usize,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: None, top_p: 1.0, min_p: 0.0, max_tokens: 64 }
    }
}

impl Sampling {
    /// Whether improbable tokens are left out.
    pub fn truncates(&self) -> bool {
        self.top_k.is_some() || self.top_p < 1.0 || self.min_p > 0.0
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut refuse = |name: &str, value: String, allowed: &str| {
            problems.push(format!("{name} is {value}, must be {allowed}"));
        };
        if !(0.0..=10.0).contains(&self.temperature) {
            refuse("temperature", self.temperature.to_string(), "0 to 10");
        }
        if self.top_k == Some(0) {
            refuse("top_k", "0".to_owned(), "at least 1");
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            refuse("top_p", self.top_p.to_string(), "above 0 up to 1");
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            refuse("min_p", self.min_p.to_string(), "0 to 1");
        }
        if self.max_tokens == 0 {
            refuse("max_tokens", "0".to_owned(), "at least 1");
        }
        if self.temperature == 0.0 && self.truncates() {
            let problem = "top_k, top_p and min_p have no effect: temperature is 0";
            problems.push(problem.to_owned());
        }
        problems
    }
}

/// The strings a completion must be one of; sorted, without repeats.
pub type Choices = Arc<[Arc<str>]>;

/// What a policy is asked to continue.
#[derive(Debug, Clone)]
pub struct CompletionRequest {
    /// Names the conversation, so that an engine can keep its state between turns.
    pub episode: u64,
    /// The conversation as text, oldest first; what an HTTP endpoint is sent. Shared with the episode, so that a
    /// request costs the same however long the conversation is.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The conversation as tokens, for policies that [`Policy::encode`] them; sampled tokens of
    /// earlier turns stand in it as they were sampled.
    pub prompt_ids: Arc<[u32]>,
    /// The tools that the policy may call; default none.
    pub tools: Arc<[ToolSpec]>,
    /// Restricts the completion to one of these strings.
    pub choices: Option<Choices>,
    /// Restricts the completion to the texts of a grammar; an answer is held to one thing, so not beside `choices`.
    pub grammar: Option<Arc<GrammarSource>>,
    /// Strings that end the answer and are no part of its text, though they are of its tokens; none is empty.
    pub stop: Arc<[Arc<str>]>,
    /// What the answer begins with, as it was sampled before: the policy goes on behind it, and its answer is the
    /// whole, these tokens among it. Empty: it answers from the start.
    pub partial: SampledTokens,
    /// How tokens are drawn; `max_tokens` counts the partial answer too.
    pub sampling: Sampling,
    /// Where this completion's random choices start.
    pub seed: Seed,
}

impl CompletionRequest {
    /// A request without messages, with defaults for all that has any.
    pub fn new(episode: u64, seed: Seed) -> Self {
        Self {
            episode,
            messages: Arc::default(),
            prompt_ids: Arc::default(),
            tools: Arc::default(),
            choices: None,
            grammar: None,
            stop: Arc::default(),
            partial: SampledTokens::default(),
            sampling: Sampling::default(),
            seed,
        }
    }

    /// Refuses what only a model can do, for the policy of this `name`: going on behind a partial answer, keeping to a
    /// grammar, ending at stop strings, calling tools.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] names the first that the request asks for.
    pub fn refuse_all_but_choices(&self, name: &str) -> Result<(), PolicyError> {
        let asked_for = [
            (!self.partial.ids.is_empty(), "the rest of an answer that was begun"),
            (self.grammar.is_some(), "an answer that keeps to a grammar"),
            (!self.stop.is_empty(), "an answer that ends at stop strings"),
            (!self.tools.is_empty(), "calls of tools"),
        ];
        self.refuse(name, &asked_for)
    }

    /// Refuses the first of these that is asked for, for the policy of this `name`.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] where one is.
    pub fn refuse(&self, name: &str, asked_for: &[(bool, &str)]) -> Result<(), PolicyError> {
        match asked_for.iter().find(|(is_asked_for, _)| *is_asked_for) {
            None => Ok(()),
            Some((_, what)) => {
                Err(PolicyError::Unsupported { name: name.to_owned(), what: (*what).to_owned() })
            }
        }
    }
}

/// Tokens whose log-probabilities are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoringRequest {
    /// What stands before them.
    pub prompt_ids: Arc<[u32]>,
    /// The tokens themselves, one behind the other.
    pub target_ids: Vec<u32>,
}

/// The tokens of one completion, one entry per token in every list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SampledTokens {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Natural logarithm of the probability each was drawn with, under the distribution it was
    /// drawn from: after the temperature, renormalised over what `allowed` lists.
    pub logprobs: Vec<f32>,
    /// The weights that drew each.
    pub versions: Vec<PolicyVersion>,
    /// The tokens that could be drawn in each place, ascending; an empty list means the whole
    /// vocabulary, or what `grammar` allows there, a list of one a forced token. Empty altogether where nothing was
    /// restricted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Vec<u32>>,
    /// The grammar that the answer was held to. Replayed over the tokens, it tells what could be drawn in the places
    /// where `allowed` has an empty list. Absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<GrammarHash>,
}

impl SampledTokens {
    /// Tokens that nobody drew: with log-probabilities of 0, by no weights, out of the whole vocabulary.
    #[must_use]
    pub fn unrestricted(ids: Vec<u32>) -> Self {
        Self {
            logprobs: vec![0.0; ids.len()],
            versions: vec![PolicyVersion(0); ids.len()],
            ids,
            ..Self::default()
        }
    }

    /// The first `count` of them, or all where they are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let count = count.min(self.ids.len());
        Self {
            ids: self.ids[..count].to_vec(),
            logprobs: self.logprobs[..count].to_vec(),
            versions: self.versions[..count].to_vec(),
            allowed: self.allowed.iter().take(count).cloned().collect(),
            grammar: self.grammar,
        }
    }
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// The policy ended its turn (its end-of-turn or end-of-sequence token), or what it was held to
    /// was complete.
    EndOfTurn,
    /// One of the request's stop strings or stop tokens came.
    StopSequence,
    /// The policy ended its turn with tool calls.
    ToolCalls,
    /// It came to the tokens it was allowed.
    Length,
    /// The endpoint's filter broke it off or held it back.
    Filtered,
    /// The endpoint named no cause, or one that is not known here.
    Unknown,
}

impl StopCause {
    /// Whether the completion was broken off before the policy had ended it.
    pub fn is_cut_off(self) -> bool {
        matches!(self, Self::Length | Self::Filtered)
    }
}

/// What stands in the place of a tool's call is none: the policy's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("the call of tool `{name}` cannot be read: {detail}")]
pub struct MalformedCall {
    /// The tool, as far as it was named.
    pub name: String,
    /// What is wrong with it.
    pub detail: String,
    /// What stands in the place of the answer's calls, all of them, as far as the policy showed it.
    #[serde(default)]
    pub written: String,
}

/// What a policy answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The answer as text, without the end-of-turn token and the stop string that ended it.
    pub text: String,
    /// What the policy thought before, where it tells that apart from the text.
    pub reasoning: Option<String>,
    /// The tools that it calls, or why what it wrote in their place is no call, where the policy reads calls itself, as
    /// endpoints do. Absent where it called none, and where calls are to be read in the text.
    pub calls: Option<Result<Vec<ToolCall>, MalformedCall>>,
    /// The prompt as tokens, where the policy lays conversations out itself and tells. Absent where it
    /// [encodes](Policy::encode) messages.
    pub prompt_ids: Option<Arc<[u32]>>,
    /// The answer as tokens; empty for policies that have none.
    pub tokens: SampledTokens,
    /// Why it ended.
    pub stop: StopCause,
    /// Whose answer it is, such as `local`, `oracle` or an endpoint's model name.
    pub author: String,
    /// How many tokens the answer has, as told by a policy that does not show them. Absent where it
    /// shows them in `tokens`, or does not tell.
    pub reported_tokens: Option<usize>,
    /// How many tokens the prompt has, as told by a policy that lays it out itself. Absent where it does not tell.
    pub reported_prompt_tokens: Option<usize>,
}

impl Completion {
    /// An answer in words of which no tokens are shown.
    pub fn new(author: impl Into<String>, text: impl Into<String>, stop: StopCause) -> Self {
        Self {
            text: text.into(),
            reasoning: None,
            calls: None,
            prompt_ids: None,
            tokens: SampledTokens::default(),
            stop,
            author: author.into(),
            reported_tokens: None,
            reported_prompt_tokens: None,
        }
    }

    /// How many tokens were sampled; absent where the policy neither shows nor tells them.
    pub fn num_tokens(&self) -> Option<usize> {
        if self.tokens.ids.is_empty() { self.reported_tokens } else { Some(self.tokens.ids.len()) }
    }
}

/// A policy could not answer; the environment is not to blame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The conversation is longer than the policy can read.
    #[error("fit {} into a context of {}", counted(tokens), counted(limit))]
    ContextFull {
        /// Tokens of the prompt and the reserve for the answer; absent where nobody said.
        tokens: Option<usize>,
        /// Tokens that the policy can read; absent where nobody said.
        limit: Option<usize>,
    },
    /// The endpoint could not be reached or broke off; trying again may help.
    #[error("reach policy `{name}`: {detail}")]
    Unreachable {
        /// The policy's name.
        name: String,
        /// What went wrong.
        detail: String,
    },
    /// The policy answered what cannot be understood; trying again will not help.
    #[error("understand the answer of policy `{name}`: {detail}")]
    Nonsense {
        /// The policy's name.
        name: String,
        /// What was found.
        detail: String,
    },
    /// The policy does not answer this conversation because of what is said in it; trying again will not help.
    #[error("have policy `{name}` answer what it refuses: {detail}")]
    Refused {
        /// The policy's name.
        name: String,
        /// What it told.
        detail: String,
    },
    /// The request asks for what this policy cannot do.
    #[error("ask policy `{name}` for {what}")]
    Unsupported {
        /// The policy's name.
        name: String,
        /// What it cannot do.
        what: String,
    },
    /// A limit of what may be spent was reached.
    #[error("ask policy `{name}`: {limit}")]
    OutOfBudget {
        /// The policy's name, or that of its account.
        name: String,
        /// Which, and what was spent.
        limit: String,
    },
    /// The policy was shut down.
    #[error("ask policy `{name}`: it was shut down")]
    Closed {
        /// The policy's name.
        name: String,
    },
}

fn counted(tokens: &Option<usize>) -> String {
    tokens
        .map_or_else(|| "an unknown number of tokens".to_owned(), |count| format!("{count} tokens"))
}

impl PolicyError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// Chooses actions: a model in this process, an endpoint, a script, a person.
#[async_trait]
pub trait Policy: Send + Sync {
    /// A short name for logs and records.
    fn name(&self) -> &str;

    /// Whether requests to an endpoint answer, which are counted where they are sent; tokens of all other policies are
    /// counted by their turns. Default: no.
    fn is_endpoint(&self) -> bool {
        false
    }

    /// The tokens of a message, with the marks of its role around it and, behind a message that
    /// is not the policy's own, the mark that opens the policy's turn. `before` is the message
    /// before it; absent where it is the first.
    ///
    /// The concatenation over a conversation is the prompt; text is never tokenised again. What
    /// cannot stand alone, such as instructions that are laid out as part of the first question,
    /// is empty and comes with the message behind it. Policies that work on text return an empty
    /// list.
    fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32>;

    /// The tokens of a conversation with the tools that are offered, at whose end the policy answers; of what has come
    /// to it since the last answer, where the conversation goes on from the tokens so far.
    ///
    /// By default the messages one by one, as [`Policy::encode`] lays them out; tools are then told by the request
    /// alone.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] when the policy has no layout for such a conversation.
    fn encode_conversation(&self, conversation: &Conversation<'_>) -> Result<Encoded, PolicyError> {
        let Conversation { messages, encoded, .. } = *conversation;
        let mut ids = Vec::new();
        for place in encoded..messages.len() {
            let before = place.checked_sub(1).map(|before| &*messages[before]);
            ids.append(&mut self.encode(before, &messages[place]));
        }
        Ok(Encoded::Alone(ids))
    }

    /// The tokens of an answer that says `text`, with its end, as the policy would sample them.
    fn encode_answer(&self, text: &str) -> Vec<u32> {
        self.encode(None, &Message::new(Role::Assistant, text))
    }

    /// The tokens of an answer that says `text`, with its end, as the policy would sample them where it is held to `grammar`: what the
    /// grammar forces is listed as forced, in the tokens that it forces. An answer that the grammar does not allow has the tokens of
    /// [`encode_answer`](Self::encode_answer) and is held to nothing. Log-probabilities are 0. Default: as if it did not.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the policy cannot be held to that grammar.
    async fn encode_answer_in(
        &self,
        text: &str,
        grammar: Arc<GrammarSource>,
    ) -> Result<SampledTokens, PolicyError> {
        let _ = grammar;
        Ok(SampledTokens::unrestricted(self.encode_answer(text)))
    }

    /// Answers a conversation.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when no answer came about; an answer of low quality is no error.
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError>;

    /// The tokens of a text inside of a message, without marks of its role; none for policies that work on text, which is
    /// the default.
    fn encode_text(&self, text: &str) -> Vec<u32> {
        let _ = text;
        Vec::new()
    }

    /// Whether it can [score](Policy::score) tokens. Default false.
    fn can_score(&self) -> bool {
        false
    }

    /// The natural logarithm of the probability of each target token behind the prompt and the target tokens before it,
    /// by the model's own distribution: at temperature 1, nothing left out. By default it cannot tell.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Unsupported`] when it cannot tell, [`PolicyError::ContextFull`] when the tokens are more than it can
    /// read, or another when no answer came about.
    async fn score(&self, request: ScoringRequest) -> Result<Vec<f32>, PolicyError> {
        let _ = request;
        let what = "log-probabilities of given tokens".to_owned();
        Err(PolicyError::Unsupported { name: self.name().to_owned(), what })
    }

    /// Tells that no further turn of this conversation will come.
    fn forget(&self, episode: u64) {
        let _ = episode;
    }

    /// The policy that plays episodes in an environment of this name in its place. Default: none, it plays them itself.
    fn for_environment(&self, environment: &str) -> Option<&dyn Policy> {
        let _ = environment;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_transient() {
        let name = || "p".to_owned();
        let unreachable = PolicyError::Unreachable { name: name(), detail: String::new() };
        assert!(unreachable.is_transient());
        for error in [
            PolicyError::ContextFull { tokens: Some(2), limit: None },
            PolicyError::Nonsense { name: name(), detail: String::new() },
            PolicyError::Unsupported { name: name(), what: String::new() },
            PolicyError::Closed { name: name() },
        ] {
            assert!(!error.is_transient(), "{error}");
        }
    }

    #[test]
    fn a_full_context_is_told_with_what_is_known() {
        let full = |tokens, limit| PolicyError::ContextFull { tokens, limit }.to_string();
        assert_eq!(full(Some(9), Some(8)), "fit 9 tokens into a context of 8 tokens");
        let unknown = "fit an unknown number of tokens into a context of 8 tokens";
        assert_eq!(full(None, Some(8)), unknown);
    }

    #[test]
    fn only_what_was_broken_off_is_cut_off() {
        use StopCause::{EndOfTurn, Filtered, Length, StopSequence, ToolCalls, Unknown};
        let all = [EndOfTurn, StopSequence, ToolCalls, Length, Filtered, Unknown];
        let cut_off: Vec<_> = all.into_iter().filter(|cause| cause.is_cut_off()).collect();
        assert_eq!(cut_off, [Length, Filtered]);
        let json = serde_json::to_string(&all).unwrap();
        let names = r#"["end_of_turn","stop_sequence","tool_calls","length","filtered","unknown"]"#;
        assert_eq!(json, names);
        assert_eq!(serde_json::from_str::<Vec<StopCause>>(&json).unwrap(), all);
    }

    #[test]
    fn tokens_that_nothing_restricted_are_written_without_lists() {
        let mut tokens = SampledTokens { ids: vec![1], ..SampledTokens::default() };
        assert!(!serde_json::to_string(&tokens).unwrap().contains("allowed"));
        tokens.allowed = vec![vec![1, 2]];
        let json = serde_json::to_string(&tokens).unwrap();
        assert_eq!(serde_json::from_str::<SampledTokens>(&json).unwrap(), tokens);
    }

    #[test]
    fn what_only_a_model_can_do_is_refused() {
        let mut request = CompletionRequest::new(0, Seed::from_u64(0));
        request.choices = Some([Arc::from("go")].into());
        assert!(request.refuse_all_but_choices("person").is_ok());
        type Ask = fn(&mut CompletionRequest);
        let asks: [(&str, Ask); 4] = [
            ("begun", |request| request.partial.ids.push(1)),
            ("grammar", |request| {
                let expression = "a".to_owned();
                request.grammar = Some(Arc::new(GrammarSource::Regex { expression }));
            }),
            ("stop strings", |request| request.stop = [Arc::from("!")].into()),
            ("tools", |request| {
                request.tools = [ToolSpec::new("look", "", serde_json::json!({}))].into();
            }),
        ];
        for (named, ask) in asks {
            let mut request = request.clone();
            ask(&mut request);
            let error = request.refuse_all_but_choices("person").unwrap_err();
            assert!(
                matches!(&error, PolicyError::Unsupported { what, .. } if what.contains(named))
            );
        }
    }

    #[test]
    fn sampling_has_defaults_and_no_other_settings() {
        let sampling: Sampling = serde_json::from_str(r#"{ "max_tokens": 3 }"#).unwrap();
        assert_eq!(sampling, Sampling { max_tokens: 3, ..Sampling::default() });
        assert!(serde_json::from_str::<Sampling>(r#"{ "penalty": 0.9 }"#).is_err());
    }

    #[test]
    fn sampling_outside_its_range_or_without_effect_is_told() {
        assert!(Sampling::default().problems().is_empty());
        let wrong = Sampling {
            temperature: 11.0,
            top_k: Some(0),
            top_p: 0.0,
            min_p: f32::NAN,
            max_tokens: 0,
        };
        assert_eq!(wrong.problems().len(), 5);
        let greedy = Sampling { temperature: 0.0, top_p: 0.9, ..Sampling::default() };
        assert_eq!(greedy.problems().len(), 1);
    }
}
