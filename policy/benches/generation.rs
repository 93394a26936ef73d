//! Episodes per second of a policy in this process: many conversations of several turns, answers
//! restricted to choices, on one engine.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spar_core::{CompletionRequest, Message, Policy, PolicyVersion, Role, Seed};
use spar_policy::{
    LocalPolicy, ModelConfig, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};

const EPISODES: u64 = 128;
const TURNS: u64 = 8;

fn generation(criterion: &mut Criterion) {
    let games: Vec<Vec<String>> = (0..40)
        .map(|n| vec![format!("You are in a room. You see a desk {n}, and a bed {}.", n + 1)])
        .collect();
    let texts = games.iter().map(|game| game.iter().map(String::as_str));
    let tokenizer = Arc::new(Tokenizer::train(texts, &TokenizerConfig::default()).unwrap());
    let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..ModelConfig::default() };
    let parameters = initial_parameters(&config, Seed::from_u64(0));
    let weights = Arc::new(Weights::new(&config, parameters));
    let policy = LocalPolicy::new("bench", tokenizer, weights, PolicyVersion(0), 1).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();

    let mut group = criterion.benchmark_group("generation");
    group.sample_size(10).throughput(Throughput::Elements(EPISODES * TURNS));
    group.bench_function("128 episodes of 8 turns", |bencher| {
        let mut round = 0;
        bencher.iter(|| {
            round += 1;
            runtime.block_on(async {
                let episodes = (0..EPISODES).map(|episode| play(&policy, round, episode));
                futures::future::join_all(episodes).await
            })
        });
    });
    group.finish();
}

/// Plays one episode; the tokens it drew.
async fn play(policy: &LocalPolicy, round: u64, episode: u64) -> usize {
    let name = round * EPISODES + episode;
    let mut prompt: Vec<u32> = Vec::new();
    let mut drawn = 0;
    for turn in 0..TURNS {
        // Eight episodes of a group begin alike.
        let text = format!(
            "You are in a room. You see a desk {}, and a bed {turn}. ",
            if turn == 0 { episode / 8 } else { episode }
        );
        prompt.extend(policy.encode(None, &Message::new(Role::User, text.repeat(2))));
        let mut choices: Vec<Arc<str>> =
            (0..12).map(|n| format!("go to desk {}", n + turn).into()).collect();
        choices.sort();
        let request = CompletionRequest {
            prompt_ids: prompt.clone().into(),
            choices: Some(choices.into()),
            ..CompletionRequest::new(name, Seed::from_u64(name).derive("turn", turn))
        };
        let completion = policy.complete(request).await.unwrap();
        drawn += completion.tokens.ids.len();
        prompt.extend(completion.tokens.ids);
    }
    policy.forget(name);
    drawn
}

criterion_group!(benches, generation);
criterion_main!(benches);
