//! The steps of a task: one, or several that follow each other in one sandbox.

use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{Capabilities, ExecRequest, Sandbox, SandboxError};
use spar_swe::grade::Outcome;
use spar_swe::{Gold, Instance, RewardStrategy, Stage, Verification};
use spar_tasks::SweTask;
use tokio::time::timeout;

use super::evidence::gathering;
use super::health::{Checked, longest, ready};
use super::place::{Begun, PATCHING, Plan, hide};
use super::repository::expect_success;
use super::verdict::{StepVerdict, SweVerdict};
use crate::SandboxPhase::SetUp;
use crate::terminal::Deadlines;
use crate::terminal::machine::{Machine, at, in_time, own_fault};
use crate::{EnvironmentError, Sandboxes, ToolsetChoice};

/// So many others may be judged before a step is, as of services.
const TURNS: u32 = 4;

/// The steps of a task, in their order. A task that is judged once has one.
pub(super) struct Schedule {
    /// Never none.
    plans: Vec<Arc<Plan>>,
    /// What the format says of each; empty where the task is judged once.
    stages: Vec<Stage>,
    strategy: RewardStrategy,
    /// The task as a whole.
    whole: Instance,
}

impl Schedule {
    /// What follows from a task; all that is wrong with it at once.
    pub(super) fn of(task: SweTask, sandboxes: &Sandboxes) -> Result<Self, Vec<String>> {
        let whole = task.instance.clone();
        let (stages, strategy) = (whole.stages.clone(), whole.stage_reward.unwrap_or_default());
        if stages.is_empty() {
            let plans = vec![Arc::new(Plan::of(task, sandboxes)?)];
            return Ok(Self { plans, stages, strategy, whole });
        }
        // 1. What the task as a whole says wrongly, its number of steps included.
        let mut problems = whole.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        // 2. Each of its steps, as a task of its own.
        let mut readable: Vec<(&Stage, Arc<Plan>)> = Vec::new();
        for stage in &stages {
            let own = SweTask { instance: stage.within(&whole), ..task.clone() };
            match Plan::of(own, sandboxes) {
                Ok(mut plan) => {
                    let checking = stage.health.as_ref().map(longest).unwrap_or_default();
                    plan.deadlines.set_up += checking;
                    readable.push((stage, Arc::new(plan)));
                }
                Err(found) => {
                    // What is wrong with all of them is told once.
                    for problem in found {
                        let told = format!("step `{}`: {problem}", stage.name);
                        if !problems.iter().any(|other: &String| other.ends_with(&problem)) {
                            problems.push(told);
                        }
                    }
                }
            }
        }
        // 3. What they cannot have each for itself, in one sandbox.
        let judge_patches = readable.first().is_some_and(|(_, plan)| plan.judges_patch());
        for (stage, plan) in &readable {
            let changes = !stage.files.is_empty() || !stage.setup.is_empty();
            for (is_there, what) in [
                (
                    changes && plan.judges_patch(),
                    "files and commands of a step are for tasks without a repository",
                ),
                (
                    plan.judges_patch() != judge_patches,
                    "some steps are judged by patches, and some in the sandbox",
                ),
            ] {
                if is_there {
                    problems.push(format!("step `{}`: {what}", stage.name));
                }
            }
        }
        let plans = readable.into_iter().map(|(_, plan)| plan).collect();
        match problems.is_empty() {
            true => Ok(Self { plans, stages, strategy, whole }),
            false => Err(problems),
        }
    }

    /// The plan of a step, from 0.
    pub(super) fn plan(&self, step: usize) -> &Arc<Plan> {
        &self.plans[step]
    }

    pub(super) fn is_last(&self, step: usize) -> bool {
        step + 1 == self.plans.len()
    }

    pub(super) fn has_steps(&self) -> bool {
        !self.stages.is_empty()
    }

    /// What is known to solve a step.
    pub(super) fn gold(&self, step: usize) -> Option<&Gold> {
        match self.stages.get(step) {
            Some(stage) => stage.gold.as_ref(),
            None => self.whole.gold.as_ref(),
        }
    }

    /// The task as it was read.
    pub(super) fn whole(&self) -> &Instance {
        &self.whole
    }

    /// The time that the rules give the agent for all steps, where they give some for each.
    pub(super) fn agent(&self) -> Option<Duration> {
        let seconds = |plan: &Arc<Plan>| plan.instance().limits.agent_secs;
        let all: Option<u64> = self
            .plans
            .iter()
            .map(seconds)
            .try_fold(0u64, |sum, own| Some(sum.saturating_add(own?)));
        all.map(Duration::from_secs)
    }

    /// The time that the rules give the agent for one of several steps.
    pub(super) fn agent_in(&self, step: usize) -> Option<Duration> {
        let seconds = self.plans[step].instance().limits.agent_secs.filter(|_| self.has_steps());
        seconds.map(Duration::from_secs)
    }

    /// How long each part may take, of the step that takes longest: what the sandbox lives by.
    pub(super) fn deadlines_with(&self, toolset: Option<&ToolsetChoice>) -> Deadlines {
        let first = self.plans[0].deadlines_with(toolset);
        if !self.has_steps() {
            return first;
        }
        let each = |part: fn(&Deadlines) -> Duration| {
            self.plans.iter().map(|plan| part(&plan.deadlines_with(toolset))).max()
        };
        let judging = self.plans.iter().map(|plan| plan.judging_beside());
        let own = self.agent().unwrap_or(first.agent);
        Deadlines {
            command: each(|it| it.command).unwrap_or(first.command),
            set_up: each(|it| it.set_up).unwrap_or(first.set_up),
            verify: each(|it| it.verify).unwrap_or(first.verify),
            agent: judging.fold(own, |sum, it| sum.saturating_add(it.saturating_mul(TURNS + 1))),
            ..first
        }
    }

    /// How long a step waits for its turn to be judged beside the agent's sandbox.
    pub(super) fn patience(&self, step: usize) -> Duration {
        self.plans[step].judging_beside().saturating_mul(TURNS)
    }

    /// The agent's sandbox at the beginning of the first step.
    pub(super) async fn begin(
        &self,
        sandboxes: &Sandboxes,
        deadlines: &Deadlines,
    ) -> Result<Begun, EnvironmentError> {
        // Before anything is made, and then by what its engine has turned out to be.
        self.expect_networks(&sandboxes.pool.backend().capabilities(), sandboxes)?;
        let begun = self.plans[0].begin(sandboxes, deadlines).await?;
        let sandbox: &PooledSandbox = &begun.machine.sandbox;
        // Only what is judged while others come after it is judged in a copy.
        let beside = &self.plans[..self.plans.len() - 1];
        let needs_copies =
            beside.iter().any(|plan| !plan.judges_patch() && !plan.has_own_verifier());
        if needs_copies && !sandbox.capabilities().fork {
            let (backend, what) = (sandboxes.pool.backend().name(), "fork a sandbox".to_owned());
            return Err(at(SetUp)(SandboxError::Unsupported { backend, what }));
        }
        self.expect_networks(&sandbox.capabilities(), sandboxes)?;
        let whole = deadlines.whole_set_up();
        let entered = timeout(whole, async {
            if let Some(check) = &self.whole.health {
                ready(sandbox, check, &self.plans[0].checked(None)).await?;
            }
            self.enter(0, sandbox).await
        });
        in_time(SetUp, whole, entered.await).map_err(at(SetUp))?;
        Ok(begun)
    }

    /// Whether a sandbox can have the networks of all steps in turn.
    fn expect_networks(
        &self,
        can: &Capabilities,
        sandboxes: &Sandboxes,
    ) -> Result<(), EnvironmentError> {
        let networks: Vec<_> = self.plans.iter().map(|plan| plan.network()).collect();
        if networks.windows(2).all(|pair| can.can_change_network(pair[0], pair[1])) {
            return Ok(());
        }
        let backend = sandboxes.pool.backend().name();
        let what = "change the network of a sandbox between steps".to_owned();
        Err(at(SetUp)(SandboxError::Unsupported { backend, what }))
    }

    /// Brings a later step into the agent's sandbox; why what the agent did there keeps it from beginning, if it does.
    pub(super) async fn go_on(
        &self,
        step: usize,
        sandboxes: &Sandboxes,
        sandbox: &PooledSandbox,
    ) -> Result<Result<(), String>, EnvironmentError> {
        let whole = self.plans[step].deadlines.whole_set_up();
        let entered = timeout(whole, async {
            sandbox.set_network(self.plans[step].network()).await?;
            self.enter(step, sandbox).await
        });
        match in_time(SetUp, whole, entered.await) {
            Ok(()) => Ok(Ok(())),
            // A command that set up a sandbox in which nobody had worked would have failed at the first step.
            Err(error @ SandboxError::Setup { .. }) => Ok(Err(error.to_string())),
            Err(error) => {
                let fault = own_fault(sandbox, &sandboxes.pool, SetUp, error).await?;
                Ok(Err(format!("could not {}", fault.text)))
            }
        }
    }

    /// Whether the agent cannot go on in the shell of the step before: it is somebody else, or the variables of
    /// that shell tell of another network.
    pub(super) fn needs_new_shell(&self, step: usize) -> bool {
        let (plan, before) = (&self.plans[step], &self.plans[step - 1]);
        plan.instance().agent_user != before.instance().agent_user
            || plan.network() != before.network()
    }

    /// Has the agent go on in a shell that is the step's; why that cannot be, if it cannot.
    pub(super) async fn open_new_shell(
        &self,
        step: usize,
        sandboxes: &Sandboxes,
        machine: &mut Machine,
    ) -> Result<Result<(), String>, EnvironmentError> {
        let whole = self.plans[step].deadlines.whole_set_up();
        let opened = timeout(whole, machine.reopen(&self.plans[step].shell_options())).await;
        match in_time(SetUp, whole, opened) {
            Ok(()) => Ok(Ok(())),
            Err(error) => {
                let fault = own_fault(&machine.sandbox, &sandboxes.pool, SetUp, error).await?;
                Ok(Err(format!("could not {}", fault.text)))
            }
        }
    }

    async fn enter(&self, step: usize, sandbox: &PooledSandbox) -> Result<(), SandboxError> {
        let Some(stage) = self.stages.get(step) else { return Ok(()) };
        let plan = &self.plans[step];
        hide(sandbox, &stage.files).await?;
        for command in &stage.setup {
            let mut request = ExecRequest::sh(command).with_timeout(plan.set_up_limit());
            request.workdir.clone_from(&plan.instance().workdir);
            request.user.clone_from(&plan.instance().agent_user);
            let done = sandbox.exec(&request).await?;
            expect_success(&done, command)?;
        }
        if let Some(check) = &stage.health {
            let user = plan.instance().agent_user.as_deref();
            ready(sandbox, check, &plan.checked(user)).await?;
        }
        Ok(())
    }

    /// Why no step comes after one that came to this; absent where one may.
    pub(super) fn ends_with(&self, step: usize, verdict: &SweVerdict) -> Option<String> {
        let stage = self.stages.get(step)?;
        if matches!(verdict.outcome, Outcome::Invalid | Outcome::Infrastructure) {
            return Some("it could not be judged".to_owned());
        }
        let in_file = matches!(stage.verification, Some(Verification::RewardFile { .. }));
        if in_file && verdict.rewards.is_empty() {
            return Some("it left no reward".to_owned());
        }
        stage.min_reward.iter().find_map(|(name, least)| {
            let found = match (in_file, name.as_str()) {
                (false, "reward") => Some(verdict.reward),
                _ => verdict.rewards.get(name).copied(),
            };
            let falls_short = found.is_none_or(|found| found < *least);
            falls_short.then(|| match found {
                Some(found) => format!("its `{name}` is {found}, at least {least} is asked for"),
                None => format!("it has no `{name}`, of which at least {least} is asked for"),
            })
        })
    }

    /// What a step's reward adds to the episode's.
    pub(super) fn share(&self, step: usize, reward: f64) -> f64 {
        match self.strategy {
            _ if !self.has_steps() => reward,
            RewardStrategy::Mean => reward / self.plans.len() as f64,
            RewardStrategy::Final if self.is_last(step) => reward,
            RewardStrategy::Final => 0.0,
        }
    }

    /// What all steps came to that were reached; `stopped` tells why none came after them.
    pub(super) fn verdict(&self, steps: &[SweVerdict], stopped: Option<&str>) -> SweVerdict {
        let last = steps.last().expect("one step is always judged");
        if !self.has_steps() {
            return last.clone();
        }
        // As one sum and one quotient, so that all of them come to exactly 1.
        let reward = match self.strategy {
            RewardStrategy::Mean => {
                steps.iter().map(|step| step.reward).sum::<f64>() / self.plans.len() as f64
            }
            RewardStrategy::Final if steps.len() == self.plans.len() => last.reward,
            RewardStrategy::Final => 0.0,
        };
        let is_infrastructure = |step: &SweVerdict| step.outcome == Outcome::Infrastructure;
        let outcome = match last.outcome {
            _ if steps.iter().any(is_infrastructure) => Outcome::Infrastructure,
            _ if reward >= 1.0 => Outcome::Resolved,
            _ if reward > 0.0 => Outcome::Partial,
            Outcome::Invalid => Outcome::Invalid,
            _ => Outcome::Failed,
        };
        let mut reason = String::new();
        if outcome != Outcome::Resolved {
            let (all, reached) = (self.plans.len(), steps.len());
            let good = steps.iter().filter(|step| step.outcome == Outcome::Resolved).count();
            reason = format!("{good} of {all} steps are resolved, {reached} were reached");
            for said in [stopped.unwrap_or_default(), &last.reason] {
                if !said.is_empty() {
                    reason += &format!("; `{}`: {said}", self.stages[reached - 1].name);
                }
            }
        }
        let mut whole = SweVerdict::without_run(&self.whole.id, outcome, reason);
        whole.reward = reward;
        whole.patch.clone_from(&last.patch);
        whole.edition = last.edition;
        let named = self.stages.iter().zip(steps);
        whole.steps = named
            .map(|(stage, step)| StepVerdict { name: stage.name.clone(), verdict: step.clone() })
            .collect();
        whole
    }
}

impl Plan {
    /// How a check of its sandbox is run.
    fn checked<'a>(&'a self, user: Option<&'a str>) -> Checked<'a> {
        let workdir = self.instance().workdir.as_deref();
        Checked { workdir, user, limit: self.set_up_limit() }
    }

    /// The longest that judging a step takes while the agent's sandbox goes on: with a second look at its tests.
    fn judging_beside(&self) -> Duration {
        let Deadlines { create, .. } = self.deadlines;
        let gathering = gathering(self.instance());
        let once = create + self.deadlines.whole_set_up() + self.tests() + gathering + 3 * PATCHING;
        once.saturating_mul(2)
    }
}
