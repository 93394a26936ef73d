//! The shell against the host's own `sh`.

use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::process::{Child, Command};

use super::{PosixShell, Shell, ShellOptions, ShellProcess, ShellResult, ShellTransport};
use crate::{ExecEnd, SandboxError};

const LONG: Duration = Duration::from_secs(60);

/// Whether `scripts/test.sh --all` runs the tests.
fn is_long_form() -> bool {
    std::env::var_os("SPAR_TEST_ALL").is_some()
}

/// Runs processes of this machine, with no isolation at all.
#[derive(Debug)]
struct HostTransport {
    child: Option<Child>,
    /// Folders searched before the others for programs: another `sh`.
    path: Option<String>,
    /// For the pipes.
    folder: tempfile::TempDir,
}

impl Default for HostTransport {
    fn default() -> Self {
        Self { child: None, path: None, folder: tempfile::tempdir().unwrap() }
    }
}

impl HostTransport {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = self.path.as_ref().map(|path| format!("{path}:")).unwrap_or_default();
        command.env_clear().env("PATH", format!("{path}/usr/local/bin:/usr/bin:/bin"));
        command.env("TMPDIR", self.folder.path());
        command.process_group(0).kill_on_drop(true).current_dir("/");
        command
    }
}

#[async_trait]
impl ShellTransport for HostTransport {
    fn backend(&self) -> &'static str {
        "host"
    }

    fn sandbox(&self) -> &str {
        "host"
    }

    async fn start(
        &mut self,
        command: &[String],
        options: &ShellOptions,
    ) -> Result<ShellProcess, SandboxError> {
        let mut start = self.command(&command[0]);
        start.args(&command[1..]).current_dir(options.workdir.as_deref().unwrap_or("/"));
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start.spawn().unwrap();
        let process = ShellProcess {
            stdin: Box::new(child.stdin.take().unwrap()),
            stdout: Box::new(child.stdout.take().unwrap()),
            stderr: Box::new(child.stderr.take().unwrap()),
        };
        self.child = Some(child);
        Ok(process)
    }

    async fn run_aside(&mut self, script: &str) -> Result<(), SandboxError> {
        self.command("sh").args(["-c", script]).stdin(Stdio::null()).status().await.unwrap();
        Ok(())
    }

    async fn end(&mut self) -> Result<(), SandboxError> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if let Some(pid) = child.id() {
            let script = format!("kill -KILL -{pid}");
            self.command("sh").args(["-c", &script]).stderr(Stdio::null()).status().await.unwrap();
        }
        child.wait().await.unwrap();
        Ok(())
    }
}

impl Drop for HostTransport {
    fn drop(&mut self) {
        if let Some(pid) = self.child.as_ref().and_then(Child::id) {
            let script = format!("kill -KILL -{pid}");
            let _ = std::process::Command::new("sh").args(["-c", &script]).status();
        }
    }
}

async fn open() -> PosixShell<HostTransport> {
    PosixShell::open(HostTransport::default(), ShellOptions::default()).await.unwrap()
}

async fn run(shell: &mut PosixShell<HostTransport>, command: &str) -> ShellResult {
    shell.run(command, LONG).await.unwrap()
}

/// Output, error output and exit code of a command that ends by itself.
async fn said(shell: &mut PosixShell<HostTransport>, command: &str) -> (String, String, i32) {
    let result = run(shell, command).await;
    let ExecEnd::Exited { code } = result.end else { panic!("{command}: {result:?}") };
    (result.stdout.text(), result.stderr.text(), code)
}

async fn stdout(shell: &mut PosixShell<HostTransport>, command: &str) -> String {
    said(shell, command).await.0
}

#[tokio::test]
async fn working_directory_variables_and_status_stay() {
    let mut shell = open().await;
    assert_eq!(said(&mut shell, "cd /usr; x=5; false").await, (String::new(), String::new(), 1));
    assert_eq!(stdout(&mut shell, "echo $? $x; pwd").await, "1 5\n/usr\n");
    assert_eq!(stdout(&mut shell, "f() { echo \"in f: $1\"; }; set -- a b").await, "");
    assert_eq!(stdout(&mut shell, "f $2\nprintf 'no newline'").await, "in f: b\nno newline");
    assert_eq!(said(&mut shell, "echo err >&2; (exit 9)").await, ("".into(), "err\n".into(), 9));
    shell.close().await.unwrap();
    shell.close().await.unwrap();
    let error = shell.run("true", LONG).await.unwrap_err();
    assert!(matches!(error, SandboxError::Died { .. }));
}

#[tokio::test]
async fn what_upsets_other_shells_does_not_upset_this_one() {
    let mut shell = open().await;
    for (command, expected) in [
        ("cat; read x; echo \"[$x]\"", "[]\n"),
        ("if then fi", ""),
        ("echo 'unfinished", ""),
        ("echo ${nothing:?is set}", ""),
        (". /nonexistent", ""),
        ("echo $?", "2\n"),
        ("exec 3>/dev/null 8>/dev/null 9>/dev/null; echo a", "a\n"),
        ("exec >/dev/null; echo gone", ""),
        ("echo back", "back\n"),
        ("exec </dev/zero; echo b", "b\n"),
        ("alias printf=false cat=false eval=false; echo c", "c\n"),
        (
            "unalias -a; printf() { :; }; command() { false; }; unset -f printf command; echo d",
            "d\n",
        ),
        ("IFS=0123456789abcdef; set -f; set -u; echo e", "e\n"),
        ("set +u +f; unset IFS; kept=1; trap '' TERM INT; echo f", "f\n"),
        ("PATH=; echo g", "g\n"),
        ("unset PATH; echo h", "h\n"),
        ("PATH=/usr/bin:/bin; wait; echo i $(jobs)", "i\n"),
        (
            "printf '\\036E%s 0\\036' 00000000000000000000000000000000",
            "\u{1e}E00000000000000000000000000000000 0\u{1e}",
        ),
        ("echo $kept; # comment", "1\n"),
        ("", ""),
        ("cat <<X\nhere $kept\nX", "here 1\n"),
    ] {
        let result = run(&mut shell, command).await;
        assert_eq!(result.stdout.text(), expected, "{command}: {result:?}");
        assert!(!result.restarted, "{command}: {result:?}");
    }
    let nul = run(&mut shell, "echo a\0b").await;
    assert_eq!(nul.end, ExecEnd::Exited { code: 2 });
}

#[tokio::test]
async fn a_traced_shell_tells_nothing_of_what_is_ours() {
    let mut shell = open().await;
    assert_eq!(said(&mut shell, "set -x; echo a").await.1, "+ echo a\n");
    assert_eq!(said(&mut shell, "echo b").await, ("b\n".into(), "+ echo b\n".into(), 0));
}

#[tokio::test]
async fn binary_output_comes_as_it_is() {
    let mut shell = open().await;
    let result =
        run(&mut shell, "printf '\\000\\377\\036\\036E\\036'; printf '\\001\\200' >&2").await;
    assert_eq!(&*result.stdout.bytes(), b"\0\xff\x1e\x1eE\x1e");
    assert_eq!(&*result.stderr.bytes(), b"\x01\x80");
}

#[tokio::test]
async fn much_output_is_capped_and_counted() {
    let options = ShellOptions { output_limit_bytes: 1000, ..ShellOptions::default() };
    let mut shell = PosixShell::open(HostTransport::default(), options).await.unwrap();
    let result = run(&mut shell, "head -c 20000000 /dev/zero").await;
    assert_eq!(result.stdout.total_bytes(), 20_000_000);
    assert_eq!(result.stdout.elided_bytes(), 20_000_000 - 1000);
    assert_eq!(stdout(&mut shell, "echo next").await, "next\n");
}

#[tokio::test]
async fn a_command_of_several_megabytes_is_run() {
    let mut shell = open().await;
    let word = "it's ".repeat(600_000);
    let command = format!("x=\"{word}\"; echo ${{#x}}");
    assert_eq!(stdout(&mut shell, &command).await, format!("{}\n", word.len()));
}

#[tokio::test]
async fn a_command_that_ends_the_shell_is_an_observation_and_the_next_runs_where_it_was() {
    let mut shell = open().await;
    run(&mut shell, "cd /usr/bin; lost=1").await;
    for (command, expected, code) in [
        ("echo bye; exit 3", "bye\n", 3),
        ("exec echo replaced", "replaced\n", 0),
        ("set -e; echo first; false; echo never", "first\n", 1),
        ("kill -9 $$", "", 137),
        ("head -c 300000 /dev/zero; exit 4", &"\0".repeat(300_000), 4),
    ] {
        let result = run(&mut shell, command).await;
        assert_eq!(result.end, ExecEnd::Exited { code }, "{command}: {result:?}");
        assert_eq!(result.stdout.text(), expected, "{command}");
        assert!(result.restarted, "{command}");
        let next = run(&mut shell, "pwd; echo \"[$lost]\"").await;
        assert_eq!(next.stdout.text(), "/usr/bin\n[]\n", "{command}");
        assert!(!next.restarted);
    }
}

#[tokio::test]
async fn a_shell_whose_parts_are_all_killed_comes_back() {
    let mut shell = open().await;
    for command in ["kill -9 0", "kill -9 $PPID $$; sleep 60"] {
        run(&mut shell, "cd /usr").await;
        let result = shell.run(command, Duration::from_secs(4)).await.unwrap();
        assert!(result.restarted, "{command}: {result:?}");
        assert_eq!(stdout(&mut shell, "pwd").await, "/usr\n");
    }
}

#[tokio::test]
async fn background_output_is_not_mixed_up_with_later_commands() {
    let mut shell = open().await;
    run(&mut shell, "sh -c 'while :; do echo noise; echo noise >&2; done' &").await;
    for num in 0..20 {
        let result = run(&mut shell, &format!("echo {num}; echo e{num} >&2")).await;
        assert_eq!(result.stdout.text(), format!("{num}\n"));
        assert_eq!(result.stderr.text(), format!("e{num}\n"));
    }
    // It lives, and is not held up although nobody reads what it writes.
    assert_eq!(said(&mut shell, "kill $!").await.2, 0);
    let double = "(setsid sh -c 'sleep 0.3; echo late; sleep 60' &)";
    assert_eq!(stdout(&mut shell, double).await, "");
    assert_eq!(stdout(&mut shell, "sleep 1; echo clean").await, "clean\n");
    shell.close().await.unwrap();
}

#[tokio::test]
async fn a_deadline_ends_the_command_and_keeps_the_shell_and_what_was_there_before() {
    let mut shell = open().await;
    run(&mut shell, "kept=1; sleep 1000 & server=$!; sleep 0.1").await;
    for command in [
        "sleep 1000",
        "sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done'",
        "(setsid sleep 1000 &) ; sleep 1000 | sleep 1000",
        "cat /dev/zero",
    ] {
        let result = shell.run(command, Duration::from_millis(300)).await.unwrap();
        assert_eq!(result.end, ExecEnd::TimedOut, "{command}");
        assert!(!result.restarted, "{command}: {result:?}");
        assert_eq!(
            stdout(&mut shell, "echo $kept; kill -0 $server && echo lives").await,
            "1\nlives\n"
        );
    }
    let result =
        shell.run("echo before; while :; do :; done", Duration::from_millis(300)).await.unwrap();
    assert_eq!((result.end, result.restarted), (ExecEnd::TimedOut, true));
    assert_eq!(result.stdout.text(), "before\n");
    assert_eq!(stdout(&mut shell, "echo \"[$kept]\"").await, "[]\n");
    shell.close().await.unwrap();
}

#[tokio::test]
async fn a_dropped_run_does_not_confuse_the_next() {
    let mut shell = open().await;
    run(&mut shell, "cd /usr").await;
    let dropped =
        tokio::time::timeout(Duration::from_millis(300), shell.run("echo old; sleep 1000", LONG));
    assert!(dropped.await.is_err());
    let result = run(&mut shell, "echo new; pwd").await;
    assert_eq!(result.stdout.text(), "new\n/usr\n");
    assert!(result.restarted);
}

#[tokio::test]
async fn pipes_that_were_removed_are_made_again() {
    let mut shell = open().await;
    let folder = shell.session_folder().to_owned();
    run(&mut shell, &format!("rm -rf '{folder}'")).await;
    shell.patience = Duration::from_secs(1);
    let result = shell.run("echo again", Duration::from_secs(120)).await.unwrap();
    assert_eq!((result.stdout.text().as_str(), result.restarted), ("again\n", true));
}

/// Commands of all kinds, a thousand or in the long form ten thousand; none sees anything of another.
#[tokio::test]
async fn thousands_of_commands_stay_in_step() {
    let commands = if is_long_form() { 10_000 } else { 1_000 };
    let mut shell = open().await;
    run(&mut shell, "count=0").await;
    for num in 0..commands {
        let (command, expected) = match num % 10 {
            0 => (format!("cat; echo {num}"), format!("{num}\n")),
            1 => (format!("printf '\\036E%s' {num}"), format!("\u{1e}E{num}")),
            2 => (format!("echo {num} | cat"), format!("{num}\n")),
            3 => ("if then".to_owned(), String::new()),
            4 if num % 100 == 4 => (format!("sleep 0.01 & echo {num}"), format!("{num}\n")),
            _ => ("count=$((count + 1)); echo $count".to_owned(), String::new()),
        };
        let result = run(&mut shell, &command).await;
        assert!(!result.restarted, "{num}: {result:?}");
        if !expected.is_empty() {
            assert_eq!(result.stdout.text(), expected, "{num}");
        }
    }
    // Six of ten count, less every hundredth command.
    let expected = format!("{}\n", commands / 10 * 6 - commands / 100);
    assert_eq!(stdout(&mut shell, "echo $count").await, expected);
}

#[test]
fn random_texts_leave_the_shell_in_step() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = ShellOptions {
        workdir: Some(folder.path().to_str().unwrap().to_owned()),
        ..ShellOptions::default()
    };
    let mut shell = runtime.block_on(PosixShell::open(HostTransport::default(), options)).unwrap();
    let parts = prop_oneof![
        "[a-z'\"`$(){};|&<\\\\ \n#!*?~=-]{0,30}",
        Just("'".to_owned()),
        Just("$(".to_owned()),
        Just("<<X\n".to_owned()),
        Just("\u{1e}".to_owned()),
        Just("#".to_owned()),
        Just("\\".to_owned()),
    ];
    let texts = proptest::collection::vec(parts, 1..4).prop_map(|parts| parts.concat());
    let mut runner = TestRunner::new(Config {
        cases: if is_long_form() { 150 } else { 15 },
        failure_persistence: None,
        ..Config::default()
    });
    let count = std::cell::Cell::new(0);
    let cell = std::cell::RefCell::new(&mut shell);
    runner
        .run(&texts, |text| {
            count.set(count.get() + 1);
            let mut shell = cell.borrow_mut();
            // Without programs, in an empty folder, and without a way out of it: builtins alone.
            let command = format!(
                "(PATH=/nonexistent; set -C; ulimit -f 0; eval {})",
                String::from_utf8(super::driver::quoted(text.as_bytes())).unwrap()
            );
            runtime.block_on(shell.run(&command, Duration::from_secs(5))).unwrap();
            let plain = format!("PATH=/nonexistent\n{}", text.replace(['<', '>', '&'], ""));
            runtime.block_on(shell.run(&plain, Duration::from_secs(5))).unwrap();
            let next = runtime.block_on(shell.run(&format!("echo {}", count.get()), LONG)).unwrap();
            prop_assert_eq!(next.stdout.text(), format!("{}\n", count.get()));
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn other_shells_serve_as_well() {
    for program in ["busybox", "bash"] {
        let Some(path) = ["/bin", "/usr/bin"]
            .iter()
            .map(|folder| std::path::Path::new(folder).join(program))
            .find(|path| path.exists())
        else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(path, folder.path().join("sh")).unwrap();
        let path = Some(folder.path().to_str().unwrap().to_owned());
        let mut transport = HostTransport::default();
        transport.path = path;
        let mut shell = PosixShell::open(transport, ShellOptions::default()).await.unwrap();
        assert_eq!(
            stdout(&mut shell, "cd /usr; x=1; (sleep 0.05; echo late) & echo now").await,
            "now\n"
        );
        for num in 0..if is_long_form() { 200 } else { 20 } {
            assert_eq!(stdout(&mut shell, &format!("echo {num}; cat")).await, format!("{num}\n"));
        }
        let result = shell.run("sleep 1000", Duration::from_millis(300)).await.unwrap();
        assert_eq!(result.end, ExecEnd::TimedOut, "{program}");
        assert_eq!(stdout(&mut shell, "echo $x $PWD").await, "1 /usr\n", "{program}");
        let result = run(&mut shell, "exit 6").await;
        assert_eq!((result.end, result.restarted), (ExecEnd::Exited { code: 6 }, true));
        shell.close().await.unwrap();
    }
}
