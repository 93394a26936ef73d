//! Serves a small model of random weights, to try clients against.
//!
//! ```text
//! cargo run -p spar-serve --example serve_random -- [PORT] [WEIGHTS_ROOT]
//! ```
//!
//! With a root, three checkpoints of other random weights are written below it, `1` to `3`, for
//! `POST /weights`.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use spar_core::Seed;
use spar_policy::checkpoint::save_model;
use spar_policy::{
    GeneratorConfig, ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};
use spar_serve::{PolicyServer, ServedModel, ServerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().unwrap_or_else(|| "8000".to_owned());
    let root = arguments.next().map(PathBuf::from);

    let games: Vec<String> = (0..40)
        .map(|n| format!("You see a desk {n}, a bed {} and a door. Go north, open the box.", n + 1))
        .collect();
    let tokenizer =
        Tokenizer::train(games.iter().map(|game| [game.as_str()]), &TokenizerConfig::default())?;
    let config = ModelConfig {
        vocab_size: tokenizer.vocab_size(),
        hidden_size: 64,
        intermediate_size: 128,
        max_position_embeddings: 4096,
        ..ModelConfig::default()
    };
    let parameters = |seed| initial_parameters(&config, Seed::from_u64(seed));
    if let Some(root) = &root {
        for seed in 1..=3 {
            save_model(&root.join(seed.to_string()), &config, &parameters(seed), &tokenizer)?;
        }
    }
    let weights = Arc::new(Weights::new(&config, parameters(0)));
    let generator = GeneratorConfig {
        kv_memory_bytes: Some(64 << 20),
        prefix_memory_bytes: 16 << 20,
        ..GeneratorConfig::default()
    };
    let model = ServedModel::new("random", Arc::new(tokenizer), &weights, generator)?;
    let server_config = ServerConfig { weights_root: root, ..ServerConfig::default() };
    let server = PolicyServer::bind(&format!("127.0.0.1:{port}"), model, server_config).await?;
    println!("serving `random` at http://{}/v1", server.address());
    server
        .serve(async {
            // Until the process is ended.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await;
    Ok(())
}
