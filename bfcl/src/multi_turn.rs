//! The checker of the multi-turn half.

use std::sync::Arc;

use crate::{BfclError, Class, Instances, LongContext, Process};

/// What an entry is about: the classes and how they begin.
#[derive(Debug, Clone)]
pub struct World {
    /// The entry's name, which the names of objects have in them.
    pub id: String,
    /// The classes, in the order of the entry.
    pub classes: Vec<Class>,
    /// How they begin, by their names.
    pub scenario: Arc<serde_json::Value>,
    /// The texts of long contexts, for an entry of that category.
    pub long_context: Option<Arc<LongContext>>,
}

/// Calls of an answer: turns of steps of calls.
pub type AnsweredTurns = [Vec<Vec<String>>];

/// What the checker says of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum MultiTurnVerdict {
    /// All is as it should be.
    Valid,
    /// The answer has other than the gold number of turns: it was ended by force.
    ForceTerminated {
        /// Turns of the answer.
        turns: usize,
        /// Turns there should be.
        expected: usize,
    },
    /// Nothing was called in a turn in which something should be.
    EmptyTurn {
        /// The turn, from 0 on.
        turn: usize,
    },
    /// The state is not that after the gold calls.
    StateMismatch {
        /// The turn, from 0 on.
        turn: usize,
        /// The first class that differs.
        class: Class,
        /// Its attributes that do.
        attributes: Vec<&'static str>,
    },
    /// Results of gold calls are not among those of the answer.
    ResponseMismatch {
        /// The turn, from 0 on.
        turn: usize,
        /// The results that are missing.
        missing: Vec<String>,
    },
}

impl MultiTurnVerdict {
    /// Whether the answer is right.
    pub fn is_valid(&self) -> bool {
        *self == Self::Valid
    }

    /// The kind of the error, in the program's words.
    pub fn error_type(&self) -> Option<&'static str> {
        match self {
            Self::Valid => None,
            Self::ForceTerminated { .. } => Some("multi_turn:force_terminated"),
            Self::EmptyTurn { .. } => Some("multi_turn:empty_turn_model_response"),
            Self::StateMismatch { .. } => Some("multi_turn:instance_state_mismatch"),
            Self::ResponseMismatch { .. } => Some("multi_turn:execution_response_mismatch"),
        }
    }

    /// The error in the program's words.
    pub fn error_message(&self) -> Option<String> {
        Some(match self {
            Self::Valid => return None,
            Self::ForceTerminated { turns, expected } => format!(
                "Model was force-terminated during inference phase. The length of the model result turns ({turns}) does not match the length of the ground truth turns ({expected})."
            ),
            Self::EmptyTurn { turn } => format!("Model response list is empty for turn {turn}"),
            Self::StateMismatch { class, .. } => format!(
                "Model instance for {class} does not match the state with ground truth instance."
            ),
            Self::ResponseMismatch { turn, .. } => format!(
                "Model response execution results so far does not contain all the ground truth response execution results for turn {turn}."
            ),
        })
    }

    /// The turn at which it was found, from 0 on.
    pub fn turn(&self) -> Option<usize> {
        match self {
            Self::Valid | Self::ForceTerminated { .. } => None,
            Self::EmptyTurn { turn }
            | Self::StateMismatch { turn, .. }
            | Self::ResponseMismatch { turn, .. } => Some(*turn),
        }
    }
}

impl World {
    /// A fresh process for it.
    pub fn process(&self) -> Process {
        Process::new(self.long_context.clone())
    }

    /// Its objects as they begin, called after their owner.
    ///
    /// # Errors
    ///
    /// [`BfclError`] when a class cannot be loaded.
    pub fn instances(&self, owner: &str, process: &Process) -> Result<Instances, BfclError> {
        let owner = format!("{owner}_{}", self.id);
        let is_long = self.long_context.is_some();
        Instances::load(&self.classes, &self.scenario, &owner, process, is_long)
    }

    /// Checks an answer: after each turn that has gold calls, the public state of every class has to be that after the gold
    /// calls, and every result of the turn's gold calls has to be among all results so far, in any order.
    ///
    /// Both sides run in one process and share what objects of a process share. Steps without calls do not count.
    ///
    /// # Errors
    ///
    /// [`BfclError`] when a class cannot be loaded.
    pub fn check(
        &self,
        answer: &AnsweredTurns,
        gold: &[Vec<String>],
    ) -> Result<MultiTurnVerdict, BfclError> {
        if answer.len() != gold.len() {
            let (turns, expected) = (answer.len(), gold.len());
            return Ok(MultiTurnVerdict::ForceTerminated { turns, expected });
        }
        let mut process = self.process();
        let mut own = self.instances("m_eval", &process)?;
        let mut right = self.instances("m_ground_truth_eval", &process)?;
        let mut results: Vec<String> = Vec::new();
        for (turn, (steps, gold)) in answer.iter().zip(gold).enumerate() {
            for call in steps.iter().flatten() {
                results.push(own.execute(call, &mut process));
            }
            let expected: Vec<String> =
                gold.iter().map(|call| right.execute(call, &mut process)).collect();
            if gold.is_empty() {
                continue;
            }
            let is_empty = match &**steps {
                [] => true,
                [only] => only.is_empty(),
                _ => false,
            };
            if is_empty {
                return Ok(MultiTurnVerdict::EmptyTurn { turn });
            }
            if let Some((class, attributes)) = own.first_difference(&right, &process) {
                return Ok(MultiTurnVerdict::StateMismatch { turn, class, attributes });
            }
            let missing = missing(&expected, &results);
            if !missing.is_empty() {
                return Ok(MultiTurnVerdict::ResponseMismatch { turn, missing });
            }
        }
        Ok(MultiTurnVerdict::Valid)
    }
}

/// What is not among others, of which each counts once.
fn missing(expected: &[String], found: &[String]) -> Vec<String> {
    let mut left: Vec<&String> = found.iter().collect();
    let mut missing = Vec::new();
    for item in expected {
        match left.iter().position(|other| *other == item) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => missing.push(item.clone()),
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn world() -> World {
        World {
            id: "t".to_owned(),
            classes: vec![Class::TicketApi, Class::TwitterApi],
            scenario: Arc::new(json!({
                "TicketAPI": {"current_user": "ann"},
                "TwitterAPI": {"authenticated": true},
            })),
            long_context: None,
        }
    }

    fn calls(calls: &[&str]) -> Vec<String> {
        calls.iter().map(|call| (*call).to_owned()).collect()
    }

    #[test]
    fn results_count_over_all_turns_but_the_state_after_each() {
        let (create, status) = ("create_ticket(title='a')", "ticket_get_login_status()");
        let gold = [calls(&[create]), calls(&[status])];
        let check = |answer: &AnsweredTurns| world().check(answer, &gold).unwrap();
        let one = |list: &[&str]| vec![calls(list)];
        assert!(check(&[one(&[create]), one(&[status])]).is_valid());
        // Asked early, so the second turn needs some other call only, be it one that cannot be read.
        assert!(check(&[one(&[create, status]), one(&["logout"])]).is_valid());
        let verdict = check(&[one(&[create]), one(&["get_user_tickets()"])]);
        assert_eq!(verdict.error_type(), Some("multi_turn:execution_response_mismatch"));
        let verdict = check(&[one(&["create_ticket(title='b')"]), one(&["logout()"])]);
        let MultiTurnVerdict::StateMismatch { turn: 0, class, attributes } = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!((class, &*attributes), (Class::TicketApi, &["ticket_queue"][..]));
        assert_eq!(check(&[one(&[create]), vec![]]), MultiTurnVerdict::EmptyTurn { turn: 1 });
        let ended = MultiTurnVerdict::ForceTerminated { turns: 1, expected: 2 };
        assert_eq!(check(&[one(&[create])]), ended);
    }

    #[test]
    fn a_turn_without_gold_is_not_checked_but_carried_out() {
        let gold = [Vec::new(), calls(&["ticket_get_login_status()"])];
        let one = |list: &[&str]| vec![calls(list)];
        let status = "ticket_get_login_status()";
        assert!(world().check(&[one(&[status]), one(&[status])], &gold).unwrap().is_valid());
        let spoiled = [one(&["logout()"]), one(&[status])];
        assert!(!world().check(&spoiled, &gold).unwrap().is_valid());
    }

    #[test]
    fn default_mentions_are_shared_by_both_sides() {
        // The model's mention shows in its own later tweet and in the gold one alike.
        let gold = [calls(&["post_tweet('a')", "mention(0, ['x'])", "post_tweet('b')"])];
        let answer = [vec![gold[0].clone()]];
        let verdict = world().check(&answer, &gold).unwrap();
        assert_eq!(verdict.error_type(), Some("multi_turn:execution_response_mismatch"));
        let mut process = world().process();
        let mut own = world().instances("m", &process).unwrap();
        for call in &gold[0] {
            own.execute(call, &mut process);
        }
        let text = own.execute("get_tweet(1)", &mut process);
        assert!(text.ends_with(r#""mentions": ["x"]}"#), "{text}");
    }
}
