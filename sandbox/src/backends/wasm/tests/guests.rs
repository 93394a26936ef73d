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
    assert_eq!(full.end, ExecEnd::Exited { code: 1 });
    let told = full.stderr.text();
    assert!(told.contains("No space left on device"), "{told}");
    let net = "import socket; socket.create_connection(('127.0.0.1', 80))";
    assert!(!run(&*sandbox, &["-c", net]).await.end.is_success());
    let host = run(&*sandbox, &["-c", "print(open('/../../etc/passwd').read())"]).await;
    assert_eq!(host.end, ExecEnd::Exited { code: 1 });
    let deep = "def f(n): return f(n+1)\ntry: f(0)\nexcept RecursionError: print('caught')";
    assert_eq!(text(&*sandbox, &["-c", deep]).await, "caught\n");
}

/// What the interpreter's adapter to preview 1 has to get right.
const FILES: &str = r#"
import os, sys, time, tempfile, shutil, pathlib
os.makedirs('a/b'); os.chdir('a')
for number in range(500):
    pathlib.Path('b', f'entry-with-a-longer-name-{number:04}').write_text('x' * number)
names = sorted(os.listdir('b')); print(len(names), names[0], names[-1])
print(sum(entry.stat().st_size for entry in os.scandir('b')))
with open('f', 'wb') as file: print(file.write(bytes(range(256)) * 4096))
with open('f', 'r+b') as file:
    file.seek(1000); file.write(b'here'); file.seek(-4, 2); print(file.tell(), file.read())
    file.seek(998); print(file.read(8)); file.truncate(10); print(os.fstat(file.fileno()).st_size)
with open('f', 'ab') as file: file.write(b'end')
print(open('f', 'rb').read())
os.symlink('f', 'l'); os.link('f', 'h'); print(os.readlink('l'), os.stat('h').st_nlink)
os.utime('f', (1, 2.5)); print(os.stat('l').st_mtime, os.lstat('l').st_size)
os.rename('f', 'g'); print(os.path.exists('f'), os.path.islink('l'), os.path.isdir('b'))
for wrong in (lambda: open('f'), lambda: os.mkdir('b'), lambda: os.rmdir('b'),
              lambda: open('b', 'w'), lambda: os.listdir('g'), lambda: open('g').write('x')):
    try: wrong()
    except OSError as error: print(type(error).__name__, error.strerror)
shutil.rmtree('b'); print(os.listdir('.'), os.getcwd())
start = time.monotonic(); time.sleep(0.05); print(0.05 <= time.monotonic() - start < 5)
print(len(os.urandom(1000)), sys.stdin.read(), os.environ['NAME'])
print('é', file=sys.stderr); sys.stdout.buffer.write(b'\xff\n')
"#;

const FILES_OUTPUT: &str = r"500 entry-with-a-longer-name-0000 entry-with-a-longer-name-0499
124750
1048576
1048572 b'\xfc\xfd\xfe\xff'
b'\xe6\xe7here\xec\xed'
10
b'\x00\x01\x02\x03\x04\x05\x06\x07\x08\tend'
f 2
2.5 1
False True True
FileNotFoundError No such file or directory
FileExistsError File exists
OSError Directory not empty
IsADirectoryError Is a directory
NotADirectoryError Not a directory
UnsupportedOperation None
['g', 'h', 'l'] /job/a
True
1000 given value
�
";

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn python_works_on_files_time_and_streams() {
    let mut spec = spec("python");
    spec.workdir = Some("/job".into());
    spec.env.insert("NAME".into(), "value".into());
    let sandbox = backend().create(&spec).await.unwrap();
    let request = ExecRequest::new(["-c", FILES]).with_stdin("given");
    let result = sandbox.exec(&request).await.unwrap();
    assert!(result.end.is_success(), "{} {}", result.end, result.stderr.text());
    assert_eq!(result.stdout.text(), FILES_OUTPUT);
    assert_eq!(result.stderr.text(), "é\n");
}

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn a_python_session_keeps_its_state_and_forks_with_it() {
    let backend = backend();
    let sandbox = backend.create(&spec("python")).await.unwrap();
    assert!(sandbox.capabilities().shell);
    let mut shell = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
    let minute = Duration::from_secs(60);
    let begin = "import os
numbers = list(range(1000))
file = open('/log', 'w'); file.write('one '); file.flush()
os.makedirs('/job'); os.chdir('/job')
sum(numbers)";
    assert_eq!(shell.run(begin, minute).await.unwrap().stdout.text(), "499500\n");
    let failed = shell.run("numbers.append(1); 1 / 0", minute).await.unwrap();
    assert_eq!((failed.end, failed.restarted), (ExecEnd::Exited { code: 1 }, false));
    let trace = failed.stderr.text();
    assert!(trace.ends_with("ZeroDivisionError: division by zero\n"), "{trace}");
    assert!(
        trace.starts_with("Traceback (most recent call last):\n  File \"<session>\""),
        "{trace}"
    );

    let snapshot = sandbox.snapshot().await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    let mut forked = fork.open_shell(&ShellOptions::default()).await.unwrap();
    let go_on = "file.write('two'); file.close(); numbers.clear(); os.getcwd()";
    assert_eq!(forked.run(go_on, minute).await.unwrap().stdout.text(), "'/job'\n");
    assert_eq!(fork.read_file("/log", 100).await.unwrap(), b"one two");
    assert_eq!(shell.run("len(numbers)", minute).await.unwrap().stdout.text(), "1001\n");
    assert_eq!(sandbox.read_file("/log", 100).await.unwrap(), b"one ");

    let restored = backend.restore(&snapshot).await.unwrap();
    let mut third = restored.open_shell(&ShellOptions::default()).await.unwrap();
    assert_eq!(
        third.run("len(numbers), file.tell()", minute).await.unwrap().stdout.text(),
        "(1001, 4)\n"
    );

    let ended = shell.run("raise SystemExit(7)", minute).await.unwrap();
    assert_eq!((ended.end, ended.restarted), (ExecEnd::Exited { code: 7 }, true));
    let gone = shell.run("numbers", minute).await.unwrap();
    assert_eq!(gone.end, ExecEnd::Exited { code: 1 });
    assert!(gone.stderr.text().contains("NameError"), "{}", gone.stderr.text());
}

/// Each attempt that the abuse suite makes with programs of POSIX, as far as the interpreter has words
/// for it; one that gets through is told.
const HOSTILE: &str = r#"
import os, pathlib, signal, socket, subprocess, sys, threading, time
def link(target):
    os.symlink(target, 'l')
    try: return open('l').read()
    finally: os.unlink('l')
attempts = {
    'fork': lambda: os.fork(),
    'spawn': lambda: subprocess.run(['sh', '-c', 'true'], check=True),
    'posix_spawn': lambda: os.posix_spawn('/bin/sh', ['sh'], {}),
    'system': lambda: 1 / (os.system('true') == 0),
    'thread': lambda: threading.Thread(target=print).start(),
    'connect': lambda: socket.create_connection(('127.0.0.1', 22), 1),
    'bind': lambda: socket.socket().bind(('0.0.0.0', 8000)),
    'names': lambda: socket.getaddrinfo('localhost', 80),
    'proc': lambda: os.listdir('/proc'),
    'device': lambda: open('/dev/mem', 'rb'),
    'passwd': lambda: open('/etc/passwd').read(),
    'above': lambda: open('/../../../../../etc/passwd').read(),
    'link out': lambda: link('/../../../../etc/passwd'),
    'link to proc': lambda: link('/proc/self/environ'),
    'node': lambda: os.mknod('node'),
    'root': lambda: os.chroot('/'),
    'mount': lambda: __import__('ctypes').CDLL(None).mount,
    'trace': lambda: __import__('ctypes').CDLL(None).ptrace,
    'kill': lambda: os.kill(1, 9),
    'set clock': lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
    'owner': lambda: os.setuid(0),
}
for name, attempt in attempts.items():
    try: print('REACHED', name, attempt())
    except (Exception, NotImplementedError): pass
for text in (socket.gethostname, lambda: os.uname().nodename):
    try: print('name', text())
    except Exception: pass
print(sorted(os.environ))
print(os.listdir('/'))
"#;

#[tokio::test]
#[ignore = "needs the wasm guests"]
async fn a_hostile_python_program_gets_nowhere() {
    let sandbox = backend().create(&spec("python")).await.unwrap();
    let result = run(&*sandbox, &["-c", HOSTILE]).await;
    let told = result.stdout.text();
    assert!(result.end.is_success(), "{}: {}", result.end, result.stderr.text());
    assert!(!told.contains("REACHED"), "{told}");
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = own.trim();
    assert!(own.is_empty() || own == "localhost" || !told.contains(own), "{told}");
    assert!(told.ends_with("['PWD']\n['tmp']\n"), "{told}");
    let stubborn = "while True:
    try:
        while True: pass
    except BaseException: pass";
    let request = ExecRequest::new(["-c", stubborn]).with_timeout(Duration::from_millis(500));
    assert_eq!(sandbox.exec(&request).await.unwrap().end, ExecEnd::TimedOut);
    assert_eq!(text(&*sandbox, &["-c", "print('fine')"]).await, "fine\n");
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
async fn every_guest_replays_to_the_bit_and_goes_on_alike_in_a_fork() {
    let python = "import os, random, time, uuid
print(random.random(), os.urandom(8), uuid.uuid4(), time.time_ns(), time.perf_counter_ns(), id(object()))
open('/log', 'a').write(str(os.stat('/').st_mtime))
time.sleep(10)";
    let javascript = "print(Math.random(), Date.now(), os.now(), performance.now()); os.sleep(10)";
    let shell = "date '+%s %N'; mktemp; sleep 10; date";
    let backend = backend();
    let minute = Duration::from_secs(60);
    for (guest, option, program) in
        [("python", "-c", python), ("javascript", "-e", javascript), ("shell", "-c", shell)]
    {
        let command = if guest == "shell" { vec!["sh", option] } else { vec![option] };
        let command = [command, vec![program]].concat();
        let mut told = Vec::new();
        for seed in [5, 5, 6] {
            let mut spec = spec(guest);
            spec.determinism = Some(Determinism { seed, start_secs: 1_000_000 });
            let sandbox = backend.create(&spec).await.unwrap();
            let mut session = sandbox.open_shell(&ShellOptions::default()).await.unwrap();
            let mut lines = Vec::new();
            for _ in 0..2 {
                lines.push(text(&*sandbox, &command).await);
                lines.push(session.run(program, minute).await.unwrap().stdout.text());
            }
            let fork = sandbox.fork().await.unwrap();
            let mut forked = fork.open_shell(&ShellOptions::default()).await.unwrap();
            let ours = session.run(program, minute).await.unwrap().stdout.text();
            assert_eq!(forked.run(program, minute).await.unwrap().stdout.text(), ours);
            lines.push(ours);
            let ours = text(&*sandbox, &command).await;
            assert_eq!(text(&*fork, &command).await, ours);
            lines.push(ours);
            let distinct: std::collections::BTreeSet<_> = lines.iter().collect();
            assert_eq!(distinct.len(), lines.len(), "{guest} repeats itself: {lines:?}");
            told.push(lines);
        }
        assert_eq!(told[0], told[1], "{guest}");
        assert_ne!(told[0], told[2], "{guest}");
    }
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
grep -c o f; grep -c o f f
printf '%01000d%600s%.700f' 1 x 2 | wc -c
nosuch; echo $?
"#;

const SHELL_OUTPUT: &str = "2\n<1>\n<3 4>\n3\nf: hi 2\ncode 3\nstar\nhere 3 sub\n\
y.tar.gz /x/y.tar 11 def\n/job/a/b\n/job/a\nb f\n5 4 \n<n>\n2\nf:2\nf:2\n2302\n127\n";

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
async fn a_pipe_that_is_written_without_end_is_cut_off_and_told_of() {
    let mut spec = spec("shell");
    spec.limits.memory_bytes = Some(256 << 20);
    let sandbox = backend().create(&spec).await.unwrap();
    for (script, output) in [
        ("yes | head -n 2", "y\ny\n"),
        ("yes no | head -c 4", "no\nn"),
        ("yes | grep -q y && echo found", "found\n"),
        ("seq 1000000000 | { read a; read b; echo $a $b; }", "1 2\n"),
        (
            "x=0123456789; x=$x$x$x$x$x$x$x$x$x$x; while :; do echo $x$x$x; done | head -n 1 | wc -c",
            "301\n",
        ),
        ("seq 300000 | tail -n 1; yes | wc -c >/dev/null || echo $?", "300000\n141\n"),
        ("seq 5 | while read n; do [ $n = 3 ] && break; echo $n; done", "1\n2\n"),
    ] {
        let request = ExecRequest::sh(script).with_timeout(Duration::from_secs(60));
        let result = sandbox.exec(&request).await.unwrap();
        let told = result.stderr.text();
        assert_eq!(result.stdout.text(), output, "{script}: {told}");
        assert!(matches!(result.end, ExecEnd::Exited { code: 0 }), "{script}: {}", result.end);
        let is_cut = script.contains("yes | wc");
        assert_eq!(told.contains("a pipe takes no more than 16 MiB"), is_cut, "{script}: {told}");
    }
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
        echo_server: None,
        scripts: true,
    };
    let report = conformance::run(&backend(), &Options::new(programs)).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
}
