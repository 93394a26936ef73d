//! What a task demands: changes, an order of milestones, and what must not happen.

use serde_json::Value;

use crate::diff::Change;
use crate::facts::{Answer, Fact, normal, says};

/// Fields of new records that nobody demands anything of.
const FREE_WHEN_NEW: [&str; 3] = ["at", "read", "response"];

/// What a field has to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Match {
    /// Exactly this.
    Is(Value),
    /// These words, whatever their case, spaces and punctuation.
    Reads(String),
    /// A text that says these facts.
    Says(Vec<Fact>),
    /// These lines, in any order.
    Lists(Answer),
    /// Whatever it is.
    Any,
}

impl Match {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Is(demanded) => demanded == value,
            Self::Reads(words) => value.as_str().is_some_and(|text| normal(text) == normal(words)),
            Self::Says(facts) => value.as_str().is_some_and(|text| says(text, facts)),
            Self::Lists(lines) => value.as_str().is_some_and(|text| lines.is(text)),
            Self::Any => true,
        }
    }
}

/// How a record has to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is new. Fields that are not named are empty.
    Made,
    /// It has changed in the fields that are named, and in no other.
    Changed,
    /// It is gone.
    Removed,
}

/// A change that has to be there in the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Required {
    pub(crate) table: &'static str,
    /// The id or path; absent for a new record that the world numbers.
    pub(crate) key: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) fields: Vec<(&'static str, Match)>,
}

impl Required {
    pub(crate) fn made(table: &'static str) -> Self {
        Self { table, key: None, kind: Kind::Made, fields: Vec::new() }
    }

    pub(crate) fn changed(table: &'static str, key: impl Into<String>) -> Self {
        Self { table, key: Some(key.into()), kind: Kind::Changed, fields: Vec::new() }
    }

    pub(crate) fn removed(table: &'static str, key: impl Into<String>) -> Self {
        Self { table, key: Some(key.into()), kind: Kind::Removed, fields: Vec::new() }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn is(self, field: &'static str, value: impl Into<Value>) -> Self {
        self.field(field, Match::Is(value.into()))
    }

    pub(crate) fn reads(self, field: &'static str, words: &str) -> Self {
        self.field(field, Match::Reads(words.to_owned()))
    }

    pub(crate) fn says(self, field: &'static str, facts: Vec<Fact>) -> Self {
        self.field(field, Match::Says(facts))
    }

    pub(crate) fn lists(self, field: &'static str, lines: &[&str]) -> Self {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        self.field(field, Match::Lists(Answer::Names(lines)))
    }

    pub(crate) fn any(self, field: &'static str) -> Self {
        self.field(field, Match::Any)
    }

    fn field(mut self, field: &'static str, demanded: Match) -> Self {
        self.fields.push((field, demanded));
        self
    }

    /// Whether a change is the one that is demanded.
    pub(crate) fn fits(&self, change: &Change) -> bool {
        if change.table != self.table || self.key.as_ref().is_some_and(|key| *key != change.key) {
            return false;
        }
        let field = |name: &str| self.fields.iter().find(|(field, _)| *field == name);
        match (self.kind, &change.before, &change.after) {
            (Kind::Made, None, Some(Value::Object(after))) => {
                after.iter().all(|(name, value)| match field(name) {
                    Some((_, demanded)) => demanded.fits(value),
                    None => is_empty(value) || FREE_WHEN_NEW.contains(&name.as_str()),
                })
            }
            (Kind::Changed, Some(_), Some(after)) => {
                let changed = change.changed_fields();
                self.fields
                    .iter()
                    .all(|(name, demanded)| demanded.fits(after.get(name).unwrap_or(&Value::Null)))
                    && changed.iter().all(|name| field(name).is_some())
            }
            (Kind::Removed, Some(_), None) => true,
            _ => false,
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Something on the way to the goal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Milestone {
    pub(crate) what: Passed,
    /// Places of the milestones that come first.
    pub(crate) after: Vec<usize>,
}

/// By what a milestone is passed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Passed {
    /// A result has shown these words.
    Shown(String),
    /// The required change at this place has been made.
    Made(usize),
}

/// Something that must not happen at any time, even if it is undone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Minefield {
    /// What happened then, for reports.
    pub(crate) what: &'static str,
    pub(crate) table: &'static str,
    /// The record; absent for any.
    pub(crate) key: Option<String>,
    /// In what way; absent for any.
    pub(crate) kind: Option<Kind>,
    /// Where absent, whatever the change says; else a string field must be, or a list must have, this value.
    pub(crate) field: Option<(&'static str, String)>,
}

impl Minefield {
    /// Whether a change of one call steps on it.
    pub(crate) fn is_hit(&self, change: &Change) -> bool {
        let kind = match (&change.before, &change.after) {
            (None, _) => Kind::Made,
            (_, None) => Kind::Removed,
            _ => Kind::Changed,
        };
        let has = |value: &Value, demanded: &str| match value {
            Value::String(text) => text == demanded,
            Value::Array(list) => list.iter().any(|it| it.as_str() == Some(demanded)),
            _ => false,
        };
        let says_it = self.field.as_ref().is_none_or(|(name, demanded)| {
            let now = change.after.as_ref().and_then(|record| record.get(name));
            now.is_some_and(|value| has(value, demanded))
        });
        change.table == self.table
            && self.key.as_ref().is_none_or(|key| *key == change.key)
            && self.kind.is_none_or(|demanded| demanded == kind)
            && says_it
    }
}

/// All that a task demands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Goal {
    pub(crate) required: Vec<Required>,
    /// What is to be answered in the end; absent where nothing was asked.
    pub(crate) answer: Option<Answer>,
    /// In an order in which each comes behind those it is after.
    pub(crate) milestones: Vec<Milestone>,
    pub(crate) minefields: Vec<Minefield>,
}

/// Which of the required changes are among those that were made, and the places of those that stand for none.
///
/// Each change stands for one requirement and each requirement for one change; the assignment is one with as many pairs as
/// possible.
pub(crate) fn assign(required: &[Required], changes: &[Change]) -> (Vec<bool>, Vec<usize>) {
    let mut taken_by: Vec<Option<usize>> = vec![None; changes.len()];
    for place in 0..required.len() {
        let mut seen = vec![false; changes.len()];
        augment(required, changes, place, &mut taken_by, &mut seen);
    }
    let mut holds = vec![false; required.len()];
    taken_by.iter().flatten().for_each(|place| holds[*place] = true);
    let is_left = |place: &usize| taken_by[*place].is_none();
    (holds, (0..changes.len()).filter(is_left).collect())
}

/// Finds a change for a requirement, others making room. Requirements are few, and so is how deep this goes.
fn augment(
    required: &[Required],
    changes: &[Change],
    place: usize,
    taken_by: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for (index, change) in changes.iter().enumerate() {
        if seen[index] || !required[place].fits(change) {
            continue;
        }
        seen[index] = true;
        let is_free =
            taken_by[index].is_none_or(|other| augment(required, changes, other, taken_by, seen));
        if is_free {
            taken_by[index] = Some(place);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(key: &str, after: Value) -> Change {
        Change { table: "mail", key: key.to_owned(), before: None, after: Some(after) }
    }

    #[test]
    fn changes_are_assigned_so_that_as_many_requirements_as_possible_hold() {
        let any = Required::made("mail").any("to");
        let one = Required::made("mail").is("to", "a");
        let changes = [made("m1", json!({ "to": "a" })), made("m2", json!({ "to": "b" }))];
        // Taken greedily, the first requirement would leave none for the second.
        assert_eq!(assign(&[any.clone(), one.clone()], &changes), (vec![true, true], vec![]));
        assert_eq!(assign(&[one.clone(), one], &changes), (vec![true, false], vec![1]));
        assert_eq!(assign(&[any], &[]), (vec![false], vec![]));
    }

    #[test]
    fn only_what_is_named_may_change() {
        let change = Change {
            table: "event",
            key: "e1".to_owned(),
            before: Some(json!({ "title": "x", "start": 1, "place": "" })),
            after: Some(json!({ "title": "x", "start": 2, "place": "" })),
        };
        assert!(Required::changed("event", "e1").is("start", 2).fits(&change));
        assert!(!Required::changed("event", "e1").is("start", 3).fits(&change));
        assert!(!Required::changed("event", "e1").is("place", "").fits(&change));
        assert!(!Required::changed("event", "e2").is("start", 2).fits(&change));
        assert!(!Required::removed("event", "e1").fits(&change));
        let full = made("m1", json!({ "to": "a", "starred": true }));
        assert!(!Required::made("mail").is("to", "a").fits(&full), "what is not named is empty");
    }

    #[test]
    fn a_minefield_is_hit_by_its_change_alone() {
        let mine = Minefield {
            what: "shared with the wrong one",
            table: "file",
            key: None,
            kind: None,
            field: Some(("shared_with", "b".to_owned())),
        };
        let shared = |with: Value| Change {
            table: "file",
            key: "/a".to_owned(),
            before: Some(json!({})),
            after: Some(json!({ "shared_with": with })),
        };
        assert!(mine.is_hit(&shared(json!(["a", "b"]))));
        assert!(!mine.is_hit(&shared(json!(["a"]))));
    }
}
