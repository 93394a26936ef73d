use proptest::prelude::*;

use super::*;
use crate::head::{Draw, log_probabilities, log_probabilities_backward};
use crate::{Family, HalfParameters, HalfType, ModelConfig, RopeScaling, initial_parameters};

fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: 11,
        hidden_size: 16,
        intermediate_size: 12,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 6,
        max_position_embeddings: 128,
        tie_word_embeddings: false,
        ..ModelConfig::default()
    }
}

/// Every family, with and without extensions, a window and scaled positions.
fn variants() -> Vec<ModelConfig> {
    let mut variants = vec![
        config(),
        ModelConfig { tie_word_embeddings: true, ..config() },
        ModelConfig { sliding_window: Some(4), family: Family::Qwen2, ..config() },
    ];
    variants.extend(Family::ALL.map(|family| ModelConfig {
        family,
        sliding_window: (family == Family::Mistral).then_some(3),
        rope_scaling: if family == Family::Llama {
            RopeScaling::Linear { factor: 2.0 }
        } else {
            RopeScaling::None
        },
        partial_rotary_factor: 1.0,
        smear_tokens: 0,
        token_match_bias: false,
        ..config()
    }));
    variants
}

/// Fresh weights, larger than usual so that every parameter matters to the loss.
fn weights(config: &ModelConfig) -> Weights {
    let mut parameters = initial_parameters(config, spar_core::Seed::from_u64(1));
    for (i, value) in parameters.data.iter_mut().enumerate() {
        *value += (i as f32 * 1.3).sin() * 0.2;
    }
    Weights::new(config, parameters)
}

const SEQUENCES: [&[u32]; 2] = [&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], &[2, 7, 1, 8, 2, 8]];
const ALLOWED: &[u32] = &[1, 2, 5, 8];

fn draws() -> Vec<Draw<'static>> {
    let mut draws = Vec::new();
    let mut row = 0;
    for tokens in SEQUENCES {
        for (t, token) in tokens.iter().enumerate().skip(1) {
            let allowed: &[u32] = if ALLOWED.contains(token) { ALLOWED } else { &[] };
            draws.push(Draw { row: row + t - 1, token: *token, allowed });
        }
        row += tokens.len();
    }
    draws
}

fn run(weights: &Weights, tape: Option<&mut Tape>) -> Vec<f32> {
    let mut caches = vec![SequenceCache::new(weights); 2];
    let mut segments: Vec<_> = caches
        .iter_mut()
        .zip(SEQUENCES)
        .map(|(cache, tokens)| Segment::new(cache, tokens))
        .collect();
    forward(weights, &mut segments, tape)
}

fn loss(weights: &Weights) -> f64 {
    let hidden = run(weights, None);
    let logprobs = log_probabilities(weights, &hidden, &draws(), 0.7);
    logprobs.iter().enumerate().map(|(i, l)| f64::from(*l) * (i as f64 * 0.9).cos()).sum()
}

#[test]
fn gradient_of_every_parameter() {
    for config in variants() {
        let weights = weights(&config);
        let mut tape = Tape::default();
        let hidden = run(&weights, Some(&mut tape));
        let mut gradient = vec![0.0; weights.parameters().data.len()];
        let mut dhidden = vec![0.0; hidden.len()];
        let draws = draws();
        let dlogprobs: Vec<f32> = (0..draws.len()).map(|i| (i as f32 * 0.9).cos()).collect();
        let (h, g) = (&mut dhidden, &mut gradient);
        log_probabilities_backward(&weights, &hidden, &draws, 0.7, &dlogprobs, h, g);
        backward(&weights, &tape, &dhidden, &mut gradient);
        for spec in weights.parameters().specs.iter() {
            let found = &gradient[spec.range()];
            let scale = found.iter().fold(0.0_f32, |a, g| a.max(g.abs()));
            assert!(scale > 0.0, "{} gets no gradient", spec.name);
            let picks = [0, spec.len() / 3, spec.len() / 2, spec.len() - 1];
            for pick in picks {
                let shifted = |by: f32| {
                    let mut parameters = weights.parameters().clone();
                    parameters.data[spec.offset + pick] += by;
                    loss(&weights.with_parameters(parameters))
                };
                let difference = |h: f32| (shifted(h) - shifted(-h)) / (2.0 * f64::from(h));
                let expected = (4.0 * difference(5e-3) - difference(1e-2)) / 3.0;
                let error = (f64::from(found[pick]) - expected).abs() / f64::from(scale);
                assert!(error < 2e-2, "{}[{pick}]: {} {expected}", spec.name, found[pick]);
            }
        }
    }
}

#[test]
fn log_probabilities_add_up_to_one() {
    let weights = weights(&config());
    let hidden = run(&weights, None);
    for allowed in [&[] as &[u32], ALLOWED] {
        let all: Vec<u32> = (0..11).filter(|v| allowed.is_empty() || allowed.contains(v)).collect();
        let draws: Vec<_> =
            all.iter().map(|token| Draw { row: 5, token: *token, allowed }).collect();
        let logprobs = log_probabilities(&weights, &hidden, &draws, 1.3);
        let sum: f32 = logprobs.iter().map(|l| l.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
}

/// Token ids that repeat often enough to match each other.
fn text(len: usize, seed: usize) -> Vec<u32> {
    (0..len).map(|t| ((t * t + 3 * t * seed + seed) % 11) as u32).collect()
}

/// A variant whose sequences can be long.
fn long_variant(index: usize, window: Option<usize>) -> Weights {
    let config = variants()[index].clone();
    let sliding_window = window.or(config.sliding_window);
    weights(&ModelConfig { sliding_window, max_position_embeddings: 1024, ..config })
}

/// The states of a sequence read at once, alone.
fn alone(weights: &Weights, tokens: &[u32]) -> Vec<f32> {
    let mut cache = SequenceCache::new(weights);
    forward(weights, &mut [Segment::new(&mut cache, tokens)], None)
}

/// Parts of sequences with their parents.
type Tree = Vec<(Option<usize>, Vec<u32>)>;

/// The sequence that ends with a node, and where the node's own tokens begin in it.
fn sequence(tree: &Tree, node: usize) -> (Vec<u32>, usize) {
    let (parent, tokens) = &tree[node];
    let (mut all, _) = parent.map_or_else(Default::default, |parent| sequence(tree, parent));
    let start = all.len();
    all.extend_from_slice(tokens);
    (all, start)
}

fn read_tree(
    weights: &Weights,
    tree: &Tree,
    tape: Option<&mut Tape>,
) -> (Vec<SequenceCache>, Vec<f32>) {
    let mut caches = vec![SequenceCache::new(weights); tree.len()];
    let mut segments: Vec<_> = caches
        .iter_mut()
        .zip(tree)
        .map(|(cache, (parent, tokens))| Segment { cache, tokens, parent: *parent, adapter: None })
        .collect();
    let hidden = forward(weights, &mut segments, tape);
    (caches, hidden)
}

fn trees() -> impl Strategy<Value = Tree> {
    let node = (any::<prop::sample::Index>(), 0..80_usize, 0..4_usize);
    prop::collection::vec(node, 1..8).prop_map(|nodes| {
        let node = |(index, (parent, len, seed)): (usize, (prop::sample::Index, usize, usize))| {
            // One of the earlier nodes, or none.
            (parent.index(index + 1).checked_sub(1), text(len, seed))
        };
        nodes.into_iter().enumerate().map(node).collect()
    })
}

fn windows() -> impl Strategy<Value = Option<usize>> {
    prop::sample::select(vec![None, None, Some(1), Some(20), Some(32), Some(130)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_tree_is_read_like_its_sequences_to_the_bit(
        tree in trees(),
        variant in 0..variants().len(),
        window in windows(),
    ) {
        let weights = long_variant(variant, window);
        let d = weights.config.hidden_size;
        let (mut caches, hidden) = read_tree(&weights, &tree, None);
        let mut rows = hidden.chunks_exact(d);
        for (node, cache) in caches.iter_mut().enumerate() {
            let (tokens, start) = sequence(&tree, node);
            prop_assert_eq!(cache.tokens(), &*tokens);
            let found: Vec<f32> = rows.by_ref().take(tree[node].1.len()).flatten().copied().collect();
            prop_assert_eq!(&found, &alone(&weights, &tokens)[start * d..]);
        }
        // What each sequence left behind goes on like its own.
        let mut segments: Vec<_> =
            caches.iter_mut().map(|cache| Segment::new(cache, &[7, 3])).collect();
        let hidden = forward(&weights, &mut segments, None);
        for (node, found) in hidden.chunks_exact(2 * d).enumerate() {
            let (mut tokens, _) = sequence(&tree, node);
            tokens.extend([7, 3]);
            let expected = alone(&weights, &tokens);
            prop_assert_eq!(found, &expected[expected.len() - 2 * d..]);
        }
    }

    #[test]
    fn a_sequence_in_pieces_beside_others_gives_the_same_bits(
        pieces in prop::collection::vec(1..90_usize, 1..5),
        others in prop::collection::vec(1..60_usize, 0..3),
        back in 0..40_usize,
        variant in 0..variants().len(),
        window in windows(),
    ) {
        let weights = long_variant(variant, window);
        let d = weights.config.hidden_size;
        let tokens = text(pieces.iter().sum(), 2);
        let expected = alone(&weights, &tokens);
        let mut cache = SequenceCache::new(&weights);
        let mut beside = vec![SequenceCache::new(&weights); others.len()];
        for piece in pieces {
            // A fork reads something else first, and the memory is cut back and read again.
            let mut fork = cache.clone();
            forward(&weights, &mut [Segment::new(&mut fork, &[9; 40])], None);
            cache.truncate(cache.tokens().len().saturating_sub(back));
            let from = cache.tokens().len();
            let to = tokens.len().min(from + back + piece);
            let texts: Vec<Vec<u32>> = others.iter().map(|len| text(*len, 1)).collect();
            let mut segments: Vec<_> =
                beside.iter_mut().zip(&texts).map(|(cache, text)| Segment::new(cache, text)).collect();
            let place = segments.len() / 2;
            let row = others[..place].iter().sum::<usize>();
            segments.insert(place, Segment::new(&mut cache, &tokens[from..to]));
            let hidden = forward(&weights, &mut segments, None);
            prop_assert_eq!(&hidden[row * d..][..(to - from) * d], &expected[from * d..to * d]);
        }
    }

    #[test]
    fn the_gradient_of_a_tree_is_the_sum_over_its_sequences(
        tree in trees(),
        variant in 0..variants().len(),
        window in windows(),
    ) {
        let weights = long_variant(variant, window);
        let d = weights.config.hidden_size;
        let (tape, mut short) = (&mut Tape::default(), Tape::recomputing());
        let (_, hidden) = read_tree(&weights, &tree, Some(tape));
        prop_assert_eq!(&read_tree(&weights, &tree, Some(&mut short)).1, &hidden);
        let slope = |node: usize, t: usize, c: usize| ((node * 31 + t * 7 + c * 3) as f32).sin();
        let mut dhidden = Vec::new();
        let mut dense = vec![0.0_f64; weights.parameters.data.len()];
        // What rounding is measured by, since the parts may cancel each other.
        let mut sizes = dense.clone();
        for (node, (_, own)) in tree.iter().enumerate() {
            let (tokens, start) = sequence(&tree, node);
            dhidden.extend((0..own.len() * d).map(|i| slope(node, i / d, i % d)));
            let mut alone = vec![0.0; tokens.len() * d];
            alone[start * d..].copy_from_slice(&dhidden[dhidden.len() - own.len() * d..]);
            let (mut cache, mut tape) = (SequenceCache::new(&weights), Tape::default());
            forward(&weights, &mut [Segment::new(&mut cache, &tokens)], Some(&mut tape));
            let mut gradient = vec![0.0; dense.len()];
            backward(&weights, &tape, &alone, &mut gradient);
            dense.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += f64::from(*g));
            sizes.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += f64::from(g.abs()));
        }
        let mut gradient = vec![0.0; dense.len()];
        backward(&weights, tape, &dhidden, &mut gradient);
        for spec in weights.parameters.specs.iter() {
            let (found, expected) = (&gradient[spec.range()], &dense[spec.range()]);
            let scale = sizes[spec.range()].iter().fold(1e-2_f64, |scale, size| scale.max(*size));
            for (found, expected) in found.iter().zip(expected) {
                let error = (f64::from(*found) - expected).abs() / scale;
                prop_assert!(error < 1e-5, "{}: {found} {expected} {scale}", spec.name);
            }
        }
        let mut recomputed = vec![0.0; dense.len()];
        backward(&weights, &short, &dhidden, &mut recomputed);
        prop_assert_eq!(recomputed, gradient);
    }
}

#[test]
fn decoding_token_by_token_gives_the_same_bits() {
    for index in 0..variants().len() {
        let weights = long_variant(index, None);
        let d = weights.config.hidden_size;
        let tokens = text(290, 1);
        let expected = alone(&weights, &tokens);
        let mut cache = SequenceCache::new(&weights);
        for (token, expected) in tokens.iter().zip(expected.chunks_exact(d)) {
            let mut segments = [Segment::new(&mut cache, std::slice::from_ref(token))];
            assert_eq!(forward(&weights, &mut segments, None), expected);
        }
    }
}

#[test]
fn clones_share_pages_until_they_part() {
    let weights = weights(&config());
    let mut cache = SequenceCache::new(&weights);
    forward(&weights, &mut [Segment::new(&mut cache, &text(70, 1))], None);
    assert_eq!((cache.num_pages(), cache.num_own_pages()), (3, 3));
    let mut forks = vec![cache.clone(); 4];
    assert_eq!(cache.num_own_pages(), 0);
    let mut segments: Vec<_> = forks.iter_mut().map(|cache| Segment::new(cache, &[1, 2])).collect();
    forward(&weights, &mut segments, None);
    // The full pages stay shared; the part of a page is copied.
    assert!(forks.iter().all(|fork| fork.num_own_pages() == 1));
    assert_eq!(cache.num_own_pages(), 1);
    cache.truncate(64);
    assert_eq!(cache.num_pages(), 2);
}

#[test]
fn no_tokens_give_no_states() {
    let weights = weights(&config());
    assert!(forward(&weights, &mut [], None).is_empty());
    let mut cache = SequenceCache::new(&weights);
    assert!(forward(&weights, &mut [Segment::new(&mut cache, &[])], None).is_empty());
}

#[test]
fn halves_compute_what_their_numbers_in_single_precision_do() {
    for config in variants() {
        let original = weights(&config);
        for half in [HalfType::Bf16, HalfType::F16] {
            let halves = HalfParameters::rounded(original.parameters(), half);
            let singles = original.with_parameters(halves.widened());
            let halves = original.with_halves(halves);
            assert_eq!((halves.half_type(), singles.half_type()), (Some(half), None));
            assert!(halves.bytes() < singles.bytes() * 2 / 3);

            let compute = |weights: &Weights| {
                let mut tape = Tape::default();
                let hidden = run(weights, Some(&mut tape));
                let logprobs = log_probabilities(weights, &hidden, &draws(), 0.8);
                let mut all = Vec::new();
                crate::head::batch_logits(weights, &hidden, &mut all);
                let mut some = Vec::new();
                let d = weights.config.hidden_size;
                crate::head::logits(weights, &hidden[..d], ALLOWED, &mut some);
                let slopes: Vec<f32> = (0..logprobs.len()).map(|i| (i as f32).cos()).collect();
                let mut gradient = vec![0.0; original.parameters.data.len()];
                let mut dhidden = vec![0.0; hidden.len()];
                let (h, g) = (&mut dhidden, &mut gradient);
                log_probabilities_backward(weights, &hidden, &draws(), 0.8, &slopes, h, g);
                backward(weights, &tape, &dhidden, &mut gradient);
                (hidden, logprobs, all, some, gradient)
            };
            let (found, expected) = (compute(&halves), compute(&singles));
            assert!(found == expected, "{half:?} {config:?}");
            assert!(found.0 != run(&original, None), "the numbers were rounded");
        }
    }
}

#[test]
fn weights_for_generation_give_the_same_bits() {
    for config in variants() {
        let config = ModelConfig { vocab_size: 37, ..config };
        let by_rows = weights(&config);
        let halves = HalfParameters::rounded(by_rows.parameters(), HalfType::Bf16);
        for weights in [by_rows.with_halves(halves), by_rows] {
            let weights = Arc::new(weights);
            let ordered = weights.clone().for_generation();
            let run = |weights: &Weights| {
                let mut caches = SEQUENCES.map(|_| SequenceCache::new(weights));
                let pairs = caches.iter_mut().zip(SEQUENCES);
                let mut segments: Vec<_> =
                    pairs.map(|(cache, tokens)| Segment::new(cache, tokens)).collect();
                let mut states = forward(weights, &mut segments, None);
                let judged = log_probabilities(weights, &states, &draws(), 0.7);
                // One token more, as generation reads it.
                states.extend(forward(weights, &mut [Segment::new(&mut caches[0], &[30])], None));
                (states, judged)
            };
            assert_eq!(run(&ordered), run(&weights), "{config:?}");
            assert_eq!(ordered.to_parameters(), weights.to_parameters());
            // What lies so already is the same, and what is shared is left as it was.
            assert!(Arc::ptr_eq(&ordered, &ordered.clone().for_generation()));
        }
    }
}
