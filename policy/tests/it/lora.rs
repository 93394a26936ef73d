//! Adapters against Hugging Face's PEFT: the merged model has the same logits, the factors the same
//! gradients.
//!
//! The numbers come from `scripts/make_lora_fixture.py`.

use std::path::PathBuf;
use std::sync::Arc;

use safetensors::SafeTensors;
use spar_policy::checkpoint::{LoraAdapter, is_adapter, load_config, load_weights};
use spar_policy::decoder::{Segment, SequenceCache, Tape, forward};
use spar_policy::head::{Draw, DrawGradient, DrawLoss, judge, learn, logits};
use spar_policy::{CheckpointError, LoraConfig, LoraModel, Weights};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

#[test]
fn a_merged_adapter_agrees() {
    for name in ["lora/plain", "lora/root", "lora/all"] {
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
            logits(&weights, state, &[], &mut row);
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
fn gradients_of_the_factors_agree() {
    for name in ["lora/plain", "lora/root", "lora/all"] {
        let folder = fixture(name);
        let (config, parameters) = load_weights(&fixture("models/qwen2")).unwrap();
        let adapter = LoraAdapter::load(&folder, &parameters).unwrap();
        let module = |name: &String| name.rsplit('.').nth(1).unwrap().to_owned();
        let mut targets: Vec<String> = adapter.changes.keys().map(module).collect();
        targets.sort_unstable();
        targets.dedup();
        let lora = LoraConfig {
            rank: adapter.rank,
            alpha: adapter.alpha,
            scale_by_root: adapter.scales_by_root,
            targets,
        };
        let model = LoraModel::new(Arc::new(Weights::new(&config, parameters)), &lora);
        let factors = model.factors_of(&adapter).unwrap();

        // The mean cross-entropy of all next tokens.
        let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
        let expected = SafeTensors::deserialize(&bytes).unwrap();
        let ids = expected.tensor("ids").unwrap().data().as_chunks::<8>().0.iter();
        let ids: Vec<u32> = ids.map(|bytes| i64::from_le_bytes(*bytes) as u32).collect();
        let weights = model.merged(&factors);
        let mut cache = SequenceCache::new(&weights);
        let mut tape = Tape::default();
        let mut segments = [Segment::new(&mut cache, &ids)];
        let hidden = forward(&weights, &mut segments, Some(&mut tape));
        let last = ids.len() - 1;
        let draws: Vec<Draw<'_>> =
            (0..last).map(|row| Draw { row, token: ids[row + 1], allowed: &[] }).collect();
        let judged = judge(&weights, &hidden, &draws, 1.0);
        let slope = DrawGradient { logprob: -1.0 / last as f32, entropy: 0.0 };
        let slopes = vec![slope; last];
        let mut gradient = vec![0.0; factors.data.len()];
        let loss = DrawLoss {
            draws: &draws,
            temperature: 1.0,
            told: &judged,
            derivatives: &slopes,
            dstates_td: None,
        };
        let into = &mut model.gradient(&factors, &mut gradient);
        learn(&weights, &tape, &hidden.into(), &loss, into).unwrap();

        let mut worst = 0.0_f32;
        for spec in factors.specs.iter() {
            let wanted = expected.tensor(&format!("gradient.{}", spec.name)).unwrap();
            assert_eq!(wanted.shape(), spec.shape, "{}", spec.name);
            let wanted = wanted.data().as_chunks::<4>().0.iter();
            let wanted: Vec<f32> = wanted.map(|bytes| f32::from_le_bytes(*bytes)).collect();
            let scale = wanted.iter().fold(0.0_f32, |scale, value| scale.max(value.abs()));
            assert!(scale > 0.0, "{}", spec.name);
            for (found, wanted) in gradient[spec.range()].iter().zip(&wanted) {
                worst = worst.max((found - wanted).abs() / scale);
            }
        }
        println!("{name}: gradients off by {worst:e} of their largest");
        assert!(worst < 1e-4, "{name}: {worst}");
    }
}

#[test]
fn a_folder_with_an_adapter_opens_as_the_merged_model() {
    let (config, base) = load_weights(&fixture("models/qwen2")).unwrap();
    let adapter = LoraAdapter::load(&fixture("lora/plain"), &base).unwrap();
    let mut merged = base.clone();
    adapter.merge_into(&mut merged);
    let folder = tempfile::tempdir().unwrap();
    // Wherever the model is: at a path, or beside the adapter.
    let beside = folder.path().join("model");
    std::fs::create_dir(&beside).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(fixture("models/qwen2").join(name), beside.join(name)).unwrap();
    }
    for base_name in [&*beside.to_string_lossy(), "model"] {
        adapter.save(folder.path(), base_name, &base).unwrap();
        assert!(is_adapter(folder.path()) && !is_adapter(&beside));
        assert_eq!(load_config(folder.path()).unwrap(), config);
        let (_, found) = load_weights(folder.path()).unwrap();
        assert_eq!(found, merged);
    }
    adapter.save(folder.path(), "nowhere/to-be-found", &base).unwrap();
    let error = load_weights(folder.path()).unwrap_err();
    let CheckpointError::Unsupported { field, .. } = &error else { panic!("{error}") };
    assert_eq!(field, "base_model_name_or_path");
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
        ("init_lora_weights", serde_json::json!("pissa_niter_4")),
        ("modules_to_save", serde_json::json!(["lm_head"])),
        ("alpha_pattern", serde_json::json!({ "q_proj": 3 })),
        ("alora_invocation_tokens", serde_json::json!([1, 2])),
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
