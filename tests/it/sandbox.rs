//! Sandboxes from the command line.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ran, run, spar, succeed};

/// `spar sandbox run` with a command.
fn sandbox(backend: &str, options: &[&str], command: &[&str]) -> Ran {
    let head = ["sandbox", "run", "--backend", backend];
    run(Path::new("."), &[&head[..], options, &["--"], command].concat())
}

/// The same with something piped in.
fn piped(arguments: &[&str], input: &str) -> Ran {
    let mut command = spar(Path::new("."), arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_command_has_its_output_and_its_exit_code() {
    let ran = sandbox("fake", &[], &["echo", "hello", "world"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "hello world\n", ""));
    assert_eq!(sandbox("fake", &[], &["false"]).code, Some(1));
    assert_eq!(sandbox("fake", &[], &["no-such-program"]).code, Some(127));
    let late = sandbox("fake", &["--timeout", "1"], &["sleep", "1000"]);
    assert_eq!(late.code, Some(124));
    assert!(late.err.contains("note: the command was ended at its deadline"), "{}", late.err);
}

#[test]
fn what_is_piped_in_reaches_the_command() {
    let ran = piped(&["sandbox", "run", "--backend", "fake", "--", "cat"], "line\n");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "line\n"), "{}", ran.err);
}

#[test]
fn how_a_command_went_is_told_as_json() {
    let ran = sandbox("fake", &["--json"], &["echo", "hello"]);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["end"]["kind"], "exited");
    assert_eq!((&found["exit_code"], &found["stdout"]), (&0.into(), &"hello\n".into()));
    assert_eq!(found["backend"], "fake");
}

#[test]
fn a_shell_keeps_its_files_and_forks() {
    let lines = "write /a one\n:fork\nwrite /a two\ncat /a\n:back\ncat /a\n:nonsense\nfalse\n";
    let ran = piped(&["sandbox", "shell", "--backend", "fake"], lines);
    assert_eq!((ran.code, ran.out.trim()), (Some(1), "twoone"), "{}", ran.err);
    assert!(ran.err.contains("`:help` lists"), "{}", ran.err);
}

#[test]
fn a_shell_goes_on_from_states_that_were_kept() {
    let lines = "write /a one\n:snapshot\nwrite /a two\n:restore 1\ncat /a\n:restore 2\n:quit\n";
    let ran = piped(&["sandbox", "shell", "--backend", "fake"], lines);
    assert!(ran.out.contains("one") && !ran.out.contains("two"), "{}", ran.out);
    assert!(ran.err.contains("state `2`: there are 1"), "{}", ran.err);
}

#[test]
fn wrong_sandboxes_are_refused_with_what_would_be_right() {
    let wrong = |options: &[&str], parts: &[&str]| {
        let ran = sandbox("fake", options, &["true"]);
        for part in parts {
            assert!(ran.err.contains(part), "{options:?} does not say {part:?}:\n{}", ran.err);
        }
        ran.code
    };
    assert_eq!(wrong(&["--memory", "12X"], &["such as 512M"]), Some(2));
    assert_eq!(wrong(&["--network", "brdge"], &["none, bridge", "allow:HOST[:PORT]"]), Some(2));
    let lists = ["--network", "allow:a.org,b:0,http://c"];
    assert_eq!(wrong(&lists, &["`b:0`", "`http://c`", "HOST:PORT", "*.name"]), Some(2));
    let bytes = |network| wrong(&["--network", network, "--network-bytes", "1M"], &["allow:HOST"]);
    assert_eq!((bytes("none"), bytes("bridge")), (Some(1), Some(1)));
    let no_bytes = ["--network", "allow:a.org", "--network-bytes", "0"];
    assert_eq!(wrong(&no_bytes, &["max_bytes must be positive"]), Some(1));
    assert_eq!(wrong(&["--mount", "/a"], &["HOST:GUEST"]), Some(2));
    assert_eq!(wrong(&["--env", "A"], &["NAME=VALUE"]), Some(2));
    assert_eq!(wrong(&["--forward", "80:0"], &["LOCAL:PORT"]), Some(2));
    assert_eq!(wrong(&["--tty", "--json"], &["cannot be used with"]), Some(2));
    assert_eq!(wrong(&["--tty"], &["what is none: leave it out"]), Some(1));
    assert_eq!(wrong(&["--memory", "1K", "--pids", "1"], &["at least 6 MiB", "pids"]), Some(1));
    let ran = sandbox("dokcer", &[], &["true"]);
    assert_eq!(ran.code, Some(1));
    for part in ["`dokcer`", "`docker`, `wasm`, `local`", "hint: `spar doctor`"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

#[test]
fn the_doctor_never_fails_and_measures_what_works() {
    let all = succeed(Path::new("."), &["doctor", "--rounds", "0", "--json"]).out;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    for finding in all.as_array().unwrap() {
        let works = finding["works"].as_bool().unwrap();
        // Whatever does not work comes with why.
        assert_eq!(works, finding.get("problem").is_none(), "{finding}");
    }
    let fake = succeed(Path::new("."), &["doctor", "--backend", "fake"]).out;
    assert!(fake.starts_with("BACKEND") && fake.contains("fake") && fake.contains("yes"), "{fake}");
}

#[test]
fn nothing_to_remove_and_nothing_to_list_is_said() {
    let reaped = succeed(Path::new("."), &["reap", "--backend", "fake"]).out;
    assert_eq!(reaped, "fake: 0 removed, 0 in use\n");
    assert_eq!(
        succeed(Path::new("."), &["sandbox", "ls", "--backend", "fake"]).out,
        "no sandboxes\n"
    );
    let json = succeed(Path::new("."), &["sandbox", "ls", "--backend", "fake", "--json"]).out;
    assert_eq!(json, "[]\n");
}

/// Starts a command that does not end by itself, and sends signals to spar one after the other: it
/// ends with the first one's code.
fn interrupted(backend: &str, command: &[&str], signals: &[&str], code: i32) {
    let head = ["sandbox", "run", "--backend", backend, "--"];
    let mut child = spar(Path::new("."), &[&head[..], command].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let begin = Instant::now();
    for signal in signals {
        Command::new("kill").args([*signal, &child.id().to_string()]).status().unwrap();
        // Two at one time may come as one.
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code), "{out}");
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn ctrl_c_ends_the_command_and_removes_the_sandbox() {
    interrupted("fake", &["sleep", "1000"], &["-INT"], 130);
}

#[test]
fn being_asked_to_end_does_the_same() {
    interrupted("fake", &["sleep", "1000"], &["-TERM"], 143);
    if ignores_hangups() {
        eprintln!("not tested: SIGHUP, which whoever started the tests has every program ignore");
        return;
    }
    interrupted("fake", &["sleep", "1000"], &["-HUP"], 129);
}

/// Under `nohup`, what programs start with is that SIGHUP is ignored, and spar leaves it so.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// A web server of this machine is reached where the list names it, and only then.
fn reaches_listed_hosts_alone(backend: &str) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n");
        }
    });
    let fetch = format!(
        "if command -v curl >/dev/null; then curl -s http://{address}/; \
         else wget -q -O - http://{address}/; fi"
    );
    let list = format!("allow:{address},example.org");
    let ran = sandbox(backend, &["--network", &list], &["sh", "-c", &fetch]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hello\n"), "{}", ran.err);
    assert!(!ran.err.contains("refused"), "{}", ran.err);
    let little = ["--network", &list, "--network-bytes", "16"];
    let ran = sandbox(backend, &little, &["sh", "-c", &fetch]);
    assert!(!ran.out.contains("hello"), "{}", ran.out);
    let list =
        ["--network", &format!("allow:{address}"), "--env", "NO_PROXY=", "--env", "no_proxy="];
    let ran = sandbox(backend, &list, &["sh", "-c", &fetch.replace("127.0.0.1", "127.0.0.2")]);
    assert!(!ran.out.contains("hello"), "{}", ran.out);
    assert!(ran.err.contains("note: --network refused 1 connection"), "{}", ran.err);
}

/// What holds on every real backend that has programs.
fn real_backend(backend: &str) {
    let ran = sandbox(backend, &[], &["sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "out\n"), "{}", ran.err);
    assert!(ran.err.contains("err\n"), "{}", ran.err);
    let head = ["sandbox", "run", "--backend", backend, "--", "sh", "-c", "tr a-z A-Z"];
    assert_eq!(piped(&head, "loud").out, "LOUD");
    let late = sandbox(backend, &["--timeout", "2"], &["sleep", "1000"]);
    assert_eq!(late.code, Some(124), "{}", late.err);
    let options = ["--env", "A=1", "--workdir", "/tmp"];
    assert_eq!(sandbox(backend, &options, &["sh", "-c", "echo $A; pwd"]).out, "1\n/tmp\n");
    let shell = piped(
        &["sandbox", "shell", "--backend", backend],
        "cd /tmp\nx=5\n:fork\necho b > f\n:back\nls f\necho $x; pwd\n",
    );
    assert!(shell.out.ends_with("5\n/tmp\n"), "{}\n{}", shell.out, shell.err);
    reaches_listed_hosts_alone(backend);
    interrupted(backend, &["sleep", "1000"], &["-INT"], 130);
    interrupted(backend, &["sleep", "1000"], &["-TERM", "-TERM"], 143);
    interrupted(backend, &["sleep", "1000"], &["-HUP", "-INT"], 129);
    let left = succeed(Path::new("."), &["sandbox", "ls", "--backend", backend, "--json"]).out;
    let left: serde_json::Value = serde_json::from_str(&left).unwrap();
    let dead = |record: &&serde_json::Value| record["owner_state"] == "dead";
    assert_eq!(left.as_array().unwrap().iter().filter(dead).count(), 0, "{left}");
    let doctor = succeed(Path::new("."), &["doctor", "--backend", backend, "--rounds", "2"]).out;
    assert!(doctor.contains("yes"), "{doctor}");
    succeed(Path::new("."), &["reap", "--backend", backend]);
}

/// Three rounds of `scripts/leak_test.sh`, which does fifty by itself.
fn leaves_nothing_when_killed(backend: &str) {
    let seed = std::process::id().to_string();
    let ran = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/leak_test.sh"))
        .args(["--rounds", "3", "--backend", backend, "--seed", &seed])
        .args(["--spar", env!("CARGO_BIN_EXE_spar")])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
}

#[test]
#[ignore = "needs Docker"]
fn killed_runs_leave_nothing_in_docker() {
    leaves_nothing_when_killed("docker");
}

#[test]
#[ignore = "needs namespaces"]
fn killed_runs_leave_nothing_in_namespaces() {
    leaves_nothing_when_killed("local");
}

#[test]
#[ignore = "needs the wasm guests"]
fn killed_runs_leave_nothing_of_wasm_guests() {
    leaves_nothing_when_killed("wasm");
}

/// A port of this machine leads to a server inside, and a terminal here to one there.
fn is_reached_and_operated(backend: &str) {
    let serve = "mkdir -p /tmp/site; echo hello from inside >/tmp/site/page; cd /tmp/site; \
                 if command -v busybox >/dev/null; then exec busybox httpd -f -p 127.0.0.1:8000; \
                 else exec python3 -m http.server --bind 127.0.0.1 8000; fi";
    let head = ["sandbox", "run", "--backend", backend, "--forward", "0:8000", "--", "sh", "-c"];
    let mut child = spar(Path::new("."), &[&head[..], &[serve]].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    let mut told_by = BufReader::new(child.stderr.take().unwrap());
    told_by.read_line(&mut told).unwrap();
    let address = told.split_whitespace().nth(1).unwrap();
    let mut answer = String::new();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let mut rest = String::new();
    told_by.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{told}{rest}");
    assert!(answer.contains(" 200 ") && answer.ends_with("hello from inside\n"), "{answer:?}");

    // `script` gives a terminal; what is piped to it is typed there.
    let program = env!("CARGO_BIN_EXE_spar");
    let command = format!(
        "stty rows 31 cols 97; {program} sandbox run --backend {backend} --tty -- \
         sh -c 'stty size; read -r line; echo got $line; exit 3'"
    );
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    shown.read_line(&mut line).unwrap();
    assert_eq!(line, "31 97\r\n");
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(b"typed\r").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("got typed\r\n"), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(3), "{rest:?}");
}

#[test]
#[ignore = "needs Docker"]
fn the_command_line_works_with_docker() {
    real_backend("docker");
    is_reached_and_operated("docker");
}

#[test]
#[ignore = "needs namespaces"]
fn the_command_line_works_with_namespaces() {
    real_backend("local");
    is_reached_and_operated("local");
}

#[test]
#[ignore = "needs the wasm guests"]
fn the_command_line_works_with_wasm_guests() {
    let python = |options: &[&str], code: &str| {
        sandbox("wasm", &[&["--image", "python"], options].concat(), &["-c", code])
    };
    let ran = python(&[], "print(6*7)");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "42\n"), "{}", ran.err);
    assert_eq!(python(&[], "import sys; sys.exit(3)").code, Some(3));
    assert_eq!(python(&["--fuel", "1000000"], "while True: pass").code, Some(152));
    let chance = "import random, time; print(random.random(), time.time())";
    assert_eq!(python(&["--seed", "7"], chance).out, python(&["--seed", "7"], chance).out);
    assert_ne!(python(&["--seed", "7"], chance).out, python(&["--seed", "8"], chance).out);
}
