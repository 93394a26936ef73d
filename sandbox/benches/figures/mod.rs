//! The figures of a bench: a row each in a table, and on request a line each in a file.
//!
//! `--json FILE` after the bench's own arguments writes one JSON object a line.

#![allow(dead_code, reason = "each bench has its own copy of this module and uses its part")]

use std::time::Duration;

/// What a figure is held against.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Nothing: it is there to compare with.
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// Prints rows as they come and keeps them.
pub(crate) struct Figures {
    backend: &'static str,
    lines: Vec<String>,
}

impl Figures {
    pub(crate) fn new(backend: &'static str) -> Self {
        println!("| backend | what | median | target | met |\n| --- | --- | --- | --- | --- |");
        Self { backend, lines: Vec::new() }
    }

    /// `value` in `unit`, held against `target` in the same unit.
    pub(crate) fn add(&mut self, what: &str, value: f64, unit: &str, target: Target) {
        let (told, met) = match target {
            Target::None => (String::new(), None),
            Target::AtMost(most) => (format!("at most {most} {unit}"), Some(value <= most)),
            Target::AtLeast(least) => (format!("at least {least} {unit}"), Some(value >= least)),
        };
        let met_told = met.map_or("", |met| if met { "yes" } else { "**no**" });
        let digits = if value >= 1000.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        let backend = self.backend;
        println!("| {backend} | {what} | {value:.digits$} {unit} | {told} | {met_told} |");
        let bounds = match target {
            Target::None => serde_json::Value::Null,
            Target::AtMost(most) => serde_json::json!({ "at_most": most }),
            Target::AtLeast(least) => serde_json::json!({ "at_least": least }),
        };
        self.lines.push(
            serde_json::json!({
                "backend": backend, "what": what, "value": value, "unit": unit,
                "target": bounds, "met": met,
            })
            .to_string(),
        );
    }

    /// Writes the file that `--json` names.
    pub(crate) fn finish(self) {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--json");
        if let (Some(_), Some(path)) = (arguments.next(), arguments.next()) {
            let text = self.lines.join("\n") + "\n";
            std::fs::write(&path, text).unwrap_or_else(|error| panic!("write {path}: {error}"));
        }
    }
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
