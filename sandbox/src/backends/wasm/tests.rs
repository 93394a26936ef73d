//! Tests of the whole backend on guests written as text, and on the guests that ship.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Allocation, WasmBackend, WasmSettings};
use crate::{
    Determinism, ExecEnd, ExecRequest, ExecResult, FileKind, Image, SandboxBackend, SandboxError,
    SandboxSpec, Shell, ShellOptions, Stream,
};

mod guests;

/// A backend of its own, with a folder for guests and cache.
struct Bench {
    folder: tempfile::TempDir,
    backend: WasmBackend,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = WasmSettings {
            guests: folder.path().join("guests"),
            cache: folder.path().join("cache"),
            allocation: Allocation::OnDemand,
            ..WasmSettings::default()
        };
        let backend = WasmBackend::new(settings).unwrap();
        Self { folder, backend }
    }

    /// A spec whose program is `body`, inside a module that imports what these tests use.
    fn spec(&self, name: &str, body: &str) -> SandboxSpec {
        let path: PathBuf = self.folder.path().join(format!("{name}.wat"));
        std::fs::write(&path, format!("(module {IMPORTS} {body})")).unwrap();
        SandboxSpec::new(Image::Reference(path.to_str().unwrap().into()))
    }

    async fn run(&self, spec: &SandboxSpec) -> ExecResult {
        let sandbox = self.backend.create(spec).await.unwrap();
        let request = ExecRequest::new(["argument"]).with_timeout(Duration::from_secs(30));
        let result = sandbox.exec(&request).await.unwrap();
        sandbox.close().await.unwrap();
        result
    }
}

const IMPORTS: &str = r#"
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (memory (export "memory") 4)
    (func $write (param $fd i32) (param $at i32) (param $len i32) (result i32)
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (local.get $len))
        (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
"#;

const HELLO: &str = r#"
    (data (i32.const 100) "hello\n")
    (func (export "_start") (drop (call $write (i32.const 1) (i32.const 100) (i32.const 6))))"#;

#[tokio::test]
async fn a_module_writes_and_exits() {
    let bench = Bench::new();
    let hello = bench.run(&bench.spec("hello", HELLO)).await;
    assert_eq!(hello.end, ExecEnd::Exited { code: 0 });
    assert_eq!(hello.stdout.text(), "hello\n");
    let spec = bench.spec("seven", r#"(func (export "_start") (call $exit (i32.const 7)))"#);
    assert_eq!(bench.run(&spec).await.end, ExecEnd::Exited { code: 7 });
}

#[tokio::test]
async fn every_way_to_end_is_told_apart() {
    let bench = Bench::new();
    let trap = bench.run(&bench.spec("trap", r#"(func (export "_start") unreachable)"#)).await;
    assert_eq!(trap.end, ExecEnd::Trapped);
    assert!(trap.stderr.text().contains("unreachable"), "{}", trap.stderr.text());
    let deep = r#"(func $f (export "_start") (call $f))"#;
    assert_eq!(bench.run(&bench.spec("deep", deep)).await.end, ExecEnd::Trapped);

    let mut spec = bench.spec("fuel", LOOP);
    spec.limits.fuel = Some(1_000_000);
    assert_eq!(bench.run(&spec).await.end, ExecEnd::OutOfFuel);

    let mut spec = bench.spec(
        "memory",
        r#"(func (export "_start") (loop $l (drop (memory.grow (i32.const 16))) (br $l)))"#,
    );
    spec.limits.memory_bytes = Some(32 << 20);
    let sandbox = bench.backend.create(&spec).await.unwrap();
    assert_eq!(sandbox.exec(&ExecRequest::new([""; 0])).await.unwrap().end, ExecEnd::OutOfMemory);
    let stats = sandbox.stats().await.unwrap();
    assert_eq!((stats.out_of_memory_kills, stats.memory_bytes), (Some(1), Some(0)));
    assert!(stats.peak_memory_bytes.unwrap() <= 32 << 20);
}

const LOOP: &str = r#"(func (export "_start") (loop $l (br $l)))"#;

/// Waits for an hour.
const SLEEP: &str = r#"
    (func (export "_start")
        (i64.store (i32.const 124) (i64.const 3600000000000))
        (drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300))))"#;

#[tokio::test]
async fn a_deadline_ends_what_loops_and_what_sleeps() {
    let bench = Bench::new();
    for body in [LOOP, SLEEP] {
        let sandbox = bench.backend.create(&bench.spec("endless", body)).await.unwrap();
        let request = ExecRequest::new([""; 0]).with_timeout(Duration::from_millis(100));
        let started = Instant::now();
        assert_eq!(sandbox.exec(&request).await.unwrap().end, ExecEnd::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(sandbox.stats().await.unwrap().pids, Some(0));
    }
}

#[tokio::test]
async fn others_run_while_a_guest_loops_and_a_dropped_exec_ends() {
    let bench = Bench::new();
    let sandbox = bench.backend.create(&bench.spec("loop", LOOP)).await.unwrap();
    let request = ExecRequest::new([""; 0]).with_timeout(Duration::from_secs(600));
    let looping = sandbox.exec(&request);
    assert!(tokio::time::timeout(Duration::from_millis(50), looping).await.is_err());
    let stats = sandbox.stats().await.unwrap();
    assert_eq!((stats.pids, stats.memory_bytes), (Some(0), Some(0)));
}

#[tokio::test]
async fn closing_ends_what_runs() {
    let bench = Bench::new();
    let sandbox = bench.backend.create(&bench.spec("loop", LOOP)).await.unwrap();
    let request = ExecRequest::new([""; 0]).with_timeout(Duration::from_secs(600));
    let (run, _) = tokio::join!(sandbox.exec(&request), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        sandbox.close().await.unwrap();
    });
    assert!(matches!(run, Err(SandboxError::Died { .. })), "{run:?}");
    assert!(bench.backend.list().await.unwrap().is_empty());
    let after = sandbox.exec(&request).await;
    assert!(matches!(after, Err(SandboxError::Died { .. })), "{after:?}");
}

#[tokio::test]
async fn a_flood_of_output_is_counted_and_streamed() {
    let bench = Bench::new();
    let spec = bench.spec(
        "flood",
        r#"(func (export "_start") (local $i i32)
            (loop $l
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 65536)))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $l (i32.lt_u (local.get $i) (i32.const 1600)))))"#,
    );
    let sandbox = bench.backend.create(&spec).await.unwrap();
    let request = ExecRequest { output_limit_bytes: 1000, ..ExecRequest::new([""; 0]) };
    let (mut seen, mut largest) = (0, 0);
    let mut sink = |_: Stream, bytes: &[u8]| {
        seen += bytes.len() as u64;
        largest = largest.max(bytes.len());
    };
    let result = sandbox.exec_streaming(&request, &mut sink).await.unwrap();
    assert_eq!(result.end, ExecEnd::Exited { code: 0 });
    assert_eq!((result.stdout.total_bytes(), seen), (1600 << 16, 1600 << 16));
    assert_eq!(result.stdout.elided_bytes(), (1600 << 16) - 1000);
    assert!(largest < 1 << 20, "{largest} bytes were held at one time");
}

/// Writes 32 random bytes and both clocks, sleeps an hour in between.
const CHANCE: &str = r#"
    (func (export "_start")
        (drop (call $random (i32.const 1000) (i32.const 32)))
        (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 1032)))
        (i64.store (i32.const 124) (i64.const 3600000000000))
        (drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 300)))
        (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 1040)))
        (drop (call $write (i32.const 1) (i32.const 1000) (i32.const 48))))"#;

#[tokio::test]
async fn a_deterministic_sandbox_replays_to_the_bit() {
    let bench = Bench::new();
    let mut spec = bench.spec("chance", CHANCE);
    spec.determinism = Some(Determinism { seed: 3, start_secs: 1_000_000 });
    let (one, two) = (bench.run(&spec).await, bench.run(&spec).await);
    assert_eq!(one.stdout, two.stdout);
    let bytes = one.stdout.bytes().into_owned();
    let wall = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
    let monotonic = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    assert_eq!(wall / 1_000_000_000, 1_000_000);
    assert_eq!(monotonic / 1_000_000_000, 3600);
    spec.determinism = Some(Determinism { seed: 4, start_secs: 1_000_000 });
    assert_ne!(bench.run(&spec).await.stdout, one.stdout);

    let sandbox = bench.backend.create(&spec).await.unwrap();
    sandbox.exec(&ExecRequest::new([""; 0])).await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    let mut outputs = Vec::new();
    for sandbox in [&sandbox, &fork] {
        outputs.push(sandbox.exec(&ExecRequest::new([""; 0])).await.unwrap().stdout);
    }
    assert_eq!(outputs[0], outputs[1]);
}

/// Copies the file `in` to standard output and puts the error of opening it, if any, in the code.
const CAT: &str = r#"
    (data (i32.const 100) "data/in")
    (func (export "_start") (local $e i32)
        (local.set $e (call $path_open (i32.const 3) (i32.const 1) (i32.const 100) (i32.const 7)
            (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 200)))
        (if (local.get $e) (then (call $exit (local.get $e))))
        (i32.store (i32.const 0) (i32.const 1000))
        (i32.store (i32.const 4) (i32.const 60000))
        (drop (call $fd_read (i32.load (i32.const 200)) (i32.const 0) (i32.const 1) (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 1000) (i32.load (i32.const 8)))))"#;

#[tokio::test]
async fn files_go_in_and_out_and_no_link_leads_to_the_host() {
    let bench = Bench::new();
    let sandbox = bench.backend.create(&bench.spec("cat", CAT)).await.unwrap();
    let none = ExecRequest::new([""; 0]);
    assert_eq!(sandbox.exec(&none).await.unwrap().end, ExecEnd::Exited { code: 44 });
    sandbox.write_file("/data/in", b"inside", 0o600).await.unwrap();
    assert_eq!(sandbox.exec(&none).await.unwrap().stdout.text(), "inside");
    assert_eq!(sandbox.read_file("data/in", 6).await.unwrap(), b"inside");
    let large = sandbox.read_file("data/in", 5).await;
    assert!(matches!(large, Err(SandboxError::TooLarge { .. })));
    let folder = sandbox.read_file("data", 5).await;
    assert!(matches!(folder, Err(SandboxError::PathRefused { .. })));

    let archive = bench.folder.path().join("out.tar");
    sandbox.download_tar("/data", &archive, 1 << 20).await.unwrap();
    sandbox.upload_tar("/copy", &archive).await.unwrap();
    assert_eq!(sandbox.read_file("/copy/data/in", 100).await.unwrap(), b"inside");
    let small = sandbox.download_tar("/data", &archive, 100).await;
    assert!(matches!(small, Err(SandboxError::TooLarge { .. })), "{small:?}");
    let listed = sandbox.list_files("/copy").await.unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].kind), ("data", FileKind::Folder));
}

#[tokio::test]
async fn mounts_are_copied_in_and_cannot_be_written() {
    let bench = Bench::new();
    let host = bench.folder.path().join("host");
    std::fs::create_dir(&host).unwrap();
    std::fs::write(host.join("in"), "of the host").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", host.join("link")).unwrap();
    let mut spec = bench.spec("cat", CAT);
    spec.mounts.push(crate::Mount { host: host.clone(), guest: "/data".into(), read_only: true });
    let sandbox = bench.backend.create(&spec).await.unwrap();
    let result = sandbox.exec(&ExecRequest::new([""; 0])).await.unwrap();
    assert_eq!(result.stdout.text(), "of the host");
    let link = sandbox.read_file("/data/link", 1 << 20).await;
    assert!(matches!(link, Err(SandboxError::NotFound { .. })), "{link:?}");
    for path in ["/data/in", "/data/new"] {
        let written = sandbox.write_file(path, b"x", 0o644).await;
        assert!(matches!(written, Err(SandboxError::PathRefused { .. })), "{written:?}");
    }
    spec.mounts[0].read_only = false;
    let refused = bench.backend.create(&spec).await.err();
    assert!(matches!(refused, Some(SandboxError::Unsupported { .. })));
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let bench = Bench::new();
    let refused: [fn(&mut SandboxSpec); 4] = [
        |spec| spec.limits.cpus = Some(0.5),
        |spec| spec.network = crate::NetworkPolicy::Bridge,
        |spec| spec.user = Some("1000".into()),
        |spec| spec.image = Image::RootTar("root.tar".into()),
    ];
    for change in refused {
        let mut spec = bench.spec("hello", HELLO);
        change(&mut spec);
        let error = bench.backend.create(&spec).await.err();
        assert!(matches!(error, Some(SandboxError::Unsupported { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn forks_and_snapshots_keep_files_apart() {
    let bench = Bench::new();
    let mut spec = bench.spec("cat", CAT);
    spec.limits.disk_bytes = Some(10_000);
    let sandbox = bench.backend.create(&spec).await.unwrap();
    sandbox.write_file("/data/in", b"one", 0o644).await.unwrap();
    let snapshot = sandbox.snapshot().await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    fork.write_file("/data/in", b"two", 0o644).await.unwrap();
    sandbox.write_file("/data/in", b"three", 0o644).await.unwrap();
    let full = fork.write_file("/data/in", &[0; 20_000], 0o644).await;
    assert!(!full.unwrap_err().is_infrastructure(), "the limit is of the sandbox itself");
    let restored = bench.backend.restore(&snapshot).await.unwrap();
    for (sandbox, text) in [(&restored, "one"), (&sandbox, "three")] {
        assert_eq!(sandbox.read_file("/data/in", 100).await.unwrap(), text.as_bytes());
    }
    bench.backend.remove_snapshot(&snapshot).await.unwrap();
    bench.backend.remove_snapshot(&snapshot).await.unwrap();
    let gone = bench.backend.restore(&snapshot).await.err();
    assert!(matches!(gone, Some(SandboxError::ImageMissing { .. })));
    assert_eq!(bench.backend.list().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_damaged_compiled_guest_is_compiled_anew() {
    let bench = Bench::new();
    let spec = bench.spec("hello", HELLO);
    bench.run(&spec).await;
    let cache = bench.folder.path().join("cache");
    let is_code = |path: &PathBuf| path.extension().is_some_and(|end| end == "cwasm");
    let code = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).find(is_code);
    let code = code.unwrap();
    let mut bytes = std::fs::read(&code).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&code, &bytes).unwrap();
    let settings = WasmSettings { cache: cache.clone(), ..bench.backend_settings() };
    let backend = WasmBackend::new(settings).unwrap();
    let sandbox = backend.create(&spec).await.unwrap();
    let result = sandbox.exec(&ExecRequest::new([""; 0])).await.unwrap();
    assert_eq!(result.stdout.text(), "hello\n");
    assert_ne!(std::fs::read(&code).unwrap(), bytes);
}

impl Bench {
    fn backend_settings(&self) -> WasmSettings {
        WasmSettings { allocation: Allocation::OnDemand, ..WasmSettings::default() }
    }
}

#[tokio::test]
async fn a_cache_that_others_can_write_into_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = WasmBackend::new(WasmSettings { cache, ..WasmSettings::default() }).err();
    assert!(matches!(refused, Some(SandboxError::Unavailable { .. })));
}

#[tokio::test]
async fn an_absent_guest_names_the_script_that_builds_it() {
    let bench = Bench::new();
    let error = bench.backend.create(&SandboxSpec::new(Image::Default)).await.err().unwrap();
    assert!(matches!(error, SandboxError::ImageMissing { .. }), "{error}");
    assert_eq!(error.hint(), Some("scripts/build_guests.sh builds it"));
    let other = SandboxSpec::new(Image::Reference("ubuntu".into()));
    let error = bench.backend.create(&other).await.err().unwrap();
    assert!(error.hint().unwrap().contains("python, javascript, shell"));
    let broken = bench.spec("broken", "(func (export \"_start\") (i32.const 1))");
    let error = bench.backend.create(&broken).await.err().unwrap();
    assert!(matches!(error, SandboxError::ImageBuild { .. }), "{error}");
}

#[tokio::test]
async fn more_instances_than_slots_are_saturation() {
    let bench = Bench::new();
    let settings = WasmSettings {
        cache: bench.folder.path().join("cache"),
        allocation: Allocation::Pooled { instances: 2 },
        ..WasmSettings::default()
    };
    let backend = WasmBackend::new(settings).unwrap();
    let sandbox = backend.create(&bench.spec("sleep", SLEEP)).await.unwrap();
    let request = ExecRequest::new([""; 0]).with_timeout(Duration::from_millis(300));
    let (one, two, three) =
        tokio::join!(sandbox.exec(&request), sandbox.exec(&request), sandbox.exec(&request));
    assert_eq!(one.unwrap().end, ExecEnd::TimedOut);
    assert_eq!(two.unwrap().end, ExecEnd::TimedOut);
    assert!(matches!(three, Err(SandboxError::Saturated { .. })), "{three:?}");
}

/// Keeps a counter in memory; each command adds one and writes it as a digit.
const COUNTER: &str = r#"
    (global $stack (export "__stack_pointer") (mut i32) (i32.const 1000))
    (func (export "session_open") (i32.store (i32.const 500) (i32.const 48)))
    (func (export "session_buffer") (param i32) (result i32) (i32.const 2000))
    (func (export "session_cwd") (result i32) (i32.store8 (i32.const 600) (i32.const 47)) (i32.const 600))
    (func (export "session_run") (param $len i32) (result i32)
        (if (i32.eq (i32.load8_u (i32.const 2000)) (i32.const 108)) (then (loop $l (br $l))))
        (i32.store (i32.const 500) (i32.add (i32.load (i32.const 500)) (i32.const 1)))
        (drop (call $write (i32.const 1) (i32.const 500) (i32.const 1)))
        (i32.const 0))"#;

async fn count(shell: &mut Box<dyn Shell>) -> String {
    shell.run("add", Duration::from_secs(30)).await.unwrap().stdout.text()
}

#[tokio::test]
async fn a_session_keeps_its_memory_and_a_fork_goes_on_from_it() {
    let bench = Bench::new();
    let sandbox = bench.backend.create(&bench.spec("counter", COUNTER)).await.unwrap();
    assert!(sandbox.capabilities().shell);
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(count(&mut shell).await, "1");
    assert_eq!(count(&mut shell).await, "2");
    let fork = sandbox.fork().await.unwrap();
    assert_eq!(count(&mut shell).await, "3");
    let mut forked = fork.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(count(&mut forked).await, "3");
    let ended = forked.run("loop", Duration::from_millis(50)).await.unwrap();
    assert_eq!((ended.end, ended.restarted), (ExecEnd::TimedOut, true));
    assert_eq!(count(&mut forked).await, "1");
    assert_eq!(count(&mut shell).await, "4");
    let mut second = fork.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(count(&mut second).await, "1");
}
