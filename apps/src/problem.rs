//! What a family makes of a world: an instruction, a goal, and the calls that reach it.

use serde_json::{Map, Value, json};

use crate::facts::Answer;
use crate::goal::{Goal, Kind, Milestone, Minefield, Passed, Required};
use crate::phone::FINISH;
use crate::task::{GoldCall, Then};

/// What a family makes of a world. Calls are added in the order of the demonstration.
#[derive(Debug)]
pub(crate) struct Problem {
    instruction: String,
    goal: Goal,
    gold: Vec<GoldCall>,
}

impl Problem {
    pub(crate) fn new(instruction: impl Into<String>) -> Self {
        Self { instruction: instruction.into(), goal: Goal::default(), gold: Vec::new() }
    }

    /// A lookup, whose result shows `words`; changes that come behind it count on the way only where these were shown before,
    /// by whatever tool.
    pub(crate) fn look(mut self, tool: &'static str, arguments: Value, words: &str) -> Self {
        let after = self.shown_so_far();
        self.goal.milestones.push(Milestone { what: Passed::Shown(words.to_owned()), after });
        self.push(tool, arguments, Then::Known);
        self
    }

    /// A call that makes required changes.
    pub(crate) fn make(
        mut self,
        tool: &'static str,
        arguments: Value,
        required: impl IntoIterator<Item = Required>,
    ) -> Self {
        let mut places = Vec::new();
        for required in required {
            let place = self.require(required);
            places.push(place);
        }
        self.push(tool, arguments, Then::Holds(places));
        self
    }

    /// Calls that make one required change together.
    pub(crate) fn make_by(
        mut self,
        tool: &'static str,
        calls: impl IntoIterator<Item = Value>,
        required: Required,
    ) -> Self {
        self.require(required);
        for arguments in calls {
            self.push(tool, arguments, Then::Known);
        }
        self
    }

    /// Something that must not happen at any time.
    pub(crate) fn mine(mut self, minefield: Minefield) -> Self {
        self.goal.minefields.push(minefield);
        self
    }

    /// As [`mine`](Self::mine): a new or changed record of `table` whose field is, or has, `value`.
    pub(crate) fn never(
        self,
        what: &'static str,
        table: &'static str,
        field: &'static str,
        value: &str,
    ) -> Self {
        let field = Some((field, value.to_owned()));
        self.mine(Minefield { what, table, key: None, kind: None, field })
    }

    /// As [`mine`](Self::mine): a record is removed that was to be kept.
    pub(crate) fn keep(self, what: &'static str, table: &'static str, key: &str) -> Self {
        let (key, kind) = (Some(key.to_owned()), Some(Kind::Removed));
        self.mine(Minefield { what, table, key, kind, field: None })
    }

    /// What is answered in the end.
    pub(crate) fn answer(mut self, answer: Answer) -> Self {
        self.goal.answer = Some(answer);
        self
    }

    /// The instruction, the goal, and the demonstration up to its end.
    pub(crate) fn finish(mut self) -> (String, Goal, Vec<GoldCall>) {
        let arguments = match &self.goal.answer {
            Some(answer) => json!({ "answer": answer.words() }),
            None => json!({}),
        };
        self.push(FINISH, arguments, Then::Over);
        debug_assert!(self.gold.len() < 64, "calls are counted in 64 bits");
        (self.instruction, self.goal, self.gold)
    }

    fn require(&mut self, required: Required) -> usize {
        let place = self.goal.required.len();
        self.goal.required.push(required);
        let after = self.shown_so_far();
        self.goal.milestones.push(Milestone { what: Passed::Made(place), after });
        place
    }

    fn shown_so_far(&self) -> Vec<usize> {
        let milestones = self.goal.milestones.iter().enumerate();
        let shown = milestones.filter(|(_, it)| matches!(it.what, Passed::Shown(_)));
        shown.map(|(place, _)| place).collect()
    }

    fn push(&mut self, tool: &'static str, arguments: Value, then: Then) {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        self.gold.push(GoldCall { tool, arguments, then });
    }
}
