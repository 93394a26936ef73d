//! The environment of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolSpec, Verdict};
use spar_swe::grade::Outcome;
use spar_swe::{Gold, Instance, McpServer};
use spar_tasks::{SweTask, Task};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::attempt::{Place, SharedPlace, judge, judge_beside};
use super::gold::{breaking, solution};
use super::grader::grade_patch;
use super::guard::{Flag, flags};
use super::patch::ended;
use super::place::{Begun, Plan};
use super::schedule::Schedule;
use super::servers::{Servers, in_words};
use super::verdict::SweVerdict;
use crate::aside::aside;
use crate::terminal::course::{Asked, Course, as_results};
use crate::terminal::environment::{offered, tool_action};
use crate::terminal::{Deadlines, SUBMIT};
use crate::toolsets::{Acted, Briefing, Hands, Submission, ToolsetChoice, Worked};
use crate::{Environment, EnvironmentError, Resources, Sandboxes, TimeRules};

/// An issue of a repository, resolved at a shell and judged by hidden tests.
///
/// Parameters: those of a [`SweTask`]. Every action is a command, `submit` ends the task; where tools are used, these are the
/// tools `shell` (`command`) and `submit`. The working directory and variables last from one command to the next. The
/// repository has one commit and no other history, and the tests that judge are not there.
///
/// When the episode is over, whether the agent submitted or ran into a limit, what it did becomes a patch, which is applied
/// in a sandbox of its own and tested there. The reward part `resolved` is 1 where all tests did as they should, or the
/// fraction that the format grades by; all else that is known is in the [`SweVerdict`] among the verdict's artifacts. Tasks
/// without a repository are judged in the agent's sandbox.
///
/// A task may have several steps in one sandbox that goes on: what follows a step's `submit` is the next instruction. Each is
/// judged when it is submitted, beside the agent's sandbox, and pays its part of the reward at once, as `steps`.
pub struct Swe {
    schedule: Arc<Schedule>,
    sandboxes: Sandboxes,
    uses_tools: bool,
    /// What is worked with in the place of its shell.
    toolset: Option<ToolsetChoice>,
    episode: Option<Episode>,
}

struct Episode {
    /// Absent until something has to be done in it.
    place: Option<SharedPlace>,
    /// The task's own, where their tools are called.
    servers: Option<Servers>,
    course: Course,
    /// What of its commands readers should look at, by the number of the first such command.
    flags: BTreeMap<Flag, usize>,
    /// The step under way, from 0.
    step: usize,
    /// What those came to that were judged.
    judged: Vec<SweVerdict>,
    /// What of their rewards no step has paid yet.
    owed: f64,
    /// Why no step comes after these, where one would.
    stopped: Option<String>,
    /// When the step began.
    began: Instant,
    /// The time that judging took, which is not the agent's.
    judging: Duration,
}

impl Episode {
    fn begin(place: Option<SharedPlace>, text: &str) -> Self {
        Self {
            place,
            servers: None,
            course: Course::begin(text),
            flags: BTreeMap::new(),
            step: 0,
            judged: Vec::new(),
            owed: 0.0,
            stopped: None,
            began: Instant::now(),
            judging: Duration::ZERO,
        }
    }
}

impl Swe {
    pub(crate) const NAME: &str = "swe";

    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, or the instance asks for something that is
    /// not played; [`EnvironmentError::NoSandboxes`].
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let found = SweTask::deserialize(&task.parameters).map_err(|e| refuse(e.to_string()))?;
        let sandboxes = resources.sandboxes(Self::NAME)?.clone();
        let schedule = Schedule::of(found, &sandboxes);
        let schedule = schedule.map_err(|problems| refuse(problems.join("; ")))?;
        Ok(Self {
            schedule: Arc::new(schedule),
            sandboxes,
            uses_tools: false,
            toolset: None,
            episode: None,
        })
    }

    /// Grades a patch that somebody has written elsewhere, as one of an agent is: applied and tested in a fresh sandbox. An
    /// empty one resolves nothing, and no test runs for it.
    ///
    /// # Errors
    ///
    /// Those of [`Swe::open`], also where the task is not judged by one patch; those of the sandbox.
    pub async fn grade(
        task: &Task,
        resources: &Resources,
        patch: &str,
    ) -> Result<SweVerdict, EnvironmentError> {
        let Self { schedule, sandboxes, .. } = Self::open(task, resources)?;
        let plan = Arc::clone(schedule.plan(0));
        if schedule.has_steps() || !plan.judges_patch() {
            let detail = "it is not judged by one patch".to_owned();
            let (task, environment) = (task.id.clone(), Self::NAME);
            return Err(EnvironmentError::Parameters { task, environment, detail });
        }
        if patch.trim().is_empty() {
            let id = &plan.instance().id;
            let mut verdict = SweVerdict::without_run(id, Outcome::Failed, "the patch is empty");
            verdict.patch = Some(String::new());
            return Ok(verdict);
        }
        let patch = ended(patch);
        aside(async move { grade_patch(&plan, &sandboxes, &patch).await }).await
    }

    /// The repository of a task, by its parameters alone.
    pub(crate) fn repository(task: &Task) -> Option<String> {
        task.parameters.get("instance")?.get("repo")?.as_str().map(str::to_owned)
    }

    /// The plan of the step under way.
    fn plan(&self) -> &Arc<Plan> {
        self.schedule.plan(self.episode.as_ref().map_or(0, |episode| episode.step))
    }

    /// What is left of the time that the rules give the step under way, where they give some.
    fn left(&self) -> Option<Duration> {
        let episode = self.episode.as_ref()?;
        let limit = self.schedule.agent_in(episode.step)?;
        Some(limit.saturating_sub(episode.began.elapsed()))
    }

    /// How long each part may take now.
    fn deadlines(&self) -> Deadlines {
        let deadlines = self.plan().deadlines_with(self.toolset.as_ref());
        let command = self.left().map_or(deadlines.command, |left| {
            // A command has a moment at least.
            deadlines.command.min(left.max(Duration::from_secs(1)))
        });
        Deadlines { command, ..deadlines }
    }

    fn begun(&mut self, call: &'static str) -> Result<&mut Episode, EnvironmentError> {
        self.episode.as_mut().ok_or(EnvironmentError::Misused { call, when: "before reset" })
    }

    /// The sandbox, which is brought up where it is not there yet.
    async fn place(&mut self, call: &'static str) -> Result<SharedPlace, EnvironmentError> {
        if let Some(place) = &self.begun(call)?.place {
            return Ok(Arc::clone(place));
        }
        let (schedule, sandboxes) = (Arc::clone(&self.schedule), self.sandboxes.clone());
        let deadlines = schedule.deadlines_with(self.toolset.as_ref());
        let Begun { machine, repository } =
            aside(async move { schedule.begin(&sandboxes, &deadlines).await }).await?;
        let machine = machine.with_hands(self.hands());
        if self.offers_servers() {
            let (plan, sandbox) = (Arc::clone(self.plan()), Arc::clone(&machine.sandbox));
            let limit = self.plan().deadlines.command;
            let servers =
                aside(async move { Servers::start(&plan, &sandbox, limit).await }).await?;
            self.begun(call)?.servers = Some(servers);
        }
        let place = Arc::new(Mutex::new(Place { machine, repository, handed_in: None }));
        self.begun(call)?.place = Some(Arc::clone(&place));
        Ok(place)
    }

    /// Whether tools of the task's servers are called as those of the shell are. With a toolset, and where no tools are called,
    /// the agent is told of them and reaches them by itself.
    fn offers_servers(&self) -> bool {
        let has_some = !self.schedule.whole().mcp_servers.is_empty();
        has_some && self.uses_tools && self.toolset.is_none()
    }

    /// Calls a tool of one of the task's servers.
    async fn call_server(
        &mut self,
        action: &Action,
        call: &ToolCall,
        own_name: String,
    ) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let episode = self.begun("step")?;
        let servers = episode.servers.as_mut().expect("it has the tool that is called");
        let result = servers.call(call, own_name).await?;
        let is_valid = !result.is_error;
        let (results, text) = (vec![result], String::new());
        let acted = Acted { results, text, is_valid, submission: None };
        let worked = Worked { acted, is_lost: false };
        Ok(episode.course.worked(action, worked, false, start.elapsed()))
    }

    /// A toolset that has not been worked with yet.
    fn hands(&self) -> Option<Hands> {
        self.toolset.as_ref().map(|toolset| {
            let instance = self.plan().instance();
            let session = toolset.toolset().begin();
            Hands::new(session, workdir(instance), instance.agent_user.clone())
        })
    }

    async fn carry_out(&mut self, action: &str) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let action = action.trim();
        let is_expected = self.next_of_solution().as_deref().map(str::trim) == Some(action);
        let shown = if action == SUBMIT {
            self.begun("step")?.course.submit()
        } else {
            let place = self.place("step").await?;
            let (command, deadlines) = (action.to_owned(), self.deadlines());
            let ran =
                aside(async move { place.lock().await.machine.run(&command, &deadlines).await });
            let ran = ran.await?;
            // What is left of a step's time differs from run to run: all of it is told.
            let own = self.plan().deadlines.command;
            let step = self.begun("step")?.step;
            let limit = match deadlines.command < own {
                true => self.schedule.agent_in(step).unwrap_or(own),
                false => own,
            };
            self.begun("step")?.course.shown(ran, limit)
        };
        let episode = self.begun("step")?;
        let mut step = episode.course.carried_out(action, shown, is_expected, start.elapsed());
        for flag in flags(action) {
            episode.flags.entry(flag).or_insert(episode.course.num_commands);
        }
        self.proceed(&mut step).await?;
        Ok(step)
    }

    /// Carries out an action with the toolset.
    async fn work(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let is_expected = self.oracle_action().is_some_and(|next| next.key() == action.key());
        let place = self.place("step").await?;
        let (asked, deadlines) = (action.clone(), self.deadlines());
        let worked = aside(async move {
            let mut place = place.lock().await;
            let worked = place.machine.work(&asked, &deadlines).await?;
            place.handed_in = worked.acted.submission.as_ref().and_then(|it| it.patch.clone());
            Ok::<_, EnvironmentError>(worked)
        });
        let worked = worked.await?;
        let episode = self.begun("step")?;
        let mut step = episode.course.worked(action, worked, is_expected, start.elapsed());
        for flag in flags(&action.key()) {
            episode.flags.entry(flag).or_insert(episode.course.num_commands);
        }
        self.proceed(&mut step).await?;
        Ok(step)
    }

    /// The answer to an action that came when the time of its step was over: the step is judged as it is.
    async fn too_late(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let text = "The time for this was over before that, and it was not done.";
        let acted = Acted { is_valid: true, ..Acted::refused(action.tool_calls(), text) };
        let worked = Worked { acted: acted.submitted(Submission::default()), is_lost: false };
        let course = &mut self.begun("step")?.course;
        let mut step = course.worked(action, worked, false, Duration::ZERO);
        self.proceed(&mut step).await?;
        Ok(step)
    }

    /// Judges a step that was submitted where others come after it, and goes on with the next.
    async fn proceed(&mut self, step: &mut Step) -> Result<(), EnvironmentError> {
        let schedule = Arc::clone(&self.schedule);
        let episode = self.begun("step")?;
        let number = episode.step;
        if !episode.course.is_submitted || schedule.is_last(number) {
            return Ok(());
        }
        let started = Instant::now();
        let place = self.place("step").await?;
        // 1. What it came to, at once.
        let (plan, sandboxes) = (Arc::clone(self.plan()), self.sandboxes.clone());
        let (patience, judged_place) = (schedule.patience(number), Arc::clone(&place));
        let verdict = aside(async move {
            judge_beside(&plan, &sandboxes, patience, &mut *judged_place.lock().await).await
        });
        let verdict = verdict.await?;
        let mut stopped = schedule.ends_with(number, &verdict);
        let episode = self.begun("step")?;
        // Whoever gives up waiting for what follows is paid at the end.
        episode.owed = schedule.share(number, verdict.reward);
        episode.judged.push(verdict);
        // 2. The next one, where this one was good enough and it can begin.
        if stopped.is_none() {
            let (next, sandboxes) = (Arc::clone(&schedule), self.sandboxes.clone());
            let entered_place = Arc::clone(&place);
            let entered = aside(async move {
                let place = entered_place.lock().await;
                next.go_on(number + 1, &sandboxes, &place.machine.sandbox).await
            });
            stopped = entered.await?.err().map(|why| format!("the next cannot begin: {why}"));
        }
        if stopped.is_none() && schedule.needs_new_shell(number + 1) {
            let (next, sandboxes) = (Arc::clone(&schedule), self.sandboxes.clone());
            let opened_place = Arc::clone(&place);
            let opened = aside(async move {
                next.open_new_shell(number + 1, &sandboxes, &mut opened_place.lock().await.machine)
                    .await
            });
            stopped = opened.await?.err().map(|why| format!("the next cannot begin: {why}"));
        }
        let mut text = String::new();
        if stopped.is_none() {
            let episode = self.begun("step")?;
            (episode.step, episode.began) = (number + 1, Instant::now());
            let hands = self.hands();
            {
                let mut place = place.lock().await;
                place.machine.take_up(hands);
                place.handed_in = None;
            }
            text = self.opening(Some(&place)).await?;
        }
        let episode = self.begun("step")?;
        if stopped.is_none() {
            episode.course.go_on(step, &text);
        }
        let value = std::mem::take(&mut episode.owed);
        if value > 0.0 {
            step.rewards.push(RewardPart { name: SweVerdict::STEPS.to_owned(), value });
        }
        episode.stopped = stopped;
        episode.judging += started.elapsed();
        episode.began = Instant::now();
        step.wall_time += started.elapsed();
        Ok(())
    }

    /// What a step of the task begins with: the words of the toolset, which may look at the machine first, or of the
    /// environment.
    async fn opening(&mut self, place: Option<&SharedPlace>) -> Result<String, EnvironmentError> {
        let plan = Arc::clone(self.plan());
        let step = self.episode.as_ref().map_or(0, |episode| episode.step);
        let deadlines = plan.deadlines_with(self.toolset.as_ref());
        let command = self
            .schedule
            .agent_in(step)
            .map_or(deadlines.command, |all| deadlines.command.min(all));
        let deadlines = Deadlines { command, ..deadlines };
        let servers = match self.offers_servers() {
            true => &[][..],
            false => &self.schedule.whole().mcp_servers,
        };
        let Some(toolset) = &self.toolset else { return Ok(opening(&plan, servers)) };
        let task = statement(&plan, servers);
        let (toolset, place) = (toolset.clone(), place.map(Arc::clone));
        let opened = aside(async move {
            let briefing = Briefing {
                task: &task,
                workdir: workdir(plan.instance()),
                is_repository: plan.judges_patch(),
                command_secs: deadlines.command.as_secs(),
            };
            match place.filter(|_| toolset.toolset().looks_first()) {
                Some(place) => place.lock().await.machine.open(&briefing, &deadlines).await,
                None => Ok(Ok(toolset.toolset().opening(&briefing))),
            }
        });
        opened.await?.map_err(|reason| EnvironmentError::Toolset { reason })
    }

    /// What remains of the solution, while nothing else was done.
    fn next_of_solution(&self) -> Option<String> {
        let episode = self.episode.as_ref().filter(|episode| !episode.course.is_over)?;
        let gold = self.schedule.gold(episode.step)?;
        let solution = solution(gold, &self.schedule.whole().gold_env);
        match episode.course.solved? {
            0 => solution,
            _ => solution.map(|_| SUBMIT.to_owned()),
        }
    }

    fn action(&self, command: &str) -> Action {
        if let Some(toolset) = &self.toolset {
            let toolset = toolset.toolset();
            return if command == SUBMIT { toolset.submit() } else { toolset.command(command) };
        }
        if self.uses_tools { tool_action(command) } else { command.into() }
    }
}

/// Where shells of the agent begin.
fn workdir(instance: &Instance) -> &str {
    instance.workdir.as_deref().unwrap_or("/")
}

/// The task in words.
fn statement(plan: &Plan, servers: &[McpServer]) -> String {
    let issue = &plan.instance().issue;
    let mut text = issue.problem.trim_end().to_owned();
    for (heading, part) in [
        ("What the solution has to do", issue.requirements.as_ref()),
        ("Names and signatures that are expected", issue.interface.as_ref()),
        ("Hints", issue.hints.as_ref().filter(|_| plan.task.hints)),
    ] {
        if let Some(part) = part.filter(|part| !part.trim().is_empty()) {
            text += &format!("\n\n{heading}:\n\n{}", part.trim_end());
        }
    }
    for image in &issue.images {
        text += &format!("\n\nImage: {}", image.url);
    }
    if !servers.is_empty() {
        text += in_words(servers).trim_end();
    }
    text
}

/// The first message.
fn opening(plan: &Plan, servers: &[McpServer]) -> String {
    let text = statement(plan, servers);
    let place = match &plan.instance().workdir {
        Some(workdir) if plan.judges_patch() => format!("The repository is in {workdir}. "),
        Some(workdir) => format!("You are in {workdir}. "),
        None => String::new(),
    };
    let whole = plan.instance().limits.agent_secs;
    let whole = whole.map(|seconds| format!(", all of them {seconds} s")).unwrap_or_default();
    let seconds = plan.deadlines.command.as_secs();
    format!("{text}\n\n{place}A command may take {seconds} s{whole}; {SUBMIT} ends the task.")
}

#[async_trait]
impl Environment for Swe {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn time_rules(&self) -> TimeRules {
        let judging = self.episode.as_ref().map_or(Duration::ZERO, |episode| episode.judging);
        let toolset = self.toolset.as_ref();
        let deadlines = self.schedule.deadlines_with(toolset);
        TimeRules {
            task: self.schedule.agent().map(|time| time.saturating_add(judging)),
            command: Some(deadlines.command),
            // A toolset that looks at the machine first has it brought up by then.
            reset: toolset
                .filter(|toolset| toolset.toolset().looks_first())
                .map(|_| deadlines.create + deadlines.whole_set_up()),
            ..TimeRules::default()
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let mut place = None;
        if self.toolset.as_ref().is_some_and(|toolset| toolset.toolset().looks_first()) {
            self.episode = Some(Episode::begin(None, ""));
            place = Some(self.place("reset").await?);
        }
        let text = self.opening(place.as_ref()).await?;
        let episode = Episode::begin(place, &text);
        let state_key = episode.course.state_key.clone();
        self.episode = Some(episode);
        let instruction = Some(self.plan().instance().issue.problem.as_str().into());
        Ok(Observation { text, instruction, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.place("prepare").await?;
        let episode = self.begun("prepare")?;
        if episode.course.num_commands == 0 {
            // How long its sandbox took to be there is not the first step's time.
            episode.began = Instant::now();
        }
        Ok(())
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        self.toolset = Some(toolset.clone());
        true
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match &self.episode {
            Some(episode) if self.uses_tools && !episode.course.is_over => {
                match (&self.toolset, &episode.servers) {
                    (Some(toolset), _) => toolset.toolset().tools(),
                    (None, Some(servers)) => servers.offered(),
                    (None, None) => offered(),
                }
            }
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        if self.begun("step")?.course.is_over {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        if self.left().is_some_and(|left| left.is_zero()) {
            return self.too_late(action).await;
        }
        if self.toolset.is_some() {
            return self.work(action).await;
        }
        let calls = action.tool_calls();
        let servers = self.episode.as_ref().and_then(|episode| episode.servers.as_ref());
        if let ([call], Some(servers)) = (calls, servers)
            && let Some(own_name) = servers.own_name(&call.name)
        {
            return self.call_server(action, call, own_name).await;
        }
        match Asked::of(action, self.uses_tools) {
            Asked::Command(command) => Ok(as_results(self.carry_out(&command).await?, calls)),
            Asked::Nothing(why) => Ok(self.begun("step")?.course.nothing_done(&why, calls)),
        }
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let schedule = Arc::clone(&self.schedule);
        self.begun("verify")?.course.is_over = true;
        let mut due = self.begun("verify")?.owed;
        let number = self.begun("verify")?.step;
        if self.begun("verify")?.judged.len() <= number {
            let place = self.place("verify").await?;
            let (plan, sandboxes) = (Arc::clone(self.plan()), self.sandboxes.clone());
            let judged =
                aside(async move { judge(&plan, &sandboxes, &mut *place.lock().await).await });
            let judged = judged.await?;
            due += schedule.share(number, judged.reward);
            self.begun("verify")?.judged.push(judged);
        }
        let episode = self.begun("verify")?;
        let mut whole = schedule.verdict(&episode.judged, episode.stopped.as_deref());
        (whole.flags, whole.submitted) = (episode.flags.clone(), episode.course.is_submitted);
        Ok(Some(whole.into_verdict_with(due)))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let mut fork = Self {
            schedule: Arc::clone(&self.schedule),
            sandboxes: self.sandboxes.clone(),
            uses_tools: self.uses_tools,
            toolset: self.toolset.clone(),
            episode: None,
        };
        let options = self.plan().shell_options();
        // Servers can be handed to another thread, but not be looked at from two.
        if let Some(episode) = self.episode.as_mut() {
            let place = match &episode.place {
                // A new sandbox is as good where nothing was done.
                // What servers remember is not copied: they are brought there by the same actions.
                Some(_) if episode.course.num_commands > 0 && episode.servers.is_some() => {
                    return Ok(None);
                }
                Some(place) if episode.course.num_commands > 0 => {
                    let place = Arc::clone(place);
                    let forked = aside(async move {
                        let mut place = place.lock().await;
                        let repository = place.repository.clone();
                        let handed_in = place.handed_in.clone();
                        let machine = place.machine.fork_with(options).await?;
                        let forked =
                            machine.map(|machine| Place { machine, repository, handed_in });
                        Ok::<_, EnvironmentError>(forked)
                    });
                    let Some(forked) = forked.await? else { return Ok(None) };
                    Some(Arc::new(Mutex::new(forked)))
                }
                _ => None,
            };
            fork.episode = Some(Episode {
                place,
                servers: None,
                course: episode.course.clone(),
                flags: episode.flags.clone(),
                step: episode.step,
                judged: episode.judged.clone(),
                owed: episode.owed,
                stopped: episode.stopped.clone(),
                began: episode.began,
                judging: episode.judging,
            });
        }
        Ok(Some(Box::new(fork)))
    }

    fn oracle_action(&self) -> Option<Action> {
        Some(self.action(&self.next_of_solution()?))
    }

    fn breaking_actions(&self) -> Vec<Action> {
        let whole = self.schedule.whole();
        let golds: Vec<&Gold> = whole.gold.iter().chain(self.schedule.gold(0)).collect();
        let Some(command) = golds.into_iter().find_map(breaking) else { return Vec::new() };
        let mut actions = vec![self.action(&command)];
        actions.extend((0..whole.stages.len().max(1)).map(|_| self.action(SUBMIT)));
        actions
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(Episode { place, servers, .. }) = self.episode.take() else { return Ok(()) };
        if let Some(mut servers) = servers
            && let Err(error) = servers.close().await
        {
            tracing::warn!(%error, "could not close servers of tools");
        }
        let Some(place) = place else { return Ok(()) };
        // A command that was given up lets go of it in a moment.
        place.lock().await.machine.close().await
    }
}
