//! A task of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, Seed, Step, ToolResult, ToolSpec};
use spar_ors::{OrsContent, OrsSession, OrsTaskChoice};
use spar_tasks::{OrsSuite, OrsTask, Task};
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use super::servers::SharedServer;
use super::session_tool::{SessionTool, SharedScore, with_score};
use crate::tools::{OpenedTool, ToolLimits, Toolbox};
use crate::{Environment, EnvironmentError, Resources, TimeRules};

/// A task of a server of the Open Reward Standard.
///
/// Parameters: those of an [`OrsTask`]. The prompt is the first observation, the tools are the server's; what calls are told to
/// have earned are the rewards, `task` by name. An episode that the server says is finished is a success where it has
/// earned `success_reward`. The seed of an episode changes nothing, since the standard knows none.
pub struct Ors {
    setting: Arc<Setting>,
    episode: Option<Episode>,
}

/// What the episodes of a task have in common.
struct Setting {
    choice: OrsTaskChoice,
    server: Arc<SharedServer>,
    limits: ToolLimits,
}

/// An episode under way, or over.
struct Episode {
    /// What the task begins with, in every session.
    start: Arc<Start>,
    /// Shared with the toolbox; absent until the episode is prepared, where it is a fork, and when it was closed.
    session: Arc<Mutex<Option<OrsSession>>>,
    toolbox: Toolbox,
    score: SharedScore,
    place: Option<OwnedSemaphorePermit>,
    /// Whether an action has been carried out.
    has_moved: bool,
    /// What equal episodes have in common up to here.
    history: blake3::Hash,
}

struct Start {
    prompt: OrsContent,
    tools: Arc<[ToolSpec]>,
}

impl Ors {
    /// The registry's name of it.
    pub const NAME: &str = OrsSuite::ENVIRONMENT;

    /// Makes a task interactive; its server is asked for it with the first reset.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] with all that is wrong with the task's parameters.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let parameters = OrsTask::deserialize(&task.parameters);
        let parameters = parameters.map_err(|error| refuse(error.to_string()))?;
        let problems = parameters.problems();
        let choice = match parameters.choice() {
            Some(choice) if problems.is_empty() => choice,
            _ => return Err(refuse(problems.join("; "))),
        };
        let server = resources.task_servers.server(&parameters.server).map_err(refuse)?;
        let limits = ToolLimits {
            call_secs: parameters.server.call_secs,
            calls_per_turn: parameters.server.calls_per_turn,
            ..ToolLimits::default()
        };
        let setting = Arc::new(Setting { choice, server, limits });
        Ok(Self { setting, episode: None })
    }
}

impl Setting {
    /// An episode at its start, with a session or with none yet.
    fn episode(&self, start: Arc<Start>, session: Option<OrsSession>) -> Episode {
        let (session, score) = (Arc::new(Mutex::new(session)), SharedScore::default());
        let tool = SessionTool {
            session: Arc::clone(&session),
            specs: Arc::clone(&start.tools),
            score: Arc::clone(&score),
            on_failure: self.server.spec.on_failure,
        };
        let label = self.server.spec.name.clone();
        let opened = OpenedTool { label, has_prefix: false, tool: Box::new(tool) };
        let toolbox = Toolbox::new(vec![opened], self.limits.clone());
        let history = blake3::hash(start.prompt.text.as_bytes());
        Episode { start, session, toolbox, score, place: None, has_moved: false, history }
    }
}

impl Start {
    fn of(session: &OrsSession) -> Self {
        Self { prompt: session.prompt().clone(), tools: session.tools() }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.prompt == other.prompt && self.tools == other.tools
    }
}

#[async_trait]
impl Environment for Ors {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn time_rules(&self) -> TimeRules {
        let ToolLimits { call_secs, calls_per_turn, .. } = self.setting.limits;
        let spec = &self.setting.server.spec;
        // A list of environments stands before it, and the end of the session before.
        let reset = Duration::from_secs(spec.start_secs.saturating_add(120));
        let turn = Duration::from_secs_f64(call_secs * calls_per_turn as f64);
        TimeRules { command: Some(turn), reset: Some(reset), ..TimeRules::default() }
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let session = self.setting.server.begin(&self.setting.choice).await?;
        let start = Arc::new(Start::of(&session));
        let OrsContent { text, media } = start.prompt.clone();
        let episode = self.setting.episode(start, Some(session));
        let instruction = (!text.is_empty()).then(|| text.as_str().into());
        let state_key = episode.history.to_hex().to_string();
        self.episode = Some(episode);
        Ok(Observation { text, media, instruction, state_key, ..Observation::default() })
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "prepare", when: "before reset" };
        let episode = self.episode.as_mut().ok_or(misused)?;
        if episode.place.is_some() {
            return Ok(());
        }
        let place = self.setting.server.place().await?;
        let mut session = episode.session.lock().await;
        if session.is_none() {
            let begun = self.setting.server.begin(&self.setting.choice).await?;
            if !episode.start.is_same(&Start::of(&begun)) {
                let doing = "begin the task again";
                return Err(EnvironmentError::NotRepeatable { doing });
            }
            *session = Some(begun);
        }
        drop(session);
        episode.place = Some(place);
        Ok(())
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.episode.as_ref().map(|episode| episode.toolbox.specs()).unwrap_or_default()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let began = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        match &self.episode {
            None => return Err(misused("before reset")),
            Some(episode) if with_score(&episode.score, |score| score.is_over) => {
                return Err(misused("after the end"));
            }
            Some(_) => {}
        }
        self.prepare().await?;
        let episode = self.episode.as_mut().expect("it was looked for");
        episode.has_moved = true;
        let calls = action.tool_calls();
        let mut observation = Observation::default();
        for (number, call) in calls.iter().enumerate() {
            let is_over = with_score(&episode.score, |score| score.is_over);
            let over = is_over.then(|| "The task is over.".to_owned());
            let refusal = over.or_else(|| episode.toolbox.is_beyond(number));
            observation.results.push(match refusal {
                Some(refusal) => ToolResult::error(call, refusal),
                None => episode.toolbox.call(call).await?,
            });
        }
        if calls.is_empty() {
            observation.text = "Nothing happens: call a tool.".to_owned();
        }
        let mut history = blake3::Hasher::new();
        history.update(episode.history.as_bytes()).update(action.key().as_bytes());
        episode.history = history.finalize();
        observation.state_key = episode.history.to_hex().to_string();
        let is_valid = !calls.is_empty() && observation.results.iter().all(|it| !it.is_error);
        let least = self.setting.server.spec.success_reward;
        Ok(with_score(&episode.score, |score| Step {
            observation,
            rewards: std::mem::take(&mut score.new),
            terminated: score.is_over,
            success: score.is_finished && score.total >= least,
            valid: is_valid,
            wall_time: began.elapsed(),
        }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let setting = Arc::clone(&self.setting);
        let Some(episode) = &self.episode else {
            return Ok(Some(Box::new(Self { setting, episode: None })));
        };
        if !episode.has_moved {
            // A session of its own, when it is played.
            let begun = setting.episode(Arc::clone(&episode.start), None);
            return Ok(Some(Box::new(Self { setting, episode: Some(begun) })));
        }
        match setting.server.spec.repeatable {
            true => Ok(None),
            false => Err(EnvironmentError::NotForkable {
                detail: format!("server `{}` is not `repeatable`", setting.server.spec.name),
            }),
        }
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let Some(episode) = self.episode.take() else { return Ok(()) };
        if let Some(session) = episode.session.lock().await.take()
            && let Err(error) = session.close().await
        {
            // What the episode came to is known; sessions that nobody pings end by themselves.
            tracing::warn!(%error, "could not end a session");
        }
        Ok(())
    }
}
