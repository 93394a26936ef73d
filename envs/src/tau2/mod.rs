//! Customer service over tools and policies: the domains of tau2-bench.

mod generated;
mod scripted_user;
mod setting;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use serde_json::json;
use spar_core::{
    Action, Observation, RewardPart, Seat, SeatSpec, Seed, Step, Told, ToolCall, ToolResult,
    ToolSpec, Verdict,
};
use spar_tasks::Task;
use spar_tau2::{Answered, Called, Judgement, Message, Requestor, Said, World, judge};

pub use spar_tau2::compare_folder;

use self::scripted_user::{STOP, ScriptedUser, next_gold};
use self::setting::{DONE, Setting};
use crate::calls::{MOST_CALLS_OF_BENCHMARKS, too_many};
use crate::{Environment, EnvironmentError};

const NAME: &str = "tau2";

const AGENT: Seat = Seat(0);
const USER: Seat = Seat(1);

const SEATS: &[SeatSpec] = &[
    SeatSpec::new("agent", "Who serves the customer, with the company's tools.", SeatSpec::SELF),
    SeatSpec::new("user", "The customer, in telecom with a phone.", "expert"),
];
const SOLO: &[SeatSpec] =
    &[SeatSpec::new("agent", "Who works on the ticket, with the tools of both.", SeatSpec::SELF)];

/// What an agent says first.
const GREETING: &str = "Hi! How can I help you today?";
/// Words of a user that end the conversation.
const ENDS: [&str; 3] = [STOP, "###TRANSFER###", "###OUT-OF-SCOPE###"];
/// Bytes of a message; what is beyond is cut.
const MOST_SAID: usize = 1 << 20;

/// An agent serves a customer, over a company's policy, tools and databases; or works alone on a ticket.
///
/// Parameters: `seed` of a task that is drawn, or `folder`, `domain` and `task` of one in a release; beside that `solo`,
/// `policy` (`manual` or `workflow`, of telecom), `nl_assertions` (`judge` or `leave_out`), `max_steps` (200) and `max_errors` (10).
///
/// A conversation ends when the user writes one of the words for that, or an agent who is alone calls `done`. Then both seats
/// get the reward part `task`: the product of what the task's reward is made of, by the rules of the release. A
/// conversation that is broken off is worth nothing. What each part came to stands in the artifacts of the verdict.
///
/// The scripted user tells what its scenario says, in order, and makes the calls that the task has it make, once the
/// agent's calls before them were made; it reads nothing of what the agent says. The oracle makes the agent's calls.
#[derive(Debug, Clone)]
pub struct Tau2 {
    setting: Arc<Setting>,
    /// What an episode is worth in which the agent does nothing.
    idle: Arc<OnceLock<Option<f64>>>,
    talk: Option<Talk>,
}

/// A conversation under way, or over.
#[derive(Debug, Clone)]
struct Talk {
    world: World,
    stream: u64,
    messages: Arc<Vec<Message>>,
    to_move: Option<Seat>,
    /// What each seat heard last.
    heard: [Arc<str>; 2],
    has_seen: [bool; 2],
    user: ScriptedUser,
    steps: u32,
    errors: u32,
    num_calls: u64,
    /// What equal conversations have in common up to here.
    history: blake3::Hash,
    ended: Option<Ended>,
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// By the user's or the agent's word.
    Stopped,
    /// By a limit, or words of an agent that nobody hears.
    BrokenOff(&'static str),
}

impl Tau2 {
    /// Makes the conversation of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood, its release cannot be read, or its
    /// reward needs a judge that nobody has named.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        Self::with_judge(task, !task.graders.is_empty())
    }

    /// The same for those who look at the environment alone: what a judge is needed for is left out of the reward.
    ///
    /// # Errors
    ///
    /// As [`Tau2::open`], but for the judge.
    pub fn open_ungraded(task: &Task) -> Result<Self, EnvironmentError> {
        Self::with_judge(task, true)
    }

    fn with_judge(task: &Task, has_judge: bool) -> Result<Self, EnvironmentError> {
        let setting = Arc::new(Setting::open(task, has_judge)?);
        Ok(Self { setting, idle: Arc::default(), talk: None })
    }

    fn judged(&self, messages: &[Message], stream: u64) -> Result<Judgement, String> {
        let Setting { domain, task, is_solo, .. } = &*self.setting;
        judge(domain, task, messages, *is_solo, stream).map_err(|error| error.text)
    }

    fn verdict(&self) -> Option<Verdict> {
        let talk = self.talk.as_ref()?;
        let broken_off = match talk.ended {
            Some(Ended::Stopped) => None,
            Some(Ended::BrokenOff(why)) => Some(why),
            None => Some("the conversation was not brought to its end"),
        };
        if let Some(why) = broken_off {
            return Some(Verdict { details: why.to_owned(), ..Verdict::default() });
        }
        Some(match self.judged(&talk.messages, talk.stream) {
            Ok(judgement) => {
                let (parts, reward) = (judgement.parts(), judgement.reward());
                let found = parts.iter().map(|(part, value)| (part.as_str(), *value));
                let details: Vec<_> =
                    found.clone().map(|(part, value)| format!("{part} {value}")).collect();
                let mut verdict = Verdict {
                    success: reward == 1.0,
                    details: details.join(", "),
                    artifacts: found.map(|(part, value)| (part.to_owned(), json!(value))).collect(),
                    ..Verdict::default()
                };
                if reward != 0.0 {
                    verdict.parts.push(RewardPart { name: "task".to_owned(), value: reward });
                }
                verdict
            }
            Err(why) => Verdict { details: why, ..Verdict::default() },
        })
    }

    /// What an episode is worth in which the agent does nothing but end it.
    fn idle_reward(&self) -> Option<f64> {
        *self.idle.get_or_init(|| {
            let judged = self.judged(&self.setting.history(), 0).ok()?;
            Some(judged.reward())
        })
    }

    fn scripted(&self) -> Option<Action> {
        let (talk, task) = (self.talk.as_ref()?, &self.setting.task);
        if talk.to_move? == USER {
            return Some(talk.user.act(task, &talk.messages));
        }
        let next = next_gold(task, &talk.messages);
        if self.setting.is_solo {
            let (name, arguments) = match next {
                Some(action) => (&*action.name, action.arguments.clone()),
                None => (DONE, serde_json::Map::new()),
            };
            return Some(Action::calls(vec![ToolCall::new(name, arguments)]));
        }
        // Calls before everything was told would be guesses.
        if !talk.user.has_told_all(task) {
            return Some("What else should I know?".into());
        }
        Some(match next {
            Some(action) if action.requestor == Requestor::Assistant => {
                Action::calls(vec![ToolCall::new(&*action.name, action.arguments.clone())])
            }
            Some(_) => "Please do what is to be done on your side.".into(),
            None => {
                let criteria = task.evaluation_criteria.as_ref();
                let told = criteria.and_then(|criteria| criteria.communicate_info.as_ref());
                let told = told.map(|told| told.join(". ")).unwrap_or_default();
                format!("Everything is done. {told}").trim().to_owned().into()
            }
        })
    }
}

impl Talk {
    fn begin(setting: &Setting, seed: Seed) -> Result<Self, String> {
        let stream = seed.derive(NAME, "ids").as_u64();
        let world = setting.world(stream)?;
        let mut messages = setting.history();
        let (mut to_move, mut heard) = (USER, [Arc::from(""), Arc::from(GREETING)]);
        match messages.last() {
            _ if setting.is_solo => to_move = AGENT,
            Some(Message::User(said)) => {
                to_move = AGENT;
                heard[0] = said.content.as_deref().unwrap_or_default().into();
            }
            Some(Message::Assistant(said)) => {
                heard[1] = said.content.as_deref().unwrap_or_default().into();
            }
            _ => {
                let content = Some(GREETING.to_owned());
                messages.push(Message::Assistant(Said { content, tool_calls: None }));
            }
        }
        Ok(Self {
            world,
            stream,
            messages: Arc::new(messages),
            to_move: Some(to_move),
            heard,
            has_seen: [false; 2],
            user: ScriptedUser::new(),
            steps: 0,
            errors: 0,
            num_calls: 0,
            history: blake3::hash(setting.task.id.as_bytes()),
            ended: None,
        })
    }

    fn end(&mut self, how: Ended) {
        (self.to_move, self.ended) = (None, Some(how));
    }

    /// Adds something to what tells conversations apart.
    fn note(&mut self, text: &str) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.history.as_bytes()).update(text.as_bytes());
        self.history = hasher.finalize();
    }

    fn put(&mut self, seat: Seat, said: Said) {
        self.note(if seat == USER { "user" } else { "agent" });
        self.note(said.content.as_deref().unwrap_or_default());
        let message = if seat == USER { Message::User(said) } else { Message::Assistant(said) };
        Arc::make_mut(&mut self.messages).push(message);
        self.steps += 1;
    }

    /// Says something to the other seat, whose move it is then.
    fn say(&mut self, seat: Seat, text: &str, setting: &Setting) {
        let end = (0..=MOST_SAID.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let text = &text[..end.unwrap_or(0)];
        self.put(seat, Said { content: Some(text.to_owned()), tool_calls: None });
        if setting.is_solo {
            self.end(Ended::BrokenOff("words, which nobody hears, in place of calls"));
            return;
        }
        if seat == USER {
            self.user.has_spoken(&setting.task);
            if ENDS.iter().any(|word| text.contains(word)) {
                self.end(Ended::Stopped);
                return;
            }
        }
        let other = if seat == USER { AGENT } else { USER };
        self.heard[other.index()] = text.into();
        self.to_move = Some(other);
    }

    /// Carries out calls, behind which the same seat moves again.
    ///
    /// None is carried out behind the failed one that breaks the conversation off. Calls beyond the most that an answer may have
    /// are as if never made, but for counting as failed ones: a judge that plays the conversation again knows nothing of them.
    fn call(
        &mut self,
        seat: Seat,
        text: &str,
        calls: &[ToolCall],
        setting: &Setting,
    ) -> Vec<ToolResult> {
        let (calls, surplus) = calls.split_at(calls.len().min(MOST_CALLS_OF_BENCHMARKS));
        let requestor = if seat == USER { Requestor::User } else { Requestor::Assistant };
        let called: Vec<Called> = calls
            .iter()
            .map(|call| {
                self.num_calls += 1;
                let (id, name) = (format!("call_{}", self.num_calls), call.name.clone());
                Called { id, name, arguments: call.arguments.clone(), requestor }
            })
            .collect();
        let content = (!text.trim().is_empty()).then(|| text.to_owned());
        self.put(seat, Said { content, tool_calls: Some(called.clone()) });
        self.user.go_on();
        let mut results = Vec::with_capacity(calls.len());
        for (call, called) in calls.iter().zip(&called) {
            let answered = match self.errors < setting.max_errors {
                true => self.world.respond(called),
                false => not_carried_out(called),
            };
            self.note(&called.name);
            self.note(answered.content.as_deref().unwrap_or_default());
            self.errors += u32::from(answered.error);
            let text = answered.content.clone().unwrap_or_default();
            results.push(match answered.error {
                true => ToolResult::error(call, text),
                false => ToolResult::new(call, text),
            });
            Arc::make_mut(&mut self.messages).push(Message::Tool(answered));
        }
        for call in surplus {
            self.note(&call.name);
            self.errors = self.errors.saturating_add(1);
            results.push(ToolResult::error(call, too_many(MOST_CALLS_OF_BENCHMARKS)));
        }
        self.steps += 1;
        results
    }

    fn check_limits(&mut self, setting: &Setting) {
        if self.to_move.is_none() {
            return;
        }
        if self.steps >= setting.max_steps {
            self.end(Ended::BrokenOff("too many steps"));
        } else if self.errors >= setting.max_errors {
            self.end(Ended::BrokenOff("too many calls that failed"));
        }
    }
}

/// The answer to a call behind the one that has broken the conversation off.
fn not_carried_out(call: &Called) -> Answered {
    let text = "Error: too many calls have failed, so that this one was not carried out";
    let (id, content) = (call.id.clone(), Some(text.to_owned()));
    Answered { id, content, requestor: call.requestor, error: true }
}

#[async_trait]
impl Environment for Tau2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let domain = self.setting.domain.name.as_str().to_owned();
        let idle = self.idle_reward().map(crate::idle_tag);
        [domain].into_iter().chain(idle).collect()
    }

    fn seats(&self) -> &[SeatSpec] {
        if self.setting.is_solo { SOLO } else { SEATS }
    }

    fn instructs_seats(&self) -> bool {
        true
    }

    fn to_move(&self) -> Option<Seat> {
        match &self.talk {
            Some(talk) => talk.to_move,
            None => Some(if self.setting.is_solo { AGENT } else { USER }),
        }
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        let talk =
            Talk::begin(&self.setting, seed).map_err(|detail| EnvironmentError::Parameters {
                task: self.setting.task.id.clone(),
                environment: NAME,
                detail: format!("its initial state cannot be set up: {detail}"),
            })?;
        let first = talk.to_move.unwrap_or(AGENT);
        self.talk = Some(talk);
        Ok(self.told(first).observation)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match self.to_move() {
            Some(USER) => Arc::clone(&self.setting.user_tools),
            Some(_) => Arc::clone(&self.setting.agent_tools),
            None => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let Some(talk) = &mut self.talk else {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        };
        let Some(seat) = talk.to_move else {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        };
        let (mut results, mut text, mut valid) = (Vec::new(), String::new(), true);
        match action {
            Action::Text { text: said } if said.trim().is_empty() => {
                text.push_str("Nothing was said.");
                talk.errors += 1;
                talk.steps += 1;
                valid = false;
            }
            Action::Text { text: said } => talk.say(seat, said, &self.setting),
            Action::Calls { calls, .. }
                if self.setting.is_solo && calls.iter().any(|call| call.name == DONE) =>
            {
                // Whatever stands beside it is not carried out.
                results = calls.iter().map(|call| ToolResult::new(call, "")).collect();
                talk.end(Ended::Stopped);
            }
            Action::Calls { calls, text: said, .. } => {
                results = talk.call(seat, said, calls, &self.setting);
                valid = results.iter().all(|result| !result.is_error);
            }
        }
        talk.check_limits(&self.setting);
        let state_key = talk.history.to_hex().to_string();
        Ok(Step {
            observation: Observation { text, results, state_key, ..Observation::default() },
            rewards: Vec::new(),
            terminated: talk.to_move.is_none(),
            success: false,
            valid,
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        let instruction = if seat == USER { &self.setting.user } else { &self.setting.agent };
        let instruction = Arc::clone(instruction);
        let Some(talk) = &mut self.talk else { return Told::default() };
        let is_first = !std::mem::replace(&mut talk.has_seen[seat.index()], true);
        let text = match (talk.to_move, self.setting.is_solo) {
            (None, _) => "The conversation is over.".to_owned(),
            (Some(_), true) => "Work on the ticket.".to_owned(),
            (Some(_), false) => talk.heard[seat.index()].to_string(),
        };
        let state_key = talk.history.to_hex().to_string();
        let observation = Observation {
            text,
            instruction: is_first.then_some(instruction),
            state_key,
            ..Observation::default()
        };
        Told { observation, ..Told::default() }
    }

    async fn forfeit(&mut self, _seat: Seat) -> Result<(), EnvironmentError> {
        if let Some(talk) = &mut self.talk {
            talk.end(Ended::BrokenOff("a budget was used up"));
        }
        Ok(())
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        Ok(self.verdict())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.scripted()
    }

    fn expert_action(&mut self) -> Option<Action> {
        match self.to_move() {
            Some(USER) => self.scripted(),
            _ => None,
        }
    }
}
