//! A task made interactive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use spar_core::{
    Action, Observation, Seat, SeatSpec, Seed, Step, Told, ToolSpec, Trajectory, Verdict,
};

use spar_tasks::graders::{FreshSandbox, ScriptFinding};
use spar_tasks::{CodeInterpreter, ReferenceAnswer, TerminalVerifier};

use crate::EnvironmentError;
use crate::toolsets::ToolsetChoice;

/// The tag of tasks whose outcome depends on luck even for a perfect player.
pub const CHANCE_TAG: &str = "chance";

/// The tag of tasks whose rewards are a score of the environment's own: what solving them earns is above 0, and need not be 1.
pub const SCORED_TAG: &str = "scored";

/// The tag of tasks that no player is known to solve, so that nobody is expected to.
pub const NO_ORACLE_TAG: &str = "no oracle";

/// How the tag of tasks begins whose environment knows what doing nothing earns; behind it stands that, from 0 to 1.
pub const IDLE_TAG: &str = "no-op ";

/// The tag of a task in which doing nothing earns so much: a baseline that is told beside every score.
pub fn idle_tag(reward: f64) -> String {
    format!("{IDLE_TAG}{reward}")
}

/// What an environment says about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRules {
    /// The wall-clock time that the task's own rules give for all turns, the policy's share
    /// included. It may grow by what the environment itself did in a step, such as judging. Absent: they give none.
    pub task: Option<Duration>,
    /// How long what the agent does may make one step. The environment keeps to it, and to what it
    /// needs beside it, by itself; time up to it is the agent's own. Absent: nothing that the agent
    /// does makes a step long, so a step that takes long is the environment's failure.
    pub command: Option<Duration>,
    /// How long a reset may take, where the environment sees to that by itself: whoever resets it gives it this and a
    /// turn's time on top. Absent: a turn's time.
    pub reset: Option<Duration>,
    /// The same of a step, where nothing that the agent does makes it long. Absent: a turn's time.
    pub step: Option<Duration>,
}

/// A task made interactive.
///
/// Equal seeds and equal actions give equal observations; a fork goes on exactly as its origin
/// would have.
///
/// An episode is `reset`, then `prepare`, then steps, then `verify`. The time that `prepare` and
/// `verify` take is nobody's turn: they keep deadlines of their own.
#[async_trait]
pub trait Environment: Send {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// The version of its rules and words, which trajectories name: it grows with every change after which equal seeds
    /// and actions show something else. Default 1.
    fn version(&self) -> u32 {
        1
    }

    /// Labels of the task that only the environment knows, such as its family.
    fn tags(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whose time a step's is. Default: the environment's alone.
    fn time_rules(&self) -> TimeRules {
        TimeRules::default()
    }

    /// Starts an episode.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the environment could not be brought up.
    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError>;

    /// Brings up what the steps need, such as a sandbox. A second call does nothing, and a step does
    /// it by itself where nobody has.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when that could not be had in time.
    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    /// Has the environment offer tools, and its players call them, where it can be played in words as well. Asked
    /// before anything is done in an episode; environments that are only played in one way need not heed it.
    fn use_tools(&mut self) {}

    /// Has the environment be worked in with the tools of a published scaffold in the place of its own, and put its task in
    /// their words. Asked before it is reset, and again by others who play it; whether it can. Default: it cannot.
    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        let _ = toolset;
        false
    }

    /// The tools that can be called now, and are offered to whoever acts next; asked before every turn, since some
    /// tasks change them. Default none: actions are in words.
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::default()
    }

    /// The seats of those who act, in their order; known when the environment is opened. Default one.
    ///
    /// Where there are several, [`step`](Self::step), [`tools`](Self::tools), [`oracle_action`](Self::oracle_action) and
    /// [`expert_action`](Self::expert_action) are about the seat that is [to move](Self::to_move), and what others'
    /// moves bring to a seat is [told](Self::told) to it.
    fn seats(&self) -> &[SeatSpec] {
        SeatSpec::ONE
    }

    /// Whether each seat has an instruction of its own, such as a policy to keep to or a goal that nobody else knows:
    /// that of the first thing it is shown, which then stands in its system message, behind the task's. Default `false`:
    /// what is shown says it all.
    fn instructs_seats(&self) -> bool {
        false
    }

    /// The seat that is to move: some one from the reset until the episode has terminated. Default the first.
    fn to_move(&self) -> Option<Seat> {
        Some(Seat::FIRST)
    }

    /// What has come about for a seat since it moved, or since it was told last. Asked when the seat is to move after
    /// others have, and when the episode has terminated, of every seat but the one whose step did that: so a seat
    /// that does not move is paid as well. What it shows is what this seat may see, and nothing else. Default nothing.
    fn told(&mut self, seat: Seat) -> Told {
        let _ = seat;
        Told::default()
    }

    /// A budget of the seat that is to move is used up: it does not move any more. What that means is the environment's
    /// rule. Where another seat is to move afterwards the episode goes on without this one, else it is over, and what
    /// it came to is told to all. Default: it is over, and nobody earns anything by that.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the environment broke.
    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        let _ = seat;
        Ok(())
    }

    /// Whether whatever is said is an action, as words to a user are. Default false: words that mean nothing here are not
    /// carried out.
    fn takes_any_words(&self) -> bool {
        false
    }

    /// Whether it finds what counts in an answer of any length by itself, so that all of an answer is the action where
    /// nobody has said how actions are read. Default false: then its first line is.
    fn reads_whole_answers(&self) -> bool {
        false
    }

    /// Whether what all seats earn in an episode always adds up to zero. Default false.
    fn is_zero_sum(&self) -> bool {
        false
    }

    /// Carries out an action of the seat that is to move.
    ///
    /// Calls come only where tools are offered, and are answered by one result for each, in their order. An action
    /// that cannot be executed, such as a call of a tool that is not offered, is an observation, no error.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the environment broke, or was not reset.
    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError>;

    /// Judges the episode, after the step that terminated it or the limit that ended it; `None`
    /// where the steps have said it all. Called once, and no step comes after it.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when nothing could be judged, which says nothing about the episode.
    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        Ok(None)
    }

    /// As [`Environment::verify`], with the record of the episode, which graders look at; by default that is not
    /// needed. Who plays an episode calls this, once for each seat that has moved, with the record of that seat, which
    /// [says](Trajectory::seat) which it is.
    ///
    /// # Errors
    ///
    /// As [`Environment::verify`].
    async fn grade(
        &mut self,
        trajectory: &Trajectory,
    ) -> Result<Option<Verdict>, EnvironmentError> {
        let _ = trajectory;
        self.verify().await
    }

    /// What the task calls right, for graders; no policy sees it. Default nothing.
    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        None
    }

    /// The versions of the graders that judge the episode, by what they are called; none where the environment judges by
    /// itself, which is the default.
    fn grader_versions(&self) -> BTreeMap<String, u32> {
        BTreeMap::new()
    }

    /// Whether scripts of graders can be [run](Environment::run_script). Default false.
    fn takes_scripts(&self) -> bool {
        false
    }

    /// Ends everything that the agent left running, and runs a script of a grader on what it left behind: in its sandbox, or
    /// in a fresh one, for which that is closed.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when that could not be done, by no doing of the agent; where there is no sandbox it never can.
    async fn run_script(
        &mut self,
        script: &TerminalVerifier,
    ) -> Result<ScriptFinding, EnvironmentError> {
        let _ = script;
        Err(EnvironmentError::NoScripts { environment: self.name() })
    }

    /// Whether there are [fresh sandboxes](Environment::fresh_sandbox) for programs. Default false.
    fn has_fresh_sandboxes(&self) -> bool {
        false
    }

    /// A sandbox in which nobody has worked yet, for programs of the interpreter's language; that of the episode is closed
    /// for it.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when none could be had; where the environment has no sandboxes for programs it never can.
    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, EnvironmentError> {
        let _ = interpreter;
        Err(EnvironmentError::NoScripts { environment: self.name() })
    }

    /// A second environment in the same state, independent of this one; `None` where the environment has
    /// no way to copy its state. Whoever needs one then resets another environment with the same seed and
    /// plays the same actions.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when the state could not be copied.
    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(None)
    }

    /// The next action of a solution, by a player who sees the whole state.
    ///
    /// `None` where the environment has no such player, or the task cannot be solved from here.
    fn oracle_action(&self) -> Option<Action> {
        None
    }

    /// The actions of a player who breaks what works, from the first turn on to the one that ends the episode: where there
    /// are some, an episode of them must not be solved. Default none.
    fn breaking_actions(&self) -> Vec<Action> {
        Vec::new()
    }

    /// The next action of a good player who knows only what this episode has shown.
    ///
    /// `None` where the environment has no such player.
    fn expert_action(&mut self) -> Option<Action> {
        None
    }

    /// Gives back what the environment holds.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when something could not be given back.
    async fn close(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

/// Whoever may play an environment can lend it to an episode.
#[async_trait]
impl Environment for &mut (dyn Environment + '_) {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn version(&self) -> u32 {
        (**self).version()
    }

    fn tags(&self) -> Vec<String> {
        (**self).tags()
    }

    fn use_tools(&mut self) {
        (**self).use_tools();
    }

    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        (**self).use_toolset(toolset)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        (**self).tools()
    }

    fn time_rules(&self) -> TimeRules {
        (**self).time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        (**self).reset(seed).await
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        (**self).prepare().await
    }

    fn seats(&self) -> &[SeatSpec] {
        (**self).seats()
    }

    fn instructs_seats(&self) -> bool {
        (**self).instructs_seats()
    }

    fn to_move(&self) -> Option<Seat> {
        (**self).to_move()
    }

    fn told(&mut self, seat: Seat) -> Told {
        (**self).told(seat)
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        (**self).forfeit(seat).await
    }

    fn takes_any_words(&self) -> bool {
        (**self).takes_any_words()
    }

    fn reads_whole_answers(&self) -> bool {
        (**self).reads_whole_answers()
    }

    fn is_zero_sum(&self) -> bool {
        (**self).is_zero_sum()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        (**self).step(action).await
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        (**self).verify().await
    }

    async fn grade(
        &mut self,
        trajectory: &Trajectory,
    ) -> Result<Option<Verdict>, EnvironmentError> {
        (**self).grade(trajectory).await
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        (**self).reference_answer()
    }

    fn grader_versions(&self) -> BTreeMap<String, u32> {
        (**self).grader_versions()
    }

    fn takes_scripts(&self) -> bool {
        (**self).takes_scripts()
    }

    async fn run_script(
        &mut self,
        script: &TerminalVerifier,
    ) -> Result<ScriptFinding, EnvironmentError> {
        (**self).run_script(script).await
    }

    fn has_fresh_sandboxes(&self) -> bool {
        (**self).has_fresh_sandboxes()
    }

    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, EnvironmentError> {
        (**self).fresh_sandbox(interpreter).await
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        (**self).fork().await
    }

    fn oracle_action(&self) -> Option<Action> {
        (**self).oracle_action()
    }

    fn breaking_actions(&self) -> Vec<Action> {
        (**self).breaking_actions()
    }

    fn expert_action(&mut self) -> Option<Action> {
        (**self).expert_action()
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        (**self).close().await
    }
}
