//! A decoder in this process as a policy.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, PolicyVersion};
use tokio::sync::oneshot;

use crate::engine::Engine;
use crate::{Tokenizer, Weights};

type Reply = oneshot::Sender<Result<Completion, PolicyError>>;

/// What an engine thread is told.
enum Command {
    Complete(Box<CompletionRequest>, Reply),
    Forget(u64),
    Publish(Arc<Weights>, PolicyVersion),
}

/// A decoder in this process as a policy.
///
/// Conversations are spread over engine threads, each of which answers its own in one batch.
/// Answers do not depend on the number of threads, nor on what else is asked.
pub struct LocalPolicy {
    name: Arc<str>,
    tokenizer: Arc<Tokenizer>,
    engines: Vec<EngineThread>,
    router: Mutex<Router>,
}

struct EngineThread {
    /// Taken when the policy is dropped, which ends the thread.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// Which engine has which conversation.
struct Router {
    episodes: HashMap<u64, usize>,
    /// Conversations that open with the same prompt go to the same engine, which reads it once.
    prompts: HashMap<Arc<[u32]>, usize>,
    live: Vec<usize>,
}

impl LocalPolicy {
    /// Starts `threads` engines on the weights.
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
        if !tokenizer.has_message_layout() {
            let message = "its chat template does not lay out messages one by one";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
        }
        let name: Arc<str> = name.into();
        let threads = threads.max(1);
        let engines = (0..threads)
            .map(|index| {
                let (commands, receiver) = channel();
                let (name, tokenizer) = (name.clone(), tokenizer.clone());
                let engine = Engine::new(name, tokenizer, weights.clone(), version);
                let thread = std::thread::Builder::new()
                    .name(format!("engine-{index}"))
                    .spawn(move || run(engine, &receiver))?;
                Ok(EngineThread { commands: Some(commands), thread: Some(thread) })
            })
            .collect::<std::io::Result<_>>()?;
        let router =
            Router { episodes: HashMap::new(), prompts: HashMap::new(), live: vec![0; threads] };
        Ok(Self { name, tokenizer, engines, router: Mutex::new(router) })
    }

    /// Goes on with other weights, from the next token on.
    pub fn publish(&self, weights: &Arc<Weights>, version: PolicyVersion) {
        for engine in &self.engines {
            engine.send(Command::Publish(weights.clone(), version));
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    fn route(&self, episode: u64, prompt: &Arc<[u32]>) -> &EngineThread {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        let Router { episodes, prompts, live } = &mut *router;
        let index = *episodes.entry(episode).or_insert_with(|| {
            if prompts.len() > 4096 {
                prompts.clear();
            }
            let index = *prompts.entry(prompt.clone()).or_insert_with(|| {
                (0..live.len()).min_by_key(|index| live[*index]).unwrap_or_default()
            });
            live[index] += 1;
            index
        });
        &self.engines[index]
    }
}

#[async_trait]
impl Policy for LocalPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self, message: &Message) -> Vec<u32> {
        self.tokenizer.encode_message(message)
    }

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        let engine = self.route(request.episode, &request.prompt_ids);
        let (reply, answer) = oneshot::channel();
        engine.send(Command::Complete(Box::new(request), reply));
        answer.await.unwrap_or_else(|_| Err(PolicyError::Closed { name: self.name.to_string() }))
    }

    fn forget(&self, episode: u64) {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = router.episodes.remove(&episode) {
            router.live[index] -= 1;
            self.engines[index].send(Command::Forget(episode));
        }
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

impl Drop for LocalPolicy {
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

fn run(mut engine: Engine<Reply>, commands: &Receiver<Command>) {
    loop {
        // Sleep only when there is nothing to do; then take all that waits.
        if !engine.is_busy() {
            match commands.recv() {
                Ok(command) => take(&mut engine, command),
                Err(_) => return,
            }
        }
        loop {
            match commands.try_recv() {
                Ok(command) => take(&mut engine, command),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if engine.is_busy() {
            engine.step(&mut |reply, completion| {
                // Whoever asked may have given up.
                let _ = reply.send(Ok(completion));
            });
        }
    }
}

fn take(engine: &mut Engine<Reply>, command: Command) {
    match command {
        Command::Complete(request, reply) => {
            if let Err((reply, error)) = engine.add(*request, reply) {
                let _ = reply.send(Err(error));
            }
        }
        Command::Forget(episode) => engine.forget(episode),
        Command::Publish(weights, version) => engine.publish(weights, version),
    }
}
