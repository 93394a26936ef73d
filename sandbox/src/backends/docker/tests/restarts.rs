//! What becomes of sandboxes when their daemon ends, hangs and comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::private_engine::PrivateEngine;
use super::{eventually, sh, spec};
use crate::backends::docker::DockerBackend;
use crate::pool::{BreakerConfig, BreakerState, PoolConfig, SandboxPool};
use crate::{Death, ExecRequest, Sandbox, SandboxBackend, SandboxError, SandboxSpec, ShellOptions};

const LONG: Duration = Duration::from_secs(600);

fn config() -> PoolConfig {
    PoolConfig {
        max_live: 8,
        acquire_secs: 60,
        breaker: BreakerConfig { failures: 3, first_wait_ms: 200, longest_wait_ms: 1000 },
        ..PoolConfig::default()
    }
}

async fn pool(engine: &PrivateEngine) -> (Arc<SandboxPool>, Arc<DockerBackend>) {
    let backend = Arc::new(DockerBackend::connect_many([engine.host()]).await.unwrap());
    let pool = SandboxPool::new(Arc::clone(&backend) as _, config()).unwrap();
    (Arc::new(pool), backend)
}

/// Another spec, which no sandbox is warm of.
fn other() -> SandboxSpec {
    let mut other = spec();
    other.env.insert("OTHER".into(), "1".into());
    other
}

fn is_gone(error: &SandboxError) -> bool {
    matches!(error, SandboxError::Died { death: Death::DaemonGone, .. })
}

/// What three sandboxes, a caller who wants a fourth and the pool make of the end of their daemon.
async fn outlive(end: impl FnOnce(&mut PrivateEngine), is_told: fn(&SandboxError) -> bool) {
    let mut engine = PrivateEngine::docker().await;
    let (pool, backend) = pool(&engine).await;
    pool.keep_warm(&spec(), 1);
    let [one, two, three] = [
        pool.acquire(&spec()).await.unwrap(),
        pool.acquire(&spec()).await.unwrap(),
        pool.acquire(&spec()).await.unwrap(),
    ];
    let old = [&one, &two, &three].map(|sandbox| sandbox.id().to_owned());
    let mut shell = two.open_shell(&ShellOptions::default()).await.unwrap();
    shell.run("x=1", LONG).await.unwrap();
    eventually(async || pool.metrics().warm == 1).await;

    // 1. Everything that runs ends in time, and says why.
    let sleep = ExecRequest::sh("sleep 1234").with_timeout(LONG);
    let exec = async { one.exec(&sleep).await.unwrap_err() };
    let session = async { shell.run("sleep 1234", LONG).await.unwrap_err() };
    let files = async {
        loop {
            if let Err(error) = three.write_file("/file", &vec![0; 1 << 20], 0o644).await {
                return error;
            }
        }
    };
    let creates = async {
        loop {
            if let Err(error) = pool.acquire(&other()).await {
                return error;
            }
        }
    };
    let ending = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        tokio::task::block_in_place(|| end(&mut engine));
    };
    let all = async { tokio::join!(exec, session, files, creates, ending) };
    let ended = tokio::time::timeout(Duration::from_secs(90), all).await;
    let (exec, session, files, create, ()) = ended.expect("all of it ends in time");
    for error in [&exec, &session, &files] {
        assert!(is_told(error), "{error:?}");
    }
    assert!(create.is_infrastructure(), "{create:?}");

    // 2. The breaker opens, so that callers hear of it at once.
    let until = Instant::now() + Duration::from_secs(60);
    while pool.metrics().breaker == BreakerState::Closed {
        assert!(Instant::now() < until, "{:?}", pool.metrics());
        let error = pool.acquire(&other()).await.err().expect("there is no daemon");
        assert!(error.is_infrastructure(), "{error:?}");
    }
    // Those that are given up meanwhile cannot be removed yet.
    drop(shell);
    drop((one, two));
    eventually(async || pool.metrics().close_failures >= 2).await;

    // 3. When the daemon is back, so are sandboxes, and what could not be removed goes.
    engine.again().await;
    let mut new = None;
    eventually(async || {
        new = pool.acquire(&spec()).await.ok();
        new.is_some()
    })
    .await;
    let new = new.expect("it was just got");
    assert_eq!(sh(&new, "echo back").await, "back\n");
    assert_eq!(pool.metrics().breaker, BreakerState::Closed);
    let error = three.exec(&ExecRequest::sh("true")).await.unwrap_err();
    assert!(matches!(error, SandboxError::Died { .. }), "{error:?}");
    drop(three);
    eventually(async || {
        let listed = backend.list().await.unwrap();
        !listed.iter().any(|record| old.contains(&record.id))
    })
    .await;
    assert_eq!(sh(&new, "echo still").await, "still\n");
    drop(new);
    pool.shutdown().await;
    assert_eq!(engine.docker_cli(&["ps", "--all", "--quiet"]), "");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_daemon_that_is_killed_is_survived() {
    outlive(PrivateEngine::kill, is_gone).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_daemon_that_is_stopped_is_survived() {
    // It kills its sandboxes first, and tells so as long as it is asked.
    let is_told = |error: &SandboxError| matches!(error, SandboxError::Died { .. });
    outlive(PrivateEngine::stop, is_told).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker"]
async fn a_daemon_that_hangs_does_not_hold_a_command_beyond_its_deadline_for_long() {
    let engine = PrivateEngine::docker().await;
    let backend = DockerBackend::connect_many([engine.host()]).await.unwrap();
    let sandbox = backend.create(&spec()).await.unwrap();
    let sleep = ExecRequest::sh("sleep 1234").with_timeout(Duration::from_secs(4));
    let (ended, ()) = tokio::join!(sandbox.exec(&sleep), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        engine.freeze(true);
    });
    let error = ended.unwrap_err();
    assert!(is_gone(&error), "{error:?}");
    engine.freeze(false);
    // The helper has kept the deadline all the same.
    eventually(async || !sh(&*sandbox, "ps").await.contains("sleep 1234")).await;
    sandbox.close().await.unwrap();
}
