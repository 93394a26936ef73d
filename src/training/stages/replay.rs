//! What a stage remembers of what it has played.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spar_agent::CutBatch;
use spar_core::{Credit, Group, PerTurnOrToken, Sample, Seed, Trajectory};
use spar_tasks::curricula::draw_without_replacement;

use crate::recipe::ReplayConfig;

/// The file in a checkpoint that it is kept in.
const FILE: &str = "replay.jsonl";

/// What a stage remembers.
pub(super) struct Replay {
    config: ReplayConfig,
    groups: VecDeque<Group>,
    trajectories: VecDeque<Remembered>,
}

/// A trajectory with what it was worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Remembered {
    trajectory: Trajectory,
    /// By sampled token.
    advantages: Vec<f64>,
    weights: Vec<f64>,
    /// The mean absolute advantage.
    magnitude: f64,
}

impl Replay {
    /// One that remembers nothing yet.
    pub(super) fn new(config: ReplayConfig) -> Self {
        Self { config, groups: VecDeque::new(), trajectories: VecDeque::new() }
    }

    /// How many of so many groups of an iteration are replayed.
    pub(super) fn num_replayed(&self, wanted: usize) -> usize {
        match self.config {
            ReplayConfig::Recent { share, .. } => {
                let count = (wanted as f64 * share).floor() as usize;
                count.min(self.groups.len()).min(wanted.saturating_sub(1))
            }
            ReplayConfig::Selective { .. } => 0,
        }
    }

    /// The groups that are replayed, drawn evenly and none twice; then it remembers the fresh ones.
    pub(super) fn groups(&mut self, count: usize, fresh: &[Group], seed: Seed) -> Vec<Group> {
        let ReplayConfig::Recent { keep, .. } = self.config else { return Vec::new() };
        let even = vec![0.0; self.groups.len()];
        let drawn = draw_without_replacement(&even, count, &mut seed.rng());
        let replayed = drawn.into_iter().map(|place| self.groups[place].clone()).collect();
        self.groups.extend(fresh.iter().filter(|group| !group.trajectories.is_empty()).cloned());
        let beyond = self.groups.len().saturating_sub(keep);
        self.groups.drain(..beyond);
        replayed
    }

    /// The samples of remembered trajectories, as many as stand in groups without a signal; then it remembers the others of the groups.
    pub(super) fn samples(
        &mut self,
        groups: &[Group],
        credit: &Credit,
        kept: &[bool],
        seed: Seed,
    ) -> anyhow::Result<Vec<Sample>> {
        let ReplayConfig::Selective { alpha, keep } = self.config else { return Ok(Vec::new()) };
        let num_tokens: Vec<Vec<usize>> = groups
            .iter()
            .flat_map(|group| &group.trajectories)
            .map(|it| it.turns.iter().map(|turn| turn.sampled.ids.len()).collect())
            .collect();
        let advantages = credit.advantages.clone().into_tokens(&num_tokens);
        let weights = credit.weights.clone().map(|weights| weights.into_tokens(&num_tokens));
        let (mut index, mut missing, mut fresh) = (0, 0, Vec::new());
        for group in groups {
            let places = index..index + group.trajectories.len();
            index = places.end;
            if places.clone().all(|place| advantages[place].iter().all(|it| *it == 0.0)) {
                missing += places.len();
                continue;
            }
            for (place, trajectory) in places.zip(&group.trajectories) {
                let own = &advantages[place];
                let sum: f64 = own.iter().map(|it| it.abs()).sum();
                if !kept[place] || trajectory.lineage.guided || trajectory.redacted || sum == 0.0 {
                    continue;
                }
                fresh.push(Remembered {
                    trajectory: trajectory.clone(),
                    advantages: own.clone(),
                    weights: weights
                        .as_ref()
                        .map_or_else(|| vec![1.0; own.len()], |it| it[place].clone()),
                    magnitude: sum / own.len() as f64,
                });
            }
        }
        let log_weights: Vec<f64> =
            self.trajectories.iter().map(|it| alpha * it.magnitude.ln()).collect();
        let drawn = draw_without_replacement(&log_weights, missing, &mut seed.rng());
        let mut samples = Vec::new();
        for place in drawn {
            samples.extend(self.trajectories[place].samples()?);
        }
        self.trajectories.extend(fresh);
        let beyond = self.trajectories.len().saturating_sub(keep);
        self.trajectories.drain(..beyond);
        Ok(samples)
    }

    /// Writes it into the folder of a checkpoint.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        let written = match self.config {
            ReplayConfig::Recent { .. } => write_lines(&path, &self.groups),
            ReplayConfig::Selective { .. } => write_lines(&path, &self.trajectories),
        };
        written.context("keep what is replayed")
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        match self.config {
            ReplayConfig::Recent { .. } => self.groups = read_lines(&path)?,
            ReplayConfig::Selective { .. } => self.trajectories = read_lines(&path)?,
        }
        Ok(())
    }
}

/// Writes a value a line.
pub(super) fn write_lines<'v, T: Serialize + 'v>(
    path: &Path,
    values: impl IntoIterator<Item = &'v T>,
) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("write `{}`", path.display()))?;
    let mut writer = BufWriter::new(file);
    for value in values {
        serde_json::to_writer(&mut writer, value)?;
        writer.write_all(b"\n")?;
    }
    writer.flush()?;
    Ok(writer.get_ref().sync_all()?)
}

/// Reads a value a line.
pub(super) fn read_lines<T: DeserializeOwned, C: FromIterator<T>>(
    path: &Path,
) -> anyhow::Result<C> {
    let file = File::open(path).with_context(|| format!("read `{}`", path.display()))?;
    let lines = BufReader::new(file).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

impl Remembered {
    fn samples(&self) -> anyhow::Result<Vec<Sample>> {
        let group = [Group {
            task: self.trajectory.task.clone(),
            trajectories: vec![self.trajectory.clone()],
        }];
        let credit = Credit {
            advantages: PerTurnOrToken::Tokens(vec![self.advantages.clone()]),
            weights: Some(PerTurnOrToken::Tokens(vec![self.weights.clone()])),
            returns: None,
        };
        Ok(CutBatch::new(&group)?.weigh(&credit, &[true])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(task: &str) -> Group {
        let record = serde_json::json!({
            "version": 3, "episode": 7, "task": task, "environment": "e", "seed": Seed::from_u64(5), "policy": "p",
            "first_observation": { "text": "", "state_key": "" }, "end": { "kind": "terminated" }, "success": false,
            "wall_time": { "secs": 0, "nanos": 0 },
            "turns": [{
                "prompt": { "kept": 0, "appended": [1] }, "author": "p", "text": "x", "state_key": "",
                "sampled": { "ids": [2, 3], "logprobs": [-0.5, -0.25], "versions": [0, 0] },
                "parsed": { "kind": "action", "text": "x" }, "policy_time": { "secs": 0, "nanos": 0 },
                "step": { "observation": { "text": "", "state_key": "" }, "rewards": [], "terminated": true,
                    "success": false, "valid": true, "wall_time": { "secs": 0, "nanos": 0 } }
            }]
        });
        let one = Trajectory::from_json(record.to_string().as_bytes()).unwrap();
        let other = Trajectory { episode: 8, ..one.clone() };
        Group { task: task.to_owned(), trajectories: vec![one, other] }
    }

    fn credit(values: &[f64]) -> Credit {
        Credit::of_turns(values.iter().map(|value| vec![*value]).collect())
    }

    #[test]
    fn samples_fill_up_groups_without_a_signal_by_the_size_of_their_advantage() {
        let mut replay = Replay::new(ReplayConfig::Selective { alpha: 1.0, keep: 8 });
        let learned = [group("a"), group("b")];
        let of_learned = credit(&[3.0, -1.0, 0.0, 0.0]);
        let none = replay.samples(&learned, &of_learned, &[true; 4], Seed::from_u64(1)).unwrap();
        assert!(none.is_empty(), "nothing was played before");
        let silent = [group("c")];
        let mut firsts = [0, 0];
        for seed in 0..400 {
            let seed = Seed::from_u64(seed);
            let found = replay.samples(&silent, &credit(&[0.0; 2]), &[true; 2], seed).unwrap();
            assert_eq!(found.len(), 2);
            let sample = &found[0];
            assert_eq!((sample.tokens.as_slice(), sample.policy_weights[1]), (&[1, 2, 3][..], 1.0));
            assert_eq!(sample.behavior_logprobs[1..], [-0.5, -0.25], "as it was sampled");
            firsts[usize::from(sample.advantages[1] < 0.0)] += 1;
        }
        // Three to one.
        assert!((260..340).contains(&firsts[0]), "{firsts:?}");
        let whole =
            replay.samples(&learned[..1], &credit(&[1.0, -1.0]), &[true; 2], Seed::from_u64(1));
        assert!(whole.unwrap().is_empty());
    }

    #[test]
    fn a_share_of_the_groups_is_of_the_newest_ones_and_comes_back_from_a_file() {
        let mut replay = Replay::new(ReplayConfig::Recent { share: 0.5, keep: 3 });
        assert_eq!(replay.num_replayed(4), 0);
        let names = |groups: &[Group]| groups.iter().map(|it| it.task.clone()).collect::<Vec<_>>();
        let fresh: Vec<Group> = ["a", "b", "c", "d"].map(group).into();
        assert!(replay.groups(0, &fresh, Seed::from_u64(1)).is_empty());
        assert_eq!((replay.num_replayed(4), replay.num_replayed(1)), (2, 0));
        let folder = tempfile::tempdir().unwrap();
        replay.save(folder.path()).unwrap();
        let mut again = Replay::new(replay.config.clone());
        again.load(folder.path()).unwrap();
        let drawn = replay.groups(2, &[], Seed::from_u64(2));
        assert_eq!(names(&drawn), names(&again.groups(2, &[], Seed::from_u64(2))));
        assert!(drawn.len() == 2 && !names(&drawn).contains(&"a".to_owned()), "{drawn:?}");
    }
}
