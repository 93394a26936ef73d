//! Training on trees, held against all of their paths, each trained by itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use spar::agent::credit::{BatchView, SharedTurns};
use spar::agent::{CutBatch, TurnMask, cut_samples};
use spar::core::{
    Credit, EndReason, Group, Lineage, Message, Observation, ParsedAction, PerTurnOrToken,
    PolicyVersion, PromptTokens, Role, Sample, SampledTokens, Seat, Seed, Source, Step, StopCause,
    TRAJECTORY_VERSION, TokenCounts, Trajectory, Turn, TurnKind, Versions,
};
use spar::policy::state_heads::{HeadWeights, StateHeadConfig};
use spar::policy::{ModelConfig, Parameters, Weights, initial_parameters};
use spar::recipe::ReinforceConfig;
use spar::tasks::RewardShapers;
use spar::trainer::{
    BatchWeight, DecoderGradient, HeadGradient, LossAggregation, MeasureRequest, Measured,
    Objective, ObjectiveConfig, PreparedModel, SampleGradient, Slopes, Update, objective_registry,
};

const VOCABULARY: usize = 12;

/// Every objective that groups can be trained by, with each aggregation that it takes. What would leave tokens out by
/// chance leaves none out, and of the divergence from a reference model no two words are lost: it counts every token
/// that is trained once, whatever it weighs. No value is held back by its clip: all are as they were.
const OBJECTIVES: [&str; 31] = [
    "name = 'clip'",
    "name = 'clip'\naggregation = 'sample_mean'",
    "name = 'clip'\naggregation = { sample_sum = { constant = 7.0 } }",
    "name = 'clip'\noptions = { entropy_weight = 0.3, dual_clip = 3.0 }",
    "name = 'clip_cov'\noptions = { cov_low = 1e8, cov_high = 1e9 }",
    "name = 'gspo'\naggregation = 'sample_mean'\noptions = { clip_low = 0.1, clip_high = 0.1 }",
    "name = 'clip'\nvalue_loss = {}",
    "name = 'clip'\naggregation = 'sample_mean'\nvalue_loss = { weight = 2.0, clip = 0.2 }",
    "name = 'clip'\naggregation = { sample_sum = { constant = 7.0 } }\nvalue_loss = {}",
    "name = 'gspo'\naggregation = 'sample_mean'\nvalue_loss = {}",
    "name = 'supervised'",
    "name = 'supervised'\naggregation = 'sample_mean'",
    "name = 'supervised'\naggregation = { sample_sum = { constant = 7.0 } }",
    "name = 'awr'",
    "name = 'cispo'\noptions = { clip_low = 0.2, clip_high = 0.2, masked = true }",
    "name = 'dppo'",
    "name = 'dro'",
    "name = 'fiberpo'\noptions = { base = 0.05, fiber = 0.1 }",
    "name = 'gmpo'\naggregation = 'sample_mean'\noptions = { clip_low = 0.1, clip_high = 0.1 }",
    "name = 'kimi'",
    // Which tokens covary most differs between a path and an update.
    "name = 'kl_cov'\noptions = { weight = 0.0 }",
    "name = 'minpro'",
    "name = 'opmd'",
    "name = 'policy_gradient'",
    "name = 'rec'",
    "name = 'rl_plus'",
    "name = 'sapo_gate'",
    "name = 'sppo'",
    "name = 'topr'",
    "name = 'values_alone'\nvalue_loss = {}",
    "name = 'vespo'",
];

/// Draws one number after the other.
struct Dice(Seed, u64);

impl Dice {
    /// A number from 0 to below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.1 += 1;
        (self.0.derive("roll", self.1).as_u64() % sides as u64) as usize
    }

    fn is_one_of(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

/// A group that was grown as a tree, in which every token that was sampled has a name of its own.
struct Tree {
    /// All episodes, failed ones too; parents come before their forks.
    episodes: Vec<(Trajectory, Vec<u64>)>,
    has_failed: Vec<bool>,
    /// By the episodes that did not fail, as what comes below.
    kept: Vec<bool>,
    /// Of every turn.
    advantages: Vec<Vec<f64>>,
    /// Of every turn: what a value head learns.
    returns: Vec<Vec<f64>>,
    mask: TurnMask,
}

impl Tree {
    fn grow(seed: Seed) -> Self {
        let mut dice = Dice(seed, 0);
        let mut names = 0..;
        let mut episodes: Vec<(Trajectory, Vec<u64>)> = Vec::new();
        for id in 0..2 + dice.roll(6) as u64 {
            let mut grown = (trajectory(100 + id), Vec::new());
            if id > 0 && !dice.is_one_of(5) {
                let origin = &episodes[dice.roll(episodes.len())];
                grown = fork(&mut dice, &mut names, origin, 100 + id);
            }
            let own = usize::from(grown.0.turns.is_empty()) + dice.roll(3);
            (0..own).for_each(|_| add_turn(&mut dice, &mut names, &mut grown));
            episodes.push(grown);
        }
        let has_failed: Vec<bool> = episodes.iter().map(|_| dice.is_one_of(5)).collect();
        let survivors: Vec<&Trajectory> =
            episodes.iter().zip(&has_failed).filter(|it| !it.1).map(|it| &it.0.0).collect();
        let kept = survivors.iter().map(|_| !dice.is_one_of(6)).collect();
        let mut worths = || -> Vec<Vec<f64>> {
            let mut worth = |_| (dice.roll(9) as f64 - 4.0) / 2.0;
            survivors.iter().map(|found| found.turns.iter().map(&mut worth).collect()).collect()
        };
        let (advantages, returns) = (worths(), worths());
        let mask = if dice.is_one_of(2) { TurnMask::CutOff } else { TurnMask::None };
        Self { episodes, has_failed, kept, advantages, returns, mask }
    }

    /// The episodes that did not fail, each with the names of its tokens.
    fn survivors(&self) -> impl Iterator<Item = &(Trajectory, Vec<u64>)> {
        self.episodes.iter().zip(&self.has_failed).filter(|it| !it.1).map(|it| it.0)
    }

    /// The samples of the tree as training makes them.
    fn samples(&self, shared: SharedTurns) -> Vec<Sample> {
        let trajectories = self.survivors().map(|found| found.0.clone()).collect();
        let groups = [Group { task: "t".to_owned(), trajectories }];
        let mut view = BatchView::shaped(&groups, &RewardShapers::default());
        for ((failed, _), _) in self.episodes.iter().zip(&self.has_failed).filter(|it| *it.1) {
            view.push_failed(failed.episode, failed.lineage.clone());
        }
        let returns = Some(PerTurnOrToken::Turns(self.returns.clone()));
        let credit = Credit { returns, ..Credit::of_turns(self.advantages.clone()) };
        let credit = self.mask.hide(&groups, credit);
        let credit = shared.settle(&view, credit, &self.kept).unwrap();
        CutBatch::new(&groups).unwrap().weigh(&credit, &self.kept).unwrap()
    }

    /// All paths by themselves: a token weighs one over the number of paths that have it, those that nothing is trained
    /// on among them where one trajectory speaks for all; with each sample's factor in the loss.
    fn paths(&self, shared: SharedTurns, config: &ReinforceConfig) -> Vec<(Sample, f64)> {
        let counts = |path: usize| shared == SharedTurns::Owned || self.kept[path];
        let mut holders: HashMap<u64, f64> = HashMap::new();
        let mut trained: HashSet<u64> = HashSet::new();
        for (path, (_, names)) in self.survivors().enumerate() {
            names.iter().filter(|_| counts(path)).for_each(|name| {
                *holders.entry(*name).or_default() += 1.0;
            });
            trained.extend(names.iter().filter(|_| self.kept[path]));
        }
        let mut paths = Vec::new();
        // Those whose weights tell how often a token is trained, by the sample that would own them.
        let (mut weighed, mut owners) = (HashSet::new(), HashSet::new());
        for (path, (trajectory, names)) in self.survivors().enumerate().filter(|it| counts(it.0)) {
            let mut names = names.iter();
            for (part, mut sample) in cut_samples(trajectory).unwrap().into_iter().enumerate() {
                sample.returns = vec![0.0; sample.len()];
                for t in 0..sample.len() {
                    if sample.turns[t] == Sample::OBSERVED {
                        continue;
                    }
                    let (name, turn) = (names.next().unwrap(), sample.turns[t] as usize);
                    let is_hidden = self.mask == TurnMask::CutOff
                        && trajectory.turns[turn].stop == Some(StopCause::Length);
                    let is_forced = sample.allowed.get(t).len() == 1;
                    if t == 0 || is_forced || is_hidden || !trained.contains(name) {
                        continue;
                    }
                    let advantage = self.advantages[path][turn] as f32;
                    let weight = (1.0 / holders[name]) as f32;
                    sample.policy_weights[t] = weight;
                    sample.advantages[t] = advantage;
                    sample.returns[t] = self.returns[path][turn] as f32;
                    sample.cross_entropy_weights[t] = if advantage > 0.0 { weight } else { 0.0 };
                    weighed.insert(*name);
                    if let Some(owner) = self.owner_of(*name) {
                        owners.insert((owner, part));
                    }
                }
                paths.push(sample);
            }
        }
        let objective = config.objective.build().unwrap();
        let of_paths = BatchWeight::of(&*objective, &paths);
        let batch = match shared {
            SharedTurns::Divided => of_paths,
            SharedTurns::Owned => {
                BatchWeight { tokens: weighed.len() as f64, samples: owners.len() as f64 }
            }
        };
        let scale = |sample: &Sample| match (shared, objective.weight(sample)) {
            (_, 0.0) => 0.0,
            (SharedTurns::Owned, _) => match config.objective.aggregation {
                LossAggregation::TokenMean => 1.0 / batch.tokens,
                LossAggregation::SampleSum { constant } => 1.0 / (batch.samples * constant),
                LossAggregation::TokenSum => 1.0,
                LossAggregation::SampleMean | LossAggregation::PromptMean => {
                    unreachable!("they need whole paths")
                }
            },
            (SharedTurns::Divided, weight) => config.objective.aggregation.scale(weight, batch),
        };
        let scales: Vec<f64> = paths.iter().map(scale).collect();
        paths.into_iter().zip(scales).collect()
    }

    /// The first episode that has the token, as far as it is trained.
    fn owner_of(&self, name: u64) -> Option<usize> {
        let kept = self.survivors().zip(&self.kept).enumerate();
        kept.filter(|(_, (_, kept))| **kept)
            .find(|(_, (it, _))| it.1.contains(&name))
            .map(|it| it.0)
    }
}

fn trajectory(episode: u64) -> Trajectory {
    Trajectory {
        version: TRAJECTORY_VERSION,
        episode,
        task: "t".to_owned(),
        environment: "e".to_owned(),
        seed: Seed::from_u64(0),
        environment_seed: None,
        versions: Versions::default(),
        policy: "p".to_owned(),
        first_observation: Observation::default(),
        grammars: Default::default(),
        tools: Vec::new(),
        turns: Vec::new(),
        end: EndReason::Terminated,
        success: false,
        lineage: Lineage::default(),
        seat: Seat::FIRST,
        verdict: None,
        refills: 0,
        spend: None,
        redacted: false,
        wall_time: Duration::ZERO,
    }
}

/// A trajectory that begins as another one does, up to a turn or a token.
fn fork(
    dice: &mut Dice,
    names: &mut impl Iterator<Item = u64>,
    (origin, of_origin): &(Trajectory, Vec<u64>),
    episode: u64,
) -> (Trajectory, Vec<u64>) {
    let turn = dice.roll(origin.turns.len() + 1);
    let mut grown = Trajectory { turns: origin.turns[..turn].to_vec(), ..trajectory(episode) };
    grown.turns.iter_mut().for_each(|turn| turn.source = Source::Inherited);
    let mut count: usize = grown.turns.iter().map(Turn::num_tokens).sum();
    let within = origin.turns.get(turn).map_or(0, Turn::num_tokens);
    let token = if within > 1 && dice.is_one_of(2) { 1 + dice.roll(within - 1) } else { 0 };
    let fork_token = (token > 0).then_some(token as u32);
    count += token;
    let mut of_fork = of_origin[..count].to_vec();
    if token > 0 {
        let begun = &origin.turns[turn];
        let mut sampled = begun.sampled.first(token);
        sample_tokens(dice, names, &mut sampled, &mut of_fork);
        let stop = Some(stop(dice));
        grown.turns.push(Turn { sampled, stop, source: Source::Regenerated, ..begun.clone() });
    }
    let (parent, fork_turn) = (Some(origin.episode), turn as u32);
    grown.lineage = Lineage { parent, fork_turn, fork_token, ..Lineage::default() };
    (grown, of_fork)
}

fn stop(dice: &mut Dice) -> StopCause {
    if dice.is_one_of(4) { StopCause::Length } else { StopCause::EndOfTurn }
}

fn sample_tokens(
    dice: &mut Dice,
    names: &mut impl Iterator<Item = u64>,
    sampled: &mut SampledTokens,
    of_tokens: &mut Vec<u64>,
) {
    for _ in 0..1 + dice.roll(3) {
        let id = dice.roll(VOCABULARY) as u32;
        sampled.ids.push(id);
        sampled.logprobs.push(0.0);
        sampled.versions.push(PolicyVersion(0));
        let allowed = match dice.roll(6) {
            0 => vec![id],
            1 => vec![id.min(4), 5, id.max(6)],
            _ => Vec::new(),
        };
        sampled.allowed.push(allowed);
        of_tokens.extend(names.next());
    }
}

/// A turn behind those that there are; now and then behind a hint, or with less of what came before in view.
fn add_turn(
    dice: &mut Dice,
    names: &mut impl Iterator<Item = u64>,
    (grown, of_tokens): &mut (Trajectory, Vec<u64>),
) {
    let before = grown
        .turns
        .iter()
        .fold(0, |_, turn| turn.prompt.kept + turn.prompt.appended.len() + turn.sampled.ids.len());
    let kept = if dice.is_one_of(6) { before / 2 } else { before };
    let is_hinted = dice.is_one_of(5);
    let shown = 1 + dice.roll(2) + 2 * usize::from(is_hinted);
    let appended = (0..shown).map(|_| dice.roll(VOCABULARY) as u32).collect();
    let mut sampled = SampledTokens::default();
    sample_tokens(dice, names, &mut sampled, of_tokens);
    let hint = || Message::new(Role::User, "Hint.");
    grown.turns.push(Turn {
        kind: TurnKind::Action,
        prompt: PromptTokens { kept, appended },
        injected: is_hinted.then(hint).into_iter().collect(),
        source: if is_hinted { Source::Hinted } else { Source::Sampled },
        author: "p".to_owned(),
        text: String::new(),
        sampled,
        counts: TokenCounts::default(),
        seat: Seat::FIRST,
        stop: Some(stop(dice)),
        parsed: ParsedAction::Invalid { reason: String::new() },
        state_key: String::new(),
        step: Step {
            observation: Observation::default(),
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: false,
            wall_time: Duration::ZERO,
        },
        policy_time: Duration::ZERO,
        environment_time: Duration::ZERO,
    });
}

/// A value head on its states.
fn value_head() -> HeadWeights {
    let mut head = HeadWeights::fresh(&StateHeadConfig::default(), 8, Seed::from_u64(3)).unwrap();
    let data = &mut head.parameters_mut().data;
    data.iter_mut().zip(0..).for_each(|(weight, n)| *weight = (n * 5 % 9) as f32 / 4.0 - 1.0);
    head
}

/// A decoder of random weights.
fn decoder() -> (Parameters, DecoderGradient) {
    let config = ModelConfig {
        vocab_size: VOCABULARY,
        hidden_size: 8,
        intermediate_size: 8,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 4,
        max_position_embeddings: 128,
        ..ModelConfig::default()
    };
    let mut parameters = initial_parameters(&config, Seed::from_u64(2));
    // Far from even probabilities.
    let mut data = parameters.data.to_vec();
    data.iter_mut().for_each(|weight| *weight *= 3.0);
    parameters.data = data.into();
    let weights = Arc::new(Weights::new(&config, parameters.clone()));
    (parameters, DecoderGradient::new(weights, 1.0))
}

/// The derivatives of a loss that is not scaled by the values of a sample's tokens.
type ByValues<'a> = dyn Fn(&Sample, &[f32]) -> Vec<f64> + Sync + 'a;

/// Adds the gradient of samples that are read together, each with its factor in the loss, `values` being the derivatives
/// by a token's value where the objective does not tell them. That by the head's weights comes behind the decoder's.
fn accumulate(
    model: &dyn PreparedModel,
    objective: &dyn Objective,
    samples: &[&Sample],
    scales: &[f64],
    values: Option<&ByValues<'_>>,
    gradient: &mut [f32],
) {
    let present = model.logprobs(samples).unwrap();
    // What is put together differently is given as scales.
    let (seed, aggregation) = (Seed::from_u64(1), LossAggregation::TokenMean);
    let update = Update { samples, present: Some(&present), seed, aggregation, state: &[] };
    let prepared = objective.begin(&update);
    let loss = |index: usize, measured: Measured<'_>| {
        let slopes = prepared.loss(index, measured, scales[index]).slopes;
        let Some(values) = values else { return slopes };
        let values = values(samples[index], measured.values);
        let values = values.into_iter().map(|slope| (scales[index] * slope) as f32).collect();
        Slopes { values, ..slopes }
    };
    let head = value_head();
    let of_decoder = gradient.len() - head.parameters().data.len();
    let (gradient, of_head) = gradient.split_at_mut(of_decoder);
    let head = HeadGradient { head: &head, gradient: of_head };
    model.accumulate(samples, &loss, gradient, Some(head)).unwrap();
}

/// The values, and the log-probabilities when tokens were drawn: those of the present weights, or other ones.
fn sample_with(model: &dyn PreparedModel, samples: &mut [Sample], is_off_policy: bool) {
    let head = value_head();
    let request = MeasureRequest { head: Some(&head), ..MeasureRequest::default() };
    for sample in samples {
        let measures = model.measure(&[&*sample], &request).unwrap().remove(0);
        (sample.behavior_logprobs, sample.values) = (measures.logprobs, measures.values);
        if is_off_policy {
            // The same wherever the token stands.
            for t in 0..sample.len() {
                let apart =
                    sample.tokens[..=t].iter().fold(t as u32, |sum, id| sum.wrapping_mul(31) + id);
                sample.behavior_logprobs[t] += ((apart % 7) as f32 - 3.0) / 10.0;
            }
        }
    }
}

/// The largest difference of the gradients of a tree, its turns in common trained in this way, and of its paths, and the
/// largest entry of the latter.
fn compare(
    tree: &Tree,
    (config, shared): (&ReinforceConfig, SharedTurns),
    model: &dyn PreparedModel,
    len: usize,
    is_off_policy: bool,
) -> (f32, f32) {
    let len = len + value_head().parameters().data.len();
    let objective = config.objective.build().unwrap();
    let of_paths_by = config.shared_turns(&*objective);
    let mut of_tree = vec![0.0; len];
    let mut samples = tree.samples(shared);
    sample_with(model, &mut samples, is_off_policy);
    let batch = BatchWeight::of(&*objective, &samples);
    let aggregation = config.objective.aggregation;
    let scales: Vec<f64> =
        samples.iter().map(|sample| aggregation.scale(objective.weight(sample), batch)).collect();
    let given: Vec<&Sample> = samples.iter().collect();
    accumulate(model, &*objective, &given, &scales, None, &mut of_tree);
    // Of a path's token that weighs `w`, the loss of the value `v` with return `R` is `weight w / 2 (v - R)^2`.
    let value_weight = config.objective.value_loss.as_ref().map_or(0.0, |options| options.weight);
    let by_values = |sample: &Sample, values: &[f32]| -> Vec<f64> {
        let slope = |t: usize| match f64::from(sample.policy_weights[t]) {
            0.0 => 0.0,
            weight => value_weight * weight * f64::from(values[t] - sample.returns[t]),
        };
        (0..sample.len()).map(slope).collect()
    };
    let of_policy = ObjectiveConfig { value_loss: None, ..config.objective.clone() };
    let of_policy = of_policy.build().unwrap();
    let mut of_paths = vec![0.0; len];
    for (sample, scale) in tree.paths(of_paths_by, config) {
        let mut sample = [sample];
        sample_with(model, &mut sample, is_off_policy);
        if scale > 0.0 {
            let given = (&[&sample[0]], &[scale]);
            accumulate(model, &*of_policy, given.0, given.1, Some(&by_values), &mut of_paths);
        }
    }
    let apart = of_tree.iter().zip(&of_paths).map(|(tree, paths)| (tree - paths).abs());
    let largest = of_paths.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    (apart.fold(0.0, f32::max), largest)
}

#[test]
fn every_objective_that_groups_are_trained_by_is_compared() {
    for entry in objective_registry() {
        let is_compared = OBJECTIVES.iter().any(|text| toml_of(text).name == entry.name);
        // What is learned from pairs has no tree, and what compares answers to one question no path by itself; the others
        // left out look at a reference model, which says of a token the same on every path.
        let named = ObjectiveConfig { name: entry.name.to_owned(), ..ObjectiveConfig::default() };
        let needs = named.build().map(|objective| objective.needs()).unwrap_or_default();
        let is_of_many = needs.pairs || needs.groups || needs.reference;
        assert!(is_compared || is_of_many, "{}", entry.name);
    }
}

#[test]
fn trees_have_the_gradient_of_all_their_paths() {
    let (parameters, gradient) = decoder();
    let model = gradient.prepare(&parameters);
    let (mut forks, mut within, mut orphans, mut others) = (0, 0, 0, 0);
    for number in 0..24 {
        let tree = Tree::grow(Seed::from_u64(number));
        for (index, (found, _)) in tree.episodes.iter().enumerate() {
            let lineage = &found.lineage;
            forks += usize::from(lineage.parent.is_some());
            within += usize::from(lineage.fork_token.is_some());
            let is_orphan = |parent| tree.has_failed[(parent - 100) as usize];
            orphans +=
                usize::from(!tree.has_failed[index] && lineage.parent.is_some_and(is_orphan));
        }
        for objective in OBJECTIVES {
            let objective = toml_of(objective);
            let config = ReinforceConfig { objective, ..ReinforceConfig::default() };
            let shared = config.shared_turns(&*config.objective.build().unwrap());
            // Whole paths have their gradient at whatever weights.
            let is_divided = shared == SharedTurns::Divided;
            for is_off_policy in [false, true].iter().take(1 + usize::from(is_divided)) {
                let (len, how) = (parameters.data.len(), (&config, shared));
                let (apart, largest) = compare(&tree, how, &*model, len, *is_off_policy);
                assert!(
                    apart <= 1e-4 * largest + 1e-7,
                    "tree {number}, {:?}, off policy {is_off_policy}: {apart} of {largest}",
                    config.objective
                );
            }
            if is_divided {
                let how = (&config, SharedTurns::Owned);
                let (apart, largest) = compare(&tree, how, &*model, parameters.data.len(), false);
                others += usize::from(apart > 0.01 * largest);
            }
        }
    }
    assert!(others > 30, "one owner would not do for these: {others}");
    assert!(forks > 40 && within > 8 && orphans > 4, "{forks} {within} {orphans}");
}

fn toml_of(text: &str) -> ObjectiveConfig {
    text.parse::<toml::Table>().unwrap().try_into().unwrap()
}
