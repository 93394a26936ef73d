use std::collections::BTreeMap;

use crate::python_text::{pattern, strip};

const NOWHERE: &str = "/dev/null";

/// One file of a patch, as the reference's reader (Python's `unidiff` 1.0.1) has it.
#[derive(Default)]
struct PatchedFile {
    source: String,
    target: String,
    is_binary: bool,
    hunks: Vec<String>,
}

impl PatchedFile {
    fn is_rename(&self) -> bool {
        fn behind(path: &str) -> &str {
            let mut letters = path.chars();
            letters.nth(1);
            letters.as_str()
        }
        self.source != NOWHERE
            && self.target != NOWHERE
            && behind(&self.source) != behind(&self.target)
    }

    /// Where the file is, without the letters that tools put before it.
    fn path(&self) -> String {
        let path = if self.source == NOWHERE { &self.target } else { &self.source };
        let is_quoted = path.starts_with('"') && path.ends_with('"');
        let bare = match is_quoted {
            true => path.get(1..path.len() - 1).unwrap_or(""),
            false => path,
        };
        let bare = if pattern!(r"^[abciow12]/").is_match(bare) { &bare[2..] } else { bare };
        if is_quoted { format!("\"{bare}\"") } else { bare.to_owned() }
    }
}

/// The patch is none that the reader takes.
struct Malformed;

/// The changes of a patch by path, each its hunks without blanks around them; of a renamed file with a line that says so. Binary
/// files are left out. A patch that cannot be read changes nothing, as in the reference.
pub fn changes_of_patch(patch: &str) -> BTreeMap<String, String> {
    let mut changes = BTreeMap::new();
    for file in read(patch).unwrap_or_default() {
        if file.is_binary {
            continue;
        }
        let hunks: Vec<&str> = file.hunks.iter().map(|hunk| strip(hunk)).collect();
        let body = hunks.join("\n");
        if file.is_rename() {
            let source = file.source.strip_prefix("a/").unwrap_or(&file.source);
            let target = file.target.strip_prefix("b/").unwrap_or(&file.target);
            let change = format!("rename from {source} to {target}\n{body}");
            changes.insert(source.to_owned(), strip(&change).to_owned());
        } else {
            changes.insert(file.path(), strip(&body).to_owned());
        }
    }
    changes
}

fn read(patch: &str) -> Result<Vec<PatchedFile>, Malformed> {
    let mut files: Vec<PatchedFile> = Vec::new();
    // The file under way, whether lines are those above its hunks, and a name that waits for its counterpart.
    let (mut current, mut is_above, mut waiting): (Option<usize>, bool, Option<String>) =
        (None, false, None);
    let mut lines = patch.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let header = [
            pattern!(r#"^diff --git ("?a/[^\t\n]+"?) ("?b/[^\t\n]+"?)"#),
            pattern!(r"^diff --git (.*://[^\t\n]+) (.*://[^\t\n]+)"),
            pattern!(r"^diff --git ([^\t\n]+) ([^\t\n]+)"),
        ]
        .into_iter()
        .find_map(|header| header.captures(line));
        if let Some(groups) = header {
            (current, is_above, waiting) = (Some(files.len()), true, Some(groups[1].to_owned()));
            files.push(PatchedFile {
                source: groups[1].to_owned(),
                target: groups[2].to_owned(),
                ..PatchedFile::default()
            });
            continue;
        }
        if pattern!(r"^new file mode \d+$").is_match(bare) {
            let file = current.filter(|_| is_above).ok_or(Malformed)?;
            NOWHERE.clone_into(&mut files[file].source);
            continue;
        }
        if pattern!(r"^deleted file mode \d+$").is_match(bare) {
            let file = current.filter(|_| is_above).ok_or(Malformed)?;
            NOWHERE.clone_into(&mut files[file].target);
            continue;
        }
        if let Some(name) = bare.strip_prefix("--- ") {
            waiting = Some(name.split('\t').next().unwrap_or(name).to_owned());
            current = current.filter(|_| is_above);
            continue;
        }
        if let Some(name) = bare.strip_prefix("+++ ") {
            let target = name.split('\t').next().unwrap_or(name).to_owned();
            match current {
                Some(file) if files[file].target != target => return Err(Malformed),
                Some(_) => {}
                None => {
                    let source = waiting.take().ok_or(Malformed)?;
                    (current, is_above) = (Some(files.len()), false);
                    files.push(PatchedFile { source, target, ..PatchedFile::default() });
                }
            }
            continue;
        }
        let hunk = pattern!(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)");
        if let Some(groups) = hunk.captures(line) {
            is_above = false;
            let file = current.ok_or(Malformed)?;
            let hunk = read_hunk(&groups, &mut lines)?;
            files[file].hunks.push(hunk);
            continue;
        }
        if line.starts_with("\\ No newline at end of file") {
            let last = files[current.ok_or(Malformed)?].hunks.last_mut().ok_or(Malformed)?;
            last.push_str("\\ No newline at end of file\n");
            continue;
        }
        if line == "\n"
            && let Some(last) = current.and_then(|file| files[file].hunks.last_mut())
        {
            last.push('\n');
            continue;
        }
        // Anything else is above a file.
        if !is_above {
            (current, is_above) = (None, true);
        }
        let binary = pattern!(
            r"^Binary files? (?P<source>[^\t]+?)(?:\t[\s0-9:\+-]+)?(?: and (?P<target>[^\t]+?)(?:\t[\s0-9:\+-]+)?)? (differ|has changed)"
        );
        if let Some(groups) = binary.captures(line) {
            waiting = Some(groups["source"].to_owned());
            match current {
                Some(file) => files[file].is_binary = true,
                None => files.push(PatchedFile { is_binary: true, ..PatchedFile::default() }),
            }
            (current, is_above) = (None, false);
        } else if line == "GIT binary patch\n" {
            files[current.ok_or(Malformed)?].is_binary = true;
            (current, is_above) = (None, false);
        }
    }
    Ok(files)
}

/// Reads as many lines as a hunk's heading says, and writes the hunk anew.
fn read_hunk<'p>(
    heading: &regex::Captures<'_>,
    lines: &mut impl Iterator<Item = &'p str>,
) -> Result<String, Malformed> {
    let number = |group: usize| match heading.get(group) {
        Some(digits) => digits.as_str().parse::<u64>().map_err(|_| Malformed),
        None => Ok(1),
    };
    let (source, mut old) = (number(1)?, number(2)?);
    let (target, mut new) = (number(3)?, number(4)?);
    let section = match &heading[5] {
        "" => String::new(),
        section => format!(" {section}"),
    };
    let mut hunk = format!("@@ -{source},{old} +{target},{new} @@{section}\n");
    // A hunk of no lines still takes one, as the reader looks at it before it counts.
    for line in lines {
        let (kind, text) = match line.chars().next() {
            Some(kind @ ('-' | '+' | ' ' | '\\')) => (kind, &line[1..]),
            Some('\r' | '\n') => {
                let ends = line.bytes().take_while(|byte| matches!(byte, b'\r' | b'\n')).take(2);
                (' ', &line[..ends.count()])
            }
            _ => return Err(Malformed),
        };
        if matches!(kind, '-' | ' ') {
            old = old.checked_sub(1).ok_or(Malformed)?;
        }
        if matches!(kind, '+' | ' ') {
            new = new.checked_sub(1).ok_or(Malformed)?;
        }
        hunk.push(kind);
        hunk.push_str(text);
        if old == 0 && new == 0 {
            return Ok(hunk);
        }
    }
    if old == 0 && new == 0 { Ok(hunk) } else { Err(Malformed) }
}
