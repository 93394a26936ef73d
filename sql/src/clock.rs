//! The time that queries see, which is always the same.

use std::borrow::Cow;

use crate::reader::{Token, TokenKind, tokens};

/// What the time is.
const NOW: &str = "2024-01-01 00:00:00";

/// Functions whose first argument is a time, and now where there is none.
const TIMES: [&str; 5] = ["date", "time", "datetime", "julianday", "unixepoch"];

/// The query with a fixed time for `now`, so that it tells the same whenever it is run: in the calls of SQLite's functions
/// of time, `'now'` and a time that is left out are 2024-01-01 00:00:00, and so are `CURRENT_TIMESTAMP`, `CURRENT_DATE` and
/// `CURRENT_TIME`. A `now` that the query computes is not found.
pub(crate) fn with_fixed_now(sql: &str) -> Cow<'_, str> {
    let lower = sql.to_ascii_lowercase();
    let has_time = TIMES.iter().chain(&["strftime", "timediff"]).any(|name| lower.contains(name));
    if !has_time && !lower.contains("current_") {
        return Cow::Borrowed(sql);
    }
    let found = tokens(sql);
    let mut fixed = String::with_capacity(sql.len() + 64);
    // The calls that are open, each with how many commas it has and whether it has any argument.
    let mut open: Vec<Call> = Vec::new();
    let mut last: Option<Token<'_>> = None;
    for (place, token) in found.iter().enumerate() {
        let behind = || found[place + 1..].iter().find(|token| token.is_significant());
        match (token.kind, token.text) {
            (TokenKind::Mark, "(") => {
                let name = last.filter(|last| last.kind == TokenKind::Word);
                open.push(Call::new(name.map_or("", |name| name.text)));
            }
            (TokenKind::Mark, ")") => {
                if let Some(call) = open.pop() {
                    fixed.push_str(&call.lacking());
                }
            }
            (TokenKind::Mark, ",") => {
                if let Some(call) = open.last_mut() {
                    call.commas += 1;
                }
            }
            _ if token.is_significant() => {
                if let Some(call) = open.last_mut() {
                    call.has_argument = true;
                }
            }
            _ => {}
        }
        let is_in_time = open.last().is_some_and(Call::is_of_time);
        let text = token.text;
        let is_part_of_name = || {
            last.is_some_and(|last| last.text == ".")
                || behind().is_some_and(|next| next.text == "." || next.text == "(")
        };
        if token.kind == TokenKind::Text && is_in_time && text.eq_ignore_ascii_case("'now'") {
            fixed.push_str(&format!("'{NOW}'"));
        } else if token.kind == TokenKind::Word
            && let Some(value) = current(text)
            && !is_part_of_name()
        {
            fixed.push_str(&format!("'{value}'"));
        } else {
            fixed.push_str(text);
        }
        if token.is_significant() {
            last = Some(*token);
        }
    }
    Cow::Owned(fixed)
}

/// What a keyword for the time stands for.
fn current(word: &str) -> Option<&'static str> {
    let (date, time) = NOW.split_at(10);
    match &*word.to_ascii_lowercase() {
        "current_timestamp" => Some(NOW),
        "current_date" => Some(date),
        "current_time" => Some(time.trim_start()),
        _ => None,
    }
}

/// A call that is open.
struct Call {
    name: String,
    commas: usize,
    has_argument: bool,
}

impl Call {
    fn new(name: &str) -> Self {
        Self { name: name.to_ascii_lowercase(), commas: 0, has_argument: false }
    }

    fn is_of_time(&self) -> bool {
        TIMES.contains(&&*self.name) || ["strftime", "timediff"].contains(&&*self.name)
    }

    /// The argument that it lacks where the time is left out.
    fn lacking(&self) -> String {
        if TIMES.contains(&&*self.name) && !self.has_argument {
            return format!("'{NOW}'");
        }
        if self.name == "strftime" && self.has_argument && self.commas == 0 {
            return format!(", '{NOW}'");
        }
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_fixed_where_it_is_a_time_and_nowhere_else() {
        for (sql, fixed) in [
            ("SELECT date('Now')", "SELECT date('2024-01-01 00:00:00')"),
            ("SELECT datetime()", "SELECT datetime('2024-01-01 00:00:00')"),
            ("SELECT strftime('%Y')", "SELECT strftime('%Y', '2024-01-01 00:00:00')"),
            ("SELECT strftime('%Y', d)", "SELECT strftime('%Y', d)"),
            ("SELECT CURRENT_DATE - t.current_date", "SELECT '2024-01-01' - t.current_date"),
            ("SELECT a FROM t WHERE date = 'now'", "SELECT a FROM t WHERE date = 'now'"),
            ("SELECT julianday(max('now', x))", "SELECT julianday(max('now', x))"),
            ("SELECT 'current_time'", "SELECT 'current_time'"),
            ("SELECT ))date((", "SELECT ))date(("),
        ] {
            assert_eq!(with_fixed_now(sql), fixed);
        }
    }
}
