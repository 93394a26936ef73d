//! A decoder in this process as a policy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use spar_core::{
    Choices, Completion, CompletionRequest, GrammarSource, Message, Policy, PolicyError,
    PolicyVersion, Sampling,
};
use tokio::sync::oneshot;

use crate::engine::{Reply, policy_error};
use crate::generation::{Constraint, GenerationRequest, Report};
use crate::sampling::SamplingOptions;
use crate::{Generator, GeneratorConfig, GrammarCache, ServedAdapter, Tokenizer, Weights};

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
    grammars: Arc<GrammarCache>,
    router: Mutex<Router>,
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
    /// no layout of messages one by one ([`Tokenizer::has_message_layout`]).
    pub fn new(
        name: &str,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        threads: usize,
    ) -> std::io::Result<Self> {
        let mut policies =
            Self::with_adapters(name, tokenizer, weights, version, &[], threads)?.into_iter();
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
        if !tokenizer.has_message_layout() {
            let message = "its chat template does not lay out messages one by one";
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
        let generator =
            Generator::with_adapters(name, &tokenizer, &weights, version, adapters, config)?;
        let generator = Arc::new(generator);
        let names =
            std::iter::once(Arc::from(name)).chain(adapters.iter().map(|it| it.name.clone()));
        let policy = |(model, name): (usize, Arc<str>)| {
            let live = vec![0; generator.num_engines()];
            let router = Router { episodes: HashMap::new(), prompts: HashMap::new(), live };
            let (tokenizer, grammars) = (tokenizer.clone(), grammars.clone());
            let (generator, router) = (generator.clone(), Mutex::new(router));
            Self { name, tokenizer, generator, model, grammars, router }
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
        self.tokenizer.encode_message(before, message)
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
        let allowed = constraint.is_some() || wanted.sampling.truncates();
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
