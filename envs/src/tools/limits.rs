//! How much one call of a tool may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Levels of nesting that are looked into; deeper arguments are refused.
const MOST_DEPTH: usize = 100;

/// How much the calls of tools may take; what goes beyond is told to the policy as an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimits {
    /// Calls in one turn that are carried out, 1 to 1024. Default 16.
    pub calls_per_turn: usize,
    /// Bytes of the arguments of a call as JSON, 1 to 2^30. Default 256 KiB.
    pub argument_bytes: usize,
    /// Bytes of the text of a result, 64 to 2^30; in a longer one the middle is left out. Default 64 KiB.
    pub result_bytes: usize,
    /// Bytes of all media of a result, 0 to 2^30; media beyond are left out, and the result says so. Default 8 MiB.
    pub media_bytes: usize,
    /// Seconds of a call, more than 0 and at most 86400. Default 30.
    pub call_secs: f64,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            calls_per_turn: 16,
            argument_bytes: 256 << 10,
            result_bytes: 64 << 10,
            media_bytes: 8 << 20,
            call_secs: 30.0,
        }
    }
}

impl ToolLimits {
    /// All that is out of range.
    pub fn problems(&self) -> Vec<String> {
        let numbers = [
            ("calls_per_turn", self.calls_per_turn, 1, 1024),
            ("argument_bytes", self.argument_bytes, 1, 1 << 30),
            ("result_bytes", self.result_bytes, 64, 1 << 30),
            ("media_bytes", self.media_bytes, 0, 1 << 30),
        ];
        let mut problems = Vec::new();
        for (name, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                problems.push(format!("limits.{name} is {value}, must lie in {least}..={most}"));
            }
        }
        if !(self.call_secs > 0.0 && self.call_secs <= 86_400.0) {
            let found = self.call_secs;
            problems.push(format!("limits.call_secs is {found}, must be above 0, at most 86400"));
        }
        problems
    }

    /// Why arguments are too many; absent where they are not.
    pub(super) fn refusal(&self, arguments: &Map<String, Value>) -> Option<String> {
        let mut left = self.argument_bytes;
        match spend_object(arguments, &mut left, MOST_DEPTH) {
            Ok(()) => None,
            Err(Beyond::Bytes) => Some(format!(
                "The arguments are longer than {} bytes; call it with less.",
                self.argument_bytes
            )),
            Err(Beyond::Depth) => {
                Some(format!("The arguments are nested more than {MOST_DEPTH} levels deep."))
            }
        }
    }
}

/// What arguments are too many of.
enum Beyond {
    Bytes,
    Depth,
}

/// Takes the bytes of a value from what is left: at least half of its JSON, and no more than that.
fn spend(value: &Value, left: &mut usize, depth: usize) -> Result<(), Beyond> {
    match value {
        Value::Null | Value::Bool(_) => take(4, left),
        Value::Number(number) => {
            let is_short = number.is_i64() || number.is_u64();
            take(if is_short { 1 } else { number.to_string().len() }, left)
        }
        Value::String(text) => take(text.len() + 2, left),
        Value::Array(values) => {
            take(2, left)?;
            let depth = depth.checked_sub(1).ok_or(Beyond::Depth)?;
            values.iter().try_for_each(|value| {
                take(1, left)?;
                spend(value, left, depth)
            })
        }
        Value::Object(fields) => spend_object(fields, left, depth),
    }
}

fn spend_object(fields: &Map<String, Value>, left: &mut usize, depth: usize) -> Result<(), Beyond> {
    take(2, left)?;
    let depth = depth.checked_sub(1).ok_or(Beyond::Depth)?;
    fields.iter().try_for_each(|(name, value)| {
        take(name.len() + 4, left)?;
        spend(value, left, depth)
    })
}

fn take(bytes: usize, left: &mut usize) -> Result<(), Beyond> {
    *left = left.checked_sub(bytes).ok_or(Beyond::Bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_and_deep_arguments_are_refused() {
        let limits = ToolLimits { argument_bytes: 1000, ..ToolLimits::default() };
        let refusal = |value: Value| limits.refusal(value.as_object().unwrap());
        assert_eq!(refusal(json!({ "a": ["b", 1, 2.5, null, { "c": true }] })), None);
        for long in [json!({ "a": "b".repeat(1000) }), json!({ "a": vec![1; 1000] })] {
            assert!(refusal(long).unwrap().contains("longer than 1000 bytes"));
        }
        let mut deep = json!(1);
        for _ in 0..120 {
            deep = json!([deep]);
        }
        assert!(refusal(json!({ "a": deep })).unwrap().contains("more than 100 levels deep"));
    }

    #[test]
    fn all_limits_that_are_out_of_range_are_told() {
        assert!(ToolLimits::default().problems().is_empty());
        let none = ToolLimits {
            calls_per_turn: 0,
            argument_bytes: 0,
            result_bytes: 0,
            media_bytes: usize::MAX,
            call_secs: f64::NAN,
        };
        assert_eq!(none.problems().len(), 5);
    }
}
