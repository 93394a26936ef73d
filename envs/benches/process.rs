//! What a step in a program costs beyond the program's own time, and many sessions at one time.
//!
//! The program of the first figure is this one, which measures its own time: from a whole request to the answer that is about
//! to be written. The second is `examples/process/python-guess`.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use spar_core::{Action, Seed};
use spar_envs::{Resources, open_environment};
use spar_tasks::{ProcessSuite, ProgramLimits, ProgramSpec, Suite, Task};

const STEPS: usize = 20_000;
const ROUNDS: usize = 5;
const AT_ONCE: usize = 64;
const LASTING: Duration = Duration::from_secs(3);
/// Tells this program to be the one that is measured.
const AS_PROGRAM: &str = "SPAR_BENCH_PROGRAM";

fn main() {
    if std::env::var_os(AS_PROGRAM).is_some() {
        return be_program();
    }
    for cores in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores)
            .enable_all()
            .build()
            .expect("a runtime can be started");
        runtime.block_on(async {
            for _ in 0..ROUNDS {
                step_cost(cores).await;
            }
        });
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    runtime.block_on(async {
        for (programs, sessions) in [(1, 64), (2, 32), (16, 4)] {
            many(programs, sessions).await;
        }
    });
}

/// Answers as fast as it can, and tells in `reward` how many microseconds it took for that.
fn be_program() {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let text = "You are in a room. There is a fridge 1, and a table 1. ".repeat(4);
    let (mut line, mut own) = (String::new(), 0.0);
    while input.read_line(&mut line).is_ok_and(|count| count > 0) {
        let began = Instant::now();
        let request: serde_json::Value = serde_json::from_str(&line).expect("spar writes JSON");
        let answer = match request["call"].as_str() {
            Some("hello") => json!({ "id": request["id"], "protocol": 1 }),
            Some("step") => {
                json!({ "id": request["id"], "observation": { "text": text }, "reward": own })
            }
            _ => json!({ "id": request["id"], "observation": { "text": text } }),
        };
        let answer =
            if request["call"] == "close" { json!({ "id": request["id"] }) } else { answer };
        let mut answer = answer.to_string();
        answer.push('\n');
        own = began.elapsed().as_secs_f64() * 1e6;
        if output.write_all(answer.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
        line.clear();
    }
}

async fn step_cost(cores: usize) {
    let spec = ProgramSpec {
        name: "bench".to_owned(),
        folder: None,
        command: vec![std::env::current_exe().expect("it runs").display().to_string()],
        workdir: None,
        env: [(AS_PROGRAM.to_owned(), "1".to_owned())].into(),
        pass_env: Vec::new(),
        actions: Default::default(),
        whole_answers: false,
        timeouts: Default::default(),
        limits: ProgramLimits::default(),
        sandbox: None,
    };
    let task = Task {
        id: "bench/test/0".to_owned(),
        environment: "process".to_owned(),
        parameters: json!({ "program": spec, "task": {} }),
        instruction: String::new(),
        max_turns: u32::MAX,
        tags: Vec::new(),
        graders: Vec::new(),
    };
    let resources = Resources::default();
    // A task of its own, as episodes are.
    let stepped = tokio::spawn(async move {
        let mut env = open_environment(&task, &resources).expect("it opens");
        env.reset(Seed::from_u64(1)).await.expect("it is reset");
        let action = Action::text("go to fridge 1");
        let mut beyond = Vec::with_capacity(STEPS);
        let (mut own, mut last) = (0.0, None);
        for _ in 0..STEPS {
            let began = Instant::now();
            let step = env.step(&action).await.expect("it steps");
            // An answer tells what the one before it took.
            if let Some(wall) = last.replace(began.elapsed()) {
                own += step.reward();
                beyond.push(wall.as_secs_f64() * 1e6 - step.reward());
            }
        }
        env.close().await.expect("it is closed");
        resources.close_programs().await;
        (beyond, own / STEPS as f64)
    });
    let (mut beyond, own) = stepped.await.expect("it does not panic");
    let mean = beyond.iter().sum::<f64>() / beyond.len() as f64;
    beyond.sort_by(f64::total_cmp);
    let at = |share: f64| beyond[(beyond.len() as f64 * share) as usize];
    println!(
        "a step beyond the program's own {own:.1} us, on {cores} threads: median {:.1} us, mean {mean:.1} us, 99 % {:.1} us",
        at(0.5),
        at(0.99)
    );
}

/// Sessions that are played one after the other in each of many places, for a while.
async fn many(programs: usize, sessions: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/process/python-guess");
    let suite = Arc::new(ProcessSuite::open(&folder).expect("the example is there"));
    let resources = Resources::default();
    let until = Instant::now() + LASTING;
    let began = Instant::now();
    let episodes = (0..AT_ONCE).map(|number| {
        let (suite, resources) = (Arc::clone(&suite), resources.clone());
        tokio::spawn(async move {
            let (mut steps, mut solved, mut played) = (0_u64, 0_u64, 0_u64);
            while Instant::now() < until {
                let index = (number * 131 + played as usize) % 10_000;
                let mut task = suite.task("train", index).expect("it is there");
                task.parameters["program"]["limits"] =
                    json!({ "programs": programs, "sessions_per_program": sessions });
                let mut env = open_environment(&task, &resources).expect("it opens");
                env.reset(Seed::from_u64(played)).await.expect("it is reset");
                for guess in 1..=9 {
                    let step = env.step(&Action::text(guess.to_string())).await.expect("it steps");
                    steps += 1;
                    if step.terminated {
                        solved += u64::from(step.success);
                        break;
                    }
                }
                env.close().await.expect("it is closed");
                played += 1;
            }
            (steps, solved, played)
        })
    });
    let all = join_all(episodes).await;
    let seconds = began.elapsed().as_secs_f64();
    let (mut steps, mut solved, mut played) = (0, 0, 0);
    for one in all {
        let (more, won, episodes) = one.expect("it does not panic");
        (steps, solved, played) = (steps + more, solved + won, played + episodes);
    }
    resources.close_programs().await;
    println!(
        "{AT_ONCE} sessions at one time in {programs} programs of Python, on 2 threads: {:.0} steps per second, {played} episodes, \
         {solved} solved",
        steps as f64 / seconds
    );
    assert_eq!(played, solved, "all were completed");
}
