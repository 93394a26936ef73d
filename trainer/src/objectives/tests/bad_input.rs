//! Input that is not well posed never becomes weights that are not finite.

use spar_core::Sample;
use spar_policy::Parameters;

use crate::objectives::objective_registry;
use crate::testing::{Bigram, default_config, saved};
use crate::{ObjectiveConfig, Trainer, TrainerConfig, TrainerError};

/// Answers to one question with these advantages, with all that an objective may read.
fn answers(advantages: &[f32]) -> Vec<Sample> {
    let answer = |(index, advantage): (usize, &f32)| {
        let mut sample = crate::testing::policy_sample(&[
            (true, *advantage, -1.6),
            (true, *advantage, -1.7),
            (true, *advantage, -1.5),
        ]);
        sample.tokens = vec![0, 1 + index as u32 % 4, (index as u32 * 3) % 5, 2];
        sample.cross_entropy_weights = vec![0.0, 1.0, 1.0, 1.0];
        sample.reference_logprobs = vec![0.0, -1.5, -1.8, -1.4];
        sample.old_logprobs = vec![0.0, -1.65, -1.6, -1.55];
        sample.entropies = vec![0.0, 1.0, 0.5, 1.2];
        sample.turns = vec![Sample::OBSERVED, 0, 0, 1];
        sample.preference = Some(spar_core::Preference {
            pair: index as u64 / 2,
            is_chosen: index % 2 == 0,
            parts: 1,
        });
        sample
    };
    advantages.iter().enumerate().map(answer).collect()
}

/// Every objective by itself, and with all that can stand beside it.
fn configs() -> Vec<ObjectiveConfig> {
    let mut configs = Vec::new();
    for row in objective_registry() {
        let alone = default_config(row.name);
        let beside = "kl = { weight = 0.1, estimator = 'k3', importance = true, adaptive = {} }
            selection = { share = 0.9, by = 'advantage_entropy' }
            entropy_smoothing = { by_sample = true, decay_updates = 5 }
            resampling = { by = 'extremes' }
            sign_weights = { positive = 0.5 }
            [correction]
            off_policy_mask = 0.1
            denominator = 'kept'
            importance = { level = 'sequence', upper = 2.0, normalize = true }
            reject = [{ statistic = 'k3', of_sample = 'mean', upper = 2.0 }]
            learning_rate = {}";
        let beside: ObjectiveConfig = toml::from_str(beside).unwrap();
        let beside =
            ObjectiveConfig { name: alone.name.clone(), aggregation: alone.aggregation, ..beside };
        let bypass = ObjectiveConfig {
            correction: beside
                .correction
                .clone()
                .map(|correction| crate::CorrectionOptions { bypass: true, ..correction }),
            ..beside.clone()
        };
        configs.extend([alone, beside, bypass].into_iter().filter(|it| it.problems().is_empty()));
    }
    // Alone, it trains no policy.
    configs.retain(|it| it.name != "values_alone" || it.correction.is_some());
    configs
}

fn trainer() -> Trainer {
    let mut config = TrainerConfig { max_gradient_norm: None, ..TrainerConfig::default() };
    config.optimizer.options.insert("learning_rate".to_owned(), 0.01.into());
    Trainer::new(config, Bigram::new(5)).unwrap()
}

fn is_finite(parameters: &Parameters) -> bool {
    parameters.data.iter().all(|value| value.is_finite())
}

#[test]
fn what_is_undefined_is_refused_and_nothing_is_written() {
    type Break = fn(&mut Sample);
    let breaks: [(&str, Break); 5] = [
        ("an advantage is NaN", |sample| sample.advantages[2] = f32::NAN),
        ("an advantage is infinite", |sample| sample.advantages[2] = f32::INFINITY),
        ("a log-probability is NaN", |sample| {
            (sample.behavior_logprobs[1], sample.old_logprobs[1]) = (f32::NAN, f32::NAN);
        }),
        ("a reference is NaN", |sample| sample.reference_logprobs[1] = f32::NAN),
        ("a weight is NaN", |sample| sample.policy_weights[1] = f32::NAN),
    ];
    for config in configs() {
        let objective = config.build().unwrap();
        for (what, change) in breaks {
            let mut samples = answers(&[1.0, -1.0, 1.0, -1.0]);
            change(&mut samples[0]);
            let all: Vec<&Sample> = samples.iter().collect();
            let mut trainer = trainer();
            let (before, state) = (trainer.parameters().unwrap(), saved(&trainer));
            let found = trainer.update(&all, &*objective, config.aggregation, &Bigram, 0.0);
            match found {
                Err(TrainerError::NonFinite { update: 1, .. }) => {
                    assert_eq!((trainer.parameters().unwrap(), saved(&trainer)), (before, state));
                }
                Err(other) => panic!("{what}: {other}: {config:?}"),
                // It does not read what is undefined.
                Ok(metrics) => {
                    let reads = match what {
                        "a reference is NaN" => objective.needs().reference,
                        _ => !["cpl", "dpo", "supervised"].contains(&&*config.name),
                    };
                    assert!(!reads, "{what}: {config:?}");
                    assert!(metrics.loss.is_finite() && is_finite(&trainer.parameters().unwrap()));
                }
            }
        }
    }
}

#[test]
fn ratios_that_overflow_leave_finite_weights() {
    for config in configs() {
        let objective = config.build().unwrap();
        for far in [-1e4_f32, -100.0, 0.0] {
            for advantages in [[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0]] {
                let mut samples = answers(&advantages);
                for sample in &mut samples[..2] {
                    sample.behavior_logprobs[1..].fill(far);
                    sample.old_logprobs[1..].fill(-far / 3.0 - 1.0);
                    sample.reference_logprobs[1..].fill(far);
                }
                let all: Vec<&Sample> = samples.iter().collect();
                let mut trainer = trainer();
                let before = trainer.parameters().unwrap();
                match trainer.update(&all, &*objective, config.aggregation, &Bigram, 0.0) {
                    Ok(metrics) => assert!(metrics.loss.is_finite(), "{config:?}"),
                    Err(TrainerError::NonFinite { .. } | TrainerError::NoWeight { .. }) => {
                        assert_eq!(trainer.parameters().unwrap(), before, "{config:?}");
                    }
                    Err(other) => panic!("{other}: {config:?}"),
                }
                assert!(is_finite(&trainer.parameters().unwrap()), "{config:?}");
            }
        }
    }
}

#[test]
fn samples_without_tokens_are_none() {
    for config in configs() {
        let objective = config.build().unwrap();
        let mut samples = answers(&[1.0, -1.0, 1.0, -1.0]);
        let mut trainer = trainer();
        let whole: Vec<&Sample> = samples.iter().collect();
        trainer.update(&whole, &*objective, config.aggregation, &Bigram, 0.0).unwrap();
        for sample in &mut samples {
            sample.policy_weights.fill(0.0);
            sample.cross_entropy_weights.fill(0.0);
            sample.preference = None;
        }
        let none: Vec<&Sample> = samples.iter().collect();
        let error = trainer.update(&none, &*objective, config.aggregation, &Bigram, 0.0);
        let error = error.expect_err(&config.name);
        assert!(matches!(error, TrainerError::NoWeight { samples: 4 }), "{error}");
    }
}

#[test]
fn a_gradient_whose_squares_do_not_fit_is_refused() {
    let samples = answers(&[1.0, -1.0, 1.0, -1.0]);
    let mut samples = samples;
    samples[0].advantages.fill(1e25);
    let all: Vec<&Sample> = samples.iter().collect();
    let (objective, mut trainer) = (default_config("policy_gradient"), trainer());
    let before = trainer.parameters().unwrap();
    let objective = objective.build().unwrap();
    let mode = crate::LossAggregation::TokenMean;
    let error = trainer.update(&all, &*objective, mode, &Bigram, 0.0).unwrap_err();
    assert_eq!(error.to_string(), "make update 1: the square of the gradient is not finite");
    assert_eq!(trainer.parameters().unwrap(), before);
}
