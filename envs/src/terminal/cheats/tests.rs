//! All backends of the registry against the cheats.

use std::collections::HashSet;

use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::registry::{backend_registry, open};

use super::problem::ANSWER;
use super::*;

/// Cheats that must not be skipped on any backend with programs of POSIX, whatever else it lacks.
fn for_every_posix() -> impl Iterator<Item = &'static Cheat> {
    CHEATS
        .iter()
        .filter(|cheat| cheat.needs.iter().all(|need| matches!(need, Need::Posix | Need::Fork)))
}

/// Plays all cheats on the backend of this name; those that it must hold off are `expected`.
async fn held_off_on(name: &str, also: &[Need]) {
    let backend = open(name).unwrap();
    let began = Instant::now();
    let report = run(&backend, &Options::default()).await;
    println!("{report}, in {:.1} s", began.elapsed().as_secs_f64());
    assert!(report.is_passed(), "{report}");
    let held: HashSet<&str> = report.held_off().collect();
    for cheat in CHEATS {
        let is_pinned = cheat.needs.iter().all(|need| *need == Need::Posix || also.contains(need));
        assert!(!is_pinned || held.contains(cheat.name), "not tried: {}\n{report}", cheat.name);
    }
}

#[test]
fn there_are_thirty_cheats_and_none_knows_the_answer() {
    assert!(CHEATS.len() >= 30, "{}", CHEATS.len());
    assert!(for_every_posix().count() >= 30, "{}", for_every_posix().count());
    let mut names = HashSet::new();
    for cheat in CHEATS {
        assert!(names.insert(cheat.name), "{} is there twice", cheat.name);
        assert!(!cheat.guards.is_empty() && !cheat.commands.is_empty(), "{}", cheat.name);
        assert!(!cheat.commands.iter().any(|text| text.contains(ANSWER)), "{}", cheat.name);
        for sandbox in ["same", "fresh"] {
            let sandbox = serde_json::from_value(sandbox.into()).unwrap();
            let problems = cheat.problem.task(sandbox).problems();
            assert_eq!(problems, Vec::<String>::new(), "{}", cheat.name);
        }
    }
}

#[test]
fn every_backend_of_the_registry_is_walked() {
    let walked = ["docker", "wasm", "local", "fake"];
    let names: Vec<&str> = backend_registry().iter().map(|entry| entry.name).collect();
    assert_eq!(names, walked, "a backend needs its test below");
}

#[tokio::test]
async fn the_fake_backend_holds_off_what_needs_no_processes() {
    let backend: Arc<dyn SandboxBackend> = Arc::new(FakeBackend::new());
    let report = run(&backend, &Options::default()).await;
    assert!(report.is_passed(), "{report}");
    let without_needs = CHEATS.iter().filter(|cheat| cheat.needs.is_empty()).count();
    assert!(without_needs >= 9);
    assert_eq!(report.held_off().count(), without_needs, "{report}");
}

#[tokio::test]
async fn a_cheat_that_nothing_holds_off_is_told() {
    // It solves the problem, which no guard can tell from an honest agent.
    let solved = Cheat { commands: &["echo xyzzy-5313 > out.txt"], ..CHEATS[0] };
    let solved = Box::leak(Box::new(Cheat { problem: Problem::Answer, ..solved }));
    // And this one does nothing, so that no guard is needed.
    let idle = Box::leak(Box::new(Cheat { commands: &["true"], ..*solved }));
    let config = PoolConfig::default();
    let pool = SandboxPool::new(Arc::new(FakeBackend::new()), config).unwrap();
    let harness = Harness::new(Arc::new(pool), Image::Default);
    let Verdict::Failed { reason } = play(&harness, solved).await else { panic!("it passed") };
    assert!(reason.contains("with all guards: it was judged with 1"), "{reason}");
    let Verdict::Failed { reason } = play(&harness, idle).await else { panic!("it passed") };
    assert!(reason.contains("it holds nothing off"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn docker_containers_hold_off_cheats() {
    use Need::{Fork, MemoryLimit, OtherProcesses, ProcessLimit};
    held_off_on("docker", &[Fork, OtherProcesses, MemoryLimit, ProcessLimit]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_hold_off_cheats() {
    held_off_on("local", &[Need::Fork, Need::DiskLimit]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the wasm guests"]
async fn wasm_guests_hold_off_cheats() {
    let backend = open("wasm").unwrap();
    let report = run(&backend, &Options::default()).await;
    println!("{report}");
    assert!(report.is_passed(), "{report}");
    let without_needs = CHEATS.iter().filter(|cheat| cheat.needs.is_empty()).count();
    assert_eq!(report.held_off().count(), without_needs, "{report}");
}
