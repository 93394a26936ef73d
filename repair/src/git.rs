//! The repository of a package's tasks: a bare one, that `git fast-import` writes.
//!
//! ```text
//!  base ─▶ Bug Patch ─▶ Remove F2P Tests      (a branch for each task, named by its instance)
//! ```

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{MakeError, SourcePackage};

/// Who made the commits, and when: equal tasks have equal commits.
const AUTHOR: &str = "spar <spar@localhost> 1000000000 +0000";
const BASE: &str = "refs/heads/main";

/// A bare repository with the package as its branch `main`.
#[derive(Debug, Clone)]
pub(crate) struct TaskRepository {
    folder: PathBuf,
}

/// The commits of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskCommits {
    /// With the bug, and without the tests that show it.
    pub(crate) head: String,
}

impl TaskRepository {
    /// Opens the repository in a folder, or makes it with the package as its first commit.
    pub(crate) fn open(folder: &Path, package: &SourcePackage) -> Result<Self, MakeError> {
        let this = Self { folder: folder.to_owned() };
        if folder.join("HEAD").is_file() && this.commit(BASE)?.is_some() {
            return Ok(this);
        }
        fs::create_dir_all(folder).map_err(|source| MakeError::Io {
            doing: "make the folder",
            path: folder.to_owned(),
            source,
        })?;
        this.git(&["init", "--quiet", "--bare", "--initial-branch=main"])?;
        let mut stream = Vec::new();
        let message = format!("{} {}\n", package.name, package.version);
        head(&mut stream, BASE, &message, None);
        for (path, file) in &package.files {
            let mode = if file.is_executable { "100755" } else { "100644" };
            stream.extend_from_slice(format!("M {mode} inline {}\n", quoted(path)).as_bytes());
            data(&mut stream, &file.bytes);
        }
        this.import(&stream, None)?;
        Ok(this)
    }

    /// Adds a task: files with the bug, and files of tests that are taken away. One that is there already is only told.
    pub(crate) fn add(
        &self,
        instance: &str,
        changed: &[(String, String, bool)],
        removed: &[String],
    ) -> Result<TaskCommits, MakeError> {
        let branch = format!("refs/heads/{instance}");
        if let Some(head) = self.commit(&branch)? {
            return Ok(TaskCommits { head });
        }
        let mut stream = Vec::new();
        // A branch of its own until both commits are there.
        let draft = "refs/spar/draft";
        head(&mut stream, draft, "Bug Patch\n", Some(BASE));
        for (path, text, is_executable) in changed {
            let mode = if *is_executable { "100755" } else { "100644" };
            stream.extend_from_slice(format!("M {mode} inline {}\n", quoted(path)).as_bytes());
            data(&mut stream, text.as_bytes());
        }
        stream.extend_from_slice(b"\n");
        head(&mut stream, &branch, "Remove F2P Tests\n", Some(draft));
        for path in removed {
            stream.extend_from_slice(format!("D {}\n", quoted(path)).as_bytes());
        }
        stream.extend_from_slice(b"\n");
        let head = self.import(&stream, Some(&branch))?;
        self.git(&["update-ref", "-d", draft])?;
        Ok(TaskCommits { head })
    }

    fn commit(&self, name: &str) -> Result<Option<String>, MakeError> {
        let output =
            self.command(&["rev-parse", "--quiet", "--verify", name]).output().map_err(no_git)?;
        let hash = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !hash.is_empty()).then_some(hash))
    }

    fn git(&self, arguments: &[&str]) -> Result<(), MakeError> {
        let output = self.command(arguments).output().map_err(no_git)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(MakeError::Git {
                what: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }

    /// Imports a stream; the commit of a branch afterwards, empty where none is asked for.
    fn import(&self, stream: &[u8], branch: Option<&str>) -> Result<String, MakeError> {
        let mut git = self
            .command(&["fast-import", "--quiet", "--force", "--done"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(no_git)?;
        let mut input = git.stdin.take().expect("it is piped");
        let mut output = BufReader::new(git.stdout.take().expect("it is piped"));
        let written = input.write_all(stream).and_then(|()| input.write_all(b"done\n"));
        drop(input);
        let mut told = String::new();
        let _ = output.read_line(&mut told);
        let ended = git.wait_with_output().map_err(no_git)?;
        if !ended.status.success() || written.is_err() {
            return Err(MakeError::Git {
                what: String::from_utf8_lossy(&ended.stderr).trim().to_owned(),
            });
        }
        match branch {
            None => Ok(String::new()),
            Some(branch) => self.commit(branch)?.ok_or_else(|| MakeError::Git {
                what: format!("`{branch}` is not there after it was written"),
            }),
        }
    }

    /// Git with nothing of the user's configuration, which may sign commits or run hooks.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.folder).args(arguments).stdin(Stdio::null());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            command.env_remove(name);
        }
        command
    }
}

fn no_git(error: std::io::Error) -> MakeError {
    MakeError::Git { what: format!("`git` cannot be run: {error}") }
}

fn head(stream: &mut Vec<u8>, branch: &str, message: &str, from: Option<&str>) {
    stream.extend_from_slice(
        format!("commit {branch}\nauthor {AUTHOR}\ncommitter {AUTHOR}\n").as_bytes(),
    );
    data(stream, message.as_bytes());
    if let Some(from) = from {
        stream.extend_from_slice(format!("from {from}\n").as_bytes());
    }
}

fn data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend_from_slice(format!("data {}\n", bytes.len()).as_bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}

fn quoted(path: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in path.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::PackageFile;
    use crate::mutation::Language;

    fn package() -> SourcePackage {
        let file = |text: &str, is_executable| PackageFile {
            bytes: text.as_bytes().to_vec(),
            is_executable,
        };
        SourcePackage {
            name: "p".into(),
            version: "1".into(),
            language: Language::Python,
            licence: None,
            sha256: "0".repeat(64),
            files: BTreeMap::from([
                ("a b/\"c\".py".to_owned(), file("x = 1\n", true)),
                ("tests/t.py".to_owned(), file("", false)),
            ]),
        }
    }

    #[test]
    fn a_task_is_a_branch_and_its_commits_are_the_same_everywhere() {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("not run: there is no git");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let heads = ["one", "two"].map(|name| {
            let repository = TaskRepository::open(&folder.path().join(name), &package()).unwrap();
            let changed = [("a b/\"c\".py".to_owned(), "x = 2".to_owned(), true)];
            let commits =
                repository.add("p.0.kind__1", &changed, &["tests/t.py".to_owned()]).unwrap();
            assert_eq!(
                repository.add("p.0.kind__1", &[], &[]).unwrap(),
                commits,
                "it is there already"
            );
            let shown = repository
                .command(&["show", "--format=%s", "--raw", "--no-abbrev", "p.0.kind__1~1"])
                .output()
                .unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            assert!(shown.starts_with("Bug Patch") && shown.contains(":100755 100755"), "{shown}");
            let tree = repository
                .command(&["ls-tree", "-r", "--name-only", "-z", "p.0.kind__1"])
                .output()
                .unwrap();
            assert_eq!(tree.stdout, b"a b/\"c\".py\0");
            assert_eq!(
                TaskRepository::open(&folder.path().join(name), &package())
                    .unwrap()
                    .commit("refs/spar/draft")
                    .unwrap(),
                None
            );
            commits.head
        });
        assert_eq!(heads[0], heads[1]);
    }
}
