//! Golden numbers and toy models for the tests of this crate.

use std::error::Error;
use std::path::PathBuf;

use serde_json::Value;
use spar_core::{PolicyVersion, Sample};
use spar_policy::{ParameterKind, Parameters};

use crate::{
    FixedModel, HeadGradient, MeasureRequest, Measured, Measures, PreparedModel, SampleGradient,
    SampleLossFn, Trainer, TrainerError,
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
                    Some(head) => first(head.forward(&self.states(sample))),
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
            let slopes = loss(index, Measured { logprobs, entropies, values });
            if let (Some(HeadGradient { head, gradient }), false) =
                (&mut head, slopes.values.is_empty())
            {
                head.backward(&self.states(samples[index]), &slopes.values[1..], gradient);
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
