//! The guests that ship, where `scripts/build_guests.sh` has built them.

use std::time::Duration;

use crate::backends::wasm::{WasmBackend, WasmSettings};
use crate::conformance::{self, Options, Program, Programs};
use crate::{
    Determinism, ExecEnd, ExecRequest, ExecResult, Image, Sandbox, SandboxBackend, SandboxSpec,
    ShellOptions,
};

fn backend() -> WasmBackend {
    WasmBackend::new(WasmSettings::default()).unwrap()
}

fn spec(guest: &str) -> SandboxSpec {
    SandboxSpec::new(Image::Reference(guest.into()))
}

async fn run(sandbox: &dyn Sandbox, command: &[&str]) -> ExecResult {
    sandbox.exec(&ExecRequest::new(command.iter().copied())).await.unwrap()
}

async fn text(sandbox: &dyn Sandbox, command: &[&str]) -> String {
    let result = run(sandbox, command).await;
    assert!(result.end.is_success(), "{command:?} {}: {}", result.end, result.stderr.text());
    result.stdout.text()
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn python_behaves_as_the_interpreter() {
    let sandbox = backend().create(&spec("python")).await.unwrap();
    let python = &*sandbox;
    assert_eq!(text(python, &["-c", "print(6*7)"]).await, "42\n");
    let library = "import json, re, math, collections, itertools, datetime, unittest, sqlite3, zlib
import sys
print(json.dumps({'a': math.factorial(5), 'b': re.sub('a+', 'x', 'baab')}), sys.argv)";
    assert_eq!(
        text(python, &["-c", library, "one"]).await,
        "{\"a\": 120, \"b\": \"bxb\"} ['-c', 'one']\n"
    );
    let failed = run(python, &["-c", "def f():\n    1/0\nf()"]).await;
    assert_eq!(failed.end, ExecEnd::Exited { code: 1 });
    let trace = failed.stderr.text();
    assert!(
        trace.starts_with("Traceback (most recent call last):\n  File \"<string>\", line 3"),
        "{trace}"
    );
    assert!(trace.ends_with("ZeroDivisionError: division by zero\n"), "{trace}");
    assert_eq!(run(python, &["-c", "raise SystemExit(3)"]).await.end, ExecEnd::Exited { code: 3 });

    let request = ExecRequest::new([""; 0]).with_stdin("print(input.__name__)");
    assert_eq!(python.exec(&request).await.unwrap().stdout.text(), "input\n");
    let request = ExecRequest::new(["-c", "print(input()[::-1])"]).with_stdin("abc\n");
    assert_eq!(python.exec(&request).await.unwrap().stdout.text(), "cba\n");

    python.write_file("/job/helper.py", b"def f(): return 'helped'", 0o644).await.unwrap();
    python
        .write_file("/job/main.py", b"import helper; print(helper.f(), __name__)", 0o644)
        .await
        .unwrap();
    assert_eq!(text(python, &["/job/main.py"]).await, "helped __main__\n");
    text(python, &["-c", "open('/job/out', 'w').write('kept')"]).await;
    assert_eq!(python.read_file("/job/out", 100).await.unwrap(), b"kept");
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn python_is_contained() {
    let mut spec = spec("python");
    spec.limits.memory_bytes = Some(128 << 20);
    spec.limits.disk_bytes = Some(1 << 20);
    let sandbox = backend().create(&spec).await.unwrap();
    let bomb = run(&*sandbox, &["-c", "x = [bytearray(1 << 20) for _ in range(1000)]"]).await;
    assert_eq!(bomb.end, ExecEnd::OutOfMemory);
    let request =
        ExecRequest::new(["-c", "while True: pass"]).with_timeout(Duration::from_millis(500));
    assert_eq!(sandbox.exec(&request).await.unwrap().end, ExecEnd::TimedOut);
    let request = ExecRequest::new(["-c", "import time; time.sleep(1000)"])
        .with_timeout(Duration::from_millis(500));
    assert_eq!(sandbox.exec(&request).await.unwrap().end, ExecEnd::TimedOut);
    let full = run(&*sandbox, &["-c", "open('/big', 'wb').write(bytes(2 << 20))"]).await;
    // Its C library calls a full disk an input/output error.
    assert_eq!(full.end, ExecEnd::Exited { code: 1 });
    assert!(full.stderr.text().contains("OSError"), "{}", full.stderr.text());
    let net = "import socket; socket.create_connection(('127.0.0.1', 80))";
    assert!(!run(&*sandbox, &["-c", net]).await.end.is_success());
    let host = run(&*sandbox, &["-c", "print(open('/../../etc/passwd').read())"]).await;
    assert_eq!(host.end, ExecEnd::Exited { code: 1 });
    let deep = "def f(n): return f(n+1)\ntry: f(0)\nexcept RecursionError: print('caught')";
    assert_eq!(text(&*sandbox, &["-c", deep]).await, "caught\n");
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn python_replays_when_deterministic_and_differs_when_not() {
    let program = "import random, time, os, uuid
print(random.random(), time.time(), os.urandom(4), uuid.uuid4(), time.perf_counter(), hash('x'))
time.sleep(100)
print(time.time())";
    let backend = backend();
    let mut outputs = Vec::new();
    for determinism in [None, None, Some(5), Some(5)] {
        let mut spec = spec("python");
        spec.determinism = determinism.map(|seed| Determinism { seed, start_secs: 9 });
        let program =
            if determinism.is_some() { program } else { "import random; print(random.random())" };
        let sandbox = backend.create(&spec).await.unwrap();
        outputs.push(text(&*sandbox, &["-c", program]).await);
    }
    assert_ne!(outputs[0], outputs[1]);
    assert_eq!(outputs[2], outputs[3]);
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn javascript_runs_code_files_and_standard_input() {
    let sandbox = backend().create(&spec("javascript")).await.unwrap();
    let js = &*sandbox;
    assert_eq!(
        text(js, &["-e", "console.log([1, 2].map(x => x * 21), 'x')"]).await,
        "1,42 x\n".replace("1,42", "21,42")
    );
    assert_eq!(text(js, &["-e", "Promise.resolve(5).then(print)"]).await, "5\n");
    js.write_file(
        "/main.js",
        b"import * as std from 'std'; print(std.loadFile('/data').length)",
        0o644,
    )
    .await
    .unwrap();
    js.write_file("/data", b"12345", 0o644).await.unwrap();
    assert_eq!(text(js, &["/main.js"]).await, "5\n");
    let request = ExecRequest::new([""; 0]).with_stdin("print(1 + 1)");
    assert_eq!(js.exec(&request).await.unwrap().stdout.text(), "2\n");
    let failed = run(js, &["-e", "throw new Error('no')"]).await;
    assert_eq!(failed.end, ExecEnd::Exited { code: 1 });
    assert!(failed.stderr.text().contains("Error: no"), "{}", failed.stderr.text());
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn a_javascript_session_forks_with_its_heap() {
    let sandbox = backend().create(&spec("javascript")).await.unwrap();
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let minute = Duration::from_secs(60);
    shell.run("var list = Array.from({length: 1000}, (_, i) => i)", minute).await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    shell.run("list = []", minute).await.unwrap();
    let mut forked = fork.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(forked.run("list.length", minute).await.unwrap().stdout.text(), "1000\n");
    assert_eq!(shell.run("list.length", minute).await.unwrap().stdout.text(), "0\n");
}

const SHELL_SCRIPT: &str = r#"
mkdir -p a/b; cd a; echo one > f; echo two >> f; wc -l < f
for x in 1 "3 4"; do echo "<$x>"; done
i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i
f() { echo "f: $1 $#"; return 3; }
f hi there || echo "code $?"
case abc in a*) echo star ;; *) echo other ;; esac
cat <<EOF
here $i $(echo sub)
EOF
V=/x/y.tar.gz; echo ${V##*/} ${V%.gz} ${#V} ${NONE:-def}
(cd b; pwd); pwd; echo *
seq 5 | sort -rn | head -2 | tr '\n' ' '; echo
sed -e 's/o\(n\)e/<\1>/' -e 2d f
nosuch; echo $?
"#;

const SHELL_OUTPUT: &str = "2\n<1>\n<3 4>\n3\nf: hi 2\ncode 3\nstar\nhere 3 sub\n\
y.tar.gz /x/y.tar 11 def\n/job/a/b\n/job/a\nb f\n5 4 \n<n>\n127\n";

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn the_shell_runs_scripts_and_its_commands() {
    let mut spec = spec("shell");
    spec.workdir = Some("/job".into());
    spec.setup = vec!["mkdir -p /job/a; echo made > /made".into()];
    let sandbox = backend().create(&spec).await.unwrap();
    assert_eq!(text(&*sandbox, &["cat", "/made"]).await, "made\n");
    let result = sandbox.exec(&ExecRequest::sh(SHELL_SCRIPT)).await.unwrap();
    assert_eq!(result.stdout.text(), SHELL_OUTPUT);
    assert_eq!(result.stderr.text(), "sh: nosuch: not found\n");
    let request = ExecRequest::new([""; 0]).with_stdin("echo from stdin; exit 4");
    let result = sandbox.exec(&request).await.unwrap();
    assert_eq!(result.end, ExecEnd::Exited { code: 4 });
    assert_eq!(result.stdout.text(), "from stdin\n");
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn a_shell_keeps_variables_and_folder_and_survives_what_ends_it() {
    let sandbox = backend().create(&spec("shell")).await.unwrap();
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let minute = Duration::from_secs(60);
    shell.run("x=5; cd /tmp; f() { echo \"f $x\"; }", minute).await.unwrap();
    assert_eq!(shell.run("pwd; f", minute).await.unwrap().stdout.text(), "/tmp\nf 5\n");
    let fork = sandbox.fork().await.unwrap();
    let mut forked = fork.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(forked.run("pwd; f; x=6", minute).await.unwrap().stdout.text(), "/tmp\nf 5\n");
    assert_eq!(shell.run("echo $x", minute).await.unwrap().stdout.text(), "5\n");
    let looping = shell.run("while :; do :; done", Duration::from_millis(300)).await.unwrap();
    assert_eq!((looping.end, looping.restarted), (ExecEnd::TimedOut, true));
    let after = shell.run("echo \"[$x]\"; pwd", minute).await.unwrap();
    assert_eq!(after.stdout.text(), "[]\n/tmp\n");
    let exited = shell.run("exit 7", minute).await.unwrap();
    assert_eq!((exited.end, exited.restarted), (ExecEnd::Exited { code: 7 }, true));
    let reading = shell.run("read line; echo \"$? [$line]\"; cat", minute).await.unwrap();
    assert_eq!(reading.stdout.text(), "1 []\n");
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn a_session_of_ten_thousand_commands_stays_in_step_and_does_not_grow() {
    let sandbox = backend().create(&spec("shell")).await.unwrap();
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let minute = Duration::from_secs(60);
    for number in 0..10_000 {
        let result = shell.run(&format!("n={number}; echo $n"), minute).await.unwrap();
        assert_eq!(result.stdout.text(), format!("{number}\n"));
    }
    assert!(sandbox.stats().await.unwrap().memory_bytes.unwrap() < 8 << 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the wasm guests"]
async fn the_conformance_suite_passes() {
    let folder = tempfile::tempdir().unwrap();
    let crash = folder.path().join("crash.wat");
    std::fs::write(
        &crash,
        r#"(module (memory (export "memory") 1)
        (func (export "_start") (drop (i32.load (i32.const -8)))))"#,
    )
    .unwrap();
    let crash = Image::Reference(crash.to_str().unwrap().into());
    let sh = |script: &str| Some(Program::new(["sh", "-c", script]));
    let zeros = "let n = +scriptArgs.at(-1); const zeros = new ArrayBuffer(65536);
while (n > 0) { const m = Math.min(n, 65536); std.out.write(zeros, 0, m); n -= m; }";
    let javascript = Image::Reference("javascript".into());
    let programs = Programs {
        echo: sh("echo hello"),
        fail: sh("exit 3"),
        missing: Some(Program::new(["no-such-program"])),
        complain: sh("echo oops >&2"),
        cat: Some(Program::new(["cat"])),
        environment: Some(Program::new(["env"])),
        workdir: sh("pwd"),
        zeros: Some(Program::new(["-e", zeros]).with_image(javascript)),
        garbage: sh("printf '\\000\\377\\036\\200\\n'"),
        forever: sh("while :; do :; done"),
        allocate: sh("x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done"),
        crash: Some(Program::new([""; 0]).with_image(crash)),
        write_file: sh("printf made >/tmp/made"),
        read_file: sh("cat /tmp/given"),
    };
    let report = conformance::run(&backend(), &Options::new(programs)).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}
