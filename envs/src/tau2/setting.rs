//! What the episodes of a task have in common: the domain, the task, and what each seat is told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use spar_core::{Seed, ToolSpec};
use spar_tasks::Task;
use spar_tau2::{
    Beginning, Domain, DomainName, EvaluationCriteria, Message, PolicyKind, Release, RewardType,
    Tau2Task, World,
};

use super::generated;
use crate::EnvironmentError;

/// Folders of domains that are kept in memory at the most.
const MOST_FOLDERS: usize = 16;

/// The tool by which an agent that works alone says that it is done.
pub(super) const DONE: &str = "done";

const AGENT: &str = "You serve a customer of a company, whose policy is below. In every turn either say something to the \
                     customer or call tools, not both. Keep to the policy.";
const ALONE: &str = "You work on a customer's ticket for a company, whose policy and the ticket are below. Call tools, those \
                     of the customer's side included; nobody reads what you say. Call `done`, and nothing beside it, \
                     when the ticket is solved. Keep to the policy.";
const USER: &str = "You are a customer who talks to a company's agent. Follow the scenario below and make nothing up. Say \
                    one thing at a time, and tell what you know as you are asked. Write ###STOP### when what you want \
                    is done, ###TRANSFER### when you are handed over to someone else, and ###OUT-OF-SCOPE### when the \
                    scenario does not tell how to go on.";

/// The parameters of a task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// A task of one's own, drawn from this seed.
    seed: Option<u64>,
    /// The folder of a domain in a release.
    folder: Option<PathBuf>,
    /// The domain.
    domain: Option<String>,
    /// The task's id in the release.
    task: Option<String>,
    /// Whether the agent works alone on a ticket. Default false.
    #[serde(default)]
    solo: bool,
    /// Which manual of telecom's the agent has. Default `manual`.
    #[serde(default)]
    policy: PolicyKind,
    /// What becomes of sentences that a model has to judge. Default that one does.
    #[serde(default)]
    nl_assertions: NlAssertions,
    /// Messages and rounds of calls until the conversation is broken off. Default 200.
    #[serde(default = "max_steps")]
    max_steps: u32,
    /// Calls that fail until it is. Default 10.
    #[serde(default = "max_errors")]
    max_errors: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NlAssertions {
    #[default]
    Judge,
    LeaveOut,
}

fn max_steps() -> u32 {
    200
}

fn max_errors() -> u32 {
    10
}

/// What the episodes of a task begin with, or why they cannot; set up when the first one begins.
type SetUp = Arc<OnceLock<Result<Beginning, String>>>;

/// What the episodes of a task have in common.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) domain: Arc<Domain>,
    pub(super) task: Tau2Task,
    beginning: SetUp,
    pub(super) is_solo: bool,
    pub(super) max_steps: u32,
    pub(super) max_errors: u32,
    /// What the agent is told first.
    pub(super) agent: Arc<str>,
    /// What the user is.
    pub(super) user: Arc<str>,
    pub(super) agent_tools: Arc<[ToolSpec]>,
    pub(super) user_tools: Arc<[ToolSpec]>,
}

/// A task of a release, and what its episodes begin with.
struct Kept {
    task: Tau2Task,
    /// Without and with an agent who works alone. It holds what the task changes in the domain's data, no more.
    beginnings: [SetUp; 2],
}

/// A folder of a domain that was read.
struct Opened {
    domain: Arc<Domain>,
    tasks: HashMap<String, Kept>,
    /// The guidelines of the release for users without and with tools.
    guidelines: [Option<String>; 2],
}

impl Setting {
    /// The setting of a task, whose sentences a judge is asked about by someone else, or which must have none.
    pub(super) fn open(task: &Task, has_judge: bool) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: super::NAME,
            detail,
        };
        let parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        Self::of(parameters, has_judge).map_err(refuse)
    }

    fn of(parameters: Parameters, has_judge: bool) -> Result<Self, String> {
        let Parameters { seed, folder, domain, task, solo, policy, nl_assertions, .. } = parameters;
        let (domain, mut task, beginning, guidelines) = match (seed, folder, domain, task) {
            (Some(seed), None, None, None) => {
                let (domain, mut task) = generated::draw(Seed::from_u64(seed));
                if let Some(criteria) = task.evaluation_criteria.as_mut().filter(|_| solo) {
                    // Who works alone has nobody to say anything to.
                    criteria.reward_basis.retain(|part| *part != RewardType::Communicate);
                }
                (domain, task, Arc::default(), [None, None])
            }
            (None, Some(folder), Some(domain), Some(id)) => {
                let name: DomainName = domain.parse().map_err(told)?;
                let opened = opened(name, &folder)?;
                let kept = opened.tasks.get(&id);
                let folder = folder.display();
                let kept = kept.ok_or_else(|| format!("`{folder}` has no task `{id}`"))?;
                let beginning = Arc::clone(&kept.beginnings[usize::from(solo)]);
                let domain = Arc::clone(&opened.domain);
                (domain, kept.task.clone(), beginning, opened.guidelines.clone())
            }
            _ => return Err("it takes a `seed`, or a `folder`, `domain` and `task`".to_owned()),
        };
        let sentences = task.evaluation_criteria.as_ref().is_some_and(needs_judge);
        match nl_assertions {
            NlAssertions::LeaveOut => {
                if let Some(criteria) = &mut task.evaluation_criteria {
                    criteria.reward_basis.retain(|part| *part != RewardType::NlAssertion);
                }
            }
            NlAssertions::Judge if sentences && !has_judge => {
                return Err("its reward has NL_ASSERTION, sentences that a model has to judge, and the task names no \
                            grader for them: leave them out with `nl_assertions = \"leave_out\"`, or name the \
                            grader `tau2` and a judge"
                    .to_owned());
            }
            NlAssertions::Judge => {}
        }
        if solo && task.ticket.is_none() {
            return Err("a task without a `ticket` cannot be worked on alone".to_owned());
        }
        let rules = domain.policy(policy, solo).map_err(told)?;
        let agent = match (&task.ticket, solo) {
            (Some(ticket), true) => format!(
                "<instructions>\n{ALONE}\n</instructions>\n<policy>\n{rules}\n</policy>\n<ticket>\n{ticket}\n</ticket>"
            ),
            _ => format!("<instructions>\n{AGENT}\n</instructions>\n<policy>\n{rules}\n</policy>"),
        };
        let user_tools: Arc<[ToolSpec]> = match &task.user_tools {
            None => Arc::clone(&domain.user_tools),
            Some(names) => {
                let kept = domain.user_tools.iter().filter(|tool| names.contains(&tool.name));
                kept.cloned().collect()
            }
        };
        let guidelines = guidelines[usize::from(!user_tools.is_empty())].clone();
        let guidelines = guidelines.unwrap_or_else(|| USER.to_owned());
        // The place of a persona's guidelines, which are empty by default.
        let guidelines = guidelines.replace("<PERSONA_GUIDELINES>", "");
        let scenario = task.user_scenario.to_text();
        let user = format!("{guidelines}\n\n<scenario>\n{scenario}\n</scenario>");
        let agent_tools = match solo {
            false => Arc::clone(&domain.tools),
            true => {
                let done = ToolSpec::new(
                    DONE,
                    "Says that the ticket is solved, which ends the work.",
                    serde_json::json!({ "type": "object", "properties": {}, "required": [] }),
                );
                let both = domain.tools.iter().chain(domain.user_tools.iter()).cloned();
                both.chain([done]).collect()
            }
        };
        Ok(Self {
            is_solo: solo,
            max_steps: parameters.max_steps,
            max_errors: parameters.max_errors,
            agent: agent.into(),
            user: user.into(),
            agent_tools,
            user_tools,
            domain,
            task,
            beginning,
        })
    }

    /// The world that an episode begins with, whose random ids follow from `stream`.
    pub(super) fn world(&self, stream: u64) -> Result<World, String> {
        let beginning = self.beginning.get_or_init(|| {
            let state = self.task.initial_state.as_ref();
            let beginning = Beginning::new(Arc::clone(&self.domain), state, self.is_solo);
            beginning.map_err(|error| error.text)
        });
        beginning.as_ref().map_err(String::clone)?.world(stream).map_err(|error| error.text)
    }

    /// What was said and called before the episode.
    pub(super) fn history(&self) -> Vec<Message> {
        let state = self.task.initial_state.as_ref();
        let history = state.and_then(|state| state.message_history.clone()).unwrap_or_default();
        let is_kept = |message: &Message| !self.is_solo || !matches!(message, Message::User(_));
        history.into_iter().filter(is_kept).collect()
    }
}

fn told(error: spar_tau2::Tau2Error) -> String {
    error.to_string()
}

fn needs_judge(criteria: &EvaluationCriteria) -> bool {
    criteria.reward_basis.contains(&RewardType::NlAssertion)
        && criteria.nl_assertions.as_ref().is_some_and(|sentences| !sentences.is_empty())
}

/// A folder of a domain, read once and kept.
fn opened(name: DomainName, folder: &Path) -> Result<Arc<Opened>, String> {
    type Folders = Mutex<Vec<((DomainName, PathBuf), Arc<Opened>)>>;
    static KEPT: OnceLock<Folders> = OnceLock::new();
    let key = (name, folder.to_owned());
    let kept = KEPT.get_or_init(Mutex::default);
    // Whoever comes while a folder is read waits for it, so that it is read once.
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, opened)) = kept.iter().find(|(known, _)| *known == key) {
        return Ok(Arc::clone(opened));
    }
    let domain = Arc::new(Domain::open(name, folder).map_err(told)?);
    let tasks = Domain::read_tasks(folder).map_err(told)?;
    let kept_task =
        |task: Tau2Task| (task.id.clone(), Kept { task, beginnings: Default::default() });
    let tasks = tasks.into_iter().map(kept_task).collect();
    let release = Release::find(folder);
    let guidelines = [false, true].map(|has_tools| {
        release.as_ref().map(|release| release.guidelines(has_tools).map_err(told)).transpose()
    });
    let [plain, with_tools] = guidelines;
    let guidelines = [plain?.flatten(), with_tools?.flatten()];
    let opened = Arc::new(Opened { domain, tasks, guidelines });
    if kept.len() >= MOST_FOLDERS {
        kept.remove(0);
    }
    kept.push((key, Arc::clone(&opened)));
    Ok(opened)
}
