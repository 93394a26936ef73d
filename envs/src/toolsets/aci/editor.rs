//! SWE-agent's editor of files: what it does and says.
//!
//! The original is a program in the container; this one works from outside with the same effects on files. All tabs of a file
//! that is edited become spaces, and lines that end in CR LF end in LF afterwards, as there.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use spar_sandbox::ExecRequest;

use crate::toolsets::files::{Kind, expand_tabs, first_chars, numbered, parent, python_path};
use crate::toolsets::{Halt, Workplace};

/// Characters of a file that are shown.
const MAX_RESPONSE_CHARS: usize = 16_000;
const CLIPPED: &str = "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
/// Lines that are shown around a change.
const SNIPPET_LINES: usize = 4;
/// Contents that are kept for undoing, of all files.
const MAX_HISTORY: usize = 256;
const USAGE: &str = "usage: str_replace_editor [-h] [--file_text FILE_TEXT]
                          [--view_range VIEW_RANGE VIEW_RANGE]
                          [--old_str OLD_STR] [--new_str NEW_STR]
                          [--insert_line INSERT_LINE]
                          command path
str_replace_editor: error: ";

/// The editor, with what it has changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Editor {
    history: BTreeMap<String, Vec<String>>,
}

/// What a call says.
#[derive(Debug, Default)]
struct Given<'a> {
    file_text: Option<&'a str>,
    old_str: Option<&'a str>,
    new_str: Option<&'a str>,
    insert_line: Option<i64>,
    view_range: Option<[i64; 2]>,
}

/// How a file's bytes are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
}

impl Editor {
    /// Carries out a call, the arguments of which are among those that the tool has: what is printed.
    pub(super) async fn call(
        &mut self,
        arguments: &Map<String, Value>,
        workdir: &str,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let said = |name: &str| arguments.get(name).map(plain).unwrap_or_default();
        let given = match Given::read(arguments) {
            Ok(given) => given,
            Err(error) => return Ok(format!("{USAGE}{error}\n")),
        };
        let (command, path) = (said("command"), python_path(&said("path")));
        let kind = match invalid(&command, &path, workdir, place).await? {
            Ok(kind) => kind,
            Err(told) => return Ok(told),
        };
        let missing =
            |name: &str| format!("Parameter `{name}` is required for command: {command}\n");
        Ok(match (&*command, &given) {
            ("view", _) => view(&path, kind, given.view_range, place).await?,
            ("create", Given { file_text: Some(text), .. }) => {
                self.create(&path, text, place).await?
            }
            ("create", _) => missing("file_text"),
            ("str_replace", Given { old_str: Some(old), .. }) => {
                self.replace(&path, old, given.new_str, place).await?
            }
            ("str_replace", _) => missing("old_str"),
            ("insert", Given { insert_line: Some(line), new_str: Some(new), .. }) => {
                self.insert(&path, *line, new, place).await?
            }
            ("insert", Given { insert_line: None, .. }) => missing("insert_line"),
            ("insert", _) => missing("new_str"),
            ("undo_edit", _) => self.undo(&path, place).await?,
            _ => format!(
                "Unrecognized command {command}. The allowed commands for the str_replace_editor tool are: \"view\", \
                 \"create\", \"str_replace\", \"insert\", \"undo_edit\"\n"
            ),
        })
    }

    async fn create(
        &mut self,
        path: &str,
        text: &str,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let folder = parent(path);
        if place.kind(folder).await? == Kind::Absent {
            let told =
                format!("The parent directory {folder} does not exist. Please create it first.\n");
            return Ok(told);
        }
        if let Err(told) = write(path, text, Encoding::Utf8, place).await? {
            return Ok(told);
        }
        self.keep(path, text.to_owned());
        Ok(format!("File created successfully at: {path}\n"))
    }

    async fn replace(
        &mut self,
        path: &str,
        old: &str,
        new: Option<&str>,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let (text, encoding) = match read(path, place).await? {
            Ok(read) => read,
            Err(told) => return Ok(told),
        };
        let text = expand_tabs(&text);
        let (old, new) = (expand_tabs(old), expand_tabs(new.unwrap_or_default()));
        if text.is_empty() && old.is_empty() {
            // The original ends with a trace of its own program.
            return Ok("ValueError: empty separator\n".to_owned());
        }
        match occurrences(&text, &old) {
            0 => {
                return Ok(format!(
                    "No replacement was performed, old_str `{old}` did not appear verbatim in {path}.\n"
                ));
            }
            1 => {}
            _ => {
                let lines = text.split('\n').enumerate().filter(|(_, line)| line.contains(&old));
                let lines: Vec<String> = lines.map(|(at, _)| (at + 1).to_string()).collect();
                return Ok(format!(
                    "No replacement was performed. Multiple occurrences of old_str `{old}` in lines [{}]. Please ensure it is unique\n",
                    lines.join(", ")
                ));
            }
        }
        if new == old {
            return Ok(format!(
                "No replacement was performed, old_str `{old}` is the same as new_str `{new}`.\n"
            ));
        }
        let before = text.split(&*old).next().unwrap_or_default();
        let changed = text.replace(&*old, &new);
        if let Err(told) = write(path, &changed, encoding, place).await? {
            return Ok(told);
        }
        let at = before.matches('\n').count();
        let num_lines = spar_swe::python_text::lines(&changed).count();
        let first = at.saturating_sub(SNIPPET_LINES).max(1);
        let last = (at + SNIPPET_LINES + new.matches('\n').count()).min(num_lines);
        let snippet: Vec<&str> = changed.split('\n').take(last).skip(first - 1).collect();
        let shown = listing(&snippet.join("\n"), &format!("a snippet of {path}"), first);
        self.keep(path, text);
        Ok(format!(
            "The file {path} has been edited. {shown}Review the changes and make sure they are as expected. Edit the file again if necessary.\n"
        ))
    }

    async fn insert(
        &mut self,
        path: &str,
        line: i64,
        new: &str,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let (text, encoding) = match read(path, place).await? {
            Ok(read) => read,
            Err(told) => return Ok(told),
        };
        let (text, new) = (expand_tabs(&text), expand_tabs(new));
        let lines: Vec<&str> = text.split('\n').collect();
        let Some(line) = usize::try_from(line).ok().filter(|line| *line <= lines.len()) else {
            return Ok(format!(
                "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {}]\n",
                lines.len()
            ));
        };
        let added: Vec<&str> = new.split('\n').collect();
        let changed = [&lines[..line], &added, &lines[line..]].concat().join("\n");
        if let Err(told) = write(path, &changed, encoding, place).await? {
            return Ok(told);
        }
        let before = &lines[line.saturating_sub(SNIPPET_LINES)..line];
        let behind = &lines[line..(line + SNIPPET_LINES).min(lines.len())];
        let snippet = [before, &added, behind].concat().join("\n");
        let first = (line + 1).saturating_sub(SNIPPET_LINES).max(1);
        let shown = listing(&snippet, "a snippet of the edited file", first);
        self.keep(path, text.clone());
        Ok(format!(
            "The file {path} has been edited. {shown}Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.\n"
        ))
    }

    async fn undo(&mut self, path: &str, place: &mut Workplace<'_>) -> Result<String, Halt> {
        let Some(text) = self.history.get_mut(path).and_then(Vec::pop) else {
            return Ok(format!("No edit history found for {path}.\n"));
        };
        if let Err(told) = write(path, &text, Encoding::Utf8, place).await? {
            return Ok(told);
        }
        Ok(format!("Last edit to {path} undone successfully. {}\n", listing(&text, path, 1)))
    }

    fn keep(&mut self, path: &str, text: String) {
        if self.history.values().map(Vec::len).sum::<usize>() >= MAX_HISTORY {
            let longest = self.history.values_mut().max_by_key(|texts| texts.len());
            longest.into_iter().for_each(|texts| drop(texts.remove(0)));
        }
        self.history.entry(path.to_owned()).or_default().push(text);
    }
}

impl<'a> Given<'a> {
    /// Reads arguments; an error is what Python's `argparse` says of them.
    fn read(arguments: &'a Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| -> Result<Option<&'a str>, String> {
            let expected = || format!("argument --{name}: expected one argument");
            match arguments.get(name) {
                None => Ok(None),
                // The original leaves the option without a value.
                Some(Value::Null) => Err(expected()),
                Some(Value::String(text)) if is_option(text) => Err(expected()),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(format!("argument --{name}: {other} is no string")),
            }
        };
        let number = |name: &str, value: &Value| -> Result<i64, String> {
            let read = match value {
                Value::Number(number) => number.as_i64(),
                Value::String(text) => text.trim().parse().ok(),
                _ => None,
            };
            read.ok_or_else(|| format!("argument --{name}: invalid int value: '{}'", plain(value)))
        };
        let (file_text, old_str, new_str) =
            (text("file_text")?, text("old_str")?, text("new_str")?);
        let insert_line = match arguments.get("insert_line") {
            None => None,
            Some(Value::Null) => {
                return Err("argument --insert_line: expected one argument".to_owned());
            }
            Some(value) => Some(number("insert_line", value)?),
        };
        let view_range = match arguments.get("view_range") {
            None => None,
            Some(Value::Array(bounds)) => match &**bounds {
                [first, last] => Some([number("view_range", first)?, number("view_range", last)?]),
                [_, _, rest @ ..] => {
                    let rest: Vec<String> = rest.iter().map(plain).collect();
                    return Err(format!("unrecognized arguments: {}", rest.join(" ")));
                }
                _ => return Err("argument --view_range: expected 2 arguments".to_owned()),
            },
            Some(_) => return Err("argument --view_range: expected 2 arguments".to_owned()),
        };
        Ok(Self { file_text, old_str, new_str, insert_line, view_range })
    }
}

/// Whether Python's `argparse` takes a word for an option.
fn is_option(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else { return false };
    let is_number = rest.parse::<f64>().is_ok()
        && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !is_number && !text.contains(' ')
}

/// A value as it stands in a command line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What lies at the path of a call, or why the call cannot be meant so.
async fn invalid(
    command: &str,
    path: &str,
    workdir: &str,
    place: &mut Workplace<'_>,
) -> Result<Result<Kind, String>, Halt> {
    if !path.starts_with('/') {
        let meant = python_path(&format!("{workdir}/{path}"));
        return Ok(Err(format!(
            "The path {path} is not an absolute path, it should start with `/`. Maybe you meant {meant}?\n"
        )));
    }
    let kind = place.kind(path).await?;
    Ok(match (kind, command) {
        (Kind::Absent, command) if command != "create" => {
            Err(format!("The path {path} does not exist. Please provide a valid path.\n"))
        }
        (Kind::Folder | Kind::File, "create") => Err(format!(
            "File already exists at: {path}. Cannot overwrite files using command `create`.\n"
        )),
        (Kind::Folder, command) if command != "view" => Err(format!(
            "The path {path} is a directory and only the `view` command can be used on directories\n"
        )),
        (kind, _) => Ok(kind),
    })
}

async fn view(
    path: &str,
    kind: Kind,
    range: Option<[i64; 2]>,
    place: &mut Workplace<'_>,
) -> Result<String, Halt> {
    if kind == Kind::Folder {
        if range.is_some() {
            return Ok(
                "The `view_range` parameter is not allowed when `path` points to a directory.\n"
                    .to_owned(),
            );
        }
        // The path is no word of its own there either.
        let script = format!(r"find {path} -maxdepth 2 -not -path '*/\.*'");
        let found = place.exec(ExecRequest::sh(&script)).await?;
        if !found.stderr.text().is_empty() {
            return Ok(String::new());
        }
        let listed = found.stdout.text();
        return Ok(format!(
            "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{listed}\n\n"
        ));
    }
    let text = match read(path, place).await? {
        Ok((text, _)) => text,
        Err(told) => return Ok(told),
    };
    let Some([first, last]) = range else {
        return Ok(format!("{}\n", listing(&text, path, 1)));
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
    let refuse = |why: String| Ok(format!("Invalid `view_range`: [{first}, {last}]. {why}\n"));
    if first < 1 || first > count {
        return refuse(format!(
            "Its first element `{first}` should be within the range of lines of the file: [1, {count}]"
        ));
    }
    if last > count {
        return refuse(format!(
            "Its second element `{last}` should be smaller than the number of lines in the file: `{count}`"
        ));
    }
    if last != -1 && last < first {
        return refuse(format!(
            "Its second element `{last}` should be larger or equal than its first `{first}`"
        ));
    }
    let last = if last == -1 { count } else { last };
    let (from, to) = (to_index(first), to_index(last));
    let shown = lines[from - 1..to].join("\n");
    Ok(format!("{}\n", listing(&shown, path, from)))
}

/// A number that is known to be one of a line.
fn to_index(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// A part of a file with the numbers of its lines.
fn listing(text: &str, what: &str, first: usize) -> String {
    let shown = first_chars(text, MAX_RESPONSE_CHARS);
    let clipped = if shown.len() < text.len() { CLIPPED } else { "" };
    let shown = expand_tabs(&format!("{shown}{clipped}"));
    format!("Here's the result of running `cat -n` on {what}:\n{}\n", numbered(&shown, first))
}

/// How often `part` occurs, as Python counts.
fn occurrences(text: &str, part: &str) -> usize {
    if part.is_empty() { text.chars().count() + 1 } else { text.matches(part).count() }
}

async fn read(
    path: &str,
    place: &mut Workplace<'_>,
) -> Result<Result<(String, Encoding), String>, Halt> {
    Ok(match place.read(path).await? {
        Ok(bytes) => {
            let (text, encoding) = match String::from_utf8(bytes) {
                Ok(text) => (text, Encoding::Utf8),
                Err(error) => {
                    let bytes = error.into_bytes();
                    (bytes.into_iter().map(char::from).collect(), Encoding::Latin1)
                }
            };
            Ok((text.replace("\r\n", "\n").replace('\r', "\n"), encoding))
        }
        // The original ends with a trace of its own program.
        Err(why) => Err(format!("Ran into {why}: '{path}' while trying to read {path}\n")),
    })
}

async fn write(
    path: &str,
    text: &str,
    encoding: Encoding,
    place: &mut Workplace<'_>,
) -> Result<Result<(), String>, Halt> {
    let bytes = match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Latin1 => {
            let encoded: Result<Vec<u8>, _> = text
                .chars()
                .enumerate()
                .map(|(at, c)| u8::try_from(c).map_err(|_| (at, c)))
                .collect();
            match encoded {
                Ok(bytes) => bytes,
                Err((at, c)) => {
                    // It is open for writing by then.
                    let _ = place.write(path, b"").await?;
                    let escaped = match c as u32 {
                        code @ ..0x1_0000 => format!("\\u{code:04x}"),
                        code => format!("\\U{code:08x}"),
                    };
                    return Ok(Err(format!(
                        "Ran into 'latin-1' codec can't encode character '{escaped}' in position {at}: ordinal not in \
                         range(256) while trying to write to {path}\n"
                    )));
                }
            }
        }
    };
    let written = place.write(path, &bytes).await?;
    Ok(written.map_err(|why| format!("Ran into {why}: '{path}' while trying to write to {path}\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_as_from_a_command_line() {
        let read = |given: Value| {
            let given = given.as_object().unwrap().clone();
            Given::read(&given).map(|read| format!("{read:?}"))
        };
        assert!(read(json!({ "view_range": [1, -1] })).unwrap().contains("[1, -1]"));
        let told = |given| read(given).unwrap_err();
        assert_eq!(
            told(json!({ "view_range": [1] })),
            "argument --view_range: expected 2 arguments"
        );
        assert_eq!(told(json!({ "view_range": [1, 2, 3] })), "unrecognized arguments: 3");
        assert_eq!(
            told(json!({ "insert_line": "x" })),
            "argument --insert_line: invalid int value: 'x'"
        );
        assert_eq!(told(json!({ "new_str": "-x" })), "argument --new_str: expected one argument");
        assert_eq!(told(json!({ "old_str": null })), "argument --old_str: expected one argument");
        for text in ["-", "- x", "-5", "-.5", "", "x-"] {
            assert!(read(json!({ "new_str": text })).is_ok(), "{text}");
        }
    }

    #[test]
    fn long_files_are_clipped_and_empty_parts_counted() {
        let text = "x".repeat(16_001);
        let shown = listing(&text, "/a", 1);
        assert!(
            shown.contains(&format!("{}{CLIPPED}", "x".repeat(16_000)))
                && shown.ends_with("</NOTE>\n")
        );
        assert_eq!((occurrences("aaa", "aa"), occurrences("äb", "")), (1, 3));
    }

    #[test]
    fn what_is_kept_for_undoing_is_bounded() {
        let mut editor = Editor::default();
        (0..1000).for_each(|at| editor.keep("/a", at.to_string()));
        assert_eq!(editor.history["/a"].len(), MAX_HISTORY);
        assert_eq!(editor.history["/a"].last().unwrap(), "999");
    }
}
