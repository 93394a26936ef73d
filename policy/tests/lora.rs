//! Adapters against Hugging Face's PEFT: the merged model has the same logits.
//!
//! The numbers come from `scripts/make_lora_fixture.py`.

use std::path::PathBuf;

use safetensors::SafeTensors;
use spar_policy::checkpoint::{LoraAdapter, load_weights};
use spar_policy::decoder::{Segment, SequenceCache, forward};
use spar_policy::head::scores;
use spar_policy::{CheckpointError, Weights};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn a_merged_adapter_agrees() {
    for name in ["lora/plain", "lora/root"] {
        let folder = fixture(name);
        let (config, mut parameters) = load_weights(&fixture("models/qwen2")).unwrap();
        let adapter = LoraAdapter::load(&folder, &parameters).unwrap();
        assert_eq!(adapter.scales_by_root, name == "lora/root");

        let before = parameters.clone();
        adapter.merge_into(&mut parameters);
        assert!(parameters.data != before.data);
        let weights = Weights::new(&config, parameters);
        let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |name: &str| expected.tensor(name).unwrap().data();
        let ids = tensor("ids").as_chunks::<8>().0.iter();
        let ids: Vec<u32> = ids.map(|bytes| i64::from_le_bytes(*bytes) as u32).collect();
        let wanted = tensor("logits").as_chunks::<4>().0.iter();
        let wanted: Vec<f32> = wanted.map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let mut cache = SequenceCache::new(&weights);
        let mut segments = [Segment::new(&mut cache, &ids)];
        let hidden = forward(&weights, &mut segments, None);
        let (mut found, mut row) = (Vec::new(), Vec::new());
        for state in hidden.chunks(config.hidden_size) {
            scores(&weights, state, &[], &mut row);
            found.extend_from_slice(&row);
        }
        let difference =
            found.iter().zip(&wanted).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
        println!("{name}: logits off by {difference:e}");
        assert!(found.len() == wanted.len() && difference < 1e-4, "{name}: {difference}");

        // It is written as it was read.
        let saved = tempfile::tempdir().unwrap();
        adapter.save(saved.path(), "base", &before).unwrap();
        assert_eq!(LoraAdapter::load(saved.path(), &before).unwrap(), adapter);
    }
}

#[test]
fn adapters_of_other_kinds_or_models_are_refused() {
    let (_, parameters) = load_weights(&fixture("models/qwen2")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let names = ["adapter_config.json", "adapter_model.safetensors"];
    let source = fixture("lora/plain");
    for name in names {
        std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let text = std::fs::read_to_string(source.join(names[0])).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    let with = |field: &str, value: serde_json::Value| {
        let mut config = config.clone();
        config[field] = value;
        std::fs::write(folder.path().join(names[0]), config.to_string()).unwrap();
        LoraAdapter::load(folder.path(), &parameters).unwrap_err()
    };
    for (field, value) in [
        ("peft_type", serde_json::json!("IA3")),
        ("bias", serde_json::json!("all")),
        ("use_dora", serde_json::json!(true)),
        ("modules_to_save", serde_json::json!(["lm_head"])),
        ("alpha_pattern", serde_json::json!({ "q_proj": 3 })),
        ("r", serde_json::json!(0)),
        ("lora_alpha", serde_json::json!("x")),
    ] {
        let error = with(field, value);
        let CheckpointError::Unsupported { field: found, .. } = &error else { panic!("{error}") };
        assert_eq!(found, field);
    }
    let error = with("r", serde_json::json!(3));
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
    std::fs::write(folder.path().join(names[0]), text).unwrap();
    let (_, other) = load_weights(&fixture("models/qwen3-untied")).unwrap();
    let error = LoraAdapter::load(folder.path(), &other).unwrap_err();
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
}
