//! A book of accounts that is kept by calls of tools.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec};
use spar_tasks::Task;

use crate::{Environment, EnvironmentError};

const NAME: &str = "ledger";

/// Who pays.
const PAYERS: [&str; 8] = ["ada", "ben", "cleo", "dan", "eve", "finn", "gus", "hal"];
/// Who is paid.
const PAYEES: [&str; 8] =
    ["baker", "cooper", "dyer", "joiner", "mason", "miller", "potter", "weaver"];
/// Accounts of a book.
const ACCOUNTS: usize = 3;
/// The most that is paid at a time; every account holds as much for each payment.
const LARGEST: u32 = 9;

/// A book of three accounts, in which payments of one to the others are to be entered.
///
/// Parameters: `seed`, and `payments` (1 to 3, default 1). The book is closed at first, and `open` is the only tool; in
/// an open book there are `balance`, `pay` and `close`, which ends the task. A book whose balances are right when it is
/// closed gives the reward part `success`, 1. Calls that cannot be carried out are answered with an error and change
/// nothing; several calls in one answer are carried out in their order. Words are no action.
#[derive(Debug, Clone)]
pub struct Ledger {
    task: Arc<Payments>,
    book: Option<Book>,
}

/// What is to be entered.
#[derive(Debug)]
struct Payments {
    owners: [&'static str; ACCOUNTS],
    balances: [u32; ACCOUNTS],
    /// From whom, to whom, how much.
    payments: Vec<(usize, usize, u32)>,
    /// The balances when all is paid.
    goal: [u32; ACCOUNTS],
}

#[derive(Debug, Clone, PartialEq)]
struct Book {
    balances: [u32; ACCOUNTS],
    is_open: bool,
    is_over: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default = "one")]
    payments: usize,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BalanceArguments {
    account: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PayArguments {
    from: String,
    to: String,
    amount: u32,
}

impl Ledger {
    /// Makes the book of a task.
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
        let Parameters { seed, payments } =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if !(1..=3).contains(&payments) {
            return Err(refuse(format!("`payments` is {payments}, allowed are 1 to 3")));
        }
        let task = Payments::draw(Seed::from_u64(seed).derive(NAME, payments), payments);
        Ok(Self { task: Arc::new(task), book: None })
    }

    fn observe(&self, book: &Book, text: String) -> Observation {
        let open = if book.is_open { "open" } else { "closed" };
        let state_key = format!("{open} {:?} of {}", book.balances, self.task.words());
        Observation { text, state_key, ..Observation::default() }
    }

    /// Carries out a call; an error is why it could not be, for the policy.
    fn call(&self, book: &mut Book, call: &ToolCall) -> Result<String, String> {
        let account = |name: &str| {
            let known = self.task.owners.join(", ");
            let place = self.task.owners.iter().position(|owner| *owner == name);
            place.ok_or_else(|| format!("There is no account `{name}`, only {known}."))
        };
        let offered = tools(book);
        if !offered.iter().any(|tool| tool.name == call.name) {
            let names: Vec<&str> = offered.iter().map(|tool| &*tool.name).collect();
            return Err(format!(
                "There is no tool `{}` now, only {}.",
                call.name,
                names.join(", ")
            ));
        }
        match &*call.name {
            "open" => {
                let NoArguments {} = arguments(call)?;
                book.is_open = true;
                let told = self.task.owners.iter().zip(book.balances);
                let told: Vec<String> = told.map(|(owner, sum)| format!("{owner} {sum}")).collect();
                Ok(format!("The book is open: {}.", told.join(", ")))
            }
            "balance" => {
                let asked: BalanceArguments = arguments(call)?;
                Ok(format!("{} has {}.", asked.account, book.balances[account(&asked.account)?]))
            }
            "pay" => {
                let PayArguments { from, to, amount } = arguments(call)?;
                let (payer, payee) = (account(&from)?, account(&to)?);
                let has = book.balances[payer];
                if payer == payee || amount == 0 || amount > has {
                    return Err(format!(
                        "{amount} cannot be paid from {from}, who has {has}, to {to}."
                    ));
                }
                book.balances[payer] -= amount;
                book.balances[payee] += amount;
                Ok(format!("Paid {amount} from {from} to {to}."))
            }
            _ => {
                let NoArguments {} = arguments(call)?;
                (book.is_open, book.is_over) = (false, true);
                Ok("The book is closed.".to_owned())
            }
        }
    }
}

#[async_trait]
impl Environment for Ledger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        vec![format!("payments-{}", self.task.payments.len())]
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let book = Book { balances: self.task.balances, is_open: false, is_over: false };
        let words = self.task.words();
        let mut first = self.observe(&book, format!("Your task is to: {words}."));
        first.instruction = Some(words.into());
        self.book = Some(book);
        Ok(first)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.book.as_ref().map(tools).unwrap_or_default()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let mut book = self.book.take().ok_or(misused("before reset"))?;
        if book.is_over {
            self.book = Some(book);
            return Err(misused("after the end"));
        }
        let calls = action.tool_calls();
        let result = |call: &ToolCall| {
            let done = match book.is_over {
                true => Err("The book is closed.".to_owned()),
                false => self.call(&mut book, call),
            };
            match done {
                Ok(text) => ToolResult::new(call, text),
                Err(text) => ToolResult::error(call, text),
            }
        };
        let results: Vec<ToolResult> = calls.iter().map(result).collect();
        let text = if calls.is_empty() { "Nothing happens: call a tool." } else { "" };
        let mut observation = self.observe(&book, text.to_owned());
        let valid = !calls.is_empty() && results.iter().all(|result| !result.is_error);
        observation.results = results;
        let (terminated, success) = (book.is_over, book.is_over && book.balances == self.task.goal);
        self.book = Some(book);
        let reward = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Step {
            observation,
            rewards: if success { vec![reward] } else { Vec::new() },
            terminated,
            success,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let book = self.book.as_ref().filter(|book| !book.is_over)?;
        let call = match self.task.next_payment(book) {
            _ if !book.is_open => call("open", json!({})),
            Some((from, to, amount)) => {
                let owners = &self.task.owners;
                call("pay", json!({ "from": owners[from], "to": owners[to], "amount": amount }))
            }
            None => call("close", json!({})),
        };
        Some(Action::calls(vec![call]))
    }

    fn expert_action(&mut self) -> Option<Action> {
        // The task and the open book tell everything.
        self.oracle_action()
    }
}

impl Payments {
    fn draw(seed: Seed, count: usize) -> Self {
        let mut rng = seed.rng();
        let mut payees = PAYEES;
        payees.shuffle(&mut rng);
        let owners = [PAYERS[rng.random_range(0..PAYERS.len())], payees[0], payees[1]];
        let balances: [u32; ACCOUNTS] =
            std::array::from_fn(|_| count as u32 * LARGEST + rng.random_range(0..=LARGEST));
        let mut goal = balances;
        let payments = (0..count)
            .map(|number| {
                // Always from the same, so that no payment makes up for another.
                let (from, to) = (0, 1 + number % 2);
                let amount = rng.random_range(1..=LARGEST);
                goal[from] -= amount;
                goal[to] += amount;
                (from, to, amount)
            })
            .collect();
        Self { owners, balances, payments, goal }
    }

    /// What is demanded, as vouchers.
    fn words(&self) -> String {
        let words = |(from, to, amount): &(usize, usize, u32)| {
            let (from, to) = (self.owners[*from], self.owners[*to]);
            format!(r#"{{"from": "{from}", "to": "{to}", "amount": {amount}}}"#)
        };
        format!("enter {}", self.payments.iter().map(words).collect::<Vec<_>>().join(", "))
    }

    /// A payment that leads to the goal: the next of the task, while only its first ones were made; otherwise one from
    /// whoever has too much to whoever has too little.
    fn next_payment(&self, book: &Book) -> Option<(usize, usize, u32)> {
        let mut balances = self.balances;
        for (from, to, amount) in &self.payments {
            if balances == book.balances && balances != self.goal {
                return Some((*from, *to, *amount));
            }
            balances[*from] -= amount;
            balances[*to] += amount;
        }
        let places = || 0..ACCOUNTS;
        let from = places().find(|place| book.balances[*place] > self.goal[*place])?;
        let to = places().find(|place| book.balances[*place] < self.goal[*place])?;
        let (surplus, lack) =
            (book.balances[from] - self.goal[from], self.goal[to] - book.balances[to]);
        Some((from, to, surplus.min(lack)))
    }
}

/// The tools of a book as it is.
fn tools(book: &Book) -> Arc<[ToolSpec]> {
    static CLOSED: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    static OPEN: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    let object = |properties: Value| {
        let required: Vec<String> =
            properties.as_object().map(|it| it.keys().cloned().collect()).unwrap_or_default();
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let name = || json!({ "type": "string" });
    if book.is_over {
        return Arc::default();
    }
    if !book.is_open {
        let open = || [ToolSpec::new("open", "Opens the book.", object(json!({})))].into();
        return Arc::clone(CLOSED.get_or_init(open));
    }
    let of_open = || {
        let pay = json!({ "from": name(), "to": name(), "amount": { "type": "integer" } });
        [
            ToolSpec::new(
                "balance",
                "Tells what an account has.",
                object(json!({ "account": name() })),
            ),
            ToolSpec::new("pay", "Enters a payment.", object(pay)),
            ToolSpec::new("close", "Closes the book, when all is paid.", object(json!({}))),
        ]
        .into()
    };
    Arc::clone(OPEN.get_or_init(of_open))
}

fn call(name: &str, arguments: Value) -> ToolCall {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    ToolCall::new(name, arguments)
}

fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    let arguments = Value::Object(call.arguments.clone());
    serde_json::from_value(arguments)
        .map_err(|error| format!("The arguments of `{}` do not fit: {error}.", call.name))
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn ledger(seed: u64, payments: usize) -> Ledger {
        let task = Task {
            id: "ledger/test/0".to_owned(),
            environment: NAME.to_owned(),
            parameters: json!({ "seed": seed, "payments": payments }),
            instruction: String::new(),
            max_turns: 8,
            tags: Vec::new(),
            graders: Vec::new(),
        };
        let mut ledger = Ledger::open(&task).unwrap();
        block_on(ledger.reset(Seed::from_u64(0))).unwrap();
        ledger
    }

    fn step(ledger: &mut Ledger, calls: Vec<ToolCall>) -> Step {
        block_on(ledger.step(&Action::calls(calls))).unwrap()
    }

    #[test]
    fn tools_change_with_the_book_and_are_well_formed() {
        let mut ledger = ledger(1, 1);
        let names = |ledger: &Ledger| -> Vec<String> {
            ledger.tools().iter().for_each(|tool| tool.validate().unwrap());
            ledger.tools().iter().map(|tool| tool.name.clone()).collect()
        };
        assert_eq!(names(&ledger), ["open"]);
        let early = step(&mut ledger, vec![call("pay", json!({}))]);
        assert!(!early.valid && early.observation.results[0].is_error);
        assert_eq!(early.observation.results[0].text, "There is no tool `pay` now, only open.");
        step(&mut ledger, vec![call("open", json!({}))]);
        assert_eq!(names(&ledger), ["balance", "pay", "close"]);
        assert!(step(&mut ledger, vec![call("close", json!({}))]).terminated);
        assert!(names(&ledger).is_empty());
        assert!(block_on(ledger.step(&Action::calls(Vec::new()))).is_err());
    }

    #[test]
    fn errors_are_results_and_change_nothing() {
        let mut ledger = ledger(2, 1);
        step(&mut ledger, vec![call("open", json!({}))]);
        let before = ledger.book.clone();
        let owner = ledger.task.owners[0];
        let wrong = [
            call("pay", json!({ "from": owner, "to": "nobody", "amount": 1 })),
            call("pay", json!({ "from": owner, "to": owner, "amount": 1 })),
            call("pay", json!({ "from": owner, "to": ledger.task.owners[1], "amount": 10_000 })),
            call("pay", json!({ "from": owner })),
            call("balance", json!({ "account": owner, "currency": "x" })),
            call("burn", json!({})),
        ];
        let answered = step(&mut ledger, wrong.to_vec());
        assert_eq!(answered.observation.results.len(), wrong.len());
        assert!(answered.observation.results.iter().all(|result| result.is_error));
        assert!(!answered.valid && !answered.terminated && answered.reward() == 0.0);
        assert_eq!(ledger.book, before);
        let said = block_on(ledger.step(&"pay everybody".into())).unwrap();
        assert!(!said.valid && said.observation.results.is_empty());
    }

    #[test]
    fn the_oracle_pays_what_is_owed_whatever_was_done() {
        for (seed, payments) in [(3, 1), (4, 2), (5, 3)] {
            let mut ledger = ledger(seed, payments);
            let [first, second, _] = ledger.task.owners;
            let stray = call("pay", json!({ "from": second, "to": first, "amount": 1 }));
            // Two calls in one answer.
            let step_ = step(&mut ledger, vec![call("open", json!({})), stray]);
            assert!(step_.valid && step_.observation.results.len() == 2);
            let mut last = step_;
            while let Some(action) = ledger.oracle_action() {
                last = block_on(ledger.step(&action)).unwrap();
            }
            assert!(last.success && last.terminated && last.reward() == 1.0, "{seed}");
        }
    }

    #[test]
    fn a_book_that_is_wrong_when_it_is_closed_gives_nothing() {
        let mut ledger = ledger(6, 1);
        let calls =
            vec![call("open", json!({})), call("close", json!({})), call("open", json!({}))];
        let last = step(&mut ledger, calls);
        assert!(last.terminated && !last.success && last.reward() == 0.0);
        let errors: Vec<bool> = last.observation.results.iter().map(|it| it.is_error).collect();
        assert_eq!(errors, [false, false, true], "what comes behind the end is refused");
    }
}
