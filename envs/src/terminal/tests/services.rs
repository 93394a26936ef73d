//! Services that are judged from a fresh sandbox, honest ones and those of cheats.

use std::sync::OnceLock;

use super::*;

/// A web server on port 8080 is to answer `/answer` with what the verifier expects.
const TASK: &str = r#"{
    "instruction": "Serve the answer at /answer on port 8080.", "command_secs": 20,
    "setup": ["mkdir -p www"],
    "verifier": {
        "command": "sh /tests/test.sh", "sandbox": "fresh", "service_ports": [8080], "service_secs": 3,
        "reward_file": "/logs/reward", "verify_secs": 10,
        "files": {
            "expected": "xyzzy-5313\n",
            "test.sh": "mkdir -p /logs; echo 0 >/logs/reward; for i in 1 2 3; do [ \"$(wget -q -O - http://$SERVICE_8080/answer)\" = \"$(cat /tests/expected)\" ] || exit 1; done; echo 1 >/logs/reward"
        }
    }}"#;

/// Starts a server of the folder `www` that runs on.
const SERVE: &str = "(setsid busybox httpd -f -p 8080 -h /task/www </dev/null >/dev/null 2>&1 &)";

fn task() -> TerminalTask {
    serde_json::from_str(TASK).unwrap()
}

struct Bench {
    pool: Arc<SandboxPool>,
}

impl Bench {
    fn new(backend: &str) -> Self {
        let backend = spar_sandbox::registry::open(backend).unwrap();
        let config = PoolConfig { max_live: 2, ..PoolConfig::default() };
        Self { pool: Arc::new(SandboxPool::new(backend, config).unwrap()) }
    }

    /// The reward of an agent that does this, and what the verdict says.
    async fn judged(&self, task: &TerminalTask, commands: &[&str]) -> (f64, String) {
        let resources = Resources::with_sandboxes(Sandboxes::new(Arc::clone(&self.pool)));
        let mut env = Terminal::open(&task_of(task), &resources).unwrap();
        env.reset(Seed::from_u64(0)).await.unwrap();
        for command in commands {
            env.step(&(*command).into()).await.unwrap();
        }
        env.step(&SUBMIT.into()).await.unwrap();
        let verdict = env.verify().await.unwrap().unwrap_or_default();
        env.close().await.unwrap();
        (verdict.reward(), verdict.details)
    }
}

async fn services_are_judged_by_what_they_answer(backend: &str) {
    let bench = Bench::new(backend);
    let answer = "echo xyzzy-5313 >www/answer";
    let (reward, said) = bench.judged(&task(), &[answer, SERVE]).await;
    assert_eq!(reward, 1.0, "honest: {said}");

    // Agents that solve nothing.
    let late = "(setsid sh -c 'sleep 600; busybox httpd -f -p 8080' </dev/null >/dev/null 2>&1 &)";
    let once = "(setsid sh -c 'printf \"HTTP/1.0 200 OK\\r\\n\\r\\nxyzzy-5313\\n\" | busybox nc -l -p 8080' \
                </dev/null >/dev/null 2>&1 &)";
    let held = "(setsid sh -c 'echo $$ >/task/pid; exec busybox httpd -f -p 8080 -h /task/www' </dev/null \
                >/dev/null 2>&1 &)";
    // Its own files, at the places of the judge's, while the judge works.
    let forges = "(setsid sh -c 'mkdir -p /logs /tests; while :; do echo 1 >/logs/reward; echo exit 0 >/tests/test.sh; \
                  cp /tests/expected /task/www/answer; done' </dev/null >/dev/null 2>&1 &)";
    // What it can see of the judge's processes and their files would hold the expected answer.
    let looks = "(setsid sh -c 'while :; do cat /proc/[0-9]*/root/tests/expected >/task/found && \
                 cp /task/found /task/www/answer; done' </dev/null >/dev/null 2>&1 &)";
    let cheats: [(&str, &[&str]); 7] = [
        ("nothing", &["true"]),
        ("a service that comes too late", &[answer, late]),
        ("a wrong answer", &["echo 1 >www/answer", SERVE]),
        ("a service that dies behind its first answer", &[once, "sleep 1"]),
        ("a service that is stopped", &[answer, held, "sleep 1; kill -STOP $(cat pid)"]),
        ("files at the places of the judge's", &["echo 1 >www/answer", SERVE, forges]),
        ("a search for the judge's files", &["echo 1 >www/answer", SERVE, looks]),
    ];
    for (name, commands) in cheats {
        let (reward, said) = bench.judged(&task(), commands).await;
        assert_eq!(reward, 0.0, "{name}: {said}");
    }
    // Nothing is left, and two sandboxes at one time were enough.
    bench.pool.shutdown().await;
    assert_eq!(bench.pool.metrics().live, 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn services_are_judged_from_a_fresh_sandbox_on_docker() {
    services_are_judged_by_what_they_answer("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn services_are_judged_from_a_fresh_sandbox_in_namespaces() {
    let backend = spar_sandbox::registry::open("local").unwrap();
    let sandbox = backend
        .create(&spar_sandbox::SandboxSpec::new(spar_sandbox::Image::Default))
        .await
        .unwrap();
    let looks = spar_sandbox::ExecRequest::sh(
        "busybox httpd --help 2>&1 | grep -q Usage && command -v wget",
    );
    let has_server = sandbox.exec(&looks).await.unwrap().end.is_success();
    sandbox.close().await.unwrap();
    if !has_server {
        println!("skipped: the host has no busybox or no wget");
        return;
    }
    services_are_judged_by_what_they_answer("local").await;
}

#[tokio::test]
async fn services_that_cannot_be_reached_are_refused_before_anything_is_played() {
    let resources = Resources::with_sandboxes(sandboxes(&FakeBackend::new()));
    let error = Terminal::open(&task_of(&task()), &resources).err().unwrap();
    assert!(error.to_string().contains("cannot reach services"), "{error}");
}

/// One of whose sandboxes port 80 answers with what it is sent.
fn serving() -> FakeBackend {
    FakeBackend::new().with_allow_lists().with_service(80, echo)
}

async fn echo(stream: tokio::io::DuplexStream) {
    let (mut from, mut to) = tokio::io::split(stream);
    // Whoever only looks whether somebody listens is gone by then.
    let _ = tokio::io::copy(&mut from, &mut to).await;
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut to).await;
}

/// A service on port 80 is asked for something.
fn asked() -> TerminalTask {
    let mut task = TerminalTask::new("Serve.", "ask service.internal:80 hello");
    task.verifier.sandbox = VerifierSandbox::Fresh;
    task.verifier.service_ports = vec![80];
    task.verifier.service_secs = 1;
    task
}

#[tokio::test]
async fn a_service_is_judged_once_and_by_what_it_answers() {
    let backend = serving();
    let mut env = begun(&backend, &asked()).await;
    text(&mut env, "echo 1 > a").await;
    // That closing fails takes nothing from what was found.
    backend.set_faults(FakeFaults { failing_closes: 1, ..FakeFaults::default() });
    let verdict = env.verify().await.unwrap().unwrap();
    assert!(verdict.success, "{}", verdict.details);
    assert_eq!(backend.most_live(), 2);
    let again = env.verify().await.unwrap_err();
    assert!(matches!(again, EnvironmentError::Misused { call: "verify", .. }), "{again}");
    env.close().await.unwrap();

    // What is not listed or not there is not reached.
    for command in ["ask service.internal:81 hello", "ask other.internal:80 hello", "false"] {
        let mut task = asked();
        task.verifier.command = command.to_owned();
        let mut env = begun(&serving(), &task).await;
        let verdict = env.verify().await.unwrap().unwrap();
        assert_eq!((verdict.success, verdict.reward()), (false, 0.0), "{command}");
        env.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_there_is_nothing_to_judge() {
    let backend = FakeBackend::new().with_allow_lists();
    let mut env = begun(&backend, &asked()).await;
    let verdict = env.verify().await.unwrap().unwrap();
    assert!(verdict.details.contains("nobody listens"), "{}", verdict.details);
    assert!(!verdict.success);
    env.close().await.unwrap();
    assert_eq!(backend.num_live(), 0);
}

#[tokio::test]
async fn what_keeps_a_verifier_from_a_service_is_looked_into() {
    // The second connection is the verifier's; other sandboxes can be had or not at that time.
    for failing_creates in [0, 9] {
        let handle = Arc::new(OnceLock::<FakeBackend>::new());
        let own = Arc::clone(&handle);
        let backend = FakeBackend::with_script(move |request, _| {
            if request.command.join(" ").contains("ask ") {
                let faults = FakeFaults {
                    failing_creates,
                    fails_at_connect: Some(2),
                    ..FakeFaults::default()
                };
                own.get().unwrap().set_faults(faults);
            }
            None
        });
        let backend = backend.with_allow_lists().with_service(80, echo);
        handle.set(backend.clone()).unwrap();
        let mut env = begun(&backend, &asked()).await;
        text(&mut env, "echo 1 > a").await;
        match env.verify().await {
            Ok(verdict) => {
                assert_eq!(failing_creates, 0);
                assert!(!verdict.unwrap().success);
            }
            Err(error) => {
                assert_eq!(failing_creates, 9);
                let EnvironmentError::Sandbox { phase: SandboxPhase::Verify, source } = error
                else {
                    panic!("{error}");
                };
                assert_eq!(source.to_string(), "connect to the sandbox");
            }
        }
        env.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_judge_is_not_waited_for_without_end() {
    let backend = serving();
    let sandboxes = sandboxes(&backend);
    let resources = Resources::with_sandboxes(sandboxes.clone());
    let mut env = Terminal::open(&task_of(&asked()), &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    env.prepare().await.unwrap();
    let held = sandboxes.judging(Duration::ZERO).await.unwrap();
    let EnvironmentError::Sandbox { phase: SandboxPhase::Verify, source } =
        env.verify().await.unwrap_err()
    else {
        panic!("another error");
    };
    assert!(source.to_string().contains("the turn of this one"), "{source}");
    drop(held);
    assert!(env.verify().await.unwrap().unwrap().success);
    env.close().await.unwrap();
}

#[tokio::test]
async fn what_runs_on_is_not_lost_in_a_fork() {
    let mut env = begun(&serving(), &asked()).await;
    env.prepare().await.unwrap();
    assert!(env.fork().await.unwrap().is_some(), "nothing was done yet");
    text(&mut env, "echo 1 > a").await;
    assert!(env.fork().await.unwrap().is_none(), "a fork would have no service");
    env.close().await.unwrap();
    let mut env = begun(&serving(), &chore()).await;
    text(&mut env, "echo 1 > a").await;
    assert!(env.fork().await.unwrap().is_some());
    env.close().await.unwrap();
}
