//! One episode from reset to end.

use std::time::Duration;

use rand::RngExt;
use spar_core::{
    Boundary, Choices, Completion, CompletionRequest, EndReason, Limit, Lineage, Message,
    Observation, ParsedAction, Policy, PolicyError, PolicyVersion, PromptTokens, RewardPart, Role,
    SampledTokens, Seed, Step, StopCause, TRAJECTORY_VERSION, Trajectory, Turn,
};
use spar_envs::{Environment, EnvironmentError, TimeRules};
use spar_tasks::Task;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::context::{Context, action_of};
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
/// What goes wrong on the way is the trajectory's end reason: a policy or an environment that breaks or
/// misses its deadline makes the episode a failed one, while a budget of the task or of the agent's
/// commands that is used up truncates it. The clock starts when the environment is prepared, and stops
/// before it verifies. The environment is not closed.
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
    let mut run = Run { environment, episode, config, trajectory: &mut trajectory };
    let end = tokio::select! {
        biased;
        () = episode.cancellation.cancelled() => failed(Boundary::Cancelled, "told to stop"),
        end = run.whole(first) => match end { Ok(end) | Err(end) => end },
    };
    trajectory.end = end;
    trajectory.success = trajectory.turns.last().is_some_and(|turn| turn.step.success);
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
        success: false,
        lineage: Lineage { guided: episode.player.is_guide(), ..Lineage::default() },
        seat: 0,
        refills: 0,
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
}

/// What is left of the budgets of an episode.
struct Budgets {
    /// When the time is over that the task's rules give.
    task: Option<Instant>,
    /// What the agent's own commands may still take; absent where it runs none.
    commands: Option<Duration>,
    /// Tokens that may still be sampled.
    tokens: Option<usize>,
}

impl Budgets {
    fn new(rules: TimeRules, config: &EpisodeConfig, player: Player<'_>) -> Self {
        let bounded = rules.task.is_none() && rules.command.is_some();
        Self {
            task: rules.task.map(|time| Instant::now() + time),
            commands: bounded.then(|| config.command_time()),
            tokens: config.max_sampled_tokens.filter(|_| player.policy().is_some()),
        }
    }

    /// The first that is used up.
    fn used_up(&self) -> Option<Limit> {
        let is_late = self.task.is_some_and(|end| end <= Instant::now());
        let no_time = self.commands.is_some_and(|left| left.is_zero());
        [
            (is_late, Limit::TaskTime),
            (no_time, Limit::CommandTime),
            (self.tokens == Some(0), Limit::Tokens),
        ]
        .into_iter()
        .find_map(|(is_used_up, limit)| is_used_up.then_some(limit))
    }

    /// When the agent's command has to stop, and why then; absent where its own `limit` comes first.
    fn end_of_command(&self, limit: Duration) -> Option<(Instant, Limit)> {
        let left = self.commands.filter(|left| *left < limit);
        let commands = left.map(|left| (Instant::now() + left, Limit::CommandTime));
        self.task.map(|end| (end, Limit::TaskTime)).or(commands)
    }
}

impl Run<'_> {
    /// Everything from the reset to the verdict; both results are ends.
    async fn whole(&mut self, first: Option<Observation>) -> Result<EndReason, EndReason> {
        let first = match first {
            Some(first) => first,
            None => {
                let limit = self.config.turn_timeout();
                let reset = self.environment.reset(self.episode.environment_seed);
                let reset = timeout(limit, reset).await;
                let reset = reset.map_err(|_| late(Boundary::Environment, "be reset", limit))?;
                reset.map_err(|error| broken(&error))?
            }
        };
        // How long a sandbox took to be there is not for the policy to answer for.
        self.environment.prepare().await.map_err(|error| broken(&error))?;
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
        let mut budgets = Budgets::new(self.environment.time_rules(), config, episode.player);
        let encoder = episode.player.encoder();
        let mut context = Context::new(&config.context, encoder, episode.task, &first);
        let mut state_key = first.state_key.clone();
        let mut admissible = first.admissible.clone();
        self.trajectory.first_observation = first;
        for index in 0..config.max_turns.unwrap_or(episode.task.max_turns) {
            if let Some(limit) = budgets.used_up() {
                return Ok(EndReason::Truncated { limit });
            }
            let started = Instant::now();
            let prompt = context.prompt();
            let mut sampling = config.sampling.clone();
            sampling.max_tokens = budgets.tokens.unwrap_or(usize::MAX).min(sampling.max_tokens);
            let num_tokens = prompt.ids.len() + sampling.max_tokens;
            if config.context.max_context_tokens.is_some_and(|limit| num_tokens > limit) {
                return Ok(EndReason::Truncated { limit: Limit::Context });
            }
            // 1. The player answers.
            let request = CompletionRequest {
                episode: episode.id,
                messages: prompt.messages,
                prompt_ids: prompt.ids,
                choices: admissible
                    .as_ref()
                    .filter(|_| config.constrain_to_admissible)
                    .map(|actions| config.parser.choices(actions)),
                sampling,
                seed: episode.seed.derive("turn", index),
            };
            let player = episode.player.at(index, episode.seed);
            let (completion, parsed) = self.complete(player, request, budgets.task).await?;
            let policy_time = started.elapsed();
            if let (Some(tokens), Player::Policy(_)) = (&mut budgets.tokens, player) {
                let sampled = completion.num_tokens().ok_or_else(|| {
                    let detail = "it tells no number of tokens, which `max_sampled_tokens` needs";
                    failed(Boundary::Policy, detail)
                })?;
                *tokens = tokens.saturating_sub(sampled);
            }
            // 2. The environment answers.
            let (mut step, cut_off) = match &parsed {
                ParsedAction::Action { text } => match self.step(text, &mut budgets).await? {
                    Stepped::Done(step) => (step, None),
                    Stepped::CutOff(limit) => (unended(&state_key, &admissible), Some(limit)),
                },
                ParsedAction::Invalid { reason } => (unread(reason, &state_key, &admissible), None),
            };
            let is_invalid = matches!(parsed, ParsedAction::Invalid { .. });
            let is_penalized = is_invalid || (config.penalize_invalid && !step.valid);
            if is_penalized && config.invalid_penalty > 0.0 {
                let name = "invalid_action".to_owned();
                step.rewards.push(RewardPart { name, value: -config.invalid_penalty });
            }
            // 3. Both are recorded.
            let terminated = step.terminated;
            let next_state_key = step.observation.state_key.clone();
            if !terminated {
                context.push_answer(&completion.text, &completion.tokens.ids);
                context.push_observation(&step.observation, action_of(&parsed));
                admissible.clone_from(&step.observation.admissible);
            }
            self.record(prompt.tokens, completion, parsed, state_key, step, policy_time);
            state_key = next_state_key;
            if let Some(limit) = cut_off {
                return Ok(EndReason::Truncated { limit });
            }
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
        let Completion { text, tokens: sampled, stop, author, .. } = completion;
        let stop = Some(stop);
        let turn =
            Turn { prompt, author, text, sampled, stop, parsed, state_key, step, policy_time };
        self.trajectory.turns.push(turn);
    }

    /// Carries out an action, for as long as whoever may make it long has time left.
    async fn step(&mut self, action: &str, budgets: &mut Budgets) -> Result<Stepped, EndReason> {
        let rules = self.environment.time_rules();
        let step = self.environment.step(action);
        let started = Instant::now();
        let end_of_command = rules.command.and_then(|limit| budgets.end_of_command(limit));
        let stepped = match (rules.command, end_of_command) {
            // The environment bounds the command; what the agent has left bounds all of them.
            (Some(_), Some((end, limit))) => match timeout_at(end, step).await {
                Ok(step) => step,
                Err(_) => return Ok(Stepped::CutOff(limit)),
            },
            (Some(_), None) => step.await,
            (None, _) => {
                let limit = self.config.turn_timeout();
                let stepped = timeout(limit, step).await;
                stepped.map_err(|_| late(Boundary::Environment, "carry out a step", limit))?
            }
        };
        if let (Some(limit), Some(left)) = (rules.command, &mut budgets.commands) {
            // What comes beyond the limit was not the command's.
            *left = left.saturating_sub(started.elapsed().min(limit));
        }
        stepped.map(Stepped::Done).map_err(|error| broken(&error))
    }

    /// Asks the player of this turn, and reads the answer; `task_end` is when the task's own time is over.
    async fn complete(
        &mut self,
        player: Player<'_>,
        request: CompletionRequest,
        task_end: Option<Instant>,
    ) -> Result<(Completion, ParsedAction), EndReason> {
        let parser = self.config.parser;
        let (action, encoder) = match player {
            Player::Policy(policy) => {
                let limit = self.config.turn_timeout();
                let due = Instant::now() + limit;
                let deadline = task_end.map_or(due, |end| end.min(due));
                let answer = ask(policy, request, self.config);
                let answer = timeout_at(deadline, answer).await.map_err(|_| {
                    if deadline < due {
                        EndReason::Truncated { limit: Limit::TaskTime }
                    } else {
                        late(Boundary::Policy, "answer", limit)
                    }
                })?;
                let answer = answer.map_err(|error| policy_end(&error))?;
                let parsed = parser.parse(&answer.text);
                return Ok((answer, parsed));
            }
            Player::Oracle { encoder } => (self.environment.oracle_action(), encoder),
            Player::Expert { encoder } => (self.environment.expert_action(), encoder),
            Player::RollIn { .. } => unreachable!("it is one of the others at every turn"),
        };
        let name = player.name();
        let text = action
            .ok_or_else(|| failed(Boundary::Policy, &format!("the {name} has no action here")))?;
        // Written as a policy has to, so that who imitates it is understood.
        let message = Message::new(Role::Assistant, parser.write(text.clone()));
        let parsed = ParsedAction::Action { text };
        let asked = request.messages.last().map(AsRef::as_ref);
        let ids = encoder.map(|encoder| encoder.encode(asked, &message)).unwrap_or_default();
        let tokens = SampledTokens {
            logprobs: vec![0.0; ids.len()],
            versions: vec![PolicyVersion(0); ids.len()],
            ids,
            allowed: Vec::new(),
        };
        let (text, author) = (message.content, name.to_owned());
        let stop = StopCause::EndOfTurn;
        Ok((Completion { text, tokens, stop, author, reported_tokens: None }, parsed))
    }
}

/// What came of an action.
enum Stepped {
    /// The environment's answer.
    Done(Step),
    /// It was still under way when this budget was used up.
    CutOff(Limit),
}

/// The answer to an action that was still under way when the time for it was over.
fn unended(state_key: &str, admissible: &Option<Choices>) -> Step {
    let text = "The time was over before this had ended.";
    Step { valid: true, ..unchanged(text.to_owned(), state_key, admissible) }
}

/// The answer to a turn in which no action could be read: nothing has changed.
fn unread(reason: &str, state_key: &str, admissible: &Option<Choices>) -> Step {
    unchanged(format!("No action could be read: {reason}."), state_key, admissible)
}

fn unchanged(text: String, state_key: &str, admissible: &Option<Choices>) -> Step {
    Step {
        observation: Observation {
            text,
            instruction: None,
            admissible: admissible.clone(),
            state_key: state_key.to_owned(),
        },
        rewards: Vec::new(),
        terminated: false,
        success: false,
        valid: false,
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

/// Who had to do something missed the deadline for it.
fn late(boundary: Boundary, doing: &str, limit: Duration) -> EndReason {
    failed(boundary, &format!("it did not {doing} within {} s", limit.as_secs()))
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
    use crate::{ActionParser, ContextConfig, Guide, RollIn};

    async fn run_with(
        environment: &mut FakeEnvironment,
        player: Player<'_>,
        config: &EpisodeConfig,
    ) -> Trajectory {
        run_seeded(environment, player, config, Seed::from_u64(1)).await
    }

    async fn run_seeded(
        environment: &mut FakeEnvironment,
        player: Player<'_>,
        config: &EpisodeConfig,
        seed: Seed,
    ) -> Trajectory {
        let cancellation = Cancellation::new();
        let task = fake_task(0);
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
        assert!(trajectory.success);
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
            assert!(trajectory.success && trajectory.lineage.guided);
            assert_eq!(trajectory.turns.len(), turns);
            let turn = &trajectory.turns[0];
            assert_eq!(turn.author, player.name());
            let message = Message::new(Role::Assistant, turn.text.as_str());
            assert_eq!(turn.sampled.ids, policy.encode(None, &message));
        }
        let trajectory = run(Player::Oracle { encoder: None }, &EpisodeConfig::default()).await;
        assert!(trajectory.success && trajectory.turns[0].sampled.ids.is_empty());
    }

    #[tokio::test]
    async fn a_demonstrator_goes_on_from_where_the_policy_led() {
        let policy = ScriptedPolicy::new(["right", "left", "right", "left"]);
        let roll_in = RollIn { share: 1.0, min_turns: 1, max_turns: 3 };
        let config = EpisodeConfig::default();
        let mut led = [0; 4];
        for seed in 0..40 {
            let player = Player::RollIn { policy: &policy, guide: Guide::Oracle, roll_in };
            let seed = Seed::from_u64(seed);
            let trajectory = run_seeded(&mut FakeEnvironment::new(), player, &config, seed).await;
            assert!(trajectory.success && trajectory.lineage.guided);
            assert_eq!(trajectory.policy, "oracle");
            let authors: Vec<_> = trajectory.turns.iter().map(|turn| &*turn.author).collect();
            let num_led = authors.iter().take_while(|author| **author == "scripted").count();
            assert!(authors[num_led..].iter().all(|author| *author == "oracle"), "{authors:?}");
            led[num_led] += 1;
        }
        assert!(led[0] == 0 && led[1..].iter().all(|times| *times > 5), "{led:?}");
    }

    #[tokio::test]
    async fn demonstrators_write_as_policies_have_to() {
        let config = EpisodeConfig { parser: ActionParser::Tags, ..EpisodeConfig::default() };
        for player in [Player::Oracle { encoder: None }, Player::Policy(&RandomPolicy)] {
            let trajectory = run(player, &config).await;
            assert!(!trajectory.turns.is_empty());
            for turn in &trajectory.turns {
                let action = action_of(&turn.parsed).unwrap();
                assert_eq!(turn.text, format!("<action>{action}</action>"));
            }
        }
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
        assert!(trajectory.success);
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
        config.penalize_invalid = true;
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
        assert!(trajectory.turns.iter().all(|turn| turn.step.valid));
        let config = EpisodeConfig { constrain_to_admissible: false, ..EpisodeConfig::default() };
        let trajectory = run(Player::Policy(&RandomPolicy), &config).await;
        // It says words of the conversation then, which is seldom an action.
        assert!(!trajectory.is_failed());
        assert!(trajectory.turns.iter().any(|turn| !turn.step.valid));
    }

    /// Fails as told before it answers, and counts.
    struct Moody {
        failures: usize,
        error: fn() -> Option<PolicyError>,
        asked: AtomicUsize,
        forgotten: AtomicUsize,
        reported_tokens: Option<usize>,
    }

    impl Moody {
        fn new(failures: usize, error: fn() -> Option<PolicyError>) -> Self {
            let (asked, forgotten) = (AtomicUsize::new(0), AtomicUsize::new(0));
            Self { failures, error, asked, forgotten, reported_tokens: None }
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
                stop: StopCause::Length,
                author: "moody".to_owned(),
                reported_tokens: self.reported_tokens,
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
        assert!(run(Player::Policy(&policy), &EpisodeConfig::default()).await.success);
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
        let full = end(|| Some(PolicyError::ContextFull { tokens: None, limit: Some(1) })).await;
        assert_eq!(full, EndReason::Truncated { limit: Limit::Context });
        let closed = end(|| Some(PolicyError::Closed { name: "moody".to_owned() })).await;
        assert!(matches!(closed, EndReason::Failed { boundary: Boundary::Cancelled, .. }));
        let nonsense =
            end(|| Some(PolicyError::Nonsense { name: "moody".to_owned(), detail: String::new() }));
        assert!(matches!(nonsense.await, EndReason::Failed { boundary: Boundary::Policy, .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn who_misses_a_deadline_has_failed_and_is_not_scored() {
        let policy = Moody::new(1, || None);
        let config = EpisodeConfig { turn_timeout_secs: 5, ..EpisodeConfig::default() };
        let started = Instant::now();
        let trajectory = run(Player::Policy(&policy), &config).await;
        let detail = "it did not answer within 5 s".to_owned();
        assert_eq!(trajectory.end, EndReason::Failed { boundary: Boundary::Policy, detail });
        assert_eq!(started.elapsed().as_secs(), 5);
        // An environment whose steps no action can make long.
        let policy = ScriptedPolicy::new(["left"]);
        let mut environment = FakeEnvironment::new();
        environment.step_time = Duration::from_secs(6);
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        let detail = "it did not carry out a step within 5 s".to_owned();
        assert_eq!(trajectory.end, EndReason::Failed { boundary: Boundary::Environment, detail });
        assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (0, 5));
        // One that is slow, but in time, is played to the end, however long that takes.
        environment.step_time = Duration::from_secs(4);
        let config = EpisodeConfig { command_time_secs: 10, ..config };
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Turns });
        assert_eq!(trajectory.wall_time.as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_whose_commands_hang_uses_up_its_own_time() {
        let policy = ScriptedPolicy::new(["left"]);
        let mut environment = FakeEnvironment::new();
        environment.step_time = Duration::from_secs(4);
        environment.time_rules = TimeRules { task: None, command: Some(Duration::from_secs(30)) };
        // Neither the turn's deadline nor the number of turns comes first.
        let config = EpisodeConfig {
            turn_timeout_secs: 3,
            command_time_secs: 10,
            ..EpisodeConfig::default()
        };
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::CommandTime });
        assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (3, 10));
        // The turn that took the rest is there to be learned from.
        let last = &trajectory.turns[2];
        assert_eq!((last.text.as_str(), last.step.valid), ("left", true));
        assert!(last.step.observation.text.contains("time was over"));
        // What the environment itself took beyond the command's limit is not the agent's.
        environment.time_rules = TimeRules { task: None, command: Some(Duration::from_secs(1)) };
        let config = EpisodeConfig { command_time_secs: 5, ..config };
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::CommandTime });
        assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (5, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_task_gives_counts_the_policy_too_and_is_named() {
        let rules = |task| TimeRules {
            task: Some(Duration::from_secs(task)),
            command: Some(Duration::from_secs(30)),
        };
        let mut environment = FakeEnvironment::new();
        environment.time_rules = rules(3);
        // It hangs at the first question; the task's time is over before its own.
        let policy = Moody::new(1, || None);
        let config = EpisodeConfig { turn_timeout_secs: 5, ..EpisodeConfig::default() };
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::TaskTime });
        assert_eq!(trajectory.wall_time.as_secs(), 3);
        // A server that misses its own deadline has failed, whatever the task's.
        environment.time_rules = rules(8);
        let policy = Moody::new(1, || None);
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert!(trajectory.is_failed(), "{:?}", trajectory.end);
        // The task's rule takes the place of the run's bound on commands.
        environment.step_time = Duration::from_secs(4);
        let config = EpisodeConfig { command_time_secs: 1, ..config };
        let policy = ScriptedPolicy::new(["left"]);
        let trajectory = run_with(&mut environment, Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::TaskTime });
        assert_eq!((trajectory.turns.len(), trajectory.wall_time.as_secs()), (2, 8));
    }

    #[tokio::test]
    async fn sampled_tokens_are_a_budget_of_their_own() {
        // Five characters and the end of the turn.
        let policy = ScriptedPolicy::new(["left "]);
        let config = EpisodeConfig { max_sampled_tokens: Some(13), ..EpisodeConfig::default() };
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Tokens });
        assert_eq!(trajectory.turns.len(), 3);
        // A policy without tokens may tell their number; one that does not cannot be held to it.
        let policy = Moody { reported_tokens: Some(7), ..Moody::new(0, || None) };
        let trajectory = run(Player::Policy(&policy), &config).await;
        assert_eq!(trajectory.end, EndReason::Truncated { limit: Limit::Tokens });
        assert_eq!(trajectory.turns.len(), 2);
        let end = run(Player::Policy(&Moody::new(0, || None)), &config).await.end;
        assert!(matches!(end, EndReason::Failed { boundary: Boundary::Policy, .. }), "{end:?}");
        // Those who demonstrate sample nothing.
        assert!(run(Player::Oracle { encoder: None }, &config).await.success);
    }

    #[tokio::test]
    async fn why_a_completion_ended_is_kept() {
        let trajectory =
            run(Player::Policy(&Moody::new(0, || None)), &EpisodeConfig::default()).await;
        assert!(trajectory.turns.iter().all(|turn| turn.stop == Some(StopCause::Length)));
        assert!(trajectory.turns[0].is_cut_off());
        let trajectory = run(Player::Oracle { encoder: None }, &EpisodeConfig::default()).await;
        assert_eq!(trajectory.turns[0].stop, Some(StopCause::EndOfTurn));
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
        assert_eq!((trajectory.turns.len(), trajectory.success), (1, false));
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
