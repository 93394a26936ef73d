//! Whole sandboxes: these need a kernel that lets us make namespaces.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::{ExecEnd, Image, Mount, ShellOptions};

struct Place {
    folder: tempfile::TempDir,
    backend: LocalBackend,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let backend = LocalBackend::in_folders(folder.path(), &folder.path().join("images")).unwrap();
    Place { folder, backend }
}

impl Place {
    async fn sandbox(&self) -> Box<dyn Sandbox> {
        self.backend.create(&SandboxSpec::new(Image::Default)).await.unwrap()
    }

    fn num_left(&self) -> usize {
        let store = Store::open(self.folder.path()).unwrap();
        ["sandboxes", "layers", "snapshots"]
            .iter()
            .map(|name| fs::read_dir(store.root().join(name)).unwrap().count())
            .sum()
    }
}

async fn sh(sandbox: &dyn Sandbox, script: &str) -> (ExecEnd, String) {
    let request = ExecRequest::sh(script).with_timeout(Duration::from_secs(60));
    let result = sandbox.exec(&request).await.unwrap();
    (result.end, result.stdout.text() + &result.stderr.text())
}

async fn output(sandbox: &dyn Sandbox, script: &str) -> String {
    let (end, output) = sh(sandbox, script).await;
    assert!(end.is_success(), "{script}: {end}: {output}");
    output
}

/// Waits until no process is left; where they cannot be counted there is nothing to see.
async fn nothing_runs(sandbox: &dyn Sandbox) {
    for _ in 0..400 {
        if sandbox.stats().await.unwrap().pids.is_none_or(|pids| pids == 0) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?}", sandbox.stats().await);
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn commands_run_and_end_as_they_say() {
    let place = place();
    println!("{}", place.backend.probe().await.unwrap());
    let sandbox = place.sandbox().await;
    assert_eq!(output(&*sandbox, "echo out; echo err >&2").await, "out\nerr\n");
    assert_eq!(sh(&*sandbox, "exit 3").await.0, ExecEnd::Exited { code: 3 });
    assert_eq!(sh(&*sandbox, "kill -TERM $$").await.0, ExecEnd::Signalled { signal: 15 });
    let absent = sandbox.exec(&ExecRequest::new(["no-such-program"])).await.unwrap();
    assert_eq!(absent.end, ExecEnd::Exited { code: 127 });
    let request = ExecRequest::new(["cat"]).with_stdin(vec![b'x'; 300_000]);
    assert_eq!(sandbox.exec(&request).await.unwrap().stdout.total_bytes(), 300_000);
    assert_eq!(output(&*sandbox, "hostname; pwd; echo $HOME").await, "sandbox\n/\n/root\n");
    assert_eq!(
        output(&*sandbox, "env | grep -v -e ^PATH= -e ^HOME= -e ^PWD= -e ^_= || :").await,
        ""
    );
    sandbox.close().await.unwrap();
    sandbox.close().await.unwrap();
    let error = sandbox.exec(&ExecRequest::sh("true")).await.unwrap_err();
    assert!(matches!(error, SandboxError::Died { death: crate::Death::Closed, .. }), "{error}");
    assert_eq!(place.num_left(), 0);
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn a_deadline_ends_everything_that_was_started() {
    let place = place();
    let sandbox = place.sandbox().await;
    let script = "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; \
        echo x >> /tmp/alive; done' &) ; echo started; sleep 1000";
    let request = ExecRequest::sh(script).with_timeout(Duration::from_secs(2));
    let result = sandbox.exec(&request).await.unwrap();
    assert_eq!(result.end, ExecEnd::TimedOut);
    assert_eq!(result.stdout.text(), "started\n");
    assert!(result.wall < Duration::from_secs(30));
    let before = output(&*sandbox, "wc -l < /tmp/alive 2>/dev/null || echo 0").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = output(&*sandbox, "wc -l < /tmp/alive 2>/dev/null || echo 0").await;
    assert_eq!(before, after);
    nothing_runs(&*sandbox).await;
    // A dropped future ends its command as well.
    let request = ExecRequest::sh("echo $$ > /tmp/dropped; sleep 1000");
    let dropped = tokio::time::timeout(Duration::from_secs(2), sandbox.exec(&request)).await;
    assert!(dropped.is_err());
    nothing_runs(&*sandbox).await;
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn what_is_left_running_neither_holds_the_exec_nor_ends_with_it() {
    let place = place();
    let sandbox = place.sandbox().await;
    let result = sandbox
        .exec(
            &ExecRequest::sh(
                "(setsid sleep 60 &); (while :; do sleep 1; echo >> /tmp/on; done &) ; echo done",
            )
            .with_timeout(Duration::from_secs(50)),
        )
        .await
        .unwrap();
    assert_eq!(
        (result.end, result.stdout.text().as_str()),
        (ExecEnd::Exited { code: 0 }, "done\n")
    );
    assert!(result.wall < Duration::from_secs(30));
    for _ in 0..60 {
        if sh(&*sandbox, "test -s /tmp/on").await.0.is_success() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("it did not go on");
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn the_host_cannot_be_reached_or_changed() {
    let place = place();
    let secret = place.folder.path().join("secret");
    fs::write(&secret, "host").unwrap();
    let sandbox = place.sandbox().await;
    for script in [
        format!("cat {}", secret.display()),
        format!("cat /proc/1/root{}", secret.display()),
        "mount -t tmpfs none /mnt".to_owned(),
        "mount -o remount,rw /proc/sys".to_owned(),
        "umount /proc/sys".to_owned(),
        "unshare -U true".to_owned(),
        "unshare -r true".to_owned(),
        "nsenter -t 1 -m true".to_owned(),
        "mknod /tmp/sda b 8 0 && dd if=/tmp/sda count=1".to_owned(),
        "ls /dev/vda /dev/sda /dev/kmsg /dev/mem".to_owned(),
        "echo x > /proc/sys/kernel/core_pattern".to_owned(),
        "echo x > /proc/sysrq-trigger".to_owned(),
        "test -s /proc/kcore".to_owned(),
        "ls /root/.ssh /root/.cargo".to_owned(),
        "cat /etc/shadow".to_owned(),
        "hostname other".to_owned(),
        "date -s 2001-01-01".to_owned(),
        "dmesg".to_owned(),
        "kill -9 1 && sleep 1 && test ! -e /proc/1".to_owned(),
        "chroot / true".to_owned(),
        "cat /proc/1/environ".to_owned(),
        "ls /sys/kernel".to_owned(),
    ] {
        let (end, output) = sh(&*sandbox, &script).await;
        assert!(!end.is_success(), "{script}: {output}");
    }
    let status = output(&*sandbox, "cat /proc/self/status").await;
    for line in
        ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
    {
        assert!(status.contains(line), "{line}: {status}");
    }
    let devices = output(
        &*sandbox,
        "grep -v -e Inter -e face /proc/net/dev | wc -l; cat /proc/net/route | wc -l",
    )
    .await;
    assert_eq!(devices, "1\n1\n");
    output(
        &*sandbox,
        "echo changed > /etc/hostname; rm -rf /usr/share/doc 2>/dev/null; touch /usr/new || :",
    )
    .await;
    assert!(!Path::new("/usr/new").exists());
    assert_ne!(fs::read_to_string("/etc/hostname").unwrap_or_default(), "changed\n");
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn bombs_are_contained_and_told_apart() {
    let place = place();
    let can = place.backend.capabilities();
    let mut spec = SandboxSpec::new(Image::Default);
    spec.limits.pids = Some(32);
    spec.limits.memory_bytes = Some(64 << 20);
    spec.limits.disk_bytes = Some(8 << 20);
    if !can.memory_limit {
        spec.limits.memory_bytes = Limits::default().memory_bytes;
    }
    let sandbox = place.backend.create(&spec).await.unwrap();
    let bomb =
        ExecRequest::sh("f() { f | f & }; f; sleep 1000").with_timeout(Duration::from_secs(3));
    let result = sandbox.exec(&bomb).await.unwrap();
    assert!(matches!(result.end, ExecEnd::TimedOut | ExecEnd::Exited { .. }), "{}", result.end);
    drop(sandbox);
    let sandbox = place.backend.create(&spec).await.unwrap();
    if can.memory_limit {
        let script = "dd if=/dev/zero of=/dev/null bs=500M count=1";
        assert_eq!(sh(&*sandbox, script).await.0, ExecEnd::OutOfMemory);
        assert!(sandbox.stats().await.unwrap().out_of_memory_kills > Some(0));
    }
    let (end, output) = sh(&*sandbox, "dd if=/dev/zero of=/tmp/big bs=1M count=20").await;
    assert!(!end.is_success() && output.contains("No space left"), "{output}");
    let disk = sandbox.stats().await.unwrap().disk_bytes.unwrap();
    assert!(disk <= 9 << 20, "{disk}");
    assert_eq!(sh(&*sandbox, "rm /tmp/big; echo fine").await.1, "fine\n");
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn forks_and_snapshots_go_their_own_ways() {
    let place = place();
    let sandbox = place.sandbox().await;
    output(&*sandbox, "echo one > /tmp/a; mkdir /home/user/d; rm /etc/hosts; rm -rf /etc/ssl")
        .await;
    let snapshot = sandbox.snapshot().await.unwrap();
    let forked = sandbox.fork().await.unwrap();
    output(&*sandbox, "echo two > /tmp/a; touch /tmp/mine").await;
    let look = "cat /tmp/a; ls -d /home/user/d; test ! -e /etc/hosts; test ! -e /etc/ssl";
    assert_eq!(output(&*forked, look).await, "one\n/home/user/d\n");
    output(&*forked, "test ! -e /tmp/mine; touch /tmp/theirs; rm -r /home/user/d").await;
    output(&*sandbox, "test ! -e /tmp/theirs; test -d /home/user/d").await;
    let again = forked.fork().await.unwrap();
    forked.close().await.unwrap();
    output(&*again, "test -e /tmp/theirs; test ! -e /home/user/d").await;
    let restored = place.backend.restore(&snapshot).await.unwrap();
    assert_eq!(output(&*restored, look).await, "one\n/home/user/d\n");
    for sandbox in [&sandbox, &again, &restored] {
        sandbox.close().await.unwrap();
    }
    assert_eq!(place.num_left(), 2);
    place.backend.remove_snapshot(&snapshot).await.unwrap();
    place.backend.remove_snapshot(&snapshot).await.unwrap();
    assert_eq!(place.num_left(), 0);
    assert!(place.backend.restore(&snapshot).await.is_err());
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn files_mounts_and_users_are_as_the_spec_says() {
    let place = place();
    let host = place.folder.path().join("shared");
    fs::create_dir(&host).unwrap();
    fs::write(host.join("file"), "of the host").unwrap();
    let mut spec = SandboxSpec::new(Image::Default);
    spec.mounts.push(Mount { host: host.clone(), guest: "/mnt/in".into(), read_only: true });
    spec.workdir = Some("/job/deep".into());
    spec.env.insert("GREETING".into(), "hello".into());
    spec.setup.push("echo ready > ready".into());
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        spec.user = Some("user".into());
    }
    let sandbox = place.backend.create(&spec).await.unwrap();
    assert_eq!(
        output(&*sandbox, "cat /mnt/in/file ready; echo $GREETING; pwd").await,
        "of the hostready\nhello\n/job/deep\n"
    );
    assert!(!sh(&*sandbox, "echo x > /mnt/in/file").await.0.is_success());
    assert_eq!(output(&*sandbox, "id -u").await, if is_root { "1000\n" } else { "0\n" });
    sandbox.write_file("sub/written", b"text", 0o750).await.unwrap();
    assert_eq!(output(&*sandbox, "cat sub/written; stat -c %a sub/written").await, "text750\n");
    output(&*sandbox, "ln -s /etc/passwd sub/link; ln -s / sub/root").await;
    let passwd = sandbox.read_file("/job/deep/sub/root/etc/passwd", 10_000).await.unwrap();
    assert!(passwd.starts_with(b"root:x:0:0:"));
    assert_eq!(sandbox.list_files("sub").await.unwrap().len(), 3);
    let archive = place.folder.path().join("out.tar");
    sandbox.download_tar("ready", &archive, 1 << 20).await.unwrap();
    sandbox.upload_tar("/job/deep/up", &archive).await.unwrap();
    assert_eq!(sandbox.read_file("up/ready", 100).await.unwrap(), b"ready\n");
    let error = sandbox.download_tar("/usr/bin", &archive, 1 << 10).await.unwrap_err();
    assert!(matches!(error, SandboxError::TooLarge { .. }), "{error}");
    spec.read_only_root = true;
    spec.setup.clear();
    (spec.workdir, spec.user) = (None, None);
    let sandbox = place.backend.create(&spec).await.unwrap();
    assert!(!sh(&*sandbox, "touch /etc/x").await.0.is_success());
    assert!(!sh(&*sandbox, "touch /usr/x").await.0.is_success());
    output(&*sandbox, "touch /tmp/x").await;
}

/// A root file system of nothing but the host's shell and what that is linked to.
fn shell_archive(path: &Path) {
    let output = std::process::Command::new("ldd").arg("/bin/sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut builder = tar::Builder::new(fs::File::create(path).unwrap());
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    for file in ["/bin/sh"].into_iter().chain(libraries) {
        let real = fs::canonicalize(file).unwrap();
        builder.append_path_with_name(real, file.trim_start_matches('/')).unwrap();
    }
    builder.finish().unwrap();
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn a_root_archive_makes_a_sandbox_of_its_own() {
    let place = place();
    let archive = place.folder.path().join("root.tar");
    shell_archive(&archive);
    let spec = SandboxSpec::new(Image::RootTar(archive));
    let sandbox = place.backend.create(&spec).await.unwrap();
    let script = "echo $((6 * 7)); echo /*; echo > /here";
    assert!(output(&*sandbox, script).await.starts_with("42\n/bin /dev /lib"));
    let forked = sandbox.fork().await.unwrap();
    output(&*forked, "test -e /here && test ! -e /usr/bin/env && test ! -e /etc").await;
    let other = place.backend.create(&spec).await.unwrap();
    output(&*other, "test ! -e /here").await;
    for sandbox in [sandbox, forked, other] {
        sandbox.close().await.unwrap();
    }
    assert_eq!(place.num_left(), 0);
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn a_shell_keeps_its_variables_and_survives_a_deadline() {
    let place = place();
    let sandbox = place.sandbox().await;
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let minute = Duration::from_secs(60);
    shell.run("cd /tmp; x=5", minute).await.unwrap();
    let result = shell.run("echo $x; pwd", minute).await.unwrap();
    assert_eq!(result.stdout.text(), "5\n/tmp\n");
    let result = shell.run("sleep 1000", Duration::from_secs(2)).await.unwrap();
    assert_eq!(result.end, ExecEnd::TimedOut);
    let result = shell.run("pwd", minute).await.unwrap();
    assert_eq!(result.stdout.text(), "/tmp\n");
    shell.close().await.unwrap();
}

/// What Docker hides and protects (`oci/defaults.go` of moby 28), without the parts of `/sys`, of
/// which nothing is there.
const DOCKER_HIDES: [&str; 10] = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "timer_list",
    "timer_stats",
    "sched_debug",
    "scsi",
];
const DOCKER_PROTECTS: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

#[test]
fn all_that_docker_hides_is_on_the_lists() {
    // The helper is a program of its own, and not every machine has all of these.
    let source = include_str!("helper/build_root.rs");
    let (_, lists) = source.split_once("const PROC_READ_ONLY").unwrap();
    let (protected, hidden) = lists.split_once("const PROC_HIDDEN").unwrap();
    let (hidden, _) = hidden.split_once("];").unwrap();
    for name in DOCKER_PROTECTS {
        assert!(protected.contains(&format!("\"{name}\"")), "{name}");
    }
    for name in DOCKER_HIDES {
        assert!(hidden.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn what_containers_must_not_see_of_the_kernel_is_hidden() {
    let place = place();
    let sandbox = place.sandbox().await;
    for name in DOCKER_HIDES {
        let look = format!(
            "test ! -e /proc/{name} || {{ grep -q ' /proc/{name} ' /proc/self/mountinfo && \
             if test -d /proc/{name}; then test -z \"$(ls -A /proc/{name})\" && ! mkdir /proc/{name}/x; \
             else test -z \"$(head -c 1 /proc/{name})\"; fi; }}"
        );
        output(&*sandbox, &look).await;
    }
    for name in DOCKER_PROTECTS {
        let look =
            format!("test ! -e /proc/{name} || grep -q ' /proc/{name} ro,' /proc/self/mountinfo");
        output(&*sandbox, &look).await;
    }
    // From outside, the same: a link may lead there.
    output(&*sandbox, "ln -s /proc/interrupts /tmp/link").await;
    assert_eq!(sandbox.read_file("/tmp/link", 1 << 20).await.ok().unwrap_or_default(), b"");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn root_is_not_given_the_network_of_the_host() {
    let place = place();
    let mut spec = SandboxSpec::new(Image::Default);
    spec.network = NetworkPolicy::Bridge;
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(place.backend.capabilities().network, !is_root);
    let refused = place.backend.check(&spec).err();
    assert_eq!(matches!(refused, Some(SandboxError::Unsupported { .. })), is_root, "{refused:?}");
}

/// Starts what undoes stops, and what writes a line after the other into three files that lie behind
/// many others: at no moment do their lengths differ by more than one.
async fn make_restless(sandbox: &dyn Sandbox) {
    let script = "kill -s CONT -- -1 || exit 1; for d in 1 2 3; do mkdir /tmp/$d; i=0; \
        while [ $i -lt 700 ]; do : >/tmp/$d/$i; i=$((i + 1)); done; : >/tmp/$d/log; done; \
        for n in 1 2 3; do setsid sh -c 'while :; do kill -s CONT -- -1; done' & done; \
        setsid sh -c 'while :; do for d in 1 2 3; do echo >>/tmp/$d/log; done; done' & \
        while ! test -s /tmp/3/log; do :; done";
    output(sandbox, &format!("({script}) >/dev/null 2>&1 </dev/null")).await;
}

/// Whether the three files of a copied layer are of one moment.
fn is_of_one_moment(layer: &Path) -> bool {
    let length = |number: u32| {
        let path = layer.join(format!("root/tmp/{number}/log"));
        fs::metadata(path).unwrap().len()
    };
    let lengths = [length(1), length(2), length(3)];
    println!("{lengths:?}");
    lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn a_fork_is_of_one_moment_whatever_runs() {
    let place = place();
    let sandbox = place.backend.make(&SandboxSpec::new(Image::Default), Vec::new()).await.unwrap();
    make_restless(&sandbox).await;
    let layers = place.backend.store.root().join("layers");
    for _ in 0..3 {
        let kept = match sandbox.snapshot().await {
            Ok(kept) => kept,
            // By signals it may be impossible, which is told.
            Err(error) if sandbox.sandbox.groups.freeze(PATIENCE).unwrap().is_none() => {
                println!("{}", with_sources(&error));
                continue;
            }
            Err(error) => panic!("{}", with_sources(&error)),
        };
        let layer = fs::read_dir(&layers).unwrap().next().unwrap().unwrap().path();
        assert!(is_of_one_moment(&layer));
        place.backend.remove_snapshot(&kept).await.unwrap();
    }
    // What was running runs on.
    let grows = "a=$(wc -c </tmp/1/log); sleep 1; test $a -lt $(wc -c </tmp/1/log)";
    output(&sandbox, grows).await;
    sandbox.close().await.unwrap();
    assert_eq!(place.num_left(), 0);
}

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn a_copy_without_control_groups_is_of_one_moment_or_refused() {
    let place = place();
    let spec = SandboxSpec::new(Image::Default);
    let sandbox = place.backend.make(&spec, Vec::new()).await.unwrap();
    output(&sandbox, "(setsid sleep 1000 &); (setsid sh -c 'while :; do :; done' &)").await;
    let target = place.folder.path().join("quiet");
    sandbox.sandbox.copy_stopped(&target).unwrap();
    assert!(target.join("root").is_dir());
    make_restless(&sandbox).await;
    for number in 0..2 {
        let target = place.folder.path().join(format!("restless-{number}"));
        match sandbox.sandbox.copy_stopped(&target) {
            Ok(()) => assert!(is_of_one_moment(&target)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}"),
        }
    }
    output(&sandbox, "true").await;
    sandbox.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn a_sandbox_that_stands_still_can_be_closed() {
    let place = place();
    let sandbox = place.backend.make(&SandboxSpec::new(Image::Default), Vec::new()).await.unwrap();
    output(&sandbox, "(setsid sleep 1000 &)").await;
    // As if its owner had ended while it copied.
    std::mem::forget(sandbox.sandbox.groups.freeze(PATIENCE).unwrap());
    let start = std::time::Instant::now();
    sandbox.close().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(place.num_left(), 0);
}

/// Not a test of its own: the process that the next one kills.
#[tokio::test]
#[ignore = "needs namespaces"]
async fn an_owner_that_is_killed() {
    let Some(folder) = env::var_os("SPAR_LOCAL_TEST_OWNER") else { return };
    let folder = Path::new(&folder);
    let backend = LocalBackend::in_folders(folder, &folder.join("images")).unwrap();
    let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await.unwrap();
    let _snapshot = sandbox.snapshot().await.unwrap();
    let request = ExecRequest::sh("(setsid sleep 4321 &); sleep 4321");
    fs::write(folder.join("ready"), "").unwrap();
    let _ = sandbox.exec(&request).await;
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn a_killed_owner_leaves_nothing_that_reaping_does_not_remove() {
    let place = place();
    let mine = place.sandbox().await;
    let mut owner = std::process::Command::new(env::current_exe().unwrap())
        .args(["--exact", "backends::local::tests::an_owner_that_is_killed", "--ignored"])
        .env("SPAR_LOCAL_TEST_OWNER", place.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if place.folder.path().join("ready").exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(place.backend.list().await.unwrap().len(), 2);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let report = place.backend.reap().await.unwrap();
    assert_eq!((report.removed.len(), report.kept), (2, 1), "{report:?}");
    assert!(report.failed.is_empty(), "{report:?}");
    let is_running = |process: &fs::DirEntry| {
        fs::read(process.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x004321\0")
    };
    assert!(!fs::read_dir("/proc").unwrap().flatten().any(|process| is_running(&process)));
    output(&*mine, "true").await;
    mine.close().await.unwrap();
    assert_eq!(place.num_left(), 0);
}

#[tokio::test]
#[ignore = "needs namespaces"]
async fn the_devices_of_the_host_stay_as_they_are_whatever_root_inside_may_do() {
    let place = place();
    for capabilities in CapabilitySet::ALL {
        let spec = SandboxSpec { capabilities, ..SandboxSpec::new(Image::Default) };
        if capabilities != CapabilitySet::None && !place.backend.capabilities().capability_sets {
            let refused = place.backend.create(&spec).await.map(drop).unwrap_err();
            assert!(matches!(refused, SandboxError::Unsupported { .. }), "{refused}");
            continue;
        }
        let sandbox = place.backend.create(&spec).await.unwrap();
        // To what they are already, so that a hole does no harm.
        let script = "for d in null zero full random urandom tty; do [ -e /dev/$d ] || continue; \
                      chmod $(stat -c %a /dev/$d) /dev/$d 2>&1 && echo CHANGED; \
                      chown $(stat -c %u:%g /dev/$d) /dev/$d 2>&1 && echo GIVEN; \
                      echo x >/dev/null && head -c 1 /dev/zero >/dev/null && echo works; done";
        let said = output(&*sandbox, script).await;
        let is_refused = !said.contains("CHANGED") && !said.contains("GIVEN");
        assert!(is_refused && said.contains("works"), "{capabilities}: {said}");
        sandbox.close().await.unwrap();
    }
}

/// With Debian's own tools: a package with files of another owner is unpacked and its script run as that
/// owner, a user is added and becomes one.
#[tokio::test]
#[ignore = "needs namespaces"]
async fn packages_are_installed_and_users_added_with_the_capabilities_for_that_and_not_without() {
    let place = place();
    let has = |program: &str| {
        ["/usr/bin", "/usr/sbin"].iter().any(|f| Path::new(f).join(program).exists())
    };
    if !place.backend.capabilities().capability_sets || !has("dpkg-deb") || !has("useradd") {
        // What is refused then, conformance checks.
        return;
    }
    let script = "set -e; mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /tmp/p/DEBIAN /tmp/p/opt/it; \
                  touch /var/lib/dpkg/status /etc/shadow /etc/gshadow; chmod 640 /etc/shadow; cd /tmp; \
                  useradd -m -s /bin/sh ann; su ann -c 'touch ~/hers'; ls -l /home/ann/hers | cut -d' ' -f3; \
                  printf 'Package: it\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: b\\n' >p/DEBIAN/control; \
                  printf '#!/bin/sh\\nsu ann -c \"id -un >/opt/it/who\"\\n' >p/DEBIAN/postinst; chmod 755 p/DEBIAN/postinst; \
                  echo hello >p/opt/it/file; chown -R ann: p/opt/it; dpkg-deb --build p it.deb >/dev/null; \
                  dpkg --force-depends -i it.deb >/dev/null; cat /opt/it/file /opt/it/who; \
                  ls -l /opt/it/file | cut -d' ' -f3";
    let spec =
        SandboxSpec { capabilities: CapabilitySet::Packages, ..SandboxSpec::new(Image::Default) };
    let sandbox = place.backend.create(&spec).await.unwrap();
    assert_eq!(output(&*sandbox, script).await, "ann\nhello\nann\nann\n");
    let changes = sandbox.changes(10_000).await.unwrap();
    let made = changes.changes.iter().find(|change| change.path == "/opt/it/file").unwrap();
    assert_eq!((made.kind, changes.is_cut), (crate::ChangeKind::Added, false));
    sandbox.close().await.unwrap();
    let sandbox = place.sandbox().await;
    let (end, said) = sh(&*sandbox, script).await;
    assert!(!end.is_success(), "{said}");
    sandbox.close().await.unwrap();
    assert_eq!(place.num_left(), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn the_backend_conforms() {
    use crate::conformance::{Options, Programs, run};
    let backend = LocalBackend::new().unwrap();
    let report = run(&backend, &Options::new(Programs::posix())).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn an_allow_list_is_kept() {
    use crate::conformance::{Options, Programs, run};
    let place = place();
    let options = Options { only: Some("allow-list".into()), ..Options::new(Programs::posix()) };
    let report = run(&place.backend, &options).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
    assert_eq!(place.num_left(), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn an_mcp_server_answers_and_a_web_server_is_reached() {
    let place = place();
    crate::backends::services::an_mcp_server_answers(&place.backend).await;
    crate::backends::services::a_web_server_is_reached(&place.backend).await;
    assert_eq!(place.num_left(), 0);
}
