//! Time to encode a message of about 30 tokens, and a message of words that are not known.

use criterion::{Criterion, criterion_group, criterion_main};
use spar_core::{Message, Role};
use spar_text::{Tokenizer, TokenizerConfig};

const NOUNS: [&str; 7] = ["desk", "mug", "shelf", "bowl", "apple", "lamp", "plate"];

fn observation(first: usize) -> String {
    let noun = |shift: usize| NOUNS[(first + shift) % NOUNS.len()];
    format!(
        "You arrive at {} 1. On the {} 1, you see a {} 2, a {} 1, a {} 3, a {} 12, and a {} 2.",
        noun(0),
        noun(0),
        noun(1),
        noun(2),
        noun(3),
        noun(4),
        noun(5)
    )
}

fn tokenizer(criterion: &mut Criterion) {
    let games: Vec<[String; 2]> =
        (0..20).map(|game| [observation(game), observation(3 * game)]).collect();
    let games = games.iter().map(|game| game.iter().map(String::as_str));
    let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).expect("768 is enough");
    let known = Message::new(Role::User, observation(4));
    let words = "zebra quagga okapi xerus vicuna numbat dugong jerboa";
    let unknown = Message::new(Role::User, words);
    let mut group = criterion.benchmark_group("tokenizer");
    for (name, message) in [("known words", known), ("unknown words", unknown)] {
        let tokens = tokenizer.encode_message(None, &message).len();
        group.bench_function(format!("{name}, {tokens} tokens"), |bencher| {
            bencher.iter(|| tokenizer.encode_message(None, &message));
        });
    }
    group.finish();
}

criterion_group!(benches, tokenizer);
criterion_main!(benches);
