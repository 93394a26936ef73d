//! Forks of every environment that has a name go ways of their own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use spar_agent::policies::{RandomPolicy, ScriptedPolicy};
use spar_agent::{BranchPoint, Cancellation, Episode, EpisodeConfig, EpisodeInProgress, Player};
use spar_core::{Action, Observation, Policy, Seat, Seed, Step, ToolSpec, Trajectory, Verdict};
use spar_envs::{Environment, EnvironmentError, Resources, TimeRules, open_environment, seats_of};
use spar_tasks::Task;

use crate::environments::{played, resources, tasks};

/// An environment that has no way to copy its state.
struct Unforkable(Box<dyn Environment>);

#[async_trait]
impl Environment for Unforkable {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.0.tools()
    }

    fn time_rules(&self) -> TimeRules {
        self.0.time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.0.reset(seed).await
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.0.prepare().await
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        self.0.step(action).await
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        self.0.verify().await
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.0.close().await
    }
}

/// How an origin and its fork are played.
struct Play<'a> {
    task: &'a Task,
    resources: &'a Resources,
    /// Whether the environment forks itself, or another one is brought there by the same actions.
    forks: bool,
    /// Turns before the fork.
    turns: usize,
    policies: [&'a dyn Policy; 2],
}

impl Play<'_> {
    fn open(&self) -> Box<dyn Environment> {
        let environment = open_environment(self.task, self.resources).unwrap();
        if self.forks { environment } else { Box::new(Unforkable(environment)) }
    }

    /// Both records, each without what is a matter of clocks: of an origin that has a fork or not, and of the fork,
    /// which plays between its origin's turns or before them.
    async fn run(&self, has_fork: bool, is_between: bool) -> (Trajectory, Option<Trajectory>) {
        let cancellation = Cancellation::new();
        let config = EpisodeConfig { max_turns: Some(6), ..EpisodeConfig::default() };
        let episode = |id: u64| Episode {
            id,
            task: self.task,
            player: Player::Policy(self.policies[id as usize]),
            seat: Seat::FIRST,
            seed: Seed::from_u64(id),
            environment_seed: Seed::from_u64(9),
            cancellation: &cancellation,
        };
        let (first, second) = (episode(0), episode(1));
        let mut origin = EpisodeInProgress::start(self.open(), &first, &config).await;
        for _ in 0..self.turns {
            origin.turn().await.unwrap();
        }
        let mut fork = None;
        if has_fork {
            let again = async || {
                let mut environment = self.open();
                environment.reset(first.environment_seed).await?;
                Ok(environment)
            };
            let at = BranchPoint::before(self.turns);
            let forked = origin.fork(at, &second, again).await;
            fork = Some(forked.unwrap_or_else(|error| panic!("{}: {error}", self.task.id)));
        }
        let mut goes_on = true;
        while goes_on {
            goes_on = match &mut fork {
                Some(fork) => fork.turn().await.is_some(),
                None => false,
            };
            if is_between || !goes_on {
                goes_on |= origin.turn().await.is_some();
            }
        }
        let fork = match fork {
            Some(fork) => Some(end(fork).await),
            None => None,
        };
        (end(origin).await, fork)
    }
}

async fn end(playing: EpisodeInProgress<'_>) -> Trajectory {
    let (mut trajectory, mut environment) = playing.finish().await;
    environment.close().await.unwrap();
    assert!(!trajectory.is_failed(), "{:?}", trajectory.end);
    trajectory.wall_time = Duration::ZERO;
    for turn in &mut trajectory.turns {
        turn.policy_time = Duration::ZERO;
        turn.environment_time = Duration::ZERO;
        turn.step.wall_time = Duration::ZERO;
    }
    if let Some(verdict) = &mut trajectory.verdict {
        verdict.duration = Duration::ZERO;
    }
    trajectory
}

#[tokio::test]
async fn a_fork_and_its_origin_do_not_influence_each_other() {
    let trunk = ScriptedPolicy::new(["echo one > f", "cat f", "echo two > f", "cat f", "ls"]);
    let other = ScriptedPolicy::new(["cat f", "echo three > f", "cat f", "echo four > g", "ls"]);
    let mut differ = 0;
    for (entry, suite) in played() {
        // Those in which several act fork as tables do.
        if seats_of(entry.name).is_some_and(|seats| seats.len() > 1) {
            continue;
        }
        let resources = resources();
        let policies: [&dyn Policy; 2] =
            if entry.needs_sandbox { [&trunk, &other] } else { [&RandomPolicy, &RandomPolicy] };
        for task in &tasks(suite, 3) {
            let resources = &resources;
            let (alone, _) =
                Play { task, resources, forks: true, turns: 0, policies }.run(false, false).await;
            // Episodes of one turn fork before it.
            let turns = usize::from(alone.turns.len() > 1);
            let play = |forks| Play { task, resources, forks, turns, policies };
            let (_, fork) = play(true).run(true, false).await;
            differ += usize::from(alone.turns.last() != fork.as_ref().unwrap().turns.last());
            for forks in [true, false] {
                let (found, of_fork) = play(forks).run(true, true).await;
                assert_eq!(found, alone, "{}, forks {forks}", entry.name);
                assert_eq!(of_fork, fork, "{}, forks {forks}", entry.name);
            }
        }
    }
    assert!(differ >= 6, "they went different ways: {differ}");
}
