//! Whether an action is the one that was demonstrated.

use std::sync::OnceLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::Action;

/// Characters of an action that are compared.
const MOST_CHARS: usize = 4_096;

/// When an action is the demonstrated one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    /// Where it is the same text or the same calls, blanks aside.
    #[default]
    Action,
    /// Where capitals, blanks and signs at the ends aside it says the same; calls have to be the same but for that in their texts.
    Words,
    /// As `words`; and a click is the demonstrated one where it lies no further than so much from it, or in the demonstrated box.
    Click {
        /// The distance, in the units of the coordinates; not negative.
        within: f64,
    },
}

impl Matcher {
    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Click { within } if !(within.is_finite() && *within >= 0.0) => {
                Some(format!("`within` of `matcher` is {within}, must not be negative"))
            }
            Self::Action | Self::Words | Self::Click { .. } => None,
        }
    }
}

/// Whether an action is the demonstrated one.
pub(crate) fn matches(matcher: &Matcher, action: &Action, shown: &Action) -> bool {
    match matcher {
        Matcher::Action => is_same(action, shown),
        Matcher::Words => says_same(action, shown),
        Matcher::Click { within } => {
            says_same(action, shown)
                || Click::of(action)
                    .zip(Click::of(shown))
                    .is_some_and(|(click, shown)| click.hits(&shown, *within))
        }
    }
}

fn is_same(action: &Action, shown: &Action) -> bool {
    let (action, shown) = (action.key(), shown.key());
    blanks(&action).eq(blanks(&shown))
}

fn blanks(text: &str) -> impl Iterator<Item = &str> {
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(place, _)| place);
    text[..end].split_whitespace()
}

fn says_same(action: &Action, shown: &Action) -> bool {
    match (action.tool_calls(), shown.tool_calls()) {
        ([], []) => plain(action.said()) == plain(shown.said()),
        (calls, others) => {
            calls.len() == others.len()
                && calls.iter().zip(others).all(|(call, other)| {
                    call.name == other.name && same_arguments(&call.arguments, &other.arguments)
                })
        }
    }
}

/// Capitals and blanks aside, and signs at the ends.
fn plain(text: &str) -> String {
    let joined = blanks(text).collect::<Vec<_>>().join(" ").to_lowercase();
    joined.trim_matches(|c: char| c.is_ascii_punctuation() || c == ' ').to_owned()
}

fn same_arguments(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one.iter().all(|(name, value)| other.get(name).is_some_and(|it| same_value(value, it)))
}

fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => plain(one) == plain(other),
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(one), Value::Object(other)) => same_arguments(one, other),
        (one, other) => one == other,
    }
}

/// What is done to a place: in what way, and where.
#[derive(Debug, Clone, PartialEq)]
struct Click {
    /// Such as `click`, `tap`, `long_press`.
    verb: String,
    /// A point, or a box from a corner to the opposite one.
    place: Vec<f64>,
}

impl Click {
    /// The click in an action: `click(12, 34)`, `click 12 34`, `tap [12, 34, 50, 60]`, or a call whose arguments are `x` and `y`,
    /// `coordinate`, `point`, `box` or `bbox`.
    fn of(action: &Action) -> Option<Self> {
        let [call] = action.tool_calls() else {
            return match action.tool_calls() {
                [] => Self::said(action.said()),
                _ => None,
            };
        };
        let number = |name: &str| call.arguments.get(name).and_then(Value::as_f64);
        let list = |name: &str| -> Option<Vec<f64>> {
            call.arguments.get(name)?.as_array()?.iter().map(Value::as_f64).collect()
        };
        let verb = match call.arguments.get("action").and_then(Value::as_str) {
            Some(verb) => verb.to_lowercase(),
            None => call.name.to_lowercase(),
        };
        let place = match (number("x"), number("y")) {
            (Some(x), Some(y)) => Some(vec![x, y]),
            _ => ["coordinate", "point", "box", "bbox"].into_iter().find_map(list),
        };
        place.filter(|place| [2, 4].contains(&place.len())).map(|place| Self { verb, place })
    }

    fn said(text: &str) -> Option<Self> {
        static FORM: OnceLock<Regex> = OnceLock::new();
        let form = FORM.get_or_init(|| {
            let number = r"-?\d{1,7}(?:\.\d{1,7})?";
            let rest = format!(r"(?:[\s,]+({number})){{0,1}}");
            let all = format!(
                r"^\s*([A-Za-z_]{{1,32}})[\s(\[]+({number})[\s,]+({number}){rest}{rest}[\s)\]]*$"
            );
            Regex::new(&all).expect("it is an expression")
        });
        let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(place, _)| place);
        let found = form.captures(&text[..end])?;
        let numbers = (2..=5).filter_map(|group| found.get(group)?.as_str().parse().ok());
        let place: Vec<f64> = numbers.collect();
        let verb = found[1].to_lowercase();
        [2, 4].contains(&place.len()).then_some(Self { verb, place })
    }

    /// Its middle.
    fn point(&self) -> [f64; 2] {
        match self.place[..] {
            [left, top, right, bottom] => [f64::midpoint(left, right), f64::midpoint(top, bottom)],
            _ => [self.place[0], self.place[1]],
        }
    }

    fn hits(&self, shown: &Self, within: f64) -> bool {
        if self.verb != shown.verb {
            return false;
        }
        let [x, y] = self.point();
        if let [left, top, right, bottom] = shown.place[..] {
            let inside = |value: f64, one: f64, other: f64| {
                one.min(other) <= value && value <= one.max(other)
            };
            return inside(x, left, right) && inside(y, top, bottom);
        }
        let [there_x, there_y] = shown.point();
        (x - there_x).hypot(y - there_y) <= within
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::ToolCall;

    use super::*;

    fn call(name: &str, arguments: Value) -> Action {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        Action::calls(vec![ToolCall::new(name, arguments)])
    }

    #[test]
    fn texts_match_by_blanks_or_by_words() {
        let said = |matcher, one: &str, other: &str| matches(&matcher, &one.into(), &other.into());
        assert!(said(Matcher::Action, " click  A\n", "click A"));
        assert!(!said(Matcher::Action, "Click A", "click A"));
        assert!(said(Matcher::Words, "Click A.", "click  a"));
        assert!(!said(Matcher::Words, "click B", "click A"));
        let giant = "a ".repeat(1 << 20);
        assert!(!said(Matcher::Words, &giant, "click A"));
    }

    #[test]
    fn calls_match_by_name_and_arguments() {
        let shown = call("type", json!({ "text": "Hello", "at": [1, 2] }));
        let same = call("type", json!({ "at": [1.0, 2.0], "text": "hello." }));
        assert!(matches(&Matcher::Words, &same, &shown));
        assert!(!matches(&Matcher::Action, &same, &shown));
        for other in [
            call("press", json!({ "text": "Hello", "at": [1, 2] })),
            call("type", json!({ "text": "Hello" })),
            call("type", json!({ "text": "Hello", "at": [1, 3] })),
            "type Hello".into(),
        ] {
            assert!(!matches(&Matcher::Words, &other, &shown), "{other}");
        }
        let two = Action::calls([shown.tool_calls(), shown.tool_calls()].concat());
        assert!(!matches(&Matcher::Words, &two, &shown));
    }

    #[test]
    fn clicks_match_in_a_box_or_near_a_point() {
        let near = Matcher::Click { within: 5.0 };
        let box_of = |text: &str| Action::from(text);
        for (said, shown, is_hit) in [
            ("click(12, 34)", "click(10, 30)", true),
            ("click 12 34", "CLICK [10, 40]", false),
            ("click(15, 25)", "click [10, 20, 30, 40]", true),
            ("click(5, 25)", "click [10, 20, 30, 40]", false),
            // A box is held by its middle: a larger one hits no better.
            ("click [0, 0, 1000, 1000]", "click [10, 20, 30, 40]", false),
            ("click [0, 0, 40, 60]", "click [10, 20, 30, 40]", true),
            ("tap(12, 34)", "click(12, 34)", false),
            ("click(12, 34) and more", "click(12, 34)", false),
            ("click(12)", "click(12, 34)", false),
            ("click(1e9, 3)", "click(12, 34)", false),
        ] {
            assert_eq!(matches(&near, &box_of(said), &box_of(shown)), is_hit, "{said} {shown}");
        }
        let shown = call("computer", json!({ "action": "click", "coordinate": [100, 200] }));
        let click = |x, y| call("computer", json!({ "action": "click", "coordinate": [x, y] }));
        assert!(
            matches(&near, &click(103, 204), &shown) && !matches(&near, &click(104, 204), &shown)
        );
        let other = call("computer", json!({ "action": "drag", "coordinate": [100, 200] }));
        assert!(!matches(&near, &other, &shown));
        let boxed = call("click", json!({ "bbox": [0, 0, 10, 10] }));
        assert!(matches(&near, &call("click", json!({ "x": 9, "y": 10 })), &boxed));
        assert!(Matcher::Click { within: -1.0 }.problem().is_some());
    }
}
