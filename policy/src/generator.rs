//! Engines on threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use spar_core::PolicyVersion;
use tokio::sync::mpsc;

use crate::draw_rules::LoadedDrawRule;
use crate::engine::{
    Counters, Engine, EngineConfig, GeneratorMetrics, KvMemory, Reply, bytes_per_token,
};
use crate::generation::{GenerationEvent, GenerationRequest};
use crate::{Adapter, GenerateError, Tokenizer, Weights};
use spar_ops::parallel::serially;

/// How much generation may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorConfig {
    /// Engines, each on a thread of its own; a decoder on a device has one, whatever is said here. Answers
    /// do not depend on it. Default 1.
    pub threads: usize,
    /// Tokens that prompt and answer may have together. Default absent: what the model can read.
    pub max_model_len: Option<usize>,
    /// Tokens of prompts that a step reads at the most, so that long prompts do not hold up those
    /// who draw. Default 512.
    pub prefill_tokens: usize,
    /// Answers under way per engine at the most. Default 256.
    pub max_active: usize,
    /// Requests that may wait. Default 1024.
    pub max_queue: usize,
    /// Bytes for keys and values, prefixes included. Default absent: on the CPU no bound but that on
    /// prefixes, on a device half of what is free there at the start.
    pub kv_memory_bytes: Option<usize>,
    /// Bytes for keys and values of prefixes. Default 256 MiB.
    pub prefix_memory_bytes: usize,
}

impl Default for GeneratorConfig {
    fn default() -> Self {
        Self {
            threads: 1,
            max_model_len: None,
            prefill_tokens: 512,
            max_active: 256,
            max_queue: 1024,
            kv_memory_bytes: None,
            prefix_memory_bytes: 256 << 20,
        }
    }
}

/// Generates with a decoder in this process.
///
/// Requests are spread over engines, each of which answers its own in one batch. An answer does not
/// depend on the number of engines, nor on what else is asked.
pub struct Generator {
    engines: Vec<EngineThread>,
    counters: Arc<Counters>,
    memory: Arc<KvMemory>,
    config: GeneratorConfig,
    vocabulary: usize,
    /// Models that are served.
    models: usize,
    /// Tokens that prompt and answer may have together.
    limit: usize,
    bytes_per_token: usize,
    /// Bytes for keys and values, where they are bounded.
    memory_bytes: Option<usize>,
    publication: Mutex<Publication>,
    epoch: AtomicU64,
}

/// An adapter that is served beside the weights that it changes.
#[derive(Debug, Clone)]
pub struct ServedAdapter {
    /// Told as the author of answers.
    pub name: Arc<str>,
    /// Its factors.
    pub adapter: Arc<Adapter>,
    /// Their version.
    pub version: PolicyVersion,
}

/// What engines have beside a model.
enum Further<'a> {
    Nothing,
    /// Adapters on the same weights, models of their own.
    Adapters(&'a [ServedAdapter]),
    /// What tokens are drawn by.
    DrawRule(&'a Arc<LoadedDrawRule>),
}

struct Publication {
    weights: Arc<Weights>,
    version: PolicyVersion,
}

struct EngineThread {
    /// Taken when the generator is dropped, which ends the thread.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// What an engine thread is told.
enum Command {
    Generate(Box<GenerationRequest>, Option<u64>, Reply),
    Forget(usize, u64),
    Publish(Arc<Weights>, PolicyVersion, u64),
    PublishAdapter(usize, Arc<Adapter>, PolicyVersion, u64),
    Pause(bool),
}

/// An answer that comes about token by token.
///
/// Dropping it cancels the request: its memory is free after the step that is under way.
#[derive(Debug)]
pub struct Generation {
    events: mpsc::UnboundedReceiver<GenerationEvent>,
    is_over: bool,
}

impl Generation {
    /// The next token, or how the answer ended; nothing after that.
    pub async fn next(&mut self) -> Option<GenerationEvent> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Generation::next`], for those who wait for several answers.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<GenerationEvent>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        self.events.poll_recv(context).map(|event| {
            let event = event.unwrap_or(GenerationEvent::Failed(GenerateError::Closed));
            self.is_over = !matches!(event, GenerationEvent::Token(_));
            Some(event)
        })
    }
}

impl Generator {
    /// Starts engines on the weights, which are brought into the order of
    /// [`Weights::for_generation`]; `name` is told as the author of answers.
    ///
    /// # Errors
    ///
    /// What the system says when a thread cannot be started; `InvalidInput` if the memory for keys and
    /// values holds no token.
    pub fn new(
        name: &str,
        tokenizer: &Arc<Tokenizer>,
        weights: &Arc<Weights>,
        version: PolicyVersion,
        config: GeneratorConfig,
    ) -> std::io::Result<Self> {
        Self::start(name, tokenizer, weights, version, &Further::Nothing, config)
    }

    /// As [`Generator::new`], all tokens being drawn by a rule, whose models read what the main model reads; what the
    /// rule's models can read bounds prompt and answer as well. Memory for keys and values is shared by all of them. A decoder on a device draws
    /// on the CPU then.
    ///
    /// # Errors
    ///
    /// As [`Generator::new`].
    ///
    /// # Panics
    ///
    /// When a model of the rule has another vocabulary than the weights.
    pub fn with_draw_rule(
        name: &str,
        tokenizer: &Arc<Tokenizer>,
        weights: &Arc<Weights>,
        version: PolicyVersion,
        rule: &Arc<LoadedDrawRule>,
        config: GeneratorConfig,
    ) -> std::io::Result<Self> {
        let vocabulary = weights.config().vocab_size;
        let has_it = |model: &Arc<Weights>| model.config().vocab_size == vocabulary;
        assert!(rule.models().iter().all(has_it), "all models have one vocabulary");
        Self::start(name, tokenizer, weights, version, &Further::DrawRule(rule), config)
    }

    /// As [`Generator::new`], with adapters on the same weights as further models, from place 1 on; all of them are
    /// answered in one batch, and the weights are in memory once. Only on the CPU.
    ///
    /// # Errors
    ///
    /// As [`Generator::new`], and `Unsupported` where there are adapters and the weights are on a device.
    pub fn with_adapters(
        name: &str,
        tokenizer: &Arc<Tokenizer>,
        weights: &Arc<Weights>,
        version: PolicyVersion,
        adapters: &[ServedAdapter],
        config: GeneratorConfig,
    ) -> std::io::Result<Self> {
        if !adapters.is_empty() && weights.device().is_some() {
            let message = "several adapters are answered in one batch on the CPU alone";
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, message));
        }
        Self::start(name, tokenizer, weights, version, &Further::Adapters(adapters), config)
    }

    fn start(
        name: &str,
        tokenizer: &Arc<Tokenizer>,
        weights: &Arc<Weights>,
        version: PolicyVersion,
        further: &Further<'_>,
        config: GeneratorConfig,
    ) -> std::io::Result<Self> {
        let (adapters, beside): (&[ServedAdapter], &[Arc<Weights>]) = match further {
            Further::Nothing => (&[], &[]),
            Further::Adapters(adapters) => (adapters, &[]),
            Further::DrawRule(rule) => (&[], rule.models()),
        };
        let models = 1 + adapters.len();
        let name: Arc<str> = name.into();
        let weights = &weights.clone().for_generation();
        let threads = num_engines(weights, config.threads);
        let model = weights.config();
        // What a token takes of each model that reads it.
        let bytes_of_main = bytes_per_token(weights);
        let bytes_per_token =
            bytes_of_main + beside.iter().map(|model| bytes_per_token(model)).sum::<usize>();
        let memory_bytes = config.kv_memory_bytes.or_else(|| share_of_device(weights));
        let limit = memory_bytes.map_or(usize::MAX, |bytes| bytes / bytes_per_token);
        if limit == 0 {
            let bytes = memory_bytes.unwrap_or_default();
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!(
                    "{bytes} bytes for keys and values hold no token: one takes {bytes_per_token}"
                ),
            ));
        }
        // Each has a part of it, in tokens of its own.
        let prefixes = models + beside.len();
        let prefix_limit = config.prefix_memory_bytes / bytes_per_token * (1 + beside.len());
        let memory = Arc::new(KvMemory::new(limit, prefix_limit, threads, prefixes));
        let counters = Arc::new(Counters::new(threads));
        let engine_config = EngineConfig {
            prefill_tokens: config.prefill_tokens,
            max_active: config.max_active.max(1),
        };
        let engines = (0..threads)
            .map(|index| {
                let (commands, receiver) = channel();
                let mut engine = Engine::new(
                    name.clone(),
                    index,
                    tokenizer.clone(),
                    weights.clone(),
                    version,
                    engine_config,
                    memory.clone(),
                    counters.clone(),
                );
                for ServedAdapter { name, adapter, version } in adapters {
                    engine.serve_adapter(name.clone(), adapter.clone(), *version);
                }
                if let Further::DrawRule(rule) = further {
                    engine.draw_by(Arc::clone(rule));
                }
                let thread = std::thread::Builder::new()
                    .name(format!("engine-{index}"))
                    // Several engines keep the machine busy by themselves; one spreads its
                    // operations over all threads.
                    .spawn(move || match threads {
                        1 => run(engine, &receiver),
                        _ => serially(|| run(engine, &receiver)),
                    })?;
                Ok(EngineThread { commands: Some(commands), thread: Some(thread) })
            })
            .collect::<std::io::Result<_>>()?;
        let most = match further {
            Further::DrawRule(rule) => rule.context(model.max_position_embeddings),
            _ => model.max_position_embeddings,
        };
        Ok(Self {
            engines,
            counters,
            memory,
            limit: config.max_model_len.unwrap_or(most).min(most),
            vocabulary: model.vocab_size,
            models,
            bytes_per_token,
            memory_bytes,
            config,
            publication: Mutex::new(Publication { weights: weights.clone(), version }),
            epoch: AtomicU64::new(0),
        })
    }

    /// Asks for an answer.
    ///
    /// # Errors
    ///
    /// When the request cannot be answered, or too many wait ([`GenerateError::QueueFull`]).
    pub fn generate(&self, request: GenerationRequest) -> Result<Generation, GenerateError> {
        self.check(&request)?;
        let waiting = self.counters.waiting.load(Ordering::Relaxed).max(0) as usize;
        if waiting >= self.config.max_queue {
            return Err(GenerateError::QueueFull { waiting });
        }
        let (events, receiver) = mpsc::unbounded_channel();
        let engine = self.counters.idlest_engine();
        self.send_to(engine, request, None, Reply::Events(events));
        Ok(Generation { events: receiver, is_over: false })
    }

    /// Goes on with other weights of the same shape, from the next token on.
    pub fn publish(&self, weights: &Arc<Weights>, version: PolicyVersion) {
        let weights = weights.clone().for_generation();
        // All engines see publications in the same order.
        let mut publication = self.publication.lock().unwrap_or_else(PoisonError::into_inner);
        *publication = Publication { weights: weights.clone(), version };
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        self.counters.publications.fetch_add(1, Ordering::Relaxed);
        for engine in &self.engines {
            engine.send(Command::Publish(weights.clone(), version, epoch));
        }
    }

    /// Goes on with another version of the adapter that is the model in this place, from the next token on; the other
    /// models are not concerned.
    ///
    /// # Panics
    ///
    /// When no adapter was served there from the start.
    pub fn publish_adapter(&self, model: usize, adapter: &Arc<Adapter>, version: PolicyVersion) {
        assert!((1..self.models).contains(&model), "an adapter is served as model {model}");
        // All engines see publications in the same order.
        let _publication = self.publication.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        self.counters.publications.fetch_add(1, Ordering::Relaxed);
        for engine in &self.engines {
            engine.send(Command::PublishAdapter(model, adapter.clone(), version, epoch));
        }
    }

    /// The weights published last, and their version.
    pub fn published(&self) -> (Arc<Weights>, PolicyVersion) {
        let publication = self.publication.lock().unwrap_or_else(PoisonError::into_inner);
        (publication.weights.clone(), publication.version)
    }

    /// Interrupts all answers after the step that is under way. Requests are taken, but nothing is
    /// drawn until [`Generator::resume`]; answers then go on where they were.
    pub fn pause(&self) {
        self.engines.iter().for_each(|engine| engine.send(Command::Pause(true)));
    }

    /// Goes on after [`Generator::pause`].
    pub fn resume(&self) {
        self.engines.iter().for_each(|engine| engine.send(Command::Pause(false)));
    }

    /// Engines that there are.
    pub(crate) fn num_engines(&self) -> usize {
        self.engines.len()
    }

    /// Tokens that prompt and answer may have together.
    pub fn max_model_len(&self) -> usize {
        self.limit
    }

    /// Tokens that the model tells apart.
    pub fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    /// What generation has done so far, and does now.
    pub fn metrics(&self) -> GeneratorMetrics {
        let mut metrics = self.counters.read();
        metrics.memory_used_tokens = self.memory.used() as u64;
        metrics.memory_prefix_tokens = self.memory.kept() as u64;
        metrics.memory_limit_tokens =
            self.memory_bytes.map(|bytes| (bytes / self.bytes_per_token) as u64);
        metrics.bytes_per_token = self.bytes_per_token as u64;
        metrics
    }

    /// Whether a request can be answered at all.
    pub(crate) fn check(&self, request: &GenerationRequest) -> Result<(), GenerateError> {
        let (model, models) = (request.model, self.models);
        if model >= models {
            return Err(GenerateError::NoSuchModel { model, models });
        }
        request.validate(self.vocabulary, self.limit)?;
        let tokens = request.prompt_ids.len() + request.max_tokens;
        let limit = self.memory.share();
        if tokens > limit { Err(GenerateError::MemoryTooSmall { tokens, limit }) } else { Ok(()) }
    }

    /// Sends a request that has been checked to an engine.
    pub(crate) fn send_to(
        &self,
        engine: usize,
        request: GenerationRequest,
        episode: Option<u64>,
        reply: Reply,
    ) {
        self.counters.submit(engine);
        self.engines[engine].send(Command::Generate(Box::new(request), episode, reply));
    }

    /// Tells an engine that no further turn of a conversation with a model will come.
    pub(crate) fn forget(&self, engine: usize, model: usize, episode: u64) {
        self.engines[engine].send(Command::Forget(model, episode));
    }
}

impl EngineThread {
    /// A thread that has ended drops the command, and with it the reply: the caller is told.
    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        for engine in &mut self.engines {
            engine.commands = None;
        }
        for engine in &mut self.engines {
            if let Some(thread) = engine.thread.take() {
                // A panic of the engine has been reported by then.
                let _ = thread.join();
            }
        }
    }
}

/// Engines for a decoder where so many are wanted: the calls of a device are done one after the other, so
/// that several engines would make small batches of a large one.
fn num_engines(weights: &Weights, wanted: usize) -> usize {
    if weights.device().is_some() { 1 } else { wanted.max(1) }
}

/// Half of the memory that is free on the decoder's device: the other half is for what is computed there.
fn share_of_device(weights: &Weights) -> Option<usize> {
    // What a device cannot tell now, it will when it is asked for a page.
    weights.device().and_then(|device| device.free_bytes().ok()).map(|free| free / 2)
}

fn run(mut engine: Engine, commands: &Receiver<Command>) {
    let mut is_paused = false;
    loop {
        // Sleep only when there is nothing to do; then take all that waits.
        if is_paused || !engine.is_busy() {
            match commands.recv() {
                Ok(command) => take(&mut engine, command, &mut is_paused),
                Err(_) => return,
            }
        }
        loop {
            match commands.try_recv() {
                Ok(command) => take(&mut engine, command, &mut is_paused),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if engine.is_busy() && !is_paused {
            engine.step();
        }
    }
}

fn take(engine: &mut Engine, command: Command, is_paused: &mut bool) {
    match command {
        Command::Generate(request, episode, reply) => engine.add(*request, episode, reply),
        Command::Forget(model, episode) => engine.forget(model, episode),
        Command::PublishAdapter(model, adapter, version, epoch) => {
            engine.publish_adapter(model, adapter, version, epoch);
        }
        Command::Publish(weights, version, epoch) => engine.publish(weights, version, epoch),
        Command::Pause(paused) => *is_paused = paused,
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::cuda::{Device, Number};
    use crate::{ModelConfig, TokenizerConfig, initial_parameters};

    #[test]
    fn a_device_has_one_engine_and_bounded_memory() {
        let games = [["You see a door.", "open door"]];
        let tokenizer = Arc::new(Tokenizer::train(games, &TokenizerConfig::default()).unwrap());
        let config = ModelConfig {
            vocab_size: tokenizer.vocab_size(),
            hidden_size: 16,
            intermediate_size: 16,
            num_hidden_layers: 1,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            ..ModelConfig::default()
        };
        let here = Weights::new(&config, initial_parameters(&config, Seed::from_u64(1)));
        let device = Device::emulated();
        let there = here.on_device(&device, Number::Bf16).unwrap();
        let start = |weights: Weights, kv_memory_bytes| {
            let config =
                GeneratorConfig { threads: 3, kv_memory_bytes, ..GeneratorConfig::default() };
            let version = PolicyVersion(0);
            Generator::new("test", &tokenizer, &Arc::new(weights), version, config)
        };
        let limit = |generator: &Generator| generator.metrics().memory_limit_tokens;
        let on_cpu = start(here, None).unwrap();
        assert_eq!((on_cpu.num_engines(), limit(&on_cpu)), (3, None));
        let on_device = start(there.clone(), None).unwrap();
        assert_eq!(on_device.num_engines(), 1);
        // Keys and values of 8 channels in two bytes each.
        assert_eq!(on_device.metrics().bytes_per_token, 32);
        let half = device.free_bytes().unwrap() as u64 / 2 / 32;
        let found = limit(&on_device).unwrap();
        assert!(found.abs_diff(half) <= half / 100, "{found} for {half}");
        assert_eq!(limit(&start(there.clone(), Some(6400)).unwrap()), Some(200));
        let told = start(there, Some(31)).map(|_| ()).unwrap_err().to_string();
        assert_eq!(told, "31 bytes for keys and values hold no token: one takes 32");
    }
}
