//! Who watches a run.

use spar_agent::spend::Budget;
use spar_agent::{Evaluation, FailureStore, PlayedEpisode};
use spar_trainer::MetricRecord;

/// Watches a run; every method may be left out.
pub trait Observer: Sync {
    /// A stage begins, or goes on behind `done` of `total` iterations; `about` tells what it does.
    fn stage(&self, name: &str, about: &str, done: u64, total: u64) {
        let _ = (name, about, done, total);
    }

    /// `episodes` are going to be played for `what`.
    fn playing(&self, what: &str, episodes: usize) {
        let _ = (what, episodes);
    }

    /// One of them ended.
    fn episode(&self, played: &PlayedEpisode<'_>) {
        let _ = played;
    }

    /// An iteration of the stage with this name is done; the record's kind is the stage's.
    fn iteration(&self, stage: &str, record: &MetricRecord) {
        let _ = (stage, record);
    }

    /// An evaluation is done; `split` is in it.
    fn evaluation(&self, iteration: u64, evaluation: &Evaluation) {
        let _ = (iteration, evaluation);
    }

    /// Something worth a line.
    fn note(&self, text: &str) {
        let _ = text;
    }
}

/// Keeps the episodes that failed, and tells another one everything.
pub(crate) struct KeepsFailures<'a> {
    pub(crate) failures: &'a FailureStore,
    /// Counts the tokens of what plays in this process.
    pub(crate) budget: &'a Budget,
    pub(crate) observer: &'a dyn Observer,
}

impl Observer for KeepsFailures<'_> {
    fn stage(&self, name: &str, about: &str, done: u64, total: u64) {
        self.observer.stage(name, about, done, total);
    }

    fn playing(&self, what: &str, episodes: usize) {
        self.observer.playing(what, episodes);
    }

    fn episode(&self, played: &PlayedEpisode<'_>) {
        self.failures.keep(played);
        played.records().for_each(|record| self.budget.count_local(record));
        self.observer.episode(played);
    }

    fn iteration(&self, stage: &str, record: &MetricRecord) {
        self.observer.iteration(stage, record);
    }

    fn evaluation(&self, iteration: u64, evaluation: &Evaluation) {
        self.observer.evaluation(iteration, evaluation);
    }

    fn note(&self, text: &str) {
        self.observer.note(text);
    }
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {}
