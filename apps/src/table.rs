//! Records by key, shared until they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::diff::Change;

/// Records of one table at the most; what would be beyond is refused.
pub(crate) const MOST_RECORDS: usize = 400;

/// Records by key in the order of keys. A clone shares all records; a write copies the map, which holds pointers, and the record.
#[derive(Debug)]
pub(crate) struct Table<K, T>(Arc<BTreeMap<K, Arc<T>>>);

impl<K, T> Clone for Table<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone, T: Clone> Table<K, T> {
    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.0.get(key).map(Arc::as_ref)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &T)> {
        self.0.iter().map(|(key, record)| (key, record.as_ref()))
    }

    /// The record to be written, where there is one.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        if !self.0.contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.0).get_mut(key).map(Arc::make_mut)
    }

    /// Puts a record in the place of what has its key.
    ///
    /// # Errors
    ///
    /// What the policy reads where the table is full.
    pub(crate) fn insert(&mut self, key: K, record: T) -> Result<(), String> {
        if self.len() >= MOST_RECORDS && !self.contains(&key) {
            return Err(format!("There is no room for more than {MOST_RECORDS} entries."));
        }
        Arc::make_mut(&mut self.0).insert(key, Arc::new(record));
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        if !self.0.contains_key(key) {
            return None;
        }
        Arc::make_mut(&mut self.0).remove(key).map(Arc::unwrap_or_clone)
    }
}

impl<T: Clone> Table<u32, T> {
    /// Adds a record under the number behind the largest, and returns that.
    ///
    /// # Errors
    ///
    /// What the policy reads where the table is full.
    pub(crate) fn add(&mut self, record: T) -> Result<u32, String> {
        let key = self.0.last_key_value().map_or(1, |(last, _)| last.saturating_add(1));
        self.insert(key, record)?;
        Ok(key)
    }
}

impl<K: Ord, T: PartialEq + Serialize> Table<K, T> {
    /// Adds what differs in `after` to `changes`; `name` writes a key.
    pub(crate) fn diff(
        &self,
        after: &Self,
        table: &'static str,
        name: impl Fn(&K) -> String,
        changes: &mut Vec<Change>,
    ) {
        if Arc::ptr_eq(&self.0, &after.0) {
            return;
        }
        let value = |record: &Arc<T>| serde_json::to_value(record.as_ref()).unwrap_or(Value::Null);
        for (key, old) in self.0.iter() {
            let new = after.0.get(key);
            if new.is_some_and(|new| Arc::ptr_eq(old, new) || old == new) {
                continue;
            }
            changes.push(Change {
                table,
                key: name(key),
                before: Some(value(old)),
                after: new.map(value),
            });
        }
        for (key, new) in after.0.iter().filter(|(key, _)| !self.0.contains_key(*key)) {
            changes.push(Change { table, key: name(key), before: None, after: Some(value(new)) });
        }
    }
}

/// The id of a record, such as `m12`.
pub(crate) fn id(prefix: char, key: u32) -> String {
    format!("{prefix}{key}")
}

/// The key that an id names.
///
/// # Errors
///
/// What the policy reads where it is no id of this kind.
pub(crate) fn key(prefix: char, what: &str, id: &str) -> Result<u32, String> {
    let number = id.trim().strip_prefix(prefix).and_then(|number| number.parse().ok());
    number.ok_or_else(|| {
        let shown: String = id.chars().take(40).collect();
        format!("`{shown}` is no id of {what}; such an id is `{prefix}` and a number, as in `{prefix}1`.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_sees_no_later_write_and_a_full_table_refuses() {
        let mut table: Table<u32, String> = Table::default();
        let first = table.add("a".to_owned()).unwrap();
        let before = table.clone();
        table.get_mut(&first).unwrap().push('b');
        table.add("c".to_owned()).unwrap();
        assert_eq!((before.get(&first).unwrap().as_str(), before.len()), ("a", 1));
        let mut changes = Vec::new();
        before.diff(&table, "words", |key| id('w', *key), &mut changes);
        let keys: Vec<&str> = changes.iter().map(|change| change.key.as_str()).collect();
        assert_eq!(keys, ["w1", "w2"]);
        while table.len() < MOST_RECORDS {
            table.add(String::new()).unwrap();
        }
        assert!(table.add(String::new()).is_err());
        assert!(table.insert(1, String::new()).is_ok(), "what is there can be written");
        assert_eq!(table.remove(&9_999), None);
    }

    #[test]
    fn ids_are_read_strictly() {
        assert_eq!(key('m', "a mail", " m12 "), Ok(12));
        for wrong in ["12", "e12", "m", "m-1", "m1x", "m99999999999", ""] {
            assert!(key('m', "a mail", wrong).is_err(), "{wrong}");
        }
    }
}
