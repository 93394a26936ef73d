//! What differs between two states of the world.

use std::fmt;

use serde_json::Value;

use crate::World;

/// A record that was made, changed or removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The table of the record: `contact`, `mail`, `event`, `file`, `folder`, `payment`, `request` or `scheduled`.
    pub table: &'static str,
    /// Its id, or its path.
    pub key: String,
    /// The record before, as JSON; absent where it was not there.
    pub before: Option<Value>,
    /// The record after; absent where it is gone.
    pub after: Option<Value>,
}

impl Change {
    /// The fields that differ, where the record was there before and is there after.
    pub(crate) fn changed_fields(&self) -> Vec<&str> {
        let (Some(Value::Object(before)), Some(Value::Object(after))) = (&self.before, &self.after)
        else {
            return Vec::new();
        };
        let differs = |(name, value): &(&String, &Value)| before.get(*name) != Some(value);
        after.iter().filter(differs).map(|(name, _)| name.as_str()).collect()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (&self.before, &self.after) {
            (None, _) => "made".to_owned(),
            (_, None) => "removed".to_owned(),
            _ => format!("changed in {}", self.changed_fields().join(", ")),
        };
        write!(f, "{} {} {what}", self.table, self.key)
    }
}

/// All records that differ, table by table in the order of keys. Costs next to nothing for tables that nobody wrote to.
pub fn changes(before: &World, after: &World) -> Vec<Change> {
    let mut found = Vec::new();
    before.contacts.diff(&after.contacts, &mut found);
    before.mail.diff(&after.mail, &mut found);
    before.calendar.diff(&after.calendar, &mut found);
    before.files.diff(&after.files, &mut found);
    before.payments.diff(&after.payments, &mut found);
    found
}
