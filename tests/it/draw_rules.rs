//! Draw rules from the command line: what was drawn by several models is what is trained.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spar::core::Seed;
use spar::policy::checkpoint::save_model;
use spar::policy::{ModelConfig, Tokenizer, TokenizerConfig, initial_parameters};

use crate::support::{kill_at, run, succeed, workplace};

/// A random model of the words of frozen lakes.
fn write_model(folder: &Path, words: &str, hidden_size: usize, seed: u64) {
    let games = [[words, "go left"], ["You are on ice.", "go up"]];
    let tokenizer = Tokenizer::train(games, &TokenizerConfig::default()).unwrap();
    let config = ModelConfig {
        vocab_size: tokenizer.vocab_size(),
        hidden_size,
        intermediate_size: 32,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        max_position_embeddings: 4096,
        ..ModelConfig::default()
    };
    let mut parameters = initial_parameters(&config, Seed::from_u64(seed));
    // Larger than usual, so that the models differ in what they find probable.
    parameters.data.iter_mut().for_each(|value| *value *= 2.0);
    save_model(folder, &config, &parameters, &tokenizer).unwrap();
}

const RECIPE: &str = r#"
name = "ruled"
start_from = "large"
device = "cpu"

[data]
suite = "frozen-lake"
train = "train"
dev = "test"
test = []

[episode]
sampling = { max_tokens = 4, min_p = 0.001 }

[episode.context]
list_admissible = true
instruction = false

[warm_start]
iterations = 0

[reinforce]
iterations = 3
tasks = 4
group_size = 2
max_turns = 4

[reinforce.credit]
kind = "grpo"
singleton = "raw"

[reinforce.objective.options]
kl_weight = 0.05
entropy_weight = 0.01

[reinforce.trainer]
minibatches = 1

[reinforce.trainer.optimizer]
options = { learning_rate = 1e-2 }

[evaluation]
every = 3
dev_tasks = 2
max_turns = 3
"#;

/// A folder with models and a recipe.
fn place() -> tempfile::TempDir {
    let folder = workplace();
    write_model(&folder.path().join("large"), "You see a hole.", 32, 1);
    write_model(&folder.path().join("small"), "You see a hole.", 16, 2);
    write_model(&folder.path().join("tuned"), "You see a hole.", 16, 3);
    write_model(&folder.path().join("strange"), "Elk graze by the old mill.", 16, 4);
    fs::write(folder.path().join("ruled.toml"), RECIPE).unwrap();
    folder
}

fn train<'a>(name: &'a str, settings: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train", "ruled.toml", "--name", name, "--threads", "2"];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    arguments
}

fn metrics(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl")).unwrap()
}

/// That what was drawn was recomputed to the bit.
fn assert_no_drift(metrics: &str) {
    let records = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let drifts: Vec<f64> = records
        .filter(|record| record["drift_current_tokens"].as_f64() > Some(0.0))
        .map(|record| record["drift_current_max"].as_f64().unwrap())
        .collect();
    assert_eq!(drifts, [0.0; 3], "{metrics}");
}

#[test]
fn what_several_models_drew_is_what_is_trained_also_by_a_resumed_run() {
    let folder = place();
    let folder = folder.path();
    let rule = "draw_rule={kind='tuned_difference',tuned='tuned',untuned='small',weight=0.7}";
    succeed(folder, &train("whole", &[rule]));
    let whole = metrics(folder, "whole");
    assert_no_drift(&whole);
    kill_at(folder, "killed", &train("killed", &[rule]), 2);
    succeed(folder, &["resume", "runs/killed"]);
    assert_eq!(metrics(folder, "killed"), whole);
    // Without the rule it is another run.
    succeed(folder, &train("plain", &[]));
    assert_ne!(metrics(folder, "plain"), whole);

    // An adapter against the model below it, whose checkpoint is evaluated and audited so.
    let rule = "draw_rule={kind='contrastive',amateur='base',beta=0.5,alpha=0.01}";
    succeed(folder, &train("adapter", &[rule, "lora.rank=2"]));
    assert_no_drift(&metrics(folder, "adapter"));
    let audit = ["audit", "runs/adapter", "--tokens", "100", "--json", "--device", "cpu"];
    for drawing in [&[][..], &["--draw-rule", "plain"]] {
        let report: Value =
            serde_json::from_str(&succeed(folder, &[&audit, drawing].concat()).out).unwrap();
        assert_eq!((report["tokens"].as_u64(), report["different"].as_u64()), (Some(100), Some(0)));
    }
    let eval = ["eval", "--checkpoint", "runs/adapter", "--suite", "frozen-lake", "--limit", "2"];
    succeed(folder, &[&eval[..], &["--device", "cpu"]].concat());
}

#[test]
fn rules_that_cannot_be_followed_are_refused_before_anything_starts() {
    let folder = place();
    let folder = folder.path();
    let told = |arguments: &[&str]| {
        let ran = run(folder, arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {}", ran.out);
        ran.err
    };
    let contrastive =
        |amateur: &str| format!("draw_rule={{kind='contrastive',amateur='{amateur}'}}");
    let strange = told(&train("never", &[&contrastive("strange")]));
    assert!(strange.contains("does not share the policy's vocabulary"), "{strange}");
    let base = told(&train("never", &[&contrastive("base")]));
    assert!(base.contains("draw_rule: `base` is the model below an adapter"), "{base}");
    let unknown = told(&train("never", &["draw_rule={kind='contrast'}"]));
    assert!(unknown.contains("known are `contrastive`"), "{unknown}");
    let on_device = told(&train("never", &[&contrastive("small"), "device=cuda"]));
    assert!(on_device.contains("trained on the CPU"), "{on_device}");
    assert!(!folder.join("runs/never").exists());

    let rule = ["--draw-rule", "contrastive", "--draw-option", "amateur=small"];
    let endpoint = ["eval", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"];
    let endpoint = told(&[&endpoint[..], &["--suite", "frozen-lake"], &rule].concat());
    assert!(endpoint.contains("--draw-rule by an endpoint"), "{endpoint}");
    let twice = [&["audit", "large"][..], &rule, &["--draw-option", "amateur=small"]].concat();
    assert!(told(&twice).contains("twice"));
    let strange = ["--draw-rule", "contrastive", "--draw-option", "amateur=strange"];
    let served = told(&[&["serve", "policy", "large", "--port", "0"][..], &strange].concat());
    assert!(served.contains("does not share the policy's vocabulary"), "{served}");
}
