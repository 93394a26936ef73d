//! A small model behind a server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use spar_core::Seed;
use spar_policy::checkpoint::save_model;
use spar_policy::{
    GeneratorConfig, ModelConfig, Parameters, Tokenizer, TokenizerConfig, Weights,
    initial_parameters,
};
use spar_serve::{PolicyServer, ServedModel, ServerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server that runs until it is dropped, or told to stop.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<usize>,
}

impl Running {
    /// Stops it; how many connections were cut off.
    pub(crate) async fn stop(mut self) -> usize {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap()
    }
}

pub(crate) fn tokenizer() -> Tokenizer {
    let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
    Tokenizer::train(games, &TokenizerConfig::default()).unwrap()
}

pub(crate) fn model_config(tokenizer: &Tokenizer) -> ModelConfig {
    ModelConfig {
        vocab_size: tokenizer.vocab_size(),
        hidden_size: 16,
        intermediate_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: 2048,
        ..ModelConfig::default()
    }
}

pub(crate) fn parameters(config: &ModelConfig, seed: u64) -> Parameters {
    let mut parameters = initial_parameters(config, Seed::from_u64(seed));
    // Larger than usual, so that answers are not all alike.
    parameters.data.iter_mut().for_each(|value| *value *= 2.0);
    parameters
}

/// Writes a checkpoint whose weights derive from `seed`.
pub(crate) fn checkpoint(folder: &Path, seed: u64) {
    let tokenizer = tokenizer();
    let config = model_config(&tokenizer);
    save_model(folder, &config, &parameters(&config, seed), &tokenizer).unwrap();
}

pub(crate) async fn start_with(generator: GeneratorConfig, config: ServerConfig) -> Running {
    let tokenizer = tokenizer();
    let model_config = model_config(&tokenizer);
    let weights = Arc::new(Weights::new(&model_config, parameters(&model_config, 1)));
    let model = ServedModel::new("small", Arc::new(tokenizer), &weights, generator).unwrap();
    let server = PolicyServer::bind("127.0.0.1:0", model, config).await.unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    Running { address, stop: Some(stop), task }
}

pub(crate) async fn start() -> Running {
    start_with(GeneratorConfig::default(), ServerConfig::default()).await
}

/// The value of a metric.
pub(crate) async fn metric(address: SocketAddr, name: &str) -> f64 {
    let answer = super::client::get(address, "/metrics").await;
    let text = String::from_utf8(answer.body).unwrap();
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name}")).rsplit(' ').next().unwrap().parse().unwrap()
}

/// Waits until something holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("it never came about");
}
