//! Files of JSON lines, read whole or refused with all that is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The most problems of one file that are told.
const MAX_PROBLEMS: usize = 20;

/// Reads what the lines of files hold, a `what` each, or tells all that is wrong with them. `parse` is told where a
/// value comes from, as file and line.
pub(super) fn read_json_lines<T>(
    files: &[PathBuf],
    what: &str,
    parse: impl Fn(&str, Value) -> Result<T, Vec<String>>,
) -> Result<Vec<T>, Vec<String>> {
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for path in files {
        match read_file(path, &parse) {
            Ok(found) if found.is_empty() => {
                problems.push(format!("{}: it has no {what}", path.display()));
            }
            Ok(found) => all.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

fn read_file<T>(
    path: &Path,
    parse: impl Fn(&str, Value) -> Result<T, Vec<String>>,
) -> Result<Vec<T>, Vec<String>> {
    let text = fs::read_to_string(path)
        .map_err(|error| vec![format!("read `{}`: {error}", path.display())])?;
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let source = format!("{}:{}", path.display(), index + 1);
        match serde_json::from_str::<Value>(line) {
            Ok(value) => match parse(&source, value) {
                Ok(found) => all.push(found),
                Err(found) => problems.extend(found),
            },
            Err(error) if error.is_eof() && !text.ends_with('\n') && text.ends_with(line) => {
                problems.push(format!(
                    "{source}: the last line is cut off, as if writing the file had not ended: write it again, \
                     or remove the line"
                ));
            }
            Err(error) => problems.push(format!("{source}: no JSON: {error}")),
        }
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        problems.push(format!("{}: {more} more problems", path.display()));
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}
