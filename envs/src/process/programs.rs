//! All programs that episodes are played in.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use spar_tasks::ProgramSpec;

use super::pool::ProgramPool;

/// The programs that episodes are played in, a pool for every [`ProgramSpec`]. Clones share them; with the last one all are
/// ended.
#[derive(Clone, Default)]
pub struct Programs {
    pools: Arc<Mutex<HashMap<String, Arc<ProgramPool>>>>,
}

impl Programs {
    /// The pool of equal programs.
    pub(super) fn pool(&self, spec: &Arc<ProgramSpec>) -> Arc<ProgramPool> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(spec.key()).or_insert_with(|| ProgramPool::new(Arc::clone(spec)));
        Arc::clone(pool)
    }

    /// Ends all programs and waits for it: those that read the end of their input have half a second to end by themselves.
    /// Nothing is played in them afterwards.
    pub async fn close(&self) {
        let pools: Vec<_> = {
            let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
            pools.values().cloned().collect()
        };
        futures::future::join_all(pools.iter().map(|pool| pool.close())).await;
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Programs").field("kinds", &pools.len()).finish()
    }
}
