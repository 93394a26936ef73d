//! The environment of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, Seed, Step, ToolSpec, Verdict};
use spar_sandbox::Sandbox;
use spar_swe::Instance;
use spar_swe::grade::Outcome;
use spar_tasks::{SweTask, Task};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::gold::{breaking, solution};
use super::grader::{grade_in_place, grade_patch};
use super::guard::{Flag, flags};
use super::patch::{Taken, take};
use super::place::{Begun, PATCHING, Plan};
use super::repository::Repository;
use super::verdict::SweVerdict;
use crate::SandboxPhase::Verify;
use crate::aside::aside;
use crate::terminal::SUBMIT;
use crate::terminal::course::{Asked, Course, as_results};
use crate::terminal::environment::{offered, tool_action};
use crate::terminal::machine::{Machine, at, in_time, own_fault};
use crate::toolsets::{Briefing, Hands, ToolsetChoice};
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
pub struct Swe {
    plan: Arc<Plan>,
    sandboxes: Sandboxes,
    uses_tools: bool,
    /// What is worked with in the place of its shell.
    toolset: Option<ToolsetChoice>,
    episode: Option<Episode>,
}

struct Episode {
    /// Absent until something has to be done in it.
    place: Option<SharedPlace>,
    course: Course,
    /// What of its commands readers should look at, by the number of the first such command.
    flags: BTreeMap<Flag, usize>,
}

type SharedPlace = Arc<Mutex<Place>>;

/// The agent's sandbox, until it is judged.
struct Place {
    machine: Machine,
    repository: Option<Repository>,
    /// The patch that the agent has written out itself.
    handed_in: Option<String>,
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
        let plan = Plan::of(found, &sandboxes).map_err(|problems| refuse(problems.join("; ")))?;
        Ok(Self {
            plan: Arc::new(plan),
            sandboxes,
            uses_tools: false,
            toolset: None,
            episode: None,
        })
    }

    /// The repository of a task, by its parameters alone.
    pub(crate) fn repository(task: &Task) -> Option<String> {
        task.parameters.get("instance")?.get("repo")?.as_str().map(str::to_owned)
    }

    fn begun(&mut self, call: &'static str) -> Result<&mut Episode, EnvironmentError> {
        self.episode.as_mut().ok_or(EnvironmentError::Misused { call, when: "before reset" })
    }

    /// The sandbox, which is brought up where it is not there yet.
    async fn place(&mut self, call: &'static str) -> Result<SharedPlace, EnvironmentError> {
        if let Some(place) = &self.begun(call)?.place {
            return Ok(Arc::clone(place));
        }
        let (plan, sandboxes) = (Arc::clone(&self.plan), self.sandboxes.clone());
        let deadlines = plan.deadlines_with(self.toolset.as_ref());
        let Begun { machine, repository } =
            aside(async move { plan.begin(&sandboxes, &deadlines).await }).await?;
        let hands = self.toolset.as_ref().map(|toolset| {
            let instance = self.plan.instance();
            let session = toolset.toolset().begin();
            Hands::new(session, workdir(instance), instance.agent_user.clone())
        });
        let machine = machine.with_hands(hands);
        let place = Arc::new(Mutex::new(Place { machine, repository, handed_in: None }));
        self.begun(call)?.place = Some(Arc::clone(&place));
        Ok(place)
    }

    async fn carry_out(&mut self, action: &str) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let action = action.trim();
        let is_expected = self.next_of_solution().as_deref().map(str::trim) == Some(action);
        let shown = if action == SUBMIT {
            self.begun("step")?.course.submit()
        } else {
            let place = self.place("step").await?;
            let (command, deadlines) = (action.to_owned(), self.plan.deadlines);
            let ran =
                aside(async move { place.lock().await.machine.run(&command, &deadlines).await });
            let ran = ran.await?;
            self.begun("step")?.course.shown(ran, deadlines.command)
        };
        let episode = self.begun("step")?;
        let step = episode.course.carried_out(action, shown, is_expected, start.elapsed());
        for flag in flags(action) {
            episode.flags.entry(flag).or_insert(episode.course.num_commands);
        }
        Ok(step)
    }

    /// Carries out an action with the toolset.
    async fn work(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let is_expected = self.oracle_action().is_some_and(|next| next.key() == action.key());
        let place = self.place("step").await?;
        let (asked, deadlines) = (action.clone(), self.plan.deadlines_with(self.toolset.as_ref()));
        let worked = aside(async move {
            let mut place = place.lock().await;
            let worked = place.machine.work(&asked, &deadlines).await?;
            place.handed_in = worked.acted.submission.as_ref().and_then(|it| it.patch.clone());
            Ok::<_, EnvironmentError>(worked)
        });
        let worked = worked.await?;
        let episode = self.begun("step")?;
        let step = episode.course.worked(action, worked, is_expected, start.elapsed());
        for flag in flags(&action.key()) {
            episode.flags.entry(flag).or_insert(episode.course.num_commands);
        }
        Ok(step)
    }

    /// What remains of the solution, while nothing else was done.
    fn next_of_solution(&self) -> Option<String> {
        let episode = self.episode.as_ref().filter(|episode| !episode.course.is_over)?;
        match episode.course.solved? {
            0 => solution(self.plan.instance()),
            _ => solution(self.plan.instance()).map(|_| SUBMIT.to_owned()),
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

/// Grades what the agent left behind.
async fn judge(
    plan: &Plan,
    sandboxes: &Sandboxes,
    place: &mut Place,
) -> Result<SweVerdict, EnvironmentError> {
    let id = &plan.instance().id;
    let Place { machine, repository, handed_in } = place;
    let sandbox = Arc::clone(&machine.sandbox);
    let failed = |reason: String| SweVerdict::without_run(id, Outcome::Failed, reason);
    let whole = plan.deadlines.whole_verify();
    // 1. Nothing of the agent runs from here on, or nothing is judged.
    let ended = timeout(whole, sandbox.end_all()).await;
    if let Err(error) = in_time(Verify, whole, ended) {
        let fault = own_fault(&sandbox, &sandboxes.pool, Verify, error).await?;
        return Ok(failed(format!("it left nothing that can be judged: could not {}", fault.text)));
    }
    let Some(repository) = repository else {
        let graded = timeout(whole, grade_in_place(plan, &sandbox)).await;
        return match in_time(Verify, whole, graded) {
            Ok(verdict) => Ok(verdict),
            Err(error) => {
                let fault = own_fault(&sandbox, &sandboxes.pool, Verify, error).await?;
                Ok(failed(format!("it left nothing that can be judged: could not {}", fault.text)))
            }
        };
    };
    // 2. The patch is all that leaves its sandbox, which is given back: episodes that each hold one must not wait for each
    //    other.
    let limit = plan.task.patch_limit_bytes;
    let taken = match handed_in.take() {
        Some(patch) => Ok(Ok(Taken::of(patch.into_bytes(), limit))),
        None => timeout(whole, take(&*sandbox, repository, limit, PATCHING)).await,
    };
    let taken = match in_time(Verify, whole, taken) {
        Ok(taken) => taken,
        Err(error) => {
            let fault = own_fault(&sandbox, &sandboxes.pool, Verify, error).await?;
            Taken::Unfit(format!("it left no patch: could not {}", fault.text))
        }
    };
    sandbox.close().await.map_err(at(Verify))?;
    match taken {
        Taken::Unfit(reason) => Ok(failed(reason)),
        // 3. Tests run where the agent never was.
        Taken::Patch(patch) => grade_patch(plan, sandboxes, &patch).await,
    }
}

/// Where shells of the agent begin.
fn workdir(instance: &Instance) -> &str {
    instance.workdir.as_deref().unwrap_or("/")
}

/// The task in words.
fn statement(plan: &Plan) -> String {
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
    text
}

/// The first message.
fn opening(plan: &Plan) -> String {
    let text = statement(plan);
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
        TimeRules {
            task: self.plan.instance().limits.agent_secs.map(Duration::from_secs),
            command: Some(self.plan.deadlines_with(self.toolset.as_ref()).command),
            // A toolset that looks at the machine first has it brought up by then.
            reset: self
                .toolset
                .as_ref()
                .filter(|toolset| toolset.toolset().looks_first())
                .map(|_| self.plan.deadlines.create + self.plan.deadlines.whole_set_up()),
            ..TimeRules::default()
        }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let text = match &self.toolset {
            Some(toolset) => toolset.toolset().opening(&Briefing {
                task: &statement(&self.plan),
                workdir: workdir(self.plan.instance()),
                is_repository: self.plan.judges_patch(),
                command_secs: self.plan.deadlines_with(Some(toolset)).command.as_secs(),
            }),
            None => opening(&self.plan),
        };
        let mut text = text;
        let mut place = None;
        if self.toolset.as_ref().is_some_and(|toolset| toolset.toolset().looks_first()) {
            let course = Course::begin("");
            self.episode = Some(Episode { place: None, course, flags: BTreeMap::new() });
            let begun = self.place("reset").await?;
            place = Some(Arc::clone(&begun));
            let plan = Arc::clone(&self.plan);
            let deadlines = plan.deadlines_with(self.toolset.as_ref());
            let opened = aside(async move {
                let task = statement(&plan);
                let briefing = Briefing {
                    task: &task,
                    workdir: workdir(plan.instance()),
                    is_repository: plan.judges_patch(),
                    command_secs: deadlines.command.as_secs(),
                };
                begun.lock().await.machine.open(&briefing, &deadlines).await
            });
            text = opened.await?.map_err(|reason| EnvironmentError::Toolset { reason })?;
        }
        let course = Course::begin(&text);
        let state_key = course.state_key.clone();
        self.episode = Some(Episode { place, course, flags: BTreeMap::new() });
        let instruction = Some(self.plan.instance().issue.problem.as_str().into());
        Ok(Observation { text, instruction, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.place("prepare").await.map(drop)
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
                self.toolset.as_ref().map_or_else(offered, |toolset| toolset.toolset().tools())
            }
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        if self.begun("step")?.course.is_over {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        }
        if self.toolset.is_some() {
            return self.work(action).await;
        }
        let calls = action.tool_calls();
        match Asked::of(action, self.uses_tools) {
            Asked::Command(command) => Ok(as_results(self.carry_out(&command).await?, calls)),
            Asked::Nothing(why) => Ok(self.begun("step")?.course.nothing_done(&why, calls)),
        }
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let place = self.place("verify").await?;
        self.begun("verify")?.course.is_over = true;
        let (plan, sandboxes) = (Arc::clone(&self.plan), self.sandboxes.clone());
        let judged = aside(async move { judge(&plan, &sandboxes, &mut *place.lock().await).await });
        let mut judged = judged.await?;
        let episode = self.begun("verify")?;
        (judged.flags, judged.submitted) = (episode.flags.clone(), episode.course.is_submitted);
        Ok(Some(judged.into_verdict()))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let mut fork = Self {
            plan: Arc::clone(&self.plan),
            sandboxes: self.sandboxes.clone(),
            uses_tools: self.uses_tools,
            toolset: self.toolset.clone(),
            episode: None,
        };
        if let Some(episode) = &self.episode {
            let place = match &episode.place {
                // A new sandbox is as good where nothing was done.
                Some(place) if episode.course.num_commands > 0 => {
                    let (place, options) = (Arc::clone(place), self.plan.shell_options());
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
            let course = episode.course.clone();
            let flags = episode.flags.clone();
            fork.episode = Some(Episode { place, course, flags });
        }
        Ok(Some(Box::new(fork)))
    }

    fn oracle_action(&self) -> Option<Action> {
        Some(self.action(&self.next_of_solution()?))
    }

    fn breaking_actions(&self) -> Vec<Action> {
        let command = breaking(self.plan.instance());
        command
            .into_iter()
            .flat_map(|command| [self.action(&command), self.action(SUBMIT)])
            .collect()
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(place) = self.episode.take().and_then(|episode| episode.place) else {
            return Ok(());
        };
        // A command that was given up lets go of it in a moment.
        place.lock().await.machine.close().await
    }
}
