//! A customer who follows the task: tells what it says in order, and does what it has the user do.

use spar_core::{Action, ToolCall};
use spar_tau2::{Called, GoldAction, Instructions, Message, Requestor, Tau2Task};

/// Rounds with nothing new in them after which the customer leaves.
const MOST_IDLE_ROUNDS: u32 = 6;

/// Words that end a conversation.
pub(super) const STOP: &str = "###STOP###";

/// A customer who follows the task and nobody else: nothing that the agent says is read, so that no words make it do
/// anything. What the agent has *done* is: the user's calls wait for the agent's that stand before them in the task.
#[derive(Debug, Clone)]
pub(super) struct ScriptedUser {
    /// What was told already.
    num_told: usize,
    idle_rounds: u32,
}

impl ScriptedUser {
    pub(super) fn new() -> Self {
        Self { num_told: 0, idle_rounds: 0 }
    }

    /// What the customer does next.
    pub(super) fn act(&self, task: &Tau2Task, messages: &[Message]) -> Action {
        if let Some(fact) = facts(task).get(self.num_told) {
            return fact.as_str().into();
        }
        match next_gold(task, messages) {
            Some(action) if action.requestor == Requestor::User => {
                Action::calls(vec![ToolCall::new(&*action.name, action.arguments.clone())])
            }
            None => format!("That is all, thank you. {STOP}").into(),
            Some(_) if self.idle_rounds >= MOST_IDLE_ROUNDS => {
                format!("This leads nowhere. Goodbye. {STOP}").into()
            }
            Some(_) => "Please go on.".into(),
        }
    }

    /// The customer has said something.
    pub(super) fn has_spoken(&mut self, task: &Tau2Task) {
        match self.num_told < facts(task).len() {
            true => self.num_told += 1,
            false => self.idle_rounds += 1,
        }
    }

    /// Something of the task was done.
    pub(super) fn go_on(&mut self) {
        self.idle_rounds = 0;
    }

    /// Whether everything was told.
    pub(super) fn has_told_all(&self, task: &Tau2Task) -> bool {
        self.num_told >= facts(task).len()
    }
}

/// What the task has the user know and want, in the order in which it is told.
fn facts(task: &Tau2Task) -> Vec<String> {
    let texts: Vec<&str> = match &task.user_scenario.instructions {
        Instructions::Text(text) => vec![text],
        Instructions::Parts(parts) => {
            let known = parts.known_info.as_deref();
            let all = [Some(&*parts.reason_for_call), known, Some(&*parts.task_instructions)];
            all.into_iter().flatten().collect()
        }
    };
    let texts = texts.into_iter().map(|text| text.trim().replace("###", ""));
    texts.filter(|text| !text.is_empty()).collect()
}

/// The first call of the solution that was not made yet.
pub(super) fn next_gold<'t>(task: &'t Tau2Task, messages: &[Message]) -> Option<&'t GoldAction> {
    let criteria = task.evaluation_criteria.as_ref()?;
    let mut made: Vec<&Called> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(said) | Message::User(said) => Some(said.calls()),
            Message::Tool(_) | Message::System(_) => None,
        })
        .flatten()
        .collect();
    criteria.actions.iter().flatten().find(|action| {
        let is_it = |call: &&Called| call.name == action.name && call.arguments == action.arguments;
        match made.iter().position(is_it) {
            Some(place) => {
                made.remove(place);
                false
            }
            None => true,
        }
    })
}
