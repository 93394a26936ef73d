//! What resets, forks and calls cost, and what a thousand episodes take, side by side with the reference.
//!
//! `TAU2_DATA` is the folder of a release; without it, data of one's own in the shape of the domain mock are used.
//! `TAU2_REFERENCE` is a checkout of the reference with its data, and `TAU2_PYTHON` a Python that has its dependencies: then both
//! sides are measured in one run, on the same tasks and calls.
//!
//! Time is the processor's, so that other work on the machine does not count; what it does to caches still shows, so that the two sides are
//! measured by turns, and of the ratios the median is told. A reset is a copy of the world that the task begins with,
//! which was set up once; how long setting up takes, of which the reference has some in each reset, stands beside it. Calls are the
//! gold calls of all tasks in worlds that were made before: from a name and arguments to the text of the answer.
//! `TAU2_TOOLS=1` tells beside it what a call of each tool takes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use spar_tau2::{Beginning, Called, Domain, DomainName, Release, Tau2Task, World};

/// Allocates as the program `spar` does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long each figure is measured.
const TIME: Duration = Duration::from_millis(1500);
const EPISODES: usize = 1000;
/// How many episodes are weighed together, so that what the process has in reserve hides little.
const WEIGHED: usize = 20_000;
/// How often both sides are measured.
const ROUNDS: usize = 3;

/// A task as it is played: its beginning, and its gold calls.
struct Played {
    beginning: Beginning,
    calls: Vec<Called>,
}

fn main() {
    let release = std::env::var_os("TAU2_DATA").and_then(|path| Release::find(path.as_ref()));
    let mut opened: Vec<(Domain, Vec<Tau2Task>, Duration)> = Vec::new();
    match &release {
        None => {
            let began = worked();
            let (domain, tasks) = own();
            opened.push((domain, tasks, worked() - began));
        }
        Some(release) => {
            for (name, folder) in release.domains() {
                let began = worked();
                let domain = Domain::open(*name, folder).expect("the release can be read");
                let tasks = Domain::read_tasks(folder).expect("its tasks can be read");
                opened.push((domain, tasks, worked() - began));
            }
        }
    }
    for (domain, tasks, took) in opened {
        let name = domain.name;
        println!("{name}: read in {:.1} ms", took.as_secs_f64() * 1e3);
        measure(&Arc::new(domain), &tasks);
    }
}

fn measure(domain: &Arc<Domain>, tasks: &[Tau2Task]) {
    let name = domain.name;
    let began = worked();
    // Tasks whose history holds calls that nobody answered cannot be set up.
    let played: Vec<Played> = tasks
        .iter()
        .filter_map(|task| {
            let state = task.initial_state.as_ref();
            let beginning = Beginning::new(Arc::clone(domain), state, false).ok()?;
            Some(Played { beginning, calls: gold_calls(task) })
        })
        .collect();
    let took = (worked() - began).as_secs_f64();
    println!("{name}: a task is set up in {:.1} us, once", took * 1e6 / played.len() as f64);
    let begin = |played: &Played| played.beginning.world(7).expect("it was set up before");

    // Before anything else, so that no memory that was given back is used again; the hashed rows and what is written once belong
    // to the base.
    for played in &played {
        let mut world = begin(played);
        black_box(world.hash(spar_tau2::Requestor::Assistant));
        played.calls.iter().for_each(|call| drop(world.respond(call)));
    }
    let before = resident();
    let worlds: Vec<World> = (0..WEIGHED)
        .map(|at| {
            let played = &played[at % played.len()];
            let mut world = begin(played);
            played.calls.iter().for_each(|call| drop(world.respond(call)));
            world
        })
        .collect();
    let taken = resident().saturating_sub(before) as f64 / 1e6;
    println!(
        "{name}: {WEIGHED} episodes at the end of their gold calls take {taken:.1} MB, which is {:.2} MB a thousand",
        taken * 1e3 / WEIGHED as f64
    );

    let forks = rate(|| {
        worlds.iter().for_each(|world| drop(black_box(world.clone())));
        worlds.len()
    });
    drop(worlds);
    println!("{name}: {forks:.0} forks/s, which is {:.3} us each", 1e6 / forks);
    let mut reference = Reference::start(name);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let resets = rate(|| {
            played.iter().for_each(|played| drop(black_box(begin(played))));
            played.len()
        });
        let calls = calls_per_second(&played, &begin);
        print!("{name}: {resets:.0} resets/s, {calls:.0} calls/s");
        match reference.as_mut().map(Reference::measure) {
            None => println!(),
            Some([its_resets, its_calls]) => {
                let [of_resets, of_calls] = [resets / its_resets, calls / its_calls];
                println!(
                    "; reference: {its_resets:.1} resets/s, {its_calls:.0} calls/s; times: {of_resets:.0} and {of_calls:.1}"
                );
                ratios.push([of_resets, of_calls]);
            }
        }
    }
    if !ratios.is_empty() {
        let [resets, calls] = [0, 1].map(|part| {
            let mut of: Vec<f64> = ratios.iter().map(|both| both[part]).collect();
            of.sort_by(f64::total_cmp);
            of[of.len() / 2]
        });
        println!(
            "{name}: in the median {resets:.0} times the resets and {calls:.1} times the calls"
        );
    }
    if std::env::var_os("TAU2_TOOLS").is_some() {
        tools(&played, &begin);
    }
}

/// Gold calls in a second, each in the world that the calls before it led to; making the worlds does not count.
fn calls_per_second(played: &[Played], begin: &impl Fn(&Played) -> World) -> f64 {
    let (mut done, mut took) = (0, Duration::ZERO);
    while took < TIME {
        let mut worlds: Vec<World> =
            (0..EPISODES).map(|at| begin(&played[at % played.len()])).collect();
        let began = worked();
        for (at, world) in worlds.iter_mut().enumerate() {
            let calls = &played[at % played.len()].calls;
            for call in calls {
                black_box(world.respond(call));
            }
            done += calls.len();
        }
        took += worked() - began;
    }
    done as f64 / took.as_secs_f64()
}

/// What a gold call of each tool takes.
fn tools(played: &[Played], begin: &impl Fn(&Played) -> World) {
    let mut by_tool: BTreeMap<&str, (u32, Duration)> = BTreeMap::new();
    for _ in 0..20 {
        for played in played {
            let mut world = begin(played);
            for call in &played.calls {
                let began = worked();
                black_box(world.respond(call));
                let (times, took) = by_tool.entry(&call.name).or_default();
                *times += 1;
                *took += worked() - began;
            }
        }
    }
    let clock: Duration = (0..1000).map(|_| worked()).map(|began| worked() - began).sum();
    println!("  the clock itself: {:.2} us", clock.as_secs_f64() * 1e3);
    for (tool, (times, took)) in by_tool {
        println!("  {tool}: {times} times, {:.2} us", took.as_secs_f64() * 1e6 / f64::from(times));
    }
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
fn rate(mut act: impl FnMut() -> usize) -> f64 {
    let (began, mut done) = (worked(), 0);
    while worked() - began < TIME {
        done += act();
    }
    done as f64 / (worked() - began).as_secs_f64()
}

/// What this thread has worked.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("time is not negative");
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).expect("time is not negative"))
}

/// Bytes of this process in memory; 0 where nobody tells.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// The reference, which measures itself when it is asked to.
struct Reference {
    process: Child,
}

impl Reference {
    /// Starts it; absent where nobody says where it is.
    fn start(domain: DomainName) -> Option<Self> {
        let of = |name| std::env::var_os(name);
        let (checkout, python): (OsString, OsString) = (of("TAU2_REFERENCE")?, of("TAU2_PYTHON")?);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reference.py");
        let mut command = Command::new(python);
        command.arg(script).arg(checkout).arg(domain.as_str());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(Self { process: command.spawn().expect("Python can be started") })
    }

    /// Resets and calls per second.
    fn measure(&mut self) -> [f64; 2] {
        let input = self.process.stdin.as_mut().expect("its input is piped");
        writeln!(input).expect("the reference runs");
        let output = self.process.stdout.as_mut().expect("its output is piped");
        let mut line = String::new();
        BufReader::with_capacity(1, output).read_line(&mut line).expect("the reference answers");
        let mut told = line.split_whitespace().map(|number| number.parse().expect("a number"));
        [told.next().expect("resets per second"), told.next().expect("calls per second")]
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // At the end of its input it ends.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
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
