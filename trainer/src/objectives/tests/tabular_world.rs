//! A world with few answers: every policy is a table, and optima are known exactly.
//!
//! An answer is a path from the root of a tree to a leaf, a token a step; the policy is a softmax at every node. Losses are
//! means over all answers, each as likely as whoever samples draws it, so that nothing is left to chance, and are brought to
//! their minimum by plain gradient descent through the production code.

use spar_core::{Preference, Sample, Seed};

use super::super::policy_loss::{Begun, Beside, UpdateOf};
use crate::Measured;
use crate::objectives::{
    Awr, AwrOptions, ClipOptions, CorrectionOptions, DirectAdvantage, DirectAdvantageOptions, Dpo,
    DpoOptions, Dro, DroOptions, ImportanceLevel, ImportanceOptions, Kdrl, KdrlOptions, Kimi,
    KimiOptions, KlEstimator, KlOptions, LossAggregation, Nft, NftOptions, Objective, Pacs,
    PacsOptions, PolicyGradient, PolicyLoss, PolicyTokens, PreferenceLoss, QuestionWeight, Rec,
    RecOptions, RecRegularizer, RecWeight, Refuel, RefuelOptions,
};

/// Rewards of the answers of a world, and a tree of them: so many choices at every node, so many steps deep.
struct World {
    choices: usize,
    depth: u32,
    rewards: Vec<f64>,
}

/// A table of logits, node after node.
type Logits = Vec<f64>;

impl World {
    fn new(choices: usize, depth: u32) -> Self {
        let count = choices.pow(depth);
        let rewards = (0..count).map(|answer| ((answer * 7 + 3) % 5) as f64 / 4.0).collect();
        Self { choices, depth, rewards }
    }

    /// A policy that is not even, and not alike for different kinds.
    fn policy(&self, kind: f64) -> Logits {
        let nodes: usize = (0..self.depth).map(|level| self.choices.pow(level)).sum();
        (0..nodes * self.choices).map(|place| (place as f64 * kind).sin() * 0.8).collect()
    }

    /// The nodes and choices on the way to an answer.
    fn path(&self, answer: usize) -> Vec<(usize, usize)> {
        let mut path = Vec::new();
        let (mut first, mut within) = (0, 0);
        for level in 0..self.depth {
            let below = self.choices.pow(self.depth - level - 1);
            let choice = answer / below % self.choices;
            path.push((first + within, choice));
            first += self.choices.pow(level);
            within = within * self.choices + choice;
        }
        path
    }

    fn node<'a>(&self, logits: &'a Logits, node: usize) -> &'a [f64] {
        &logits[node * self.choices..][..self.choices]
    }

    fn log_softmax(logits: &[f64]) -> Vec<f64> {
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|logit| (logit - most).exp()).sum();
        logits.iter().map(|logit| logit - most - sum.ln()).collect()
    }

    /// The log-probabilities of an answer's tokens.
    fn logprobs(&self, logits: &Logits, answer: usize) -> Vec<f64> {
        let of =
            |(node, choice): (usize, usize)| Self::log_softmax(self.node(logits, node))[choice];
        self.path(answer).into_iter().map(of).collect()
    }

    /// The probabilities of all answers.
    fn probabilities(&self, logits: &Logits) -> Vec<f64> {
        let of = |answer: usize| self.logprobs(logits, answer).iter().sum::<f64>().exp();
        (0..self.rewards.len()).map(of).collect()
    }

    /// `p exp(reward / beta) / Z`.
    fn tilted(&self, probabilities: &[f64], beta: f64) -> Vec<f64> {
        let both = probabilities.iter().zip(&self.rewards);
        let tilted: Vec<f64> = both.map(|(p, reward)| p * (reward / beta).exp()).collect();
        let sum: f64 = tilted.iter().sum();
        tilted.into_iter().map(|p| p / sum).collect()
    }

    /// Rewards less `tau log Z`: with these, the mirror descents need no constant beside them.
    fn soft_advantages(&self, probabilities: &[f64], tau: f64) -> Vec<f64> {
        let both = probabilities.iter().zip(&self.rewards);
        let z: f64 = both.map(|(p, reward)| p * (reward / tau).exp()).sum();
        self.rewards.iter().map(|reward| reward - tau * z.ln()).collect()
    }

    /// Adds the derivative by the logits of what has these slopes by an answer's log-probabilities.
    fn backward(&self, logits: &Logits, answer: usize, slopes: &[f64], gradient: &mut Logits) {
        for ((node, choice), slope) in self.path(answer).into_iter().zip(slopes) {
            let probabilities = Self::log_softmax(self.node(logits, node));
            for (other, log) in probabilities.iter().enumerate() {
                let is_drawn = f64::from(u8::from(other == choice));
                gradient[node * self.choices + other] += slope * (is_drawn - log.exp());
            }
        }
    }
}

/// What is minimised in a world.
struct Problem<'a> {
    world: &'a World,
    loss: &'a dyn PolicyLoss,
    beside: Beside,
    /// The policy that ratios are relative to.
    old: Logits,
    /// The policy that sampled.
    behavior: Logits,
    reference: Logits,
    advantages: Vec<f64>,
    /// Whether answers are as likely as the present policy draws them.
    is_on_policy: bool,
    /// How often each answer is there otherwise.
    weights: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// A loss on what `old` sampled, with advantages as given.
    fn new(world: &'a World, loss: &'a dyn PolicyLoss, old: &Logits, advantages: Vec<f64>) -> Self {
        let weights = world.probabilities(old);
        let (behavior, reference) = (old.clone(), old.clone());
        let (beside, old) = (Beside::default(), old.clone());
        let is_on_policy = false;
        Self { world, loss, beside, old, behavior, reference, advantages, is_on_policy, weights }
    }

    fn gradient(&self, logits: &Logits) -> Logits {
        let world = self.world;
        let (old, behavior) = match self.is_on_policy {
            true => (logits, logits),
            false => (&self.old, &self.behavior),
        };
        let row = |answer: usize| {
            let logprobs = world.logprobs(logits, answer);
            let length = logprobs.len();
            PolicyTokens {
                places: (0..length).collect(),
                weights: vec![1.0; length],
                importance: vec![1.0; length],
                advantages: vec![self.advantages[answer]; length],
                behavior: world.logprobs(behavior, answer),
                old: world.logprobs(old, answer),
                reference: world.logprobs(&self.reference, answer),
                detached: logprobs.clone(),
                logprobs,
                ..PolicyTokens::default()
            }
        };
        let rows: Vec<PolicyTokens> = (0..world.rewards.len()).map(row).collect();
        let weights = if self.is_on_policy { &world.probabilities(logits) } else { &self.weights };
        let groups = vec![0; rows.len()];
        let update = UpdateOf {
            aggregation: LossAggregation::TokenMean,
            seed: Seed::from_u64(0),
            state: &[],
        };
        let begun = Begun::new(self.loss, Some(&self.beside), rows.clone(), &groups, &update);
        let mut gradient = vec![0.0; logits.len()];
        for (answer, (row, weight)) in rows.into_iter().zip(weights).enumerate() {
            let found = begun.row(answer, row, *weight);
            assert!(found.loss.is_finite());
            world.backward(logits, answer, &found.slopes, &mut gradient);
        }
        gradient
    }

    /// The probabilities at the minimum, by gradient descent from the policy that sampled.
    fn solve(&self, rate: f64) -> Vec<f64> {
        let mut logits = self.old.clone();
        for _ in 0..20_000 {
            let gradient = self.gradient(&logits);
            let length: f64 = gradient.iter().map(|value| value * value).sum::<f64>().sqrt();
            if length < 1e-9 {
                break;
            }
            logits.iter_mut().zip(gradient).for_each(|(logit, slope)| *logit -= rate * slope);
        }
        self.world.probabilities(&logits)
    }
}

#[track_caller]
fn assert_policy(found: &[f64], wanted: &[f64], tolerance: f64) {
    let apart = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < tolerance, "{apart}: found {found:?}, wanted {wanted:?}");
}

/// A divergence beside an objective.
fn with_kl(weight: f64, estimator: KlEstimator) -> Beside {
    let kl = Some(KlOptions { weight, estimator, ..KlOptions::default() });
    Beside { kl, ..Beside::default() }
}

#[test]
fn a_divergence_from_a_reference_tilts_it_by_rewards() {
    let world = World::new(4, 1);
    let (start, reference) = (world.policy(1.0), world.policy(2.0));
    let clip = crate::Clip::new(ClipOptions::default());
    let losses: [&dyn PolicyLoss; 2] = [&PolicyGradient, &clip];
    for loss in losses {
        for beta in [0.3, 1.0] {
            use KlEstimator::{K1Plus, K2, K3, K3Plus};
            for estimator in [K2, K1Plus, K3Plus, K3] {
                let problem = Problem {
                    beside: with_kl(beta, estimator),
                    reference: reference.clone(),
                    is_on_policy: true,
                    ..Problem::new(&world, loss, &start, world.rewards.clone())
                };
                let found = problem.solve(0.5);
                let reference = world.probabilities(&reference);
                let wanted = match estimator {
                    // Its derivative is that of the divergence of the reference from the policy, whose optimum is
                    // `beta pi_ref / (c - r)`.
                    K3 => {
                        let (mut low, mut high) = (1.0 + 1e-12, 1.0 + beta);
                        let of = |c: f64| -> Vec<f64> {
                            let both = reference.iter().zip(&world.rewards);
                            both.map(|(p, reward)| beta * p / (c - reward)).collect()
                        };
                        for _ in 0..200 {
                            let middle = f64::midpoint(low, high);
                            let sum: f64 = of(middle).iter().sum();
                            if sum > 1.0 { low = middle } else { high = middle }
                        }
                        of(low)
                    }
                    _ => world.tilted(&reference, beta),
                };
                assert_policy(&found, &wanted, 1e-4);
            }
        }
    }
}

#[test]
fn a_teacher_is_tilted_by_rewards() {
    let world = World::new(4, 1);
    let (start, teacher) = (world.policy(1.0), world.policy(2.0));
    let kdrl = Kdrl::new(KdrlOptions { weight: 0.5, ..KdrlOptions::default() });
    let advantages = world.rewards.clone();
    let problem = Problem {
        reference: teacher.clone(),
        is_on_policy: true,
        ..Problem::new(&world, &kdrl, &start, advantages)
    };
    let wanted = world.tilted(&world.probabilities(&teacher), 0.5);
    assert_policy(&problem.solve(0.5), &wanted, 1e-4);
    // Without rewards the teacher is imitated.
    let problem = Problem { advantages: vec![0.0; 4], ..problem };
    assert_policy(&problem.solve(0.5), &world.probabilities(&teacher), 1e-4);
}

#[test]
fn mirror_descents_tilt_the_policy_that_sampled() {
    let (flat, deep) = (World::new(4, 1), World::new(3, 2));
    let tau = 0.5;
    let dro = Dro::new(DroOptions { beta: tau });
    let kimi = Kimi::new(KimiOptions { tau, by_token: false });
    let by_token = Kimi::new(KimiOptions { tau, by_token: true });
    // The square has no half there.
    let rec = Rec::new(RecOptions {
        regularizer: RecRegularizer::K2,
        regularizer_weight: tau / 2.0,
        ..RecOptions::default()
    });
    let cases: [(&World, &dyn PolicyLoss); 5] =
        [(&flat, &dro), (&flat, &by_token), (&flat, &rec), (&flat, &kimi), (&deep, &kimi)];
    for (world, loss) in cases {
        let old = world.policy(1.3);
        let probabilities = world.probabilities(&old);
        let advantages = world.soft_advantages(&probabilities, tau);
        let found = Problem::new(world, loss, &old, advantages).solve(0.5);
        assert_policy(&found, &world.tilted(&probabilities, tau), 1e-4);
    }
}

#[test]
fn weighted_imitation_tilts_the_policy_that_sampled() {
    for world in [World::new(4, 1), World::new(3, 2)] {
        let old = world.policy(1.3);
        let probabilities = world.probabilities(&old);
        let awr = Awr::new(AwrOptions { beta: 0.5, max_weight: 1e6 });
        let found = Problem::new(&world, &awr, &old, world.rewards.clone()).solve(0.2);
        assert_policy(&found, &world.tilted(&probabilities, 0.5), 1e-4);
        // Advantages times their exponentials: `pi_old A exp(A / T)`, of positive ones.
        let rec = Rec::new(RecOptions {
            weight: RecWeight::Advantage,
            temperature: 0.5,
            ..RecOptions::default()
        });
        let found = Problem::new(&world, &rec, &old, world.rewards.clone()).solve(0.2);
        let both = world.tilted(&probabilities, 0.5).into_iter().zip(&world.rewards);
        let wanted: Vec<f64> = both.map(|(p, reward)| p * reward).collect();
        let sum: f64 = wanted.iter().sum();
        let wanted: Vec<f64> = wanted.into_iter().map(|p| p / sum).collect();
        assert_policy(&found, &wanted, 2e-3);
    }
}

#[test]
fn regression_of_advantages_tilts_the_reference_whoever_sampled() {
    for (world, beta) in [(World::new(4, 1), 0.5), (World::new(3, 2), 0.8)] {
        let reference = world.policy(1.3);
        let probabilities = world.probabilities(&reference);
        let direct = DirectAdvantage::new(DirectAdvantageOptions { beta });
        let advantages = world.soft_advantages(&probabilities, beta);
        let mut problem = Problem::new(&world, &direct, &reference, advantages);
        // Somebody else has played, and some answers more often than others.
        problem.behavior = world.policy(4.0);
        problem.weights = world.probabilities(&world.policy(0.4));
        assert_policy(&problem.solve(0.3), &world.tilted(&probabilities, beta), 1e-4);
    }
}

#[test]
fn regression_of_relative_futures_tilts_the_policy_that_sampled() {
    for world in [World::new(4, 1), World::new(3, 2)] {
        let old = world.policy(1.3);
        let refuel = Refuel::new(RefuelOptions { eta: 2.0 });
        let mut problem = Problem::new(&world, &refuel, &old, world.rewards.clone());
        // All pairs count the same, and every token of an answer is one of the update.
        let tokens = world.rewards.len() * world.depth as usize;
        problem.weights = vec![1.0 / tokens as f64; world.rewards.len()];
        let wanted = world.tilted(&world.probabilities(&old), 0.5);
        assert_policy(&problem.solve(0.1), &wanted, 1e-4);
    }
}

#[test]
fn right_answers_are_told_from_wrong_ones() {
    let world = World::new(4, 1);
    let old = world.policy(1.3);
    let (right, all) = ([1.0, -1.0, 1.0, -1.0], world.probabilities(&old));
    let of_right: f64 = all[0] + all[2];
    let nft = Nft::new(NftOptions {
        epsilon: 1e-3,
        question_weight: QuestionWeight::Even,
        ..NftOptions::default()
    });
    // The rate is that of the answers that are there, half of them.
    let mut problem = Problem::new(&world, &nft, &old, right.to_vec());
    problem.weights = all.clone();
    let found = problem.solve(0.05);
    let ratio = (found[0] / found[2]) / (all[0] / all[2]);
    assert!(found[0] + found[2] > of_right + 0.1, "{found:?}");
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    let pacs = Pacs::new(PacsOptions::default());
    let mut problem = Problem::new(&world, &pacs, &old, right.to_vec());
    problem.weights = vec![0.25; 4];
    let found = problem.solve(0.5);
    assert!(found[0] + found[2] > 0.99, "{found:?}");
}

#[test]
fn importance_weights_give_the_gradient_of_the_policy_that_is_trained() {
    for world in [World::new(4, 1), World::new(3, 2)] {
        let (now, rolled) = (world.policy(1.3), world.policy(0.4));
        let on_policy = Problem::new(&world, &PolicyGradient, &now, world.rewards.clone());
        let wanted = on_policy.gradient(&now);
        let gradient = |level, bypass| {
            let importance = Some(ImportanceOptions { level, ..ImportanceOptions::default() });
            let correction = CorrectionOptions { bypass, importance, ..Default::default() };
            let problem = Problem {
                beside: Beside { correction: Some(correction), ..Beside::default() },
                behavior: rolled.clone(),
                weights: world.probabilities(&rolled),
                ..Problem::new(&world, &PolicyGradient, &now, world.rewards.clone())
            };
            let found = problem.gradient(&now);
            found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        for bypass in [false, true] {
            assert!(gradient(ImportanceLevel::Sequence, bypass) < 1e-12);
            // Tokens by themselves do where there is one.
            assert_eq!(gradient(ImportanceLevel::Token, bypass) < 1e-12, world.depth == 1);
        }
    }
}

#[test]
fn every_divergence_to_a_target_is_least_at_the_target() {
    use crate::objectives::{FDpg, FDpgOptions, PartitionOf, TargetDivergence};
    let beta = 0.5;
    for world in [World::new(4, 1), World::new(3, 2)] {
        let (start, reference) = (world.policy(1.0), world.policy(2.0));
        let from = world.probabilities(&reference);
        let wanted = world.tilted(&from, beta);
        // Rewards less `beta log Z`, so that the target is known to the constant.
        let advantages = world.soft_advantages(&from, beta);
        use TargetDivergence::{ForwardKl, JensenShannon, ReverseKl, TotalVariation};
        for (divergence, rate, tolerance) in [
            (ReverseKl, 0.5, 1e-4),
            (ForwardKl, 0.1, 1e-4),
            (JensenShannon, 0.5, 1e-4),
            // The slope is of one size however near the target is.
            (TotalVariation, 0.002, 2e-2),
        ] {
            let partition = PartitionOf::Known;
            let loss = FDpg::new(FDpgOptions { beta, divergence, partition });
            let problem = Problem {
                reference: reference.clone(),
                is_on_policy: true,
                ..Problem::new(&world, &loss, &start, advantages.clone())
            };
            assert_policy(&problem.solve(rate), &wanted, tolerance);
        }
    }
}

#[test]
fn on_policy_the_gradient_of_nft_is_that_of_grpo() {
    // Of four answers, as often sampled as they are likely, so many are right.
    for (right, question_weight, by_deviation) in [
        (1, QuestionWeight::Grpo, true),
        (2, QuestionWeight::Grpo, true),
        (3, QuestionWeight::Grpo, true),
        (1, QuestionWeight::Failures, false),
        (3, QuestionWeight::Failures, false),
    ] {
        let world = World { choices: 4, depth: 1, rewards: vec![0.0; 4] };
        let even = vec![0.0; 4];
        let rewards: Vec<f64> = (0..4).map(|it| f64::from(u8::from(it < right))).collect();
        let mean = rewards.iter().sum::<f64>() / 4.0;
        let deviation = (mean * (1.0 - mean)).sqrt();
        let scale = if by_deviation { deviation } else { 1.0 };
        let advantages: Vec<f64> = rewards.iter().map(|it| (it - mean) / scale).collect();
        let nft = Nft::new(NftOptions { question_weight, ..NftOptions::default() });
        let of_nft = Problem::new(&world, &nft, &even, advantages.clone()).gradient(&even);
        let clip = crate::Clip::new(ClipOptions::default());
        let of_grpo = Problem::new(&world, &clip, &even, advantages).gradient(&even);
        let ratio = of_nft[0] / of_grpo[0];
        assert!(ratio > 0.0, "{ratio}");
        for (nft, grpo) in of_nft.iter().zip(&of_grpo) {
            assert!((nft - ratio * grpo).abs() < 1e-12, "{of_nft:?} {of_grpo:?}");
        }
        // With its weights the factor is the same for all questions.
        assert!((ratio - 1.0).abs() < 1e-9, "{right} {question_weight:?}: {ratio}");
    }
}

/// The minimum of a loss on pairs, each there both ways round, as often as the first is preferred by how much better it is.
fn preferred(world: &World, loss: PreferenceLoss, beta: f64) -> (Logits, Logits) {
    let reference = world.policy(2.0);
    let dpo = Dpo::new(DpoOptions { beta, loss, ..DpoOptions::default() });
    let (mut samples, mut answers, mut scales) = (Vec::new(), Vec::new(), Vec::new());
    let count = world.rewards.len();
    let mut pair = 0;
    for chosen in 0..count {
        for rejected in (0..count).filter(|other| *other != chosen) {
            let better = world.rewards[chosen] - world.rewards[rejected];
            let scale = 1.0 / (1.0 + (-better).exp());
            for (answer, is_chosen) in [(chosen, true), (rejected, false)] {
                let mut sample = Sample {
                    preference: Some(Preference { pair, is_chosen, parts: 1 }),
                    ..Sample::default()
                };
                let logprobs = world.logprobs(&reference, answer);
                (0..=logprobs.len()).for_each(|t| sample.push_observed(0, f32::from(t > 0)));
                sample.reference_logprobs = single(&logprobs);
                samples.push(sample);
                answers.push(answer);
                scales.push(scale);
            }
            pair += 1;
        }
    }
    let samples: Vec<&Sample> = samples.iter().collect();
    let mut logits = reference.clone();
    for _ in 0..4000 {
        let present: Vec<Vec<f32>> =
            answers.iter().map(|answer| single(&world.logprobs(&logits, *answer))).collect();
        let prepared = dpo.begin(&crate::testing::update(&samples, Some(&present)));
        let mut gradient = vec![0.0; logits.len()];
        for (index, answer) in answers.iter().enumerate() {
            let measured = Measured { logprobs: &present[index], ..Measured::default() };
            let slopes = prepared.loss(index, measured, scales[index]).slopes.logprobs;
            let slopes: Vec<f64> = slopes[1..].iter().map(|slope| f64::from(*slope)).collect();
            world.backward(&logits, *answer, &slopes, &mut gradient);
        }
        drop(prepared);
        let rate = match loss {
            PreferenceLoss::Sigmoid => 0.3,
            PreferenceLoss::Ipo => 0.05,
        };
        logits.iter_mut().zip(gradient).for_each(|(logit, slope)| *logit -= rate * slope);
    }
    (logits, reference)
}

/// Behind a first token that is not read.
fn single(logprobs: &[f64]) -> Vec<f32> {
    std::iter::once(0.0).chain(logprobs.iter().map(|logprob| *logprob as f32)).collect()
}

#[test]
fn preferences_tilt_the_reference_by_the_rewards_behind_them() {
    for world in [World::new(4, 1), World::new(2, 2)] {
        let beta = 0.8;
        let (logits, reference) = preferred(&world, PreferenceLoss::Sigmoid, beta);
        let wanted = world.tilted(&world.probabilities(&reference), beta);
        assert_policy(&world.probabilities(&logits), &wanted, 1e-3);
    }
    // IPO regresses a pair's margin onto how often it is preferred: with two answers exactly.
    let world = World::new(2, 1);
    let (logits, reference) = preferred(&world, PreferenceLoss::Ipo, 0.8);
    let (found, from) = (world.probabilities(&logits), world.probabilities(&reference));
    let margin = (found[0] / from[0]).ln() - (found[1] / from[1]).ln();
    let preferred = 1.0 / (1.0 + (world.rewards[1] - world.rewards[0]).exp());
    assert!((margin - (2.0 * preferred - 1.0) / (2.0 * 0.8)).abs() < 1e-3, "{margin}");
}

/// Nash learning from human feedback (arXiv 2312.00886): preferences that go in a circle have no best answer, and learning from pairs of the policy's own answers ends at the equilibrium of the
/// game that is held to the reference, `pi(y) ~ mu(y) exp(P(y > pi) / beta)`, and stays there (online IPO, arXiv 2403.08635).
#[test]
fn preferences_that_go_in_a_circle_end_at_the_equilibrium_and_not_in_a_circle() {
    let world = World::new(3, 1);
    let beta = 0.3;
    // Stone, paper, scissors, of which paper beats stone less often than it might.
    let better = [[0.5, 0.2, 0.9], [0.8, 0.5, 0.1], [0.1, 0.9, 0.5]];
    let against = |policy: &[f64], answer: usize| -> f64 {
        policy.iter().zip(better[answer]).map(|(other, wins)| other * wins).sum()
    };
    let reference = world.policy(2.0);
    let held = world.probabilities(&reference);
    let answer_to = |policy: &[f64]| -> Vec<f64> {
        let tilted = held.iter().enumerate().map(|(it, p)| p * (against(policy, it) / beta).exp());
        let tilted: Vec<f64> = tilted.collect();
        let sum: f64 = tilted.iter().sum();
        tilted.into_iter().map(|p| p / sum).collect()
    };
    let mut equilibrium = held.clone();
    for _ in 0..20_000 {
        let answer = answer_to(&equilibrium);
        equilibrium.iter_mut().zip(answer).for_each(|(own, best)| *own += 0.01 * (best - *own));
    }
    assert_policy(&answer_to(&equilibrium), &equilibrium, 1e-9);

    let ipo = Dpo::new(DpoOptions { beta, loss: PreferenceLoss::Ipo, ..DpoOptions::default() });
    let mut logits = world.policy(5.0);
    let mut last = Vec::new();
    for round in 0..6_000 {
        // All pairs, as often as the present policy draws both, and as the first is preferred.
        let drawn = world.probabilities(&logits);
        let (mut samples, mut answers, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        for chosen in 0..3_usize {
            for rejected in (0..3_usize).filter(|other| *other != chosen) {
                for (answer, is_chosen) in [(chosen, true), (rejected, false)] {
                    let pair = (chosen * 3 + rejected) as u64;
                    let mut sample = Sample {
                        preference: Some(Preference { pair, is_chosen, parts: 1 }),
                        ..Sample::default()
                    };
                    (0..2).for_each(|t| sample.push_observed(0, f32::from(t > 0)));
                    sample.reference_logprobs = single(&world.logprobs(&reference, answer));
                    samples.push(sample);
                    answers.push(answer);
                    scales.push(drawn[chosen] * drawn[rejected] * better[chosen][rejected]);
                }
            }
        }
        let samples: Vec<&Sample> = samples.iter().collect();
        let present: Vec<Vec<f32>> =
            answers.iter().map(|answer| single(&world.logprobs(&logits, *answer))).collect();
        let prepared = ipo.begin(&crate::testing::update(&samples, Some(&present)));
        let mut gradient = vec![0.0; logits.len()];
        for (index, answer) in answers.iter().enumerate() {
            let measured = Measured { logprobs: &present[index], ..Measured::default() };
            let slopes = prepared.loss(index, measured, scales[index]).slopes.logprobs;
            let slopes: Vec<f64> = slopes[1..].iter().map(|slope| f64::from(*slope)).collect();
            world.backward(&logits, *answer, &slopes, &mut gradient);
        }
        drop(prepared);
        logits.iter_mut().zip(gradient).for_each(|(logit, slope)| *logit -= 0.2 * slope);
        if round >= 5_900 {
            last.push(world.probabilities(&logits));
        }
    }
    for policy in last {
        assert_policy(&policy, &equilibrium, 2e-3);
    }
}
