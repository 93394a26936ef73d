//! Thoughts before what is said.

use super::held_back;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Tells thoughts from what is said. Thoughts are what stands between `<think>` and `</think>` at
/// the front; line breaks around the marks belong to neither.
#[derive(Debug)]
pub(super) struct Reasoning {
    stage: Stage,
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Whether it begins with thoughts is not known yet.
    Front,
    /// The line breaks behind `<think>`.
    Opened,
    Thinking,
    /// The line breaks behind `</think>`.
    Closed,
    Saying,
}

impl Reasoning {
    pub(super) fn new(is_thinking: bool) -> Self {
        let stage = if is_thinking { Stage::Opened } else { Stage::Front };
        Self { stage, held: String::new() }
    }

    /// Takes the next piece of text.
    pub(super) fn push(&mut self, text: &str, thoughts: &mut String, said: &mut String) {
        self.held += text;
        loop {
            match self.stage {
                Stage::Front => {
                    let front = self.held.trim_start();
                    if let Some(rest) = front.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.stage = Stage::Opened;
                    } else if OPEN.starts_with(front) {
                        return;
                    } else {
                        self.stage = Stage::Saying;
                    }
                }
                Stage::Opened | Stage::Closed => {
                    let rest = self.held.trim_start_matches('\n').to_owned();
                    self.held = rest;
                    if self.held.is_empty() {
                        return;
                    }
                    let is_open = self.stage == Stage::Opened;
                    self.stage = if is_open { Stage::Thinking } else { Stage::Saying };
                }
                Stage::Thinking => {
                    if let Some(at) = self.held.find(CLOSE) {
                        *thoughts += self.held[..at].trim_end_matches('\n');
                        self.held.drain(..at + CLOSE.len());
                        self.stage = Stage::Closed;
                        continue;
                    }
                    // Line breaks may stand before the mark.
                    let marked = self.held.len() - held_back(&self.held, CLOSE);
                    let keep = self.held[..marked].trim_end_matches('\n').len();
                    *thoughts += &self.held[..keep];
                    self.held.drain(..keep);
                    return;
                }
                Stage::Saying => {
                    *said += &self.held;
                    self.held.clear();
                    return;
                }
            }
        }
    }

    /// What was held back.
    pub(super) fn finish(&mut self, thoughts: &mut String, said: &mut String) {
        match self.stage {
            Stage::Thinking => *thoughts += &self.held,
            _ => *said += &self.held,
        }
        self.held.clear();
    }
}
