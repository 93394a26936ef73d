//! The task that keeps the shelves.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::inner::Inner;

/// How often it looks at the shelves when nothing calls for it.
const INTERVAL: Duration = Duration::from_secs(1);

/// Removes warm sandboxes that are too old or idle, and starts what is lacking, until the pool is
/// shut down.
pub(super) async fn keep(inner: Arc<Inner>) {
    loop {
        let (discarded, has_shelves) = {
            let mut state = inner.state();
            let discarded = state.shelves.discard(Instant::now(), inner.config.idle());
            (discarded, !state.shelves.is_empty())
        };
        inner.discard(discarded);
        inner.refill();
        tokio::select! {
            biased;
            () = inner.until_shut() => return,
            () = inner.wanted.notified() => {}
            () = sleep(INTERVAL), if has_shelves => {}
        }
    }
}
