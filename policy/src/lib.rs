//! The model that acts: tokenizer, decoder, generation in batches, and models on disk.
//!
//! ```text
//!  texts ─▶ Tokenizer ─encode_message─▶ prompt tokens
//!                                            │
//!  ModelConfig, Parameters ─▶ Weights ─▶ LocalPolicy (Policy) ─▶ Completion: tokens, log-probabilities
//!                                │           │ one engine per thread, one memory per conversation
//!                                │           ▼
//!                                └──▶ decoder::forward ─▶ head::log_probabilities
//!                                     decoder::backward ◀─ head::log_probabilities_backward
//!                                            │ ops: matrix product, attention, norms, rotary
//!  checkpoint: a folder in the layout of Hugging Face ◀──▶ ModelConfig, Parameters, Tokenizer
//! ```
//!
//! Generation and training call the same [`decoder::forward`]. A token's state depends on the
//! tokens before it in its own sequence alone, to the bit: not on what else is in the batch, on how
//! the sequence was cut into calls, or on the number of threads. So what training recomputes is
//! what was sampled.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spar_core::{CompletionRequest, Message, Policy, PolicyVersion, Role, Seed};
//! use spar_policy::{
//!     LocalPolicy, ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters,
//! };
//!
//! // A model from nothing that has read two games.
//! let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
//! let tokenizer = Tokenizer::train(games, &TokenizerConfig::default())?;
//! let vocab_size = tokenizer.vocab_size();
//! let config = ModelConfig { vocab_size, hidden_size: 32, ..ModelConfig::default() };
//! let parameters = initial_parameters(&config, Seed::from_u64(1));
//! let weights = Arc::new(Weights::new(&config, parameters));
//! let policy = LocalPolicy::new("local", Arc::new(tokenizer), weights, PolicyVersion(0), 1)?;
//!
//! // It answers with one of two commands, and tells how probable each token was.
//! let message = Arc::new(Message::new(Role::User, "You see a box."));
//! let request = CompletionRequest {
//!     prompt_ids: policy.encode(None, &message).into(),
//!     messages: vec![message].into(),
//!     choices: Some([Arc::from("open box"), Arc::from("open door")].into()),
//!     ..CompletionRequest::new(1, Seed::from_u64(2))
//! };
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let answer = runtime.block_on(policy.complete(request.clone()))?;
//! assert!(["open box", "open door"].contains(&answer.text.as_str()));
//! assert_eq!(answer.tokens.ids.len(), answer.tokens.logprobs.len());
//! // Equal requests have equal answers.
//! assert_eq!(runtime.block_on(policy.complete(request))?, answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod backend;
pub mod checkpoint;
mod config;
pub mod cuda;
pub mod decoder;
pub mod draw_rules;
mod engine;
mod error;
mod family;
mod generation;
mod generator;
mod half_parameters;
pub mod head;
mod layout;
mod local_policy;
mod lora;
mod parameters;
mod rounded_model;
pub mod sampling;
mod scoring;
pub mod state_heads;
mod weight_gradient;
mod weights;

pub use adapter::Adapter;
pub use config::ModelConfig;
pub use engine::GeneratorMetrics;
pub use error::{CheckpointError, GenerateError};
pub use family::Family;
pub use generation::{
    Constraint, Distribution, FinishReason, Finished, GeneratedToken, GenerationEvent,
    GenerationRequest, Report, StopConditions,
};
pub use generator::{Generation, Generator, GeneratorConfig, ServedAdapter};
pub use half_parameters::{HalfParameters, HalfType};
pub use local_policy::LocalPolicy;
pub use lora::{LORA_TARGETS, LoraConfig, LoraModel};
pub use parameters::{ParameterKind, ParameterSpec, Parameters, SharedBuffer};
pub use rounded_model::RoundedModel;
pub use scoring::token_log_probabilities;
pub use spar_ops as ops;
pub use spar_ops::RopeScaling;
pub use spar_text::{
    ChatTemplateError, Grammar, GrammarCache, GrammarCompiler, GrammarError, GrammarWalk,
    MaskedTokens, ReplayError, Spaces, TextStream, Tokenizer, TokenizerConfig, TokenizerError,
    chat_template, hub, tool_words,
};
pub use weight_gradient::{AdapterGradient, WeightGradient};
pub use weights::{Weights, initial_parameters};
