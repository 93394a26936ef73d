//! A shop: a customer who knows what is wanted, and an agent who has to ask for it.

mod scripted_user;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use spar_core::{
    Action, Observation, Seat, SeatSpec, Seed, Step, Told, ToolCall, ToolResult, ToolSpec,
};
use spar_tasks::Task;

use self::scripted_user::{Goal, KINDS, ScriptedUser, VALUES, named, words};
use crate::calls::{MOST_CALLS, clipped, too_many};
use crate::{Environment, EnvironmentError, SeatAccounts};

const NAME: &str = "errand";

const AGENT: Seat = Seat(0);
const USER: Seat = Seat(1);

const SEATS: &[SeatSpec] = &[
    SeatSpec::new("agent", "Who asks what is wanted and orders it.", SeatSpec::SELF),
    SeatSpec::new("user", "Who wants something, and tells it when asked.", "expert"),
];

/// Characters of what one says to the other; what is beyond is not heard.
const MOST_SAID: usize = 1_000;

/// An errand: the seat `user` wants an item of a colour and size that only it knows, and the seat `agent` has to find out and
/// order it. The user begins.
///
/// Parameters: `seed`. What either says is heard by the other, unless it is the agent's order: in words, an answer that
/// begins with `order` and names an item, a colour and a size; or a call of the tool `order`, where tools are used. The order
/// ends the episode, and where it is right both seats get the reward part `served`, 1. An order that does not name all three
/// is not executed, and neither is silence.
///
/// The user's expert and oracle follow rules: it begins with one thing that is wanted and answers what is asked. The agent's
/// ask for what was not heard yet, one after the other, and order what was heard.
#[derive(Debug, Clone)]
pub struct Errand {
    user: Arc<ScriptedUser>,
    talk: Option<Talk>,
    uses_tools: bool,
}

#[derive(Debug, Clone)]
struct Talk {
    to_move: Option<Seat>,
    /// What each seat heard last.
    heard: [Option<String>; 2],
    /// What the agent has heard of the goal.
    known: [Option<usize>; 3],
    /// Turns of talk so far.
    turns: u32,
    is_served: bool,
    accounts: SeatAccounts,
    has_seen: [bool; 2],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderArguments {
    item: String,
    colour: String,
    size: String,
}

impl Errand {
    /// Makes the errand of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let Parameters { seed } = Parameters::deserialize(&task.parameters).map_err(|error| {
            EnvironmentError::Parameters {
                task: task.id.clone(),
                environment: NAME,
                detail: error.to_string(),
            }
        })?;
        let user = ScriptedUser::draw(Seed::from_u64(seed).derive(NAME, "goal"));
        Ok(Self { user: Arc::new(user), talk: None, uses_tools: false })
    }

    /// What a seat is there for.
    fn instruction(&self, seat: Seat) -> String {
        let how = match self.uses_tools {
            true => "call `order`",
            false => "answer `order SIZE COLOUR ITEM`",
        };
        match seat {
            AGENT => format!(
                "find out which item the customer wants, in which colour and size, then {how}"
            ),
            _ => format!(
                "you are in a shop and want {}; answer what you are asked",
                self.user.wish()
            ),
        }
    }

    /// What the scripted seats do next.
    fn scripted(&self) -> Option<Action> {
        let talk = self.talk.as_ref()?;
        if talk.to_move? == USER {
            return Some(self.user.say(talk.heard[USER.index()].as_deref()).into());
        }
        let missing = talk.known.iter().position(Option::is_none);
        Some(match missing {
            Some(kind) => format!("Which {}?", KINDS[kind]).into(),
            None => {
                let [item, colour, size] = named(talk.known.map(Option::unwrap_or_default));
                match self.uses_tools {
                    false => format!("order {size} {colour} {item}").into(),
                    true => {
                        let arguments = json!({ "item": item, "colour": colour, "size": size });
                        let arguments = arguments.as_object().cloned().unwrap_or_default();
                        Action::calls(vec![ToolCall::new("order", arguments)])
                    }
                }
            }
        })
    }
}

impl Talk {
    fn begin() -> Self {
        Self {
            to_move: Some(USER),
            heard: [None, None],
            known: [None; 3],
            turns: 0,
            is_served: false,
            accounts: SeatAccounts::new(2),
            has_seen: [false; 2],
        }
    }

    /// Says something to the other seat, whose move it is then.
    fn say(&mut self, seat: Seat, text: &str) {
        let said: String = text.chars().take(MOST_SAID).collect();
        if seat == USER {
            for word in words(&said) {
                for (kind, values) in VALUES.iter().enumerate() {
                    let found = values.iter().position(|value| *value == word);
                    self.known[kind] = found.or(self.known[kind]);
                }
            }
        }
        let other = if seat == USER { AGENT } else { USER };
        self.heard[other.index()] = Some(said);
        self.to_move = Some(other);
        self.turns += 1;
    }

    /// The order ends the episode.
    fn order(&mut self, order: Goal, wanted: Goal) -> &'static str {
        (self.to_move, self.is_served) = (None, order == wanted);
        if self.is_served {
            self.accounts.pay(AGENT, "served", 1.0);
            self.accounts.pay(USER, "served", 1.0);
            return "That is what the customer wanted.";
        }
        "The customer wanted something else."
    }
}

/// The order that words name; `None` where a kind is missing or named twice.
fn order_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Goal> {
    let mut found: [Option<usize>; 3] = [None; 3];
    for word in words {
        let (kind, place) = VALUES.iter().enumerate().find_map(|(kind, values)| {
            let place = values.iter().position(|value| *value == word)?;
            Some((kind, place))
        })?;
        if found[kind].replace(place).is_some() {
            return None;
        }
    }
    let [Some(item), Some(colour), Some(size)] = found else { return None };
    Some([item, colour, size])
}

/// The words of an order in words; `None` where it is none.
fn order_words(text: &str) -> Option<Vec<String>> {
    let mut words = words(text);
    if words.first()? != "order" {
        return None;
    }
    words.remove(0);
    words.retain(|word| word != "a" && word != "the");
    Some(words)
}

fn tools() -> Arc<[ToolSpec]> {
    static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    Arc::clone(TOOLS.get_or_init(|| {
        let one_of = |values: &[&str]| json!({ "type": "string", "enum": values });
        let parameters = json!({
            "type": "object",
            "properties": {
                "item": one_of(VALUES[0]),
                "colour": one_of(VALUES[1]),
                "size": one_of(VALUES[2]),
            },
            "required": ["item", "colour", "size"],
        });
        [ToolSpec::new(
            "order",
            "Orders what the customer wants, which ends the errand.",
            parameters,
        )]
        .into()
    }))
}

#[async_trait]
impl Environment for Errand {
    fn name(&self) -> &'static str {
        NAME
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
        self.talk = Some(Talk::begin());
        Ok(self.told(USER).observation)
    }

    fn use_tools(&mut self) {
        self.uses_tools = true;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match (self.uses_tools, self.to_move()) {
            (true, Some(AGENT)) => tools(),
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let wanted = self.user.goal();
        let is_calling = self.uses_tools;
        let Some(talk) = &mut self.talk else {
            return Err(EnvironmentError::Misused { call: "step", when: "before reset" });
        };
        let Some(seat) = talk.to_move else {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        };
        let (mut results, mut text, mut valid) = (Vec::new(), String::new(), true);
        match action {
            Action::Text { text: said } => {
                let order = if seat == AGENT && !is_calling { order_words(said) } else { None };
                let goal = order.as_ref().map(|words| order_of(words.iter().map(String::as_str)));
                (text, valid) = match goal {
                    Some(Some(goal)) => (talk.order(goal, wanted).to_owned(), true),
                    Some(None) => {
                        let told = "An order names one item, one colour and one size.";
                        (told.to_owned(), false)
                    }
                    None if said.trim().is_empty() => ("Nothing was said.".to_owned(), false),
                    None => {
                        talk.say(seat, said.trim());
                        (String::new(), true)
                    }
                };
            }
            Action::Calls { calls, .. } => {
                for (place, call) in calls.iter().enumerate() {
                    let carried_out = match (seat, talk.to_move) {
                        _ if place >= MOST_CALLS => Err(too_many(MOST_CALLS)),
                        (AGENT, Some(_)) => carry_out(talk, call, wanted),
                        (AGENT, None) => Err("the errand is over".to_owned()),
                        _ => Err("a customer has no tools".to_owned()),
                    };
                    valid &= carried_out.is_ok();
                    results.push(match carried_out {
                        Ok(text) => ToolResult::new(call, text),
                        Err(text) => ToolResult::error(call, text),
                    });
                }
            }
        }
        let state_key = state_key(talk, seat);
        Ok(Step {
            observation: Observation { text, results, state_key, ..Observation::default() },
            rewards: talk.accounts.take(seat),
            terminated: talk.to_move.is_none(),
            success: talk.is_served,
            valid,
            wall_time: start.elapsed(),
        })
    }

    fn told(&mut self, seat: Seat) -> Told {
        let instruction = self.instruction(seat);
        let Some(talk) = &mut self.talk else { return Told::default() };
        let is_first = !std::mem::replace(&mut talk.has_seen[seat.index()], true);
        let text = match (talk.to_move, talk.is_served, &talk.heard[seat.index()]) {
            (None, true, _) => "You are served.".to_owned(),
            (None, false, _) => "The errand is over.".to_owned(),
            (Some(_), _, Some(heard)) => heard.clone(),
            (Some(_), _, None) => "The shop is open.".to_owned(),
        };
        Told {
            observation: Observation {
                text,
                instruction: is_first.then(|| instruction.into()),
                state_key: state_key(talk, seat),
                ..Observation::default()
            },
            rewards: talk.accounts.take(seat),
            success: talk.is_served,
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.scripted()
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.scripted()
    }
}

/// What a seat can tell of where the talk is.
fn state_key(talk: &Talk, seat: Seat) -> String {
    let heard = talk.heard[seat.index()].as_deref().unwrap_or_default();
    match seat {
        AGENT => format!("agent, knows {:?}, heard {heard}", talk.known),
        _ => format!("user, heard {heard}"),
    }
}

fn carry_out(talk: &mut Talk, call: &ToolCall, wanted: Goal) -> Result<String, String> {
    if call.name != "order" {
        return Err(format!("there is no tool `{}`, only `order`", clipped(&call.name)));
    }
    let arguments = serde_json::Value::Object(call.arguments.clone());
    let OrderArguments { item, colour, size } =
        OrderArguments::deserialize(arguments).map_err(|error| error.to_string())?;
    let goal = order_of([&*item, &*colour, &*size]);
    let goal = goal.ok_or("an order names one item, one colour and one size")?;
    Ok(talk.order(goal, wanted).to_owned())
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn errand(seed: u64) -> Errand {
        let mut errand = Errand::open(&crate::test_task(NAME, json!({ "seed": seed }))).unwrap();
        block_on(errand.reset(Seed::from_u64(0))).unwrap();
        errand
    }

    fn say(errand: &mut Errand, text: &str) -> Step {
        block_on(errand.step(&text.into())).unwrap()
    }

    #[test]
    fn who_asks_serves_every_customer_and_both_are_paid() {
        for seed in 0..50 {
            let mut errand = errand(seed);
            let mut said = Vec::new();
            let last = loop {
                let action = errand.expert_action().unwrap();
                said.push(action.to_string());
                let step = block_on(errand.step(&action)).unwrap();
                if step.terminated {
                    break step;
                }
            };
            assert!(last.success && last.reward() == 1.0, "{said:?}");
            let told = errand.told(USER);
            assert!(told.success && told.rewards[0].value == 1.0);
            assert_eq!(said.len(), 6, "one thing is offered, two are asked for: {said:?}");
        }
    }

    #[test]
    fn the_agent_is_shown_nothing_of_what_was_not_said() {
        for seed in 0..50 {
            let mut errand = errand(seed);
            say(&mut errand, "Good morning.");
            let told = errand.told(AGENT);
            let shown = serde_json::to_string(&told).unwrap();
            for word in named(errand.user.goal()) {
                assert!(!words(&shown).contains(&word.to_owned()), "{word}: {shown}");
            }
            let of_user = Errand::told(&mut self::errand(seed), USER).observation;
            assert!(of_user.instruction.is_none(), "told on reset already");
        }
    }

    #[test]
    fn an_order_that_is_none_is_not_executed_and_a_wrong_one_pays_nobody() {
        let mut errand = errand(3);
        say(&mut errand, "I want something.");
        for none in ["order red", "order red blue shirt", "order red small hat coat", " "] {
            let step = say(&mut errand, none);
            assert!(!step.valid && !step.terminated, "{none}");
            assert_eq!(errand.to_move(), Some(AGENT));
        }
        let [item, colour, size] = errand.user.goal();
        let wrong = named([(item + 1) % 6, colour, size]);
        let step = say(&mut errand, &format!("order a {} {} {}", wrong[2], wrong[1], wrong[0]));
        assert!(step.terminated && !step.success && step.rewards.is_empty());
        assert!(errand.told(USER).rewards.is_empty());
    }

    #[test]
    fn calls_order_where_tools_are_used() {
        let mut errand = errand(5);
        errand.use_tools();
        assert!(errand.tools().is_empty(), "the customer has none");
        say(&mut errand, "Hello.");
        assert_eq!(errand.tools()[0].name, "order");
        errand.tools()[0].validate().unwrap();
        let call = |arguments: serde_json::Value| {
            Action::calls(vec![ToolCall::new("order", arguments.as_object().unwrap().clone())])
        };
        let name = "n".repeat(1 << 20);
        let many = Action::calls(vec![ToolCall::new(name, serde_json::Map::new()); 40]);
        let step = block_on(errand.step(&many)).unwrap();
        let told: Vec<&str> = step.observation.results.iter().map(|it| &*it.text).collect();
        assert!(!step.valid && told.len() == 40 && told.iter().all(|it| it.len() < 200));
        assert!(told[15].contains("no tool") && told[16].starts_with("At most 16 calls"));
        let step = block_on(errand.step(&call(json!({ "item": "hat" })))).unwrap();
        assert!(!step.valid && step.observation.results[0].is_error && !step.terminated);
        let [item, colour, size] = named(errand.user.goal());
        let order = call(json!({ "item": item, "colour": colour, "size": size }));
        let step = block_on(errand.step(&order)).unwrap();
        assert!(step.terminated && step.success && step.observation.results.len() == 1);
    }
}
