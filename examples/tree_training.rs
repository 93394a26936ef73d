//! What training on trees saves: groups that are grown by branching, trained as trees and flat.
//!
//! As a tree, what trajectories share is read, judged and differentiated once. Flat, every trajectory is a
//! sequence of its own, and each token weighs one over the number of trajectories that hold it. Both give the same
//! gradient; the example prints how far they are apart, and how much longer flat takes.
//!
//! ```text
//! cargo run --release --example tree_training
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spar::agent::credit::{BatchView, settle_ownership};
use spar::agent::policies::RandomPolicy;
use spar::agent::strategies::{Branching, BranchingOptions, Independent, RolloutStrategy};
use spar::agent::{
    Cancellation, CollectConfig, CollectRequest, CutBatch, Seating, SharedPlayer, collect_groups,
};
use spar::core::{Credit, Group, Lineage, PolicyVersion, Sample, Seed, Trajectory, Turn};
use spar::envs::{Resources, open_environment};
use spar::policy::{
    LocalPolicy, ModelConfig, Parameters, Tokenizer, TokenizerConfig, Weights, initial_parameters,
};
use spar::tasks::{RewardShapers, SuiteOptions, Task, open_suite};
use spar::trainer::{DecoderGradient, Measured, SampleGradient, Slopes};

/// Both ways to train the same groups.
pub(crate) struct Comparison {
    /// Tokens that are read as trees, and flat.
    pub(crate) tokens: [usize; 2],
    /// The time of forward and backward as trees, and flat.
    pub(crate) times: [Duration; 2],
    /// The largest difference of the two gradients, to the largest entry of the flat one.
    pub(crate) difference: f32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for (trunks, size) in [(1, 8), (2, 8), (4, 8), (2, 16)] {
        let found = compare(4, trunks, size, 128, 3).await?;
        let [tree, flat] = found.times.map(|time| time.as_secs_f64() * 1e3);
        println!(
            "{trunks} trunks, groups of {size}: {} tokens as trees, {} flat; {tree:.0} ms and {flat:.0} ms, \
             {:.2} times; gradients differ by {:.1e}",
            found.tokens[0],
            found.tokens[1],
            flat / tree,
            found.difference,
        );
    }
    Ok(())
}

/// Grows groups of household tasks by a policy of random weights and this width, and trains them both ways, each
/// `rounds` times; of the times the shortest counts.
///
/// # Errors
///
/// When no episode could be played, or the model cannot be run.
pub(crate) async fn compare(
    tasks: usize,
    trunks: usize,
    group_size: usize,
    width: usize,
    rounds: usize,
) -> Result<Comparison, Box<dyn Error>> {
    let suite = open_suite("household", &SuiteOptions::default())?;
    let tasks: Vec<Task> =
        (0..tasks).map(|index| suite.task("train", index)).collect::<Result<_, _>>()?;
    let (model, policy) = policy(&tasks, width).await?;
    let strategy = Branching::new(BranchingOptions { trunks, ..BranchingOptions::default() })?;
    let player = SharedPlayer::of(policy);
    let groups = play(&tasks, player, &strategy, group_size, 12).await;

    // A policy of random weights seldom solves anything: any advantages do.
    let advantage =
        |index: usize| if index.is_multiple_of(2) { 0.5 } else { -0.3 } + index as f64 / 10.0;
    let trajectories = || groups.iter().flat_map(|group| &group.trajectories);
    let of_trajectory =
        |(index, trajectory): (usize, &Trajectory)| vec![advantage(index); trajectory.turns.len()];
    let credit = Credit::of_turns(trajectories().enumerate().map(of_trajectory).collect());
    let kept = vec![true; trajectories().count()];
    let batch = BatchView::shaped(&groups, &RewardShapers::default());
    let settled = settle_ownership(&batch, credit.clone(), &kept)?;
    let tree = CutBatch::new(&groups)?.weigh(&settled, &kept)?;
    // Flat, every trajectory stands for itself.
    let mut flat = CutBatch::new(&groups)?.weigh(&credit, &kept)?;
    weigh_by_paths(&groups, &mut flat)?;
    let (parameters, weights) = model;
    let gradient_of = DecoderGradient::new(weights, 1.0);
    let all = |samples: &[Sample], together: bool| -> Result<_, Box<dyn Error>> {
        let mut best = Duration::MAX;
        let mut gradient = Vec::new();
        for _ in 0..rounds {
            let started = Instant::now();
            gradient = vec![0.0; parameters.data.len()];
            let prepared = gradient_of.prepare(&parameters);
            let samples: Vec<&Sample> = samples.iter().collect();
            let batch = if together { samples.len() } else { 1 };
            for samples in samples.chunks(batch) {
                let loss = |index: usize, _: Measured<'_>| Slopes::from(slopes(samples[index]));
                prepared
                    .accumulate(samples, &loss, &mut gradient, None)
                    .map_err(|error| error as Box<dyn Error>)?;
            }
            best = best.min(started.elapsed());
        }
        Ok((gradient, best))
    };
    let (of_tree, tree_time) = all(&tree, true)?;
    let (of_flat, flat_time) = all(&flat, false)?;
    let largest = of_flat.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let apart = of_tree.iter().zip(&of_flat).map(|(tree, flat)| (tree - flat).abs());
    Ok(Comparison {
        tokens: [distinct_tokens(&tree), flat.iter().map(Sample::len).sum()],
        times: [tree_time, flat_time],
        difference: apart.fold(0.0, f32::max) / largest,
    })
}

/// The policy gradient at the weights that sampled: `-A` per token that weighs.
fn slopes(sample: &Sample) -> Vec<f32> {
    let weighted = sample.policy_weights.iter().zip(&sample.advantages);
    weighted.map(|(weight, advantage)| -weight * advantage).collect()
}

/// Makes each token weigh one over the number of trajectories that hold it.
fn weigh_by_paths(groups: &[Group], samples: &mut [Sample]) -> Result<(), Box<dyn Error>> {
    let mut samples = samples.iter_mut();
    for group in groups {
        // Who sampled the tokens of each trajectory, in their order.
        let mut samplers: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut paths: HashMap<(u64, usize), f32> = HashMap::new();
        for trajectory in &group.trajectories {
            let Lineage { parent, fork_turn, fork_token, .. } = trajectory.lineage;
            let tokens = |turn: &Turn| turn.sampled.ids.len();
            let before = trajectory.turns[..fork_turn as usize].iter().map(tokens).sum::<usize>();
            let taken = before + fork_token.unwrap_or(0) as usize;
            let origin = parent.and_then(|parent| samplers.get(&parent));
            let mut of_this = origin.map(|all| all[..taken].to_vec()).unwrap_or_default();
            of_this.resize(trajectory.turns.iter().map(tokens).sum(), trajectory.episode);
            for token in of_this.iter().copied().zip(0..) {
                *paths.entry(token).or_default() += 1.0;
            }
            samplers.insert(trajectory.episode, of_this);
        }
        for trajectory in &group.trajectories {
            // Nothing is cut where all turns are kept: a trajectory is one sample.
            let sample = samples.next().ok_or("an episode without a sample")?;
            let weights = sample.policy_weights.iter_mut().zip(&sample.turns);
            let drawn = weights.filter(|(_, turn)| **turn != Sample::OBSERVED);
            let of_this = samplers[&trajectory.episode].iter().copied().zip(0..);
            for ((weight, _), token) in drawn.zip(of_this) {
                *weight /= paths[&token];
            }
        }
    }
    Ok(())
}

/// Tokens where what several samples begin with counts once.
fn distinct_tokens(samples: &[Sample]) -> usize {
    let mut sequences: Vec<&[u32]> = samples.iter().map(|sample| &sample.tokens[..]).collect();
    sequences.sort_unstable();
    let shared = |pair: &[&[u32]]| pair[0].iter().zip(pair[1]).take_while(|(a, b)| a == b).count();
    let all: usize = sequences.iter().map(|sequence| sequence.len()).sum();
    all - sequences.windows(2).map(shared).sum::<usize>()
}

async fn play(
    tasks: &[Task],
    player: SharedPlayer,
    strategy: &dyn RolloutStrategy,
    group_size: usize,
    max_turns: u32,
) -> Vec<Group> {
    let resources = Resources::default();
    let request = CollectRequest {
        tasks,
        player,
        seating: Seating::default(),
        strategy,
        open: Arc::new(move |task| open_environment(task, &resources)),
        seed: Seed::from_u64(1),
        cancellation: &Cancellation::new(),
        on_episode: &|_| {},
    };
    let mut config = CollectConfig { group_size, ..CollectConfig::default() };
    config.episode.max_turns = Some(max_turns);
    collect_groups(&request, &config).await.groups
}

/// A policy of random weights that knows the words of these tasks.
async fn policy(
    tasks: &[Task],
    width: usize,
) -> Result<((Parameters, Arc<Weights>), LocalPolicy), Box<dyn Error>> {
    let groups = play(tasks, SharedPlayer::of(RandomPolicy), &Independent, 2, 30).await;
    let texts: Vec<Vec<&str>> = groups
        .iter()
        .flat_map(|group| &group.trajectories)
        .map(|trajectory| {
            let turns = trajectory.turns.iter();
            let shown = turns.flat_map(|turn| [&turn.text[..], &turn.step.observation.text[..]]);
            std::iter::once(&trajectory.first_observation.text[..]).chain(shown).collect()
        })
        .collect();
    let tokenizer = Tokenizer::train(texts, &TokenizerConfig::default())?;
    let config = ModelConfig {
        vocab_size: tokenizer.vocab_size(),
        hidden_size: width,
        intermediate_size: 2 * width,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: width / 4,
        max_position_embeddings: 8192,
        ..ModelConfig::default()
    };
    let parameters = initial_parameters(&config, Seed::from_u64(2));
    let weights = Arc::new(Weights::new(&config, parameters.clone()));
    let version = PolicyVersion(0);
    let policy = LocalPolicy::new("local", Arc::new(tokenizer), weights.clone(), version, 1)?;
    Ok(((parameters, weights), policy))
}
