//! Episodes without branches.

use spar_core::{EndReason, Message, Observation, Trajectory, Versions};
use spar_envs::Environment;

use super::{BranchPoint, Episode, EpisodeInProgress};
use crate::EpisodeConfig;

/// Plays an episode from reset to end.
///
/// What goes wrong on the way is the trajectory's end reason: a policy or an environment that breaks or
/// misses its deadline makes the episode a failed one, while a budget of the task or of the agent's
/// commands that is used up truncates it. The clock starts when the environment is prepared, and stops
/// before it verifies. The environment is not closed.
pub async fn run_episode(
    environment: &mut dyn Environment,
    episode: &Episode<'_>,
    config: &EpisodeConfig,
) -> Trajectory {
    let environment = Box::new(environment);
    play(EpisodeInProgress::start(environment, episode, config).await).await.0
}

/// Plays an episode in an environment that was reset already and has shown `first`, and gives the
/// environment back.
///
/// The environment may be a fork, so that the members of a group share one reset.
pub async fn run_started_episode<'a>(
    environment: Box<dyn Environment + 'a>,
    first: Observation,
    episode: &Episode<'a>,
    config: &'a EpisodeConfig,
) -> (Trajectory, Box<dyn Environment + 'a>) {
    play(EpisodeInProgress::start_from(environment, first, episode, config).await).await
}

/// Plays an episode that goes on where `origin` was, in an environment that is as it was when `origin` began,
/// and gives the environment back. What goes wrong on the way there is the trajectory's end reason too.
pub async fn run_branch<'a>(
    environment: Box<dyn Environment + 'a>,
    origin: &Trajectory,
    at: BranchPoint,
    episode: &Episode<'a>,
    config: &'a EpisodeConfig,
) -> (Trajectory, Box<dyn Environment + 'a>) {
    play(EpisodeInProgress::branch(environment, origin, at, episode, config).await).await
}

/// Plays an episode behind what is said to its policy first: to its end, or until so many tokens are sampled; tells whether it was paused.
pub(crate) async fn play_behind<'a>(
    mut episode: EpisodeInProgress<'a>,
    said: &[Message],
    leg: Option<usize>,
) -> (Trajectory, Box<dyn Environment + 'a>, bool) {
    if episode.end().is_none() {
        said.iter().for_each(|message| episode.inject(message.clone()));
    }
    if let Some(tokens) = leg {
        episode.pause_behind(tokens);
    }
    while episode.turn().await.is_some() {}
    let is_paused = episode.is_paused();
    let (trajectory, environment) = episode.finish().await;
    (trajectory, environment, is_paused)
}

async fn play(mut episode: EpisodeInProgress<'_>) -> (Trajectory, Box<dyn Environment + '_>) {
    while episode.turn().await.is_some() {}
    episode.finish().await
}

/// The record of an episode that broke before it began, so that it is counted as one.
pub(crate) fn stillborn(first: Observation, episode: &Episode<'_>, end: EndReason) -> Trajectory {
    let environment = &episode.task.environment;
    Trajectory {
        first_observation: first,
        end,
        ..episode.new_trajectory(environment, Versions::default())
    }
}
