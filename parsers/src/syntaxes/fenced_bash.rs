//! A command in a fenced block.

use std::ops::Range;

use serde_json::{Map, Value};
use spar_core::{Action, ToolCall, ToolSpec};

use crate::action_parser::read_back;
use crate::marks::trimmed;
use crate::{ActionParser, FormatError, FormatErrorKind, Parsed, WriteError};

/// What stands in the only block that is fenced by backticks and called `bash`, `sh` or, as
/// mini-swe-agent asks for, `mswea_bash_command`.
///
/// Blocks are those of Markdown: a fence begins a line, and the block ends at a line that is
/// nothing but as many backticks or more. Blocks of other languages are words, and so is what they
/// contain. Where a tool `bash` with a parameter `command` is offered, the block is a call of it.
pub(crate) struct FencedBash;

const LANGUAGES: &[&str] = &["bash", "sh", "mswea_bash_command"];
const TOOL: &str = "bash";
const PARAMETER: &str = "command";

impl ActionParser for FencedBash {
    fn name(&self) -> &'static str {
        "fenced_bash"
    }

    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError> {
        let mut found = None;
        for block in blocks(text) {
            let block = block?;
            if found.is_some() {
                let message = "the answer has several blocks ```bash, it has to have exactly one";
                return Err(FormatError::new(FormatErrorKind::TooMany, block, message));
            }
            found = Some(block);
        }
        let Some(block) = found else {
            let message = "the answer has no block ```bash";
            return Err(FormatError::new(FormatErrorKind::Missing, 0..text.len(), message));
        };
        let span = trimmed(text, block.clone());
        let command = &text[span.clone()];
        if command.is_empty() {
            let message = "the block ```bash is empty";
            return Err(FormatError::new(FormatErrorKind::Empty, block, message));
        }
        let action = if is_offered(tools) {
            let arguments = Map::from_iter([(PARAMETER.to_owned(), command.into())]);
            Action::calls(vec![ToolCall::new(TOOL, arguments)])
        } else {
            Action::text(command)
        };
        Ok(Parsed { action, spans: vec![span], reasoning: None })
    }

    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError> {
        let parser = self.name();
        let command = match action {
            Action::Text { text } => text,
            Action::Calls { text, .. } if !text.trim().is_empty() => {
                return Err(WriteError::NoTextBeside { parser });
            }
            Action::Calls { calls, .. } => match calls.as_slice() {
                [call] => match (call.name.as_str(), call.arguments.get(PARAMETER)) {
                    (TOOL, Some(Value::String(command))) => command,
                    _ => return Err(WriteError::NoCalls { parser }),
                },
                _ => return Err(WriteError::OneCall { parser, found: calls.len() }),
            },
        };
        let longest = command.lines().map(num_backticks).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        read_back(self, format!("{fence}bash\n{command}\n{fence}"), action, tools)
    }
}

fn is_offered(tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| tool.name == TOOL && tool.parameter(PARAMETER).is_some())
}

/// Backticks that a line begins with, behind white space.
fn num_backticks(line: &str) -> usize {
    line.trim_start().bytes().take_while(|byte| *byte == b'`').count()
}

/// What stands in the blocks of commands; an error for one that is not closed.
fn blocks(text: &str) -> impl Iterator<Item = Result<Range<usize>, FormatError>> {
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    std::iter::from_fn(move || {
        loop {
            let (opened, line) = lines.next()?;
            let num_open = num_backticks(line);
            if num_open < 3 {
                continue;
            }
            let language = line.trim_start()[num_open..].trim();
            // Such a line is code within a sentence.
            if language.contains('`') {
                continue;
            }
            let start = opened + line.len();
            let end = lines.find(|(_, line)| {
                num_backticks(line) >= num_open && line.trim().bytes().all(|byte| byte == b'`')
            });
            if !LANGUAGES.contains(&language) {
                continue;
            }
            let Some((end, _)) = end else {
                let message = "the block ```bash is not closed";
                let span = opened..text.len();
                return Some(Err(FormatError::new(FormatErrorKind::Unclosed, span, message)));
            };
            return Some(Ok(start..end));
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Action, FormatErrorKind> {
        let parsed = FencedBash.parse(text, &[]);
        parsed.map(|parsed| parsed.action).map_err(|error| error.kind)
    }

    #[test]
    fn the_only_block_of_a_shell_is_the_command() {
        let text = "THOUGHT: so\n```python\nprint('```bash')\n```\n\n```bash\nls -la\ncd ..\n```\n";
        assert_eq!(read(text), Ok(Action::text("ls -la\ncd ..")));
        assert_eq!(read("```bash\na\n```\n```sh\nb\n```"), Err(FormatErrorKind::TooMany));
        assert_eq!(read("```bash\na"), Err(FormatErrorKind::Unclosed));
        assert_eq!(read("```bash\n```"), Err(FormatErrorKind::Empty));
        assert_eq!(read("```python\na\n```"), Err(FormatErrorKind::Missing));
    }

    #[test]
    fn a_block_is_a_call_where_the_tool_is_offered() {
        let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
        let tools = [ToolSpec::new("bash", "", schema)];
        let action = FencedBash.parse("```bash\nls\n```", &tools).unwrap().action;
        let Action::Calls { calls, .. } = &action else { panic!() };
        assert_eq!(
            (calls[0].name.as_str(), &calls[0].arguments["command"]),
            ("bash", &json!("ls"))
        );
        assert_eq!(FencedBash.write(&action, &tools).unwrap(), "```bash\nls\n```");
        assert!(FencedBash.write(&action, &[]).is_err());
    }

    #[test]
    fn a_longer_fence_holds_a_shorter_one() {
        let action = Action::text("cat > a.md <<E\n```\ncode\n```\nE");
        let text = FencedBash.write(&action, &[]).unwrap();
        assert!(text.starts_with("````bash\n"));
        assert_eq!(read(&text), Ok(action));
    }
}
