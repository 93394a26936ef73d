//! What every document has from its beginning, and how it is asked by way of that.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::WebError;
use crate::connection::Reply;
use crate::tab::Tab;

/// Elements and texts of a page that are shown; pages with more are not.
const MAX_ELEMENTS: usize = 20_000;
/// Attributes that are told in the text of a page. None of `data-`: those are notes of a page to itself, in some of
/// MiniWoB++'s the answer.
pub(crate) const ATTRIBUTES: [&str; 22] = [
    "alt",
    "aria-label",
    "aria-expanded",
    "aria-selected",
    "cx",
    "cy",
    "fill",
    "for",
    "height",
    "href",
    "max",
    "min",
    "name",
    "placeholder",
    "points",
    "r",
    "role",
    "style",
    "title",
    "width",
    "x",
    "y",
];
/// The functions of [`ask`] and [`unmark`].
static FUNCTIONS: LazyLock<String> = LazyLock::new(|| {
    include_str!("script/page.js")
        .replace("ATTRIBUTE_NAMES", &json!(ATTRIBUTES).to_string())
        .replace("MOST_ELEMENTS", &MAX_ELEMENTS.to_string())
        .replace("UNMARK_FUNCTION", include_str!("script/unmark.js").trim_end())
        .replace("MARK_FUNCTION", include_str!("script/mark.js").trim_end())
        .replace("LOCATE_FUNCTION", include_str!("script/locate.js").trim_end())
});

/// The script that runs in every document before its own; with a clock of its own where that is to begin at a time, in milliseconds
/// since 1970.
pub(crate) fn first_script(clock_start: Option<i64>) -> String {
    let clock = clock_start
        .map(|start| include_str!("script/clock.js").replace("START_MILLIS", &start.to_string()));
    clock.unwrap_or_default() + &FUNCTIONS
}

/// Evaluates a call of `__spar_page`, whose value is never null.
///
/// # Errors
///
/// As [`Tab::evaluate`].
pub(crate) async fn ask(tab: &Tab, call: &str) -> Result<Value, WebError> {
    let reply = send_question(tab, call);
    answer_of(tab, call, reply).await
}

/// As [`ask`], sent now; [`answer_of`] waits for it.
pub(crate) fn send_question(tab: &Tab, call: &str) -> Reply {
    tab.send_expression(&format!("window.__spar_page ? ({call}) : null"))
}

/// The value of the call that was sent.
pub(crate) async fn answer_of(tab: &Tab, call: &str, reply: Reply) -> Result<Value, WebError> {
    match tab.value_of(reply).await? {
        // A document that was there before the tab was watched over has no functions yet.
        Value::Null => tab.evaluate(&format!("{}\n({call})", *FUNCTIONS)).await,
        value => Ok(value),
    }
}

/// Takes the marks from the page that the accessibility tree is read with.
pub(crate) fn send_unmark(tab: &Tab) -> Reply {
    tab.send_expression("window.__spar_page && __spar_page.unmark()")
}
