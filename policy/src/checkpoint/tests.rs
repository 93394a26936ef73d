use serde_json::json;
use spar_core::Seed;

use super::*;
use crate::{Family, HalfType, RopeScaling, TokenizerConfig, initial_parameters};

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

/// A model of each family, with what else its architecture can have.
fn families() -> Vec<ModelConfig> {
    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 512,
    };
    let linear = RopeScaling::Linear { factor: 2.5 };
    [
        (Family::Llama, llama3, None),
        (Family::Mistral, RopeScaling::None, Some(7)),
        (Family::Mistral, linear, None),
        (Family::Qwen2, RopeScaling::None, Some(9)),
        (Family::Qwen2, RopeScaling::None, None),
        (Family::Qwen3, linear, Some(9)),
    ]
    .map(|(family, rope_scaling, sliding_window)| ModelConfig {
        family,
        rope_scaling,
        sliding_window,
        ..plain()
    })
    .into()
}

#[test]
fn models_of_every_family_open_as_they_were() {
    for config in families() {
        for config in
            [config.clone(), ModelConfig { smear_tokens: 1, tie_word_embeddings: false, ..config }]
        {
            let (folder, parameters) = saved(&config);
            let (found, loaded) = load_weights(folder.path()).unwrap();
            assert_eq!((found, loaded), (config, parameters));
        }
    }
    let config = ModelConfig { family: Family::Llama, sliding_window: Some(4), ..plain() };
    let folder = tempfile::tempdir().unwrap();
    let parameters = initial_parameters(&config, Seed::from_u64(3));
    let error = save_model(folder.path(), &config, &parameters, &tokenizer()).unwrap_err();
    assert!(matches!(error, CheckpointError::Unsupported { .. }), "{error}");
}

#[test]
fn what_a_config_leaves_out_is_what_transformers_takes() {
    let read = |file: Value| config_file::from_json(&file, Path::new("config.json"));
    let least = |architecture: &str| {
        json!({
            "architectures": [architecture], "vocab_size": 99, "hidden_size": 4096,
            "intermediate_size": 64, "num_hidden_layers": 30, "num_attention_heads": 64,
        })
    };
    // Keys heads, head width, context, window; from the classes of transformers 5.23.
    for (architecture, expected) in [
        ("LlamaForCausalLM", (64, 64, 2048, None)),
        ("MistralForCausalLM", (8, 64, 131_072, Some(4096))),
        ("Qwen2ForCausalLM", (32, 64, 32_768, None)),
        ("Qwen3ForCausalLM", (32, 128, 32_768, None)),
    ] {
        let config = read(least(architecture)).unwrap();
        let ModelConfig { num_key_value_heads, head_dim, max_position_embeddings, .. } = config;
        let found = (num_key_value_heads, head_dim, max_position_embeddings, config.sliding_window);
        assert_eq!(found, expected, "{architecture}");
        assert_eq!((config.rope_theta, config.rms_norm_eps), (10_000.0, 1e-6));
        assert!(!config.tie_word_embeddings && config.is_plain());
    }
    let with = |architecture: &str, fields: Value| {
        let mut file = least(architecture);
        for (name, value) in fields.as_object().unwrap() {
            file[name] = value.clone();
        }
        read(file)
    };
    // Null is not absent.
    let nulls = json!({ "num_key_value_heads": null, "sliding_window": null, "head_dim": null });
    let config = with("MistralForCausalLM", nulls).unwrap();
    assert_eq!((config.num_key_value_heads, config.sliding_window), (64, None));
    // The scaling of Llama 3.2 in the form of transformers 4, without and with its own length.
    let mut scaling = json!({
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "rope_type": "llama3",
        "original_max_position_embeddings": 8192,
    });
    let old = json!({ "rope_theta": 500_000.0, "rope_scaling": scaling });
    let config = with("LlamaForCausalLM", old).unwrap();
    assert_eq!(config.rope_theta, 500_000.0);
    let RopeScaling::Llama3 { original_max_position_embeddings: 8192, .. } = config.rope_scaling
    else {
        panic!("{:?}", config.rope_scaling)
    };
    scaling["rope_theta"] = json!(500_000.0);
    scaling["original_max_position_embeddings"] = Value::Null;
    let new = json!({ "rope_parameters": scaling, "max_position_embeddings": 1000 });
    let config = with("LlamaForCausalLM", new).unwrap();
    let RopeScaling::Llama3 { original_max_position_embeddings: 1000, .. } = config.rope_scaling
    else {
        panic!("{:?}", config.rope_scaling)
    };
    // Windows of Qwen2: in the layers from `max_window_layers` on, if they are used at all.
    let window =
        |fields: Value| with("Qwen2ForCausalLM", fields).map(|config| config.sliding_window);
    let off = json!({ "use_sliding_window": false, "sliding_window": 5, "max_window_layers": 0 });
    assert_eq!(window(off).unwrap(), None);
    let on = |from: u32| json!({ "use_sliding_window": true, "sliding_window": 5, "max_window_layers": from });
    assert_eq!(window(on(0)).unwrap(), Some(5));
    assert_eq!(window(on(30)).unwrap(), None);
    let error = window(on(28)).unwrap_err();
    assert!(error.to_string().contains("2 of 30 layers"), "{error}");
    let error = window(json!({ "use_sliding_window": true })).unwrap_err();
    assert!(error.to_string().contains("2 of 30 layers"), "{error}");
}

#[test]
fn large_models_are_written_in_several_files() {
    let config = plain();
    let (folder, parameters) = saved(&config);
    let files = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("model"))
            .collect();
        names.sort();
        names
    };
    let save = |max_shard_bytes: u64, number_type: NumberType| {
        let options = SaveOptions { number_type, max_shard_bytes };
        save_model_with(folder.path(), &config, &parameters, &tokenizer(), &options).unwrap();
        load_weights(folder.path()).unwrap()
    };
    assert_eq!(files(), ["model.safetensors"]);
    assert_eq!(save(100_000, NumberType::F32), (config.clone(), parameters.clone()));
    let several = files();
    assert!(several.len() > 3 && !several.contains(&"model.safetensors".to_owned()), "{several:?}");
    let index = read_json(&folder.path().join("model.safetensors.index.json")).unwrap();
    assert_eq!(index["metadata"]["total_size"], json!(4 * parameters.data.len()));
    for name in &several[..several.len() - 1] {
        let len = std::fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(len < 103_000 + 4096, "{name} has {len} bytes");
    }
    // Fewer files again, of rounded numbers.
    let (_, rounded) = save(200_000, NumberType::Bf16);
    assert!(files().len() < several.len(), "{:?}", files());
    let errors = rounded.data.iter().zip(&parameters.data).map(|(a, b)| ((a - b) / b).abs());
    assert!(errors.fold(0.0, f32::max) <= 1.0 / 256.0);
    let (_, rounded) = save(u64::MAX, NumberType::F16);
    assert_eq!(files(), ["model.safetensors"]);
    let errors = rounded.data.iter().zip(&parameters.data).map(|(a, b)| (a - b).abs());
    assert!(errors.fold(0.0, f32::max) <= 1.0 / 2048.0);
    // What half precision cannot hold is not written.
    let mut parameters = parameters.clone();
    parameters.data[3] = 1e5;
    let options = SaveOptions { number_type: NumberType::F16, ..SaveOptions::default() };
    let error = save_model_with(folder.path(), &config, &parameters, &tokenizer(), &options);
    let error = error.unwrap_err();
    assert!(matches!(error, CheckpointError::TooLarge { element: 3, .. }), "{error}");
}

#[test]
fn surplus_tensors_are_refused_but_those_that_follow_from_the_config() {
    use safetensors::tensor::{Dtype, SafeTensors, TensorView};
    let (folder, parameters) = saved(&plain());
    let path = folder.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    let zeros = [0; 16];
    let write_with = |name: &str, shape: &[usize]| {
        let file = SafeTensors::deserialize(&whole).unwrap();
        let mut tensors = file.tensors();
        tensors.push((name.to_owned(), TensorView::new(Dtype::F32, shape.into(), &zeros).unwrap()));
        std::fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        load_weights(folder.path())
    };
    let (_, loaded) = write_with("model.layers.0.self_attn.rotary_emb.inv_freq", &[4]).unwrap();
    assert_eq!(loaded, parameters);
    let error = write_with("model.layers.0.self_attn.q_proj.bias", &[4]).unwrap_err();
    assert!(matches!(error, CheckpointError::ExtraTensor { .. }), "{error}");
    let error = write_with("lm_head.weight", &[2, 2]).unwrap_err();
    assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
}

#[test]
fn an_output_matrix_may_be_stored_where_it_is_the_embedding() {
    let untied = ModelConfig { tie_word_embeddings: false, ..plain() };
    let (folder, mut parameters) = saved(&untied);
    let path = folder.path().join("config.json");
    let mut file = read_json(&path).unwrap();
    file["tie_word_embeddings"] = json!(true);
    write_json(&path, &file).unwrap();
    let error = load_weights(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::UntiedHead { .. }), "{error}");
    let spec = parameters.spec("model.embed_tokens.weight").unwrap().clone();
    let embedding = parameters.view(&spec).to_vec();
    let spec = parameters.spec("lm_head.weight").unwrap().clone();
    parameters.view_mut(&spec).copy_from_slice(&embedding);
    save_model(folder.path(), &untied, &parameters, &tokenizer()).unwrap();
    write_json(&path, &file).unwrap();
    let (config, loaded) = load_weights(folder.path()).unwrap();
    assert!(config.tie_word_embeddings && loaded.spec("lm_head.weight").is_none());
}

#[test]
fn generation_defaults_are_read() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(GenerationDefaults::load(folder.path()).unwrap(), GenerationDefaults::default());
    let file = json!({ "temperature": 0.6, "top_k": 20, "eos_token_id": [1, 2], "x": {} });
    write_json(&folder.path().join("generation_config.json"), &file).unwrap();
    let found = GenerationDefaults::load(folder.path()).unwrap();
    assert_eq!((found.temperature, found.top_k, found.top_p), (Some(0.6), Some(20), None));
    write_json(&folder.path().join("generation_config.json"), &json!({ "top_k": "x" })).unwrap();
    let error = GenerationDefaults::load(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::Json { .. }), "{error}");
}

#[test]
fn what_the_decoder_does_not_compute_is_refused() {
    for (field, value) in [
        ("architectures", json!(["LlamaForCausalLM"])),
        ("architectures", json!(["Qwen3MoeForCausalLM"])),
        ("architectures", json!(["Qwen3ForCausalLM", "LlamaForCausalLM"])),
        ("architectures", json!([])),
        ("model_type", json!("qwen2")),
        ("rope_scaling", json!({ "rope_type": "yarn", "factor": 4.0 })),
        ("rope_parameters", json!({ "rope_type": "linear", "rope_theta": 10_000.0 })),
        ("rope_parameters", json!({ "rope_type": "llama3", "factor": 8.0 })),
        ("rope_parameters", json!({ "full_attention": { "rope_theta": 10_000.0 } })),
        ("rope_parameters", json!({ "rope_type": "default", "attention_factor": 2.0 })),
        ("rope_scaling", json!({ "type": "linear", "factor": 2.0 })),
        ("rope_scaling", json!(3)),
        ("partial_rotary_factor", json!(0.5)),
        ("num_experts", json!(8)),
        ("rope_parameters", json!({ "rope_theta": 10_000.0, "partial_rotary_factor": 0.5 })),
        ("rope_parameters", json!({ "rope_theta": 500.0 })),
        ("rope_theta", json!("big")),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("is_causal", json!(false)),
        ("hidden_act", json!("gelu")),
        ("layer_types", json!(["sliding_attention", "full_attention"])),
        ("use_sliding_window", json!("yes")),
        ("layer_types", json!(["sliding_attention", "sliding_attention"])),
        ("layer_types", json!(["full_attention"])),
        ("quantization_config", json!({ "bits": 4 })),
        ("hidden_size", json!(-1)),
        ("hidden_size", json!(1_u64 << 60)),
        ("head_dim", json!("wide")),
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

    // A tensor that is in another file than the index says.
    map["model.norm.weight"] = match map["model.norm.weight"].as_str() {
        Some("part-0.safetensors") => json!("part-1.safetensors"),
        _ => json!("part-0.safetensors"),
    };
    write_json(&path("model.safetensors.index.json"), &json!({ "weight_map": map })).unwrap();
    let error = load_weights(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::Index { .. }), "{error}");
    for file in [json!("../x.safetensors"), json!("/etc/passwd"), json!(3), json!("")] {
        let index = json!({ "weight_map": { "a": file } });
        write_json(&path("model.safetensors.index.json"), &index).unwrap();
        let error = load_weights(folder.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Index { .. }), "{error}");
    }
}

#[test]
fn a_tokenizer_larger_than_its_model_is_refused() {
    let config = ModelConfig { vocab_size: 260, ..plain() };
    let (folder, _) = saved(&config);
    let error = load_model(folder.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::Vocabulary { tokenizer: 261, model: 260, .. }));
}

/// A folder with a model saved in a type of number, and what it was.
fn saved_as(number_type: NumberType, config: &ModelConfig) -> (tempfile::TempDir, Parameters) {
    let folder = tempfile::tempdir().unwrap();
    let parameters = initial_parameters(config, Seed::from_u64(3));
    let options = SaveOptions { number_type, ..SaveOptions::default() };
    save_model_with(folder.path(), config, &parameters, &tokenizer(), &options).unwrap();
    (folder, parameters)
}

#[test]
fn weights_are_kept_as_they_are_stored_or_asked_for() {
    let untied = ModelConfig { tie_word_embeddings: false, ..plain() };
    for config in [plain(), extended(), untied] {
        for stored in [NumberType::F32, NumberType::Bf16, NumberType::F16] {
            let (folder, original) = saved_as(stored, &config);
            let (_, loaded, _) = load_model(folder.path()).unwrap();
            for keep in KeepAs::ALL {
                let (weights, _) = open_model(folder.path(), keep).unwrap();
                let expected = match keep {
                    KeepAs::Stored => stored.half(),
                    KeepAs::F32 => None,
                    KeepAs::Bf16 => Some(HalfType::Bf16),
                    KeepAs::F16 => Some(HalfType::F16),
                };
                assert_eq!(weights.half_type(), expected, "{stored:?} {keep}");
                assert_eq!(weights.config(), &config);
                let is_lossless = expected.is_none() || expected == stored.half();
                let kept = weights.to_parameters();
                assert_eq!(kept == loaded, is_lossless, "{stored:?} {keep}");
                if stored == NumberType::F32 && keep == KeepAs::Bf16 {
                    let norm = |parameters: &Parameters| {
                        let spec = parameters.spec("model.norm.weight").unwrap();
                        parameters.view(spec).to_vec()
                    };
                    assert_eq!(norm(&kept), norm(&original), "vectors are not rounded");
                }
            }
        }
    }
    assert_eq!("bf16".parse(), Ok(KeepAs::Bf16));
    assert!("half".parse::<KeepAs>().unwrap_err().contains("stored, f32, bf16, f16"));
}

#[test]
fn matrices_of_several_types_are_kept_in_single_precision() {
    let matrix = ParameterKind::Matrix;
    let bf16 = [(NumberType::Bf16, matrix), (NumberType::F32, ParameterKind::Vector)];
    assert_eq!(KeepAs::Stored.half_of(bf16), Some(HalfType::Bf16));
    let mixed = [(NumberType::Bf16, matrix), (NumberType::F16, ParameterKind::Embedding)];
    assert_eq!(KeepAs::Stored.half_of(mixed), None);
}

#[test]
fn a_weight_that_is_too_large_for_what_it_is_kept_as_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = plain();
    let mut parameters = initial_parameters(&config, Seed::from_u64(3));
    let spec = parameters.spec("model.layers.1.mlp.up_proj.weight").unwrap().clone();
    parameters.view_mut(&spec)[7] = -1e6;
    save_model(folder.path(), &config, &parameters, &tokenizer()).unwrap();
    let error = open_weights(folder.path(), KeepAs::F16).unwrap_err();
    let CheckpointError::TooLarge { name, element, value, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((name, *element, *value), (&spec.name, 7, -1e6));
    open_weights(folder.path(), KeepAs::Bf16).unwrap();
}

#[test]
fn a_stored_output_matrix_has_to_be_the_embedding_in_halves_too() {
    let (folder, _) =
        saved_as(NumberType::Bf16, &ModelConfig { tie_word_embeddings: false, ..plain() });
    let path = folder.path().join("config.json");
    let mut file = read_json(&path).unwrap();
    file["tie_word_embeddings"] = json!(true);
    write_json(&path, &file).unwrap();
    let error = open_weights(folder.path(), KeepAs::Stored).unwrap_err();
    assert!(matches!(error, CheckpointError::UntiedHead { .. }), "{error}");
}
