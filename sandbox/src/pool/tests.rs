//! The pool with paused time over a backend that counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::test_backend::{TestBackend, TestCounts};
use super::{BreakerConfig, BreakerState, PoolConfig, PooledSandbox, SandboxPool};
use crate::backends::fake::FakeBackend;
use crate::{ExecRequest, Image, Lifetimes, Sandbox, SandboxError, SandboxSpec};

mod preparations;

const SECOND: Duration = Duration::from_secs(1);

fn spec(name: &str) -> SandboxSpec {
    SandboxSpec::new(Image::Reference(name.to_owned()))
}

fn slow() -> TestBackend {
    TestBackend { start: SECOND / 2, close: SECOND / 5, ..TestBackend::default() }
}

fn config(max_live: usize) -> PoolConfig {
    PoolConfig { max_live, acquire_secs: 60, starts_per_second: None, ..PoolConfig::default() }
}

/// A pool, the backend and its counts.
fn pool(
    backend: TestBackend,
    config: PoolConfig,
) -> (Arc<SandboxPool>, Arc<TestBackend>, Arc<TestCounts>) {
    let backend = Arc::new(backend);
    let counts = Arc::clone(&backend.counts);
    let pool = SandboxPool::new(Arc::clone(&backend) as _, config).unwrap();
    (Arc::new(pool), backend, counts)
}

fn reason<T>(result: Result<T, SandboxError>) -> String {
    match result {
        Err(SandboxError::Saturated { reason }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it worked"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_behind_is_looked_for_at_the_start_soon_again_now_and_then_and_at_the_end() {
    let (pool, _, counts) = pool(slow(), PoolConfig { reap_secs: Some(100), ..config(4) });
    let reaps = || counts.reaps.load(Ordering::SeqCst);
    sleep(SECOND).await;
    assert_eq!(reaps(), 1);
    sleep(2 * SECOND).await;
    assert_eq!(reaps(), 2);
    sleep(90 * SECOND).await;
    assert_eq!(reaps(), 2);
    sleep(10 * SECOND).await;
    assert_eq!(reaps(), 3);
    // A removal that failed is tried again before that.
    counts.closing_fails.store(true, Ordering::SeqCst);
    drop(pool.acquire(&spec("a")).await.unwrap());
    sleep(5 * SECOND).await;
    assert_eq!(reaps(), 4);
    pool.shutdown().await;
    assert_eq!(reaps(), 5);
    pool.shutdown().await;
    assert_eq!(reaps(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_warm_sandbox_that_died_is_not_handed_out() {
    let (pool, _, counts) = pool(slow(), config(8));
    pool.keep_warm(&spec("a"), 2);
    sleep(2 * SECOND).await;
    assert_eq!(pool.metrics().warm, 2);
    counts.warm_died.store(true, Ordering::SeqCst);
    let one = pool.acquire(&spec("a")).await.unwrap();
    let metrics = pool.metrics();
    assert_eq!((metrics.warm_hits, metrics.cold_starts, metrics.discarded), (0, 1, 2));
    drop(one);
}

#[tokio::test(start_paused = true)]
async fn warm_sandboxes_are_handed_out_at_once_and_replaced() {
    let (pool, _, counts) = pool(slow(), config(8));
    pool.keep_warm(&spec("a"), 2);
    sleep(2 * SECOND).await;
    assert_eq!((pool.metrics().warm, counts.live()), (2, 2));
    let begin = Instant::now();
    let one = pool.acquire(&spec("a")).await.unwrap();
    let two = pool.acquire(&spec("a")).await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_ne!(one.id(), two.id());
    assert_eq!(pool.metrics().warm_hits, 2);
    sleep(2 * SECOND).await;
    let metrics = pool.metrics();
    assert_eq!((metrics.warm, metrics.in_use, metrics.live), (2, 2, 4));
}

#[tokio::test]
async fn a_warm_hand_out_takes_no_time_by_the_clock() {
    let (pool, _, _) = pool(TestBackend::default(), config(200));
    pool.keep_warm(&spec("a"), 100);
    while pool.metrics().warm < 100 {
        sleep(Duration::from_millis(5)).await;
    }
    let mut times = Vec::new();
    for _ in 0..50 {
        let begin = Instant::now();
        let sandbox = pool.acquire(&spec("a")).await.unwrap();
        times.push(begin.elapsed());
        drop(sandbox);
    }
    times.sort();
    // A median, so that a loaded machine does not matter; it is microseconds.
    assert!(times[25] < Duration::from_millis(5), "{:?}", times[25]);
}

#[tokio::test(start_paused = true)]
async fn a_used_sandbox_is_never_handed_out_again() {
    let (pool, _, counts) = pool(slow(), config(1));
    let mut ids = Vec::new();
    for _ in 0..5 {
        let sandbox = pool.acquire(&spec("a")).await.unwrap();
        ids.push(sandbox.id().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 5);
    assert_eq!(counts.most_live.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn callers_wait_in_turn_and_are_sent_away_at_the_deadline() {
    let (pool, _, _) = pool(slow(), config(1));
    let first = pool.acquire(&spec("a")).await.unwrap();
    let begin = Instant::now();
    let why = reason(pool.acquire(&spec("a")).await);
    assert!(why.contains("all 1 of the pool") && why.contains("60 s"), "{why}");
    assert_eq!(begin.elapsed().as_secs(), 60);

    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let callers: Vec<_> = (0..6)
        .map(|number| {
            let (pool, order) = (Arc::clone(&pool), Arc::clone(&order));
            tokio::spawn(async move {
                sleep(Duration::from_millis(number)).await;
                let sandbox = pool.acquire(&spec("a")).await.unwrap();
                order.lock().unwrap().push(number);
                drop(sandbox);
            })
        })
        .collect();
    sleep(SECOND).await;
    assert_eq!(pool.metrics().waiting, 6);
    drop(first);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn warm_sandboxes_make_way_for_another_spec() {
    let (pool, _, counts) = pool(slow(), config(3));
    pool.keep_warm(&spec("a"), 3);
    sleep(2 * SECOND).await;
    assert_eq!(pool.metrics().warm, 3);
    let begin = Instant::now();
    let other = pool.acquire(&spec("b")).await.unwrap();
    assert!(begin.elapsed() < SECOND);
    assert_eq!(other.spec(), &spec("b"));
    assert_eq!(pool.metrics().discarded, 1);
    assert_eq!(counts.most_live.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn idle_sandboxes_are_closed_and_wanted_again_on_demand() {
    let (pool, _, counts) = pool(slow(), PoolConfig { idle_secs: 30, ..config(8) });
    pool.keep_warm(&spec("a"), 2);
    sleep(20 * SECOND).await;
    drop(pool.acquire(&spec("a")).await.unwrap());
    sleep(20 * SECOND).await;
    assert_eq!(pool.metrics().warm, 2);
    sleep(15 * SECOND).await;
    assert_eq!((pool.metrics().warm, counts.live()), (0, 0));
    drop(pool.acquire(&spec("a")).await.unwrap());
    sleep(5 * SECOND).await;
    assert_eq!(pool.metrics().warm, 2);
}

#[tokio::test(start_paused = true)]
async fn warm_sandboxes_whose_time_runs_out_are_replaced() {
    let (pool, _, counts) = pool(slow(), PoolConfig { idle_secs: 10_000, ..config(8) });
    let lifetimes =
        Lifetimes { create_secs: 10, setup_secs: 20, margin_secs: 60, ..Lifetimes::default() };
    let spec = SandboxSpec { lifetimes, ..spec("a") };
    pool.keep_warm(&spec, 1);
    sleep(55 * SECOND).await;
    assert_eq!(counts.num_starts(), 1);
    sleep(10 * SECOND).await;
    assert_eq!((counts.num_starts(), counts.live(), pool.metrics().warm), (2, 1, 1));
    assert_eq!(pool.metrics().discarded, 1);
}

#[tokio::test(start_paused = true)]
async fn starts_keep_to_their_rate_and_their_number_at_one_time() {
    let config = PoolConfig { max_starts: 3, starts_per_second: Some(10.0), ..config(100) };
    let (pool, _, counts) = pool(TestBackend { start: SECOND, ..slow() }, config);
    let spec = spec("a");
    let all: Vec<PooledSandbox> =
        futures::future::try_join_all((0..12).map(|_| pool.acquire(&spec))).await.unwrap();
    assert_eq!(all.len(), 12);
    assert_eq!(counts.most_starting.load(Ordering::SeqCst), 3);
    let starts = counts.starts.lock().unwrap().clone();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= SECOND / 10), "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn the_breaker_opens_refuses_at_once_probes_and_closes() {
    let breaker = BreakerConfig { failures: 3, ..BreakerConfig::default() };
    let (pool, backend, counts) = pool(slow(), PoolConfig { breaker, ..config(8) });
    *backend.failure.lock().unwrap() = Some(gone);
    backend.failing.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let error = pool.acquire(&spec("a")).await.err().unwrap();
        assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
    }
    assert_eq!(pool.metrics().breaker, BreakerState::Open);
    let begin = Instant::now();
    let why = reason(pool.acquire(&spec("a")).await);
    assert_eq!((begin.elapsed(), counts.num_starts()), (Duration::ZERO, 3));
    assert!(why.contains("reach the daemon: refused"), "{why}");

    // A probe that fails.
    sleep(2 * SECOND).await;
    assert!(pool.acquire(&spec("a")).await.is_err());
    assert_eq!((pool.metrics().breaker, counts.num_starts()), (BreakerState::Open, 4));
    // One that works; the others wait for what comes of it.
    backend.failing.store(false, Ordering::SeqCst);
    sleep(3 * SECOND).await;
    let (a, b) = (spec("a"), spec("b"));
    let begin = Instant::now();
    let (probe, other) = tokio::join!(pool.acquire(&a), async {
        sleep(SECOND / 10).await;
        assert_eq!(pool.metrics().breaker, BreakerState::HalfOpen);
        pool.acquire(&b).await
    });
    assert_eq!((probe.is_ok(), other.is_ok()), (true, true));
    assert!(begin.elapsed() < 2 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(pool.metrics().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_probe_that_fails_is_told_why() {
    let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
    let (pool, backend, counts) = pool(slow(), PoolConfig { breaker, ..config(8) });
    *backend.failure.lock().unwrap() = Some(gone);
    backend.failing.store(true, Ordering::SeqCst);
    pool.acquire(&spec("a")).await.err().unwrap();
    sleep(2 * SECOND).await;
    let begin = Instant::now();
    let other = spec("b");
    let ends = futures::future::join_all((0..4).map(|_| pool.acquire(&other))).await;
    // One of them was the probe.
    let told = ends.into_iter().filter_map(Result::err).map(|error| error.to_string());
    let told = told.filter(|error| error.contains("the backend keeps failing")).count();
    assert_eq!((told, counts.num_starts()), (3, 2));
    assert_eq!(begin.elapsed(), SECOND / 2);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_probe_that_does_not_end_is_sent_away_in_time() {
    let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
    let config = PoolConfig { breaker, acquire_secs: 10, ..config(8) };
    let (pool, backend, _) = pool(TestBackend { start: 100 * SECOND, ..slow() }, config);
    *backend.failure.lock().unwrap() = Some(gone);
    backend.failing.store(true, Ordering::SeqCst);
    pool.acquire(&spec("a")).await.err().unwrap();
    backend.failing.store(false, Ordering::SeqCst);
    sleep(2 * SECOND).await;
    let (a, b) = (spec("a"), spec("b"));
    let begin = Instant::now();
    let waited = async {
        sleep(SECOND).await;
        let why = reason(pool.acquire(&b).await);
        (why, begin.elapsed())
    };
    let (probe, (why, time)) = tokio::join!(pool.acquire(&a), waited);
    probe.unwrap();
    assert!(why.contains("not known within 10 s"), "{why}");
    assert_eq!(time, 11 * SECOND);
    pool.acquire(&b).await.unwrap();
}

/// An error that only the backend can be blamed for.
fn gone() -> SandboxError {
    SandboxError::Unavailable {
        backend: "test",
        reason: "reach the daemon: refused".into(),
        hint: "start it".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn callers_who_wait_for_room_are_told_when_the_breaker_opens() {
    let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
    let (pool, backend, _) = pool(slow(), PoolConfig { breaker, ..config(2) });
    let held = pool.acquire(&spec("a")).await.unwrap();
    *backend.failure.lock().unwrap() = Some(gone);
    backend.failing.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    let (a, b) = (spec("a"), spec("b"));
    let (failed, waited) = tokio::join!(pool.acquire(&a), async {
        sleep(SECOND / 10).await;
        pool.acquire(&b).await
    });
    assert!(failed.is_err());
    reason(waited);
    assert!(begin.elapsed() < SECOND);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_started_does_not_stop_the_others() {
    let breaker = BreakerConfig { failures: 2, ..BreakerConfig::default() };
    let (pool, backend, counts) = pool(slow(), PoolConfig { breaker, ..config(4) });
    *backend.failure.lock().unwrap() = Some(|| SandboxError::ImageMissing {
        image: "a".into(),
        reason: "no such image".into(),
        hint: "pull it".into(),
    });
    backend.failing.store(true, Ordering::SeqCst);
    pool.keep_warm(&spec("a"), 2);
    sleep(100 * SECOND).await;
    assert_eq!(pool.metrics().breaker, BreakerState::Closed);
    // It is tried ever more rarely.
    assert!((4..40).contains(&counts.num_starts()), "{}", counts.num_starts());
    backend.failing.store(false, Ordering::SeqCst);
    pool.acquire(&spec("b")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_never_gets_ready_is_given_up_by_itself() {
    let breaker = BreakerConfig { failures: 3, ..BreakerConfig::default() };
    let (pool, backend, counts) = pool(slow(), PoolConfig { breaker, ..config(8) });
    *backend.bad_image.lock().unwrap() = Some("bad");
    pool.keep_warm(&spec("good"), 1);
    for _ in 0..3 {
        let error = pool.acquire(&spec("bad")).await.err().unwrap();
        assert!(matches!(error, SandboxError::CreateTimedOut { .. }), "{error}");
    }
    let starts = counts.num_starts();
    let why = reason(pool.acquire(&spec("bad")).await);
    assert!(why.contains("the spec keeps failing"), "{why}");
    assert_eq!(counts.num_starts(), starts);
    let metrics = pool.metrics();
    assert_eq!((metrics.breaker, metrics.refused_specs), (BreakerState::Closed, 1));
    // All others are started and kept warm.
    pool.acquire(&spec("good")).await.unwrap();
    pool.acquire(&spec("other")).await.unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(pool.metrics().warm, 1);
    // It is tried again after a while.
    *backend.bad_image.lock().unwrap() = None;
    pool.acquire(&spec("bad")).await.unwrap();
    assert_eq!(pool.metrics().refused_specs, 0);
}

#[tokio::test(start_paused = true)]
async fn many_specs_that_fail_are_the_fault_of_the_backend() {
    let breaker = BreakerConfig { failures: 3, ..BreakerConfig::default() };
    let (pool, backend, counts) = pool(slow(), PoolConfig { breaker, ..config(8) });
    backend.failing.store(true, Ordering::SeqCst);
    for name in ["a", "b", "c", "d"] {
        let error = pool.acquire(&spec(name)).await.err().unwrap();
        assert!(matches!(error, SandboxError::Backend { .. }), "{error}");
    }
    assert_eq!(pool.metrics().breaker, BreakerState::Open);
    let why = reason(pool.acquire(&spec("e")).await);
    assert!(why.contains("the backend keeps failing"), "{why}");
    assert_eq!(counts.num_starts(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_gone_takes_the_warm_ones_with_it() {
    let (pool, _, counts) = pool(slow(), config(8));
    pool.keep_warm(&spec("a"), 3);
    sleep(2 * SECOND).await;
    let sandbox = pool.acquire(&spec("a")).await.unwrap();
    counts.execs_fail.store(true, Ordering::SeqCst);
    sandbox.exec(&ExecRequest::new(["true"])).await.unwrap_err();
    assert_eq!(pool.metrics().warm, 0);
    sleep(2 * SECOND).await;
    assert_eq!(pool.metrics().warm, 3);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_gone_takes_nothing_of_the_others_with_it() {
    let breaker = BreakerConfig { failures: 2, ..BreakerConfig::default() };
    let backend = TestBackend { engines: &["one", "two"], ..slow() };
    let (pool, _, counts) = pool(backend, PoolConfig { breaker, ..config(12) });
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pool.acquire(&spec("a")).await.unwrap());
    }
    pool.keep_warm(&spec("a"), 4);
    sleep(3 * SECOND).await;
    assert_eq!(pool.metrics().warm, 4);
    let starts = counts.num_starts();
    *counts.dead_engine.lock().unwrap() = Some("one");
    for sandbox in held.iter().filter(|sandbox| sandbox.engine() == "one") {
        sandbox.exec(&ExecRequest::new(["true"])).await.unwrap_err();
    }
    // The two that the other engine keeps stay, and it is not held against it.
    let metrics = pool.metrics();
    assert_eq!((metrics.warm, metrics.discarded), (2, 2));
    assert_eq!(metrics.breaker, BreakerState::Closed);
    sleep(2 * SECOND).await;
    assert_eq!((pool.metrics().warm, counts.num_starts()), (4, starts + 2));
    for _ in 0..4 {
        let sandbox = pool.acquire(&spec("a")).await.unwrap();
        assert_eq!(sandbox.engine(), "two");
        sandbox.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_says_nothing_is_waited_for_once() {
    let backend = TestBackend { engines: &["one", "two"], ..slow() };
    let (pool, _, counts) = pool(backend, config(20));
    pool.keep_warm(&spec("a"), 10);
    sleep(10 * SECOND).await;
    assert_eq!(pool.metrics().warm, 10);
    *counts.dead_engine.lock().unwrap() = Some("one");
    counts.is_silent.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    for _ in 0..5 {
        assert_eq!(pool.acquire(&spec("a")).await.unwrap().engine(), "two");
    }
    assert!(begin.elapsed() < 8 * SECOND, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn forks_take_up_room_as_well() {
    let (pool, _, counts) = pool(slow(), config(2));
    let sandbox = pool.acquire(&spec("a")).await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    reason(sandbox.fork().await);
    drop(fork);
    sandbox.fork_pooled().await.unwrap();
    assert_eq!(counts.most_live.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_closed_keeps_its_room_until_it_is_gone() {
    let (pool, _, counts) = pool(slow(), PoolConfig { acquire_secs: 20, ..config(2) });
    counts.closing_fails.store(true, Ordering::SeqCst);
    let sandbox = pool.acquire(&spec("a")).await.unwrap();
    assert!(sandbox.close().await.is_err());
    sandbox.close().await.unwrap();
    let metrics = pool.metrics();
    assert_eq!((metrics.live, metrics.stuck, metrics.close_failures), (1, 1, 1));
    drop(pool.acquire(&spec("a")).await.unwrap());
    sleep(SECOND).await;
    // There are two, and a third would be more than there may be.
    let why = reason(pool.acquire(&spec("a")).await);
    assert!(why.contains("all 2 of the pool") && why.contains("2 of them cannot"), "{why}");
    assert_eq!((counts.live(), counts.most_live.load(Ordering::SeqCst)), (2, 2));
    counts.closing_fails.store(false, Ordering::SeqCst);
    sleep(60 * SECOND).await;
    assert_eq!((counts.live(), pool.metrics().live, pool.metrics().stuck), (0, 0, 0));
    pool.acquire(&spec("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_closed_makes_room_when_its_time_is_over_or_the_pool_is_shut_down() {
    let (pool, _, counts) = pool(slow(), PoolConfig { acquire_secs: 2000, ..config(1) });
    counts.closing_fails.store(true, Ordering::SeqCst);
    let lifetimes = Lifetimes {
        create_secs: 10,
        setup_secs: 10,
        agent_secs: 100,
        verify_secs: 10,
        margin_secs: 10,
        ..Lifetimes::default()
    };
    let begin = Instant::now();
    drop(pool.acquire(&SandboxSpec { lifetimes, ..spec("a") }).await.unwrap());
    let other = pool.acquire(&spec("b")).await.unwrap();
    assert!((140..150).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    drop(other);
    sleep(SECOND).await;
    let begin = Instant::now();
    pool.shutdown().await;
    assert!(begin.elapsed() < 10 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(pool.metrics().live, 0);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_hangs_while_closing_is_given_up_at_the_deadline() {
    let (pool, _, _) = pool(TestBackend { close: 10_000 * SECOND, ..slow() }, config(1));
    let sandbox = pool.acquire(&spec("a")).await.unwrap();
    let begin = Instant::now();
    assert!(sandbox.close().await.is_err());
    assert_eq!(begin.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_leaves_the_room_and_the_breaker_in_order() {
    let (pool, backend, _) = pool(slow(), config(1));
    backend.panics.store(true, Ordering::SeqCst);
    assert!(pool.acquire(&spec("a")).await.is_err());
    backend.panics.store(false, Ordering::SeqCst);
    pool.acquire(&spec("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutting_down_closes_everything_even_what_is_handed_out_or_on_its_way() {
    let (pool, _, counts) = pool(slow(), config(8));
    pool.keep_warm(&spec("a"), 2);
    sleep(2 * SECOND).await;
    let held = pool.acquire(&spec("b")).await.unwrap();
    let on_its_way = {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("c")).await })
    };
    sleep(SECOND / 10).await;
    tokio::join!(pool.shutdown(), pool.shutdown());
    assert_eq!((counts.live(), pool.metrics().live), (0, 0));
    reason(on_its_way.await.unwrap());
    reason(pool.acquire(&spec("a")).await);
    let dead = held.exec(&ExecRequest::new(["true"])).await.unwrap_err();
    assert!(matches!(dead, SandboxError::Died { .. }), "{dead}");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_gives_up_starts_that_do_not_end() {
    let (pool, _, counts) = pool(TestBackend { start: 10_000 * SECOND, ..slow() }, config(8));
    let caller = {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("a")).await })
    };
    sleep(SECOND).await;
    let begin = Instant::now();
    pool.shutdown().await;
    assert!(begin.elapsed() < 10 * SECOND);
    assert_eq!(counts.live(), 0);
    reason(caller.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_pool_closes_everything() {
    let (pool, _, counts) = pool(slow(), config(8));
    pool.keep_warm(&spec("a"), 2);
    let held = pool.acquire(&spec("b")).await.unwrap();
    sleep(2 * SECOND).await;
    assert_eq!(counts.live(), 3);
    drop(pool);
    sleep(SECOND).await;
    assert_eq!(counts.live(), 0);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_behind_wherever_a_caller_leaves() {
    let mut ends = 0;
    for polls in 0.. {
        let config = PoolConfig { starts_per_second: Some(5.0), ..config(2) };
        let (pool, _, counts) = pool(slow(), config);
        // The first two take the room, so that a caller passes through every wait there is.
        let held = pool.acquire(&spec("a")).await.unwrap();
        let other = pool.acquire(&spec("a")).await.unwrap();
        tokio::spawn(async move {
            sleep(SECOND).await;
            drop(held);
        });
        let spec = spec("a");
        let mut caller = Box::pin(pool.acquire(&spec));
        let mut polled = 0;
        let done = std::future::poll_fn(|context| {
            if polled == polls {
                return std::task::Poll::Ready(false);
            }
            polled += 1;
            caller.as_mut().poll(context).map(|sandbox| {
                sandbox.unwrap();
                true
            })
        })
        .await;
        drop(caller);
        drop(other);
        sleep(10 * SECOND).await;
        let metrics = pool.metrics();
        assert_eq!((counts.live(), metrics.live, metrics.waiting), (0, 0, 0), "{polls} polls");
        pool.acquire(&spec).await.unwrap();
        if done {
            ends += 1;
        }
        if ends == 2 {
            return;
        }
        assert!(polls < 100);
    }
}

#[derive(Debug, Clone)]
struct Caller {
    spec: u8,
    arrives_ms: u64,
    patience_ms: u64,
    holds_ms: u64,
    forks: bool,
}

fn callers() -> impl Strategy<Value = Vec<Caller>> {
    let caller = (0u8..3, 0u64..3000, 1u64..4000, 0u64..800, any::<bool>()).prop_map(
        |(spec, arrives_ms, patience_ms, holds_ms, forks)| Caller {
            spec,
            arrives_ms,
            patience_ms,
            holds_ms,
            forks,
        },
    );
    proptest::collection::vec(caller, 1..24)
}

async fn call(pool: Arc<SandboxPool>, caller: Caller) {
    sleep(Duration::from_millis(caller.arrives_ms)).await;
    let spec = spec(&caller.spec.to_string());
    let patience = Duration::from_millis(caller.patience_ms);
    let Ok(Ok(sandbox)) = tokio::time::timeout(patience, pool.acquire(&spec)).await else { return };
    assert_eq!(sandbox.spec(), &spec);
    if caller.forks {
        let _ = tokio::time::timeout(patience, sandbox.fork()).await;
    }
    sleep(Duration::from_millis(caller.holds_ms)).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_bounds_hold_and_nothing_leaks_whatever_callers_do(
        callers in callers(),
        max_live in 1usize..5,
        max_starts in 1usize..4,
        warm in 0usize..4,
        fails_from_ms in proptest::option::of(0u64..3000),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let config = PoolConfig {
                max_starts,
                starts_per_second: Some(20.0),
                acquire_secs: 5,
                ..config(max_live)
            };
            let (pool, backend, counts) = pool(slow(), config);
            pool.keep_warm(&spec("0"), warm);
            let mut tasks = tokio::task::JoinSet::new();
            for caller in callers {
                tasks.spawn(call(Arc::clone(&pool), caller));
            }
            if let Some(ms) = fails_from_ms {
                tasks.spawn(async move {
                    sleep(Duration::from_millis(ms)).await;
                    backend.failing.store(true, Ordering::SeqCst);
                    sleep(SECOND).await;
                    backend.failing.store(false, Ordering::SeqCst);
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
            // Everything comes to rest: what is left is warm, and it is as much as fits.
            sleep(120 * SECOND).await;
            let metrics = pool.metrics();
            assert_eq!((metrics.live, metrics.warm), (warm.min(max_live), warm.min(max_live)));
            assert_eq!((metrics.waiting, metrics.starting, metrics.closing), (0, 0, 0));
            pool.shutdown().await;
            assert_eq!((counts.live(), pool.metrics().live), (0, 0));
            assert!(counts.most_live.load(Ordering::SeqCst) <= max_live);
            assert!(counts.most_starting.load(Ordering::SeqCst) <= max_starts);
            let starts = counts.starts.lock().unwrap().clone();
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= SECOND / 20));
        });
    }
}

#[tokio::test]
async fn snapshots_go_whether_they_are_removed_dropped_or_never_taken() {
    let backend = Arc::new(FakeBackend::new());
    let pool = SandboxPool::new(Arc::clone(&backend) as _, config(4)).unwrap();
    let sandbox = pool.acquire(&SandboxSpec::new(Image::Default)).await.unwrap();
    let removed = sandbox.snapshot_pooled().await.unwrap();
    let dropped = sandbox.snapshot_pooled().await.unwrap();
    assert_eq!(backend.num_snapshots(), 2);
    let copy = pool.restore(dropped.snapshot()).await.unwrap();
    copy.close().await.unwrap();
    removed.remove().await.unwrap();
    assert_eq!(backend.num_snapshots(), 1);
    drop(dropped);
    // Whoever asked has left before it was there.
    let mut asked = Box::pin(sandbox.snapshot_pooled());
    std::future::poll_fn(|context| {
        assert!(asked.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop(asked);
    pool.shutdown().await;
    assert_eq!(backend.num_snapshots(), 0);
}
