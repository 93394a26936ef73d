//! A user with a hidden goal, and an agent who has to find it out by talking.

mod scenario;
mod scripted;
mod talk;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spar_core::{
    Action, Observation, Seat, SeatSpec, Seed, Step, Told, ToolCall, ToolResult, ToolSpec,
};
use spar_tasks::Task;

use self::scenario::{Kind, Persona, Scenario};
use self::scripted::Move;
use self::talk::{Outcome, Proposal, Talk};
use crate::calls::{MOST_CALLS, too_many};
use crate::{Environment, EnvironmentError, idle_tag};

const NAME: &str = "dialogue";
/// The tool, and the word, by which the agent says what the user wants.
const SUBMIT: &str = "submit";

const AGENT: Seat = Seat(0);
const USER: Seat = Seat(1);

const SEATS: &[SeatSpec] = &[
    SeatSpec::new("agent", "Who finds out what is wanted, and submits it.", SeatSpec::SELF),
    SeatSpec::new("user", "Who wants something, with a goal and a persona.", "expert"),
];

/// A conversation: the seat `user` has a goal that only it knows and a persona, and the seat `agent` has to find the goal out by
/// talking, and then to act by `submit`. The user begins.
///
/// Parameters: `seed`; `kinds`, of which the task is one (`booking`: all that is wanted; `clarify`: which of six articles is
/// meant; `bargain`: a price below the user's limit; `persuade`: two doubts that are to be found and met, one after the
/// other), default all; `personas` (`terse`, `chatty`, `impatient`, `fickle`, `literal`, `hesitant`), default all; `domains`,
/// `seen` (default) or `unseen`; and `turn_cost`, what each of the agent's messages costs, 0 to 0.1 (default 0).
///
/// What either says is heard by the other. `submit`, a call where tools are used and else an answer `submit NAME=VALUE, ..`,
/// ends the conversation, but for a price that is above the user's limit. Where it is what the user wants, both seats get the
/// reward part `goal`, 1; of a price the agent's is its share of what could be gained. With a cost of turns the agent gets
/// `turns` beside that, which is negative. Whoever asks too often is left, and gets nothing.
///
/// What counts is what is submitted, and which offers were made one by one; nobody's words are asked for a verdict. The scripted
/// user heeds names and values of what can be wanted, and no other words; of these it answers at most two in a message.
#[derive(Debug, Clone)]
pub struct Dialogue {
    shared: Arc<Shared>,
    talk: Option<Talk>,
    uses_tools: bool,
}

#[derive(Debug)]
struct Shared {
    scenario: Scenario,
    turn_cost: f64,
    tools: OnceLock<Arc<[ToolSpec]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Domains {
    #[default]
    Seen,
    Unseen,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default = "all_kinds")]
    kinds: Vec<Kind>,
    #[serde(default = "all_personas")]
    personas: Vec<Persona>,
    #[serde(default)]
    domains: Domains,
    #[serde(default)]
    turn_cost: f64,
}

fn all_kinds() -> Vec<Kind> {
    Kind::ALL.to_vec()
}

fn all_personas() -> Vec<Persona> {
    Persona::ALL.to_vec()
}

impl Dialogue {
    /// Makes the conversation of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let Parameters { seed, kinds, personas, domains, turn_cost } =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if kinds.is_empty() || personas.is_empty() {
            return Err(refuse("`kinds` and `personas` must not be empty".to_owned()));
        }
        if !(0.0..=0.1).contains(&turn_cost) {
            return Err(refuse(format!("`turn_cost` is {turn_cost}, allowed are 0 to 0.1")));
        }
        let seed = Seed::from_u64(seed).derive(NAME, "scenario");
        let scenario = Scenario::draw(seed, &kinds, &personas, domains == Domains::Unseen);
        let shared = Shared { scenario, turn_cost, tools: OnceLock::new() };
        Ok(Self { shared: Arc::new(shared), talk: None, uses_tools: false })
    }

    fn instruction(&self, seat: Seat) -> String {
        match seat {
            AGENT => self.shared.scenario.agent_instruction(self.uses_tools),
            _ => self.shared.scenario.user_instruction(),
        }
    }

    /// A move of a scripted agent as an action.
    fn action(&self, made: Move) -> Action {
        let proposal = match made {
            Move::Say(text) => return text.into(),
            Move::Submit(proposal) => proposal,
        };
        let arguments = written(&self.shared.scenario, &proposal);
        if self.uses_tools {
            return Action::calls(vec![ToolCall::new(SUBMIT, arguments)]);
        }
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<String> =
            arguments.iter().map(|(name, value)| format!("{name}={}", word(value))).collect();
        format!("{SUBMIT} {}", pairs.join(", ")).into()
    }

    /// What a scripted player at the seat that is to move does.
    fn scripted(&self, agent: fn(&Scenario, &Talk) -> Move) -> Option<Action> {
        let (scenario, talk) = (&self.shared.scenario, self.talk.as_ref()?);
        Some(match talk.to_move? {
            USER => scripted::user(scenario, talk).into(),
            _ => self.action(agent(scenario, talk)),
        })
    }

    /// Submits what the agent's words or a call name.
    ///
    /// # Errors
    ///
    /// What the agent reads where that is nothing that can be submitted; nothing has happened then.
    fn submit(&mut self, given: &Map<String, Value>) -> Result<&'static str, String> {
        let shared = Arc::clone(&self.shared);
        let proposal = read(&shared.scenario, given)?;
        let talk = self.talk.as_mut().ok_or("the conversation has not begun")?;
        Ok(talk.submit(&shared.scenario, &proposal, shared.turn_cost))
    }
}

/// The arguments of a proposal.
fn written(scenario: &Scenario, proposal: &Proposal) -> Map<String, Value> {
    let mut arguments = Map::new();
    match proposal {
        Proposal::Values(values) => {
            for (slot, place) in values.iter().enumerate() {
                let name = scenario.domain.slots[slot].name;
                arguments.insert(name.to_owned(), scenario.value(slot, *place).into());
            }
        }
        Proposal::Article(place) => {
            arguments.insert("article".to_owned(), scenario.article(*place).into());
        }
        Proposal::Price(price) => {
            arguments.insert("price".to_owned(), (*price).into());
        }
        Proposal::Deal => {
            arguments.insert("deal".to_owned(), "yes".into());
        }
    }
    arguments
}

/// The proposal that arguments are: all that is asked for, each once, and nothing else.
fn read(scenario: &Scenario, given: &Map<String, Value>) -> Result<Proposal, String> {
    let names: Vec<&str> = match scenario.kind {
        Kind::Booking => scenario.domain.slots.iter().map(|slot| slot.name).collect(),
        Kind::Clarify => vec!["article"],
        Kind::Bargain => vec!["price"],
        Kind::Persuade => vec!["deal"],
    };
    if given.len() != names.len() || names.iter().any(|name| !given.contains_key(*name)) {
        return Err(format!("`{SUBMIT}` takes {}, each once.", names.join(", ")));
    }
    let word = |name: &str| {
        let text = given.get(name).and_then(Value::as_str).unwrap_or_default();
        text.trim().chars().take(40).collect::<String>().to_lowercase()
    };
    match scenario.kind {
        Kind::Booking => {
            let value = |slot: &scenario::Slot| {
                let place = slot.values.iter().position(|value| *value == word(slot.name));
                place
                    .ok_or_else(|| format!("`{}` is one of {}.", slot.name, slot.values.join(", ")))
            };
            let values = scenario.domain.slots.iter().map(value);
            Ok(Proposal::Values(values.collect::<Result<_, _>>()?))
        }
        Kind::Clarify => {
            let mut places = 0..scenario.articles.len();
            let place = places.find(|place| scenario.article(*place) == word("article"));
            let known = || (0..scenario.articles.len()).map(|place| scenario.article(place));
            let place = place.ok_or_else(|| {
                format!("`article` is one of {}.", known().collect::<Vec<_>>().join(", "))
            });
            Ok(Proposal::Article(place?))
        }
        Kind::Bargain => {
            let price = given.get("price");
            let price = price.and_then(Value::as_i64).or_else(|| word("price").parse().ok());
            let price = price.filter(|price| (1..=1_000_000).contains(price));
            Ok(Proposal::Price(price.ok_or("`price` is a whole number from 1 to 1000000.")?))
        }
        Kind::Persuade => match word("deal").as_str() {
            "yes" => Ok(Proposal::Deal),
            _ => Err("`deal` is `yes`.".to_owned()),
        },
    }
}

/// The pairs behind the word `submit`; `None` where the text is something else.
fn pairs(text: &str) -> Option<Map<String, Value>> {
    let rest = text.trim().strip_prefix(SUBMIT)?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let mut found = Map::new();
    for pair in rest.split(',').take(16) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // What is named twice is no value.
        let value = match found.contains_key(name.trim()) {
            true => Value::Null,
            false => value.trim().into(),
        };
        found.insert(name.trim().to_owned(), value);
    }
    Some(found)
}

fn tool(scenario: &Scenario) -> ToolSpec {
    let one_of = |values: Vec<String>| json!({ "type": "string", "enum": values });
    let mut properties = Map::new();
    match scenario.kind {
        Kind::Booking => {
            for slot in scenario.domain.slots {
                let values = slot.values.iter().map(|value| (*value).to_owned()).collect();
                properties.insert(slot.name.to_owned(), one_of(values));
            }
        }
        Kind::Clarify => {
            let places = 0..scenario.articles.len();
            let articles = places.map(|place| scenario.article(place)).collect();
            properties.insert("article".to_owned(), one_of(articles));
        }
        Kind::Bargain => {
            let price = json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 });
            properties.insert("price".to_owned(), price);
        }
        Kind::Persuade => {
            properties.insert("deal".to_owned(), one_of(vec!["yes".to_owned()]));
        }
    }
    let about = match scenario.kind {
        Kind::Bargain => "Names a price, at which the customer buys or not.",
        _ => "Says what the customer wants, which ends the conversation.",
    };
    let required: Vec<&String> = properties.keys().collect();
    let parameters = json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    });
    ToolSpec::new(SUBMIT, about, parameters)
}

#[async_trait]
impl Environment for Dialogue {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let scenario = &self.shared.scenario;
        let (kind, persona) = (scenario.kind.name(), scenario.persona.name());
        vec![kind.to_owned(), persona.to_owned(), idle_tag(0.0)]
    }

    fn seats(&self) -> &[SeatSpec] {
        SEATS
    }

    fn instructs_seats(&self) -> bool {
        true
    }

    fn to_move(&self) -> Option<Seat> {
        self.talk.as_ref().map_or(Some(USER), |talk| talk.to_move)
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.talk = Some(Talk::begin(&self.shared.scenario));
        Ok(self.told(USER).observation)
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        let shared = &self.shared;
        match (self.uses_tools, self.to_move()) {
            (true, Some(AGENT)) => {
                Arc::clone(shared.tools.get_or_init(|| [tool(&shared.scenario)].into()))
            }
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let talk = self.talk.as_mut().ok_or(misused("before reset"))?;
        let seat = talk.to_move.ok_or(misused("after the end"))?;
        let (mut results, mut text, mut valid) = (Vec::new(), String::new(), true);
        match action {
            Action::Text { text: said } => {
                let given = if seat == AGENT && !self.uses_tools { pairs(said) } else { None };
                match given {
                    Some(given) => match self.submit(&given) {
                        Ok(told) => told.clone_into(&mut text),
                        Err(told) => (text, valid) = (told, false),
                    },
                    None if said.trim().is_empty() => {
                        (text, valid) = ("Nothing was said.".to_owned(), false);
                    }
                    None => talk.say(&self.shared.scenario, seat, said.trim()),
                }
            }
            Action::Calls { calls, .. } => {
                for (place, call) in calls.iter().enumerate() {
                    let is_agents = seat == AGENT && self.to_move() == Some(AGENT);
                    let done = match (is_agents, &*call.name) {
                        _ if place >= MOST_CALLS => Err(too_many(MOST_CALLS)),
                        (true, SUBMIT) if self.uses_tools => self.submit(&call.arguments),
                        (true, _) => Err(format!("There is no such tool, only `{SUBMIT}`.")),
                        (false, _) if seat == AGENT => {
                            Err("It is not your turn to speak any more.".to_owned())
                        }
                        (false, _) => Err("A customer has no tools.".to_owned()),
                    };
                    valid &= done.is_ok();
                    results.push(match done {
                        Ok(text) => ToolResult::new(call, text),
                        Err(text) => ToolResult::error(call, text),
                    });
                }
            }
        }
        let talk = self.talk.as_mut().ok_or(misused("before reset"))?;
        if talk.outcome == Some(Outcome::Left) {
            "The customer has left.".clone_into(&mut text);
        }
        let state_key = state_key(talk, seat);
        Ok(Step {
            observation: Observation { text, results, state_key, ..Observation::default() },
            rewards: talk.accounts.take(seat),
            terminated: talk.to_move.is_none(),
            success: talk.outcome == Some(Outcome::Right),
            valid,
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        let instruction = self.instruction(seat);
        let Some(talk) = &mut self.talk else { return Told::default() };
        let is_first = !std::mem::replace(&mut talk.has_seen[seat.index()], true);
        let text = match (talk.outcome, &talk.heard[seat.index()]) {
            (Some(Outcome::Right), _) => "You have come to an agreement.".to_owned(),
            (Some(_), _) => "The conversation is over.".to_owned(),
            (None, Some(heard)) => heard.clone(),
            (None, None) => "You are in the shop.".to_owned(),
        };
        Told {
            observation: Observation {
                text,
                instruction: is_first.then(|| instruction.into()),
                state_key: state_key(talk, seat),
                ..Observation::default()
            },
            rewards: talk.accounts.take(seat),
            success: talk.outcome == Some(Outcome::Right),
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.scripted(scripted::oracle)
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.scripted(scripted::agent)
    }
}

/// What a seat can tell of where the conversation is.
fn state_key(talk: &Talk, seat: Seat) -> String {
    let heard = talk.heard[seat.index()].as_deref().unwrap_or_default();
    match seat {
        AGENT => format!(
            "agent, knows {:?}, met {:?}, price {:?}, heard {heard}",
            talk.known, talk.met, talk.price
        ),
        _ => format!("user, message {}, heard {heard}", talk.said[USER.index()]),
    }
}
