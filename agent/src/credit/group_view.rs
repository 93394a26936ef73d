//! A group as credit sees it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use spar_core::{
    EndReason, Group, Lineage, ParsedAction, RewardPart, Seat, Trajectory, Turn, Verdict,
};
use spar_tasks::RewardShapers;

/// A step as credit sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepView<'a> {
    /// The step's reward.
    pub reward: f64,
    /// Canonical name of the situation in which the action was chosen.
    pub state: &'a str,
    /// The action, as [`Action::key`](spar_core::Action::key) tells it; what was written, where no action could be
    /// read in it.
    pub action: Cow<'a, str>,
    /// Canonical name of the situation that followed; `None` where the task ended.
    pub next_state: Option<&'a str>,
    /// Whether an action was executed: neither where none could be, nor where the turn was a summary.
    pub executed: bool,
    /// Tokens that were sampled for the action; 0 where the policy gives text alone.
    pub num_tokens: usize,
}

/// An episode as credit sees it, without its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeView {
    /// The episode's id.
    pub episode: u64,
    /// Where it comes from.
    pub lineage: Lineage,
    /// Which player of it; 0 where there is one.
    pub seat: Seat,
    /// Wall time of all of it.
    pub duration: Duration,
    /// Whether the task ended; otherwise a budget cut the episode off, and there was more to come. A game that a budget
    /// of one seat ended has ended for all.
    pub is_terminated: bool,
    /// What it earned by the names of parts, shaped; a name that is not there stands for 0.
    pub parts: BTreeMap<String, f64>,
    /// Whether it solved its task.
    pub is_success: bool,
    /// Numbers that its judging left, by their names, or those of the grader and theirs with a point between, such as `judge.value`. Rewards need not have
    /// them.
    pub scores: BTreeMap<String, f64>,
    /// Whether its tokens are gone because a secret [stood](Trajectory::redacted) in them: nothing is learned from it.
    pub is_redacted: bool,
}

impl EpisodeView {
    /// An episode that no other one is the parent of, and that ended by itself.
    pub fn new(episode: u64) -> Self {
        Self {
            episode,
            lineage: Lineage::default(),
            seat: Seat::FIRST,
            duration: Duration::ZERO,
            is_terminated: true,
            parts: BTreeMap::new(),
            is_success: false,
            scores: BTreeMap::new(),
            is_redacted: false,
        }
    }

    /// The view of a recorded episode.
    pub fn of(trajectory: &Trajectory) -> Self {
        Self {
            episode: trajectory.episode,
            lineage: trajectory.lineage.clone(),
            seat: trajectory.seat,
            duration: trajectory.wall_time,
            is_terminated: matches!(trajectory.end, EndReason::Terminated)
                || trajectory.last_acting().is_some_and(|turn| turn.step.terminated),
            parts: BTreeMap::new(),
            is_success: trajectory.success,
            scores: trajectory.verdict.as_ref().map(scores).unwrap_or_default(),
            is_redacted: trajectory.redacted,
        }
    }

    /// Counts in a named part of what it earned.
    fn earn(&mut self, part: &RewardPart) {
        match self.parts.get_mut(&part.name) {
            Some(sum) => *sum += part.value,
            None => drop(self.parts.insert(part.name.clone(), part.value)),
        }
    }
}

/// The numbers that a judging left.
fn scores(verdict: &Verdict) -> BTreeMap<String, f64> {
    let mut scores = BTreeMap::new();
    for (name, value) in &verdict.artifacts {
        if let Some(number) = value.as_f64() {
            scores.insert(name.clone(), number);
        }
        for (inner, value) in value.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                scores.insert(format!("{name}.{inner}"), number);
            }
        }
    }
    scores
}

/// A trajectory as credit sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrajectoryView<'v, 'a> {
    /// The episode.
    pub episode: &'v EpisodeView,
    /// Its steps, oldest first.
    pub steps: &'v [StepView<'a>],
}

impl TrajectoryView<'_, '_> {
    /// Tokens that were sampled in all steps.
    pub fn num_tokens(&self) -> usize {
        self.steps.iter().map(|step| step.num_tokens).sum()
    }
}

/// The trajectories that are compared with each other, borrowed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupView<'a> {
    steps: Vec<StepView<'a>>,
    /// Each trajectory's episode, and where it ends in `steps`.
    episodes: Vec<(EpisodeView, usize)>,
}

impl<'a> GroupView<'a> {
    /// The view of a recorded group, with the rewards it was recorded with.
    pub fn from_group(group: &'a Group) -> Self {
        let mut view = Self::default();
        group.trajectories.iter().for_each(|trajectory| view.push_recorded(trajectory));
        view
    }

    /// The views of a recorded group whose rewards were shaped, one for each run of trajectories of one seat: what one
    /// seat earns is no measure for another.
    pub fn by_seat(group: &'a Group, shapers: &RewardShapers) -> Vec<Self> {
        let same = |a: &Trajectory, b: &Trajectory| a.seat == b.seat;
        group.trajectories.chunk_by(same).map(|of_seat| Self::of(of_seat, shapers)).collect()
    }

    /// The view of a recorded group whose rewards were shaped, of all seats.
    pub fn shaped(group: &'a Group, shapers: &RewardShapers) -> Self {
        Self::of(&group.trajectories, shapers)
    }

    fn of(trajectories: &'a [Trajectory], shapers: &RewardShapers) -> Self {
        let mut view = Self::default();
        let shaped = shapers.shape_group(&trajectories.iter().collect::<Vec<_>>());
        for (trajectory, parts) in trajectories.iter().zip(shaped) {
            let mut episode = EpisodeView::of(trajectory);
            parts.iter().flatten().for_each(|part| episode.earn(part));
            let steps = trajectory.turns.iter().zip(&parts);
            let steps = steps.map(|(turn, parts)| {
                let reward = parts.iter().fold(0.0, |sum, part| sum + part.value);
                StepView { reward, ..StepView::from_turn(turn) }
            });
            view.push_episode(episode, steps);
        }
        view
    }

    /// Appends a trajectory given by its steps, as the episode whose id is its place in the group.
    pub fn push(&mut self, steps: impl IntoIterator<Item = StepView<'a>>) {
        self.push_episode(EpisodeView::new(self.episodes.len() as u64), steps);
    }

    /// Appends a trajectory given by its episode and steps.
    pub fn push_episode(
        &mut self,
        episode: EpisodeView,
        steps: impl IntoIterator<Item = StepView<'a>>,
    ) {
        self.steps.extend(steps);
        self.episodes.push((episode, self.steps.len()));
    }

    /// Appends a recorded trajectory.
    pub fn push_recorded(&mut self, trajectory: &'a Trajectory) {
        let steps = trajectory.turns.iter().map(StepView::from_turn);
        let mut episode = EpisodeView::of(trajectory);
        let parts = trajectory.turns.iter().flat_map(|turn| &turn.step.rewards);
        parts.for_each(|part| episode.earn(part));
        self.push_episode(episode, steps);
    }

    /// The trajectories.
    pub fn trajectories(&self) -> impl ExactSizeIterator<Item = TrajectoryView<'_, 'a>> {
        (0..self.episodes.len()).map(|index| {
            let start = if index == 0 { 0 } else { self.episodes[index - 1].1 };
            let (episode, end) = &self.episodes[index];
            TrajectoryView { episode, steps: &self.steps[start..*end] }
        })
    }

    #[cfg(test)]
    pub(super) fn number_episodes(&mut self, next: &mut u64) {
        for (episode, _) in &mut self.episodes {
            episode.episode = *next;
            *next += 1;
        }
    }

    /// How many trajectories there are.
    pub fn num_trajectories(&self) -> usize {
        self.episodes.len()
    }

    /// All steps, one trajectory after the other.
    pub fn steps(&self) -> &[StepView<'a>] {
        &self.steps
    }

    /// The undiscounted return of every trajectory.
    pub fn returns(&self) -> Vec<f64> {
        self.trajectories()
            .map(|trajectory| trajectory.steps.iter().map(|step| step.reward).sum())
            .collect()
    }

    /// Cuts a list with one entry per step into one list per trajectory.
    pub(crate) fn split(&self, per_step: &[f64]) -> Vec<Vec<f64>> {
        let mut start = 0;
        self.episodes
            .iter()
            .map(|&(_, end)| {
                let part = per_step[start..end].to_vec();
                start = end;
                part
            })
            .collect()
    }
}

impl<'a> StepView<'a> {
    /// The view of a recorded turn.
    pub fn from_turn(turn: &'a Turn) -> Self {
        let action = match &turn.parsed {
            ParsedAction::Action { action, .. } => action.key(),
            ParsedAction::Invalid { .. } => Cow::Borrowed(&*turn.text),
        };
        let step = &turn.step;
        Self {
            reward: step.reward(),
            state: &turn.state_key,
            action,
            next_state: (!step.terminated).then_some(step.observation.state_key.as_str()),
            executed: step.valid && !turn.is_summary(),
            num_tokens: turn.sampled.ids.len(),
        }
    }
}
