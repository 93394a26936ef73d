//! Golden numbers and toy models for the tests of this crate.

use std::error::Error;
use std::path::PathBuf;

use serde_json::Value;
use spar_core::{PolicyVersion, Sample, Seed};
use spar_policy::state_heads::HeadWeights;
use spar_policy::{ParameterKind, Parameters};

use crate::{
    BatchWeight, FixedModel, HeadGradient, Histograms, LossAggregation, MeasureRequest, Measured,
    Measures, Objective, ObjectiveConfig, PreparedModel, SampleGradient, SampleLoss, SampleLossFn,
    Trainer, TrainerError, Update,
};

/// The state of a trainer as it is written.
pub(crate) fn saved(trainer: &Trainer) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    trainer.save_state(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// Loads what [`saved`] gave.
pub(crate) fn load(
    trainer: &mut Trainer,
    parameters: Parameters,
    state: &[u8],
) -> Result<(), TrainerError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    std::fs::write(&path, state).unwrap();
    trainer.load_state(parameters, &path)
}

/// The cases of a golden file, from the folder in `SPAR_VECTORS` where it has the file,
/// else from the fixtures.
pub(crate) fn golden(name: &str) -> Vec<Value> {
    let file = format!("{name}.json");
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(&file);
    let path = std::env::var_os("SPAR_VECTORS")
        .map(|folder| PathBuf::from(folder).join(&file))
        .filter(|path| path.exists())
        .unwrap_or(fixture);
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// A case of a golden file.
pub(crate) struct Case {
    pub(crate) params: Value,
    pub(crate) inputs: Value,
    pub(crate) outputs: Value,
    tag: String,
    rtol: f64,
    atol: f64,
}

impl Case {
    /// Fails unless the numbers agree within the file's tolerances.
    #[track_caller]
    pub(crate) fn assert_close(&self, found: f64, wanted: f64) {
        let bound = self.atol + self.rtol * wanted.abs();
        self.assert_within(found, wanted, bound);
    }

    /// As [`Case::assert_close`], within at least this, absolutely or relatively: for what the reference adds to
    /// denominators.
    #[track_caller]
    pub(crate) fn assert_near(&self, found: f64, wanted: f64, tolerance: f64) {
        let (atol, rtol) = (self.atol.max(tolerance), self.rtol.max(tolerance));
        self.assert_within(found, wanted, atol + rtol * wanted.abs());
    }

    #[track_caller]
    fn assert_within(&self, found: f64, wanted: f64, bound: f64) {
        let is_close = (found - wanted).abs() <= bound || found == wanted;
        let (tag, params) = (&self.tag, &self.params);
        assert!(is_close, "{tag} {params}: found {found}, wanted {wanted}");
    }

    /// A parameter that is a number.
    pub(crate) fn param(&self, name: &str) -> Option<f64> {
        self.params[name].as_f64()
    }

    /// How verl puts losses together, `seq-mean-token-sum-norm` dividing by the columns of the mask unless told
    /// otherwise.
    pub(crate) fn aggregation(&self, mask: &[Vec<f64>]) -> LossAggregation {
        let columns = mask[0].len() as f64;
        let constant = self.param("loss_scale_factor").unwrap_or(columns);
        match self.params["loss_agg_mode"].as_str().unwrap_or("token-mean") {
            "token-mean" => LossAggregation::TokenMean,
            "token-sum" => LossAggregation::TokenSum,
            "seq-mean-token-mean" => LossAggregation::SampleMean,
            "seq-mean-token-sum" => LossAggregation::SampleSum { constant: 1.0 },
            "seq-mean-token-sum-norm" => LossAggregation::SampleSum { constant },
            other => panic!("unknown mode {other}"),
        }
    }
}

/// What losses over these masks are divided by; rows without weight do not count.
pub(crate) fn batch_of(mask: &[Vec<f64>]) -> BatchWeight {
    let weights = mask.iter().map(|row| row.iter().sum::<f64>()).filter(|weight| *weight > 0.0);
    let mut batch = BatchWeight::default();
    weights.for_each(|weight| {
        batch.tokens += weight;
        batch.samples += 1.0;
    });
    batch
}

/// Runs `check` on every case of the fixture `name`, where there is one, and of the folder of vectors: `SPAR_VECTORS`, or
/// the one that stands beside the project.
pub(crate) fn each_case(name: &str, check: impl Fn(&Case)) {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("SPAR_VECTORS")
        .map_or_else(|| here.join("../../shared/vectors"), PathBuf::from);
    let file = format!("{name}.json");
    let mut count = 0;
    for path in [here.join("tests/fixtures").join(&file), folder.join(&file)] {
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("skipped: {} is absent", path.display());
            continue;
        };
        let mut file: Value = serde_json::from_str(&text).unwrap();
        let (rtol, atol) = (file["rtol"].as_f64().unwrap(), file["atol"].as_f64().unwrap());
        for case in file["cases"].as_array_mut().unwrap() {
            let mut take = |name: &str| case[name].take();
            let tag = take("tag").as_str().unwrap_or_default().to_owned();
            let (params, inputs, outputs) = (take("params"), take("inputs"), take("outputs"));
            check(&Case { params, inputs, outputs, tag, rtol, atol });
            count += 1;
        }
    }
    assert!(count > 0, "{name}: there is neither a fixture nor a vector");
}

/// An objective with its own defaults, and the aggregation that it takes.
pub(crate) fn default_config(name: &str) -> ObjectiveConfig {
    let aggregation = match name {
        "gspo" | "gmpo" => LossAggregation::SampleMean,
        _ => LossAggregation::TokenMean,
    };
    ObjectiveConfig { name: name.to_owned(), aggregation, ..ObjectiveConfig::default() }
}

/// An update of these samples by a mean over tokens.
pub(crate) fn update<'a>(samples: &'a [&'a Sample], present: Option<&'a [Vec<f32>]>) -> Update<'a> {
    let (seed, aggregation) = (Seed::from_u64(0), LossAggregation::TokenMean);
    Update { samples, present, seed, aggregation, state: &[] }
}

/// The part of the loss of the only sample of an update.
pub(crate) fn sample_loss(
    objective: &dyn Objective,
    sample: &Sample,
    measured: Measured<'_>,
    scale: f64,
) -> SampleLoss {
    let (samples, present) = ([sample], [measured.logprobs.to_vec()]);
    objective.begin(&update(&samples, Some(&present))).loss(0, measured, scale)
}

/// A number of a golden file, which may be written as a word.
pub(crate) fn number(value: &Value) -> f64 {
    match value {
        Value::String(word) => word.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

/// A list of numbers.
pub(crate) fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// A list of lists of numbers.
pub(crate) fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(vector).collect()
}

/// Fails unless the numbers agree to `tolerance`, absolutely or relatively.
#[track_caller]
pub(crate) fn assert_close(found: f64, wanted: f64, tolerance: f64) {
    let bound = tolerance * (1.0 + wanted.abs());
    assert!((found - wanted).abs() <= bound, "found {found}, wanted {wanted}");
}

/// A sample behind one observed token, by whether tokens were sampled, advantages and log-probabilities when they were.
pub(crate) fn policy_sample(tokens: &[(bool, f32, f32)]) -> Sample {
    let mut sample = Sample::default();
    sample.push_observed(0, 0.0);
    for (is_sampled, advantage, behavior) in tokens {
        let weight = f32::from(u8::from(*is_sampled));
        sample.push(0, weight, *advantage, 0.0, *behavior, PolicyVersion(0), &[]);
    }
    sample
}

/// A model that knows the last token only: a table of logits, `[vocabulary, vocabulary]`.
pub(crate) struct Bigram;

impl Bigram {
    /// The weights of the table, all zero.
    #[expect(clippy::new_ret_no_self, reason = "the model is its weights")]
    pub(crate) fn new(vocabulary: usize) -> Parameters {
        let shape = vec![vocabulary, vocabulary];
        Parameters::zeros(vec![("table".to_owned(), shape, ParameterKind::Matrix)])
    }

    /// Probabilities behind token `last`.
    fn probabilities(parameters: &Parameters, last: u32) -> Vec<f32> {
        let vocabulary = parameters.specs[0].shape[1];
        let logits = &parameters.data[last as usize * vocabulary..][..vocabulary];
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exponents: Vec<f32> = logits.iter().map(|logit| (logit - max).exp()).collect();
        let sum: f32 = exponents.iter().sum();
        exponents.into_iter().map(|value| value / sum).collect()
    }
}

impl SampleGradient for Bigram {
    fn prepare(&self, parameters: &Parameters) -> Box<dyn PreparedModel> {
        Box::new(PreparedBigram(parameters.clone()))
    }
}

/// In nats.
fn entropy(probabilities: &[f32]) -> f32 {
    -probabilities.iter().map(|probability| probability * probability.ln()).sum::<f32>()
}

struct PreparedBigram(Parameters);

impl PreparedBigram {
    /// What a head sees of the tokens before each but the first: which of the vocabulary they are.
    fn states(&self, sample: &Sample) -> Vec<f32> {
        let vocabulary = self.0.specs[0].shape[1];
        let mut states = vec![0.0; (sample.len() - 1) * vocabulary];
        let rows = states.chunks_exact_mut(vocabulary).zip(&sample.tokens);
        rows.for_each(|(row, token)| row[*token as usize] = 1.0);
        states
    }
}

impl FixedModel for PreparedBigram {
    fn measure(
        &self,
        samples: &[&Sample],
        request: &MeasureRequest<'_>,
    ) -> Result<Vec<Measures>, Box<dyn Error + Send + Sync>> {
        let measure = |sample: &&Sample| {
            let behind = |pair: &[u32]| Bigram::probabilities(&self.0, pair[0]);
            let first = |of_others: Vec<f32>| [vec![0.0], of_others].concat();
            let all: Vec<Vec<f32>> = sample.tokens.windows(2).map(behind).collect();
            let drawn = all.iter().zip(&sample.tokens[1..]);
            let logprobs = drawn.map(|(all, token)| all[*token as usize].ln()).collect();
            let squares = |all: &Vec<f32>| all.iter().map(|p| p * p).sum();
            Measures {
                logprobs: first(logprobs),
                entropies: first(all.iter().map(|all| entropy(all)).collect()),
                sum_squares: match request.sum_squares {
                    true => first(all.iter().map(squares).collect()),
                    false => Vec::new(),
                },
                values: match request.head {
                    Some(head) => first(head.values(&head.forward(&self.states(sample)))),
                    None => Vec::new(),
                },
            }
        };
        Ok(samples.iter().map(measure).collect())
    }

    /// Which of the vocabulary the token at each place is.
    fn states(
        &self,
        samples: &[&Sample],
        places: &[&[usize]],
    ) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        let vocabulary = self.0.specs[0].shape[1] as u32;
        let of_sample = |(sample, places): (&&Sample, &&[usize])| {
            let one_hot =
                |token: u32| (0..vocabulary).map(move |other| f32::from(u8::from(other == token)));
            places.iter().flat_map(|place| one_hot(sample.tokens[*place])).collect()
        };
        Ok(samples.iter().zip(places).map(of_sample).collect())
    }
}

impl PreparedModel for PreparedBigram {
    fn accumulate(
        &self,
        samples: &[&Sample],
        loss: &SampleLossFn<'_>,
        gradient: &mut [f32],
        mut head: Option<HeadGradient<'_>>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let parameters = &self.0;
        let vocabulary = parameters.specs[0].shape[1];
        let request =
            MeasureRequest { head: head.as_ref().map(|head| head.head), ..Default::default() };
        for (index, measures) in self.measure(samples, &request)?.iter().enumerate() {
            let Measures { logprobs, entropies, values, .. } = measures;
            let of_head = head.as_ref().map(|head| head.head);
            let logits = of_head.map(|head| {
                let first = vec![0.0; head.num_outputs()];
                [first, head.forward(&self.states(samples[index]))].concat()
            });
            let bins = of_head.and_then(HeadWeights::histogram);
            let histograms = bins.zip(logits.as_deref());
            let histograms = histograms.map(|(bins, logits)| Histograms { bins, logits });
            let slopes = loss(index, Measured { logprobs, entropies, values, histograms });
            if let (Some(HeadGradient { head, gradient }), false) =
                (&mut head, slopes.values.is_empty())
            {
                let behind = &slopes.values[head.num_outputs()..];
                head.backward(&self.states(samples[index]), behind, gradient);
            }
            for (t, pair) in samples[index].tokens.windows(2).enumerate() {
                let by_entropy = slopes.entropies.get(t + 1).copied().unwrap_or(0.0);
                let table = &mut gradient[pair[0] as usize * vocabulary..][..vocabulary];
                let probabilities = Bigram::probabilities(parameters, pair[0]);
                for (token, (sum, probability)) in table.iter_mut().zip(probabilities).enumerate() {
                    let is_drawn = f32::from(u8::from(token == pair[1] as usize));
                    *sum += slopes.logprobs[t + 1] * (is_drawn - probability);
                    *sum -= by_entropy * probability * (probability.ln() + entropies[t + 1]);
                }
            }
        }
        Ok(())
    }
}
