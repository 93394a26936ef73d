//! Many sandboxes at one time, and warm ones, through a pool.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::{backend, eventually, sh, spec};
use crate::pool::{PoolConfig, SandboxPool};
use crate::{ExecRequest, OwnerState, Sandbox, SandboxBackend};

/// Containers at one time where the variable names no other number.
const CONTAINERS: (&str, usize) = ("SPAR_TEST_CONTAINERS", 16);
const ACTIONS: usize = 10;

async fn own_ids(backend: &dyn SandboxBackend) -> Vec<String> {
    let records = backend.list().await.unwrap();
    let own = records.into_iter().filter(|record| record.owner_state == OwnerState::Own);
    own.map(|record| record.id).collect()
}

/// A variable that one test's containers have: all tests of this process are one owner.
const MARK: &str = "SPAR_TEST_WARM";

/// The containers that have the variable.
async fn marked_ids(backend: &dyn SandboxBackend) -> Vec<String> {
    let is_marked = |id: &String| {
        let arguments = ["inspect", "--format", "{{.Config.Env}}", id];
        let told = Command::new("docker").args(arguments).output().unwrap();
        String::from_utf8_lossy(&told.stdout).contains(MARK)
    };
    own_ids(backend).await.into_iter().filter(is_marked).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn many_containers_that_do_much_meet_no_error_and_leave_nothing() {
    let containers = std::env::var(CONTAINERS.0).ok().and_then(|text| text.parse().ok());
    let containers = containers.unwrap_or(CONTAINERS.1);
    let backend = Arc::new(backend().await);
    let config = PoolConfig { max_live: containers, ..PoolConfig::default() };
    let pool = SandboxPool::new(Arc::clone(&backend) as _, config).unwrap();
    let begun = Instant::now();
    let each = (0..containers).map(async |number: usize| {
        let sandbox = pool.acquire(&spec()).await?;
        let mut times = Vec::new();
        for action in 0..ACTIONS {
            let script = format!("echo {number}.{action} | tee -a /log; cat /log | wc -l");
            let begun = Instant::now();
            let result = sandbox.exec(&ExecRequest::sh(&script)).await?;
            times.push(begun.elapsed());
            // Nobody else's output, and its own files.
            assert_eq!(result.stdout.text(), format!("{number}.{action}\n{}\n", action + 1));
        }
        let id = sandbox.id().to_owned();
        sandbox.close().await?;
        Ok::<_, crate::SandboxError>((id, times))
    });
    let done = join_all(each).await;
    let errors: Vec<_> = done.iter().filter_map(|done| done.as_ref().err()).collect();
    assert!(errors.is_empty(), "{} errors: {:?}", errors.len(), errors.first());
    let wall = begun.elapsed();
    let (ids, times): (Vec<_>, Vec<_>) = done.into_iter().flatten().unzip();
    let mut times = times.concat();
    times.sort();
    assert_eq!(times.len(), containers * ACTIONS);
    println!(
        "{containers} containers, {ACTIONS} execs each: {:.1} s, exec median {:.0} ms, 95 % {:.0} ms",
        wall.as_secs_f64(),
        times[times.len() / 2].as_secs_f64() * 1e3,
        times[times.len() * 19 / 20].as_secs_f64() * 1e3,
    );
    pool.shutdown().await;
    let metrics = pool.metrics();
    assert_eq!((metrics.live, metrics.close_failures, metrics.start_failures), (0, 0, 0));
    let left = own_ids(&*backend).await;
    assert!(ids.iter().all(|id| !left.contains(id)), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn warm_containers_are_handed_out_alive_and_once() {
    let backend = Arc::new(backend().await);
    let pool = SandboxPool::new(Arc::clone(&backend) as _, PoolConfig::default()).unwrap();
    let mut spec = spec();
    spec.env.insert(MARK.into(), "1".into());
    pool.keep_warm(&spec, 3);
    eventually(async || pool.metrics().warm == 3).await;
    let before = marked_ids(&*backend).await;
    assert_eq!(before.len(), 3);
    let begun = Instant::now();
    let one = pool.acquire(&spec).await.unwrap();
    println!("handed out after {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert!(before.iter().any(|id| id == one.id()), "it was there before");
    sh(&one, "echo used >/mark").await;
    let used = one.id().to_owned();
    drop(one);
    // It never comes back, and another takes its place.
    eventually(async || pool.metrics().warm == 3).await;
    eventually(async || !own_ids(&*backend).await.contains(&used)).await;
    // One that somebody kills on its shelf is passed over.
    let ids = marked_ids(&*backend).await;
    let oldest = before.iter().filter(|id| ids.contains(id)).collect::<Vec<_>>();
    for id in &oldest {
        let killed = Command::new("docker").args(["kill", id]).output().unwrap();
        assert!(killed.status.success(), "{killed:?}");
    }
    for _ in 0..3 {
        let next = pool.acquire(&spec).await.unwrap();
        assert!(!oldest.iter().any(|id| *id == next.id()), "a dead one was handed out");
        assert_eq!(sh(&next, "ls /mark 2>/dev/null; echo fresh").await, "fresh\n");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    pool.shutdown().await;
    assert_eq!(pool.metrics().live, 0);
}
