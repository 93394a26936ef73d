//! What a run leaves on disk.

use spar_agent::Evaluation;
use spar_trainer::{CheckpointMark, MetricRecord, write_atomically};

use super::Training;
use crate::training::records::{evaluation_record, is_scored, task_record};
use crate::training::state;

/// The mark of the reference model's checkpoint.
pub(super) const REFERENCE: &str = "reference";

impl Training {
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        self.metrics.sync()?;
        self.evaluations.sync()?;
        let trainer = &self.trainer;
        state::save(&self.checkpoints, &self.state, &self.model, trainer)?;
        self.mark_best()?;
        self.mark_reference()?;
        self.draw_curve()
    }

    /// Marks the checkpoint that did best on the dev split; of equals the later.
    pub(super) fn mark_best(&self) -> anyhow::Result<()> {
        let metrics = self.folder.metrics()?;
        if let Some((score, iteration)) = best(&metrics, self.recipe.evaluation.max_missing) {
            self.checkpoints.mark("best", &CheckpointMark { iteration, score: Some(score) })?;
        }
        Ok(())
    }

    /// Marks the checkpoint that reinforcement learning begins with, where it is the reference.
    pub(super) fn mark_reference(&self) -> anyhow::Result<()> {
        let iteration = self.state.iteration;
        if self.recipe.has_reference() && iteration == self.recipe.warm_start.iterations {
            self.checkpoints.mark(REFERENCE, &CheckpointMark { iteration, score: None })?;
        }
        Ok(())
    }

    pub(super) fn draw_curve(&self) -> anyhow::Result<()> {
        let metrics = self.folder.metrics()?;
        if let Some(curve) = crate::picture::run_curve(&self.recipe.name, &metrics) {
            let path = self.folder.path().join("curve.svg");
            write_atomically(&path, curve.to_svg().as_bytes())?;
        }
        Ok(())
    }

    /// Keeps an evaluation: by task first, so that what the metrics tell of is there.
    pub(super) fn log_evaluation(
        &mut self,
        kind: &str,
        evaluation: &Evaluation,
    ) -> anyhow::Result<()> {
        let iteration = self.state.iteration;
        self.evaluations.append(&task_record(iteration, kind, evaluation))?;
        self.log(&evaluation_record(iteration, kind, evaluation))
    }

    pub(super) fn log(&mut self, record: &MetricRecord) -> anyhow::Result<()> {
        self.metrics.append(record)?;
        let prefix = match record.values.get("split").and_then(|split| split.as_str()) {
            Some(split) => format!("{}/{split}", record.kind),
            None => record.kind.clone(),
        };
        let scalars: Vec<(String, f64)> = record
            .values
            .iter()
            .filter_map(|(name, value)| Some((format!("{prefix}/{name}"), value.as_f64()?)))
            .collect();
        let scalars = scalars.iter().map(|(name, value)| (name.as_str(), *value));
        self.events.scalars(record.iteration, scalars)?;
        self.events.flush()?;
        Ok(())
    }
}

/// Success on the dev split and iteration of the best evaluation that has a score.
fn best(metrics: &[MetricRecord], max_missing: f64) -> Option<(f64, u64)> {
    metrics
        .iter()
        .filter(|record| record.kind == "evaluation" && is_scored(record, max_missing))
        .filter_map(|record| Some((record.number("success_rate")?, record.iteration)))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lucky_episodes_of_an_outage_are_not_the_best() {
        let record = |iteration, rate: f64, episodes: f64, missing: f64| {
            MetricRecord::new(iteration, "evaluation").with([
                ("success_rate", rate),
                ("episodes", episodes),
                ("missing", missing),
            ])
        };
        let metrics = [
            record(1, 0.8, 100.0, 0.0),
            record(2, 0.9, 100.0, 0.0),
            record(3, 0.9, 97.0, 3.0),
            record(4, 1.0, 3.0, 97.0),
            record(5, 0.0, 0.0, 0.0),
        ];
        assert_eq!(best(&metrics, 0.05), Some((0.9, 3)));
        assert_eq!(best(&metrics, 0.0), Some((0.9, 2)));
        assert_eq!(best(&metrics[4..], 0.05), None);
    }
}
