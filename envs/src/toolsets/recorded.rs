//! What `scripts/record_scaffolds.py` has recorded, for tests.

use serde_json::Value;

/// A recording as it was before long runs of a character were written shorter.
pub(super) fn read(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    lengthen(&mut value);
    value
}

fn lengthen(value: &mut Value) {
    match value {
        Value::String(text) => *text = long(text),
        Value::Array(inner) => inner.iter_mut().for_each(lengthen),
        Value::Object(inner) => inner.values_mut().for_each(lengthen),
        _ => {}
    }
}

fn long(text: &str) -> String {
    let mut parts = text.split('⟦');
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (run, rest) = part.split_once('⟧').unwrap();
        let (character, count) = run.split_once('*').unwrap();
        whole += &character.repeat(count.parse().unwrap());
        whole += rest;
    }
    whole
}
