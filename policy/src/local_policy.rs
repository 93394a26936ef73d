//! A decoder in this process as a policy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use spar_core::{
    Choices, Completion, CompletionRequest, Conversation, Encoded, GrammarSource, Message, Policy,
    PolicyError, PolicyVersion, SampledTokens, Sampling, ScoringRequest,
};
use tokio::sync::{Semaphore, oneshot};

use crate::adapter::Adapter;
use crate::draw_rules::LoadedDrawRule;
use crate::engine::{Reply, policy_error};
use crate::generation::{Constraint, GenerationRequest, Report};
use crate::sampling::SamplingOptions;
use crate::{
    Generator, GeneratorConfig, GrammarCache, ServedAdapter, Tokenizer, Weights,
    token_log_probabilities,
};
use spar_ops::parallel::serially;

/// Tokens of prompts per step: episodes are many and short, and all wait for each other.
const PREFILL_TOKENS: usize = 8192;

/// A decoder in this process as a policy.
///
/// Conversations are spread over engine threads, each of which answers its own in one batch.
/// Answers do not depend on the number of threads, nor on what else is asked.
pub struct LocalPolicy {
    name: Arc<str>,
    tokenizer: Arc<Tokenizer>,
    generator: Arc<Generator>,
    /// Which of the generator's models it is.
    model: usize,
    /// Its adapter, where it is one, as it was published last.
    adapter: Mutex<Option<Arc<Adapter>>>,
    grammars: Arc<GrammarCache>,
    /// Whether the draw rule leaves tokens out.
    leaves_out: bool,
    router: Mutex<Router>,
    /// One for each scoring that may compute at the same time.
    scoring: Arc<Semaphore>,
}

/// Which engine has which conversation.
struct Router {
    episodes: HashMap<u64, usize>,
    /// Conversations that open with the same prompt go to the same engine, which reads it once.
    prompts: HashMap<Arc<[u32]>, usize>,
    live: Vec<usize>,
}

impl LocalPolicy {
    /// Starts `threads` engines on the weights, or one where these are on a device.
    ///
    /// # Errors
    ///
    /// What the system says when a thread cannot be started; `InvalidInput` when the tokenizer has
    /// no layout of conversations ([`Tokenizer::has_layout`]).
    pub fn new(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        threads: usize,
    ) -> std::io::Result<Self> {
        Self::with_draw_rule(name, tokenizer, weights, version, None, threads)
    }

    /// As [`LocalPolicy::new`], all tokens being drawn by a rule where there is one. Log-probabilities of
    /// given texts ([`Policy::score`]) stay those of the weights alone.
    ///
    /// # Errors
    ///
    /// As [`LocalPolicy::new`].
    ///
    /// # Panics
    ///
    /// When a model of the rule has another vocabulary than the weights.
    pub fn with_draw_rule(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        rule: Option<&Arc<LoadedDrawRule>>,
        threads: usize,
    ) -> std::io::Result<Self> {
        let mut policies =
            Self::start(name, tokenizer, weights, version, (&[], rule), threads)?.into_iter();
        Ok(policies.next().expect("the weights are a policy"))
    }

    /// As [`LocalPolicy::new`]: the weights as a policy, and behind it each adapter beside them as one of its own. All of
    /// them are answered by the same engines in one batch, and the weights are in memory once.
    ///
    /// # Errors
    ///
    /// As [`LocalPolicy::new`], and `Unsupported` where there are adapters and the weights are on a device.
    pub fn with_adapters(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        adapters: &[ServedAdapter],
        threads: usize,
    ) -> std::io::Result<Vec<Self>> {
        Self::start(name, tokenizer, weights, version, (adapters, None), threads)
    }

    fn start(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        (adapters, rule): (&[ServedAdapter], Option<&Arc<LoadedDrawRule>>),
        threads: usize,
    ) -> std::io::Result<Vec<Self>> {
        if !tokenizer.has_layout() {
            let message = "it has no chat template";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
        }
        // Whoever plays bounds the number of episodes.
        let config = GeneratorConfig {
            threads,
            prefill_tokens: PREFILL_TOKENS,
            max_active: usize::MAX,
            max_queue: usize::MAX,
            ..GeneratorConfig::default()
        };
        let weights = weights.for_generation();
        let vocabulary = weights.config().vocab_size;
        let grammars = Arc::new(GrammarCache::new(tokenizer.clone(), vocabulary));
        let generator = match rule {
            Some(rule) => {
                Generator::with_draw_rule(name, &tokenizer, &weights, version, rule, config)?
            }
            None => {
                Generator::with_adapters(name, &tokenizer, &weights, version, adapters, config)?
            }
        };
        let leaves_out = rule.is_some_and(|rule| rule.rule().leaves_out());
        let generator = Arc::new(generator);
        let names =
            std::iter::once(Arc::from(name)).chain(adapters.iter().map(|it| it.name.clone()));
        let scoring = Arc::new(Semaphore::new(generator.num_engines()));
        let policy = |(model, name): (usize, Arc<str>)| {
            let adapter = model.checked_sub(1).map(|served| adapters[served].adapter.clone());
            let live = vec![0; generator.num_engines()];
            let router = Router { episodes: HashMap::new(), prompts: HashMap::new(), live };
            let (tokenizer, grammars) = (tokenizer.clone(), grammars.clone());
            let (generator, router) = (generator.clone(), Mutex::new(router));
            let (adapter, scoring) = (Mutex::new(adapter), scoring.clone());
            Self {
                name,
                tokenizer,
                generator,
                model,
                adapter,
                grammars,
                leaves_out,
                router,
                scoring,
            }
        };
        Ok(names.enumerate().map(policy).collect())
    }

    /// Goes on with other weights, from the next token on; with an adapter beside the same weights, where this policy is
    /// one.
    ///
    /// # Panics
    ///
    /// When this policy is an adapter, and the weights have none beside them.
    pub fn publish(&self, weights: &Arc<Weights>, version: PolicyVersion) {
        if self.model == 0 {
            self.generator.publish(weights, version);
        } else {
            let adapter = weights.adapter().expect("an adapter goes on with an adapter");
            *self.adapter.lock().unwrap_or_else(PoisonError::into_inner) = Some(adapter.clone());
            self.generator.publish_adapter(self.model, adapter, version);
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// The grammars that answers were held to.
    pub fn grammars(&self) -> &Arc<GrammarCache> {
        &self.grammars
    }

    /// What an answer is held to.
    async fn constraint(
        &self,
        choices: Option<Choices>,
        grammar: Option<Arc<GrammarSource>>,
    ) -> Result<Option<Constraint>, PolicyError> {
        let unsupported =
            |what: String| PolicyError::Unsupported { name: self.name.to_string(), what };
        let source = match (choices, grammar) {
            (choices, None) => return Ok(choices.map(Constraint::Choices)),
            (None, Some(source)) => source,
            (Some(_), Some(_)) => {
                let what = "an answer that is held to choices and to a grammar".to_owned();
                return Err(unsupported(what));
            }
        };
        if let Some(grammar) = self.grammars.find(source.hash()) {
            return Ok(Some(Constraint::Grammar(grammar)));
        }
        // The first one of a large vocabulary takes seconds.
        let grammars = self.grammars.clone();
        let compiled = tokio::task::spawn_blocking(move || grammars.get(&source)).await;
        let compiled = compiled.map_err(|error| unsupported(format!("a grammar: {error}")))?;
        let grammar =
            compiled.map_err(|error| unsupported(format!("what it cannot do: {error}")))?;
        Ok(Some(Constraint::Grammar(grammar)))
    }

    fn route(&self, episode: u64, prompt: &Arc<[u32]>) -> usize {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        let Router { episodes, prompts, live } = &mut *router;
        *episodes.entry(episode).or_insert_with(|| {
            if prompts.len() > 4096 {
                prompts.clear();
            }
            let index = *prompts.entry(prompt.clone()).or_insert_with(|| {
                (0..live.len()).min_by_key(|index| live[*index]).unwrap_or_default()
            });
            live[index] += 1;
            index
        })
    }
}

#[async_trait]
impl Policy for LocalPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
        match self.tokenizer.has_message_layout() {
            true => self.tokenizer.encode_message(before, message),
            // Nothing stands alone in what its template writes.
            false => Vec::new(),
        }
    }

    fn encode_conversation(&self, conversation: &Conversation<'_>) -> Result<Encoded, PolicyError> {
        self.tokenizer.encode_conversation(conversation).map_err(|error| PolicyError::Unsupported {
            name: self.name.to_string(),
            what: format!("an answer to this conversation: {error}"),
        })
    }

    fn encode_answer(&self, text: &str) -> Vec<u32> {
        self.tokenizer.choice_ids(text)
    }

    async fn encode_answer_in(
        &self,
        text: &str,
        grammar: Arc<GrammarSource>,
    ) -> Result<SampledTokens, PolicyError> {
        let hash = grammar.hash();
        let Some(Constraint::Grammar(grammar)) = self.constraint(None, Some(grammar)).await? else {
            return Ok(SampledTokens::unrestricted(self.encode_answer(text)));
        };
        // A large vocabulary is gone through for every token that would be drawn.
        let (tokenizer, said) = (Arc::clone(&self.tokenizer), text.to_owned());
        let spelled = tokio::task::spawn_blocking(move || grammar.spell(&tokenizer, &said)).await;
        let spelled = spelled.map_err(|error| PolicyError::Unsupported {
            name: self.name.to_string(),
            what: format!("to spell an answer in a grammar: {error}"),
        })?;
        Ok(match spelled {
            Some(spelled) => SampledTokens {
                allowed: spelled.allowed,
                grammar: Some(hash),
                ..SampledTokens::unrestricted(spelled.ids)
            },
            None => SampledTokens::unrestricted(self.encode_answer(text)),
        })
    }

    fn encode_text(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text)
    }

    fn can_score(&self) -> bool {
        true
    }

    /// By the weights that were published last.
    async fn score(&self, request: ScoringRequest) -> Result<Vec<f32>, PolicyError> {
        let ScoringRequest { prompt_ids, target_ids } = request;
        let name = || self.name.to_string();
        let refuse = |what: String| PolicyError::Unsupported { name: name(), what };
        let (tokens, limit) = (prompt_ids.len() + target_ids.len(), self.generator.max_model_len());
        if tokens > limit {
            return Err(PolicyError::ContextFull { tokens: Some(tokens), limit: Some(limit) });
        }
        if prompt_ids.is_empty() {
            return Err(refuse("log-probabilities behind an empty prompt".to_owned()));
        }
        let vocabulary = self.generator.vocab_size();
        let is_strange = |token: &&u32| **token as usize >= vocabulary;
        if let Some(token) = prompt_ids.iter().chain(&target_ids).find(is_strange) {
            return Err(refuse(format!("token {token} of a vocabulary of {vocabulary}")));
        }
        let (weights, _) = self.generator.published();
        let adapter = self.adapter.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let weights = adapter.map_or(weights.clone(), |adapter| Arc::new(weights.beside(adapter)));
        let closed = || PolicyError::Closed { name: name() };
        let permit = Arc::clone(&self.scoring).acquire_owned().await.map_err(|_| closed())?;
        let work = move || {
            let _permit = permit;
            serially(|| token_log_probabilities(&weights, &prompt_ids, &target_ids))
        };
        // Engines go on meanwhile; who no longer waits leaves the rest to this thread.
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(logprobs)) => Ok(logprobs),
            Ok(Err(error)) => {
                Err(PolicyError::Unreachable { name: name(), detail: error.to_string() })
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(closed()),
            },
        }
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let (episode, max_tokens) = (request.episode, request.sampling.max_tokens);
        let constraint = self.constraint(request.choices, request.grammar).await?;
        let mut wanted = GenerationRequest::new(request.prompt_ids, max_tokens, request.seed);
        wanted.model = self.model;
        wanted.partial = request.partial;
        let Sampling { temperature, top_k, top_p, min_p, .. } = request.sampling;
        wanted.sampling = SamplingOptions { temperature, top_k, top_p, min_p, ..wanted.sampling };
        // Where tokens are left out, a trainer has to renormalise over the same ones.
        let allowed = constraint.is_some() || wanted.sampling.truncates() || self.leaves_out;
        wanted.report = Report { allowed, ..Report::default() };
        wanted.constraint = constraint;
        wanted.stop.strings = request.stop;
        self.generator.check(&wanted).map_err(|error| policy_error(error, &self.name))?;
        let engine = self.route(episode, &wanted.prompt_ids);
        let (reply, answer) = oneshot::channel();
        self.generator.send_to(engine, wanted, Some(episode), Reply::Whole(reply));
        answer.await.unwrap_or_else(|_| Err(PolicyError::Closed { name: self.name.to_string() }))
    }

    fn forget(&self, episode: u64) {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = router.episodes.remove(&episode) {
            router.live[index] -= 1;
            self.generator.forget(index, self.model, episode);
        }
    }
}
