//! What a policy could do when its stage began.

use std::path::Path;

use anyhow::Context;
use spar_agent::CutBatch;
use spar_core::{Credit, Group, Sample, SampleOrigin, Seed, Trajectory};
use spar_tasks::curricula::draw_without_replacement;

use super::replay::{read_lines, write_lines};
use crate::recipe::RehearseConfig;

/// The file in a checkpoint that has the episodes.
const FILE: &str = "rehearsed.jsonl";

/// Episodes of the policy before it was trained, some of which are rehearsed in every iteration.
pub(super) struct Rehearsal {
    config: RehearseConfig,
    kept: Vec<Trajectory>,
}

impl Rehearsal {
    /// Nothing is kept yet.
    pub(super) fn new(config: RehearseConfig) -> Self {
        Self { config, kept: Vec::new() }
    }

    /// Whether episodes are still kept behind so many iterations of the stage, in place of training.
    pub(super) fn is_keeping(&self, done: u64) -> bool {
        done < self.config.iterations
    }

    /// Keeps the episodes that the policy has played by itself.
    pub(super) fn keep(&mut self, groups: &[Group]) {
        let played = groups.iter().flat_map(|group| &group.trajectories);
        let is_kept = |it: &&Trajectory| {
            (it.success || !self.config.only_solved)
                && !it.lineage.guided
                && !it.lineage.greedy
                && it.lineage.parent.is_none()
                && !it.redacted
        };
        self.kept.extend(played.filter(is_kept).cloned());
    }

    /// The samples that are rehearsed, drawn evenly; their sampled tokens weigh in the cross-entropy term alone.
    ///
    /// # Errors
    ///
    /// Where nothing was kept: the policy would be held to nothing, and nobody would know.
    pub(super) fn samples(&self, seed: Seed) -> anyhow::Result<Vec<Sample>> {
        if self.kept.is_empty() {
            let RehearseConfig { iterations, only_solved, .. } = self.config;
            let what = if only_solved { "no episode was solved" } else { "no episode was kept" };
            anyhow::bail!(
                "{what} in the first {iterations} iterations, so that there is nothing to rehearse: raise `rehearse.iterations`, or \
                 begin with a policy that solves something"
            );
        }
        let even = vec![0.0; self.kept.len()];
        let count = self.config.episodes.min(self.kept.len());
        let mut samples = Vec::new();
        for place in draw_without_replacement(&even, count, &mut seed.rng()) {
            let trajectory = self.kept[place].clone();
            let advantages = vec![vec![1.0; trajectory.turns.len()]];
            let group = [Group { task: trajectory.task.clone(), trajectories: vec![trajectory] }];
            samples.extend(CutBatch::new(&group)?.weigh(&Credit::of_turns(advantages), &[true])?);
        }
        for sample in &mut samples {
            sample.origin = SampleOrigin::Rehearsed;
            sample.policy_weights.fill(0.0);
            sample.advantages.fill(0.0);
        }
        Ok(samples)
    }

    /// Writes the episodes into the folder of a checkpoint.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        write_lines(&folder.join(FILE), &self.kept).context("keep what is rehearsed")
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        self.kept = read_lines(&folder.join(FILE)).context("read what is rehearsed")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trajectory(episode: u64, success: bool, guided: bool) -> Trajectory {
        let record = serde_json::json!({
            "version": 3, "episode": episode, "task": "t", "environment": "e", "seed": Seed::from_u64(5), "policy": "p",
            "first_observation": { "text": "", "state_key": "" }, "end": { "kind": "terminated" }, "success": success,
            "lineage": { "guided": guided }, "wall_time": { "secs": 0, "nanos": 0 },
            "turns": [{
                "prompt": { "kept": 0, "appended": [1] }, "author": "p", "text": "x", "state_key": "",
                "sampled": { "ids": [2, 3], "logprobs": [-0.5, -0.25], "versions": [0, 0] },
                "parsed": { "kind": "action", "text": "x" }, "policy_time": { "secs": 0, "nanos": 0 },
                "step": { "observation": { "text": "", "state_key": "" }, "rewards": [], "terminated": true,
                    "success": success, "valid": true, "wall_time": { "secs": 0, "nanos": 0 } }
            }]
        });
        Trajectory::from_json(record.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn solved_episodes_of_the_first_policy_come_back_with_the_probabilities_they_had() {
        let config = RehearseConfig { episodes: 2, iterations: 3, ..RehearseConfig::default() };
        let mut rehearsal = Rehearsal::new(config);
        assert!(rehearsal.is_keeping(2) && !rehearsal.is_keeping(3));
        let nothing = rehearsal.samples(Seed::from_u64(1)).unwrap_err().to_string();
        assert!(
            nothing.starts_with("no episode was solved in the first 3 iterations"),
            "{nothing}"
        );
        let played = [(1, true, false), (2, false, false), (3, true, true), (4, true, false)];
        let trajectories =
            played.map(|(episode, success, guided)| trajectory(episode, success, guided));
        rehearsal.keep(&[Group { task: "t".to_owned(), trajectories: trajectories.into() }]);
        rehearsal.keep(&[Group {
            task: "u".to_owned(),
            trajectories: vec![trajectory(5, true, false)],
        }]);
        assert_eq!(rehearsal.kept.len(), 3);
        let samples = rehearsal.samples(Seed::from_u64(1)).unwrap();
        assert_eq!(samples.len(), 2);
        for sample in &samples {
            assert_eq!(sample.origin, SampleOrigin::Rehearsed);
            assert_eq!((sample.num_weighed(), sample.has_advantage()), (0, false));
            assert_eq!(sample.cross_entropy_weights, [0.0, 1.0, 1.0]);
            assert_eq!(sample.behavior_logprobs[1..], [-0.5, -0.25], "as it was sampled");
            assert!(sample.reference_logprobs.is_empty(), "no reference model is run");
        }
        let folder = tempfile::tempdir().unwrap();
        rehearsal.save(folder.path()).unwrap();
        let mut again = Rehearsal::new(rehearsal.config.clone());
        again.load(folder.path()).unwrap();
        assert_eq!(again.samples(Seed::from_u64(1)).unwrap(), samples);
    }
}
