//! Our side of `benches/compare/compare.py` and `benches/compare_with_trl.py`: one measurement of a model on disk.
//!
//! ```text
//! cargo run --release -p spar-trainer --example measure -- WORK FOLDER WORKLOAD.json
//! ```
//!
//! `WORK` is `train`, `gradient`, `decode`, `shared` or `context`; `FOLDER` a model as Hugging
//! Face's transformers writes it; `WORKLOAD.json` says what is to be done, see `Workload`. Prints a
//! line of JSON. The number of threads is that of rayon, `RAYON_NUM_THREADS`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use spar_core::{PolicyVersion, Sample, Seed};
use spar_policy::checkpoint::{KeepAs, LoraAdapter, load_weights, open_weights};
use spar_policy::decoder::{Segment, SequenceCache, forward};
use spar_policy::head::{batch_logits, log_softmax};
use spar_policy::{LoraConfig, LoraModel, ModelConfig, Parameters, Weights};
use spar_trainer::{
    AdamWOptions, BatchWeight, Clip, ClipOptions, DecoderGradient, LossAggregation, Measured,
    Objective, OptimizerConfig, SampleGradient, Slopes, Supervised, Trained, Trainer,
    TrainerConfig, Update,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error>;

/// What is to be done; each work reads the fields that it needs.
#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Workload {
    /// Token sequences: samples to be trained on, or prompts to go on from.
    sequences: Vec<Vec<u32>>,
    /// Per sequence, which tokens are to be learnt; absent: all but the first.
    weights: Vec<Vec<f32>>,
    /// Of every sequence, the advantage of its tokens with weight, which are learnt by the objective `clip` then;
    /// absent: by cross-entropy.
    advantages: Vec<f32>,
    /// Per sequence, the log-probability with which each token was drawn; there with `advantages`.
    behavior_logprobs: Vec<Vec<f32>>,
    /// An adapter in PEFT's files that is learnt in place of all weights.
    adapter: Option<PathBuf>,
    /// Gradients longer than this are shortened to it; absent: none is.
    max_gradient_norm: Option<f64>,
    /// Parts that an update is computed in; absent: 1.
    shards: Option<usize>,
    /// Tokens that are read at a time in `train`; absent: all.
    micro_batch_tokens: Option<usize>,
    /// Updates that are timed, after one that is not.
    updates: usize,
    /// Learning rate of AdamW.
    learning_rate: f32,
    /// Tokens to generate behind every prompt.
    new_tokens: usize,
    /// Rollouts that share the first prompt.
    rollouts: usize,
    /// Where the gradient is written, as safetensors.
    gradient_file: Option<String>,
    /// Whether `context` trains; else it only reads.
    train: bool,
    /// In which form `decode` keeps weights.
    keep: KeepAs,
    /// Whether layers are computed once more in backward, so that they need not be kept.
    recompute: bool,
}

impl Workload {
    fn samples(&self) -> Result<Vec<Sample>, Failure> {
        let streams = [
            ("weights", self.weights.len()),
            ("advantages", self.advantages.len()),
            ("behavior_logprobs", self.behavior_logprobs.len()),
        ];
        for (name, found) in streams {
            if found != 0 && found != self.sequences.len() {
                let sequences = self.sequences.len();
                return Err(
                    format!("`{name}` has {found} entries for {sequences} sequences").into()
                );
            }
        }
        if self.advantages.is_empty() != self.behavior_logprobs.is_empty() {
            return Err("`advantages` and `behavior_logprobs` stand together".into());
        }
        let sample = |(index, tokens): (usize, &Vec<u32>)| {
            let (weights, logprobs) = (self.weights.get(index), self.behavior_logprobs.get(index));
            let wrong = |list: Option<&Vec<f32>>| list.is_some_and(|l| l.len() != tokens.len());
            if wrong(weights) || wrong(logprobs) {
                return Err(format!("sequence {index}: not one entry for every token"));
            }
            let mut sample = Sample::default();
            for (t, token) in tokens.iter().enumerate() {
                let all = if t == 0 { 0.0 } else { 1.0 };
                let weight = weights.map_or(all, |weights| weights[t]);
                match (self.advantages.get(index), logprobs) {
                    (Some(advantage), Some(logprobs)) if weight != 0.0 => {
                        let version = PolicyVersion(0);
                        sample.push(*token, weight, *advantage, 0.0, logprobs[t], version, &[]);
                    }
                    (Some(_), _) => sample.push_observed(*token, 0.0),
                    (None, _) => sample.push_observed(*token, weight),
                }
            }
            Ok(sample)
        };
        let samples: Result<Vec<_>, String> =
            self.sequences.iter().enumerate().map(sample).collect();
        Ok(samples?)
    }

    fn objective(&self) -> Box<dyn Objective> {
        match self.advantages.is_empty() {
            true => Box::new(Supervised),
            false => Box::new(Clip::new(ClipOptions::default())),
        }
    }

    /// The decoder to be learnt, and what of it is: all weights, or the factors of an adapter.
    fn learner(
        &self,
        (config, parameters): (ModelConfig, Parameters),
    ) -> Result<(DecoderGradient, Parameters), Failure> {
        let Some(folder) = &self.adapter else {
            let weights = Arc::new(Weights::new(&config, parameters.clone()));
            return Ok((DecoderGradient::new(weights, 1.0), parameters));
        };
        let adapter = LoraAdapter::load(folder, &parameters)?;
        let target = |name: &String| {
            let module = name.strip_suffix(".weight").unwrap_or(name);
            module.rsplit('.').next().unwrap_or(module).to_owned()
        };
        let mut targets: Vec<String> = adapter.changes.keys().map(target).collect();
        targets.sort_unstable();
        targets.dedup();
        let config_of_adapter = LoraConfig {
            rank: adapter.rank,
            alpha: adapter.alpha,
            scale_by_root: adapter.scales_by_root,
            targets,
        };
        let base = Arc::new(Weights::new(&config, parameters));
        let model = LoraModel::new(base, &config_of_adapter);
        let factors = model.factors_of(&adapter).ok_or("the adapter leaves layers out")?;
        Ok((DecoderGradient::of(Trained::Adapter(Arc::new(model)), 1.0), factors))
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, folder, workload] = &arguments[..] else {
        return Err("usage: measure WORK FOLDER WORKLOAD.json".into());
    };
    let workload: Workload = serde_json::from_slice(&std::fs::read(workload)?)?;
    let at_start = peak_bytes()?;
    let folder = Path::new(folder);
    let load = || load_weights(folder);
    let mut result = match &**work {
        "train" => train(load()?, &workload)?,
        "gradient" => gradient(load()?, &workload)?,
        "decode" => decode(&open_weights(folder, workload.keep)?, &workload),
        "shared" => shared(load()?, &workload),
        "context" => context(load()?, &workload)?,
        other => return Err(format!("unknown work `{other}`").into()),
    };
    result["peak_bytes"] = peak_bytes()?.into();
    result["start_bytes"] = at_start.into();
    result["threads"] = rayon::current_num_threads().into();
    println!("{result}");
    Ok(())
}

/// Most memory this process has held so far.
fn peak_bytes() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?;
    Ok(kilobytes.parse::<u64>()? * 1024)
}

fn trainer_config(workload: &Workload) -> TrainerConfig {
    let mut optimizer = OptimizerConfig { name: "adamw".to_owned(), ..OptimizerConfig::default() };
    let options = AdamWOptions {
        learning_rate: workload.learning_rate,
        beta2: 0.999,
        ..AdamWOptions::default()
    };
    optimizer.options = toml::Table::try_from(options).expect("options are a table");
    TrainerConfig {
        optimizer,
        shards: workload.shards.unwrap_or(1),
        micro_batch_tokens: workload.micro_batch_tokens.unwrap_or(1 << 20),
        max_gradient_norm: workload.max_gradient_norm,
        ..TrainerConfig::default()
    }
}

/// Updates: forward, loss, backward, AdamW.
fn train(loaded: (ModelConfig, Parameters), workload: &Workload) -> Result<Value, Failure> {
    let (model, parameters) = workload.learner(loaded)?;
    let mut trainer = Trainer::new(trainer_config(workload), parameters)?;
    let (samples, objective) = (workload.samples()?, workload.objective());
    let samples: Vec<&Sample> = samples.iter().collect();
    let (mut losses, mut norms, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    let mut computed_tokens = 0;
    for update in 0..=workload.updates {
        let started = Instant::now();
        let mode = LossAggregation::TokenMean;
        let metrics = trainer.update(&samples, &*objective, mode, &model, 0.0)?;
        losses.push(metrics.loss);
        norms.push(metrics.gradient_norm);
        computed_tokens = metrics.computed_tokens;
        if update > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
    }
    Ok(json!({
        "seconds": seconds, "losses": losses, "gradient_norms": norms, "computed_tokens": computed_tokens,
    }))
}

/// One gradient of the mean loss over tokens, timed, and its file.
fn gradient(loaded: (ModelConfig, Parameters), workload: &Workload) -> Result<Value, Failure> {
    let activation_bytes = if workload.recompute { 0 } else { usize::MAX };
    let (model, parameters) = workload.learner(loaded)?;
    let model = model.with_activation_bytes(activation_bytes);
    let (samples, objective) = (workload.samples()?, workload.objective());
    let samples: Vec<&Sample> = samples.iter().collect();
    let batch = BatchWeight::of(&*objective, samples.iter().copied());
    let (seed, aggregation) = (Seed::from_u64(0), LossAggregation::TokenMean);
    let update = Update { samples: &samples, present: None, seed, aggregation, state: &[] };
    let of_samples = objective.begin(&update);
    let prepared = model.prepare(&parameters);
    let (mut seconds, mut all, mut loss) = (Vec::new(), 0.0, 0.0);
    let mut gradient = vec![0.0; parameters.data.len()];
    for repetition in 0..=workload.updates {
        gradient.fill(0.0);
        let started = Instant::now();
        let losses = std::sync::Mutex::new(0.0);
        let slopes = |index: usize, found: Measured<'_>| -> Slopes {
            let scale = LossAggregation::TokenMean.scale(objective.weight(samples[index]), batch);
            let found = of_samples.loss(index, found, scale);
            *losses.lock().expect("no panic under the lock") += found.loss;
            found.slopes
        };
        prepared
            .accumulate(&samples, &slopes, &mut gradient, None)
            .map_err(|error| error.to_string())?;
        all = started.elapsed().as_secs_f64();
        if repetition > 0 {
            seconds.push(all);
        }
        loss = losses.into_inner()?;
    }
    if let Some(path) = &workload.gradient_file {
        let bytes: Vec<u8> = gradient.iter().flat_map(|value| value.to_le_bytes()).collect();
        let views = parameters.specs.iter().map(|spec| {
            let range = 4 * spec.range().start..4 * spec.range().end;
            let shape = spec.shape.clone();
            let view =
                safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape, &bytes[range]);
            view.map(|view| (spec.name.clone(), view))
        });
        let views: Vec<_> = views.collect::<Result<_, _>>()?;
        std::fs::write(path, safetensors::serialize(views, None)?)?;
    }
    Ok(json!({ "seconds": seconds, "all_seconds": all, "losses": [loss] }))
}

/// The most probable token behind each state; log-probabilities are computed as in generation.
fn draw(weights: &Weights, states: &[f32], buffer: &mut Vec<f32>) -> Vec<u32> {
    batch_logits(weights, states, buffer);
    let of_state = |logits: &mut [f32]| {
        log_softmax(logits, 1.0);
        let best = |best: usize, at: usize| if logits[at] > logits[best] { at } else { best };
        (0..logits.len()).fold(0, best) as u32
    };
    buffer.chunks_exact_mut(weights.config().vocab_size).map(of_state).collect()
}

/// Greedy generation for all prompts in one batch.
fn decode(weights: &Weights, workload: &Workload) -> Value {
    let d = weights.config().hidden_size;
    let mut caches = vec![SequenceCache::new(weights); workload.sequences.len()];
    let mut unread = workload.sequences.clone();
    let mut sampled: Vec<Vec<u32>> = vec![Vec::new(); unread.len()];
    let mut buffer = Vec::new();
    let started = Instant::now();
    let mut first = 0.0;
    for step in 0..workload.new_tokens {
        let mut segments: Vec<_> = caches
            .iter_mut()
            .zip(&unread)
            .map(|(cache, tokens)| Segment::new(cache, tokens))
            .collect();
        let hidden = forward(weights, &mut segments, None);
        let mut end = 0;
        let mut last = Vec::new();
        for unread in &unread {
            end += unread.len();
            last.extend_from_slice(&hidden[(end - 1) * d..end * d]);
        }
        let tokens = draw(weights, &last, &mut buffer);
        for ((unread, sampled), token) in unread.iter_mut().zip(&mut sampled).zip(tokens) {
            sampled.push(token);
            unread.clear();
            unread.push(token);
        }
        if step == 0 {
            first = started.elapsed().as_secs_f64();
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    json!({ "prefill_seconds": first, "seconds": seconds, "tokens": sampled })
}

/// The first token of one rollout, and of several that share a prompt.
fn shared((config, parameters): (ModelConfig, Parameters), workload: &Workload) -> Value {
    let weights = Weights::new(&config, parameters);
    let prompt = &workload.sequences[0];
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let mut buffer = Vec::new();
    for _ in 0..=workload.updates {
        let started = Instant::now();
        let mut cache = SequenceCache::new(&weights);
        let hidden = forward(&weights, &mut [Segment::new(&mut cache, prompt)], None);
        draw(&weights, &hidden[hidden.len() - config.hidden_size..], &mut buffer);
        alone.push(started.elapsed().as_secs_f64());

        // One reads the prompt, all go on from it: the last token is read by each of them.
        let started = Instant::now();
        let (last, before) = prompt.split_last().expect("a prompt has tokens");
        let mut cache = SequenceCache::new(&weights);
        forward(&weights, &mut [Segment::new(&mut cache, before)], None);
        let mut caches = vec![cache; workload.rollouts];
        let tokens = [*last];
        let mut segments: Vec<_> =
            caches.iter_mut().map(|cache| Segment::new(cache, &tokens)).collect();
        let hidden = forward(&weights, &mut segments, None);
        draw(&weights, &hidden, &mut buffer);
        together.push(started.elapsed().as_secs_f64());
    }
    json!({ "alone_seconds": alone[1..], "together_seconds": together[1..] })
}

/// One long sequence, trained on or only read.
fn context(
    (config, parameters): (ModelConfig, Parameters),
    workload: &Workload,
) -> Result<Value, Failure> {
    if workload.train {
        return gradient((config, parameters), workload);
    }
    let weights = Weights::new(&config, parameters);
    let mut cache = SequenceCache::new(&weights);
    let started = Instant::now();
    // Read in pieces, as a server does, so that only the memory of the sequence grows.
    for tokens in workload.sequences[0].chunks(2048) {
        forward(&weights, &mut [Segment::new(&mut cache, tokens)], None);
    }
    Ok(json!({ "seconds": [started.elapsed().as_secs_f64()] }))
}
