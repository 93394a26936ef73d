use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use spar_sandbox::{ExecEnd, ExecRequest};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::Instant;

use super::place::io;
use super::{Place, RunRequest, TestOutcome, TestResult, TestRun};
use crate::RunnerError;
use crate::SourcePackage;

/// Patience with a toolchain that is asked what it is.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a run may take beyond its own deadline, after which `timeout` ends it.
const MARGIN: Duration = Duration::from_secs(30);
/// Bytes of what a run prints; what it prints beyond them makes it a broken one.
const MAX_OUTPUT: usize = 32 << 20;
/// What the processor times of a run stand behind.
const TIMES: &str = "SPAR-REPAIR-TIMES";
/// Letters kept of what a test says.
const MAX_TEXT: usize = 4000;
/// Lines of a test's source that are shown above the one that panics.
const LINES_ABOVE: usize = 6;

/// A toolchain of Rust, named by the user, who trusts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cargo {
    /// `cargo` of the toolchain itself, behind what chooses among toolchains.
    pub program: PathBuf,
    /// The folder of the toolchain.
    pub folder: PathBuf,
    /// What `rustc` calls itself, such as `rustc 1.90.0`.
    pub version: String,
}

impl Cargo {
    /// Asks a toolchain what it is. It runs on this machine, as the user named it.
    ///
    /// # Errors
    ///
    /// [`RunnerError::Tool`] when it does not run, or its folder is not whole.
    pub async fn ask(program: &Path) -> Result<Self, RunnerError> {
        let wrong = |what: String| RunnerError::Tool { program: "cargo", what };
        let told = async |program: &Path, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
            let asked = tokio::time::timeout(ANSWER, command.output()).await;
            let asked = asked
                .map_err(|_| wrong(format!("`{}` does not answer", program.display())))?
                .map_err(|error| wrong(format!("`{}`: {error}", program.display())))?;
            match asked.status.success() {
                true => Ok(String::from_utf8_lossy(&asked.stdout).trim().to_owned()),
                false => Err(wrong(String::from_utf8_lossy(&asked.stderr).trim().to_owned())),
            }
        };
        // That of rustup chooses a toolchain by the folder that it runs in; only the chosen one is of use in a sandbox.
        let beside = program.parent().filter(|folder| !folder.as_os_str().is_empty());
        let rustc = beside.map_or_else(|| PathBuf::from("rustc"), |folder| folder.join("rustc"));
        let folder = PathBuf::from(told(&rustc, &["--print", "sysroot"]).await?);
        let own = folder.join("bin/cargo");
        if !own.is_file() {
            let what = format!("`{}` has no `bin/cargo`", folder.display());
            return Err(wrong(what));
        }
        told(&own, &["--version"]).await?;
        let version = told(&folder.join("bin/rustc"), &["--version"]).await?;
        Ok(Self { program: own, folder, version })
    }
}

/// Runs the integration tests of a crate. The files of its place stay as they were last asked for, so that a run of equal files
/// builds nothing.
pub struct CargoRunner {
    cargo: Cargo,
    package: SourcePackage,
    /// Files that stand there in place of the crate's own.
    changed: BTreeMap<String, String>,
}

impl CargoRunner {
    pub(crate) fn new(cargo: &Cargo, package: &SourcePackage) -> Self {
        Self { cargo: cargo.clone(), package: package.clone(), changed: BTreeMap::new() }
    }

    /// Runs tests: all of them, whichever are asked for, since building takes longer than they do.
    ///
    /// # Errors
    ///
    /// [`RunnerError`] when the place cannot do its part; then it is of no more use.
    pub(crate) async fn run(
        &mut self,
        place: &Place,
        request: &RunRequest,
    ) -> Result<TestRun, RunnerError> {
        // 1. The files that differ from what stands there.
        let back: Vec<String> = self
            .changed
            .keys()
            .filter(|path| !request.files.contains_key(*path))
            .cloned()
            .collect();
        for path in back {
            let own = self.package.files.get(&path).expect("only files of the crate are changed");
            write(place, &path, &own.bytes, own.is_executable).await?;
            self.changed.remove(&path);
        }
        for (path, text) in &request.files {
            if self.changed.get(path) != Some(text) {
                let is_executable = self.package.files[path].is_executable;
                write(place, path, text.as_bytes(), is_executable).await?;
                self.changed.insert(path.clone(), text.clone());
            }
        }
        // 2. The tests, whose processes end with `timeout`'s group.
        let seconds = request.timeout.as_secs().max(1);
        let script = format!(
            "timeout -k 2 {seconds} \"$0\" test --offline --no-fail-fast --tests 2>&1\ncode=$?\necho\necho {TIMES}\ntimes\nexit $code\n"
        );
        let program = self.cargo.program.to_string_lossy().into_owned();
        let command = ["sh".to_owned(), "-c".to_owned(), script, program];
        let ran = run_in(place, command.into(), self.env(), request.timeout + MARGIN).await?;
        // 3. What it says.
        let mut run = self.read(&ran.output);
        run.wall = ran.wall;
        // `timeout` tells by 124 that it ended it, and 137 where that took force.
        run.has_timed_out = matches!(ran.code, None | Some(124 | 137));
        run.is_whole &= matches!(ran.code, Some(0 | 101));
        Ok(run)
    }

    fn env(&self) -> BTreeMap<String, String> {
        let folder = self.cargo.folder.join("bin");
        [
            ("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display())),
            ("CARGO_TERM_COLOR", "never".to_owned()),
            ("CARGO_INCREMENTAL", "1".to_owned()),
            ("CARGO_PROFILE_DEV_DEBUG", "false".to_owned()),
            ("CARGO_NET_OFFLINE", "true".to_owned()),
            ("RUST_BACKTRACE", "0".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// What a run has printed.
    fn read(&self, output: &str) -> TestRun {
        let mut run = read(output);
        // What every line of a source comes to is not told: all tests may come to all of them.
        for (path, text) in self.package.sources().filter(|(path, _)| path.starts_with("src/")) {
            let lines = (1..=text.lines().count()).collect();
            run.coverage.entry(String::new()).or_default().insert(path.to_owned(), lines);
        }
        for (name, result) in &mut run.tests {
            if result.outcome.is_failure() {
                result.text = self.shown(name, &result.text);
            }
        }
        run
    }

    /// A failure in the short form that issues are made from: the lines of the test's source down to the one that panics, and
    /// what was said.
    fn shown(&self, name: &str, said: &str) -> String {
        static PLACE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"panicked at (?:.*?, )?([^\s:]+\.rs):(\d+):\d+").expect("it is fixed")
        });
        let file = name.split("::").next().unwrap_or_default();
        let place = PLACE.captures(said).filter(|groups| groups[1].ends_with(file));
        let line: Option<usize> = place.as_ref().and_then(|groups| groups[2].parse().ok());
        let mut text = String::new();
        if let (Some(line), Some(source)) = (line, self.package.text(file)) {
            text = format!("{file}:{line}: in test\n");
            let lines: Vec<&str> = source.lines().take(line).collect();
            // The body of the test, as far as it is near.
            let start = lines.iter().rposition(|line| line.trim_start().starts_with("fn "));
            let start = start.map_or(0, |at| at + 1).max(line.saturating_sub(LINES_ABOVE));
            for line in lines.get(start..).unwrap_or_default() {
                text += &format!("    {}\n", line.trim());
            }
        }
        let words = said.lines().filter(|line| {
            let is_place = line.starts_with("thread '") && line.contains("panicked at");
            !is_place && !line.starts_with("note: ") && !line.trim().is_empty()
        });
        // Versions before 1.73 have the message in the line of the place.
        static OLD: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"panicked at '(.*)', \S+\.rs:\d+:\d+").expect("it is fixed")
        });
        if let Some(groups) = OLD.captures(said) {
            text += &format!("E   {}\n", &groups[1]);
        }
        words.for_each(|line| text += &format!("E   {line}\n"));
        text
    }
}

/// What is printed by `cargo test`: tests by the file that they stand in, `tests/FILE.rs::NAME`. Tests within sources, and those
/// of a name that another one has as well, are left out: a log could not tell them apart.
fn read(output: &str) -> TestRun {
    static RUNNING: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s+Running (unittests )?(\S+) \(.*\)$").expect("it is fixed")
    });
    static TEST: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^test\s+(\S+)\s+\.\.\.\s+(\w+)").expect("it is fixed"));
    static SAID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^---- (\S+) std(?:out|err) ----$").expect("it is fixed"));
    let mut run = TestRun::default();
    let (mut file, mut started, mut ended) = (None::<String>, 0usize, 0usize);
    // How often each name is told, whichever file it is of.
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut said, mut errors) = (None::<String>, String::new());
    let (output, times) = output.rsplit_once(TIMES).unwrap_or((output, ""));
    for line in output.lines() {
        if let Some(groups) = RUNNING.captures(line) {
            started += 1;
            said = None;
            let path = groups[2].to_owned();
            file = Some(path);
            continue;
        }
        if line.starts_with("test result: ") {
            ended += 1;
            said = None;
            continue;
        }
        if line == "failures:" {
            said = None;
            continue;
        }
        if let Some(groups) = SAID.captures(line) {
            said = file.as_ref().map(|file| format!("{file}::{}", &groups[1]));
            continue;
        }
        if let Some(test) = &said {
            if let Some(result) = run.tests.get_mut(test)
                && result.text.len() + line.len() < MAX_TEXT
            {
                result.text += line;
                result.text.push('\n');
            }
            continue;
        }
        if started == 0 && (line.starts_with("error") || !errors.is_empty()) {
            if errors.len() + line.len() < MAX_TEXT {
                errors += line;
                errors.push('\n');
            }
            continue;
        }
        if let (Some(groups), Some(file)) = (TEST.captures(line), &file) {
            let outcome = match &groups[2] {
                "ok" => TestOutcome::Passed,
                "ignored" => TestOutcome::Skipped,
                _ => TestOutcome::Failed,
            };
            names.entry(groups[1].to_owned()).or_default().insert(file.clone());
            let result = TestResult { outcome, text: String::new(), message: String::new() };
            run.tests.insert(format!("{file}::{}", &groups[1]), result);
        }
    }
    run.tests.retain(|test, _| {
        let (file, name) = test.split_once("::").unwrap_or(("", test));
        file.starts_with("tests/") && names.get(name).is_some_and(|files| files.len() == 1)
    });
    if started == 0 {
        let text = if errors.is_empty() { "no tests were built".to_owned() } else { errors };
        run.collect_errors.push((String::new(), text));
    }
    run.is_whole = started > 0 && started == ended;
    run.cpu = times_of(times);
    run
}

/// Processor time of what a shell has run, by its command `times`: the second line, of its children.
fn times_of(text: &str) -> Duration {
    let line = text.lines().filter(|line| !line.trim().is_empty()).nth(1).unwrap_or_default();
    let seconds = |word: &str| -> Option<f64> {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    let sum = line.split_whitespace().filter_map(seconds).sum();
    Duration::try_from_secs_f64(sum).unwrap_or_default()
}

/// What a command came to.
struct Ran {
    /// Absent where it did not end in time.
    code: Option<i32>,
    output: String,
    wall: Duration,
}

async fn run_in(
    place: &Place,
    command: Vec<String>,
    mut env: BTreeMap<String, String>,
    timeout: Duration,
) -> Result<Ran, RunnerError> {
    let began = Instant::now();
    match place {
        Place::Sandbox(sandbox) => {
            env.insert("HOME".to_owned(), "/tmp".to_owned());
            env.insert("CARGO_HOME".to_owned(), "/tmp/cargo".to_owned());
            let mut request = ExecRequest::new(command).with_timeout(timeout);
            request.env = env;
            request.workdir = Some(place.root());
            request.output_limit_bytes = MAX_OUTPUT;
            let done = sandbox.exec(&request).await?;
            let code = match done.end {
                ExecEnd::Exited { code } => Some(code),
                // What ends it for want of memory, or by a signal, leaves no whole run.
                ExecEnd::TimedOut => None,
                _ => Some(-1),
            };
            Ok(Ran { code, output: done.stdout.text(), wall: began.elapsed() })
        }
        Place::Host(folder) => {
            let scratch = folder.path().join("tmp");
            std::fs::create_dir_all(&scratch).map_err(io("make a folder for the tests"))?;
            let scratch = scratch.to_string_lossy().into_owned();
            env.insert("HOME".to_owned(), scratch.clone());
            env.insert("CARGO_HOME".to_owned(), format!("{scratch}/cargo"));
            env.insert("TMPDIR".to_owned(), scratch);
            let mut process = Command::new(&command[0]);
            process.args(&command[1..]).env_clear().envs(env).current_dir(place.root());
            process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            process.kill_on_drop(true);
            let mut child = process.spawn().map_err(io("start the tests"))?;
            let stdout = child.stdout.take().expect("it is piped");
            let mut output = Vec::new();
            let waiting = async {
                stdout.take(MAX_OUTPUT as u64).read_to_end(&mut output).await?;
                child.wait().await
            };
            let status = match tokio::time::timeout(timeout, waiting).await {
                Ok(status) => status.map_err(io("wait for the tests"))?.code(),
                Err(_) => None,
            };
            let output = String::from_utf8_lossy(&output).into_owned();
            Ok(Ran { code: status, output, wall: began.elapsed() })
        }
    }
}

/// Writes a file of the crate in its place, so that it looks newer than what was built of it.
async fn write(
    place: &Place,
    path: &str,
    bytes: &[u8],
    is_executable: bool,
) -> Result<(), RunnerError> {
    match place {
        Place::Sandbox(sandbox) => {
            let mode = if is_executable { 0o755 } else { 0o644 };
            Ok(sandbox.write_file(&format!("{}/{path}", place.root()), bytes, mode).await?)
        }
        Place::Host(_) => std::fs::write(Path::new(&place.root()).join(path), bytes)
            .map_err(io("write a file of the package")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PackageFile;
    use crate::mutation::Language;

    const OUTPUT: &str = "   Compiling own v0.1.0 (/testbed)\n    Finished `test` profile [unoptimized] target(s) in 0.30s\n     \
        Running unittests src/lib.rs (target/debug/deps/own-1)\n\nrunning 1 test\ntest inner ... ok\n\ntest result: ok. 1 passed; 0 failed\n\n     \
        Running tests/a.rs (target/debug/deps/a-2)\n\nrunning 5 tests\ntest adds ... FAILED\ntest more::works ... ok\ntest twice ... ok\n\
        test slow ... ignored, takes long\ntest panics - should panic ... ok\n\nfailures:\n\n---- adds stdout ----\n\n\
        thread 'adds' panicked at tests/a.rs:4:5:\nassertion `left == right` failed\n  left: -1\n right: 5\n\
        note: run with `RUST_BACKTRACE=1`\ntest lies ... ok\n\n\nfailures:\n    adds\n\ntest result: FAILED. 3 passed; 1 failed\n\n\
        error: test failed, to rerun pass `--test a`\n     Running tests/b.rs (target/debug/deps/b-3)\n\nrunning 1 test\ntest twice ... ok\n\n\
        test result: ok. 1 passed\n\n\nSPAR-REPAIR-TIMES\n0m0.010s 0m0.020s\n1m2.500s 0m0.250s\n";

    fn package() -> SourcePackage {
        let file =
            |text: &str| PackageFile { bytes: text.as_bytes().to_vec(), is_executable: false };
        SourcePackage {
            name: "own".into(),
            version: "0.1.0".into(),
            language: Language::Rust,
            licence: None,
            sha256: "0".repeat(64),
            files: BTreeMap::from([
                ("src/lib.rs".to_owned(), file("pub fn add() {}\n// two\n")),
                (
                    "tests/a.rs".to_owned(),
                    file(
                        "#[test]\nfn adds() {\n    let x = 2;\n    assert_eq!(own::add(x, 3), 5);\n}\n",
                    ),
                ),
            ]),
        }
    }

    fn runner() -> CargoRunner {
        let cargo = Cargo { program: "cargo".into(), folder: "/rust".into(), version: "1".into() };
        CargoRunner::new(&cargo, &package())
    }

    #[test]
    fn tests_are_read_by_the_file_that_they_stand_in() {
        let run = runner().read(OUTPUT);
        let told: Vec<_> =
            run.tests.iter().map(|(name, result)| (name.as_str(), result.outcome)).collect();
        assert_eq!(
            told,
            [
                ("tests/a.rs::adds", TestOutcome::Failed),
                ("tests/a.rs::more::works", TestOutcome::Passed),
                ("tests/a.rs::slow", TestOutcome::Skipped),
            ]
        );
        assert!(run.is_whole && run.collect_errors.is_empty());
        assert_eq!(run.cpu, Duration::from_millis(62_750));
        assert_eq!(run.coverage[""]["src/lib.rs"], BTreeSet::from([1, 2]));
        assert_eq!(
            run.tests["tests/a.rs::adds"].text,
            "tests/a.rs:4: in test\n    let x = 2;\n    assert_eq!(own::add(x, 3), 5);\nE   assertion `left == right` failed\n\
             E     left: -1\nE    right: 5\nE   test lies ... ok\n"
        );
    }

    #[test]
    fn what_is_not_built_and_what_ends_early_is_no_run() {
        let broken = read(
            "   Compiling own v0.1.0\nerror[E0308]: mismatched types\n --> src/lib.rs:1:1\n\nerror: could not compile `own`\n",
        );
        assert!(!broken.is_whole);
        assert!(broken.collect_errors[0].1.starts_with("error[E0308]"), "{broken:?}");
        let aborted = OUTPUT.replace("test result: ok. 1 passed\n", "");
        assert!(!read(&aborted).is_whole);
        assert!(!read("").is_whole);
        assert_eq!(read("").cpu, Duration::ZERO);
    }
}
