//! Files of a machine, as an editor there would find them.

use spar_sandbox::{ExecEnd, ExecRequest};

use super::{Halt, Workplace};

/// The largest file that is read.
const MAX_FILE_BYTES: usize = 16 << 20;

/// What lies at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Absent,
    /// A folder.
    Folder,
    /// Anything else.
    File,
}

const KIND: &str = r#"if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; fi"#;

impl Workplace<'_> {
    /// What lies at a path.
    pub(super) async fn kind(&mut self, path: &str) -> Result<Kind, Halt> {
        let found = self.exec(ExecRequest::new(["sh", "-c", KIND, "sh", path])).await?;
        Ok(match found.stdout.text().trim() {
            "folder" => Kind::Folder,
            "file" => Kind::File,
            _ => Kind::Absent,
        })
    }

    /// What a file holds; why it cannot be read.
    pub(super) async fn read(&mut self, path: &str) -> Result<Result<Vec<u8>, String>, Halt> {
        let mut request = ExecRequest::new(["sh", "-c", r#"cat <"$1""#, "sh", path]);
        request.output_limit_bytes = MAX_FILE_BYTES;
        let done = self.exec(request).await?;
        if done.stdout.elided_bytes() > 0 {
            return Ok(Err(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        Ok(match done.end {
            ExecEnd::Exited { code: 0 } => Ok(done.stdout.bytes().into_owned()),
            end => Err(reason(&done.stderr.text(), &end.to_string())),
        })
    }

    /// Has a file hold `bytes`; why it cannot.
    pub(super) async fn write(
        &mut self,
        path: &str,
        bytes: &[u8],
    ) -> Result<Result<(), String>, Halt> {
        let request = ExecRequest::new(["sh", "-c", r#"cat >"$1""#, "sh", path]).with_stdin(bytes);
        let done = self.exec(request).await?;
        Ok(match done.end {
            ExecEnd::Exited { code: 0 } => Ok(()),
            end => Err(reason(&done.stderr.text(), &end.to_string())),
        })
    }
}

/// The errors that Python numbers, by how a shell names them.
const ERRORS: [(&str, u8); 6] = [
    ("Permission denied", 13),
    ("No such file or directory", 2),
    ("Is a directory", 21),
    ("Directory nonexistent", 2),
    ("Read-only file system", 30),
    ("No space left on device", 28),
];

/// Why a file could not be opened, as Python names it where that is known.
fn reason(told: &str, end: &str) -> String {
    let known = ERRORS.iter().find(|(words, _)| told.contains(words));
    match known {
        Some((words, number)) => format!("[Errno {number}] {words}"),
        None if told.trim().is_empty() => end.to_owned(),
        None => told.trim().to_owned(),
    }
}

/// Text with tabs as spaces, as Python's `str.expandtabs` has it.
pub(super) fn expand_tabs(text: &str) -> String {
    let (mut expanded, mut column) = (String::with_capacity(text.len()), 0_usize);
    for c in text.chars() {
        match c {
            '\t' => {
                let spaces = 8 - column % 8;
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                expanded.push(c);
                column = 0;
            }
            c => {
                expanded.push(c);
                column += 1;
            }
        }
    }
    expanded
}

/// A path as Python's `PurePosixPath` writes it.
pub(super) fn python_path(text: &str) -> String {
    let root = match text.len() - text.trim_start_matches('/').len() {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match (root, &*parts) {
        ("", []) => ".".to_owned(),
        (root, parts) => format!("{root}{}", parts.join("/")),
    }
}

/// The folder that a path of that form lies in.
pub(super) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None => ".",
        Some(at) if path[..at].trim_start_matches('/').is_empty() => &path[..=at],
        Some(at) => &path[..at],
    }
}

/// Lines as Python numbers them in its listings of files: as `cat -n` does.
pub(super) fn numbered(text: &str, first: usize) -> String {
    let lines = text.split('\n').enumerate();
    let lines: Vec<_> = lines.map(|(at, line)| format!("{:6}\t{line}", at + first)).collect();
    lines.join("\n")
}

/// The first `most` characters.
pub(super) fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

/// A word of a shell, as Python's `shlex.quote` writes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\"'\"'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_paths_are_those_of_python() {
        assert_eq!(expand_tabs("a\tb\n\tc\r\td ä\t."), "a       b\n        c\r        d ä     .");
        let paths = ["/a//b/./c/", "//a", "///a", "", "a/../b", "/", "./"];
        let written: Vec<_> = paths.map(python_path).into();
        assert_eq!(written, ["/a/b/c", "//a", "/a", ".", "a/../b", "/", "."]);
        assert_eq!(["/a/b", "/a", "a", "//a"].map(parent), ["/a", "/", ".", "//"]);
        assert_eq!(numbered("x\n", 9), "     9\tx\n    10\t");
        assert_eq!((first_chars("äöü", 2), first_chars("ä", 2)), ("äö", "ä"));
    }

    #[test]
    fn errors_of_shells_are_numbered() {
        let told = "sh: 1: cannot create /x: Permission denied";
        assert_eq!(reason(told, ""), "[Errno 13] Permission denied");
        assert_eq!(
            (reason("odd\n", ""), reason("", "timed out")),
            ("odd".into(), "timed out".into())
        );
    }
}
