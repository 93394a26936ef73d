//! Whether an action is the one that was demonstrated.

use std::sync::OnceLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::Action;

/// Ways to point at something, without what stands between their words: of them a place of four numbers is a box.
const CLICKS: [&str; 14] = [
    "click",
    "tap",
    "longpress",
    "longclick",
    "longtap",
    "doubleclick",
    "doubletap",
    "tripleclick",
    "leftclick",
    "rightclick",
    "middleclick",
    "leftsingle",
    "leftdouble",
    "rightsingle",
];

/// When an action is the demonstrated one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    /// Where it is the same text or the same calls, blanks aside.
    #[default]
    Action,
    /// Where capitals, blanks, quotes around it and `.,;:!?` at its end aside it says the same; calls have to be the same but for that in their texts.
    Words,
    /// As `words`; and a click is the demonstrated one where it lies no further than so much from it, or in the demonstrated box, all else being the same. Of what is no click, such as a swipe, all places have to be as near, in their order.
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
    text.split_whitespace()
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

/// Capitals, blanks, quotes around it and signs at its end aside; where it has nothing else, these are kept.
fn plain(text: &str) -> String {
    let joined = blanks(text).collect::<Vec<_>>().join(" ").to_lowercase();
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '\u{2018}'..='\u{201f}');
    let is_sign = |c: char| matches!(c, ' ' | '.' | ',' | ';' | ':' | '!' | '?') || is_quote(c);
    let rest = joined.trim_end_matches(is_sign).trim_start_matches(is_quote);
    if rest.is_empty() { joined } else { rest.to_owned() }
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
    /// The tool that is called; none where it is said in words.
    tool: Option<String>,
    /// Such as `click`, `tap`, `long_press`.
    verb: String,
    /// A point, or a box from a corner to the opposite one; two points where the verb is no click.
    place: Vec<f64>,
    /// The other place of what goes from one to another.
    end: Option<Vec<f64>>,
    /// All other arguments.
    rest: Map<String, Value>,
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
        let mut rest = call.arguments.clone();
        let verb = match rest.get("action").and_then(Value::as_str).map(str::to_lowercase) {
            Some(verb) => {
                rest.remove("action");
                verb
            }
            None => call.name.to_lowercase(),
        };
        let number = |name: &str| call.arguments.get(name).and_then(Value::as_f64);
        let list = |name: &str| -> Option<Vec<f64>> {
            call.arguments.get(name)?.as_array()?.iter().map(Value::as_f64).collect()
        };
        let place = match (number("x"), number("y")) {
            (Some(x), Some(y)) => {
                rest.remove("x");
                rest.remove("y");
                vec![x, y]
            }
            _ => {
                let is_place = |name: &str| Some((name.to_owned(), list(name)?));
                let (name, place) =
                    ["coordinate", "point", "box", "bbox"].into_iter().find_map(is_place)?;
                rest.remove(&name);
                place
            }
        };
        let end = list("coordinate2").filter(|end| end.len() == 2);
        if end.is_some() {
            rest.remove("coordinate2");
        }
        let tool = Some(call.name.clone());
        [2, 4].contains(&place.len()).then_some(Self { tool, verb, place, end, rest })
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
        let found = form.captures(text)?;
        let numbers = (2..=5).filter_map(|group| found.get(group)?.as_str().parse().ok());
        let place: Vec<f64> = numbers.collect();
        let verb = found[1].to_lowercase();
        let is_place = [2, 4].contains(&place.len());
        is_place.then(|| Self { tool: None, verb, place, end: None, rest: Map::new() })
    }

    /// Whether it points at one place, so that four numbers are a box.
    fn is_click(&self) -> bool {
        let verb = self.verb.replace(['_', '-', ' '], "");
        CLICKS.contains(&verb.as_str())
    }

    /// Its middle.
    fn point(&self) -> [f64; 2] {
        match self.place[..] {
            [left, top, right, bottom] => [f64::midpoint(left, right), f64::midpoint(top, bottom)],
            _ => [self.place[0], self.place[1]],
        }
    }

    fn hits(&self, shown: &Self, within: f64) -> bool {
        let is_near_end = match (&self.end, &shown.end) {
            (Some(end), Some(other)) => are_near(end, other, within),
            (None, None) => true,
            _ => false,
        };
        if self.tool != shown.tool
            || self.verb != shown.verb
            || !is_near_end
            || !same_arguments(&self.rest, &shown.rest)
        {
            return false;
        }
        if !self.is_click() {
            return are_near(&self.place, &shown.place, within);
        }
        let [x, y] = self.point();
        if let [left, top, right, bottom] = shown.place[..] {
            let inside = |value: f64, one: f64, other: f64| {
                one.min(other) <= value && value <= one.max(other)
            };
            return inside(x, left, right) && inside(y, top, bottom);
        }
        are_near(&[x, y], &shown.point(), within)
    }
}

/// Whether these are as many points, none of which lies further than so much from the other in its place.
fn are_near(points: &[f64], others: &[f64], within: f64) -> bool {
    let is_near =
        |(one, other): (&[f64], &[f64])| (one[0] - other[0]).hypot(one[1] - other[1]) <= within;
    points.len() == others.len() && points.chunks_exact(2).zip(others.chunks_exact(2)).all(is_near)
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
        assert!(said(Matcher::Words, "\"Click A.\"", "click a"));
        for (one, other) in [("-5", "5"), ("?", ""), ("f(x", "f(x)"), ("#a", "a"), ("5%", "5")] {
            assert!(!said(Matcher::Words, one, other), "{one} {other}");
        }
        let giant = "a ".repeat(1 << 20);
        assert!(!said(Matcher::Words, &giant, "click A"));
        // The end of a long one counts as well.
        for matcher in [Matcher::Action, Matcher::Words] {
            assert!(!said(matcher, &format!("{giant}b"), &format!("{giant}c")));
        }
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
            ("double_click(15, 25)", "double_click [10, 20, 30, 40]", true),
            // What goes from one place to another has no box.
            ("swipe 11 21 31 41", "swipe 10 20 30 40", true),
            ("swipe 30 40 10 20", "swipe 10 20 30 40", false),
            ("swipe 20 30", "swipe 10 20 30 40", false),
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
        for other in [
            json!({ "action": "click", "coordinate": [100, 200], "button": "right" }),
            json!({ "action": "click", "coordinate": [100, 200], "coordinate2": [1, 1] }),
        ] {
            assert!(!matches(&near, &call("computer", other.clone()), &shown), "{other}");
        }
        assert!(!matches(
            &near,
            &call("phone", json!({ "action": "click", "x": 100, "y": 200 })),
            &shown
        ));
        let typed = |text: &str, x: i32| {
            call("computer", json!({ "action": "type", "coordinate": [x, 5], "text": text }))
        };
        assert!(matches(&near, &typed("right.", 6), &typed("Right", 5)));
        assert!(!matches(&near, &typed("WRONG", 5), &typed("Right", 5)));
        let drag = |x: i32| json!({ "action": "drag", "coordinate": [5, 5], "coordinate2": [x, 9], "direction": "up" });
        let drag = |x: i32| call("computer", drag(x));
        assert!(matches(&near, &drag(53), &drag(50)) && !matches(&near, &drag(56), &drag(50)));
        let boxed = call("click", json!({ "bbox": [0, 0, 10, 10] }));
        assert!(matches(&near, &call("click", json!({ "x": 9, "y": 10 })), &boxed));
        assert!(Matcher::Click { within: -1.0 }.problem().is_some());
    }
}
