use spar_core::{PolicyVersion, Seed};
use spar_policy::decoder::{Segment, SequenceCache, forward};
use spar_policy::draw_rules::{LoadedDrawRule, open_draw_rule};
use spar_policy::state_heads::{HeadWeights, StateHeadConfig, state_head_registry};
use spar_policy::{LoraConfig, ModelConfig, initial_parameters};

use super::*;
use crate::testing::assert_close;
use crate::{
    Clip, LossAggregation, Measured, OptimizerConfig, Slopes, Supervised, Trainer, TrainerConfig,
};

fn model() -> (DecoderGradient, Parameters) {
    let config = ModelConfig {
        vocab_size: 11,
        hidden_size: 16,
        intermediate_size: 24,
        head_dim: 8,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        max_position_embeddings: 64,
        ..ModelConfig::default()
    };
    let parameters = initial_parameters(&config, Seed::from_u64(5));
    let weights = Arc::new(Weights::new(&config, parameters.clone()));
    (DecoderGradient::new(weights, 1.0), parameters)
}

fn samples(number: u32) -> Vec<Sample> {
    let sample = |start: u32| {
        let mut sample = Sample::default();
        sample.push_observed(start % 11, 0.0);
        for t in 1..=8 + start % 5 {
            let token = (start + 3 * t) % 11;
            sample.push(
                token,
                1.0,
                if t % 3 == 0 { -1.0 } else { 0.5 },
                1.0,
                0.0,
                PolicyVersion(0),
                if t % 2 == 0 { &[] } else { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
            );
        }
        sample
    };
    (0..number).map(sample).collect()
}

#[test]
fn the_gradient_is_the_derivative_of_the_loss() {
    let (model, mut parameters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    // Any fixed slopes do: the loss is then their product with the log-probabilities.
    let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
    let slopes = |sample: usize, found: Measured<'_>| -> Slopes {
        let logprobs = found.logprobs;
        (0..logprobs.len()).map(|t| slope(sample, t)).collect::<Vec<f32>>().into()
    };
    let mut gradient = vec![0.0; parameters.data.len()];
    model.prepare(&parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
    let loss = |parameters: &Parameters| -> f64 {
        let logprobs = model.prepare(parameters).logprobs(&samples).unwrap();
        let of_sample = |(sample, logprobs): (usize, &Vec<f32>)| {
            (1..logprobs.len()).map(|t| f64::from(slope(sample, t) * logprobs[t])).sum::<f64>()
        };
        logprobs.iter().enumerate().map(of_sample).sum()
    };
    for spec in parameters.specs.clone().iter() {
        for place in [0, spec.len() / 2, spec.len() - 1] {
            let index = spec.offset + place;
            let middle = parameters.data[index];
            parameters.data[index] = middle + 1e-2;
            let above = loss(&parameters);
            parameters.data[index] = middle - 1e-2;
            let below = loss(&parameters);
            parameters.data[index] = middle;
            assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
        }
    }
}

#[test]
fn entropies_have_the_gradient_of_their_sum() {
    let (model, mut parameters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    let run = |parameters: &Parameters| {
        let sum = std::sync::Mutex::new(0.0);
        let slopes = |_: usize, found: Measured<'_>| {
            *sum.lock().unwrap() += found.entropies.iter().map(|e| f64::from(*e)).sum::<f64>();
            let len = found.entropies.len();
            Slopes { logprobs: vec![0.0; len], entropies: vec![1.0; len], ..Slopes::default() }
        };
        let mut gradient = vec![0.0; parameters.data.len()];
        model.prepare(parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        (sum.into_inner().unwrap(), gradient)
    };
    let (_, gradient) = run(&parameters);
    for spec in parameters.specs.clone().iter() {
        for place in [0, spec.len() / 2, spec.len() - 1] {
            let index = spec.offset + place;
            let middle = parameters.data[index];
            parameters.data[index] = middle + 1e-2;
            let (above, _) = run(&parameters);
            parameters.data[index] = middle - 1e-2;
            let (below, _) = run(&parameters);
            parameters.data[index] = middle;
            assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
        }
    }
}

/// A head whose weights are not 0, so that its gradient goes on into the decoder.
fn head(kind: &str, trunk_gradient: bool) -> HeadWeights {
    let kind = kind.to_owned();
    let config = StateHeadConfig { kind, trunk_gradient, ..StateHeadConfig::default() };
    let mut head = HeadWeights::fresh(&config, 16, Seed::from_u64(2)).unwrap();
    let weights = head.parameters_mut().data.iter_mut();
    weights.zip(0..).for_each(|(weight, n)| *weight += ((n * 5 % 11) as f32 - 5.0) / 20.0);
    head
}

/// A loss that no part of what is measured can be changed without: weighted sums of log-probabilities, entropies and
/// squares of values, or cross-entropies where they are the means of histograms.
fn mixed(sample: usize, found: Measured<'_>, sum: &std::sync::Mutex<f64>) -> Slopes {
    let slope = |t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
    let len = found.logprobs.len();
    let mut slopes = Slopes::from(vec![0.0; len]);
    let bins = found.histograms.map_or(1, |histograms| histograms.bins.bins());
    (slopes.entropies, slopes.values) = (vec![0.0; len], vec![0.0; len * bins]);
    let mut total = 0.0;
    for t in 1..len {
        let (by, entropy, value) = (slope(t), found.entropies[t], found.values[t]);
        total += f64::from(by * found.logprobs[t] + 0.3 * entropy);
        (slopes.logprobs[t], slopes.entropies[t]) = (by, 0.3);
        match found.histograms {
            None => {
                total += 0.5 * f64::from(value - by).powi(2);
                slopes.values[t] = value - by;
            }
            Some(histograms) => {
                let (loss, by_logits) = histograms.bins.loss(histograms.of_token(t), by.into());
                total += loss;
                let own = slopes.values[t * bins..].iter_mut().zip(by_logits);
                own.for_each(|(slope, by_logit)| *slope = by_logit as f32);
            }
        }
    }
    *sum.lock().unwrap() += total;
    slopes
}

#[test]
fn policy_entropies_and_values_have_one_gradient_through_the_trunk() {
    let (model, mut parameters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    let run = |parameters: &Parameters, head: &HeadWeights| {
        let sum = std::sync::Mutex::new(0.0);
        let loss = |sample: usize, found: Measured<'_>| mixed(sample, found, &sum);
        let mut gradient = vec![0.0; parameters.data.len()];
        let mut of_head = vec![0.0; head.parameters().data.len()];
        let into = Some(HeadGradient { head, gradient: &mut of_head });
        model.prepare(parameters).accumulate(&samples, &loss, &mut gradient, into).unwrap();
        (sum.into_inner().unwrap(), gradient, of_head)
    };
    for entry in state_head_registry() {
        let mut head = head(entry.name, true);
        let (_, gradient, of_head) = run(&parameters, &head);
        for spec in parameters.specs.clone().iter() {
            for place in [0, spec.len() / 2, spec.len() - 1] {
                let index = spec.offset + place;
                let middle = parameters.data[index];
                parameters.data[index] = middle + 3e-3;
                let (above, ..) = run(&parameters, &head);
                parameters.data[index] = middle - 3e-3;
                let (below, ..) = run(&parameters, &head);
                parameters.data[index] = middle;
                assert_close(gradient[index].into(), (above - below) / 6e-3, 1e-2);
            }
        }
        for index in (0..of_head.len()).step_by(7) {
            let middle = head.parameters().data[index];
            head.parameters_mut().data[index] = middle + 3e-3;
            let (above, ..) = run(&parameters, &head);
            head.parameters_mut().data[index] = middle - 3e-3;
            let (below, ..) = run(&parameters, &head);
            head.parameters_mut().data[index] = middle;
            assert_close(of_head[index].into(), (above - below) / 6e-3, 1e-2);
        }
    }
}

#[test]
fn a_stopped_head_leaves_the_trunk_to_the_others() {
    let (model, parameters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    let sum = std::sync::Mutex::new(0.0);
    let run = |head: &HeadWeights, has_values: bool| {
        let loss = |sample: usize, found: Measured<'_>| {
            let slopes = mixed(sample, found, &sum);
            if has_values { slopes } else { Slopes { values: Vec::new(), ..slopes } }
        };
        let mut gradient = vec![0.0; parameters.data.len()];
        let mut of_head = vec![0.0; head.parameters().data.len()];
        let into = Some(HeadGradient { head, gradient: &mut of_head });
        model.prepare(&parameters).accumulate(&samples, &loss, &mut gradient, into).unwrap();
        (gradient, of_head)
    };
    for entry in state_head_registry() {
        let (stopped, open) = (head(entry.name, false), head(entry.name, true));
        let (without, nothing) = run(&open, false);
        assert!(nothing.iter().all(|value| *value == 0.0));
        let (of_stopped, own) = run(&stopped, true);
        assert_eq!(of_stopped, without, "to the bit");
        let (of_open, same) = run(&open, true);
        assert_eq!(own, same);
        assert_ne!(of_open, of_stopped);
    }
}

#[test]
fn an_adapter_takes_the_gradient_of_values_that_its_factors_have() {
    let (model, parameters) = model();
    let base = model.trained.decoder().with_parameters(parameters);
    let lora = LoraConfig { rank: 3, alpha: 5.0, ..LoraConfig::default() };
    let adapted = Arc::new(LoraModel::new(Arc::new(base), &lora));
    let mut factors = adapted.initial(Seed::from_u64(3));
    // `B` is 0 to start with, where the gradient of `A` is as well.
    factors.data.iter_mut().zip(0..).for_each(|(f, n)| *f += (n % 5) as f32 / 50.0);
    let model = DecoderGradient::of(Trained::Adapter(adapted), 1.0);
    let (samples, head) = (samples(2), head("linear", true));
    let samples: Vec<&Sample> = samples.iter().collect();
    let run = |factors: &Parameters| {
        let sum = std::sync::Mutex::new(0.0);
        let loss = |sample: usize, found: Measured<'_>| {
            let slopes = mixed(sample, found, &sum);
            let len = found.logprobs.len();
            Slopes { values: slopes.values, ..Slopes::from(vec![0.0; len]) }
        };
        let mut gradient = vec![0.0; factors.data.len()];
        let mut of_head = vec![0.0; head.parameters().data.len()];
        let into = Some(HeadGradient { head: &head, gradient: &mut of_head });
        model.prepare(factors).accumulate(&samples, &loss, &mut gradient, into).unwrap();
        gradient
    };
    let values = |factors: &Parameters| -> f64 {
        let request = MeasureRequest { head: Some(&head), ..MeasureRequest::default() };
        let measures = model.prepare(factors).measure(&samples, &request).unwrap();
        let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
        let of = |(sample, measures): (usize, &Measures)| -> f64 {
            let values = &measures.values;
            let squares = (1..values.len()).map(|t| f64::from(values[t] - slope(sample, t)));
            squares.map(|error| 0.5 * error * error).sum()
        };
        measures.iter().enumerate().map(of).sum()
    };
    let gradient = run(&factors);
    assert!(gradient.iter().any(|value| value.abs() > 1e-3));
    for index in (0..gradient.len()).step_by(41) {
        let middle = factors.data[index];
        factors.data[index] = middle + 1e-2;
        let above = values(&factors);
        factors.data[index] = middle - 1e-2;
        let below = values(&factors);
        factors.data[index] = middle;
        assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
    }
}

#[test]
fn what_is_measured_of_sampled_tokens_is_that_of_the_definition() {
    let (model, parameters) = model();
    let mut samples = samples(3);
    for sample in &mut samples {
        // Nothing weighs yet, and some tokens were observed.
        let turn = |t: usize| if t.is_multiple_of(4) { Sample::OBSERVED } else { 0 };
        sample.turns = (0..sample.len()).map(turn).collect();
        sample.policy_weights.fill(0.0);
        sample.cross_entropy_weights.fill(0.0);
    }
    let given: Vec<&Sample> = samples.iter().collect();
    let head = head("hidden_layer", true);
    let tokens = MeasuredTokens::Sampled;
    let request = MeasureRequest { tokens, sum_squares: true, head: Some(&head) };
    let prepared = model.prepare(&parameters);
    let measures = prepared.measure(&given, &request).unwrap();
    assert!(prepared.logprobs(&given).unwrap()[0].iter().all(|logprob| *logprob == 0.0));
    let weights = model.trained.weights(&parameters).unwrap();
    for (sample, measures) in samples.iter().zip(&measures) {
        // Alone it measures the same, to the bit.
        assert_eq!(&prepared.measure(&[sample], &request).unwrap()[0], measures);
        let mut cache = SequenceCache::new(&weights);
        let states = forward(&weights, &mut [Segment::new(&mut cache, &sample.tokens)], None);
        for t in 0..sample.len() {
            let found = [
                measures.logprobs[t],
                measures.entropies[t],
                measures.sum_squares[t],
                measures.values[t],
            ];
            if sample.turns[t] == Sample::OBSERVED {
                assert_eq!(found, [0.0; 4]);
                continue;
            }
            let state = &states[(t - 1) * 16..t * 16];
            let mut logits = Vec::new();
            spar_policy::head::logits(&weights, state, &[], &mut logits);
            let all: Vec<f64> = logits.iter().map(|logit| f64::from(*logit).exp()).collect();
            let sum: f64 = all.iter().sum();
            let p: Vec<f64> = all.iter().map(|value| value / sum).collect();
            let wanted = [
                p[sample.tokens[t] as usize].ln(),
                p.iter().map(|p| -p * p.ln()).sum(),
                p.iter().map(|p| p * p).sum(),
                head.forward(state)[0].into(),
            ];
            found.iter().zip(wanted).for_each(|(a, b)| assert_close((*a).into(), b, 1e-5));
        }
    }
}

#[test]
fn little_memory_for_activations_changes_no_bit() {
    let (model, parameters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    let slopes = |_: usize, found: Measured<'_>| Slopes::from(found.logprobs.to_vec());
    let gradient = |model: &DecoderGradient| {
        let mut gradient = vec![0.0; parameters.data.len()];
        model.prepare(&parameters).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        gradient
    };
    let expected = gradient(&model);
    assert_eq!(gradient(&model.with_activation_bytes(1 << 10)), expected);
}

#[test]
fn rounded_weights_give_the_gradient_that_their_numbers_do() {
    let (model, masters) = model();
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    let slopes = |_: usize, found: Measured<'_>| Slopes::from(found.logprobs.to_vec());
    let run = |model: &DecoderGradient, parameters: &Parameters| {
        let mut gradient = vec![0.0; parameters.data.len()];
        let prepared = model.prepare(parameters);
        let logprobs = prepared.logprobs(&samples).unwrap();
        prepared.accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        (logprobs, gradient)
    };
    let rounded = model.trained.clone().computing_in(WeightPrecision::Bf16).unwrap();
    let numbers = rounded.weights(&masters).unwrap().to_parameters();
    assert_ne!(numbers, masters);
    let expected = run(&model, &numbers);
    assert_eq!(run(&DecoderGradient::of(rounded.clone(), 1.0), &masters), expected);
    let back = rounded.computing_in(WeightPrecision::F32).unwrap();
    assert_eq!(back.weights(&masters).unwrap().to_parameters(), masters);
}

#[test]
fn masters_learn_from_steps_that_roundings_would_lose() {
    let (model, start) = model();
    let rounded = model.trained.computing_in(WeightPrecision::Bf16).unwrap();
    let model = DecoderGradient::of(rounded, 1.0);
    let mut options = toml::Table::new();
    // A bf16 number of the size of these weights is 2^-8 of itself away from the next.
    options.insert("learning_rate".to_owned(), 1e-6.into());
    let optimizer = OptimizerConfig { options, ..OptimizerConfig::default() };
    let config =
        TrainerConfig { optimizer, weights: WeightPrecision::Bf16, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(config, start).unwrap();
    let samples = samples(2);
    let samples: Vec<&Sample> = samples.iter().collect();
    let mut losses = Vec::new();
    for _ in 0..60 {
        let mode = LossAggregation::TokenMean;
        let metrics = trainer.update(&samples, &Supervised, mode, &model, 0.0).unwrap();
        losses.push(metrics.loss);
    }
    assert!(losses[59] < losses[0], "{losses:?}");
}

#[test]
fn samples_with_shared_prefixes_have_the_gradient_of_each_alone() {
    let (model, parameters) = model();
    // Prefixes of each other and forks of them, one of them twice.
    let all = samples(2);
    let cut = |sample: &Sample, len: usize, fork: Option<u32>| {
        let mut cut = Sample::default();
        for t in 0..len {
            let token =
                if t + 1 == len { fork.unwrap_or(sample.tokens[t]) } else { sample.tokens[t] };
            let (policy, advantage) = (sample.policy_weights[t], sample.advantages[t]);
            let weight = sample.cross_entropy_weights[t];
            let allowed = sample.allowed.get(t);
            cut.push(token, policy, advantage, weight, 0.0, PolicyVersion(0), allowed);
        }
        cut
    };
    let samples = [
        cut(&all[0], 9, None),
        cut(&all[1], 4, None),
        cut(&all[0], 5, Some(10)),
        cut(&all[0], 3, None),
        cut(&all[1], 8, Some(1)),
        cut(&all[0], 9, None),
    ];
    let samples: Vec<&Sample> = samples.iter().collect();
    let prepared = model.prepare(&parameters);
    let slope = |sample: usize, t: usize| ((sample * 5 + t * 3) % 7) as f32 / 7.0 - 0.4;
    let head = head("linear", true);
    let slopes = |sample: usize, found: Measured<'_>| -> Slopes {
        let len = found.logprobs.len();
        let values = (0..len).map(|t| found.values[t] - slope(sample, t + 2)).collect();
        let logprobs: Vec<f32> = (0..len).map(|t| slope(sample, t)).collect();
        Slopes { values, ..Slopes::from(logprobs) }
    };
    let zeros = || (vec![0.0; parameters.data.len()], vec![0.0; head.parameters().data.len()]);
    let (mut together, mut of_head) = zeros();
    let into = Some(HeadGradient { head: &head, gradient: &mut of_head });
    prepared.accumulate(&samples, &slopes, &mut together, into).unwrap();
    let (mut alone, mut of_head_alone) = zeros();
    let request = MeasureRequest { head: Some(&head), ..MeasureRequest::default() };
    let measures = prepared.measure(&samples, &request).unwrap();
    for (index, sample) in samples.iter().enumerate() {
        let slopes = |_: usize, found: Measured<'_>| slopes(index, found);
        let into = Some(HeadGradient { head: &head, gradient: &mut of_head_alone });
        prepared.accumulate(&[sample], &slopes, &mut alone, into).unwrap();
        // What is recomputed does not depend on what stands beside it, to the bit.
        assert_eq!(prepared.measure(&[sample], &request).unwrap()[0], measures[index]);
    }
    for (found, expected) in of_head.iter().zip(&of_head_alone) {
        assert!((found - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
    }
    for spec in parameters.specs.iter() {
        let scale = alone[spec.range()].iter().fold(0.0_f32, |scale, g| scale.max(g.abs()));
        for (found, expected) in together[spec.range()].iter().zip(&alone[spec.range()]) {
            assert!((found - expected).abs() <= 1e-5 * scale, "{}", spec.name);
        }
    }
}

#[test]
fn the_decoder_learns_and_recomputes_what_was_sampled_to_the_bit() {
    let (model, parameters) = model();
    let optimizer = OptimizerConfig { name: "muon".to_owned(), ..OptimizerConfig::default() };
    let config = TrainerConfig { optimizer, ..TrainerConfig::default() };
    let mut trainer = Trainer::new(config, parameters).unwrap();
    let mut samples = samples(11);
    let mode = LossAggregation::TokenMean;
    let mut losses = Vec::new();
    for iteration in 0..60 {
        let seed = Seed::from_u64(iteration);
        let metrics = trainer.iterate(&samples, &Supervised, mode, &model, seed, 0.0).unwrap();
        losses.push(metrics[0].loss);
    }
    assert!(losses[0] > 2.0 && losses[59] < 0.1, "{} -> {}", losses[0], losses[59]);
    // One sample at a time, as in no update.
    let prepared = model.prepare(&trainer.parameters().unwrap());
    for sample in &mut samples {
        sample.behavior_logprobs = prepared.logprobs(&[&*sample]).unwrap().remove(0);
        sample.versions.fill(trainer.version());
    }
    let seed = Seed::from_u64(0);
    let metrics = trainer.iterate(&samples, &Clip::default(), mode, &model, seed, 0.0).unwrap();
    let drift = metrics[0].drift.current;
    assert!(drift.tokens > 80);
    assert_eq!(drift.max, 0.0);
}

#[test]
fn states_are_those_that_tokens_are_drawn_by_whatever_is_read_together() {
    let (model, parameters) = model();
    let prepared = model.prepare(&parameters);
    let samples = samples(4);
    let samples: Vec<&Sample> = samples.iter().collect();
    let places: [&[usize]; 4] = [&[0, 3], &[], &[8, 1, 1], &[5]];
    let together = prepared.states(&samples, &places).unwrap();
    let weights = model.trained.weights(&parameters).unwrap();
    for ((sample, places), states) in samples.iter().zip(places).zip(&together) {
        let mut cache = SequenceCache::new(&weights);
        let all = forward(&weights, &mut [Segment::new(&mut cache, &sample.tokens)], None);
        let expected: Vec<f32> =
            places.iter().flat_map(|place| &all[place * 16..][..16]).copied().collect();
        assert_eq!(states, &expected);
    }
    let mut unknown = samples[0].clone();
    unknown.tokens[0] = 11;
    let error = prepared.states(&[&unknown], &[&[0]]).unwrap_err();
    assert_eq!(error.to_string(), "read token 11: the vocabulary has 11");
}

/// A rule on the model of these tests, with models of another width that it asks.
fn ruled(written: &str) -> Arc<LoadedDrawRule> {
    let rule = open_draw_rule(&serde_json::from_str(written).unwrap()).unwrap();
    let other = |n: u64| {
        let config = ModelConfig {
            vocab_size: 11,
            hidden_size: 8,
            intermediate_size: 8,
            num_hidden_layers: 1,
            head_dim: 8,
            num_attention_heads: 1,
            num_key_value_heads: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(70 + n));
        parameters.data.iter_mut().for_each(|value| *value *= 3.0);
        Arc::new(Weights::new(&config, parameters))
    };
    let models = (0..rule.models().len() as u64).map(other).collect();
    Arc::new(LoadedDrawRule::new(rule, models).unwrap())
}

/// The derivative by one parameter, by differences of the fourth order.
fn derivative(parameters: &mut Parameters, index: usize, loss: impl Fn(&Parameters) -> f64) -> f64 {
    let (middle, step) = (parameters.data[index], 6e-3);
    let mut at = |steps: f32| {
        parameters.data[index] = middle + steps * step;
        loss(parameters)
    };
    let slope = 8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0));
    parameters.data[index] = middle;
    slope / (12.0 * f64::from(step))
}

const RULES: [&str; 4] = [
    r#"{ "kind": "temperature", "temperature": 0.7 }"#,
    r#"{ "kind": "contrastive", "beta": 0.8 }"#,
    r#"{ "kind": "value_weighted", "values": ["a", "b"], "weights": [1, -0.5], "beta": 2 }"#,
    r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "b", "weight": 1.5 }"#,
];

#[test]
fn the_gradient_within_a_draw_rule_is_the_derivative_of_the_loss() {
    let samples = samples(3);
    let samples: Vec<&Sample> = samples.iter().collect();
    for written in RULES {
        let (model, mut parameters) = model();
        let model = model.with_draw_rule(Some(ruled(written)));
        let run = |parameters: &Parameters| {
            let (sum, mut gradient) =
                (std::sync::Mutex::new(0.0), vec![0.0; parameters.data.len()]);
            let mut of_head = vec![0.0; head("linear", true).parameters().data.len()];
            let head = head("linear", true);
            let with = HeadGradient { head: &head, gradient: &mut of_head };
            let loss = |sample: usize, found: Measured<'_>| mixed(sample, found, &sum);
            let model = model.prepare(parameters);
            model.accumulate(&samples, &loss, &mut gradient, Some(with)).unwrap();
            (sum.into_inner().unwrap(), gradient)
        };
        let (_, gradient) = run(&parameters);
        for spec in parameters.specs.clone().iter() {
            for place in [0, spec.len() / 2] {
                let index = spec.offset + place;
                let slope = derivative(&mut parameters, index, |parameters| run(parameters).0);
                assert_close(gradient[index].into(), slope, 1e-2);
            }
        }
    }
}

#[test]
fn within_a_neutral_draw_rule_all_is_as_without() {
    let (model, parameters) = model();
    let samples = samples(4);
    let samples: Vec<&Sample> = samples.iter().collect();
    let request = MeasureRequest { sum_squares: true, ..MeasureRequest::default() };
    let run = |model: &DecoderGradient| {
        let model = model.prepare(&parameters);
        let measured = model.measure(&samples, &request).unwrap();
        let mut gradient = vec![0.0; parameters.data.len()];
        let slopes = |_: usize, found: Measured<'_>| {
            let len = found.logprobs.len();
            Slopes { logprobs: vec![0.5; len], entropies: vec![-0.3; len], ..Slopes::default() }
        };
        model.accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        (measured, gradient)
    };
    let (plain, without) = run(&model);
    let neutral = r#"{ "kind": "tuned_difference", "tuned": "a", "untuned": "b", "weight": 0 }"#;
    let model = model.with_draw_rule(Some(ruled(neutral)));
    let (within, gradient) = run(&model);
    for (plain, within) in plain.iter().zip(&within) {
        assert_eq!(plain.logprobs, within.logprobs, "log-probabilities are equal to the bit");
        assert_eq!(plain.sum_squares, within.sum_squares);
    }
    for (without, within) in without.iter().zip(&gradient) {
        assert_close((*without).into(), (*within).into(), 1e-4);
    }
}

#[test]
fn an_adapter_learns_against_the_weights_below_it() {
    let (_, parameters) = model();
    let config = match model().0.trained {
        Trained::Weights(base) => base.config().clone(),
        _ => unreachable!("all weights are trained"),
    };
    let base = Arc::new(Weights::new(&config, parameters));
    let lora = LoraConfig { rank: 2, ..LoraConfig::default() };
    let lora = Arc::new(LoraModel::new(base.clone(), &lora));
    let mut factors = lora.initial(Seed::from_u64(1));
    let values = factors.data.iter_mut().zip(0..);
    values.for_each(|(value, n)| *value += ((n * 7 % 13) as f32 - 6.0) / 30.0);
    let rule = r#"{ "kind": "contrastive", "amateur": "base", "beta": 1, "alpha": 0 }"#;
    let rule = open_draw_rule(&serde_json::from_str(rule).unwrap()).unwrap();
    let rule = Arc::new(LoadedDrawRule::new(rule, vec![base]).unwrap());
    let model = DecoderGradient::of(Trained::Adapter(lora), 0.8).with_draw_rule(Some(rule));
    let samples = samples(2);
    let samples: Vec<&Sample> = samples.iter().collect();
    let run = |factors: &Parameters| {
        let (sum, mut gradient) = (std::sync::Mutex::new(0.0), vec![0.0; factors.data.len()]);
        let slopes = |_: usize, found: Measured<'_>| {
            *sum.lock().unwrap() += found.logprobs.iter().map(|p| f64::from(*p)).sum::<f64>();
            Slopes::from(vec![1.0; found.logprobs.len()])
        };
        model.prepare(factors).accumulate(&samples, &slopes, &mut gradient, None).unwrap();
        (sum.into_inner().unwrap(), gradient)
    };
    let (_, gradient) = run(&factors);
    for index in (0..factors.data.len()).step_by(factors.data.len() / 12) {
        let slope = derivative(&mut factors, index, |factors| run(factors).0);
        assert_close(gradient[index].into(), slope, 1e-2);
    }
}
