//! A bound on starts per second.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Lets callers through one by one, in the order they came, no two closer than an interval.
#[derive(Debug)]
pub(super) struct StartRate {
    interval: Duration,
    /// When the next one may go. The lock is fair, and whoever gives up while holding it has used
    /// nothing up.
    next: Mutex<Option<Instant>>,
}

impl StartRate {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, next: Mutex::new(None) }
    }

    /// Waits for the caller's turn. Dropping the future gives it up.
    pub(super) async fn turn(&self) {
        if self.interval.is_zero() {
            return;
        }
        let mut next = self.next.lock().await;
        if let Some(next) = *next {
            sleep_until(next).await;
        }
        *next = Some(Instant::now() + self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_evenly_spaced_and_those_given_up_cost_nothing() {
        let rate = StartRate::new(Duration::from_millis(100));
        let begin = Instant::now();
        rate.turn().await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        let given_up = tokio::time::timeout(Duration::from_millis(10), rate.turn()).await;
        assert!(given_up.is_err());
        futures::future::join_all((0..5).map(|_| rate.turn())).await;
        let elapsed = begin.elapsed();
        assert!((500..510).contains(&elapsed.as_millis()), "{elapsed:?}");
    }
}
