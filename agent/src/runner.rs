//! One episode from reset to end.

use std::time::Duration;

use rand::RngExt;
use spar_core::{
    Boundary, Choices, Completion, CompletionRequest, EndReason, Limit, Lineage, Message,
    Observation, ParsedAction, Policy, PolicyError, PolicyVersion, PromptTokens, RewardPart, Role,
    SampledTokens, Seed, Step, StopCause, TRAJECTORY_VERSION, Trajectory, Turn,
};
use spar_envs::{Environment, EnvironmentError};
use spar_tasks::Task;
use tokio::time::{Instant, sleep, timeout_at};

use crate::context::Context;
use crate::{Cancellation, EpisodeConfig, Player, error_chain};

/// Which episode is played, and by whom.
#[derive(Clone, Copy)]
pub struct Episode<'a> {
    /// Its id, one of its own among the episodes in progress with the same policy.
    pub id: u64,
    /// The task.
    pub task: &'a Task,
    /// Who chooses the actions.
    pub player: Player<'a>,
    /// Where the random choices of the player start.
    pub seed: Seed,
    /// Where the random choices of the environment start: what it is, or was, reset with.
    pub environment_seed: Seed,
    /// Tells it to stop.
    pub cancellation: &'a Cancellation,
}

/// Plays an episode from reset to end.
///
/// What goes wrong on the way is the trajectory's end reason: a deadline truncates, a policy or an
/// environment that breaks makes the episode a failed one. The clock starts when the environment is
/// prepared, and stops before it verifies. The environment is not closed.
pub async fn run_episode(
    environment: &mut dyn Environment,
    episode: &Episode<'_>,
    config: &EpisodeConfig,
) -> Trajectory {
    play(environment, None, episode, config).await
}

/// Plays an episode in an environment that was reset already and has shown `first`.
///
/// The environment may be a fork, so that the members of a group share one reset.
pub async fn run_started_episode(
    environment: &mut dyn Environment,
    first: Observation,
    episode: &Episode<'_>,
    config: &EpisodeConfig,
) -> Trajectory {
    play(environment, Some(first), episode, config).await
}

async fn play(
    environment: &mut dyn Environment,
    first: Option<Observation>,
    episode: &Episode<'_>,
    config: &EpisodeConfig,
) -> Trajectory {
    let started = Instant::now();
    let mut trajectory = new_trajectory(environment, episode);
    let _forget = Forget { policy: episode.player.encoder(), episode: episode.id };
    let mut run = Run {
        environment,
        episode,
        config,
        trajectory: &mut trajectory,
        deadline: started + config.episode_timeout(),
    };
    let end = tokio::select! {
        biased;
        () = episode.cancellation.cancelled() => failed(Boundary::Cancelled, "told to stop"),
        end = run.whole(first) => match end { Ok(end) | Err(end) => end },
    };
    trajectory.end = end;
    trajectory.won = trajectory.turns.last().is_some_and(|turn| turn.step.won);
    trajectory.wall_time = started.elapsed();
    trajectory
}

/// The record of an episode that broke before it began, so that it is counted as one.
pub(crate) fn stillborn(
    environment: &dyn Environment,
    first: Observation,
    episode: &Episode<'_>,
    error: &EnvironmentError,
) -> Trajectory {
    Trajectory {
        first_observation: first,
        end: broken(error),
        ..new_trajectory(environment, episode)
    }
}

fn new_trajectory(environment: &dyn Environment, episode: &Episode<'_>) -> Trajectory {
    Trajectory {
        version: TRAJECTORY_VERSION,
        episode: episode.id,
        task: episode.task.id.clone(),
        environment: environment.name().to_owned(),
        seed: episode.seed,
        environment_seed: Some(episode.environment_seed),
        policy: episode.player.name().to_owned(),
        first_observation: Observation::default(),
        turns: Vec::new(),
        end: EndReason::Terminated,
        won: false,
        lineage: Lineage { guided: episode.player.is_guide(), ..Lineage::default() },
        seat: 0,
        wall_time: Duration::ZERO,
    }
}

/// Tells the policy that the episode is over, however it ends.
struct Forget<'a> {
    policy: Option<&'a dyn Policy>,
    episode: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(policy) = self.policy {
            policy.forget(self.episode);
        }
    }
}

struct Run<'a> {
    environment: &'a mut dyn Environment,
    episode: &'a Episode<'a>,
    config: &'a EpisodeConfig,
    trajectory: &'a mut Trajectory,
    deadline: Instant,
}

impl Run<'_> {
    /// Everything from the reset to the verdict; both results are ends.
    async fn whole(&mut self, first: Option<Observation>) -> Result<EndReason, EndReason> {
        let first = match first {
            Some(first) => first,
            None => {
                let reset = self.environment.reset(self.episode.environment_seed);
                let reset = timeout_at(self.deadline, reset).await.map_err(out_of_time)?;
                reset.map_err(|error| broken(&error))?
            }
        };
        self.environment.prepare().await.map_err(|error| broken(&error))?;
        // How long a sandbox took to be there is not for the policy to answer for.
        self.deadline = Instant::now() + self.config.episode_timeout();
        let end = match self.turns(first).await {
            Err(end @ EndReason::Failed { .. }) => return Err(end),
            Ok(end) | Err(end) => end,
        };
        // Without a turn there is nothing to judge, nor a step to carry the verdict.
        if let Some(last) = self.trajectory.turns.last_mut() {
            let verdict = self.environment.verify().await.map_err(|error| broken(&error))?;
            if let Some(verdict) = verdict {
                verdict.apply(&mut last.step);
            }
        }
        Ok(end)
    }

    /// Plays all turns; both results are ends.
    async fn turns(&mut self, first: Observation) -> Result<EndReason, EndReason> {
        let (episode, config) = (self.episode, self.config);
        let encoder = episode.player.encoder();
        let mut context = Context::new(&config.context, encoder, episode.task, &first);
        let mut state_key = first.state_key.clone();
        let mut admissible = first.admissible.clone();
        self.trajectory.first_observation = first;
        for index in 0..config.max_turns.unwrap_or(episode.task.max_turns) {
            let started = Instant::now();
            let deadline = self.deadline.min(started + config.turn_timeout());
            let prompt = context.prompt();
            let num_tokens = prompt.ids.len() + config.sampling.max_tokens;
            if config.context.max_context_tokens.is_some_and(|limit| num_tokens > limit) {
                return Ok(EndReason::Truncated { limit: Limit::Context });
            }
            // 1. The player answers.
            let request = CompletionRequest {
                episode: episode.id,
                messages: prompt.messages,
                prompt_ids: prompt.ids,
                choices: admissible.clone().filter(|_| config.constrain_to_admissible),
                sampling: config.sampling.clone(),
                seed: episode.seed.derive("turn", index),
            };
            let completion = self.complete(request, deadline).await?;
            let policy_time = started.elapsed();
            let parsed = match episode.player {
                Player::Policy(_) => config.parser.parse(&completion.text),
                _ => ParsedAction::Action { text: completion.text.clone() },
            };
            // 2. The environment answers.
            let mut step = match &parsed {
                ParsedAction::Action { text } => {
                    let step = self.environment.step(text);
                    let step = timeout_at(deadline, step).await.map_err(out_of_time)?;
                    step.map_err(|error| broken(&error))?
                }
                ParsedAction::Invalid { reason } => unread(reason, &state_key, &admissible),
            };
            let is_invalid = matches!(parsed, ParsedAction::Invalid { .. });
            let is_penalized = is_invalid || (config.penalize_not_executable && !step.executable);
            if is_penalized && config.invalid_penalty > 0.0 {
                let name = "invalid_action".to_owned();
                step.rewards.push(RewardPart { name, value: -config.invalid_penalty });
            }
            // 3. Both are recorded.
            let terminated = step.terminated;
            let next_state_key = step.observation.state_key.clone();
            if !terminated {
                context.push_answer(&completion.text, &completion.tokens.ids);
                context.push_observation(&step.observation);
                admissible.clone_from(&step.observation.admissible);
            }
            self.record(prompt.tokens, completion, parsed, state_key, step, policy_time);
            state_key = next_state_key;
            if terminated {
                return Ok(EndReason::Terminated);
            }
        }
        Ok(EndReason::Truncated { limit: Limit::Turns })
    }

    fn record(
        &mut self,
        prompt: PromptTokens,
        completion: Completion,
        parsed: ParsedAction,
        state_key: String,
        step: Step,
        policy_time: Duration,
    ) {
        let Completion { text, tokens: sampled, author, .. } = completion;
        let turn = Turn { prompt, author, text, sampled, parsed, state_key, step, policy_time };
        self.trajectory.turns.push(turn);
    }

    async fn complete(
        &mut self,
        request: CompletionRequest,
        deadline: Instant,
    ) -> Result<Completion, EndReason> {
        let (action, encoder) = match self.episode.player {
            Player::Policy(policy) => {
                let answer = ask(policy, request, self.config);
                let answer = timeout_at(deadline, answer).await.map_err(out_of_time)?;
                return answer.map_err(|error| policy_end(&error));
            }
            Player::Oracle { encoder } => (self.environment.oracle_action(), encoder),
            Player::Expert { encoder } => (self.environment.expert_action(), encoder),
        };
        let name = self.episode.player.name();
        let text = action
            .ok_or_else(|| failed(Boundary::Policy, &format!("the {name} has no action here")))?;
        let message = Message::new(Role::Assistant, text);
        let asked = request.messages.last().map(AsRef::as_ref);
        let ids = encoder.map(|encoder| encoder.encode(asked, &message)).unwrap_or_default();
        let tokens = SampledTokens {
            logprobs: vec![0.0; ids.len()],
            versions: vec![PolicyVersion(0); ids.len()],
            ids,
            allowed: Vec::new(),
        };
        let (text, author) = (message.content, name.to_owned());
        Ok(Completion { text, tokens, stop: StopCause::EndOfTurn, author })
    }
}

/// The answer to a turn in which no action could be read: nothing has changed.
fn unread(reason: &str, state_key: &str, admissible: &Option<Choices>) -> Step {
    Step {
        observation: Observation {
            text: format!("No action could be read: {reason}."),
            instruction: None,
            admissible: admissible.clone(),
            state_key: state_key.to_owned(),
        },
        rewards: Vec::new(),
        terminated: false,
        won: false,
        executable: false,
        wall_time: Duration::ZERO,
    }
}

/// Asks a policy, and again when it could not be reached.
async fn ask(
    policy: &dyn Policy,
    request: CompletionRequest,
    config: &EpisodeConfig,
) -> Result<Completion, PolicyError> {
    let mut retries = 0;
    loop {
        if retries == config.policy_retries {
            return policy.complete(request).await;
        }
        match policy.complete(request.clone()).await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, episode = request.episode, "asking the policy again");
                let delay =
                    Duration::from_millis(config.retry_delay_ms) * 2_u32.pow(retries.min(10));
                // Spread out, so that many episodes do not come back at the same moment.
                let spread = request.seed.derive("retry", retries).rng().random_range(0.75..1.25);
                sleep(delay.mul_f64(spread)).await;
                retries += 1;
            }
            result => return result,
        }
    }
}

fn policy_end(error: &PolicyError) -> EndReason {
    match error {
        PolicyError::ContextFull { .. } => EndReason::Truncated { limit: Limit::Context },
        // Whoever shut the policy down wants no more episodes.
        PolicyError::Closed { .. } => failed(Boundary::Cancelled, &error_chain(error)),
        _ => failed(Boundary::Policy, &error_chain(error)),
    }
}

fn out_of_time(_: tokio::time::error::Elapsed) -> EndReason {
    EndReason::Truncated { limit: Limit::Time }
}

fn broken(error: &EnvironmentError) -> EndReason {
    failed(error.boundary(), &error_chain(error))
}

fn failed(boundary: Boundary, detail: &str) -> EndReason {
    EndReason::Failed { boundary, detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::{RandomPolicy, ScriptedPolicy};
    use crate::{ActionParser, ContextConfig};

    async fn run_with(
        environment: &mut FakeEnvironment,
        player: Player<'_>,
        config: &EpisodeConfig,
    ) -> Trajectory {
        let cancellation = Cancellation::new();
        let task = fake_task(0);
        let seed = Seed::from_u64(1);
        let episode = Episode {
            id: 7,
            task: &task,
            player,
            seed,
            environment_seed: seed,
            cancellation: &cancellation,
        };
        let trajectory = run_episode(environment, &episode, config).await;
        trajectory.validate().unwrap();
        trajectory
    }

    async fn run(player: Player<'_>, config: &EpisodeConfig) -> Trajectory {
        run_with(&mut FakeEnvironment::new(), player, config).await
    }

    #[tokio::test]
    async fn a_solved_task_terminates_the_episode() {
        let policy = ScriptedPolicy::new(["right", "right", "right"]);
        let trajectory = run(Player::Policy(&policy), &EpisodeConfig::default()).await;
        assert_eq!(trajectory.end, EndReason::Terminated);
        assert!(trajectory.won);
        assert_eq!((trajectory.turns.len(), trajectory.total_reward()), (3, 1.0));
        assert_eq!(trajectory.turns[1].state_key, "at 1");
        assert!(!trajectory.lineage.guided);
        assert_eq!(trajectory.turns[1].prompt.kept, {
            let first = &trajectory.turns[0];
            first.prompt.appended.len() + first.sampled.ids.len()
        });
    }

    #[tokio::test]
    async fn guides_leave_demonstrations() {
        let policy = ScriptedPolicy::new(["unused"]);
        for (player, turns) in [
            (Player::Oracle { encoder: Some(&policy) }, 3),
            (Player::Expert { encoder: Some(&policy) }, 5),
        ] {
            let trajectory = run(player, &EpisodeConfig::default()).await;
            assert!(trajectory.won && trajectory.lineage.guided);
            assert_eq!(trajectory.turns.len(), turns);
            let turn = &trajectory.turns[0];
            assert_eq!(turn.author, player.name());
            let message = Message::new(Role::Assistant, turn.text.as_str());
            assert_eq!(turn.sampled.ids, policy.encode(None, &message));
        }
        let trajectory = run(Player::Oracle { encoder: None }, &EpisodeConfig::default()).await;
        assert!(trajectory.won && trajectory.turns[0].sampled.ids.is_empty());
    }

    #[tokio::test]
    async fn an_invalid_action_is_an_observation_with_a_penalty() {
        let policy = ScriptedPolicy::new(["right", "<action>right</action>"]);
        let config = EpisodeConfig {
            parser: ActionParser::Tags,
            invalid_penalty: 0.1,
            ..EpisodeConfig::default()
        };
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert!(trajectory.won);
        assert_eq!(trajectory.turns.len(), 4);
        let step = &trajectory.turns[0].step;
        assert_eq!(step.reward(), -0.1);
        assert!(step.observation.text.contains("<action>"));
        assert_eq!(trajectory.turns[1].state_key, "at 0");
    }

    #[tokio::test]
    async fn actions_that_cannot_be_executed_are_penalized_on_demand() {
        let policy = ScriptedPolicy::new(["fly", "right"]);
        let mut config = EpisodeConfig { invalid_penalty: 0.5, ..EpisodeConfig::default() };
        assert_eq!(run(Player::Policy(&policy), &config).await.total_reward(), 1.0);
        config.penalize_not_executable = true;
        assert_eq!(run(Player::Policy(&policy), &config).await.total_reward(), 0.5);
    }

    #[tokio::test]
    async fn turns_are_limited() {
        let policy = ScriptedPolicy::new(["left"]);
        let config = EpisodeConfig { max_turns: Some(4), ..EpisodeConfig::default() };
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Turns });
        assert_eq!(trajectory.turns.len(), 4);
        let trajectory = run(Player::Policy(&policy), &EpisodeConfig::default()).await;
        assert_eq!(trajectory.turns.len(), fake_task(0).max_turns as usize);
    }

    #[tokio::test]
    async fn a_full_context_truncates() {
        let policy = ScriptedPolicy::new(["left"]);
        let context = ContextConfig { max_context_tokens: Some(120), ..ContextConfig::default() };
        let config = EpisodeConfig { context, ..EpisodeConfig::default() };
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Context });
        assert!(!trajectory.turns.is_empty());
    }

    #[tokio::test]
    async fn the_random_policy_plays_what_is_admissible() {
        let trajectory = run(Player::Policy(&RandomPolicy), &EpisodeConfig::default()).await;
        assert!(!trajectory.is_failed());
        assert!(trajectory.turns.iter().all(|turn| turn.step.executable));
        let config = EpisodeConfig { constrain_to_admissible: false, ..EpisodeConfig::default() };
        let trajectory = run(Player::Policy(&RandomPolicy), &config).await;
        // It says words of the conversation then, which is seldom an action.
        assert!(!trajectory.is_failed());
        assert!(trajectory.turns.iter().any(|turn| !turn.step.executable));
    }

    /// Fails as told before it answers, and counts.
    struct Moody {
        failures: usize,
        error: fn() -> Option<PolicyError>,
        asked: AtomicUsize,
        forgotten: AtomicUsize,
    }

    impl Moody {
        fn new(failures: usize, error: fn() -> Option<PolicyError>) -> Self {
            let (asked, forgotten) = (AtomicUsize::new(0), AtomicUsize::new(0));
            Self { failures, error, asked, forgotten }
        }
    }

    #[async_trait]
    impl Policy for Moody {
        fn name(&self) -> &str {
            "moody"
        }

        fn encode(&self, _: Option<&Message>, _: &Message) -> Vec<u32> {
            Vec::new()
        }

        async fn complete(&self, _: CompletionRequest) -> Result<Completion, PolicyError> {
            if self.asked.fetch_add(1, Ordering::SeqCst) < self.failures {
                match (self.error)() {
                    Some(error) => return Err(error),
                    None => std::future::pending().await,
                }
            }
            Ok(Completion {
                text: "right".to_owned(),
                tokens: SampledTokens::default(),
                stop: StopCause::EndOfTurn,
                author: "moody".to_owned(),
            })
        }

        fn forget(&self, episode: u64) {
            assert_eq!(episode, 7);
            self.forgotten.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn unreachable() -> Option<PolicyError> {
        Some(PolicyError::Unreachable { name: "moody".to_owned(), detail: "line cut".to_owned() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_out_of_reach_is_asked_again_a_few_times() {
        let policy = Moody::new(2, unreachable);
        assert!(run(Player::Policy(&policy), &EpisodeConfig::default()).await.won);
        let policy = Moody::new(3, unreachable);
        let end = run(Player::Policy(&policy), &EpisodeConfig::default()).await.end;
        let EndReason::Failed { boundary: Boundary::Policy, detail } = end else {
            panic!("{end:?}");
        };
        assert!(detail.contains("line cut"));
        assert_eq!(policy.forgotten.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_a_policy_reports_decides_the_end() {
        let end = async |error| {
            let policy = Moody::new(1, error);
            run(Player::Policy(&policy), &EpisodeConfig::default()).await.end
        };
        let full = end(|| Some(PolicyError::ContextFull { tokens: 2, limit: 1 })).await;
        assert_eq!(full, EndReason::Truncated { limit: Limit::Context });
        let closed = end(|| Some(PolicyError::Closed { name: "moody".to_owned() })).await;
        assert!(matches!(closed, EndReason::Failed { boundary: Boundary::Cancelled, .. }));
        let nonsense =
            end(|| Some(PolicyError::Nonsense { name: "moody".to_owned(), detail: String::new() }));
        assert!(matches!(nonsense.await, EndReason::Failed { boundary: Boundary::Policy, .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_truncate() {
        let policy = Moody::new(1, || None);
        let config = EpisodeConfig { turn_timeout_secs: 5, ..EpisodeConfig::default() };
        let started = Instant::now();
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Time });
        assert_eq!(started.elapsed().as_secs(), 5);
        // The environment is slow, and the episode's deadline comes first.
        let policy = ScriptedPolicy::new(["left"]);
        let mut environment = FakeEnvironment::new();
        environment.step_time = Duration::from_secs(4);
        let config = EpisodeConfig { episode_timeout_secs: 10, ..config };
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Time });
        assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (2, 10));
    }

    #[tokio::test]
    async fn an_environment_that_breaks_fails_the_episode() {
        let policy = ScriptedPolicy::new(["right"]);
        let mut environment = FakeEnvironment::new();
        environment.breaks_after = Some(1);
        let trajectory =
            run_with(&mut environment, Player::Policy(&policy), &EpisodeConfig::default()).await;
        let end = &trajectory.end;
        assert!(matches!(end, EndReason::Failed { boundary: Boundary::Environment, .. }));
        assert_eq!((trajectory.turns.len(), trajectory.won), (1, false));
    }

    #[tokio::test(start_paused = true)]
    async fn cancelling_ends_an_episode_in_the_middle_of_a_call() {
        let policy = Moody::new(1, || None);
        let cancellation = Cancellation::new();
        let (task, seed) = (fake_task(0), Seed::from_u64(1));
        let episode = Episode {
            id: 7,
            task: &task,
            player: Player::Policy(&policy),
            seed,
            environment_seed: seed,
            cancellation: &cancellation,
        };
        let mut environment = FakeEnvironment::new();
        let config = EpisodeConfig::default();
        let (trajectory, ()) =
            tokio::join!(run_episode(&mut environment, &episode, &config), async {
                sleep(Duration::from_secs(1)).await;
                cancellation.cancel();
            });
        let end = &trajectory.end;
        assert!(matches!(end, EndReason::Failed { boundary: Boundary::Cancelled, .. }), "{end:?}");
        assert_eq!(policy.forgotten.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn equal_seeds_give_equal_episodes() {
        let config = EpisodeConfig::default();
        let mut first = run(Player::Policy(&RandomPolicy), &config).await;
        let mut second = run(Player::Policy(&RandomPolicy), &config).await;
        for trajectory in [&mut first, &mut second] {
            trajectory.wall_time = Duration::ZERO;
            trajectory.turns.iter_mut().for_each(|turn| turn.policy_time = Duration::ZERO);
        }
        assert_eq!(first, second);
    }
}
