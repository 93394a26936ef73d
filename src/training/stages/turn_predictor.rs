//! The predictor of a stage: fitted to the turns of every iteration, then asked about them.

use std::path::Path;

use anyhow::{Context, ensure};
use spar_agent::CutBatch;
use spar_agent::credit::{BatchView, TrajectoryView};
use spar_core::{Sample, Seed, Signals};
use spar_predictors::{
    Fit, OpenFor, Predictor, SegmentLayout, Segments, open_predictor, predictor_registry,
};
use spar_trainer::{FrozenModel, TurnFeatures, TurnRows, open_turn_features, write_atomically};

use crate::recipe::PredictConfig;

/// The file in a checkpoint that has its state.
const FILE: &str = "predictor.safetensors";

/// The predictor of a stage.
pub(super) struct TurnPredictor {
    config: PredictConfig,
    layout: SegmentLayout,
    features: Box<dyn TurnFeatures>,
    predictor: Box<dyn Predictor>,
}

impl TurnPredictor {
    /// One that has learned nothing, for a model whose states have `hidden_size` numbers.
    pub(super) fn open(
        config: &PredictConfig,
        hidden_size: usize,
        seed: Seed,
    ) -> anyhow::Result<Self> {
        let features = open_turn_features(&config.features)?;
        let layout = predictor_registry().find(&config.kind)?.layout;
        let width = features.width(hidden_size);
        let width = match layout {
            SegmentLayout::Ends => width,
            SegmentLayout::StartsAndEnds => 2 * width,
        };
        let predictor = open_predictor(&config.predictor(), &OpenFor { width, seed })?;
        Ok(Self { config: config.clone(), layout, features, predictor })
    }

    /// Whether it is fitted and the policy is not trained behind so many iterations.
    pub(super) fn is_warming_up(&self, done: u64) -> bool {
        done < self.config.warm_up
    }

    /// Whether it sees a frozen model's states.
    pub(super) fn needs_model(&self) -> bool {
        self.features.needs_model()
    }

    /// Writes its state into a checkpoint.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(write_atomically(&folder.join(FILE), &self.predictor.state()?)?)
    }

    /// Goes on with the state that a checkpoint has.
    pub(super) fn load(&mut self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        let state = std::fs::read(&path);
        let state = state.with_context(|| format!("read `{}`", path.display()))?;
        let loaded = self.predictor.load(&state);
        loaded.with_context(|| format!("go on with `{}`", path.display()))
    }

    /// Learns from what the turns of a batch earned, and fills in what it then says of them; the trajectories of `view` are
    /// those of `cut`. Of redacted ones nothing is learned, since their tokens are gone, and nothing said: 0.
    pub(super) fn fill(
        &mut self,
        cut: &CutBatch<'_>,
        view: &BatchView<'_>,
        model: Option<&FrozenModel<'_>>,
        signals: &mut Signals,
        seed: Seed,
    ) -> anyhow::Result<Fit> {
        // 1. Segments: the turns that have tokens, with what they earned.
        let readable = || {
            let all = view.trajectories().zip(cut.by_trajectory());
            all.filter(|(trajectory, _)| !trajectory.episode.is_redacted)
        };
        let samples: Vec<&Sample> = readable().flat_map(|(_, samples)| samples).collect();
        let mut rows = self.features.of(&samples, model)?.into_iter();
        let mut segments = Segments::new(self.predictor.width())?;
        let mut rewards = Vec::new();
        for (trajectory, samples) in readable() {
            let turns: Vec<TurnRows> = rows.by_ref().take(samples.len()).flatten().collect();
            let earned = rewards_of(trajectory);
            let (found, expected) = (turns.len(), earned.len());
            ensure!(found == expected, "find the turns of an episode: {found} of {expected}");
            segments.push(&self.row(&turns))?;
            rewards.extend(earned);
        }

        // 2. It learns, then it says what it knows.
        let fit = self.predictor.fit(&segments, &rewards, seed)?;
        let predictions = self.predictor.predict(&segments)?;
        for (signal, column) in predictions.columns() {
            let mut of_turns = column.iter();
            let stream = view.trajectories().map(|trajectory| {
                if trajectory.episode.is_redacted {
                    return vec![0.0; trajectory.num_tokens()];
                }
                let with_tokens = trajectory.steps.iter().filter(|step| step.num_tokens > 0);
                let of_tokens = with_tokens.zip(of_turns.by_ref());
                of_tokens
                    .flat_map(|(step, of)| std::iter::repeat_n(f64::from(*of), step.num_tokens))
                    .collect()
            });
            signals.insert(signal, stream.collect());
        }
        Ok(fit)
    }

    /// The features of turns, one behind the other, as the predictor takes them.
    fn row(&self, turns: &[TurnRows]) -> Vec<f32> {
        let starts = |turn: &TurnRows| match self.layout {
            SegmentLayout::Ends => Vec::new(),
            SegmentLayout::StartsAndEnds => turn.start.clone(),
        };
        turns.iter().flat_map(|turn| starts(turn).into_iter().chain(turn.end.clone())).collect()
    }
}

/// What each turn that has tokens earned. What one without earned stands at the one before it, as in credit by tokens;
/// where there is none, nobody could learn of it.
fn rewards_of(trajectory: TrajectoryView<'_, '_>) -> Vec<f32> {
    let mut rewards: Vec<f64> = Vec::new();
    for step in trajectory.steps {
        if step.num_tokens > 0 {
            rewards.push(0.0);
        }
        if let Some(last) = rewards.last_mut() {
            *last += step.reward;
        }
    }
    rewards.into_iter().map(|reward| reward as f32).collect()
}

#[cfg(test)]
mod tests {
    use spar_agent::credit::{EpisodeView, GroupView, StepView};

    use super::*;

    #[test]
    fn what_turns_without_tokens_earned_is_not_lost() {
        let step = |reward, num_tokens| StepView {
            reward,
            state: "",
            action: "".into(),
            next_state: None,
            executed: true,
            num_tokens,
        };
        let mut group = GroupView::default();
        let steps = [step(9.0, 0), step(1.0, 2), step(2.0, 0), step(4.0, 1)];
        group.push_episode(EpisodeView::new(0), steps);
        group.push([step(1.0, 0)]);
        let found: Vec<_> = group.trajectories().map(rewards_of).collect();
        assert_eq!(found, [vec![3.0, 4.0], vec![]]);
    }
}
