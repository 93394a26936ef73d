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

        // 2. It learns, then it says what it knows; or the other way round, where it is to know nothing of these outcomes.
        let before = self.predictor.predicts_first().then(|| self.predictor.predict(&segments));
        let before = before.transpose()?;
        let fit = self.predictor.fit(&segments, &rewards, seed)?;
        let predictions = match before {
            Some(predictions) => predictions,
            None => self.predictor.predict(&segments)?,
        };
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
    use std::time::Duration;

    use spar_agent::credit::{EpisodeView, GroupView, StepView};
    use spar_core::registry::Options;
    use spar_core::{
        EndReason, Group, Lineage, Observation, ParsedAction, PolicyVersion, PromptTokens,
        RewardPart, SampledTokens, Seat, Signal, Source, Step, StopCause, TRAJECTORY_VERSION,
        TokenCounts, Trajectory, Turn, TurnKind, Versions,
    };
    use spar_trainer::TurnFeaturesConfig;

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

    /// An episode of one turn in which these tokens were sampled.
    fn played(ids: &[u32], redacted: bool) -> Trajectory {
        let sampled = SampledTokens {
            ids: ids.to_vec(),
            logprobs: vec![-0.5; ids.len()],
            versions: vec![PolicyVersion(0); ids.len()],
            ..SampledTokens::default()
        };
        let turn = Turn {
            kind: TurnKind::Action,
            prompt: PromptTokens { kept: 0, appended: vec![1, 2] },
            injected: Vec::new(),
            counts: TokenCounts::default(),
            seat: Seat::FIRST,
            source: Source::Sampled,
            author: "a".to_owned(),
            text: String::new(),
            sampled,
            stop: Some(StopCause::EndOfTurn),
            parsed: ParsedAction::of(""),
            state_key: String::new(),
            step: Step {
                observation: Observation::default(),
                rewards: vec![RewardPart { name: "task".to_owned(), value: 1.0 }],
                terminated: true,
                success: true,
                valid: true,
                wall_time: Duration::ZERO,
            },
            policy_time: Duration::ZERO,
            environment_time: Duration::ZERO,
        };
        Trajectory {
            version: TRAJECTORY_VERSION,
            episode: u64::from(ids[0]),
            task: "t".to_owned(),
            environment: "e".to_owned(),
            seed: Seed::from_u64(0),
            environment_seed: None,
            versions: Versions::default(),
            policy: "p".to_owned(),
            first_observation: Observation::default(),
            tools: Vec::new(),
            turns: vec![turn],
            grammars: Default::default(),
            end: EndReason::Terminated,
            success: true,
            lineage: Lineage::default(),
            seat: Seat::FIRST,
            verdict: None,
            refills: 0,
            spend: None,
            redacted,
            wall_time: Duration::ZERO,
        }
    }

    #[test]
    fn nothing_is_learned_from_redacted_episodes() {
        let config = PredictConfig {
            kind: "progress".to_owned(),
            features: TurnFeaturesConfig::default(),
            warm_up: 0,
            options: Options::new(),
        };
        let learned = |trajectories: Vec<Trajectory>| {
            let groups = [Group { task: "t".to_owned(), trajectories }];
            let cut = CutBatch::new(&groups).unwrap();
            let view = BatchView::from(GroupView::from_group(&groups[0]));
            let mut predictor = TurnPredictor::open(&config, 4, Seed::from_u64(1)).unwrap();
            let fresh = predictor.predictor.state().unwrap();
            let mut signals = Signals::default();
            predictor.fill(&cut, &view, None, &mut signals, Seed::from_u64(2)).unwrap();
            let said = view.stream(&signals, Signal::Progress).unwrap().to_vec();
            (predictor.predictor.state().unwrap(), said, fresh)
        };
        let one = || played(&[3, 4], false);
        let (alone, said, fresh) = learned(vec![one()]);
        assert!(alone != fresh && said[0][0] != 0.0);
        let (beside, beside_said, _) = learned(vec![played(&[0, 0, 0], true), one()]);
        assert!(beside == alone, "the state is that of the other episode");
        assert_eq!(beside_said, [vec![0.0; 3], said[0].clone()]);
        let (shown, ..) = learned(vec![played(&[5, 6, 7], false), one()]);
        assert!(shown != alone, "another episode that is not redacted changes it");
        let (untouched, none, fresh) = learned(vec![played(&[0, 0], true)]);
        assert!(untouched == fresh && none == [vec![0.0; 2]]);
    }
}
