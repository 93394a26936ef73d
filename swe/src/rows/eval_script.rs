//! The script by which SWE-bench's harness tests an instance of a repository that its table knows, character by character.

use std::sync::LazyLock;

use regex::Regex;

use crate::instance::{ImageAsset, RepoSpec};
use crate::patch::{git_files, modified_files, test_directives};

/// What ends the patch of tests in a script.
pub(super) const HEREDOC: &str = "EOF_114329324912";
const START: &str = ": '>>>>> Start Test Output'";
const END: &str = ": '>>>>> End Test Output'";

/// What a script is made from.
pub(super) struct ScriptParts<'a> {
    pub(super) repo: &'a str,
    pub(super) version: &'a str,
    pub(super) base_commit: &'a str,
    pub(super) test_patch: &'a str,
    pub(super) test_images: &'a [ImageAsset],
    pub(super) spec: &'a RepoSpec,
}

impl ScriptParts<'_> {
    /// The script of SWE-bench 4; absent where the patch of tests cannot be read.
    pub(super) fn swe_bench(&self) -> Option<String> {
        let lines = match self.spec.language.as_str() {
            "py" => self.python()?,
            "js" => self.java_script()?,
            _ => self.common(&self.spec.test_commands, &[])?,
        };
        Some(script(&lines))
    }

    /// The script of SWE-Gym's fork, which has no marks around the tests.
    pub(super) fn swe_gym(&self) -> String {
        let test = match self.repo {
            "python/mypy" => {
                format!("{} \"{}\"", self.test_command(), mypy_keys(self.test_patch).join(" or "))
            }
            _ => self.python_test_command(),
        };
        let reset =
            format!("git checkout {} {}", self.base_commit, gym_files(self.test_patch).join(" "));
        let mut lines = self.python_start(&format!("git diff {}", self.base_commit));
        lines.extend([reset.clone(), self.apply("git apply -v -"), test, reset]);
        script(&lines)
    }

    fn test_command(&self) -> &str {
        self.spec.test_commands.first().map(String::as_str).unwrap_or_default()
    }

    fn python_test_command(&self) -> String {
        let mut parts = vec![self.test_command().to_owned()];
        parts.extend(test_directives(self.repo, self.test_patch));
        parts.join(" ")
    }

    fn apply(&self, command: &str) -> String {
        format!("{command} <<'{HEREDOC}'\n{}\n{HEREDOC}", self.test_patch)
    }

    /// What stands before the tests are put back.
    fn python_start(&self, diff: &str) -> Vec<String> {
        let activate = || {
            ["source /opt/miniconda3/bin/activate".to_owned(), "conda activate testbed".to_owned()]
        };
        let mut lines = Vec::from(activate());
        lines.push("cd /testbed".to_owned());
        lines.extend(self.spec.eval_commands.iter().cloned());
        let shown = [SAFE_FOLDER, "cd /testbed", "git status", "git show", diff];
        lines.extend(shown.map(str::to_owned));
        lines.extend(activate());
        lines.extend(self.spec.install.iter().cloned());
        lines
    }

    fn python(&self) -> Option<Vec<String>> {
        let reset = format!(
            "git checkout {} {}",
            self.base_commit,
            modified_files(self.test_patch)?.join(" ")
        );
        let mut lines =
            self.python_start(&format!("git -c core.fileMode=false diff {}", self.base_commit));
        lines.extend([
            reset.clone(),
            self.apply("git apply -v -"),
            START.to_owned(),
            self.python_test_command(),
            END.to_owned(),
            reset,
        ]);
        Some(lines)
    }

    fn java_script(&self) -> Option<Vec<String>> {
        let mut downloads = Vec::new();
        for ImageAsset { url, path } in self.test_images {
            let path = path.as_deref()?;
            let folder = match path.rsplit_once('/') {
                Some(("", _)) => "/",
                Some((folder, _)) => folder,
                None => ".",
            };
            downloads.push(format!("mkdir -p {folder}"));
            downloads.push(format!("curl -o {path} {url}"));
            downloads.push(format!("chmod 777 {path}"));
        }
        match self.repo {
            "Automattic/wp-calypso" => self.common(&self.calypso()?, &downloads),
            _ => self.common(&self.spec.test_commands, &downloads),
        }
    }

    fn common(&self, tests: &[String], downloads: &[String]) -> Option<Vec<String>> {
        let files = modified_files(self.test_patch)?;
        let reset = match files.is_empty() {
            true => "echo \"No test files to reset\"".to_owned(),
            false => format!("git checkout {} {}", self.base_commit, files.join(" ")),
        };
        let mut lines = vec![
            "cd /testbed".to_owned(),
            SAFE_FOLDER.to_owned(),
            "cd /testbed".to_owned(),
            reset.clone(),
        ];
        lines.extend_from_slice(downloads);
        lines.push(self.apply("git apply --verbose --reject -"));
        lines.extend(self.spec.build.iter().cloned());
        lines.push(START.to_owned());
        lines.extend_from_slice(tests);
        lines.extend([END.to_owned(), reset]);
        Some(lines)
    }

    /// wp-calypso is tested file by file, each with the command of its part.
    fn calypso(&self) -> Option<Vec<String>> {
        const WITH_SCRIPT: [&str; 6] =
            ["10.10.0", "10.12.0", "10.13.0", "10.14.0", "10.15.2", "10.16.3"];
        const WITH_JSON: [&str; 10] = [
            "6.11.5", "8.9.1", "8.9.3", "8.9.4", "8.11.0", "8.11.2", "10.4.1", "10.5.0", "10.6.0",
            "10.9.0",
        ];
        let mut commands = Vec::new();
        for path in git_files(self.test_patch)? {
            // Snapshots belong to the tests two folders above them.
            let path = match path.ends_with(".js.snap") && path.contains("__snapshots__/") {
                true => path.rsplitn(3, '/').nth(2).unwrap_or_default().to_owned(),
                false => path,
            };
            if path.starts_with("client") || path.starts_with("packages") {
                let part = path.split('/').next().unwrap_or_default();
                let jest = |end: &str| {
                    format!(
                        "./node_modules/.bin/jest --verbose -c=test/{part}/jest.config.{end} '{path}'"
                    )
                };
                commands.push(match self.version {
                    version if WITH_SCRIPT.contains(&version) => jest("js"),
                    version if WITH_JSON.contains(&version) => jest("json"),
                    _ => format!("npm run test-{part} --verbose '{path}'"),
                });
            } else if path.starts_with("test/e2e") {
                commands.push("cd test/e2e".to_owned());
                commands.push(format!("NODE_CONFIG_ENV=test npm run test {path}"));
                commands.push("cd ../..".to_owned());
            }
        }
        Some(commands)
    }
}

const SAFE_FOLDER: &str = "git config --global --add safe.directory /testbed";

fn script(lines: &[String]) -> String {
    format!("#!/bin/bash\nset -uxo pipefail\n{}\n", lines.join("\n"))
}

/// The names of mypy's tests that a patch of tests shows.
fn mypy_keys(test_patch: &str) -> Vec<&str> {
    static KEY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\[case ([^\]]+)\]").expect("the pattern is valid"));
    KEY.captures_iter(test_patch).filter_map(|found| found.get(1)).map(|key| key.as_str()).collect()
}

/// What the fork takes for the files that a patch of tests changes: the names of its `---` lines.
fn gym_files(test_patch: &str) -> Vec<&str> {
    let lines = test_patch.split('\n');
    lines.filter_map(|line| line.split_once("--- a/").map(|(_, name)| name)).collect()
}
