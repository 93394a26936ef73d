use spar_core::Seed;

use super::*;
use crate::{TokenizerConfig, initial_parameters};

fn extended() -> ModelConfig {
    ModelConfig { vocab_size: 261, hidden_size: 32, head_dim: 8, ..ModelConfig::default() }
}

fn plain() -> ModelConfig {
    ModelConfig {
        partial_rotary_factor: 1.0,
        smear_tokens: 0,
        token_match_bias: false,
        ..extended()
    }
}

/// A folder with a saved model.
fn saved(config: &ModelConfig) -> (tempfile::TempDir, Parameters) {
    let folder = tempfile::tempdir().unwrap();
    let parameters = initial_parameters(config, Seed::from_u64(3));
    save_model(folder.path(), config, &parameters, &tokenizer()).unwrap();
    (folder, parameters)
}

fn tokenizer() -> Tokenizer {
    Tokenizer::train([[""; 0]; 0], &TokenizerConfig::default()).unwrap()
}

/// Changes `config.json` of a saved plain model and returns what loading says.
fn with_field(field: &str, value: Value) -> Result<ModelConfig, CheckpointError> {
    let (folder, _) = saved(&plain());
    let path = folder.path().join("config.json");
    let mut file = read_json(&path).unwrap();
    file[field] = value;
    write_json(&path, &file).unwrap();
    load_model(folder.path()).map(|(config, ..)| config)
}

#[test]
fn a_saved_model_opens_as_it_was() {
    let untied = ModelConfig { tie_word_embeddings: false, rms_norm_eps: 3e-5, ..plain() };
    for config in [plain(), extended(), untied] {
        let (folder, parameters) = saved(&config);
        let (found, loaded, tokens) = load_model(folder.path()).unwrap();
        assert_eq!((found, loaded), (config.clone(), parameters));
        assert_eq!(tokens.encode("a b"), tokenizer().encode("a b"));
        let file = read_json(&folder.path().join("config.json")).unwrap();
        let architecture = if config.is_plain() { "Qwen3ForCausalLM" } else { "SparForCausalLM" };
        assert_eq!(file["architectures"], json!([architecture]));
        assert_eq!(file.get("smear_tokens").is_some(), !config.is_plain());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}

#[test]
fn what_the_decoder_does_not_compute_is_refused() {
    for (field, value) in [
        ("architectures", json!(["LlamaForCausalLM"])),
        ("architectures", json!([])),
        ("model_type", json!("qwen2")),
        ("rope_scaling", json!({ "rope_type": "yarn", "factor": 4.0 })),
        ("rope_parameters", json!({ "rope_type": "linear", "rope_theta": 10_000.0 })),
        ("rope_parameters", json!({ "rope_theta": 10_000.0, "partial_rotary_factor": 0.5 })),
        ("rope_parameters", json!({ "rope_theta": 500.0 })),
        ("rope_theta", json!("big")),
        ("attention_bias", json!(true)),
        ("hidden_act", json!("gelu")),
        ("layer_types", json!(["sliding_attention", "full_attention"])),
        ("use_sliding_window", json!(true)),
        ("quantization_config", json!({ "bits": 4 })),
        ("hidden_size", json!(-1)),
        ("hidden_size", json!(1_u64 << 60)),
        ("head_dim", Value::Null),
        ("tie_word_embeddings", json!("yes")),
    ] {
        let error = with_field(field, value.clone()).unwrap_err();
        let CheckpointError::Unsupported { field: found, .. } = &error else {
            panic!("{field} {value}: {error}");
        };
        // A wrong model type is reported with the architecture.
        assert!(found == field || field == "model_type", "{error}");
    }
    for (field, value) in [("num_hidden_layers", 9999), ("num_key_value_heads", 3), ("head_dim", 7)]
    {
        let error = with_field(field, json!(value)).unwrap_err();
        assert!(matches!(error, CheckpointError::Config { .. }), "{field}: {error}");
    }
    for (field, value) in [("rope_scaling", Value::Null), ("sliding_window", json!(4096))] {
        assert_eq!(with_field(field, value).unwrap(), plain());
    }
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let error = with_field("num_hidden_layers", json!(3)).unwrap_err();
    let CheckpointError::MissingTensor { name, .. } = error else { panic!("{error}") };
    assert_eq!(name, "model.layers.2.input_layernorm.weight");
    let error = with_field("num_hidden_layers", json!(1)).unwrap_err();
    assert!(matches!(error, CheckpointError::ExtraTensor { .. }), "{error}");
    let error = with_field("intermediate_size", json!(1 << 24)).unwrap_err();
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
    let error = with_field("vocab_size", json!(9)).unwrap_err();
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
}

#[test]
fn damaged_files_are_named() {
    let (folder, _) = saved(&plain());
    let path = folder.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for len in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let error = load_model(folder.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{len}: {error}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = load_model(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::NoWeights { .. }), "{error}");
    std::fs::write(folder.path().join("config.json"), "{").unwrap();
    let error = load_model(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
}

#[test]
fn weights_that_are_no_numbers_are_neither_written_nor_read() {
    let (folder, mut parameters) = saved(&plain());
    let spec = parameters.spec("model.norm.weight").unwrap().clone();
    parameters.view_mut(&spec)[5] = f32::NAN;
    let error = save_model(folder.path(), &plain(), &parameters, &tokenizer()).unwrap_err();
    let CheckpointError::NotFinite { name, element: 5, .. } = error else { panic!("{error}") };
    assert_eq!(name, "model.norm.weight");
    load_model(folder.path()).expect("the model that was there is untouched");
}

#[test]
fn several_files_of_half_precision_are_read() {
    use safetensors::tensor::{Dtype, TensorView};
    let (folder, mut parameters) = saved(&plain());
    // What half precision can hold.
    parameters.data.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 200) as f32 / 8.0 - 3.0);
    let path = |name: &str| folder.path().join(name);
    std::fs::remove_file(path("model.safetensors")).unwrap();
    let mut map = serde_json::Map::new();
    let mut files = [Vec::new(), Vec::new()];
    for (index, spec) in parameters.specs.iter().enumerate() {
        let file = index % 2;
        let (dtype, half): (_, fn(f32) -> u16) = match file {
            0 => (Dtype::BF16, |value| (value.to_bits() >> 16) as u16),
            _ => (Dtype::F16, |value| {
                let bits = value.to_bits();
                if value == 0.0 {
                    return 0;
                }
                (bits >> 16 & 0x8000 | ((bits >> 23 & 255) - 112) << 10 | bits >> 13 & 1023) as u16
            }),
        };
        let values = parameters.view(spec).iter().flat_map(|v| half(*v).to_le_bytes());
        files[file].push((
            spec.name.clone(),
            dtype,
            spec.shape.clone(),
            values.collect::<Vec<_>>(),
        ));
        map.insert(spec.name.clone(), json!(format!("part-{file}.safetensors")));
    }
    for (index, file) in files.iter().enumerate() {
        let views = file.iter().map(|(name, dtype, shape, bytes)| {
            (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let bytes = safetensors::serialize(views, None).unwrap();
        std::fs::write(path(&format!("part-{index}.safetensors")), bytes).unwrap();
    }
    write_json(&path("model.safetensors.index.json"), &json!({ "weight_map": map })).unwrap();
    let (_, loaded) = load_weights(folder.path()).unwrap();
    assert_eq!(loaded, parameters);

    for file in [json!("../x.safetensors"), json!("/etc/passwd"), json!(3), json!("")] {
        let index = json!({ "weight_map": { "a": file } });
        write_json(&path("model.safetensors.index.json"), &index).unwrap();
        let error = load_weights(folder.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Index { .. }), "{error}");
    }
}

#[test]
fn half_precision_is_read_exactly() {
    for (half, expected) in [
        (0x0001, 5.960_464_5e-8),
        (0x03ff, 6.097_555e-5),
        (0x0400, 6.103_515_6e-5),
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x7bff, 65504.0),
        (0xfc00, f32::NEG_INFINITY),
        (0x3555, 0.333_251_95),
    ] {
        assert_eq!(weights_file::from_half(half), expected);
    }
    assert!(weights_file::from_half(0x7e00).is_nan());
}

#[test]
fn a_tokenizer_larger_than_its_model_is_refused() {
    let config = ModelConfig { vocab_size: 260, ..plain() };
    let (folder, _) = saved(&config);
    let error = load_model(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::Vocabulary { tokenizer: 261, model: 260, .. }));
}
