//! What all instances of a process share.

use std::sync::Arc;

use spar_python::{Exception, Opaque, Outcome, Value};

use crate::LongContext;
use crate::dates::DateTime;

/// The name under which a tweet's mentions stand while they are the default of all calls.
pub(crate) const DEFAULT_MENTIONS: &str = "the default list of mentions";
/// The name under which a card stands that all instances share.
const SHARED_CARD: &str = "a card that all instances share";

/// The objects that instances of one process share, so that a change by one shows in the others: the model's instances
/// and those of the gold calls see the same ones when an answer is checked.
///
/// A clone costs a count, and is independent from then on.
#[derive(Debug, Clone)]
pub struct Process {
    shared: Arc<Shared>,
}

#[derive(Debug, Clone)]
struct Shared {
    /// Mentions of all tweets that were posted without any.
    default_mentions: Value,
    /// The cards that long contexts add, by their numbers.
    cards: Value,
    /// The day on which ages are reckoned. It is given, not taken from the clock, so that episodes repeat.
    today: DateTime,
    long: Option<Arc<LongContext>>,
}

impl Process {
    /// A fresh process, with the texts of long contexts where they are needed.
    pub fn new(long: Option<Arc<LongContext>>) -> Self {
        let shared = Shared {
            default_mentions: Value::list([]),
            cards: long.as_ref().map_or_else(|| Value::dict::<&str>([]), |long| long.cards.clone()),
            today: DateTime::day(2026, 3, 23),
            long,
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn default_mentions(&self) -> &Value {
        &self.shared.default_mentions
    }

    pub(crate) fn default_mentions_mut(&mut self) -> &mut Value {
        &mut Arc::make_mut(&mut self.shared).default_mentions
    }

    pub(crate) fn shared_cards(&self) -> &Value {
        &self.shared.cards
    }

    pub(crate) fn shared_cards_mut(&mut self) -> &mut Value {
        &mut Arc::make_mut(&mut self.shared).cards
    }

    pub(crate) fn today(&self) -> DateTime {
        self.shared.today
    }

    /// The texts of long contexts.
    pub(crate) fn long(&self) -> Outcome<&LongContext> {
        self.shared
            .long
            .as_deref()
            .ok_or_else(|| Exception::refused("the texts of long contexts were not loaded"))
    }

    pub(crate) fn is_default_mentions(value: &Value) -> bool {
        is_named(value, DEFAULT_MENTIONS)
    }

    pub(crate) fn shared_card() -> Value {
        Value::Opaque(Arc::new(Opaque { type_name: "dict", repr: SHARED_CARD.to_owned() }))
    }

    pub(crate) fn is_shared_card(value: &Value) -> bool {
        is_named(value, SHARED_CARD)
    }
}

fn is_named(value: &Value, name: &str) -> bool {
    matches!(value, Value::Opaque(opaque) if opaque.repr == name)
}
