//! The end of a process: alone in its own, since it shuts down every pool there is.

use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::pool::{PoolConfig, SandboxPool, shut_down_all};
use spar_sandbox::{Image, SandboxError, SandboxSpec};

#[tokio::test]
async fn the_end_of_a_process_shuts_down_all_of_its_pools() {
    let backends = [FakeBackend::new(), FakeBackend::new()];
    let pools = backends
        .each_ref()
        .map(|backend| SandboxPool::new(Arc::new(backend.clone()), PoolConfig::default()).unwrap());
    let spec = SandboxSpec::new(Image::Default);
    let mut held = Vec::new();
    for pool in &pools {
        pool.keep_warm(&spec, 2);
        held.push(pool.acquire(&spec).await.unwrap());
    }
    assert!(backends.iter().all(|backend| backend.num_live() > 0));
    assert!(shut_down_all(Duration::from_secs(60)).await);
    assert!(backends.iter().all(|backend| backend.num_live() == 0));
    for pool in &pools {
        let error = pool.acquire(&spec).await.err().unwrap();
        assert!(matches!(error, SandboxError::Saturated { .. }), "{error}");
    }
    // Once more finds nothing to do.
    assert!(shut_down_all(Duration::from_secs(60)).await);
}
