//! What a run leaves on disk.

use spar_agent::Evaluation;
use spar_tasks::SuiteManifest;
use spar_trainer::{CheckpointMark, MetricRecord, write_atomically};

use super::Training;
use crate::recipe::POLICY;
use crate::training::records::{evaluation_record, is_scored, spend_values, task_record};
use crate::training::stages::{Place, PlannedStage};
use crate::training::state::{self, StageState};

/// The mark of the reference model's checkpoint.
pub(super) const REFERENCE: &str = "reference";

impl Training {
    pub(in crate::training) fn save(&mut self) -> anyhow::Result<()> {
        self.metrics.sync()?;
        self.evaluations.sync()?;
        let trainer = &self.trainer;
        // While a stage works, its state is that before the iteration.
        let own = match &self.running {
            Some(running) => running.state(),
            None => self.stage.own.clone(),
        };
        self.state.stage = Some(StageState { own, ..self.stage.clone() });
        let (running, companions) = (self.running.as_deref(), &self.companions);
        state::save(&self.checkpoints, &self.state, &self.model, trainer, companions, running)?;
        self.mark_best()?;
        self.mark_reference()?;
        self.draw_curve()
    }

    /// Marks the checkpoint that the dev split [chooses](best).
    pub(super) fn mark_best(&self) -> anyhow::Result<()> {
        let metrics = self.folder.metrics()?;
        let kept: Vec<u64> =
            self.checkpoints.list()?.iter().map(|checkpoint| checkpoint.iteration).collect();
        let max_missing = self.recipe.evaluation.max_missing;
        for chosen in self.plan.chosen_by(self.stage.index) {
            let place = &chosen.place;
            let suite = self.domains.of(&place.data).suite.manifest();
            let of_stage: Vec<MetricRecord> =
                metrics.iter().filter(|record| is_of(record, place, suite)).cloned().collect();
            if let Some((score, iteration)) = best(&of_stage, max_missing, &kept) {
                let mark = CheckpointMark { iteration, score: Some(score) };
                self.checkpoints.mark(&best_mark(&place.learner), &mark)?;
                if place.learner == self.model.learner {
                    self.checkpoints.mark(&best_mark(POLICY), &mark)?;
                }
            }
        }
        Ok(())
    }

    /// Marks the checkpoint that the next stage begins with, where it is held to it.
    pub(super) fn mark_reference(&self) -> anyhow::Result<()> {
        let iteration = self.state.iteration;
        let next = self.plan.next_trained(self.stage.index);
        let begins = |next: &PlannedStage| next.first_iteration == iteration;
        if next.is_some_and(|next| begins(next) && next.stage.has_reference()) {
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

    /// Keeps an evaluation in the metrics, under the name of the stage that asked for it, and its results by task.
    ///
    /// # Errors
    ///
    /// When the run's files cannot be written.
    pub fn log_evaluation(
        &mut self,
        kind: &str,
        evaluation: &Evaluation,
        place: &Place,
    ) -> anyhow::Result<()> {
        let iteration = self.state.iteration;
        let suite = [("suite", place.data.label()), ("suite_hash", evaluation.suite_hash.clone())];
        let learner = Some(("learner", place.learner.clone()));
        let learner = learner.filter(|_| !self.recipe.learners.is_empty());
        let told = || suite.clone().into_iter().chain(learner.clone());
        if let Some(spend) = &evaluation.spend {
            let values = spend_values(&spend.spent);
            let timing = MetricRecord::new(iteration, kind)
                .with([("seconds", spend.spent.wall_secs)])
                .with([("split", evaluation.split.clone())]);
            self.timings.append(&timing.with(values))?;
        }
        let manifest = self.domains.of(&place.data).suite.manifest();
        let mut stages = self.plan.stages().iter();
        let references = stages.find_map(|planned| planned.stage.references(manifest));
        let normalized = references.and_then(|it| it.normalized(evaluation.overall.mean_reward));
        let normalized = normalized.map(|score| ("normalized_score", score));
        // By task first, so that what the metrics tell of is there.
        self.evaluations.append(&task_record(iteration, kind, evaluation).with(told()))?;
        let record = evaluation_record(iteration, kind, evaluation).with(told());
        self.log(&record.with(normalized))
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

/// Whether an evaluation was played on the dev split of a stage, which plays this suite, by its learner; older runs have
/// one suite and one learner, and do not tell them. The hash tells suites apart, as two mixtures may look alike in
/// tables; older runs have the name alone.
pub(super) fn is_of(record: &MetricRecord, place: &Place, suite: &SuiteManifest) -> bool {
    let is = |name: &str, wanted: &str| {
        let told = record.values.get(name).and_then(|value| value.as_str());
        told.is_none_or(|told| told == wanted)
    };
    let is_suite = match record.values.get("suite_hash") {
        Some(hash) => hash.as_str() == Some(&suite.content_hash),
        None => is("suite", &place.data.label()),
    };
    is_suite && is("split", &place.data.dev) && is("learner", &place.learner)
}

/// The mark of the checkpoint that the dev split chooses for a learner.
pub(super) fn best_mark(learner: &str) -> String {
    if learner == POLICY { "best".to_owned() } else { format!("best-{learner}") }
}

/// Success on the dev split and iteration of the evaluation that chooses the checkpoint, among those that have
/// a score: the last one that is no more than one standard error below the highest, and whose checkpoint is kept
/// (an older version, which took the highest, may have removed others). Absent where there is none.
///
/// The rule of Breiman et al. (1984, section 3.4.3): of what the dev split cannot tell apart, here what was
/// trained longest. The highest alone is often that of a lucky moment. The error is that of a share of the
/// episodes, with one success and one failure added, so that it is not 0 where all succeed.
fn best(metrics: &[MetricRecord], max_missing: f64, kept: &[u64]) -> Option<(f64, u64)> {
    let scored = || {
        metrics
            .iter()
            .filter(|record| record.kind == "evaluation" && is_scored(record, max_missing))
            .filter_map(|record| Some((record.number("success_rate")?, record)))
    };
    let (highest, record) = scored().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let episodes = record.number("episodes").unwrap_or(0.0);
    let share = (highest * episodes + 1.0) / (episodes + 2.0);
    let error = (share * (1.0 - share) / (episodes + 2.0)).sqrt();
    let near = scored()
        .filter(|(rate, record)| *rate >= highest - error && kept.contains(&record.iteration));
    near.map(|(rate, record)| (rate, record.iteration)).max_by_key(|(_, iteration)| *iteration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::DataConfig;

    #[test]
    fn mixtures_that_look_alike_are_told_apart_by_their_hashes() {
        let place = |splits: &str| {
            let sums = format!("{{ suite = 'sums', splits = {{ {splits} }}, without = ['test'] }}");
            let data = format!("suites = [{{ suite = 'frozen-lake' }}, {sums}]");
            let data: DataConfig = toml::from_str(&data).unwrap();
            let (name, learner) = ("stage".to_owned(), POLICY.to_owned());
            let learners = std::collections::BTreeMap::new();
            Place { name, learner, learners, data, first_task: 0, is_first: true }
        };
        let (one, other) = (place(""), place("dev = 'test'"));
        assert_eq!(one.data.label(), other.data.label());
        let suite = |place: &Place| place.data.open().ok().unwrap().suite.manifest().clone();
        let told = [("suite", one.data.label()), ("split", "dev".to_owned())];
        let older = MetricRecord::new(1, "evaluation").with(told);
        let record = older.clone().with([("suite_hash", suite(&one).content_hash)]);
        assert!(is_of(&record, &one, &suite(&one)));
        assert!(!is_of(&record, &other, &suite(&other)));
        // Older runs tell the name alone, or not even that.
        for older in [older, MetricRecord::new(1, "evaluation")] {
            assert!(is_of(&older, &one, &suite(&one)));
        }
        let elsewhere = MetricRecord::new(1, "evaluation").with([("suite", "sums")]);
        assert!(!is_of(&elsewhere, &one, &suite(&one)));
    }

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
        let kept = [1, 2, 3, 4, 5];
        assert_eq!(best(&metrics, 0.05, &kept), Some((0.9, 3)));
        assert_eq!(best(&metrics, 0.0, &kept), Some((0.9, 2)));
        assert_eq!(best(&metrics[4..], 0.05, &kept), None);
        assert_eq!(best(&metrics, 0.05, &[1, 2, 5]), Some((0.9, 2)));
        assert_eq!(best(&metrics, 0.05, &[1, 5]), None);
    }

    #[test]
    fn of_what_cannot_be_told_apart_the_last_is_chosen() {
        let of = |rates: &[f64]| {
            let record = |(index, rate): (usize, &f64)| {
                let values = [("success_rate", *rate), ("episodes", 200.0), ("missing", 0.0)];
                MetricRecord::new(index as u64 + 1, "evaluation").with(values)
            };
            best(&rates.iter().enumerate().map(record).collect::<Vec<_>>(), 0.05, &[1, 2, 3, 4])
                .unwrap()
        };
        // One standard error of 200 episodes is 3.2 points at 70 %, and 0.7 at 99.5 %.
        assert_eq!(of(&[0.5, 0.7, 0.69, 0.6]), (0.69, 3));
        assert_eq!(of(&[0.995, 0.99, 0.985]), (0.99, 2));
        assert_eq!(of(&[1.0, 0.98]), (1.0, 1));
        // It never goes back: the one that is marked is kept, those before it are not.
        assert_eq!(of(&[0.7, 0.68, 0.72, 0.5]), (0.72, 3));
    }
}
