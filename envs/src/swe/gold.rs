//! The instance's own solution, as commands of a player who knows it, and a player who breaks what works.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use spar_swe::{Content, Gold, HiddenFile, NON_TEST_SUFFIXES, modified_files};

/// Bytes of all files of a solution.
const MAX_SOLUTION_BYTES: u64 = 64 << 20;

/// The command of a solution, with its variables; absent where that is only a commit that the sandbox does not have.
pub(super) fn solution(gold: &Gold, env: &BTreeMap<String, String>) -> Option<String> {
    match gold {
        Gold::Patch(patch) => Some(apply(patch, "")),
        Gold::ReversePatch(patch) => Some(apply(patch, "--reverse")),
        Gold::Files(files) => {
            let mut command = String::new();
            for (path, file) in files {
                match file {
                    Some(file) => command += &write(path, file)?,
                    None => writeln!(command, "rm -f {}", word(path)).ok()?,
                }
            }
            Some(command)
        }
        Gold::Commit(_) => None,
        Gold::Script { command, files } => {
            let mut text = String::new();
            for folder in files {
                for (path, file) in &folder.files {
                    text += &write(&format!("{}/{path}", folder.into), file)?;
                }
            }
            for (name, value) in env {
                writeln!(text, "export {name}={}", word(value)).ok()?;
            }
            Some(text + command)
        }
    }
}

/// The command that breaks the files which the solution changes, so that nothing that needs them can pass; absent where the
/// solution is not known as a patch.
pub(super) fn breaking(gold: &Gold) -> Option<String> {
    let paths: Vec<String> = match gold {
        Gold::Patch(patch) | Gold::ReversePatch(patch) => modified_files(patch)?,
        Gold::Files(files) => files.keys().cloned().collect(),
        Gold::Commit(_) | Gold::Script { .. } => return None,
    };
    let is_source = |path: &&String| !NON_TEST_SUFFIXES.iter().any(|end| path.ends_with(end));
    let named: Vec<String> = paths.iter().filter(is_source).map(|path| word(path)).collect();
    if named.is_empty() {
        return None;
    }
    // Where a file lay, it is no text of any language any more.
    Some(format!(
        "for file in {}; do [ ! -f \"$file\" ] || printf '((( broken on purpose\\n' >\"$file\"; done",
        named.join(" ")
    ))
}

/// The way of a patch into the working directory.
fn apply(patch: &str, options: &str) -> String {
    // A patch without a last line end is none.
    let end = if patch.ends_with('\n') { "" } else { "\n" };
    format!(
        "base64 -d >/tmp/.solution.patch <<'SPAR_END'\n{}\nSPAR_END\n\
         cd \"$(git rev-parse --show-toplevel)\"\n\
         git apply {options} --whitespace=nowarn /tmp/.solution.patch || \
         patch {options} --batch --fuzz=5 -p1 -i /tmp/.solution.patch\n\
         code=$?; rm -f /tmp/.solution.patch; (exit $code)",
        lines(&STANDARD.encode(format!("{patch}{end}")))
    )
}

/// The way of a file into the sandbox; absent where it cannot be read.
fn write(path: &str, file: &HiddenFile) -> Option<String> {
    let bytes = match &file.content {
        Content::Text(text) => text.as_bytes().to_vec(),
        Content::Host(host) => {
            let is_small = std::fs::metadata(host).ok()?.len() <= MAX_SOLUTION_BYTES;
            is_small.then(|| std::fs::read(host).ok()).flatten()?
        }
    };
    let path = word(path);
    let mode = if file.executable { "755" } else { "644" };
    Some(format!(
        "mkdir -p \"$(dirname {path})\" && base64 -d >{path} <<'SPAR_END'\n{}\nSPAR_END\nchmod {mode} {path}\n",
        lines(&STANDARD.encode(bytes))
    ))
}

/// Encoded bytes in lines that every shell and `base64` reads.
fn lines(encoded: &str) -> String {
    let chunks =
        encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned());
    chunks.collect::<Vec<_>>().join("\n")
}

/// `text` as one word of a shell.
pub(super) fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_leaves_prose_alone() {
        let patch = "diff --git a/a b.py b/a b.py\n--- a/a b.py\n+++ b/a b.py\n@@ -1 +1 @@\n-x\n+y\n\
                     diff --git a/n.md b/n.md\n--- a/n.md\n+++ b/n.md\n@@ -1 +1 @@\n-x\n+y\n";
        let (gold, env) = (Gold::Patch(patch.to_owned()), BTreeMap::new());
        let command = breaking(&gold).unwrap();
        assert!(command.contains(".py") && !command.contains("n.md"), "{command}");
        assert!(solution(&gold, &env).unwrap().contains("git apply"));
        let gold = Gold::Commit("0123456".to_owned());
        assert_eq!((solution(&gold, &env), breaking(&gold)), (None, None));
    }
}
