//! Arguments of calls: typed, and held to bounds before they are looked at.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Bytes of text in the arguments of one call.
const MOST_BYTES: usize = 20_000;
/// Values in the arguments of one call.
const MOST_VALUES: usize = 500;
/// Lists and objects within each other.
const MOST_DEPTH: usize = 6;
/// Characters of an error text.
const MOST_SAID: usize = 400;

/// What a call comes to: a result, or why it could not be carried out, for the policy.
pub(crate) type Outcome = Result<String, String>;

/// The arguments of a call of `tool` as its type has them.
///
/// # Errors
///
/// What the policy reads where they do not fit.
pub(crate) fn read<T: DeserializeOwned>(
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<T, String> {
    check_size(arguments)?;
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| {
        clipped(&format!("The arguments of `{tool}` do not fit: {error}."), MOST_SAID)
    })
}

/// Looks at no more than what is allowed, however large the arguments are.
fn check_size(arguments: &Map<String, Value>) -> Result<(), String> {
    let mut open: Vec<(&Value, usize)> = Vec::new();
    let (mut bytes, mut values) = (0usize, 0usize);
    let mut push = |open: &mut Vec<_>, bytes: usize, count: usize| {
        values += count;
        (values <= MOST_VALUES && bytes <= MOST_BYTES && open.len() <= MOST_VALUES)
            .then_some(())
            .ok_or_else(|| format!("The arguments are too large: {MOST_BYTES} bytes are the most."))
    };
    push(&mut open, 0, arguments.len())?;
    for (name, value) in arguments {
        bytes = bytes.saturating_add(name.len());
        open.push((value, 1));
    }
    while let Some((value, depth)) = open.pop() {
        if depth > MOST_DEPTH {
            return Err(format!("The arguments are nested more than {MOST_DEPTH} deep."));
        }
        match value {
            Value::String(text) => bytes = bytes.saturating_add(text.len()),
            Value::Array(list) => {
                push(&mut open, bytes, list.len())?;
                open.extend(list.iter().map(|value| (value, depth + 1)));
            }
            Value::Object(fields) => {
                push(&mut open, bytes, fields.len())?;
                for (name, value) in fields {
                    bytes = bytes.saturating_add(name.len());
                    open.push((value, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        push(&mut open, bytes, 0)?;
    }
    Ok(())
}

/// The JSON schema of arguments: an object of described properties, without references, titles and `null`, which stands for
/// what is left out.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    plain(&mut schema);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
        schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// Leaves out of a schema what says nothing to a policy. Schemas are as deep as types are.
fn plain(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for noise in ["$schema", "title", "format", "default"] {
        fields.remove(noise);
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|of| of != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    if let Some(items) = fields.get_mut("items") {
        plain(items);
    }
}

/// A text with at most so many characters, the end left out where there are more.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// A text that a record keeps: trimmed, not empty, of one or more lines, without other control characters.
///
/// # Errors
///
/// What the policy reads where it is none; `what` names it.
pub(crate) fn text(what: &str, given: &str, most: usize) -> Result<String, String> {
    let given = given.trim();
    if given.is_empty() {
        return Err(format!("The {what} is empty."));
    }
    optional_text(what, given, most)
}

/// As [`text`], but may be empty.
pub(crate) fn optional_text(what: &str, given: &str, most: usize) -> Result<String, String> {
    let given = given.trim();
    let length = given.chars().count();
    if length > most {
        return Err(format!("The {what} has {length} characters, {most} are the most."));
    }
    if given.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err(format!("The {what} has control characters in it."));
    }
    Ok(given.to_owned())
}

/// A mail address in small letters.
///
/// # Errors
///
/// What the policy reads where it is none.
pub(crate) fn address(given: &str) -> Result<String, String> {
    let given = given.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let parts = given.split_once('@');
    let fits = given.len() <= 80
        && parts.is_some_and(|(name, host)| {
            !name.is_empty() && host.contains('.') && name.chars().chain(host.chars()).all(is_plain)
        });
    match fits {
        true => Ok(given.to_ascii_lowercase()),
        false => Err(format!(
            "`{}` is no mail address, such as `name@post.example`; `contacts_search` tells those of people.",
            clipped(given, 80)
        )),
    }
}

/// Cents of an amount of money: 0.01 to 100000, no fractions of cents.
///
/// # Errors
///
/// What the policy reads where it is none.
pub(crate) fn cents(amount: f64) -> Result<i64, String> {
    let cents = (amount * 100.0).round();
    let fits = (1.0..=10_000_000.0).contains(&cents) && (cents - amount * 100.0).abs() < 1e-6;
    match fits {
        // In range, so that no bit is lost.
        true => Ok(cents as i64),
        false => Err(format!(
            "{amount} is no amount: it is 0.01 to 100000.00, with two digits behind the point."
        )),
    }
}

/// `12.50` of cents.
pub(crate) fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// Whether a text has all words of a query in it, in any order and case.
pub(crate) fn has_words(text: &str, query: &str) -> bool {
    let text = text.to_lowercase();
    query.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
}

/// A list for the policy: one line each, at most so many of them.
pub(crate) fn lines(what: &str, all: Vec<String>, most: usize) -> String {
    if all.is_empty() {
        return format!("No {what} found.");
    }
    let rest = all.len().saturating_sub(most);
    let mut text = all.into_iter().take(most).collect::<Vec<_>>().join("\n");
    if rest > 0 {
        text += &format!("\n... and {rest} more.");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape is looked at")]
    struct Sample {
        /// Whom.
        to: String,
        /// How much.
        amount: f64,
        /// For what.
        note: Option<String>,
        /// Who else.
        others: Option<Vec<String>>,
    }

    #[test]
    fn a_schema_describes_its_properties_and_knows_no_null() {
        let expected = json!({
            "type": "object",
            "properties": {
                "to": { "type": "string", "description": "Whom." },
                "amount": { "type": "number", "description": "How much." },
                "note": { "type": "string", "description": "For what." },
                "others": { "type": "array", "items": { "type": "string" }, "description": "Who else." },
            },
            "required": ["to", "amount"],
            "additionalProperties": false,
        });
        assert_eq!(schema_of::<Sample>(), expected);
    }

    #[test]
    fn arguments_of_any_size_and_depth_are_refused_in_few_words() {
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let wrong = [
            json!({ "to": "a".repeat(10_000_000), "amount": 1 }),
            json!({ "to": deep, "amount": 1 }),
            json!({ "to": vec![0; 1_000], "amount": 1 }),
            json!({ "to": "a", "amount": "NaN" }),
            json!({ "to": "a", "amount": null }),
            json!({ "to": "a" }),
            json!({ "to": "a", "amount": 1, ("x".repeat(15_000)): 1 }),
        ];
        for value in wrong {
            let error = read::<Sample>("pay", value.as_object().unwrap()).unwrap_err();
            assert!(error.chars().count() <= MOST_SAID + 3, "{error}");
        }
    }

    #[test]
    fn amounts_are_whole_cents() {
        assert_eq!(cents(12.5), Ok(1_250));
        assert_eq!(cents(0.29), Ok(29));
        for wrong in [0.0, -1.0, 0.001, 1e9, f64::NAN, f64::INFINITY] {
            assert!(cents(wrong).is_err(), "{wrong}");
        }
        assert_eq!((money(1_250), money(-5)), ("12.50".to_owned(), "-0.05".to_owned()));
    }
}
