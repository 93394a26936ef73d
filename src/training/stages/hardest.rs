//! Tasks that nobody has solved, and what is shown of them.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use spar_agent::demonstration_samples;
use spar_core::{Group, Sample};
use spar_trainer::{DecoderGradient, Division, LossAggregation, Pass, Supervised, UpdateMetrics};

use super::replay::{read_lines, write_lines};
use super::{Place, Step};
use crate::recipe::{HardestConfig, ReinforceConfig};
use crate::training::demonstrations::{demonstrate, demonstrator, imitated, take_places};
use crate::training::run::Training;

/// The file in a checkpoint that has the tasks that wait.
const FILE: &str = "hardest.jsonl";

/// The hardest tasks of a stage, which wait to be demonstrated.
pub(super) struct Hardest {
    config: HardestConfig,
    /// Those that failed first before the others.
    waiting: Vec<Waiting>,
}

/// A task that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    /// Its id, by which it is known in every epoch.
    task: String,
    /// Where it stands in the order of the tasks.
    place: u64,
}

/// What was imitated in an iteration.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Tasks that were demonstrated, and demonstrations that were imitated.
    pub(super) demonstrated: usize,
    pub(super) imitated: usize,
    pub(super) updates: Vec<UpdateMetrics>,
}

impl Hardest {
    /// None waits yet.
    pub(super) fn new(config: HardestConfig) -> Self {
        Self { config, waiting: Vec::new() }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes note of the tasks of an iteration that nobody has solved, by the places of its groups; those that were solved now do not wait any more.
    pub(super) fn see(&mut self, groups: &[Group], places: &[u64]) {
        for (group, place) in groups.iter().zip(places) {
            let is_this = |it: &Waiting| it.task == group.task;
            if group.trajectories.iter().any(|it| it.success) {
                self.waiting.retain(|it| !is_this(it));
            } else if !group.trajectories.is_empty() && !self.waiting.iter().any(is_this) {
                self.waiting.push(Waiting { task: group.task.clone(), place: *place });
            }
        }
    }

    /// Has the tasks that wait demonstrated once there are enough of them, all full buffers at once, and imitates that in one pass, in a stage with these settings; `None` when it was told to stop on the way.
    pub(super) async fn imitate(
        &mut self,
        run: &mut Training,
        place: &Place,
        step: &Step<'_>,
        stage: &ReinforceConfig,
    ) -> anyhow::Result<Option<Shown>> {
        let HardestConfig { buffer, demonstrator: guide, batch_tokens, .. } = self.config;
        let count = self.waiting.len() - self.waiting.len() % buffer.max(1);
        if count == 0 {
            return Ok(Some(Shown::default()));
        }
        // 1. What is shown.
        let places: Vec<u64> = self.waiting[..count].iter().map(|it| it.place).collect();
        let domain = run.domains.of(&place.data);
        let tasks = take_places(domain.suite.as_ref(), &place.data.train, run.seed, &places)?;
        step.watch.observer.playing("demonstrations", tasks.len());
        let player = demonstrator(guide, Some(run.policy.clone()), None);
        let tasks = (&tasks[..], Some(run.model.config.max_position_embeddings));
        let seed = step.seed.derive("hardest", 0);
        let shown = demonstrate(&run.recipe, tasks, player, seed, domain, &step.watch).await?;
        if step.watch.cancellation.is_cancelled() {
            return Ok(None);
        }
        let mut samples: Vec<Sample> = Vec::new();
        let chosen = imitated(&shown, false);
        for trajectory in &chosen {
            samples.extend(demonstration_samples(trajectory, &self.config.weights)?);
        }
        // 2. One pass over it.
        let model = DecoderGradient::of(run.model.trained.clone(), 1.0)
            .with_activation_bytes(stage.trainer.activation_bytes())
            .with_grammars(run.policy.grammars().clone());
        let iterations = stage.iterations.max(1) as f32;
        let pass = Pass {
            epoch: 0,
            division: Division::Tokens(batch_tokens),
            seed,
            progress: [step.done as f32 / iterations, (step.done + 1) as f32 / iterations],
        };
        let mode = LossAggregation::TokenMean;
        let updates = run.trainer.pass(&samples, &Supervised, mode, &model, &pass);
        let updates = updates.context("imitate the hardest tasks")?;
        self.waiting.drain(..count);
        Ok(Some(Shown { demonstrated: places.len(), imitated: chosen.len(), updates }))
    }

    /// Writes the tasks that wait into the folder of a checkpoint.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        write_lines(&folder.join(FILE), &self.waiting).context("keep the hardest tasks")
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        self.waiting = read_lines(&folder.join(FILE)).context("read the hardest tasks")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(task: &str, outcomes: &[bool]) -> Group {
        let record = |success: &bool| {
            let record = serde_json::json!({
                "version": 5, "episode": 1, "task": "t", "environment": "e",
                "seed": spar_core::Seed::from_u64(1), "policy": "p",
                "first_observation": { "text": "", "state_key": "" }, "turns": [],
                "end": { "kind": "terminated" }, "success": success,
                "wall_time": { "secs": 0, "nanos": 0 },
            });
            spar_core::Trajectory::from_json(record.to_string().as_bytes()).unwrap()
        };
        Group { task: task.to_owned(), trajectories: outcomes.iter().map(record).collect() }
    }

    #[test]
    fn tasks_that_nobody_solves_wait_once_and_survive_in_a_checkpoint() {
        let mut hardest = Hardest::new(HardestConfig::default());
        let places =
            |hardest: &Hardest| -> Vec<u64> { hardest.waiting.iter().map(|it| it.place).collect() };
        let groups = [
            group("a", &[false, false]),
            group("b", &[false, true]),
            group("c", &[]),
            group("d", &[false]),
        ];
        hardest.see(&groups, &[4, 5, 6, 9]);
        assert_eq!(places(&hardest), [4, 9]);
        // It comes again, in another epoch.
        hardest.see(&groups[..1], &[14]);
        assert_eq!(hardest.len(), 2);
        let folder = tempfile::tempdir().unwrap();
        hardest.save(folder.path()).unwrap();
        let mut other = Hardest::new(HardestConfig::default());
        other.load(folder.path()).unwrap();
        assert_eq!(other.waiting, hardest.waiting);
        other.see(&[group("a", &[false, true]), group("d", &[])], &[24, 29]);
        assert_eq!(places(&other), [9], "what is solved meanwhile waits no more");
        let wrong = HardestConfig { buffer: 0, batch_tokens: 0, ..HardestConfig::default() };
        assert!(toml::Table::try_from(&wrong).is_ok());
    }
}
