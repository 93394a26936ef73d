//! Running the real binary.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A run of a second: three iterations of imitation, some of reinforcement learning.
pub(crate) const TINY: &str = r#"
name = "tiny"

[data]
suite = "frozen-lake"
train = "train"
dev = "test"
test = ["slippery"]

[model]
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 2
num_key_value_heads = 1
head_dim = 16

[episode.context]
instruction = false

[warm_start]
iterations = 3
tasks = 16
batch_tokens = 512
demonstrator = "oracle"
roll_in = { share = 0.5, after = 0.5, max_turns = 3 }

[warm_start.trainer.optimizer]
name = "muon"
options = { learning_rate = 0.02, adamw = { learning_rate = 1e-2 } }

[reinforce]
iterations = 9
tasks = 4
group_size = 4
max_turns = 10

[reinforce.trainer]
minibatches = 2
average = { exponential = { decay = 0.9 } }

[reinforce.trainer.optimizer]
name = "adamw"
options = { learning_rate = 1e-3 }

[evaluation]
every = 3
dev_tasks = 8
dev_attempts = 2
test_tasks = 8
max_turns = 10

[keep]
checkpoint_every = 2
trajectories_every = 2
"#;

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Exit code; absent when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// The binary, told to work in `folder`, with nothing of this machine's surroundings.
pub(crate) fn spar(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spar"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    for name in ["ALFWORLD_DATA", "SPAR_THREADS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    // Where help texts are broken into lines.
    command.env("COLUMNS", "100");
    command
}

/// Runs the binary to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ran {
    finish(&mut spar(folder, arguments))
}

/// Runs a prepared command to its end.
pub(crate) fn finish(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ran =
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

/// Runs the binary, which must succeed.
pub(crate) fn succeed(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = run(folder, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.out, ran.err);
    ran
}

/// Kills a run once it has so many lines of metrics.
pub(crate) fn kill_at(folder: &Path, name: &str, arguments: &[&str], lines: usize) {
    let mut child =
        spar(folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let path = folder.join("runs").join(name).join("metrics.jsonl");
    let started = Instant::now();
    let count = || std::fs::read_to_string(&path).unwrap_or_default().lines().count();
    while child.try_wait().unwrap().is_none() && count() < lines {
        assert!(started.elapsed() < Duration::from_secs(240), "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A folder with the tiny recipe in it.
pub(crate) fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    folder
}

/// What it takes to write a household game as it is laid out on disk.
pub(crate) fn generate_games(folder: &Path, split: &str, count: u32) {
    let count = count.to_string();
    let arguments =
        ["generate", "household", "--out", "games", "--split", split, "--size", "small"];
    succeed(folder, &[&arguments[..], &["--count", &count]].concat());
}
