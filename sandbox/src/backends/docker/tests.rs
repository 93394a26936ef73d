//! Tests with a real engine; `docker/start-engine.sh` and `docker/build-images.sh` set it up.

mod distant;
mod engine_process;
mod many;
mod peers;
mod private_engine;
mod restarts;
mod walls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::DockerBackend;
use super::backend::create_on;
use super::engine::Engine;
use super::host::DockerHost;
use crate::{
    Death, ExecEnd, ExecRequest, FileKind, Image, OwnerState, Sandbox, SandboxBackend,
    SandboxError, SandboxSpec, ShellOptions, Snapshot,
};

const IMAGE: &str = "spar-busybox:latest";

async fn backend() -> DockerBackend {
    DockerBackend::connect().await.expect("an engine answers")
}

fn spec() -> SandboxSpec {
    let mut spec = SandboxSpec::new(Image::Reference(IMAGE.into()));
    spec.limits.memory_bytes = Some(64 << 20);
    spec.limits.pids = Some(64);
    spec
}

async fn sandbox() -> Box<dyn Sandbox> {
    backend().await.create(&spec()).await.unwrap()
}

async fn sh(sandbox: &dyn Sandbox, script: &str) -> String {
    let result = sandbox.exec(&ExecRequest::sh(script)).await.unwrap();
    assert!(result.end.is_success(), "{script}: {} {}", result.end, result.stderr.text());
    result.stdout.text()
}

/// Command lines of what runs in it, without the helper and what looks.
async fn processes(sandbox: &dyn Sandbox) -> Vec<String> {
    let lines = sh(sandbox, "ps -o args").await;
    let own =
        |line: &str| line.contains("/dev/spar/") || line.contains("ps -o") || line == "COMMAND";
    lines.lines().filter(|line| !own(line)).map(str::to_owned).collect()
}

async fn is_listed(backend: &DockerBackend, id: &str) -> bool {
    backend.list().await.unwrap().iter().any(|record| record.id == id)
}

/// Waits for something that happens in the background.
async fn eventually(mut happened: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !happened().await {
        assert!(Instant::now() < until, "it did not happen within a minute");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_command_gets_its_input_variables_and_folder() {
    let mut spec = spec();
    spec.env.insert("FROM_SPEC".into(), "one".into());
    spec.workdir = Some("/made/for/it".into());
    let sandbox = backend().await.create(&spec).await.unwrap();
    let mut request =
        ExecRequest::sh("pwd; echo $FROM_SPEC $FROM_REQUEST; cat; echo oops >&2; exit 3")
            .with_stdin("input\n");
    request.env.insert("FROM_REQUEST".into(), "two".into());
    let result = sandbox.exec(&request).await.unwrap();
    assert_eq!(result.stdout.text(), "/made/for/it\none two\ninput\n");
    assert_eq!(result.stderr.text(), "oops\n");
    assert_eq!(result.end, ExecEnd::Exited { code: 3 });
    request.workdir = Some("/etc".into());
    assert!(sandbox.exec(&request).await.unwrap().stdout.text().starts_with("/etc\n"));
    request.workdir = Some("/nowhere".into());
    let error = sandbox.exec(&request).await.unwrap_err();
    assert!(matches!(error, SandboxError::NotFound { .. }), "{error:?}");
    // Large input and output at one time, and a command that does not read its input.
    let echo = ExecRequest::new(["cat"]).with_stdin(vec![7; 3 << 20]);
    assert_eq!(sandbox.exec(&echo).await.unwrap().stdout.total_bytes(), 3 << 20);
    let deaf = ExecRequest::new(["true"]).with_stdin(vec![7; 3 << 20]);
    assert!(sandbox.exec(&deaf).await.unwrap().end.is_success());
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn codes_signals_and_programs_that_cannot_run_are_told_apart() {
    let sandbox = sandbox().await;
    let end = async |request| sandbox.exec(&request).await.unwrap().end;
    assert_eq!(end(ExecRequest::sh("exit 137")).await, ExecEnd::Exited { code: 137 });
    assert_eq!(end(ExecRequest::sh("kill -9 $$")).await, ExecEnd::Signalled { signal: 9 });
    assert_eq!(end(ExecRequest::sh("kill -15 $$")).await, ExecEnd::Signalled { signal: 15 });
    assert_eq!(end(ExecRequest::new(["nowhere"])).await, ExecEnd::Exited { code: 127 });
    assert_eq!(end(ExecRequest::new(["/etc/passwd"])).await, ExecEnd::Exited { code: 126 });
    let mut as_user = ExecRequest::sh("id -u");
    as_user.user = Some("user".into());
    assert_eq!(sandbox.exec(&as_user).await.unwrap().stdout.text(), "1000\n");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_deadline_ends_what_double_forks_and_ignores_signals() {
    let sandbox = sandbox().await;
    let script = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep 1234 & sleep 1234' &); \
                  echo begun; while true; do sleep 1234; done";
    let request = ExecRequest::sh(script).with_timeout(Duration::from_secs(3));
    let result = sandbox.exec(&request).await.unwrap();
    assert_eq!(result.end, ExecEnd::TimedOut);
    assert_eq!(result.stdout.text(), "begun\n");
    assert_eq!(processes(&*sandbox).await, Vec::<String>::new());
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_process_that_keeps_the_pipe_open_does_not_hold_its_exec() {
    let sandbox = sandbox().await;
    let begun = Instant::now();
    let text = sh(&*sandbox, "(setsid sleep 1234 &); echo done").await;
    assert_eq!(text, "done\n");
    assert!(begun.elapsed() < Duration::from_secs(60));
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_dropped_exec_ends_what_it_started() {
    let sandbox = sandbox().await;
    let request = ExecRequest::sh("(setsid sleep 1234 &); sleep 1234");
    let cancelled = tokio::time::timeout(Duration::from_secs(3), sandbox.exec(&request)).await;
    assert!(cancelled.is_err());
    eventually(async || processes(&*sandbox).await.is_empty()).await;
    // Also where it leaves much of its input unread.
    let request = ExecRequest::sh("exec sleep 1234").with_stdin(vec![7; 4 << 20]);
    let cancelled = tokio::time::timeout(Duration::from_secs(2), sandbox.exec(&request)).await;
    assert!(cancelled.is_err());
    eventually(async || processes(&*sandbox).await.is_empty()).await;
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn killing_the_helper_frees_nobody() {
    let sandbox = sandbox().await;
    let script = "(setsid sleep 1234 &); sleep 1234 & kill -9 $PPID; sleep 1234";
    let result = sandbox.exec(&ExecRequest::sh(script)).await.unwrap();
    assert_eq!(result.end, ExecEnd::Signalled { signal: 9 });
    eventually(async || processes(&*sandbox).await.is_empty()).await;
    // Neither can the first process be killed, nor the helper be written to.
    let end =
        sandbox.exec(&ExecRequest::sh("kill -9 1; echo x >/dev/spar/exec")).await.unwrap().end;
    assert!(!end.is_success());
    assert_eq!(sh(&*sandbox, "echo lives").await, "lives\n");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_container_is_started_anew_where_its_first_process_cannot_end_everything() {
    let sandbox = sandbox().await;
    sandbox.write_file("/kept", b"kept", 0o644).await.unwrap();
    // Root without powers can end nobody else's processes.
    let mut request = ExecRequest::sh("(setsid sleep 1234 </dev/null >/dev/null 2>&1 &)");
    request.user = Some("1000".into());
    sandbox.exec(&request).await.unwrap();
    assert_eq!(processes(&*sandbox).await, ["sleep 1234"]);
    for _ in 0..2 {
        sandbox.end_all().await.unwrap();
        assert_eq!(processes(&*sandbox).await, Vec::<String>::new());
        assert_eq!(sandbox.read_file("/kept", 10).await.unwrap(), b"kept");
    }
    // Where that would lose files it is an error.
    let mut spec = spec();
    spec.read_only_root = true;
    let other = backend().await.create(&spec).await.unwrap();
    other.exec(&request).await.unwrap();
    let error = other.end_all().await.unwrap_err();
    let SandboxError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("would lose /tmp"), "{source}");
    sandbox.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_fork_bomb_is_bounded_and_swept_for_the_next_command() {
    let sandbox = sandbox().await;
    let bomb = ExecRequest::sh("sleep 1234 & b() { b | b & }; b; wait")
        .with_timeout(Duration::from_secs(5));
    // Either the deadline comes first, or a fork that fails.
    let end = sandbox.exec(&bomb).await.unwrap().end;
    assert!(!end.is_success(), "it {end}");
    // This one is left in the background by a command that ends.
    let bomb = ExecRequest::sh("for i in $(seq 200); do setsid sleep 1234 & done; true");
    let _ = sandbox.exec(&bomb).await.unwrap();
    assert_eq!(sh(&*sandbox, "echo lives").await, "lives\n");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_command_that_the_engine_cannot_start_is_told_in_its_words() {
    let sandbox = sandbox().await;
    let mut request = ExecRequest::sh("true");
    request.user = Some("nosuch".into());
    let error = sandbox.exec(&request).await.unwrap_err();
    let SandboxError::Backend { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("nosuch"), "{source}");
    assert_eq!(sh(&*sandbox, "echo lives").await, "lives\n");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn running_out_of_memory_is_told_from_being_killed() {
    let sandbox = sandbox().await;
    let hog = sandbox.exec(&ExecRequest::new(["tail", "/dev/zero"])).await.unwrap();
    assert_eq!(hog.end, ExecEnd::OutOfMemory);
    let below = sandbox.exec(&ExecRequest::sh("tail /dev/zero; exit $?")).await.unwrap();
    assert_eq!(below.end, ExecEnd::OutOfMemory);
    let killed = sandbox.exec(&ExecRequest::sh("kill -9 $$")).await.unwrap();
    assert_eq!(killed.end, ExecEnd::Signalled { signal: 9 });
    let stats = sandbox.stats().await.unwrap();
    assert!(stats.out_of_memory_kills.unwrap() >= 2, "{stats:?}");
    assert!(stats.peak_memory_bytes.unwrap() > 32 << 20, "{stats:?}");
    assert!(stats.cpu.unwrap() > Duration::ZERO);
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_flood_of_output_is_counted_and_not_kept() {
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    let sandbox = sandbox().await;
    sh(&*sandbox, "true").await;
    let before = resident();
    let mut request = ExecRequest::sh("head -c 1000000000 /dev/zero; head -c 5000 /dev/zero >&2");
    request.output_limit_bytes = 1000;
    request.timeout = Some(Duration::from_secs(600));
    let mut streamed = 0;
    let result = sandbox
        .exec_streaming(&request, &mut |_: crate::Stream, bytes: &[u8]| streamed += bytes.len())
        .await
        .unwrap();
    assert_eq!(result.end, ExecEnd::Exited { code: 0 });
    assert_eq!(result.stdout.total_bytes(), 1_000_000_000);
    assert_eq!((result.stderr.total_bytes(), streamed), (5000, 1_000_005_000));
    let grown = resident().saturating_sub(before);
    // Other tests run beside this one; everything kept would be a thousand million.
    assert!(grown < 200 << 20, "grew by {grown} bytes");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn files_without_content_are_counted_where_it_matters_who_has_filled_a_disk() {
    let host = DockerHost::from_environment().unwrap().remove(0);
    let engine = Arc::new(Engine::new(host).unwrap());
    let sandbox = create_on(&engine, &spec()).await.unwrap();
    let written = async |enough: u64| {
        let (age, patience) = (Duration::from_secs(3600), Duration::from_secs(20));
        sandbox.shared.written(&["/".to_owned()], age, enough, patience).await.unwrap()
    };
    let before = written(1 << 30).await;
    sh(&sandbox, "mkdir /x; i=0; while [ $i -lt 2000 ]; do : >/x/$i; i=$((i+1)); done").await;
    let after = written(1 << 30).await;
    assert!(after - before >= 2000 * 4096, "{before} {after}");
    // No more is looked at than it takes.
    assert!(written(1 << 20).await < 8 << 20);
    // To the engine they are nothing.
    let told = sandbox.stats().await.unwrap().disk_bytes.unwrap();
    assert!(told < 1 << 20, "{told}");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn files_go_in_and_out_and_no_link_leads_to_the_host() {
    let sandbox = sandbox().await;
    sandbox.write_file("/job/deep/file", b"content", 0o750).await.unwrap();
    assert_eq!(sh(&*sandbox, "stat -c %a /job/deep/file").await, "750\n");
    assert_eq!(sandbox.read_file("/job/deep/file", 100).await.unwrap(), b"content");
    sh(
        &*sandbox,
        "ln -s /etc/shadow /job/out; ln -s ../../../../../../../etc/hostname /job/up; \
                   mkfifo /job/pipe; ln -s deep/file /job/link",
    )
    .await;
    let error = sandbox.read_file("/job/out", 100).await.unwrap_err();
    assert!(matches!(error, SandboxError::NotFound { .. }), "the image has none: {error:?}");
    assert_eq!(sandbox.read_file("/job/up", 100).await.unwrap(), b"sandbox\n");
    assert_eq!(sandbox.read_file("/job/link", 100).await.unwrap(), b"content");
    let error = sandbox.read_file("/job/pipe", 100).await.unwrap_err();
    assert!(matches!(error, SandboxError::PathRefused { .. }), "{error:?}");
    let error = sandbox.read_file("/job", 100).await.unwrap_err();
    assert!(matches!(error, SandboxError::PathRefused { .. }), "{error:?}");
    let error = sandbox.read_file("/job/deep/file", 3).await.unwrap_err();
    assert!(matches!(error, SandboxError::TooLarge { limit_bytes: 3, .. }), "{error:?}");
    let error = sandbox.read_file("/dev/zero", 3).await.unwrap_err();
    assert!(matches!(error, SandboxError::PathRefused { .. }), "{error:?}");
    let entries = sandbox.list_files("/job").await.unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    use FileKind::{Folder, Link, Other};
    let expected = [("deep", Folder), ("link", Link), ("out", Link), ("pipe", Other), ("up", Link)];
    assert_eq!(kinds, expected);
    let big = vec![42; 5 << 20];
    sandbox.write_file("/job/big", &big, 0o644).await.unwrap();
    assert!(sandbox.read_file("/job/big", 10 << 20).await.unwrap() == big);
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn archives_go_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    header.set_mode(0o755);
    archive.append_data(&mut header, "sub/program", b"hello".as_slice()).unwrap();
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    archive.append_link(&mut link, "sub/link", "program").unwrap();
    archive.into_inner().unwrap();
    let sandbox = sandbox().await;
    sandbox.upload_tar("/new/place", &path).await.unwrap();
    let text = sh(&*sandbox, "cd /new/place/sub; stat -c %a program; cat link").await;
    assert_eq!(text, "755\nhello");
    // A folder that is a link is not gone through.
    sh(&*sandbox, "mkdir /bad; ln -s /etc /bad/sub").await;
    let error = sandbox.upload_tar("/bad", &path).await.unwrap_err();
    assert!(matches!(error, SandboxError::PathRefused { .. }), "{error:?}");
    assert!(!sh(&*sandbox, "ls /etc").await.contains("program"));
    let out = folder.path().join("out.tar");
    sandbox.download_tar("/new/place", &out, 1 << 20).await.unwrap();
    let mut archive = tar::Archive::new(std::fs::File::open(&out).unwrap());
    let mut names: Vec<_> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    names.sort();
    assert_eq!(names, ["place", "place/sub", "place/sub/link", "place/sub/program"]);
    let small = folder.path().join("small.tar");
    let error = sandbox.download_tar("/bin", &small, 10_000).await.unwrap_err();
    assert!(matches!(error, SandboxError::TooLarge { .. }), "{error:?}");
    assert!(!small.exists());
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_read_only_sandbox_can_write_to_tmp_alone() {
    let mut spec = spec();
    spec.read_only_root = true;
    let sandbox = backend().await.create(&spec).await.unwrap();
    sandbox.write_file("/tmp/file", b"x", 0o644).await.unwrap();
    assert_eq!(sandbox.read_file("/tmp/file", 10).await.unwrap(), b"x");
    let error = sandbox.write_file("/etc/file", b"x", 0o644).await.unwrap_err();
    assert!(matches!(error, SandboxError::PathRefused { .. }), "{error:?}");
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn the_disk_of_a_read_only_sandbox_is_limited_whatever_the_storage() {
    let mut spec = spec();
    spec.read_only_root = true;
    spec.limits.disk_bytes = Some(8 << 20);
    let sandbox = backend().await.create(&spec).await.unwrap();
    let fill = ExecRequest::sh("dd if=/dev/zero of=/tmp/full bs=1M count=20; stat -c %s /tmp/full");
    let result = sandbox.exec(&fill).await.unwrap();
    assert!(result.stderr.text().contains("No space left on device"), "{}", result.stderr.text());
    assert_eq!(result.stdout.text(), format!("{}\n", 8 << 20));
    let error = sandbox.write_file("/tmp/more", &[1; 4096], 0o644).await.unwrap_err();
    assert!(matches!(error, SandboxError::NoSpace { .. }), "{error:?}");
    // Making room helps, and nothing that is not in memory can be written.
    sh(&*sandbox, "rm /tmp/full; echo room >/tmp/file").await;
    let elsewhere = ExecRequest::sh("for i in / /home/user /var/tmp /etc; do echo x >$i/x; done");
    let result = sandbox.exec(&elsewhere).await.unwrap();
    assert_eq!(result.stderr.text().matches("Read-only file system").count(), 4);
    sandbox.close().await.unwrap();
    // What an image wants beside its root would not be limited.
    let folder = tempfile::tempdir().unwrap();
    let dockerfile = format!("FROM {IMAGE}\nVOLUME /data\n");
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    spec.image = Image::Build { context: folder.path().into(), dockerfile: "Dockerfile".into() };
    let error = backend().await.create(&spec).await.err().unwrap();
    assert!(matches!(error, SandboxError::Unsupported { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn nothing_of_the_host_and_no_network_is_seen() {
    let sandbox = sandbox().await;
    let text = sh(
        &*sandbox,
        "env | cut -d= -f1 | sort | tr '\\n' ' '; ls /sys/class/net | tr '\\n' ' '; \
         grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\n\\t'",
    )
    .await;
    assert_eq!(
        text,
        "HOME HOSTNAME PATH PWD SHLVL lo CapEff:0000000000000000CapBnd:0000000000000000\
         NoNewPrivs:1Seccomp:2"
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn snapshots_and_forks_go_their_own_ways() {
    let backend = backend().await;
    let sandbox = backend.create(&spec()).await.unwrap();
    sh(&*sandbox, "echo one >/state").await;
    let snapshot: Snapshot = sandbox.snapshot().await.unwrap();
    sh(&*sandbox, "echo two >/state").await;
    let fork = sandbox.fork().await.unwrap();
    let second = fork.fork().await.unwrap();
    sh(&*fork, "echo three >/state").await;
    let restored = backend.restore(&snapshot).await.unwrap();
    let states =
        [(&sandbox, "two\n"), (&fork, "three\n"), (&second, "two\n"), (&restored, "one\n")];
    for (sandbox, state) in states {
        assert_eq!(sh(&**sandbox, "cat /state").await, state);
    }
    // In an order in which images are still in use when they should go.
    for sandbox in [&sandbox, &fork, &second, &restored] {
        sandbox.close().await.unwrap();
    }
    backend.remove_snapshot(&snapshot).await.unwrap();
    backend.remove_snapshot(&snapshot).await.unwrap();
    let error = backend.restore(&snapshot).await.err().unwrap();
    assert!(matches!(error, SandboxError::ImageMissing { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_sandbox_that_died_says_of_what() {
    let backend = backend().await;
    let closed = backend.create(&spec()).await.unwrap();
    closed.close().await.unwrap();
    closed.close().await.unwrap();
    let error = closed.exec(&ExecRequest::new(["true"])).await.unwrap_err();
    assert!(matches!(error, SandboxError::Died { death: Death::Closed, .. }), "{error:?}");
    let killed = backend.create(&spec()).await.unwrap();
    let sleeper = ExecRequest::new(["sleep", "1234"]);
    let (ended, ()) = tokio::join!(killed.exec(&sleeper), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let kill = ["kill", killed.id()];
        let done = tokio::process::Command::new("docker").args(kill).output().await.unwrap();
        assert!(done.status.success(), "{done:?}");
    });
    let error = ended.unwrap_err();
    assert!(matches!(error, SandboxError::Died { death: Death::Killed, .. }), "{error:?}");
    let error = killed.read_file("/etc/passwd", 1000).await.unwrap_err();
    assert!(matches!(error, SandboxError::Died { death: Death::Killed, .. }), "{error:?}");
    killed.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_runs_inside_cannot_end_the_sandbox() {
    let sandbox = sandbox().await;
    for script in ["kill -TERM 1", "kill -USR1 1", "kill -KILL 1", "kill -TERM -1", "kill -KILL -1"]
    {
        // How it ends is its own affair: the last two end themselves, too.
        sandbox.exec(&ExecRequest::sh(script)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        sandbox.check().await.unwrap();
        assert_eq!(sh(&*sandbox, "echo lives").await, "lives\n", "{script}");
    }
    // The engine can.
    let stop = ["kill", "--signal", "TERM", sandbox.id()];
    let done = tokio::process::Command::new("docker").args(stop).output().await.unwrap();
    assert!(done.status.success(), "{done:?}");
    eventually(async || sandbox.check().await.is_err()).await;
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_cannot_be_made_leaves_nothing() {
    let backend = backend().await;
    let absent = SandboxSpec::new(Image::Reference("spar-absent:latest".into()));
    let error = backend.create(&absent).await.err().unwrap();
    assert!(matches!(error, SandboxError::ImageMissing { .. }), "{error:?}");
    assert!(error.hint().is_some());
    let mut failing = spec();
    failing.setup = vec!["echo fine".into(), "echo broken >&2; exit 4".into()];
    let error = backend.create(&failing).await.err().unwrap();
    let SandboxError::Setup { command, end, output } = error else { panic!("{error:?}") };
    assert_eq!((end, output.as_str()), (ExecEnd::Exited { code: 4 }, "broken"));
    assert!(command.contains("exit 4"));
    let mut hasty = spec();
    hasty.lifetimes.create_secs = 0;
    let error = backend.create(&hasty).await.err().unwrap();
    assert!(matches!(error, SandboxError::CreateTimedOut { seconds: 0 }), "{error:?}");
    assert_eq!(backend.live()[0].1, 0);
    // The hasty one's container may come to be after the first look; the second finds it.
    tokio::time::sleep(Duration::from_secs(8)).await;
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_dropped_sandbox_is_removed_in_the_background() {
    let backend = backend().await;
    let sandbox = backend.create(&spec()).await.unwrap();
    let id = sandbox.id().to_owned();
    assert!(is_listed(&backend, &id).await);
    drop(sandbox);
    eventually(async || !is_listed(&backend, &id).await).await;
}

/// Not a test of its own: what the next one starts, and what ends without cleaning up.
#[tokio::test]
#[ignore = "needs Docker"]
async fn an_owner_that_dies() {
    if std::env::var_os("SPAR_TEST_OWNER_DIES").is_none() {
        return;
    }
    let sandbox = sandbox().await;
    let snapshot = sandbox.snapshot().await.unwrap();
    println!("made {} {}", sandbox.id(), snapshot.id);
    std::process::abort();
}

/// The container and the image of the snapshot that a process left that was killed.
fn left_by_the_dead() -> (String, String) {
    let owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "backends::docker::tests::an_owner_that_dies",
            "--ignored",
            "--nocapture",
        ])
        .env("SPAR_TEST_OWNER_DIES", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&owner.stdout).into_owned();
    let made = text.lines().find_map(|line| line.split_once("made ").map(|(_, made)| made));
    let (container, image) = made.unwrap_or_else(|| panic!("{text}")).split_once(' ').unwrap();
    (container.to_owned(), image.to_owned())
}

/// What the command line of Docker says, which has to succeed.
fn docker(arguments: &[&str]) -> String {
    let told = std::process::Command::new("docker").args(arguments).output().unwrap();
    assert!(told.status.success(), "{arguments:?}: {told:?}");
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_a_dead_owner_left_is_reaped_and_nothing_else() {
    let backend = backend().await;
    let own = backend.create(&spec()).await.unwrap();
    let (container, image) = left_by_the_dead();
    let records = backend.list().await.unwrap();
    let record = records.iter().find(|record| record.id == container).unwrap();
    assert_eq!((record.owner_state, record.image.as_str()), (OwnerState::Dead, IMAGE));
    let report = backend.reap().await.unwrap();
    // A test beside this one may have reaped them at the same moment.
    assert!(!is_listed(&backend, &container).await, "{report:?}");
    let mut look = std::process::Command::new("docker");
    let look = look.args(["image", "inspect", &image]).output().unwrap();
    assert!(!look.status.success(), "{report:?}");
    assert!(report.kept >= 1);
    assert_eq!(sh(&*own, "echo lives").await, "lives\n");
    own.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn what_people_make_of_a_snapshot_is_theirs_and_outlives_its_owner() {
    let backend = backend().await;
    let (container, image) = left_by_the_dead();
    // A container of the snapshot and one of the sandbox's own state, an image of each, and a name
    // for the snapshot itself: all of them inherit spar's labels.
    let name = |what: &str| format!("spar-test-{what}-{}", &container[5..]);
    let (one, two) = (name("one"), name("two"));
    let (of_one, of_two, kept) = (name("of-one"), name("of-two"), name("kept"));
    docker(&["commit", &container, &of_two]);
    docker(&["run", "--detach", "--name", &one, "--entrypoint", "sleep", &image, "1234"]);
    docker(&["run", "--detach", "--name", &two, "--entrypoint", "sleep", &of_two, "1234"]);
    docker(&["commit", &one, &of_one]);
    docker(&["tag", &image, &kept]);
    let report = backend.reap().await.unwrap();
    let again = backend.reap().await.unwrap();
    // Reaped here, or by a test beside this one.
    let is_there = is_listed(&backend, &container).await;
    let is_listed = is_listed(&backend, &one).await || is_listed(&backend, &two).await;
    let running =
        docker(&["ps", "--filter", &format!("name={}", &container[5..]), "--format", "{{.Names}}"]);
    let left: Vec<_> = [&of_one, &of_two, &kept]
        .into_iter()
        .filter(|name| {
            let mut look = std::process::Command::new("docker");
            look.args(["image", "inspect", name]).output().unwrap().status.success()
        })
        .collect();
    let _ = std::process::Command::new("docker").args(["rm", "-f", &one, &two]).output();
    for name in [&of_one, &of_two, &kept, &image] {
        let _ = std::process::Command::new("docker").args(["rmi", name]).output();
    }
    assert!(!is_there, "{report:?}");
    assert!(report.failed.is_empty() && again.failed.is_empty(), "{report:?} {again:?}");
    assert!(!is_listed, "they are no sandboxes");
    assert!(running.contains(&one) && running.contains(&two), "{running}");
    assert_eq!(left.len(), 3, "{left:?}");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn several_engines_share_the_sandboxes_and_absent_ones_are_passed_over() {
    // The same engine under two names counts as two.
    let hosts =
        ["/nowhere/docker.sock", "/var/run/docker.sock", "tcp://127.0.0.1:1", "/run/docker.sock"];
    let hosts = hosts.map(|host| host.parse().unwrap());
    let backend = DockerBackend::connect_many(hosts).await.unwrap();
    let one = backend.create(&spec()).await.unwrap();
    let two = backend.create(&spec()).await.unwrap();
    let mut live: Vec<_> = backend.live().into_iter().map(|(_, count)| count).collect();
    live.sort();
    assert_eq!(live, [0, 1, 1], "the socket that does not exist is left out for good");
    one.close().await.unwrap();
    two.close().await.unwrap();
    let nowhere = DockerBackend::connect_many(["tcp://127.0.0.1:1".parse().unwrap()]).await;
    let error = nowhere.err().unwrap();
    assert!(matches!(error, SandboxError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn images_are_built_from_folders_and_root_archives() {
    let backend = backend().await;
    let folder = tempfile::tempdir().unwrap();
    let dockerfile = format!("FROM {IMAGE}\nCOPY note /note\nENV BUILT=yes\n");
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    std::fs::write(folder.path().join("note"), "built").unwrap();
    let mut built = spec();
    built.image = Image::Build { context: folder.path().into(), dockerfile: "Dockerfile".into() };
    backend.prepare(&built).await.unwrap();
    let sandbox = backend.create(&built).await.unwrap();
    assert_eq!(sh(&*sandbox, "cat /note; echo $BUILT").await, "builtyes\n");
    let root = folder.path().join("root.tar");
    sandbox.close().await.unwrap();

    let mut archive = tar::Builder::new(std::fs::File::create(&root).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    archive.append_data(&mut header, "only", b"file".as_slice()).unwrap();
    archive.into_inner().unwrap();
    // No shell, no library: the helper needs neither.
    let mut bare = spec();
    bare.image = Image::RootTar(root);
    let sandbox = backend.create(&bare).await.unwrap();
    assert_eq!(sandbox.read_file("/only", 10).await.unwrap(), b"file");
    let end = sandbox.exec(&ExecRequest::sh("true")).await.unwrap().end;
    assert_eq!(end, ExecEnd::Exited { code: 127 });
    sandbox.close().await.unwrap();

    std::fs::write(folder.path().join("Dockerfile"), "FROM spar-busybox:latest\nRUN exit 9\n")
        .unwrap();
    let error = backend.prepare(&built).await.err().unwrap();
    assert!(matches!(error, SandboxError::ImageBuild { .. }), "{error:?}");
    for name in ["spar-build", "spar-root"] {
        let list =
            std::process::Command::new("docker").args(["images", "-q", name]).output().unwrap();
        for id in String::from_utf8_lossy(&list.stdout).lines() {
            let _ = std::process::Command::new("docker").args(["rmi", "-f", id]).output();
        }
    }
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_shell_keeps_its_folder_and_variables() {
    let sandbox = sandbox().await;
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let patience = Duration::from_secs(60);
    shell.run("cd /etc; X=kept", patience).await.unwrap();
    let result = shell.run("pwd; echo $X", patience).await.unwrap();
    assert_eq!(result.stdout.text(), "/etc\nkept\n");
    let slow = shell.run("sleep 1234", Duration::from_secs(2)).await.unwrap();
    assert_eq!(slow.end, ExecEnd::TimedOut);
    let result = shell.run("pwd", patience).await.unwrap();
    assert_eq!(result.stdout.text(), "/etc\n");
    shell.close().await.unwrap();
    sandbox.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs Docker"]
async fn a_closed_shell_leaves_nothing_running() {
    let sandbox = sandbox().await;
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    // Left its session, its parent and its pipes.
    let daemon = "(setsid sleep 1234 </dev/null >/dev/null 2>&1 &)";
    shell.run(daemon, Duration::from_secs(60)).await.unwrap();
    assert_ne!(processes(&*sandbox).await, Vec::<String>::new());
    shell.close().await.unwrap();
    assert_eq!(processes(&*sandbox).await, Vec::<String>::new());
    sandbox.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn the_backend_conforms() {
    use crate::conformance::{Options, Programs, run};
    let report = run(&backend().await, &Options::new(Programs::posix())).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn an_allow_list_is_kept() {
    use crate::conformance::{Options, Programs, run};
    let options = Options { only: Some("allow-list".into()), ..Options::new(Programs::posix()) };
    let report = run(&backend().await, &options).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_relay_that_is_killed_or_displaced_comes_back_with_the_next_command() {
    let mut spec = SandboxSpec::new(Image::Default);
    spec.network = crate::NetworkPolicy::allow(["127.0.0.1:1".parse().unwrap()]);
    let sandbox = backend().await.create(&spec).await.unwrap();
    let ask = "printf 'CONNECT a.org:1 HTTP/1.1\\r\\n\\r\\n' | nc 127.0.0.1 3128 | head -n 1";
    let sh = async |script: &str| sandbox.exec(&ExecRequest::sh(script)).await.unwrap();
    assert!(sh(ask).await.stdout.text().contains(" 403 "));
    // Root inside can end it, and take its port.
    let kill = "for p in /proc/[0-9]*; do \
                case \"$(tr '\\000' ' ' <$p/cmdline)\" in \
                '/dev/spar/exec relay'*) kill -9 ${p#/proc/};; esac; done; sleep 1; \
                while :; do nc -l -p 3128 -s 127.0.0.1 </dev/null; done >/dev/null 2>&1 & sleep 1";
    sh(kill).await;
    let answer = sh(ask).await;
    assert!(answer.stdout.text().contains(" 403 "), "{answer:?}");
    sandbox.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn an_mcp_server_answers_and_a_web_server_is_reached() {
    crate::backends::services::an_mcp_server_answers(&backend().await).await;
    crate::backends::services::a_web_server_is_reached(&backend().await).await;
}
