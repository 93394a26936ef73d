//! Images that are prepared once, beside starts.

use super::*;

fn prepares(images: &[(&'static str, u64)]) -> TestBackend {
    let times = images.iter().map(|(image, secs)| (*image, Duration::from_secs(*secs)));
    TestBackend { prepare: std::sync::Mutex::new(times.collect()), ..slow() }
}

#[tokio::test(start_paused = true)]
async fn many_who_want_one_image_wait_for_one_preparation_that_takes_no_slot_and_no_room() {
    let config = PoolConfig { max_starts: 1, acquire_secs: 10, ..config(20) };
    let (pool, _, counts) = pool(prepares(&[("slow", 100)]), config);
    let began = Instant::now();
    let many = (0..16).map(|_| {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("slow")).await })
    });
    let many: Vec<_> = many.collect();
    sleep(SECOND).await;
    let metrics = pool.metrics();
    assert_eq!((metrics.preparing, metrics.starting, metrics.live), (1, 0, 0));
    // Those of another image are not held up by it.
    drop(pool.acquire(&spec("quick")).await.unwrap());
    assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
    for one in many {
        one.await.unwrap().unwrap();
    }
    // Longer than a turn is waited for.
    assert!(began.elapsed() >= 100 * SECOND && began.elapsed() < 110 * SECOND);
    assert_eq!(*counts.prepared.lock().unwrap(), ["slow", "quick"]);
    drop(pool.acquire(&spec("slow")).await.unwrap());
    assert_eq!(counts.prepared.lock().unwrap().len(), 2);
    let metrics = pool.metrics();
    assert_eq!((metrics.preparing, metrics.preparations, metrics.preparation_failures), (0, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn so_many_are_prepared_at_one_time_as_the_config_says() {
    let images = [("a", 10), ("b", 10), ("c", 10), ("d", 10), ("e", 10)];
    let config = PoolConfig { max_preparations: 2, ..config(20) };
    let (pool, _, counts) = pool(prepares(&images), config);
    let began = Instant::now();
    let all = images.map(|(image, _)| {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec(image)).await.map(drop) })
    });
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!(counts.most_preparing.load(Ordering::SeqCst), 2);
    assert!(began.elapsed() >= 30 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_prepared_is_told_to_all_and_stalls_nobody() {
    let (pool, backend, counts) = pool(prepares(&[("unfit", 20)]), config(4));
    *backend.unfit_image.lock().unwrap() = Some("unfit");
    let all = [0; 8].map(|_| {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("unfit")).await.map(drop) })
    });
    sleep(SECOND).await;
    let held: Vec<_> = futures::future::join_all((0..4).map(|_| {
        let pool = Arc::clone(&pool);
        async move { pool.acquire(&spec("fit")).await.unwrap() }
    }))
    .await;
    for one in all {
        let error = one.await.unwrap().unwrap_err();
        assert!(matches!(error, SandboxError::ImageMissing { .. }), "{error}");
        assert_eq!(error.hint(), Some("make it"));
    }
    drop(held);
    assert_eq!(counts.prepared.lock().unwrap().iter().filter(|i| *i == "unfit").count(), 1);
    // It is tried anew, not remembered as broken.
    *backend.unfit_image.lock().unwrap() = None;
    drop(pool.acquire(&spec("unfit")).await.unwrap());
    assert_eq!(pool.metrics().preparation_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_preparation_without_end_is_given_up() {
    let config = PoolConfig { prepare_secs: 30, ..config(4) };
    let (pool, _, _) = pool(prepares(&[("endless", 1 << 20)]), config);
    let error = pool.acquire(&spec("endless")).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("prepare image `endless` within 30 s"), "{error}");
    let waits = {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("endless")).await.map(drop) })
    };
    sleep(SECOND).await;
    let began = Instant::now();
    pool.shutdown().await;
    assert!(reason(waits.await.unwrap()).contains("shut down"));
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_leaves_the_preparation_to_the_others() {
    let (pool, _, counts) = pool(prepares(&[("slow", 10)]), config(4));
    let leaves = tokio::time::timeout(SECOND, pool.acquire(&spec("slow"))).await;
    assert!(leaves.is_err());
    let began = Instant::now();
    drop(pool.acquire(&spec("slow")).await.unwrap());
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
    assert_eq!(counts.prepared.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn warm_ones_are_made_once_their_image_is_prepared_and_hold_nothing_up_until_then() {
    let config = PoolConfig { max_starts: 1, ..config(4) };
    let (pool, _, counts) = pool(prepares(&[("slow", 50)]), config);
    pool.keep_warm(&spec("slow"), 2);
    sleep(SECOND).await;
    drop(pool.acquire(&spec("quick")).await.unwrap());
    assert_eq!((pool.metrics().warm, pool.metrics().preparing), (0, 1));
    sleep(60 * SECOND).await;
    assert_eq!((pool.metrics().warm, counts.prepared.lock().unwrap().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_preparation_is_no_probe_that_others_wait_for() {
    let breaker = BreakerConfig { failures: 1, ..BreakerConfig::default() };
    let (pool, backend, _) = pool(prepares(&[("slow", 3000)]), PoolConfig { breaker, ..config(4) });
    *backend.failure.lock().unwrap() = Some(gone);
    backend.failing.store(true, Ordering::SeqCst);
    assert!(pool.acquire(&spec("a")).await.is_err());
    // While it is open nothing is prepared either.
    assert!(reason(pool.acquire(&spec("slow")).await).contains("keeps failing"));
    backend.failing.store(false, Ordering::SeqCst);
    sleep(2 * SECOND).await;
    let slow = {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move { pool.acquire(&spec("slow")).await.map(drop) })
    };
    sleep(SECOND).await;
    assert_eq!((pool.metrics().preparing, pool.metrics().breaker), (1, BreakerState::Open));
    let began = Instant::now();
    drop(pool.acquire(&spec("b")).await.unwrap());
    assert!(began.elapsed() < 2 * SECOND, "{:?}", began.elapsed());
    assert_eq!(pool.metrics().breaker, BreakerState::Closed);
    slow.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_came_later_goes_on_where_the_time_of_the_first_is_over() {
    let config = PoolConfig { max_preparations: 1, acquire_secs: 10, ..config(4) };
    let (pool, _, _) = pool(prepares(&[("long", 15), ("b", 1)]), config);
    let acquire = |image, after: u32| {
        let pool = Arc::clone(&pool);
        tokio::spawn(async move {
            sleep(SECOND * after).await;
            pool.acquire(&spec(image)).await.map(drop)
        })
    };
    let long = acquire("long", 0);
    sleep(SECOND / 10).await;
    let (first, later) = (acquire("b", 0), acquire("b", 8));
    assert!(reason(first.await.unwrap()).contains("other images are being prepared"));
    later.await.unwrap().unwrap();
    long.await.unwrap().unwrap();
}
