//! Writes small fresh models of all families with their tokenizer, and what they compute, for
//! `scripts/check_in_transformers.py`.
//!
//! ```text
//! cargo run -p spar-policy --example write_checkpoint -- FOLDER [GAMES.json]
//! ```
//!
//! `GAMES.json` holds the texts the tokenizer is made from: a list of games, each a list of
//! messages.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use spar_core::{Message, Role, Seed};
use spar_policy::checkpoint::{NumberType, SaveOptions, load_model, save_model_with};
use spar_policy::decoder::{Segment, SequenceCache, forward};
use spar_policy::head::logits;
use spar_policy::{
    Family, ModelConfig, RopeScaling, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};

/// Texts that readers of `tokenizer.json` might disagree on.
const TEXTS: [&str; 12] = [
    "You arrive at desk 12. On the desk 12, you see a mug 1.",
    "You arrive attentively",
    " two  spaces\tand\ttabs \n\n\nlines\r\n end ",
    "<|end|> and <|user|>",
    "naïve café 🙂 日本語, 1234567 ½ ٣",
    "...:::,,, a: you--see?!",
    "\u{a0}odd\u{2028}spaces\u{200b}",
    "e\u{301}",
    "x",
    " ",
    "\n",
    "fn main() { println!(\"{}\", 1 + 2); }",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().ok_or("the first argument is the folder to write")?;
    let games: Vec<Vec<String>> = match arguments.next() {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)?,
        None => made_up_games(),
    };
    let games = games.iter().map(|game| game.iter().map(String::as_str));
    let tokenizer = Tokenizer::train(games, &TokenizerConfig::default())?;

    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 64,
    };
    let (none, linear) = (RopeScaling::None, RopeScaling::Linear { factor: 2.5 });
    let in_one = SaveOptions::default();
    let in_several = SaveOptions { number_type: NumberType::Bf16, max_shard_bytes: 200_000 };
    let half = SaveOptions { number_type: NumberType::F16, ..SaveOptions::default() };
    for (name, family, rope_scaling, sliding_window, options) in [
        ("llama", Family::Llama, llama3, None, &in_one),
        ("llama-f16", Family::Llama, linear, None, &half),
        ("mistral", Family::Mistral, none, Some(5), &in_one),
        ("mistral-open", Family::Mistral, none, None, &in_several),
        ("qwen2", Family::Qwen2, none, None, &in_one),
        ("qwen2-window", Family::Qwen2, none, Some(7), &in_several),
        ("qwen3", Family::Qwen3, none, None, &in_one),
        ("qwen3-bf16", Family::Qwen3, linear, None, &in_several),
    ] {
        let config = ModelConfig {
            family,
            rope_scaling,
            sliding_window,
            vocab_size: tokenizer.vocab_size(),
            tie_word_embeddings: sliding_window.is_none(),
            partial_rotary_factor: 1.0,
            smear_tokens: 0,
            token_match_bias: false,
            ..ModelConfig::default()
        };
        write(&folder.join(name), &config, &tokenizer, options)?;
    }
    println!("{} tokens, phrases:", tokenizer.vocab_size());
    for phrase in tokenizer.phrases() {
        println!("  {phrase:?}");
    }
    Ok(())
}

/// Writes a model, and `expected.json` with what it computes once it is read again.
fn write(
    folder: &Path,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    options: &SaveOptions,
) -> Result<(), Box<dyn Error>> {
    let mut parameters = initial_parameters(config, Seed::from_u64(0));
    for (index, value) in parameters.data.iter_mut().enumerate() {
        *value += (index as f32 * 1.3).sin() * 0.1;
    }
    save_model_with(folder, config, &parameters, tokenizer, options)?;
    let (config, parameters, tokenizer) = load_model(folder)?;

    let conversation = [
        (Role::System, "Put objects where they belong."),
        (Role::User, TEXTS[0]),
        (Role::Assistant, "go to shelf 1"),
        (Role::User, "You arrive at shelf 1. On the shelf 1, you see a bowl 2."),
    ];
    let conversation = conversation.map(|(role, text)| Arc::new(Message::new(role, text)));
    let encode = |messages: &[Arc<Message>]| -> Vec<u32> {
        // Tokenizers made here lay a message out alike wherever it stands.
        messages.iter().flat_map(|message| tokenizer.encode_message(None, message)).collect()
    };
    let ids = encode(&conversation);

    let weights = Weights::new(&config, parameters);
    let mut cache = SequenceCache::new(&weights);
    let hidden = forward(&weights, &mut [Segment::new(&mut cache, &ids)], None);
    let logits = hidden.chunks(config.hidden_size).map(|state| {
        let mut row = Vec::new();
        logits(&weights, state, &[], &mut row);
        row
    });
    // Python's tokenizers take marks in a text for marks; ours only those around messages.
    let texts = TEXTS.iter().filter(|text| !text.contains("<|"));
    let expected = json!({
        "ids": ids,
        "logits": logits.collect::<Vec<_>>(),
        "texts": texts.map(|text| (text, tokenizer.encode(text))).collect::<Vec<_>>(),
        "conversations": [
            (&conversation[..], encode(&conversation)),
            (&conversation[1..3], encode(&conversation[1..3])),
        ],
    });
    std::fs::write(folder.join("expected.json"), expected.to_string())?;
    Ok(())
}

fn made_up_games() -> Vec<Vec<String>> {
    let nouns = ["desk", "mug", "shelf", "bowl", "apple", "lamp", "plate"];
    let game = |game: usize| {
        let turn = |turn: usize| {
            let (place, thing) = (nouns[(game + turn) % 7], nouns[(3 * game + turn) % 7]);
            format!("You arrive at {place} {turn}. On the {place} {turn}, you see a {thing} 1.")
        };
        (0..5).map(turn).collect()
    };
    (0..20).map(game).collect()
}
