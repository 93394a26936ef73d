//! Tasks as WebArena writes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One task of WebArena's `test.raw.json` or of a file like it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebArenaTask {
    /// Its number.
    pub task_id: u64,
    /// The sites that it is about.
    #[serde(default)]
    pub sites: Vec<String>,
    /// What is asked for.
    pub intent: String,
    /// Where it begins; several addresses stand apart by ` |AND| `, each in a tab of its own.
    pub start_url: String,
    /// How it is judged.
    pub eval: Evaluation,
    /// Whether somebody has to be logged in.
    #[serde(default)]
    pub require_login: bool,
}

/// How a task is judged: every kind that is named has to be satisfied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Evaluation {
    /// `string_match`, `url_match`, `program_html`.
    pub eval_types: Vec<String>,
    /// What the answer has to say.
    #[serde(default)]
    pub reference_answers: Option<ReferenceAnswers>,
    /// Where the window has to be in the end; several addresses stand apart by ` |OR| `.
    #[serde(default)]
    pub reference_url: Option<String>,
    /// How addresses are compared; only `GOLD in PRED` is known.
    #[serde(default)]
    pub url_note: Option<String>,
    /// What pages have to show in the end.
    #[serde(default)]
    pub program_html: Option<Vec<HtmlCheck>>,
}

/// What an answer has to say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceAnswers {
    /// The whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<String>,
    /// Texts that stand in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_include: Option<Vec<String>>,
    /// Texts that it says in its own words; one or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuzzy_match: Option<Value>,
}

/// What a page has to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HtmlCheck {
    /// Its address, or `last` for the one that is shown.
    pub url: String,
    /// What of it: all where it is empty, or an expression of JavaScript.
    pub locator: String,
    /// What that has to be.
    pub required_contents: Contents,
}

/// What a part of a page has to be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<String>,
    /// Texts that stand in it, each with alternatives apart by ` |OR| `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_include: Option<Vec<String>>,
}

/// Reads tasks: a list of them, or one.
///
/// # Errors
///
/// The text says which task cannot be read or judged, and why.
pub fn read_webarena_tasks(text: &str) -> Result<Vec<WebArenaTask>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    let read = |(place, item): (usize, Value)| {
        let named = item.get("task_id").and_then(Value::as_u64);
        let told = |detail: String| match named {
            Some(id) => format!("task {id}: {detail}"),
            None => format!("entry {place}: {detail}"),
        };
        let task = WebArenaTask::deserialize(item).map_err(|error| told(error.to_string()))?;
        task.check().map_err(told)?;
        Ok(task)
    };
    items.into_iter().enumerate().map(read).collect()
}

/// Whether something is demanded by texts, each of which says something.
fn demands(whole: Option<&str>, parts: &[&str]) -> bool {
    let says = |text: &str| !text.trim().is_empty();
    (whole.is_some() || !parts.is_empty())
        && whole.into_iter().chain(parts.iter().copied()).all(says)
}

fn texts(list: Option<&Vec<String>>) -> Vec<&str> {
    list.into_iter().flatten().map(String::as_str).collect()
}

impl ReferenceAnswers {
    /// What an answer has to say in its own words; absent where that is no text and no list of texts.
    pub(super) fn fuzzy_texts(&self) -> Option<Vec<&str>> {
        match &self.fuzzy_match {
            None => Some(Vec::new()),
            Some(Value::String(one)) => Some(vec![one]),
            Some(Value::Array(several)) => several.iter().map(Value::as_str).collect(),
            Some(_) => None,
        }
    }

    /// What is wrong with it: whatever is answered has to be able to be wrong.
    fn problem(&self) -> Option<&'static str> {
        let Some(mut parts) = self.fuzzy_texts() else {
            return Some("`fuzzy_match` has to be a text or a list of texts");
        };
        parts.extend(texts(self.must_include.as_ref()));
        let is_demanding = demands(self.exact_match.as_deref(), &parts);
        (!is_demanding).then_some("`reference_answers` demands nothing, or has an empty text")
    }
}

impl Contents {
    /// Whether it demands something of what is shown.
    fn is_demanding(&self) -> bool {
        let parts: Vec<&str> =
            texts(self.must_include.as_ref()).iter().flat_map(|it| it.split(" |OR| ")).collect();
        demands(None, &parts) || (parts.is_empty() && self.exact_match.is_some())
    }
}

impl WebArenaTask {
    /// Whether it can be judged without a model and without functions of WebArena's own program.
    ///
    /// # Errors
    ///
    /// The text says what cannot be judged.
    pub fn check(&self) -> Result<(), String> {
        const KINDS: [&str; 3] = ["string_match", "url_match", "program_html"];
        let eval = &self.eval;
        if let Some(kind) = eval.eval_types.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(format!("`eval_types` has `{kind}`, allowed are {}", KINDS.join(", ")));
        }
        if eval.eval_types.is_empty() {
            return Err(format!("`eval_types` is empty, allowed are {}", KINDS.join(", ")));
        }
        let has = |kind: &str| eval.eval_types.iter().any(|it| it == kind);
        if has("string_match") {
            let Some(right) = &eval.reference_answers else {
                return Err("`string_match` needs `reference_answers`".to_owned());
            };
            if let Some(problem) = right.problem() {
                return Err(problem.to_owned());
            }
        }
        if has("url_match") && eval.reference_url.as_deref().unwrap_or_default().is_empty() {
            return Err("`url_match` needs `reference_url`".to_owned());
        }
        if let Some(note) =
            eval.url_note.as_deref().filter(|note| !note.is_empty() && *note != "GOLD in PRED")
        {
            return Err(format!("`url_note` is `{note}`, allowed is `GOLD in PRED`"));
        }
        let checks = eval.program_html.as_deref().unwrap_or_default();
        if has("program_html") && checks.is_empty() {
            return Err("`program_html` needs checks".to_owned());
        }
        for check in checks {
            let is_program = |text: &str| text.starts_with("func:");
            if is_program(&check.url) || is_program(&check.locator) {
                return Err("`program_html` asks a function of WebArena's own program".to_owned());
            }
            if !check.required_contents.is_demanding() {
                return Err("`required_contents` demands nothing, or has an empty text".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_and_those_that_cannot_be_judged_are_told() {
        let text = r#"[{"sites": ["shopping_admin"], "task_id": 7, "require_login": true, "storage_state": "x.json",
            "start_url": "http://shop.test/", "geolocation": null, "intent_template": "t", "intent": "What is the total?",
            "instantiation_dict": {}, "require_reset": false, "intent_template_id": 3,
            "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": ["12.50"]}, "reference_url": "",
                "program_html": [], "string_note": "", "reference_answer_raw_annotation": "12.50"}},
            {"task_id": 8, "intent": "i", "start_url": "http://a.test", "eval": {"eval_types": ["url_match"],
                "reference_answers": null, "reference_url": "http://a.test/x", "url_note": "GOLD in PRED"}}]"#;
        let tasks = read_webarena_tasks(text).unwrap();
        assert_eq!((tasks.len(), tasks[0].sites[0].as_str()), (2, "shopping_admin"));
        let task = |eval: String| {
            format!(r#"{{"task_id": 1, "intent": "i", "start_url": "u", "eval": {eval}}}"#)
        };
        let answered = |right: &str| {
            task(format!(r#"{{"eval_types": ["string_match"], "reference_answers": {right}}}"#))
        };
        let shown = |contents: &str| {
            let check =
                format!(r#"{{"url": "last", "locator": "", "required_contents": {contents}}}"#);
            task(format!(r#"{{"eval_types": ["program_html"], "program_html": [{check}]}}"#))
        };
        assert!(read_webarena_tasks(&answered(r#"{"fuzzy_match": ["a", "b"]}"#)).is_ok());
        assert!(read_webarena_tasks(&shown(r#"{"exact_match": ""}"#)).is_ok());
        for (bad, told) in [
            (
                r#"{"task_id": 1, "intent": "i", "start_url": "u", "eval": {"eval_types": ["magic"]}}"#,
                "task 1: `eval_types` has `magic`",
            ),
            (
                r#"{"task_id": 1, "intent": "i", "start_url": "u", "eval": {"eval_types": []}}"#,
                "is empty",
            ),
            (
                r#"{"task_id": 1, "intent": "i", "start_url": "u", "eval": {"eval_types": ["url_match"]}}"#,
                "reference_url",
            ),
            (r#"[{"intent": "i"}]"#, "entry 0"),
            // Else any answer would be right.
            (answered(r#"{}"#).as_str(), "demands nothing"),
            (answered(r#"{"must_include": []}"#).as_str(), "demands nothing"),
            (answered(r#"{"must_include": ["a", ""]}"#).as_str(), "an empty text"),
            (answered(r#"{"fuzzy_match": 7}"#).as_str(), "`fuzzy_match` has to be"),
            (answered(r#"{"must_exclude": ["a"]}"#).as_str(), "unknown field `must_exclude`"),
            (shown(r#"{}"#).as_str(), "demands nothing"),
            (shown(r#"{"must_include": []}"#).as_str(), "demands nothing"),
            (shown(r#"{"must_include": ["a |OR| "]}"#).as_str(), "an empty text"),
            ("nothing", "expected"),
        ] {
            let error = read_webarena_tasks(bad).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
