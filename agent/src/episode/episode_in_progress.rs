//! An episode that is being played.

mod seated;
mod summary;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use spar_core::{
    Action, Boundary, Choices, Completion, CompletionRequest, EndReason, GrammarSource, Limit,
    Message, Observation, OfferedTools, ParsedAction, Policy, PromptTokens, RewardPart,
    SampledTokens, Source, Step, TokenCounts, ToolSpec, Trajectory, Turn, TurnKind, Versions,
    redaction,
};
use spar_envs::{Environment, EnvironmentError};
use tokio::time::{Instant, timeout, timeout_at};

pub(super) use self::seated::earned_unplayed;
use super::asking::{Answer, answer};
use super::budgets::Budgets;
use super::ends::{broken, cancelled, failed, late, panicked, policy_end, truncated};
use super::{BranchError, BranchPoint, Episode};
use crate::collect::panic_text;
use crate::contexts::{Context, Next, Prompt};
use crate::scaffolds::{ToolUse, Unread};
use crate::spend::EpisodeTally;
use crate::{EpisodeConfig, ParserChoice, Player, error_chain};

/// Why no action was read in a turn whose answer was still being written when its episode was paused.
pub(crate) const UNFINISHED: &str = "it was still being written when the episode was paused";

/// An episode that is being played, turn by turn.
///
/// ```
/// # use spar_agent::{Cancellation, Episode, EpisodeConfig, EpisodeInProgress};
/// # async fn example(environment: Box<dyn spar_envs::Environment>, episode: Episode<'_>) {
/// let config = EpisodeConfig::default();
/// let mut playing = EpisodeInProgress::start(environment, &episode, &config).await;
/// while let Some(turn) = playing.turn().await {
///     println!("{}", turn.text);
/// }
/// let (trajectory, _environment) = playing.finish().await;
/// # drop(trajectory);
/// # }
/// ```
pub struct EpisodeInProgress<'a> {
    environment: Box<dyn Environment + 'a>,
    episode: Episode<'a>,
    config: &'a EpisodeConfig,
    context: Context<'a>,
    budgets: Budgets,
    /// What the environment showed last, as far as the next turn needs it.
    state_key: String,
    admissible: Option<Choices>,
    /// What the next answer begins with.
    partial: SampledTokens,
    /// The prompt behind which that was sampled, where the policy had laid it out itself.
    partial_prompt: Arc<[u32]>,
    /// What was said to the policy since its last turn that no environment showed.
    injected: Vec<Message>,
    trajectory: Trajectory,
    /// What answers were held to last where calls hold them, and the tools that it is made of.
    calls: Option<Calls>,
    /// Tokens that may still be sampled before it is paused; absent: it is played to its end.
    leg: Option<usize>,
    /// Whether it was paused in the middle of an answer.
    is_cut: bool,
    /// How many of its turns count as none of the task's: summaries, unless their rules say otherwise.
    uncounted: usize,
    end: Option<EndReason>,
    started: Instant,
    /// What its seat did last, as long as others move and so nobody knows what comes of it.
    acted: Option<Acted>,
    /// What its seat earned before it had moved.
    owed: Vec<RewardPart>,
    /// Since when others move, and for how long they have moved in all: neither is its own time.
    waiting_since: Option<Instant>,
    waited: Duration,
    _forget: Forget<'a>,
}

/// A turn that was played, up to what is recorded of it.
#[derive(Clone)]
pub(super) struct Acted {
    /// The turn, with the step as it was answered at once.
    turn: Turn,
    /// The budget that its step has used up.
    cut_off: Option<Limit>,
}

/// What the player of a turn is asked for.
struct Asked {
    /// The turn's index.
    turn: usize,
    /// Tokens that the answer may have, unless fewer are left.
    max_tokens: usize,
    /// What it has to be one of.
    choices: Option<Choices>,
    /// What it is held to.
    grammar: Option<Arc<GrammarSource>>,
    /// Tokens behind which it is broken off and goes on later; absent: it is not.
    leg: Option<usize>,
    /// What ends it.
    stop: Arc<[Arc<str>]>,
}

/// What calls of some tools look like.
struct Calls {
    tools: Arc<[ToolSpec]>,
    grammar: Option<Arc<GrammarSource>>,
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

impl<'a> EpisodeInProgress<'a> {
    /// Resets the environment and prepares it. What goes wrong there is the episode's [end](Self::end).
    pub async fn start(
        mut environment: Box<dyn Environment + 'a>,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        // An environment may show other things first where its tools are called.
        if let Err(error) = config.tell(&mut *environment) {
            let first = Observation::default();
            let mut playing = Self::assemble(environment, first, episode, config, None);
            playing.end = Some(failed(Boundary::Environment, &error_chain(&error)));
            return playing;
        }
        let limit = config.reset_timeout(environment.time_rules());
        let reset = async {
            let reset = timeout(limit, environment.reset(episode.environment_seed)).await;
            let reset = reset.map_err(|_| late(Boundary::Environment, "be reset", limit))?;
            reset.map_err(|error| broken(&error))
        };
        match unless_cancelled(episode, reset).await {
            Ok(first) => Self::start_from(environment, first, episode, config).await,
            Err(end) => {
                let first = Observation::default();
                let mut playing = Self::assemble(environment, first, episode, config, None);
                playing.end = Some(end);
                playing
            }
        }
    }

    /// As [`EpisodeInProgress::start`], of an environment that was reset already and has shown `first`. One in which
    /// several act fails: a [`TableInProgress`](crate::TableInProgress) plays that.
    pub async fn start_from(
        mut environment: Box<dyn Environment + 'a>,
        first: Observation,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        let told = config.tell(&mut *environment);
        // How long a sandbox took to be there is not for the policy to answer for.
        let prepare = async {
            told.map_err(|error| failed(Boundary::Environment, &error_chain(&error)))?;
            environment.prepare().await.map_err(|error| broken(&error))
        };
        let prepared = unless_cancelled(episode, prepare).await;
        let is_shared = environment.seats().len() > 1;
        let mut playing = Self::assemble(environment, first, episode, config, None);
        playing.end = prepared.err();
        if is_shared {
            let detail = "several act in it, so that it is played by a table";
            playing.end = Some(failed(Boundary::Environment, detail));
        }
        playing
    }

    /// Goes on where another episode was: `environment` is in the state in which `origin` began, and is
    /// brought to the branch point by the same actions.
    ///
    /// The turns before the point are taken over; the time and the tokens that they took are used up. What goes
    /// wrong on the way is the episode's [end](Self::end), which then has no turns: the origin does not go on from
    /// there, or the environment breaks, is late, or shows something else than it did before.
    pub async fn branch(
        mut environment: Box<dyn Environment + 'a>,
        origin: &Trajectory,
        at: BranchPoint,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        let told = config.tell(&mut *environment);
        let bring = async {
            told.map_err(|error| failed(Boundary::Environment, &error_chain(&error)))?;
            at.check(origin)
                .map_err(|error| failed(Boundary::Environment, &error_chain(&error)))?;
            environment.prepare().await.map_err(|error| broken(&error))?;
            replay(&mut *environment, &origin.turns[..at.turn], config).await
        };
        match unless_cancelled(episode, bring).await {
            Ok(()) => Self::at_branch(environment, origin, at, episode, config),
            Err(end) => {
                let first = origin.first_observation.clone();
                let mut playing = Self::assemble(environment, first, episode, config, None);
                playing.end = Some(end);
                playing
            }
        }
    }

    /// A second episode that shares this one's past up to `at`, and nothing from there on.
    ///
    /// Where `at` is where this one stands, the environment is forked, if it can be. Else `again` gives
    /// one in the state in which this one began, and the actions are played again; what goes wrong there is the
    /// new episode's [end](Self::end), as it is for [`EpisodeInProgress::branch`].
    ///
    /// # Errors
    ///
    /// [`BranchError`] when this episode does not go on from there, or there is no second environment.
    pub async fn fork(
        &mut self,
        at: BranchPoint,
        episode: &Episode<'a>,
        again: impl AsyncFnOnce() -> Result<Box<dyn Environment>, EnvironmentError>,
    ) -> Result<Self, BranchError> {
        at.check(&self.trajectory)?;
        let broke = |source| BranchError::Environment { turn: at.turn, source };
        let is_here = at.turn == self.trajectory.turns.len();
        let second = if is_here { self.environment.fork().await.map_err(broke)? } else { None };
        let origin = &self.trajectory;
        let mut fork = match second {
            Some(second) => Self::at_branch(second, origin, at, episode, self.config),
            None => {
                let environment = again().await.map_err(broke)?;
                Self::branch(environment, origin, at, episode, self.config).await
            }
        };
        // What was said since the last turn stands in none of them yet.
        if is_here && fork.end.is_none() {
            self.injected.iter().for_each(|message| fork.inject(message.clone()));
        }
        Ok(fork)
    }

    /// Plays the next turn; `None` when the episode is [over](Self::end).
    pub async fn turn(&mut self) -> Option<&Turn> {
        if self.end.is_some() || self.is_paused() {
            return None;
        }
        let index = self.trajectory.turns.len();
        let episode = self.episode;
        self.end = unless_cancelled(&episode, self.play_turn(index)).await.err();
        self.trajectory.turns.get(index)
    }

    /// Has it pause once so many more tokens are sampled: behind a turn, or in the middle of an answer that is one of no list of choices. At least 1; 0 counts as 1.
    pub(crate) fn pause_behind(&mut self, tokens: usize) {
        self.leg = Some(tokens.max(1));
    }

    /// Whether it is [paused](Self::pause_behind). Its record then ends as if it was cancelled, maybe with a turn that is [unfinished](UNFINISHED), and another
    /// episode can [go on](BranchPoint::of_pause) from there.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_cut || (self.leg == Some(0) && self.end.is_none())
    }

    /// Says something to the policy before its next turn, such as a hint, that no environment showed.
    /// That turn is recorded as [hinted](Source::Hinted).
    pub fn inject(&mut self, message: Message) {
        self.context.push_message(message.clone());
        self.injected.push(message);
    }

    /// How it ended; `None` while it goes on.
    pub fn end(&self) -> Option<&EndReason> {
        self.end.as_ref()
    }

    /// What was played so far. Its end and its verdict are not known before [`Self::finish`].
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// Has the episode judged, and hands over its record and its environment. One that is not over counts
    /// as cancelled.
    pub async fn finish(mut self) -> (Trajectory, Box<dyn Environment + 'a>) {
        let end = self.end.take().unwrap_or_else(cancelled);
        let end = match end {
            EndReason::Failed { .. } => end,
            EndReason::Terminated | EndReason::Truncated { .. } => {
                let episode = self.episode;
                self.trajectory.end = end.clone();
                // Judges may be elsewhere.
                clean(&mut self.trajectory);
                unless_cancelled(&episode, self.verify()).await.err().unwrap_or(end)
            }
        };
        let mut trajectory = self.trajectory;
        trajectory.end = end;
        trajectory.success = trajectory.last_acting().is_some_and(|turn| turn.step.success);
        let waited = self.waited + self.waiting_since.map_or(Duration::ZERO, |it| it.elapsed());
        trajectory.wall_time = self.started.elapsed().saturating_sub(waited);
        clean(&mut trajectory);
        (trajectory, self.environment)
    }

    /// The episode before its first turn, or that of `origin`, whose environment may stand elsewhere by now.
    fn assemble(
        mut environment: Box<dyn Environment + 'a>,
        first: Observation,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
        origin: Option<&Trajectory>,
    ) -> Self {
        let first = without_secrets(first);
        let encoder = episode.player.encoder();
        let versions = Versions {
            environment: Some(environment.version()),
            graders: environment.grader_versions(),
            scaffold: Some(config.scaffold.version()),
        };
        let mut trajectory = episode.new_trajectory(environment.name(), versions);
        if config.offers_tools() {
            environment.use_tools();
        }
        let tools = match (config.offers_tools(), origin) {
            (false, _) => Arc::default(),
            (true, Some(origin)) => origin.tools_at(0),
            (true, None) => environment.tools(),
        };
        let has_own = environment.instructs_seats();
        let context = Context::new(config, encoder, episode.task, &first, tools, has_own);
        let (state_key, admissible) = (first.state_key.clone(), first.admissible.clone());
        trajectory.first_observation = first;
        Self {
            budgets: Budgets::new(environment.time_rules(), config, episode.player),
            environment,
            episode: *episode,
            config,
            context,
            state_key,
            admissible,
            partial: SampledTokens::default(),
            partial_prompt: Arc::default(),
            injected: Vec::new(),
            trajectory,
            calls: None,
            leg: None,
            is_cut: false,
            uncounted: 0,
            end: None,
            started: Instant::now(),
            acted: None,
            owed: Vec::new(),
            waiting_since: None,
            waited: Duration::ZERO,
            _forget: Forget { policy: encoder, episode: episode.conversation() },
        }
    }

    /// The episode in an environment that has been brought to the branch point.
    fn at_branch(
        environment: Box<dyn Environment + 'a>,
        origin: &Trajectory,
        at: BranchPoint,
        episode: &Episode<'a>,
        config: &'a EpisodeConfig,
    ) -> Self {
        let first = origin.first_observation.clone();
        let mut fork = Self::assemble(environment, first, episode, config, Some(origin));
        fork.trajectory.tools =
            origin.tools.iter().filter(|it| it.turn < at.turn).cloned().collect();
        fork.trajectory.grammars.clone_from(&origin.grammars);
        // Whether the policy lays the first prompt out as the origin's did, so that the others need not be.
        let mut is_alike = false;
        for (index, turn) in origin.turns[..at.turn].iter().enumerate() {
            turn.injected.iter().for_each(|message| fork.context.push_message(message.clone()));
            let tools = origin.tools_at(index);
            if is_alike && fork.context.can_take_over(&turn.prompt) {
                fork.context.take_over(&tools, &turn.prompt);
                fork.inherit(turn);
                continue;
            }
            // The same prompt as then: what cannot be laid out was refused there.
            match fork.prompt_again(turn, &tools) {
                Ok(prompt) if prompt.ids.is_empty() => {
                    let prompt = fork.context.laid_out(&turn.prompt);
                    fork.context.lay_out(Some(&prompt));
                }
                Ok(prompt) => is_alike = index == 0 && *prompt.ids == *turn.prompt.appended,
                Err(error) => {
                    fork.end = Some(policy_end(&error));
                    return fork;
                }
            }
            fork.inherit(turn);
        }
        fork.budgets.take(&origin.turns[..at.turn]);
        // An episode that goes on has not been judged: what its origin earned by ending there is not its own.
        if let (Some(verdict), true) = (&origin.verdict, at.turn == origin.turns.len())
            && let Some(last) = fork.trajectory.last_acting_mut()
        {
            verdict.take_back(&mut last.step);
        }
        if let Some(turn) = origin.turns.get(at.turn) {
            turn.injected.iter().for_each(|message| fork.inject(message.clone()));
            fork.partial = turn.sampled.first(at.token);
            fork.partial_prompt = fork.context.laid_out(&turn.prompt).into();
        }
        let lineage = &mut fork.trajectory.lineage;
        lineage.parent = Some(origin.episode);
        lineage.fork_turn = u32::try_from(at.turn).unwrap_or(u32::MAX);
        lineage.fork_token = (at.token > 0).then(|| u32::try_from(at.token).unwrap_or(u32::MAX));
        fork
    }

    /// Takes over a turn, the prompt of which stands in the context already.
    fn inherit(&mut self, turn: &Turn) {
        if turn.is_summary() {
            self.take_summary(turn);
        } else {
            self.context.push_acted(turn, &turn.sampled.ids);
            self.state_key.clone_from(&turn.step.observation.state_key);
            self.admissible.clone_from(&turn.step.observation.admissible);
        }
        self.trajectory.turns.push(Turn { source: Source::Inherited, ..turn.clone() });
    }

    /// Plays the turn of this index; an error is how the episode ends.
    async fn play_turn(&mut self, index: usize) -> Result<(), EndReason> {
        match self.next(index)? {
            Next::Summarize => self.summarize(index).await,
            Next::Act => {
                let acted = self.act(index).await?;
                self.record(acted)
            }
        }
    }

    /// What the turn of this index is for; an error is how the episode ends without it.
    fn next(&mut self, index: usize) -> Result<Next, EndReason> {
        if self.number(index) >= self.config.turns_of(self.episode.task) {
            return Err(truncated(Limit::Turns));
        }
        if let Some(limit) = self.budgets.used_up() {
            return Err(truncated(limit));
        }
        // As mini-swe-agent has it: what the last request took may lie beyond.
        if self.config.cost().is_some_and(|most| EpisodeTally::cost() >= most) {
            return Err(truncated(Limit::Cost));
        }
        if !self.context.is_shortened() {
            return Ok(Next::Act);
        }
        let tools = self.offered_tools(index);
        let next = self.context.shorten(&tools).map_err(|error| policy_end(&error))?;
        // Demonstrators remember everything, and write no summaries.
        Ok(if self.player(index).is_guide() { Next::Act } else { next })
    }

    /// The number of a turn among those that count as the task's.
    fn number(&self, index: usize) -> u32 {
        u32::try_from(index - self.uncounted).unwrap_or(u32::MAX)
    }

    /// Who plays the turn of this index.
    fn player(&self, index: usize) -> Player<'a> {
        self.episode.player.at(self.number(index), self.episode.seed)
    }

    /// Has the player answer and the environment carry that out; an error is how the episode ends without this turn.
    async fn act(&mut self, index: usize) -> Result<Acted, EndReason> {
        let (episode, config) = (self.episode, self.config);
        // 1. The player answers.
        let started = Instant::now();
        let tools = self.offered_tools(index);
        let prompt = self.context.prompt(&tools).map_err(|error| policy_end(&error))?;
        let admissible = self.admissible.as_ref().filter(|_| config.constrain_to_admissible);
        let choices = admissible.map(|actions| self.parser().choices(actions));
        let grammar = if choices.is_some() { None } else { self.grammar(&tools) };
        let begun = self.partial.ids.len();
        let player = self.player(index);
        // What is listed is chosen whole, and of an endpoint's answers there are no tokens to go on from.
        let can_cut = matches!(player, Player::Policy(policy) if !policy.is_endpoint());
        let leg = self.leg.filter(|_| can_cut && choices.is_none()).map(|left| left + begun);
        let asked = Asked {
            turn: index,
            max_tokens: config.sampling.max_tokens,
            choices,
            grammar: grammar.clone(),
            leg,
            stop: config.stop_strings(),
        };
        let whole = self.budgets.tokens.unwrap_or(usize::MAX).min(asked.max_tokens);
        let (prompt, request) = self.request(prompt, asked, &tools)?;
        let prompt_tokens = request.prompt_ids.len();
        let number = self.number(index);
        let (environment, end) = (&mut *self.environment, self.budgets.task);
        let answer = answer(player, environment, config, request, end, (number, &tools));
        let Answer { completion, mut parsed, source } = answer.await?;
        if let (Some(why), false) = (config.scaffold.scaffold().no_call, tools.is_empty())
            && parsed.action().is_some_and(|action| action.tool_calls().is_empty())
        {
            parsed = ParsedAction::Invalid { reason: why.to_owned() };
        }
        let policy_time = started.elapsed();
        let (prompt, counts) = self.take_counts(&completion, prompt, prompt_tokens, player)?;
        let sampled = completion.tokens.ids.len();
        if let Some(left) = &mut self.leg {
            *left = left.saturating_sub(sampled.saturating_sub(begun).max(1));
        }
        self.is_cut = leg.is_some_and(|leg| leg < whole && sampled >= leg && sampled < whole)
            && completion.stop.is_cut_off();
        if self.is_cut {
            parsed = ParsedAction::Invalid { reason: UNFINISHED.to_owned() };
        }
        // 2. The environment answers.
        let called = Instant::now();
        let (mut step, cut_off) = match &parsed {
            _ if self.is_cut => (self.unchanged(String::new()), None),
            ParsedAction::Action { action, .. } if self.is_stop(action) => (self.stopped(), None),
            ParsedAction::Action { action, .. } => match self.step(action).await? {
                Stepped::Done(step) => (*step, None),
                Stepped::CutOff(limit) => (self.unended(), Some(limit)),
            },
            ParsedAction::Invalid { reason } => (self.unread(reason, &completion), None),
        };
        let environment_time = called.elapsed();
        let is_invalid = parsed.is_invalid() && !self.is_cut;
        if is_invalid || (!step.valid && !self.is_cut) {
            step.terminated |= self.is_last_format_error();
        }
        let is_penalized = is_invalid || (config.penalize_invalid && !step.valid && !self.is_cut);
        if is_penalized && config.invalid_penalty > 0.0 {
            let name = "invalid_action".to_owned();
            step.rewards.push(RewardPart { name, value: -config.invalid_penalty });
        }
        if let (Some(hash), Some(grammar)) = (completion.tokens.grammar, grammar) {
            self.trajectory.grammars.entry(hash).or_insert(grammar);
        }
        let injected = std::mem::take(&mut self.injected);
        let is_hinted = !injected.is_empty() && source == Source::Sampled;
        let turn = Turn {
            kind: TurnKind::Action,
            prompt,
            source: if is_hinted { Source::Hinted } else { source },
            injected,
            author: completion.author,
            text: completion.text,
            sampled: completion.tokens,
            stop: Some(completion.stop),
            parsed,
            state_key: std::mem::take(&mut self.state_key),
            counts,
            seat: episode.seat,
            step,
            policy_time,
            environment_time,
        };
        Ok(Acted { turn, cut_off })
    }

    /// Records a turn with what has come of it; an error is how the episode ends with it.
    fn record(&mut self, acted: Acted) -> Result<(), EndReason> {
        let Acted { mut turn, cut_off } = acted;
        turn.step.rewards.append(&mut self.owed);
        let step = &turn.step;
        let terminated = step.terminated;
        if self.is_cut {
            self.trajectory.turns.push(turn);
            return Err(cancelled());
        }
        self.state_key.clone_from(&step.observation.state_key);
        if !terminated {
            if let Some(action) = &step.observation.carried_out {
                let index = self.trajectory.turns.len();
                let written = self.parser().write(action, &self.trajectory.tools_at(index));
                written.map_err(|error| {
                    let detail = format!("what was carried out has no words: {error}");
                    failed(Boundary::Environment, &detail)
                })?;
            }
            self.context.push_acted(&turn, &turn.sampled.ids);
            self.admissible.clone_from(&step.observation.admissible);
        }
        self.trajectory.turns.push(turn);
        match cut_off {
            Some(limit) => Err(truncated(limit)),
            None if terminated => Err(EndReason::Terminated),
            None => Ok(()),
        }
    }

    /// The prompt of a turn for the record, with its numbers of tokens, which are taken from the budgets.
    fn take_counts(
        &mut self,
        completion: &Completion,
        prompt: PromptTokens,
        prompt_tokens: usize,
        player: Player<'_>,
    ) -> Result<(PromptTokens, TokenCounts), EndReason> {
        let told = completion.prompt_ids.as_deref();
        let prompt_tokens = told.map_or(prompt_tokens, <[u32]>::len);
        let prompt = self.context.lay_out(told).unwrap_or(prompt);
        let counts = TokenCounts {
            prompt: Some(prompt_tokens)
                .filter(|tokens| *tokens > 0)
                .or(completion.reported_prompt_tokens),
            sampled: completion.num_tokens(),
            endpoint: matches!(player, Player::Policy(policy) if policy.is_endpoint()),
        };
        if let (Some(tokens), Player::Policy(_)) = (&mut self.budgets.tokens, player) {
            let sampled = completion.num_tokens().ok_or_else(|| {
                let detail = "it tells no number of tokens, which `max_sampled_tokens` needs";
                failed(Boundary::Policy, detail)
            })?;
            *tokens = tokens.saturating_sub(sampled);
        }
        Ok((prompt, counts))
    }

    /// What the player of a turn is asked, and the prompt's tokens for the record.
    fn request(
        &mut self,
        prompt: Prompt,
        asked: Asked,
        tools: &Arc<[ToolSpec]>,
    ) -> Result<(PromptTokens, CompletionRequest), EndReason> {
        let (episode, config) = (&self.episode, self.config);
        let is_native = config.scaffold.scaffold().tools == ToolUse::Native;
        let mut sampling = config.sampling.clone();
        sampling.max_tokens = self.budgets.tokens.unwrap_or(usize::MAX).min(asked.max_tokens);
        // What the answer begins with was sampled in the origin, and counts here as well.
        if !self.partial.ids.is_empty() && self.partial.ids.len() >= sampling.max_tokens {
            return Err(truncated(Limit::Tokens));
        }
        let num_tokens = prompt.ids.len() + sampling.max_tokens;
        if let Some(leg) = asked.leg {
            sampling.max_tokens = sampling.max_tokens.min(leg);
        }
        if config.context.max_context_tokens.is_some_and(|limit| num_tokens > limit) {
            return Err(truncated(Limit::Context));
        }
        let turn = u32::try_from(asked.turn).unwrap_or(u32::MAX);
        let request = CompletionRequest {
            messages: prompt.messages,
            // Who lays conversations out itself needs it to go on behind tokens.
            prompt_ids: match prompt.ids.is_empty() {
                true => std::mem::take(&mut self.partial_prompt),
                false => prompt.ids,
            },
            choices: asked.choices,
            tools: if is_native { Arc::clone(tools) } else { Arc::default() },
            partial: std::mem::take(&mut self.partial),
            grammar: asked.grammar,
            stop: asked.stop,
            sampling,
            ..CompletionRequest::new(episode.conversation(), episode.seed.derive("turn", turn))
        };
        Ok((prompt.tokens, request))
    }

    /// Carries out an action, for as long as whoever may make it long has time left.
    async fn step(&mut self, action: &Action) -> Result<Stepped, EndReason> {
        let rules = self.environment.time_rules();
        let budgets = &mut self.budgets;
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
                let limit = self.config.step_timeout(rules);
                let stepped = timeout(limit, step).await;
                stepped.map_err(|_| late(Boundary::Environment, "carry out a step", limit))?
            }
        };
        if let (Some(limit), Some(left)) = (rules.command, &mut budgets.commands) {
            // What comes beyond the limit was not the command's.
            *left = left.saturating_sub(started.elapsed().min(limit));
        }
        let mut step = stepped.map_err(|error| broken(&error))?;
        self.budgets.renew(self.environment.time_rules());
        step.observation = without_secrets(step.observation);
        let (found, expected) = (step.observation.results.len(), action.tool_calls().len());
        if found != expected {
            let detail = format!("it gave {found} results for {expected} calls");
            return Err(failed(Boundary::Environment, &detail));
        }
        Ok(Stepped::Done(Box::new(step)))
    }

    async fn verify(&mut self) -> Result<(), EndReason> {
        // Without a turn there is nothing to judge, nor a step to carry the verdict.
        if self.trajectory.turns.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let verdict = self.environment.grade(&self.trajectory).await;
        let verdict = verdict.map_err(|error| broken(&error))?;
        if let (Some(mut verdict), Some(last)) = (verdict, self.trajectory.last_acting_mut()) {
            verdict.duration = started.elapsed();
            verdict.apply(&mut last.step);
            self.trajectory.verdict = Some(verdict);
        }
        Ok(())
    }

    /// The answer to an action that was still under way when the time for it was over.
    fn unended(&self) -> Step {
        let text = "The time was over before this had ended.";
        Step { valid: true, ..self.unchanged(text.to_owned()) }
    }

    /// Whether an action is that by which the policy ends the episode.
    fn is_stop(&self, action: &Action) -> bool {
        let stop = self.config.scaffold.scaffold().stop_action;
        matches!((action, stop), (Action::Text { text }, Some(stop)) if text.trim() == stop)
    }

    /// The answer to it.
    fn stopped(&self) -> Step {
        let unchanged = self.unchanged("The episode was ended.".to_owned());
        Step { valid: true, terminated: true, ..unchanged }
    }

    /// What reads actions here.
    fn parser(&self) -> &'a ParserChoice {
        self.config.parser_in(&*self.environment)
    }

    /// The tools that are offered in this turn, which are recorded where they are others than before.
    fn offered_tools(&mut self, turn: usize) -> Arc<[ToolSpec]> {
        if !self.config.offers_tools() {
            return Arc::default();
        }
        let tools = self.environment.tools();
        let offered = &mut self.trajectory.tools;
        let is_known = match offered.last() {
            Some(last) => *last.tools == *tools,
            None => tools.is_empty(),
        };
        if !is_known {
            offered.push(OfferedTools { turn, tools: Arc::clone(&tools) });
        }
        tools
    }

    /// What an answer is held to where these tools are offered.
    fn grammar(&mut self, tools: &Arc<[ToolSpec]>) -> Option<Arc<GrammarSource>> {
        let Some(rules) = self.config.tool_grammar else { return self.config.grammar.clone() };
        if let Some(calls) = self.calls.as_ref().filter(|calls| *calls.tools == **tools) {
            return calls.grammar.clone();
        }
        let grammar = self.parser().call_grammar(tools, rules).map(Arc::new);
        self.calls = Some(Calls { tools: Arc::clone(tools), grammar: grammar.clone() });
        grammar
    }

    /// The answer to a turn in which no action could be read: nothing has changed.
    fn unread(&self, reason: &str, completion: &Completion) -> Step {
        let actions = self.parser().candidates(&completion.text);
        let told = self.config.scaffold.format_error(&Unread {
            reason,
            actions: &actions,
            stop: completion.stop,
            has_tool_calls: completion.calls.is_some(),
        });
        self.unchanged(told.unwrap_or_else(|| format!("No action could be read: {reason}.")))
    }

    /// Whether one more turn without an action that could be carried out is the last one that the scaffold allows in a row.
    fn is_last_format_error(&self) -> bool {
        let Some(most) = self.config.scaffold.scaffold().max_format_errors else { return false };
        let turns = self.trajectory.turns.iter().rev().filter(|turn| !turn.is_summary());
        let before = turns.take_while(|turn| turn.parsed.is_invalid() || !turn.step.valid).count();
        before + 1 >= most as usize
    }

    fn unchanged(&self, text: String) -> Step {
        Step {
            observation: Observation {
                text,
                admissible: self.admissible.clone(),
                state_key: self.state_key.clone(),
                ..Observation::default()
            },
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: false,
            wall_time: Duration::ZERO,
        }
    }
}

/// What is shown, without the secrets of this process: what nobody sees, nobody can repeat.
fn without_secrets(mut observation: Observation) -> Observation {
    if let Some(redactor) = redaction::current() {
        redactor.observation(&mut observation);
    }
    observation
}

/// Takes secrets out of what the policy wrote of its own accord, and out of what a grader or an error told.
fn clean(trajectory: &mut Trajectory) {
    if let Some(redactor) = redaction::current() {
        redactor.trajectory(trajectory);
    }
}

/// What came of an action.
enum Stepped {
    /// The environment's answer.
    Done(Box<Step>),
    /// It was still under way when this budget was used up.
    CutOff(Limit),
}

/// A panic on the way makes the episode a failed one, with the turns that it has.
pub(super) async fn unless_cancelled<T>(
    episode: &Episode<'_>,
    doing: impl Future<Output = Result<T, EndReason>>,
) -> Result<T, EndReason> {
    if episode.cancellation.is_cancelled() {
        return Err(cancelled());
    }
    // What is done for a turn is some kilobytes, which are not to be moved about.
    let mut doing = pin!(AssertUnwindSafe(doing).catch_unwind());
    tokio::select! {
        // What is done at once need not wait for anything.
        biased;
        done = &mut doing => {
            done.unwrap_or_else(|panic| Err(panicked(&panic_text(&*panic))))
        }
        () = episode.cancellation.cancelled() => Err(cancelled()),
    }
}

/// Plays turns again, and checks that everything comes out as it did.
async fn replay(
    environment: &mut dyn Environment,
    turns: &[Turn],
    config: &EpisodeConfig,
) -> Result<(), EndReason> {
    for (turn, recorded) in turns.iter().enumerate() {
        // Where no action could be read, or none was asked for, the environment was not asked.
        let Some(action) = recorded.parsed.action() else { continue };
        let rules = environment.time_rules();
        let step = match rules.command {
            // As in the first place: the environment bounds what the agent may make long.
            Some(_) => environment.step(action).await,
            None => {
                let limit = config.step_timeout(rules);
                let step = timeout(limit, environment.step(action)).await;
                let doing = format!("play turn {turn} again");
                step.map_err(|_| late(Boundary::Environment, &doing, limit))?
            }
        };
        let step = step.map_err(|error| broken(&error))?;
        let is_same = without_secrets(step.observation) == recorded.step.observation
            && step.terminated == recorded.step.terminated
            && step.valid == recorded.step.valid;
        if !is_same {
            let detail = format!(
                "turn {turn} was played again, and the environment showed something else than the first time"
            );
            return Err(failed(Boundary::Environment, &detail));
        }
    }
    Ok(())
}
