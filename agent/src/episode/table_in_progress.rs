//! An episode in which several act.

mod replay;

use std::time::Duration;

use async_trait::async_trait;
use spar_core::{
    Action, Boundary, EndReason, Observation, Seat, Seed, Step, Told, Trajectory, Versions,
};
use spar_envs::{Environment, EnvironmentError};
use tokio::time::timeout;

use super::ends::{broken, cancelled, failed, late};
use super::episode_in_progress::{EpisodeInProgress, earned_unplayed, unless_cancelled};
use super::{BranchError, Episode};
use crate::EpisodeConfig;

/// Who takes a seat, and how the task is put to it.
#[derive(Clone, Copy)]
pub struct SeatedEpisode<'a> {
    /// The episode as this seat plays it; all seats have its id, its environment seed and its cancellation in common.
    pub episode: Episode<'a>,
    /// How it is played from there.
    pub config: &'a EpisodeConfig,
}

/// An episode in which several act, played move by move: one [`EpisodeInProgress`] for every seat, over one environment.
///
/// The environment stands with the seat that is to move; a seat's turn is recorded when it is to move again or the
/// episode is over, with what others' moves have brought it until then. The time in between is not its own. Whoever
/// fails takes the others along: the episode is nobody's any more. A seat whose budget is used up
/// [forfeits](Environment::forfeit), which ends the episode for the others as the environment has it.
pub struct TableInProgress<'a> {
    /// That of all, unless a seat has it right now.
    environment: Box<dyn Environment + 'a>,
    /// The seat that has it.
    lent: Option<usize>,
    seated: Vec<SeatedEpisode<'a>>,
    /// The episodes of those who have sat down, which they do when they move first.
    playing: Vec<Option<EpisodeInProgress<'a>>>,
    /// What was shown on reset, as long as nobody has seen it.
    first: Option<Observation>,
    /// What was told to those who never moved.
    told: Vec<Told>,
    is_over: bool,
    /// Why the episode is nobody's.
    failure: Option<EndReason>,
}

impl<'a> TableInProgress<'a> {
    /// The episode of an environment that was reset already and has shown `first` to whom is to move; one entry of
    /// `seated` for each of its seats.
    pub async fn start_from(
        environment: Box<dyn Environment + 'a>,
        first: Observation,
        seated: Vec<SeatedEpisode<'a>>,
    ) -> Self {
        let mut table = Self {
            environment,
            lent: None,
            playing: seated.iter().map(|_| None).collect(),
            told: vec![Told::default(); seated.len()],
            seated,
            first: Some(first),
            is_over: false,
            failure: None,
        };
        let seats = table.environment.seats().len();
        if seats != table.seated.len() || seats == 0 {
            let detail = format!("{} players sit down at {seats} seats", table.seated.len());
            table.failure = Some(failed(Boundary::Environment, &detail));
            return table;
        }
        use_tools(&mut *table.environment, &table.seated);
        let episode = table.seated[0].episode;
        let prepare = async { table.environment.prepare().await.map_err(|error| broken(&error)) };
        table.failure = unless_cancelled(&episode, prepare).await.err();
        table
    }

    /// Has the seat that is to move do so, and tells which it is; `None` when the episode is over.
    pub async fn turn(&mut self) -> Option<Seat> {
        if self.is_over || self.failure.is_some() {
            return None;
        }
        let episode = self.seated[0].episode;
        let moved = unless_cancelled(&episode, self.advance()).await;
        self.take_back();
        match moved {
            Ok(seat) => seat,
            Err(end) => {
                self.failure = Some(end);
                None
            }
        }
    }

    /// Whether nobody moves any more.
    pub fn is_over(&self) -> bool {
        self.is_over || self.failure.is_some()
    }

    /// A second episode that shares this one's past, and nothing from here on; its seats are taken by `seated`.
    ///
    /// The environment is forked, if it can be. Else `again` gives one that was reset as this one was and has shown the
    /// same, and all moves are made again; what goes wrong there is the new episode's failure.
    ///
    /// # Errors
    ///
    /// [`BranchError`] when there is no second environment.
    pub async fn fork(
        &mut self,
        seated: Vec<SeatedEpisode<'a>>,
        again: impl AsyncFnOnce() -> Result<Box<dyn Environment>, EnvironmentError>,
    ) -> Result<Self, BranchError> {
        let moves = self.playing.iter().flatten().map(|it| it.trajectory().turns.len()).sum();
        let broke = |source| BranchError::Environment { turn: moves, source };
        let mut failure = self.failure.clone();
        let environment: Box<dyn Environment + 'a> = match self.environment.fork().await {
            Ok(Some(second)) => second,
            Ok(None) => {
                let mut second = again().await.map_err(broke)?;
                use_tools(&mut *second, &self.seated);
                let episode = seated[0].episode;
                let again = async {
                    second.prepare().await.map_err(|error| broken(&error))?;
                    self.replay(&mut *second).await
                };
                failure = failure.or(unless_cancelled(&episode, again).await.err());
                second
            }
            Err(error) => return Err(broke(error)),
        };
        let mut fork = Self {
            environment,
            lent: None,
            playing: Vec::with_capacity(seated.len()),
            first: self.first.clone(),
            told: self.told.clone(),
            is_over: self.is_over,
            failure,
            seated,
        };
        for (playing, SeatedEpisode { episode, config }) in self.playing.iter().zip(&fork.seated) {
            let again = playing.as_ref().map(|playing| {
                let environment = std::mem::replace(&mut fork.environment, Box::new(Elsewhere));
                let mut again = playing.seated_again(environment, episode, config);
                again.swap_environment(&mut fork.environment);
                again
            });
            fork.playing.push(again);
        }
        Ok(fork)
    }

    /// Has every seat judged, and hands over the records, in the order of the seats, and the environment. An episode
    /// that is not over counts as cancelled.
    pub async fn finish(mut self) -> (Vec<Trajectory>, Box<dyn Environment + 'a>) {
        let end = self.failure.take().or_else(|| (!self.is_over).then(cancelled));
        let mut trajectories = Vec::with_capacity(self.seated.len());
        for (index, playing) in self.playing.into_iter().enumerate() {
            let Some(mut playing) = playing else {
                let SeatedEpisode { episode, .. } = &self.seated[index];
                let told = std::mem::take(&mut self.told[index]);
                let end = end.clone().unwrap_or(EndReason::Terminated);
                trajectories.push(never_moved(&*self.environment, episode, told, end));
                continue;
            };
            playing.end_with(end.clone().unwrap_or(EndReason::Terminated));
            let unplayed = playing.unplayed();
            playing.swap_environment(&mut self.environment);
            let (mut trajectory, environment) = playing.finish().await;
            self.environment = environment;
            if !trajectory.is_failed() && unplayed.is_some() {
                trajectory.verdict = unplayed;
            }
            trajectories.push(trajectory);
        }
        // What could not be judged for one is nobody's.
        let failure = trajectories.iter().find(|it| it.is_failed()).map(|it| it.end.clone());
        if let Some(failure) = failure {
            trajectories.iter_mut().for_each(|trajectory| trajectory.end = failure.clone());
        }
        (trajectories, self.environment)
    }

    /// One move; an error is why the episode is nobody's.
    async fn advance(&mut self) -> Result<Option<Seat>, EndReason> {
        let Some(seat) = self.next() else {
            self.conclude(None);
            return Ok(None);
        };
        let index = seat.index();
        if index >= self.seated.len() {
            let detail = format!("seat {seat} is to move, and there are {}", self.seated.len());
            return Err(failed(Boundary::Environment, &detail));
        }
        // 1. It is told what others did.
        self.tell(index);
        // 2. It acts.
        let playing = self.lend(index);
        playing.act_seated().await;
        let end = playing.end().cloned();
        let (terminated, is_cut_off) =
            (playing.acted().is_some_and(|turn| turn.step.terminated), playing.is_cut_off());
        self.take_back();
        // 3. Whose move it is now says whether it knows already what came of it.
        let to_move = self.environment.to_move();
        match end {
            Some(EndReason::Failed { boundary, detail }) => {
                let name = &self.environment.seats()[index].name;
                let detail = format!("seat `{name}`: {detail}");
                return Err(EndReason::Failed { boundary, detail });
            }
            Some(_) => self.forfeit(seat).await?,
            // By its scaffold's stop action it leaves an episode that goes on.
            None if is_cut_off || (terminated && to_move.is_some()) => {
                self.settle(index, None, false);
                self.forfeit(seat).await?;
            }
            None if terminated => self.conclude(Some(index)),
            None if to_move == Some(seat) => self.settle(index, None, false),
            None if to_move.is_none() => {
                let detail = "no seat is to move, and the episode has not terminated";
                return Err(failed(Boundary::Environment, detail));
            }
            None => {}
        }
        Ok(Some(seat))
    }

    /// The seat that is to move, if it does.
    fn next(&self) -> Option<Seat> {
        let seat = self.environment.to_move()?;
        let has_ended = |playing: &EpisodeInProgress<'_>| playing.end().is_some();
        let is_gone =
            self.playing.get(seat.index()).and_then(Option::as_ref).is_some_and(has_ended);
        (!is_gone).then_some(seat)
    }

    /// Tells a seat what others' moves have brought it, before it moves itself.
    fn tell(&mut self, index: usize) {
        if let Some(playing) = &mut self.playing[index] {
            if playing.acted().is_some() {
                let told = self.environment.told(Seat::at(index));
                playing.settle(Some(told), false);
            }
            return;
        }
        let told = match self.first.take() {
            Some(observation) => Told { observation, ..Told::default() },
            None => self.environment.told(Seat::at(index)),
        };
        let SeatedEpisode { episode, config } = self.seated[index];
        let environment = std::mem::replace(&mut self.environment, Box::new(Elsewhere));
        let mut playing = EpisodeInProgress::seated(environment, told, &episode, config);
        playing.swap_environment(&mut self.environment);
        self.playing[index] = Some(playing);
    }

    fn settle(&mut self, index: usize, told: Option<Told>, is_over: bool) {
        match (&mut self.playing[index], told) {
            (Some(playing), told) => playing.settle(told, is_over),
            (None, Some(told)) => self.told[index] = told,
            (None, None) => {}
        }
    }

    /// A seat does not move any more.
    async fn forfeit(&mut self, seat: Seat) -> Result<(), EndReason> {
        let limit = self.seated[seat.index()].config.turn_timeout();
        let forfeited = timeout(limit, self.environment.forfeit(seat)).await;
        let forfeited = forfeited.map_err(|_| late(Boundary::Environment, "end a seat", limit))?;
        forfeited.map_err(|error| broken(&error))?;
        if self.next().is_none() {
            self.conclude(None);
        }
        Ok(())
    }

    /// The episode is over, by the step of this seat if it was one's: the others are told what it came to.
    fn conclude(&mut self, by: Option<usize>) {
        for index in 0..self.seated.len() {
            let told = (by != Some(index)).then(|| self.environment.told(Seat::at(index)));
            self.settle(index, told, true);
        }
        self.is_over = true;
    }

    fn lend(&mut self, index: usize) -> &mut EpisodeInProgress<'a> {
        self.lent = Some(index);
        let playing = self.playing[index].as_mut().expect("a seat sits before it moves");
        playing.swap_environment(&mut self.environment);
        playing
    }

    fn take_back(&mut self) {
        if let Some(playing) = self.lent.take().and_then(|index| self.playing[index].as_mut()) {
            playing.swap_environment(&mut self.environment);
        }
    }
}

/// Has an environment offer tools where any seat calls them, before it shows something to anybody.
fn use_tools(environment: &mut dyn Environment, seated: &[SeatedEpisode<'_>]) {
    if seated.iter().any(|seated| seated.config.offers_tools()) {
        environment.use_tools();
    }
}

/// The record of a seat that the episode ended for before it moved.
fn never_moved(
    environment: &dyn Environment,
    episode: &Episode<'_>,
    told: Told,
    end: EndReason,
) -> Trajectory {
    let versions = Versions { environment: Some(environment.version()), ..Versions::default() };
    let Told { observation, rewards, success } = told;
    let is_failed = matches!(end, EndReason::Failed { .. });
    Trajectory {
        first_observation: observation,
        verdict: earned_unplayed(rewards, success).filter(|_| !is_failed),
        success: success && !is_failed,
        end,
        wall_time: Duration::ZERO,
        ..episode.new_trajectory(environment.name(), versions)
    }
}

/// Stands where an environment was that another seat has right now.
struct Elsewhere;

#[async_trait]
impl Environment for Elsewhere {
    fn name(&self) -> &'static str {
        "elsewhere"
    }

    async fn reset(&mut self, _: Seed) -> Result<Observation, EnvironmentError> {
        Err(EnvironmentError::Misused { call: "reset", when: "while another seat moves" })
    }

    async fn step(&mut self, _: &Action) -> Result<Step, EnvironmentError> {
        Err(EnvironmentError::Misused { call: "step", when: "while another seat moves" })
    }
}
