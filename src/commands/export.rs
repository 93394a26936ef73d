//! Conversations for trainers elsewhere, written as episodes end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;
use spar::agent::EpisodeConfig;
use spar::core::{EndReason, PolicyVersion, ToolSpec, Trajectory, redaction};
use spar::tasks::Task;

use crate::cli::ExportWhat;

/// A conversation with what it was worth: a line of the file.
#[derive(Serialize)]
struct Line<'a> {
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    task: &'a str,
    environment: &'a str,
    split: &'a str,
    /// The number of the task in its split's sample: equal ones are tries at one task.
    group: usize,
    episode: u64,
    policy: &'a str,
    reward: f64,
    /// Sums over the episode by the names of parts.
    rewards: BTreeMap<&'a str, f64>,
    success: bool,
    /// Whether the machinery kept it from being judged, so that nothing is to be learned from it.
    masked: bool,
    end: &'a EndReason,
    /// How many tests did as they should, where tests judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<&'a Value>,
    /// Tokens turn by turn, where the policy tells them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    turns: Vec<Tokens<'a>>,
}

/// A turn as it was sampled.
#[derive(Serialize)]
struct Tokens<'a> {
    prompt_ids: Vec<u32>,
    completion_ids: &'a [u32],
    logprobs: &'a [f32],
    versions: &'a [PolicyVersion],
    reward: f64,
}

/// Writes conversations into a file, which takes its name when it is whole.
pub(super) struct Exporter {
    path: PathBuf,
    what: ExportWhat,
    /// Where it is written until then, and what went wrong first.
    state: Mutex<State>,
}

struct State {
    partial: PathBuf,
    file: BufWriter<File>,
    lines: usize,
    failure: Option<std::io::Error>,
}

impl Exporter {
    /// Opens one; what lies at the path already is an error.
    pub(super) fn new(path: &Path, what: ExportWhat) -> anyhow::Result<Self> {
        ensure!(!path.exists(), "write conversations to `{}`: it is there already", path.display());
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial)
            .with_context(|| format!("write conversations to `{}`", partial.display()))?;
        let file = BufWriter::new(file);
        let state = State { partial, file, lines: 0, failure: None };
        Ok(Self { path: path.to_owned(), what, state: Mutex::new(state) })
    }

    /// Writes the conversation of an episode that has ended, if it is wanted. What goes wrong is told when it is finished.
    pub(super) fn add(
        &self,
        (config, split, group): (&EpisodeConfig, &str, usize),
        task: &Task,
        trajectory: &Trajectory,
    ) {
        let is_wanted = match self.what {
            ExportWhat::All => !trajectory.is_failed(),
            ExportWhat::Solved => trajectory.success,
        };
        // Of one with a secret in it no token is what was sampled.
        if !is_wanted || trajectory.redacted {
            return;
        }
        let written = redaction::to_json(&line(config, split, group, task, trajectory));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failure.is_some() {
            return;
        }
        let written = written.map_err(std::io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            state.file.write_all(&bytes)
        });
        match written {
            Ok(()) => state.lines += 1,
            Err(error) => state.failure = Some(error),
        }
    }

    /// Makes the file what it is called: how many conversations are in it.
    pub(super) fn finish(self) -> anyhow::Result<usize> {
        let State { partial, mut file, lines, failure } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let written = failure.map_or(Ok(()), Err).and_then(|()| file.flush());
        written
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&partial, &self.path))
            .with_context(|| format!("write conversations to `{}`", self.path.display()))?;
        Ok(lines)
    }
}

fn line<'a>(
    config: &EpisodeConfig,
    split: &'a str,
    group: usize,
    task: &'a Task,
    trajectory: &'a Trajectory,
) -> Line<'a> {
    let mut rewards = BTreeMap::new();
    for part in trajectory.turns.iter().flat_map(|turn| &turn.step.rewards) {
        *rewards.entry(part.name.as_str()).or_default() += part.value;
    }
    let last = trajectory.turns.len().saturating_sub(1);
    let verdict = trajectory.verdict.as_ref();
    Line {
        messages: config
            .conversation(task, trajectory)
            .iter()
            .map(|message| message.to_openai())
            .collect(),
        tools: trajectory.tools_at(last).iter().map(ToolSpec::to_function).collect(),
        task: &trajectory.task,
        environment: &trajectory.environment,
        split,
        group,
        episode: trajectory.episode,
        policy: &trajectory.policy,
        reward: trajectory.total_reward(),
        rewards,
        success: trajectory.success,
        masked: verdict.is_some_and(|verdict| verdict.masked),
        end: &trajectory.end,
        tests: verdict.and_then(|verdict| verdict.artifacts.get("tests")),
        turns: tokens(trajectory),
    }
}

/// The tokens of all turns; none where one of them has none.
fn tokens(trajectory: &Trajectory) -> Vec<Tokens<'_>> {
    let mut before: Vec<u32> = Vec::new();
    let mut turns = Vec::with_capacity(trajectory.turns.len());
    for turn in &trajectory.turns {
        if turn.sampled.ids.is_empty() {
            return Vec::new();
        }
        before.truncate(turn.prompt.kept);
        before.extend_from_slice(&turn.prompt.appended);
        turns.push(Tokens {
            prompt_ids: before.clone(),
            completion_ids: &turn.sampled.ids,
            logprobs: &turn.sampled.logprobs,
            versions: &turn.sampled.versions,
            reward: turn.step.reward(),
        });
        before.extend_from_slice(&turn.sampled.ids);
    }
    turns
}
