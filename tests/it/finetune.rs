//! Models from elsewhere: all their weights or an adapter are trained, saved and opened again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spar::core::Seed;
use spar::policy::checkpoint::{is_adapter, load_model, save_model};
use spar::policy::{Family, ModelConfig, Tokenizer, initial_parameters};

use crate::support::{kill_at, succeed, workplace};

/// A model as Hugging Face's tools leave it, with a tokenizer and chat template of its family.
pub(crate) fn write_model(folder: &Path, family: Family) {
    let name = match family {
        Family::Llama => "llama-3",
        Family::Mistral => "mistral",
        Family::Qwen2 | Family::Qwen3 => "qwen",
    };
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("text/tests/fixtures");
    let tokenizer = Tokenizer::load(&fixtures.join("tokenizers").join(name)).unwrap();
    let config = ModelConfig {
        family,
        vocab_size: tokenizer.vocab_size() + 3,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 16,
        max_position_embeddings: 4096,
        tie_word_embeddings: family == Family::Qwen3,
        partial_rotary_factor: 1.0,
        smear_tokens: 0,
        token_match_bias: false,
        ..ModelConfig::default()
    };
    let parameters = initial_parameters(&config, Seed::from_u64(4));
    save_model(folder, &config, &parameters, &tokenizer).unwrap();
}

/// A run of seconds on a model from elsewhere.
const TUNE: &str = r#"
name = "tune"

[data]
suite = "frozen-lake"
train = "train"
dev = "test"
test = ["slippery"]

# An answer is seldom an action, and what it costs is learnt from alone.
[episode]
constrain_to_admissible = false
invalid_penalty = 0.1
penalize_invalid = true
sampling = { max_tokens = 4 }

[episode.context]
list_admissible = true

[warm_start]
iterations = 1
tasks = 4
batch_tokens = 512
demonstrator = "oracle"

[reinforce]
iterations = 3
tasks = 4
group_size = 1
max_turns = 4

[reinforce.credit]
kind = "grpo"
singleton = "raw"

[reinforce.objective.options]
kl_weight = 0.05

[reinforce.trainer]
minibatches = 2
keep_prompts_together = true

[evaluation]
every = 2
dev_tasks = 2
test_tasks = 2
max_turns = 3

[keep]
checkpoint_every = 1
trajectories_every = 1
"#;

/// A folder with a model and the recipe in it.
fn tuning_place(family: Family) -> tempfile::TempDir {
    let folder = workplace();
    write_model(&folder.path().join("model"), family);
    fs::write(folder.path().join("tune.toml"), TUNE).unwrap();
    folder
}

fn records(folder: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("runs").join(name).join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// That what was drawn was recomputed to the bit, in every update that saw it.
fn assert_no_drift(folder: &Path, name: &str) {
    let records = records(folder, name);
    let drifts: Vec<&Value> = records
        .iter()
        .filter(|record| record["drift_current_tokens"].as_f64() > Some(0.0))
        .collect();
    assert!(!drifts.is_empty(), "{records:?}");
    assert!(drifts.iter().all(|record| record["drift_current_max"] == 0.0), "{drifts:?}");
    let with_reference = records.iter().filter(|record| !record["kl_reference"].is_null()).count();
    assert_eq!(with_reference, 3);
}

fn last_checkpoint(folder: &Path, name: &str) -> PathBuf {
    folder.join("runs").join(name).join("checkpoints/iteration-000004")
}

/// Kills a run once it has so many lines of metrics, and goes on.
fn kill_and_resume(folder: &Path, name: &str, arguments: &[&str], lines: usize) {
    kill_at(folder, name, arguments, lines);
    succeed(folder, &["resume", &format!("runs/{name}")]);
}

#[test]
fn a_model_from_elsewhere_is_trained_and_saved_as_it_came() {
    for family in [Family::Qwen3, Family::Llama, Family::Mistral] {
        let folder = tuning_place(family);
        let folder = folder.path();
        // What is improbable is left out.
        let sampling = ["episode.sampling.top_p=0.9", "episode.sampling.min_p=0.001"];
        let train = |name: &str| -> Vec<String> {
            let mut arguments: Vec<String> =
                ["train", "tune.toml", "--start-from", "model", "--name", name]
                    .map(str::to_owned)
                    .into();
            for setting in sampling {
                arguments.extend(["--set".to_owned(), setting.to_owned()]);
            }
            arguments
        };
        let whole = train("whole");
        let ran = succeed(folder, &whole.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!ran.err.contains("no place for instructions"), "{}", ran.err);
        assert!(ran.err.contains("weights trained (100.000 %)"), "{}", ran.err);
        assert_no_drift(folder, "whole");
        let saved = last_checkpoint(folder, "whole");
        let (config, parameters, tokenizer) = load_model(&saved).unwrap();
        let (before, start, _) = load_model(&folder.join("model")).unwrap();
        assert_eq!(config, before);
        assert!(config.is_plain() && parameters.data != start.data);
        assert!(tokenizer.chat_template().is_some());
        for name in ["config.json", "tokenizer_config.json", "generation_config.json"] {
            let read = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
            assert_eq!(read(&saved), read(&folder.join("model")), "{name}");
        }
        // The reference is the policy behind the warm start.
        let mark =
            fs::read_to_string(folder.join("runs/whole/checkpoints/reference.json")).unwrap();
        assert!(mark.contains("\"iteration\":1"), "{mark}");

        let killed = train("killed");
        let killed: Vec<&str> = killed.iter().map(String::as_str).collect();
        kill_and_resume(folder, "killed", &killed, 5);
        assert_eq!(records(folder, "killed"), records(folder, "whole"));
        let weights =
            |name: &str| fs::read(last_checkpoint(folder, name).join("model.safetensors"));
        assert!(weights("killed").unwrap() == weights("whole").unwrap());
        succeed(folder, &["replay", "runs/killed"]);
        let ran =
            succeed(folder, &["eval", "--checkpoint", "runs/whole", "--limit", "2", "--json"]);
        assert!(ran.out.contains("success_rate"), "{}", ran.out);
    }
}

#[test]
fn an_adapter_is_trained_saved_merged_and_taken_up_again() {
    let folder = tuning_place(Family::Qwen3);
    let folder = folder.path();
    let settings = [
        "lora.rank=4",
        "lora.targets=['q_proj','v_proj','down_proj']",
        "episode.constrain_to_admissible=true",
        "reinforce.group_size=2",
        "reinforce.tasks=2",
    ];
    let mut train: Vec<&str> = vec!["train", "tune.toml", "--start-from", "model"];
    for setting in settings {
        train.extend(["--set", setting]);
    }
    let named = |name: &'static str| [&train[..], &["--name", name]].concat();
    // Two layers of three matrices, by rank: outputs and inputs.
    let trained = 2 * 4 * ((32 + 32) + (32 + 16) + (48 + 32));
    let ran = succeed(folder, &[&named("dry")[..], &["--dry-run"]].concat());
    assert!(ran.out.contains(&format!("# {trained} of ")), "{}", ran.out);
    assert!(ran.out.contains("without [lora]"), "{}", ran.out);

    succeed(folder, &named("whole"));
    assert_no_drift(folder, "whole");
    let saved = last_checkpoint(folder, "whole");
    assert!(is_adapter(&saved));
    kill_and_resume(folder, "killed", &named("killed"), 5);
    assert_eq!(records(folder, "killed"), records(folder, "whole"));
    let adapter =
        |name: &str| fs::read(last_checkpoint(folder, name).join("adapter_model.safetensors"));
    assert!(adapter("killed").unwrap() == adapter("whole").unwrap());

    // What the adapter's folder opens as is what is merged.
    succeed(folder, &["merge", "runs/whole", "--out", "merged"]);
    let best: Value =
        serde_json::from_slice(&fs::read(folder.join("runs/whole/checkpoints/best.json")).unwrap())
            .unwrap();
    let best =
        format!("runs/whole/checkpoints/iteration-{:06}", best["iteration"].as_u64().unwrap());
    let (_, opened, _) = load_model(&folder.join(&best)).unwrap();
    let (_, merged, _) = load_model(&folder.join("merged")).unwrap();
    assert_eq!(opened, merged);
    assert!(!is_adapter(&folder.join("merged")));
    let (_, base, _) = load_model(&folder.join("model")).unwrap();
    let (_, last, _) = load_model(&saved).unwrap();
    for spec in base.specs.iter() {
        let is_target =
            ["q_proj", "v_proj", "down_proj"].iter().any(|name| spec.name.contains(name));
        assert_eq!(base.view(spec) != last.view(spec), is_target, "{}", spec.name);
    }
    let ran =
        succeed(folder, &["audit", &best, "--tokens", "300", "--top-p", "0.9", "--min-p", "0.01"]);
    assert!(ran.out.contains("tokens that differ    0"), "{}", ran.out);
    succeed(folder, &["eval", "--checkpoint", "runs/whole", "--limit", "2"]);

    // Other weights under the adapter are noticed.
    fs::remove_dir_all(folder.join("model")).unwrap();
    write_model(&folder.join("model"), Family::Llama);
    let ran = crate::support::run(folder, &["resume", "runs/killed"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
}

#[test]
fn references_held_in_memory_and_on_disk_give_equal_runs() {
    let folder = tuning_place(Family::Qwen3);
    let folder = folder.path();
    let train = |name: &str, settings: &[&str]| {
        let mut arguments = vec!["train", "tune.toml", "--start-from", "model", "--name", name];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        succeed(folder, &arguments);
        records(folder, name)
    };
    let memory = train("memory", &["reinforce.reference=memory"]);
    assert_eq!(train("disk", &["reinforce.reference=disk"]), memory);
    // Without a warm start, the adapter that is off and the weights at the start are the same.
    let adapter = ["lora.rank=2", "warm_start.iterations=0"];
    let off = train("off", &adapter);
    let held = train("held", &[&adapter[..], &["reinforce.reference=memory"]].concat());
    assert_eq!(off, held);
    assert!(off.iter().any(|record| record["kl_reference"].as_f64() > Some(0.0)), "{off:?}");
}

/// Two adapters on one base, which train in turn, the first one with a value head.
fn turns() -> String {
    let (head, rest) = TUNE.split_once("[warm_start]").unwrap();
    let (_, tail) = rest.split_once("[evaluation]").unwrap();
    let reinforce = |name: &str, learner: &str, more: &str| {
        let (credit, value_loss) = match learner {
            "left" => {
                ("{ kind = 'gae', level = 'turn', lambda = 0.9 }", "value_loss = { clip = 0.5 }, ")
            }
            _ => ("{ kind = 'grpo', singleton = 'raw' }", ""),
        };
        format!(
            "[[stages]]\nkind = 'reinforce'\nname = '{name}'\nlearner = '{learner}'\niterations = 2\ntasks = 4\n\
             group_size = 1\nmax_turns = 4\ncredit = {credit}\n\
             objective = {{ {value_loss}options = {{ kl_weight = 0.05 }} }}\n{more}\n"
        )
    };
    let average =
        "trainer = { average = { exponential = { decay = 0.5 } } }\nre_evaluate = ['first']";
    format!(
        "{head}[learners.left]\nlora = {{ rank = 2 }}\n\
         value_head = {{ kind = 'hidden_layer', width = 6 }}\n[learners.right]\nlora = {{ rank = 4, targets = ['q_proj'] }}\n{}\
         {}{}\
         [[stages]]\nkind = 'evaluate'\nlearner = 'left'\ntasks = 2\ncheckpoint = 'best'\n\
         [[stages]]\nkind = 'evaluate'\nname = 'rest'\nlearner = 'right'\ntasks = 2\n[evaluation]{tail}",
        reinforce("first", "left", ""),
        reinforce("second", "right", average),
        reinforce("third", "left", ""),
    )
}

/// Two adapters on one base, each of which plays an environment of its own, in one stage; then one of them alone.
fn side_by_side() -> String {
    let (head, rest) = TUNE.split_once("[warm_start]").unwrap();
    let (_, tail) = rest.split_once("[evaluation]").unwrap();
    let head = head.replace(
        "[data]\nsuite = \"frozen-lake\"\n",
        "[data]\nsuites = [{ suite = 'frozen-lake' }, { suite = 'household', splits = { test = 'dev' } }]\n",
    );
    let head = head.replace("test = [\"slippery\"]", "test = []");
    format!(
        "{head}[learners.walker]\nlora = {{ rank = 2 }}\n\
         [learners.cook]\nlora = {{ rank = 4, targets = ['q_proj', 'down_proj'] }}\n\
         [[stages]]\nkind = 'reinforce'\nname = 'both'\niterations = 4\ntasks = 6\ngroup_size = 1\nmax_turns = 3\n\
         learners = {{ frozen-lake = 'walker', household = 'cook' }}\n\
         credit = {{ kind = 'grpo', singleton = 'raw' }}\nreference = 'adapter_off'\n\
         objective = {{ options = {{ kl_weight = 0.05 }} }}\ntrainer = {{ minibatches = 2 }}\n\
         [[stages]]\nkind = 'reinforce'\nname = 'alone'\nlearner = 'walker'\niterations = 1\ntasks = 2\n\
         group_size = 1\nmax_turns = 3\ncredit = {{ kind = 'grpo', singleton = 'raw' }}\n\
         data = {{ suite = 'frozen-lake', dev = 'test', test = [] }}\n[evaluation]{tail}"
    )
}

#[test]
fn two_adapters_train_side_by_side_each_on_its_environment_and_go_on_to_the_bit() {
    let folder = tuning_place(Family::Qwen3);
    let folder = folder.path();
    fs::write(folder.join("both.toml"), side_by_side()).unwrap();
    let arguments = ["train", "both.toml", "--start-from", "model", "--name"];
    let planned = succeed(folder, &[&arguments[..4], &["--dry-run"]].concat()).out;
    assert!(planned.contains("; learner walker in frozen-lake, cook in household"), "{planned}");
    succeed(folder, &[&arguments[..], &["whole"]].concat());
    let whole = records(folder, "whole");
    let both: Vec<&Value> = whole.iter().filter(|record| record["stage"] == "both").collect();
    assert_eq!(both.len(), 4);
    for record in &both {
        let number = |name: &str| record[name].as_f64().unwrap();
        // Of each suite three tasks.
        assert_eq!((number("episodes/frozen-lake"), number("episodes/household")), (3.0, 3.0));
        let samples = [number("samples/walker"), number("samples/cook")];
        assert!(samples.iter().all(|samples| *samples >= 3.0), "{record}");
        assert_eq!(samples[0] + samples[1], number("samples"));
    }
    for learner in ["walker", "cook"] {
        let updates = |record: &&Value| record[format!("updates/{learner}")].as_f64().unwrap();
        assert!(both.iter().map(updates).sum::<f64>() > 0.0, "{both:?}");
    }
    // What was drawn beside the other learner is what each is trained on, to the bit.
    let drifts: Vec<&Value> = both
        .iter()
        .map(|record| &record["drift_current_max"])
        .filter(|drift| !drift.is_null())
        .collect();
    assert!(!drifts.is_empty() && drifts.iter().all(|drift| **drift == 0.0), "{drifts:?}");

    let adapter = |name: &str, iteration: u64, learner: &str| {
        let checkpoints = folder.join("runs").join(name).join("checkpoints");
        let checkpoint = checkpoints.join(format!("iteration-{iteration:06}"));
        fs::read(checkpoint.join(learner).join("adapter_model.safetensors")).unwrap()
    };
    // Behind the first stage the walker is the one that trains, and the cook waits.
    assert!(adapter("whole", 4, "") != adapter("whole", 5, ""));
    assert!(adapter("whole", 4, "learners/cook") == adapter("whole", 5, "learners/cook"));
    assert!(adapter("whole", 3, "learners/walker") != adapter("whole", 4, ""));
    assert!(adapter("whole", 3, "") != adapter("whole", 4, "learners/cook"));

    for lines in [&[2][..], &[1, 3, 5]] {
        let name = format!("killed-{}", lines.len());
        let path = format!("runs/{name}");
        for (time, lines) in lines.iter().enumerate() {
            let begin = [&arguments[..], &[&name]].concat();
            let go_on = ["resume", &path];
            kill_at(folder, &name, if time == 0 { &begin } else { &go_on }, *lines);
        }
        succeed(folder, &["resume", &path]);
        assert_eq!(records(folder, &name), whole);
        for (iteration, learner) in [(4, ""), (4, "learners/cook"), (5, "")] {
            let same = adapter(&name, iteration, learner) == adapter("whole", iteration, learner);
            assert!(same, "{iteration} {learner}");
        }
    }
}

#[test]
fn what_is_wrong_with_learners_of_one_stage_is_told_at_once() {
    let folder = tuning_place(Family::Qwen3);
    let folder = folder.path();
    fs::write(folder.join("both.toml"), side_by_side()).unwrap();
    let told = |settings: &[&str]| {
        let mut arguments = vec!["train", "both.toml", "--start-from", "model", "--dry-run"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let ran = crate::support::run(folder, &arguments);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        ran.err
    };
    let err = told(&[
        "stages.both.learners={frozen='walker',question='adder',household='cook'}",
        "stages.both.learner=walker",
        "stages.both.trainer.average={last={count=2}}",
        "stages.both.reference=memory",
        "device=cuda",
    ]);
    for part in [
        "environment `frozen`: known are",
        "learner is `adder`: known are `cook`, `walker`",
        "learner has no effect beside learners",
        "keep no average",
        "set reference = \"adapter_off\"",
        "the recipe's device is a GPU",
    ] {
        assert!(err.contains(part), "{part} is not in\n{err}");
    }
    let err = told(&["stages.both.learners={frozen-lake='walker',question='cook'}"]);
    assert!(err.contains("`learners` names none for environment `household`"), "{err}");
    let err = told(&["stages.both.learners={frozen-lake='walker',household='walker'}"]);
    assert!(err.contains("learners names one for all environments"), "{err}");
}

#[test]
fn several_adapters_on_one_base_train_in_turn_and_go_on_to_the_bit_after_being_killed() {
    let folder = tuning_place(Family::Qwen3);
    let folder = folder.path();
    fs::write(folder.join("turns.toml"), turns()).unwrap();
    let planned =
        succeed(folder, &["train", "turns.toml", "--start-from", "model", "--dry-run"]).out;
    assert!(
        planned.contains("# learner left: ") && planned.contains("; learner right"),
        "{planned}"
    );
    let arguments = ["train", "turns.toml", "--start-from", "model", "--name"];
    let train = |name: &str| succeed(folder, &[&arguments[..], &[name]].concat());
    train("whole");
    let whole = records(folder, "whole");
    let of = |kind: &str, learner: &str| {
        whole.iter().filter(|it| it["kind"] == kind && it["learner"] == learner).count()
    };
    assert_eq!((of("evaluate", "left"), of("rest", "right")), (1, 1));
    assert_eq!((of("re_evaluation", "right"), of("re_evaluation", "left")), (1, 0));
    let checkpoints = |name: &str| folder.join("runs").join(name).join("checkpoints");
    let adapter = |name: &str, iteration: u64, learner: &str| {
        let checkpoint = checkpoints(name).join(format!("iteration-{iteration:06}"));
        fs::read(checkpoint.join(learner).join("adapter_model.safetensors")).unwrap()
    };
    let head = |name: &str, iteration: u64| {
        let checkpoint = checkpoints(name).join(format!("iteration-{iteration:06}"));
        fs::read(checkpoint.join("value_head.safetensors")).unwrap()
    };
    assert!(head("whole", 4) != head("whole", 6));
    // Who does not train stays as it was, to the bit; who trains does not.
    assert!(adapter("whole", 4, "") != adapter("whole", 6, ""));
    assert!(adapter("whole", 4, "learners/right") == adapter("whole", 6, "learners/right"));
    for mark in ["best", "best-left", "best-right"] {
        assert!(checkpoints("whole").join(format!("{mark}.json")).exists(), "{mark}");
    }
    let apart = checkpoints("whole").join("iteration-000006/learners/right");
    let apart = apart.to_str().unwrap();
    succeed(
        folder,
        &[
            "eval",
            "--checkpoint",
            apart,
            "--suite",
            "frozen-lake",
            "--split",
            "test",
            "--limit",
            "1",
        ],
    );

    // A merged model has no head, and its policy is the same.
    let own = checkpoints("whole").join("iteration-000006");
    succeed(folder, &["merge", own.to_str().unwrap(), "--out", "with-head"]);
    assert!(own.join("value_head.safetensors").exists());
    assert!(!folder.join("with-head/value_head.safetensors").exists());

    for lines in [&[2][..], &[4, 6], &[5, 7, 9]] {
        let name = format!("killed-{}", lines.len());
        let mut is_started = false;
        for lines in lines {
            let path = format!("runs/{name}");
            let begin = [&arguments[..], &[&name]].concat();
            let go_on = ["resume", &path];
            let arguments = if is_started { &go_on[..] } else { &begin };
            kill_at(folder, &name, arguments, *lines);
            is_started = true;
        }
        succeed(folder, &["resume", &format!("runs/{name}")]);
        assert_eq!(records(folder, &name), whole);
        for learner in ["", "learners/right"] {
            assert!(adapter(&name, 6, learner) == adapter("whole", 6, learner), "{learner}");
        }
        assert!(head(&name, 6) == head("whole", 6));
    }
}
