//! OpenHands' editor of files: what it does and says. Lines of edited files end in LF afterwards, as there.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use spar_sandbox::ExecRequest;
use spar_swe::python_text::{lines, strip};

use crate::toolsets::files::{Kind, first_chars, numbered, python_path, quoted};
use crate::toolsets::{Halt, Workplace};

/// Characters of a file or a folder that are shown.
const MAX_RESPONSE_CHARS: usize = 16_000;
const FILE_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
const FOLDER_CLIPPED: &str = "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>";
/// Lines that are shown around a change.
const SNIPPET_LINES: usize = 4;
/// Contents of a file that are kept for undoing.
const MAX_HISTORY: usize = 10;
/// Bytes of the largest file that is read or changed.
const MAX_FILE_BYTES: usize = 10 << 20;
/// Ends of names of files that the original shows as Markdown.
const OFFICE: [&str; 8] = [".docx", ".xlsx", ".pptx", ".pdf", ".mp3", ".wav", ".m4a", ".flac"];

/// The editor, with what it has changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Editor {
    history: BTreeMap<String, Vec<String>>,
}

/// What a change makes of a file.
#[derive(Debug, PartialEq)]
struct Changed {
    text: String,
    told: String,
}

impl Editor {
    /// Carries out a call: what is shown.
    pub(super) async fn call(
        &mut self,
        arguments: &Map<String, Value>,
        workdir: &str,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let done = self.carry_out(arguments, workdir, place).await?;
        Ok(done.unwrap_or_else(|told| format!("ERROR:\n{told}")))
    }

    async fn carry_out(
        &mut self,
        arguments: &Map<String, Value>,
        workdir: &str,
        place: &mut Workplace<'_>,
    ) -> Result<Result<String, String>, Halt> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let command = text("command").unwrap_or_default();
        let path = python_path(text("path").unwrap_or_default());
        let insert_line = match line_of(arguments.get("insert_line")) {
            Ok(line) => line,
            Err(told) => return Ok(Err(told)),
        };
        // 1. What lies there, and whether that fits.
        let kind = place.kind(&path).await?;
        if let Err(hint) = fits(command, &path, kind) {
            let meant = format!("{workdir}/{path}");
            let is_near = !path.starts_with('/') && place.kind(&meant).await? != Kind::Absent;
            let hint = if is_near { format!("{hint} Maybe you meant {meant}?") } else { hint };
            return Ok(Err(invalid("path", &path, &hint)));
        }
        // 2. What is needed for it.
        let missing =
            |name: &str| Ok(Err(format!("Parameter `{name}` is required for command: {command}.")));
        let (old, new) = (text("old_str"), text("new_str"));
        match command {
            "view" if kind == Kind::Folder => {
                return match arguments.get("view_range").filter(|range| !range.is_null()) {
                    Some(range) => Ok(Err(invalid(
                        "view_range",
                        &python(range),
                        "The `view_range` parameter is not allowed when `path` points to a directory.",
                    ))),
                    None => folder(&path, place).await,
                };
            }
            "create" => {
                let Some(text) = text("file_text") else { return missing("file_text") };
                if let Err(why) = place.write(&path, text.as_bytes()).await? {
                    return Ok(Err(format!(
                        "Ran into {why}: '{path}' while trying to write to {path}"
                    )));
                }
                self.keep(&path, text.to_owned());
                return Ok(Ok(format!("File created successfully at: {path}")));
            }
            "str_replace" if old.is_none() => return missing("old_str"),
            "str_replace" if new.is_some() && new == old => {
                let hint =
                    "No replacement was performed. `new_str` and `old_str` must be different.";
                return Ok(Err(invalid("new_str", new.unwrap_or_default(), hint)));
            }
            "insert" if insert_line.is_none() => return missing("insert_line"),
            "insert" if new.is_none() => return missing("new_str"),
            "view" | "str_replace" | "insert" | "undo_edit" => {}
            _ => {
                return Ok(Err(format!(
                    "Unrecognized command {command}. The allowed commands for the oh_editor tool are: view, create, str_replace, insert, undo_edit"
                )));
            }
        }
        // 3. The file.
        let before = match read(&path, place).await? {
            Ok(text) => text,
            Err(told) => return Ok(Err(told)),
        };
        let changed = match command {
            "view" => return Ok(view(&path, &before, arguments.get("view_range"))),
            "str_replace" => replaced(&path, &before, old.unwrap_or_default(), new),
            "insert" => {
                inserted(&path, &before, insert_line.unwrap_or_default(), new.unwrap_or_default())
            }
            _ => match self.history.get_mut(&path).and_then(Vec::pop) {
                None => Err(format!("No edit history found for {path}.")),
                Some(text) => {
                    let told = format!(
                        "Last edit to {path} undone successfully. {}",
                        listing(&text, &path, 1)
                    );
                    Ok(Changed { text, told })
                }
            },
        };
        let Changed { text, told } = match changed {
            Ok(changed) => changed,
            Err(told) => return Ok(Err(told)),
        };
        if let Err(why) = place.write(&path, text.as_bytes()).await? {
            return Ok(Err(format!("Ran into {why}: '{path}' while trying to write to {path}")));
        }
        if command != "undo_edit" {
            self.keep(&path, before);
        }
        Ok(Ok(told))
    }

    fn keep(&mut self, path: &str, text: String) {
        let texts = self.history.entry(path.to_owned()).or_default();
        texts.push(text);
        if texts.len() > MAX_HISTORY {
            texts.remove(0);
        }
    }
}

fn invalid(name: &str, value: &str, hint: &str) -> String {
    format!("Invalid `{name}` parameter: {value}. {hint}")
}

/// Whether a command can be meant for what lies at a path; else what is said of it.
fn fits(command: &str, path: &str, kind: Kind) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("The path should be an absolute path, starting with `/`.".to_owned());
    }
    match (command, kind) {
        ("create", Kind::File | Kind::Folder) => Err(format!(
            "File already exists at: {path}. Cannot overwrite files using command `create`."
        )),
        ("create", Kind::Absent) => Ok(()),
        (_, Kind::Absent) => {
            Err(format!("The path {path} does not exist. Please provide a valid path."))
        }
        ("view", _) => Ok(()),
        (_, Kind::Folder) => Err(format!(
            "The path {path} is a directory and only the `view` command can be used on directories."
        )),
        (_, Kind::File) => match office_suffix(path) {
            Some(suffix) => Err(format!(
                "The path {path} points to a binary file ({suffix}) and only the `view` command can be used on supported binary files."
            )),
            None => Ok(()),
        },
    }
}

fn office_suffix(path: &str) -> Option<&str> {
    let at = path.rfind('.')?;
    let suffix = &path[at..];
    OFFICE.contains(&&*suffix.to_lowercase()).then_some(suffix)
}

/// The line of an argument, which may be a number in a text.
fn line_of(value: Option<&Value>) -> Result<Option<i64>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64()),
        Some(Value::String(text)) => match text.trim().parse() {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(format!("Invalid insert_line value: '{text}'. Expected an integer.")),
        },
        Some(other) => {
            Err(format!("Invalid insert_line value: '{}'. Expected an integer.", python(other)))
        }
    }
}

/// A value as Python prints it, as far as arguments have such.
fn python(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => format!("'{text}'"),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

/// What a file holds, its lines ending in LF; what is said where it cannot be read.
async fn read(path: &str, place: &mut Workplace<'_>) -> Result<Result<String, String>, Halt> {
    if office_suffix(path).is_some() {
        return Ok(Err(format!(
            "Error in converting file to Markdown: it is not done here. Please use Python code to read {path}"
        )));
    }
    let bytes = match place.read(path).await? {
        Ok(bytes) => bytes,
        Err(why) => {
            return Ok(Err(format!("Ran into {why}: '{path}' while trying to read {path}")));
        }
    };
    let fails = |why: String| Ok(Err(format!("File validation failed for {path}: {why}")));
    if bytes.len() > MAX_FILE_BYTES {
        let size = bytes.len() as f64 / 1024.0 / 1024.0;
        return fails(format!("File is too large ({size:.1}MB). Maximum allowed size is 10MB."));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(Ok(text.replace("\r\n", "\n").replace('\r', "\n"))),
        _ => fails(
            "File appears to be binary and this file type cannot be read or edited by this tool."
                .to_owned(),
        ),
    }
}

/// What is in a folder.
async fn folder(path: &str, place: &mut Workplace<'_>) -> Result<Result<String, String>, Halt> {
    let word = quoted(path);
    let hidden = format!("find -L {word} -mindepth 1 -maxdepth 1 -name '.*'");
    let hidden = place.exec(ExecRequest::sh(&hidden)).await?.stdout.text();
    let hidden = hidden.lines().count();
    let found = format!(r"find -L {word} -maxdepth 2 -printf '%y%p\n'");
    let found = place.exec(ExecRequest::sh(&found)).await?;
    let told = found.stderr.text();
    if !told.is_empty() {
        return Ok(Err(told));
    }
    Ok(Ok(folder_listing(path, &found.stdout.text(), hidden)))
}

/// The words for what is in a folder: lines of a letter for the kind, and a path.
fn folder_listing(path: &str, found: &str, hidden: usize) -> String {
    let is_shown = |entry: &str| {
        let inside = entry.strip_prefix(path).unwrap_or(entry).trim_start_matches('/');
        !inside.split('/').any(|part| part.starts_with('.'))
    };
    let mut entries: Vec<(&str, bool)> = found
        .lines()
        .filter_map(|line| Some((line.get(1..)?, line.starts_with('d'))))
        .filter(|(entry, _)| is_shown(entry))
        .collect();
    entries.sort_unstable();
    // It is cut before folders are told by the stroke behind them.
    let mut left = MAX_RESPONSE_CHARS;
    let mut shown = Vec::new();
    for (entry, is_folder) in entries {
        let length = entry.chars().count() + 1;
        if length > left {
            shown.push(format!("{}{FOLDER_CLIPPED}", first_chars(entry, left)));
            break;
        }
        left -= length;
        shown.push(if is_folder { format!("{entry}/") } else { entry.to_owned() });
    }
    let mut told = format!(
        "Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n{}",
        shown.join("\n")
    );
    if hidden > 0 {
        told += &format!(
            "\n\n{hidden} hidden files/directories in this directory are excluded. You can use 'ls -la {path}' to see them."
        );
    }
    told
}

/// Lines as Python reads them from a file: with their ends.
fn file_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn view(path: &str, text: &str, range: Option<&Value>) -> Result<String, String> {
    let is_given =
        |range: &&Value| !range.is_null() && range.as_array().is_none_or(|it| !it.is_empty());
    let Some(range) = range.filter(is_given) else { return Ok(listing(text, path, 1)) };
    let refuse = |hint: String| Err(invalid("view_range", &python(range), &hint));
    let bounds: Option<Vec<i64>> =
        range.as_array().and_then(|bounds| bounds.iter().map(Value::as_i64).collect());
    let Some([first, last]) = bounds.as_deref() else {
        return refuse("It should be a list of two integers.".to_owned());
    };
    let (first, last) = (*first, *last);
    let all = file_lines(text);
    let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if first < 1 || first > count {
        return refuse(format!(
            "Its first element `{first}` should be within the range of lines of the file: [1, {count}]."
        ));
    }
    let mut note = String::new();
    let end = match last {
        -1 => count,
        last if last > count => {
            note = format!(
                "NOTE: We only show up to {count} since there're only {count} lines in this file.\n"
            );
            count
        }
        last => last,
    };
    if end < first {
        return refuse(format!(
            "Its second element `{end}` should be greater than or equal to the first element `{first}`."
        ));
    }
    let index = |line: i64| usize::try_from(line).unwrap_or_default();
    let part = all[index(first) - 1..index(end)].concat();
    let part: Vec<&str> = lines(&part).collect();
    Ok(format!("{note}{}", listing(&part.join("\n"), path, index(first))))
}

fn replaced(path: &str, text: &str, old: &str, new: Option<&str>) -> Result<Changed, String> {
    let (mut old, mut new) = (old, new.unwrap_or_default());
    let mut found = occurrences(text, old);
    if found.is_empty() {
        // Perhaps there was white space around it that is not there.
        (old, new) = (strip(old), strip(new));
        found = occurrences(text, old);
        if found.is_empty() {
            return Err(format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            ));
        }
    }
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let [at] = found[..] else {
        let mut lines: Vec<usize> = found.into_iter().map(line_of).collect();
        lines.dedup();
        return Err(format!(
            "No replacement was performed. Multiple occurrences of old_str `{old}` in lines {lines:?}. Please ensure it is unique."
        ));
    };
    let changed = format!("{}{new}{}", &text[..at], &text[at + old.len()..]);
    let line = line_of(at);
    let start = line.saturating_sub(SNIPPET_LINES);
    let end = line + SNIPPET_LINES + new.matches('\n').count();
    let snippet = part(&changed, start, end);
    let told = format!(
        "The file {path} has been edited. {}Review the changes and make sure they are as expected. Edit the file again if necessary.",
        listing(&snippet, &format!("a snippet of {path}"), start + 1)
    );
    Ok(Changed { text: changed, told })
}

/// Where `part` stands, without overlaps; an empty one stands everywhere.
fn occurrences(text: &str, part: &str) -> Vec<usize> {
    match part.is_empty() {
        true => text.char_indices().map(|(at, _)| at).chain([text.len()]).collect(),
        false => text.match_indices(part).map(|(at, _)| at).collect(),
    }
}

fn inserted(path: &str, text: &str, line: i64, new: &str) -> Result<Changed, String> {
    let all = file_lines(text);
    let Some(line) = usize::try_from(line).ok().filter(|line| *line <= all.len()) else {
        let hint = format!("It should be within the range of allowed values: [0, {}]", all.len());
        return Err(invalid("insert_line", &line.to_string(), &hint));
    };
    let count = new.split('\n').count();
    let changed = format!("{}{new}\n{}", all[..line].concat(), all[line..].concat());
    let start = line.saturating_sub(SNIPPET_LINES);
    let end = (all.len() + count).min(line + SNIPPET_LINES + count);
    let snippet = part(&changed, start, end);
    let told = format!(
        "The file {path} has been edited. {}Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.",
        listing(
            &snippet,
            "a snippet of the edited file",
            (line + 1).saturating_sub(SNIPPET_LINES).max(1)
        )
    );
    Ok(Changed { text: changed, told })
}

/// Lines of a file from behind `start` to `end`, with their ends.
fn part(text: &str, start: usize, end: usize) -> String {
    file_lines(text).into_iter().take(end).skip(start).collect()
}

/// A part of a file with the numbers of its lines.
fn listing(text: &str, what: &str, first: usize) -> String {
    let shown = first_chars(text, MAX_RESPONSE_CHARS);
    let clipped = if shown.len() < text.len() { FILE_CLIPPED } else { "" };
    let numbered = numbered(&format!("{shown}{clipped}"), first);
    format!("Here's the result of running `cat -n` on {what}:\n{numbered}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolsets::recorded;

    /// What is said and left, without a machine.
    fn call(before: Option<&str>, arguments: &Value) -> (String, Option<String>) {
        const PATH: &str = "/w/file.py";
        let told = |told: String| (format!("ERROR:\n{told}"), before.map(str::to_owned));
        let command = arguments["command"].as_str().unwrap();
        let kind = if before.is_some() { Kind::File } else { Kind::Absent };
        if let Err(hint) = fits(command, PATH, kind) {
            return told(invalid("path", PATH, &hint));
        }
        let text = before.unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
        let (old, new) = (arguments["old_str"].as_str(), arguments["new_str"].as_str());
        let changed = match command {
            "view" => {
                return match view(PATH, &text, arguments.get("view_range")) {
                    Ok(shown) => (shown, before.map(str::to_owned)),
                    Err(error) => told(error),
                };
            }
            "str_replace" => replaced(PATH, &text, old.unwrap(), new),
            _ => inserted(PATH, &text, arguments["insert_line"].as_i64().unwrap(), new.unwrap()),
        };
        match changed {
            Ok(Changed { text, told }) => (told, Some(text)),
            Err(error) => told(error),
        }
    }

    #[test]
    fn it_says_and_leaves_what_the_original_does() {
        let cases = recorded::read(include_str!("recorded.json"));
        let (mut count, mut passed_over) = (0, 0);
        for case in cases.as_array().unwrap() {
            let arguments = &case["arguments"];
            let is_whole = match arguments["command"].as_str().unwrap() {
                "view" => true,
                "str_replace" => {
                    arguments["old_str"].is_string() && arguments["old_str"] != arguments["new_str"]
                }
                "insert" => arguments["insert_line"].is_i64() && arguments["new_str"].is_string(),
                _ => false,
            };
            if !is_whole {
                passed_over += 1;
                continue;
            }
            let (told, after) = call(case["before"].as_str(), arguments);
            assert_eq!(told, case["output"].as_str().unwrap(), "{case}");
            assert_eq!(after.as_deref(), case["after"].as_str(), "{case}");
            count += 1;
        }
        assert!(count > 150, "{count}, and {passed_over} that need a machine");
    }

    #[test]
    fn folders_are_listed_without_what_is_hidden() {
        let found = "d/w\nd/w/src\nf/w/src/a.py\nf/w/.env\nd/w/.git\nf/w/.git/HEAD\nf/w/b\n";
        let told = folder_listing("/w", found, 2);
        assert_eq!(
            told,
            "Here's the files and directories up to 2 levels deep in /w, excluding hidden items:\n/w/\n/w/b\n/w/src/\n/w/src/a.py\n\n\
             2 hidden files/directories in this directory are excluded. You can use 'ls -la /w' to see them."
        );
        let many: String = (0..3000).map(|at| format!("f/w/{at:04}\n")).collect();
        assert!(folder_listing("/w", &many, 0).ends_with(FOLDER_CLIPPED));
    }

    #[test]
    fn arguments_of_other_types_are_told() {
        assert_eq!(line_of(Some(&"7".into())), Ok(Some(7)));
        let told = line_of(Some(&"x".into())).unwrap_err();
        assert_eq!(told, "Invalid insert_line value: 'x'. Expected an integer.");
        assert!(line_of(Some(&1.5.into())).is_err());
        assert_eq!(
            fits("view", "a", Kind::Absent).unwrap_err(),
            "The path should be an absolute path, starting with `/`."
        );
        assert!(fits("insert", "/a.PDF", Kind::File).unwrap_err().contains("(.PDF)"));
        let mut editor = Editor::default();
        (0..100).for_each(|at| editor.keep("/a", at.to_string()));
        assert_eq!(editor.history["/a"].len(), MAX_HISTORY);
    }
}
