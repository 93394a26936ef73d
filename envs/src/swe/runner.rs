//! Whether a sandbox has what runs the tests: told when it comes, and not by the log of the first attempt that is graded there.

use std::time::Duration;

use spar_sandbox::{ExecEnd, ExecRequest, Sandbox, SandboxError};

use super::place::Plan;
use crate::Sandboxes;

const START: &str = ">>>>> Start Test Output";
/// What the look exits with where something is missing.
const MISSING: i32 = 61;
/// How long the look may take; what takes longer tells nothing.
const LOOKING: Duration = Duration::from_secs(60);
/// Commands before the tests by which what runs them is found, beside `conda activate` and variables.
const FINDING: [&str; 4] = ["source", ".", "export", "cd"];
/// Commands before the tests that change nothing of that.
const INDIFFERENT: [&str; 14] = [
    ":",
    "cat",
    "chmod",
    "echo",
    "git",
    "locale-gen",
    "ls",
    "mkdir",
    "pwd",
    "rm",
    "sed",
    "set",
    "touch",
    "true",
];

/// Fails where the sandbox lacks what runs the tests. Each image is looked at once; where nothing can be known, nothing is said.
///
/// # Errors
///
/// [`SandboxError::Setup`] where it lacks that, and those of the sandbox.
pub(super) async fn expect_runner(
    plan: &Plan,
    sandboxes: &Sandboxes,
    sandbox: &dyn Sandbox,
) -> Result<(), SandboxError> {
    let Some(script) = look(plan.verification().script()) else { return Ok(()) };
    let instance = plan.instance();
    let user = instance.verifier_user.clone();
    let key = format!("{}\n{user:?}\n{script}", plan.image);
    if sandboxes.has_looked(&key) {
        return Ok(());
    }
    const RUN: &str =
        "if command -v bash >/dev/null 2>&1; then exec bash -c \"$0\"; else exec sh -c \"$0\"; fi";
    let mut request = ExecRequest::new(["sh", "-c", RUN, script.as_str()])
        .with_timeout(LOOKING.min(plan.set_up_limit()));
    request.workdir = plan.verifier_workdir();
    request.user = user;
    request.env = plan.verifier_env.clone();
    let done = sandbox.exec(&request).await?;
    if done.end == (ExecEnd::Exited { code: MISSING }) {
        return Err(SandboxError::Setup {
            command: "look for what runs the tests".to_owned(),
            end: done.end,
            output: format!(
                "{}; name an image that has it (--image, or `image` of a `swe.toml`)",
                done.stdout.text().trim()
            ),
        });
    }
    sandboxes.note_look(key);
    Ok(())
}

/// What looks for it, of a script that writes the mark before its tests: it finds its way as the script does. Absent where
/// the script does more before its tests than is understood here, such as installing packages.
fn look(script: &str) -> Option<String> {
    let mut finding = String::new();
    let mut lines = script.lines();
    // 1. What comes before the tests.
    loop {
        let line = lines.next()?.trim();
        if line.contains(START) {
            break;
        }
        if let Some(end) = end_of_text(line) {
            lines.by_ref().find(|line| line.trim() == end)?;
        }
        let word = line.split_whitespace().next().unwrap_or("#");
        if word.starts_with('#') || is_indifferent(line, word) {
            continue;
        }
        if !finds(line) {
            return None;
        }
        finding.push_str(line);
        finding.push('\n');
    }
    // 2. The first command of the tests.
    let command = lines.map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let program_at = words.iter().position(|word| !is_assignment(word))?;
    let (assignments, rest) = words.split_at(program_at);
    let program = rest[0];
    if !program.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c)) {
        return None;
    }
    let mut look = format!(
        "{{\n:\n{finding}}} >/dev/null 2>&1\n\
         command -v {program} >/dev/null 2>&1 || {{ echo 'there is no program `{program}`'; exit {MISSING}; }}\n"
    );
    let module = (rest.len() > 2 && program.starts_with("python") && rest[1] == "-m")
        .then(|| rest[2].split('.').next().unwrap_or_default())
        .filter(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
    if let Some(module) = module {
        let assignments: String = assignments.iter().map(|it| format!("{it} ")).collect();
        // Python 2 has no such function, and tells nothing by that.
        look += &format!(
            "{assignments}PYTHONDONTWRITEBYTECODE=1 {program} -c 'import sys\n\
             from importlib.util import find_spec\n\
             sys.exit(0 if find_spec(\"{module}\") else {MISSING})' >/dev/null 2>&1\n\
             [ $? -ne {MISSING} ] || {{ echo \"$(command -v {program}) has no module \\`{module}\\`\"; exit {MISSING}; }}\n"
        );
    }
    look.push_str("exit 0\n");
    Some(look)
}

/// What ends the text that a command is given behind it, if it is given one.
fn end_of_text(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("<<")?;
    let word = rest.trim_start_matches('-').split_whitespace().next()?;
    Some(word.trim_matches(['\'', '"', '\\']))
}

/// Whether a word sets a variable, without anything that a shell would work out.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty()
            && name.chars().all(is_name)
            && !value.contains(['`', '(', ')', ';', '&', '|'])
    })
}

/// Whether a command changes nothing of what is found: those that only install the repository itself were run before, too.
fn is_indifferent(line: &str, word: &str) -> bool {
    let is_chained = line.contains("&&") || line.contains("||") || line.contains(';');
    if INDIFFERENT.contains(&word) {
        return !is_chained
            || line.split([';', '&', '|']).all(|part| {
                part.split_whitespace().next().is_none_or(|word| INDIFFERENT.contains(&word))
            });
    }
    let installed = ["python -m pip install ", "pip install "];
    installed.iter().find_map(|install| line.strip_prefix(install)).is_some_and(|rest| {
        rest.split_whitespace().all(|word| word == "." || word.starts_with('-') && word != "-r")
    })
}

/// Whether it is a way to the tests' programs and nothing else, perhaps under a condition.
fn finds(line: &str) -> bool {
    let behind = line.starts_with("[ ").then(|| line.split_once(" ] ")).flatten();
    let behind = behind.and_then(|(_, rest)| rest.strip_prefix("|| ").or(rest.strip_prefix("&& ")));
    let rest = behind.unwrap_or(line);
    !rest.contains("||")
        && !rest.contains(['`', '(', '<', '>'])
        && rest.split("&&").flat_map(|part| part.split(';')).all(|part| {
            let words: Vec<&str> = part.split_whitespace().collect();
            !part.contains(['|', '&'])
                && match &words[..] {
                    [] | ["conda", "activate", ..] => true,
                    [word] if is_assignment(word) => true,
                    [word, ..] => FINDING.contains(word),
                }
        })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const MARK: &str = ": '>>>>> Start Test Output'\n";

    /// What a look says here, and its exit status.
    fn looked(script: &str) -> (Option<i32>, String) {
        let look = look(script).expect("it is understood");
        let ran = Command::new("sh").args(["-c", &look]).output().unwrap();
        assert!(ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    }

    #[test]
    fn programs_that_are_not_there_are_told() {
        assert_eq!(looked(&format!("#!/bin/bash\nset -eux\ncd /\n{MARK}sh -c true\n")).0, Some(0));
        let (code, said) = looked(&format!("{MARK}\n# tests\nA=1 no-such-runner --all\n"));
        assert_eq!((code, said.trim()), (Some(MISSING), "there is no program `no-such-runner`"));
        // The way there is the script's own.
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("own-runner");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let path = folder.path().display();
        let script = format!("export PATH={path}:$PATH\n{MARK}own-runner\n");
        assert_eq!(looked(&script).0, Some(0));
    }

    #[test]
    fn modules_that_are_not_there_are_told() {
        if Command::new("python3").arg("--version").output().is_err() {
            eprintln!("no python3 here: nothing was looked for");
            return;
        }
        let runs =
            |module: &str| looked(&format!("{MARK}PYTHONHASHSEED=0 python3 -m {module} -v\n"));
        assert_eq!(runs("unittest").0, Some(0));
        let (code, said) = runs("no_such_module.main");
        assert_eq!(code, Some(MISSING));
        assert!(said.contains("has no module `no_such_module`"), "{said}");
    }

    #[test]
    fn scripts_that_may_bring_what_runs_their_tests_are_left_alone() {
        let of_swe_bench = |install: &str| {
            look(&format!(
                "#!/bin/bash\nset -uxo pipefail\nsource /opt/miniconda3/bin/activate\nconda activate testbed\ncd /testbed\n\
                 [ ! -f /opt/activate ] || source /opt/activate\ngit status\n{install}\ngit apply -v - <<'EOF_1'\n\
                 +pip install pytest\n+{MARK}EOF_1\n{MARK}pytest -rA tests\n"
            ))
        };
        let look_of = of_swe_bench("python -m pip install -e .").unwrap();
        for part in ["conda activate testbed\n", "source /opt/activate\n", "command -v pytest "] {
            assert!(look_of.contains(part), "{part:?} is missing in\n{look_of}");
        }
        assert!(!look_of.contains("install") && !look_of.contains("git"), "{look_of}");
        for install in [
            "pip install -e .[test]",
            "pip install -r all.txt",
            "make",
            "echo 1; apt-get install x",
            "cd x && make",
            "conda install pytest",
            "export PATH=$(make path)",
            "[ -d x ] || make x",
        ] {
            assert_eq!(of_swe_bench(install), None, "{install}");
        }
        for script in [
            "pytest\n",
            ": '>>>>> Start Test Output'\n./run.sh\n",
            ": '>>>>> Start Test Output'\n(cd x; y)\n",
        ] {
            assert_eq!(look(script), None, "{script}");
        }
    }
}
