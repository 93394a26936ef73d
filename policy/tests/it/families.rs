//! The decoder against Hugging Face's models: same logits, same gradients, same greedy tokens.
//!
//! The numbers come from `scripts/make_model_fixtures.py`.

use std::path::PathBuf;

use safetensors::SafeTensors;
use spar_policy::Weights;
use spar_policy::checkpoint::load_weights;
use spar_policy::decoder::{Segment, SequenceCache, Tape, backward, forward};
use spar_policy::head::{Draw, log_probabilities_backward, logits};

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let data = file.tensor(name).unwrap().data();
    data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Largest absolute value.
fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, |largest, value| largest.max(value.abs()))
}

fn compare(fixture: &str) {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models").join(fixture);
    let (config, parameters) = load_weights(&folder).unwrap();
    assert!(config.is_plain());
    let weights = Weights::new(&config, parameters);
    let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
    let expected = SafeTensors::deserialize(&bytes).unwrap();
    let sequences = expected.tensor("sequences").unwrap();
    let len = sequences.shape()[1];
    let ids = sequences.data().as_chunks::<8>().0.iter();
    let ids: Vec<u32> = ids.map(|bytes| i64::from_le_bytes(*bytes) as u32).collect();

    let mut caches = vec![SequenceCache::new(&weights); ids.len() / len];
    let mut segments: Vec<_> = caches
        .iter_mut()
        .zip(ids.chunks(len))
        .map(|(cache, tokens)| Segment::new(cache, tokens))
        .collect();
    let mut tape = Tape::default();
    let hidden = forward(&weights, &mut segments, Some(&mut tape));

    let mut all = Vec::new();
    let mut row = Vec::new();
    for state in hidden.chunks(config.hidden_size) {
        logits(&weights, state, &[], &mut row);
        all.extend_from_slice(&row);
    }
    let wanted = floats(&expected, "logits");
    assert_eq!(all.len(), wanted.len());
    let difference = largest(all.iter().zip(&wanted).map(|(a, b)| a - b));
    println!("{fixture}: logits up to {}, off by {difference:e}", largest(wanted.iter().copied()));
    assert!(difference < 1e-4, "{fixture}: {difference}");

    // The mean cross-entropy of every next token.
    let draws: Vec<Draw<'_>> = (0..ids.len())
        .filter(|row| row % len + 1 < len)
        .map(|row| Draw { row, token: ids[row + 1], allowed: &[] })
        .collect();
    let dlogprobs = vec![-1.0 / draws.len() as f32; draws.len()];
    let mut dhidden = vec![0.0; hidden.len()];
    let mut gradient = vec![0.0; weights.parameters().data.len()];
    let (h, g) = (&mut dhidden, &mut gradient);
    log_probabilities_backward(&weights, &hidden, &draws, 1.0, &dlogprobs, h, g);
    backward(&weights, &tape, &dhidden, &mut gradient);
    for spec in weights.parameters().specs.iter() {
        let wanted = floats(&expected, &format!("gradient.{}", spec.name));
        let found = &gradient[spec.range()];
        let scale = largest(wanted.iter().copied());
        let difference = largest(found.iter().zip(&wanted).map(|(a, b)| a - b)) / scale;
        println!("{fixture}: gradient of {} off by {difference:e}", spec.name);
        assert!(difference < 1e-4, "{fixture}: {} {difference}", spec.name);
    }

    // What follows the first sequence, always the most probable token.
    let greedy = expected.tensor("greedy").unwrap();
    let greedy = greedy.data().as_chunks::<8>().0.iter();
    let greedy: Vec<u32> = greedy.map(|bytes| i64::from_le_bytes(*bytes) as u32).collect();
    assert_eq!(greedy.len(), 256);
    let mut cache = SequenceCache::new(&weights);
    let mut unread = ids[..len].to_vec();
    for (step, wanted) in greedy.iter().enumerate() {
        let mut segments = [Segment::new(&mut cache, &unread)];
        let hidden = forward(&weights, &mut segments, None);
        logits(&weights, &hidden[hidden.len() - config.hidden_size..], &[], &mut row);
        let best = (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as u32;
        assert_eq!(best, *wanted, "{fixture}: token {step}");
        unread = vec![best];
    }
}

#[test]
fn llama_with_tied_embeddings_and_its_scaled_positions_agrees() {
    compare("llama");
}

#[test]
fn llama_with_linearly_scaled_positions_agrees() {
    compare("llama-linear");
}

#[test]
fn mistral_with_a_window_shorter_than_the_text_agrees() {
    compare("mistral");
}

#[test]
fn qwen2_with_tied_embeddings_agrees() {
    compare("qwen2");
}

#[test]
fn qwen2_with_a_window_in_every_layer_agrees() {
    compare("qwen2-window");
}

#[test]
fn qwen3_with_tied_embeddings_agrees() {
    compare("qwen3");
}

#[test]
fn qwen3_with_an_output_matrix_agrees() {
    compare("qwen3-untied");
}
