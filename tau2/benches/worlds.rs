//! What resets, forks and calls cost, and what a thousand episodes take, side by side with the reference.
//!
//! `TAU2_DATA` is the folder of a release; without it, data of one's own in the shape of the domain mock are used.
//! `TAU2_REFERENCE` is a checkout of the reference with its data, and `TAU2_PYTHON` a Python that has its dependencies: then both
//! sides are measured in one run, on the same tasks and calls.

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use spar_tau2::{Called, Domain, DomainName, Release, Tau2Task, World};

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(1500);
const EPISODES: usize = 1000;

fn main() {
    let release = std::env::var_os("TAU2_DATA").and_then(|path| Release::find(path.as_ref()));
    let domains: Vec<(Domain, Vec<Tau2Task>)> = match &release {
        None => vec![own()],
        Some(release) => release
            .domains()
            .iter()
            .map(|(name, folder)| {
                let domain = Domain::open(*name, folder).expect("the release can be read");
                (domain, Domain::read_tasks(folder).expect("its tasks can be read"))
            })
            .collect(),
    };
    for (domain, tasks) in domains {
        let (name, domain) = (domain.name, Arc::new(domain));
        measure(&domain, &tasks);
        reference(name);
    }
}

fn measure(domain: &Arc<Domain>, tasks: &[Tau2Task]) {
    let begin = |task: &Tau2Task| {
        let mut world = World::new(Arc::clone(domain), false, 0);
        world.initialise(task.initial_state.as_ref()).map(|()| world)
    };
    // Tasks whose history holds calls that nobody answered cannot be set up.
    let tasks: Vec<_> = tasks.iter().filter(|task| begin(task).is_ok()).collect();
    // Before anything else, so that no memory that was given back is used again; the hashed rows belong to the base.
    let warm = begin(tasks[0]).expect("it was set up before");
    black_box(warm.hash(spar_tau2::Requestor::Assistant));
    let before = resident();
    let worlds: Vec<World> = (0..EPISODES)
        .map(|at| {
            let task = tasks[at % tasks.len()];
            let mut world = begin(task).expect("it was set up before");
            for call in gold_calls(task) {
                black_box(world.respond(&call));
            }
            world
        })
        .collect();
    let after = resident();
    println!(
        "{}: {} episodes at the end of their gold calls take {:.1} MB",
        domain.name,
        worlds.len(),
        after.saturating_sub(before) as f64 / 1e6
    );
    drop(worlds);

    let resets = rate(|at| {
        black_box(begin(tasks[at % tasks.len()]).expect("it was set up before"));
        1
    });
    let world = begin(tasks[0]).expect("it was set up before");
    let forks = rate(|_| {
        black_box(world.clone());
        1
    });
    let mut failed = 0;
    let calls = rate(|at| {
        let task = tasks[at % tasks.len()];
        let mut world = begin(task).expect("it was set up before");
        let calls = gold_calls(task);
        failed += calls.iter().filter(|call| world.respond(call).error).count();
        calls.len()
    });
    println!(
        "{}: {resets:.0} resets/s, {forks:.0} forks/s, {calls:.0} calls/s with a reset for each task",
        domain.name
    );
}

fn gold_calls(task: &Tau2Task) -> Vec<Called> {
    let criteria = task.evaluation_criteria.as_ref();
    let actions = criteria.and_then(|criteria| criteria.actions.as_deref()).unwrap_or_default();
    let called = |action: &spar_tau2::GoldAction| Called {
        id: action.action_id.clone(),
        name: action.name.clone(),
        arguments: action.arguments.clone(),
        requestor: action.requestor,
    };
    actions.iter().map(called).collect()
}

/// How often something happens in a second; `act` says how often it did.
fn rate(mut act: impl FnMut(usize) -> usize) -> f64 {
    let (began, mut done, mut at) = (Instant::now(), 0, 0);
    while began.elapsed() < TIME {
        done += act(at);
        at += 1;
    }
    done as f64 / began.elapsed().as_secs_f64()
}

/// Bytes of this process in memory; 0 where nobody tells.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn reference(domain: DomainName) {
    let (Some(checkout), Some(python)) =
        (std::env::var_os("TAU2_REFERENCE"), std::env::var_os("TAU2_PYTHON"))
    else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reference.py");
    let status = Command::new(python).arg(script).arg(checkout).arg(domain.as_str()).status();
    assert!(status.expect("Python can be started").success());
}

fn own() -> (Domain, Vec<Tau2Task>) {
    let ids = 0..2000;
    let users: Map<String, Value> = ids
        .map(|at| {
            let id = format!("user_{at}");
            (id.clone(), json!({ "user_id": id, "name": "Someone", "tasks": [] }))
        })
        .collect();
    let database = json!({ "tasks": {}, "users": users });
    let domain = Domain::mock(&database, &json!({}), "policy", "policy").expect("the data fit");
    let task = |at: usize| {
        let arguments = json!({ "user_id": format!("user_{at}"), "title": "Something" });
        let task = json!({
            "id": at.to_string(), "user_scenario": { "instructions": "i" },
            "evaluation_criteria": { "actions": [{ "action_id": "a", "name": "create_task", "arguments": arguments }] },
        });
        serde_json::from_value(task).expect("it is a task")
    };
    (domain, (0..100).map(task).collect())
}
