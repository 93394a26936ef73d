//! One task in a folder of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::terminal_suite::{ReadTask, TaskHead, check_task};
use crate::terminal_task::{DetailedFile, TaskFile};
use crate::{SuiteError, TerminalTask};

/// Reads a task folder and takes all of it into the hash:
///
/// ```text
/// task.toml            what a line of a .jsonl file says; may be left out
/// instruction.md       what is to be done, where task.toml does not say it
/// files/               put into the working directory before the agent begins
/// tests/               put into /tests for the verifier; test.sh is run unless task.toml says else
/// solution.sh          solves the task
/// environment/Dockerfile    the image, where task.toml names none
/// ```
pub(crate) fn read_folder(
    folder: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<ReadTask, SuiteError> {
    let toml_path = folder.join("task.toml");
    let text = read_text(&toml_path, hasher)?.unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).map_err(|source| SuiteError::Manifest {
        path: toml_path.clone(),
        source: Box::new(source),
    })?;
    let refuse = |detail: String| SuiteError::Task {
        path: toml_path.clone(),
        place: "its table".to_owned(),
        detail,
    };
    let value = serde_json::to_value(table).map_err(|error| refuse(error.to_string()))?;
    let mut head: TaskHead =
        serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    let rest = &mut head.rest;
    if !rest.contains_key("instruction")
        && let Some(text) = read_text(&folder.join("instruction.md"), hasher)?
    {
        rest.insert("instruction".to_owned(), text.trim_end().into());
    }
    // The tests of the folder are the verifier where nothing else is said.
    rest.entry("verifier").or_insert_with(|| serde_json::json!({}));
    if !rest.contains_key("solution")
        && let Some(script) = read_text(&folder.join("solution.sh"), hasher)?
    {
        rest.insert("solution".to_owned(), serde_json::json!([script]));
    }
    let dockerfile = folder.join("environment/Dockerfile");
    if !rest.contains_key("image") && dockerfile.is_file() {
        let context = absolute(&folder.join("environment"))?;
        rest.insert("image".to_owned(), context.to_string_lossy().into_owned().into());
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = check_task(head, Some(name), &toml_path, "its table")?;
    let TerminalTask { files, verifier, .. } = &mut found.task;
    for (sub, into) in [("files", files), ("tests", &mut verifier.files)] {
        collect(&folder.join(sub), "", into, hasher)?;
    }
    // The image is part of what the suite is, though its files do not go into a sandbox by hand.
    let mut images = BTreeMap::new();
    collect(&folder.join("environment"), "", &mut images, hasher)?;
    let has_own = found.graders.iter().any(|grader| grader.kind == "environment");
    if !found.graders.is_empty() && !has_own && !found.task.verifier.files.is_empty() {
        let detail = "`tests/` has no effect beside `graders` without `environment`";
        return Err(refuse(detail.to_owned()));
    }
    Ok(found)
}

/// The files below a folder, by their path in it; nothing where it is absent.
fn collect(
    folder: &Path,
    prefix: &str,
    found: &mut BTreeMap<String, TaskFile>,
    hasher: &mut blake3::Hasher,
) -> Result<(), SuiteError> {
    let fail = |source| SuiteError::Io { path: folder.to_owned(), source };
    if !folder.is_dir() {
        return Ok(());
    }
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).map_err(fail)?.collect::<Result<_, _>>().map_err(fail)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(refuse(&path, "its name is no UTF-8"));
        };
        let name = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), found, hasher)?;
        } else if kind.is_file() {
            let bytes = std::fs::read(&path)
                .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
            hasher.update(name.as_bytes());
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
            let executable = is_executable(&entry.metadata().map_err(fail)?);
            let file = DetailedFile { text: None, host: Some(absolute(&path)?), executable };
            found.insert(name, TaskFile::Detailed(file));
        } else {
            // A link could lead to any file of this machine.
            return Err(refuse(&path, "it is no file of its own but a link or a device"));
        }
    }
    Ok(())
}

fn read_text(path: &Path, hasher: &mut blake3::Hasher) -> Result<Option<String>, SuiteError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|source| SuiteError::Io { path: path.to_owned(), source })?;
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
    Ok(Some(text))
}

fn absolute(path: &Path) -> Result<PathBuf, SuiteError> {
    std::path::absolute(path).map_err(|source| SuiteError::Io { path: path.to_owned(), source })
}

fn refuse(path: &Path, detail: &str) -> SuiteError {
    SuiteError::Task {
        path: path.to_owned(),
        place: "a file of the task".to_owned(),
        detail: detail.to_owned(),
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Suite, TerminalSuite};

    const SUITE: &str = r#"
        name = "s"
        version = "1"
        about = "a"
        environment = "terminal"
        [splits.test]
        tasks = "test"
    "#;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_folder_of_plain_files_is_a_task() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "suite.toml", SUITE);
        write(root, "test/fix/instruction.md", "Fix it.\n");
        write(root, "test/fix/files/src/a.txt", "broken\n");
        write(root, "test/fix/tests/test.sh", "grep -q fixed src/a.txt\n");
        write(root, "test/fix/solution.sh", "echo fixed > src/a.txt\n");
        write(root, "test/other/task.toml", "instruction = \"b\"\nmax_turns = 2\n");
        let suite = TerminalSuite::open(root).unwrap();
        let task = suite.task("test", 0).unwrap();
        assert_eq!(task.id, "s/test/fix");
        let found: TerminalTask = serde_json::from_value(task.parameters).unwrap();
        assert_eq!(found.instruction, "Fix it.");
        assert_eq!(found.solution, ["echo fixed > src/a.txt\n"]);
        assert_eq!(found.verifier.command, "sh /tests/test.sh");
        assert_eq!(found.files["src/a.txt"].host(), Some(&root.join("test/fix/files/src/a.txt")));
        assert!(found.verifier.files.contains_key("test.sh"));
        assert_eq!(suite.task("test", 1).unwrap().max_turns, 2);
        // What only the verifier reads is part of what the suite is.
        let before = suite.manifest().content_hash.clone();
        write(root, "test/fix/tests/test.sh", "true\n");
        assert_ne!(TerminalSuite::open(root).unwrap().manifest().content_hash, before);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "suite.toml", SUITE);
        write(root, "test/fix/instruction.md", "Fix it.");
        write(root, "test/fix/files/plain", "");
        std::os::unix::fs::symlink("/etc/passwd", root.join("test/fix/files/link")).unwrap();
        let error = TerminalSuite::open(root).unwrap_err().to_string();
        assert!(error.contains("link"), "{error}");
    }
}
