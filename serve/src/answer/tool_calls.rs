//! Tool calls in an answer.

use serde_json::Value;

use super::json_scan::{Head, ObjectEnd, head};
use super::{Delta, held_back};

/// How a model writes tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFormat {
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, as Hermes and Qwen do.
    Hermes,
    /// An answer that is `{"name": ..., "parameters": {...}}`, several divided by `;`, as Llama 3
    /// does.
    Llama3,
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Finds tool calls in what is said.
///
/// Arguments are passed on while they arrive. What begins like a call and is none is content, the
/// marks included.
#[derive(Debug)]
pub(super) struct ToolCalls {
    format: ToolFormat,
    stage: Stage,
    held: String,
    calls: usize,
}

#[derive(Debug)]
enum Stage {
    /// Content, or what is before it.
    Content,
    /// The beginning of a call; what is held begins behind the mark.
    Head,
    /// A call's arguments.
    Arguments(ObjectEnd),
    /// Behind the arguments.
    Tail,
    /// A call of another form, to be read when it is complete.
    Strange,
    /// Nothing but content can come.
    Plain,
}

impl ToolCalls {
    pub(super) fn new(format: ToolFormat) -> Self {
        let stage = match format {
            ToolFormat::Hermes => Stage::Content,
            ToolFormat::Llama3 => Stage::Head,
        };
        Self { format, stage, held: String::new(), calls: 0 }
    }

    /// Calls that have begun.
    pub(super) fn num_calls(&self) -> usize {
        self.calls
    }

    fn keys(&self) -> &'static [&'static str] {
        match self.format {
            ToolFormat::Hermes => &["arguments"],
            ToolFormat::Llama3 => &["parameters", "arguments"],
        }
    }

    /// Takes the next piece of text.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Delta>) {
        self.held += text;
        while self.advance(out) {}
    }

    /// What was held back.
    pub(super) fn finish(&mut self, out: &mut Vec<Delta>) {
        let held = std::mem::take(&mut self.held);
        match self.stage {
            Stage::Content | Stage::Plain => {
                // Space behind calls is of no interest.
                if self.calls == 0 || !held.trim().is_empty() {
                    content(&held, out);
                }
            }
            Stage::Head | Stage::Strange => match self.strange_call(&held) {
                Some((name, arguments)) => self.whole_call(name, arguments, out),
                None if self.format == ToolFormat::Hermes => {
                    content(&format!("{OPEN}{held}"), out);
                }
                None => content(&held, out),
            },
            Stage::Arguments(_) | Stage::Tail => {}
        }
    }

    /// Goes on as far as the text that is held allows; whether there is more to do.
    fn advance(&mut self, out: &mut Vec<Delta>) -> bool {
        match &mut self.stage {
            Stage::Plain => {
                content(&std::mem::take(&mut self.held), out);
                false
            }
            Stage::Content => {
                if let Some(at) = self.held.find(OPEN) {
                    content(self.held[..at].trim_end(), out);
                    self.held.drain(..at + OPEN.len());
                    self.stage = Stage::Head;
                    return true;
                }
                // Space may stand before a call.
                let marked = self.held.len() - held_back(&self.held, OPEN);
                let keep = self.held[..marked].trim_end().len();
                content(&self.held[..keep], out);
                self.held.drain(..keep);
                false
            }
            Stage::Head => match head(self.before_close(), self.keys()) {
                Head::Open => {
                    let is_over = self.before_close().len() < self.held.len();
                    if is_over {
                        self.stage = Stage::Strange;
                    }
                    is_over
                }
                Head::Call { name, arguments } => {
                    out.push(Delta::CallStart { index: self.calls, name });
                    self.calls += 1;
                    self.held.drain(..arguments);
                    self.stage = Stage::Arguments(ObjectEnd::default());
                    true
                }
                Head::Other => {
                    let is_object = self.held.trim_start().starts_with('{');
                    self.stage = match self.format {
                        ToolFormat::Llama3 if !is_object => Stage::Plain,
                        _ => Stage::Strange,
                    };
                    true
                }
            },
            Stage::Arguments(end) => {
                let at = end.push(&self.held);
                let text: String = self.held.drain(..at.unwrap_or(self.held.len())).collect();
                if !text.is_empty() {
                    out.push(Delta::CallArguments { index: self.calls - 1, text });
                }
                if at.is_some() {
                    self.stage = Stage::Tail;
                }
                at.is_some()
            }
            Stage::Tail => match self.format {
                ToolFormat::Hermes => {
                    let Some(at) = self.held.find(CLOSE) else { return false };
                    self.held.drain(..at + CLOSE.len());
                    self.stage = Stage::Content;
                    true
                }
                ToolFormat::Llama3 => {
                    let rest = self.held.trim_start().trim_start_matches('}').trim_start();
                    match rest.strip_prefix(';').map(str::to_owned) {
                        Some(rest) => {
                            self.held = rest;
                            self.stage = Stage::Head;
                            true
                        }
                        None if rest.is_empty() => false,
                        None => {
                            self.held = rest.to_owned();
                            self.stage = Stage::Plain;
                            true
                        }
                    }
                }
            },
            Stage::Strange => {
                // Llama's calls have no mark behind them, so these wait for the end.
                if self.format == ToolFormat::Llama3 {
                    return false;
                }
                let Some(at) = self.held.find(CLOSE) else { return false };
                let inner = self.held[..at].to_owned();
                self.held.drain(..at + CLOSE.len());
                match self.strange_call(&inner) {
                    Some((name, arguments)) => self.whole_call(name, arguments, out),
                    None => content(&format!("{OPEN}{inner}{CLOSE}"), out),
                }
                self.stage = Stage::Content;
                true
            }
        }
    }

    fn whole_call(&mut self, name: String, arguments: String, out: &mut Vec<Delta>) {
        out.push(Delta::CallStart { index: self.calls, name });
        out.push(Delta::CallArguments { index: self.calls, text: arguments });
        self.calls += 1;
    }

    /// What is held, up to the mark that closes a call.
    fn before_close(&self) -> &str {
        match self.format {
            ToolFormat::Hermes => self.held.split(CLOSE).next().unwrap_or_default(),
            ToolFormat::Llama3 => &self.held,
        }
    }

    /// A call whose fields stand in another order, or whose arguments are text or missing.
    fn strange_call(&self, text: &str) -> Option<(String, String)> {
        let value: Value = serde_json::from_str(text.trim()).ok()?;
        let name = value.get("name")?.as_str()?.to_owned();
        let arguments = self.keys().iter().find_map(|key| value.get(key));
        let arguments = match arguments {
            None => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            Some(_) => return None,
        };
        Some((name, arguments))
    }
}

fn content(text: &str, out: &mut Vec<Delta>) {
    if !text.is_empty() {
        out.push(Delta::Content(text.to_owned()));
    }
}
