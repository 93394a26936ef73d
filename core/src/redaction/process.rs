//! The secrets of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::Serialize;

use super::{MIN_SECRET_BYTES, Redactor, SecretError, SecretRule};

/// Whether anything is looked for, so that whoever writes asks no lock where nothing is.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
static CURRENT: RwLock<Option<Arc<Redactor>>> = RwLock::new(None);
static KNOWN: Mutex<Known> = Mutex::new(Known { names: BTreeMap::new(), rules: BTreeSet::new() });

struct Known {
    /// Names by value, so that what several name is looked for once.
    names: BTreeMap<String, String>,
    rules: BTreeSet<SecretRule>,
}

/// Tells a secret to this process: from here on its value stands in nothing that is written. `name` is what stands in
/// its place, such as the variable that it was read from. White space around the value is no part of it.
///
/// # Errors
///
/// [`SecretError::Short`] when it is shorter than [`MIN_SECRET_BYTES`]: it is not looked for then.
pub fn keep(name: &str, value: &str) -> Result<(), SecretError> {
    let value = value.trim();
    if value.len() < MIN_SECRET_BYTES {
        let (name, bytes) = (name.to_owned(), value.len());
        return Err(SecretError::Short { name, bytes, least: MIN_SECRET_BYTES });
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.names.contains_key(value) {
        known.names.insert(value.to_owned(), name.to_owned());
        publish(&known);
    }
    Ok(())
}

/// Has this process look for what these rules tell, too.
pub fn look_for(rules: &[SecretRule]) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let count = known.rules.len();
    known.rules.extend(rules);
    if known.rules.len() > count {
        publish(&known);
    }
}

/// What finds the secrets of this process; absent where there are none.
pub fn current() -> Option<Arc<Redactor>> {
    if !IS_ACTIVE.load(Ordering::Acquire) {
        return None;
    }
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A text without the secrets of this process, for messages.
pub fn told(text: impl Into<String>) -> String {
    let mut text = text.into();
    if let Some(redactor) = current() {
        redactor.clean(&mut text);
    }
    text
}

/// A value as JSON in one line, without the secrets of this process.
///
/// # Errors
///
/// When the value cannot be written as JSON.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let written = serde_json::to_vec(value)?;
    match current() {
        Some(redactor) if redactor.is_match(&written) => {
            let mut value = serde_json::from_slice(&written)?;
            redactor.value(&mut value);
            serde_json::to_vec(&value)
        }
        _ => Ok(written),
    }
}

fn publish(known: &Known) {
    let secrets = known.names.iter().map(|(value, name)| (name.as_str(), value.as_str()));
    let rules: Vec<_> = known.rules.iter().copied().collect();
    let redactor = Arc::new(Redactor::new(secrets, &rules));
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
    IS_ACTIVE.store(true, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_found_from_then_on() {
        let value = "a secret of the tests of this file alone";
        let text = format!("say {value}");
        keep("OF_TESTS", &format!("{value}\n")).unwrap();
        keep("OF_TESTS_AGAIN", value).unwrap();
        assert_eq!(current().unwrap().text(&text), "say [redacted OF_TESTS]");
        assert_eq!(told(text), "say [redacted OF_TESTS]");
        let json = to_json(&serde_json::json!({ "said": value, "times": 2 })).unwrap();
        assert_eq!(json, br#"{"said":"[redacted OF_TESTS]","times":2}"#);
        let short = keep("KEY", "EMPTY").unwrap_err();
        assert_eq!(short, SecretError::Short { name: "KEY".to_owned(), bytes: 5, least: 8 });
    }
}
