//! How many rollouts may be under way, so that none is too old when it is trained on.

/// How many rollouts may be under way, so that none is trained on by weights that are too many updates younger.
///
/// With `B` the rollouts that an update takes, `eta` the updates that a rollout may be behind, and `v` the version of the
/// weights, `min(max(1, concurrent) - running, (eta + v + 1) max(1, B) - (accepted + running))` more may be started (AReaL,
/// arXiv 2505.24298, equation 3, and its released code). Rejected rollouts take no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalenessLimit {
    /// Rollouts that may run at one time.
    pub max_concurrent: u64,
    /// Rollouts that an update takes.
    pub batch_size: u64,
    /// Updates that a rollout may be behind.
    pub max_staleness: u64,
    running: u64,
    accepted: u64,
}

impl StalenessLimit {
    /// The limit before anything was started.
    pub fn new(max_concurrent: u64, batch_size: u64, max_staleness: u64) -> Self {
        Self { max_concurrent, batch_size, max_staleness, running: 0, accepted: 0 }
    }

    /// A rollout was started.
    pub fn start(&mut self) {
        self.running += 1;
    }

    /// A rollout ended, and is trained on where it is accepted.
    pub fn end(&mut self, is_accepted: bool) {
        self.running = self.running.saturating_sub(1);
        self.accepted += u64::from(is_accepted);
    }

    /// A run goes on at this version: what was accepted for the updates before counts as such.
    pub fn recover(&mut self, version: u64) {
        self.accepted = version.saturating_mul(self.batch_size.max(1));
    }

    /// Rollouts that may be started with weights of this version; below 0 where there are too many.
    pub fn capacity(&self, version: u64) -> i64 {
        let free = signed(self.max_concurrent.max(1)) - signed(self.running);
        let updates = self.max_staleness.saturating_add(version).saturating_add(1);
        let wanted = signed(updates.saturating_mul(self.batch_size.max(1)));
        free.min(wanted - signed(self.accepted.saturating_add(self.running)))
    }

    /// Rollouts that may wait to be started.
    pub fn max_waiting(&self) -> u64 {
        self.max_staleness.saturating_add(1).saturating_mul(self.batch_size)
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{each_case, vector};

    #[test]
    fn capacities_equal_the_golden_numbers() {
        each_case("areal_staleness_capacity", |case| {
            let param = |name: &str| case.params[name].as_u64().unwrap();
            let mut limit = StalenessLimit::new(
                param("max_concurrent_rollouts"),
                param("consumer_batch_size"),
                param("max_staleness"),
            );
            assert_eq!(limit.max_waiting(), case.outputs["pending_limit"].as_u64().unwrap());
            let mut version = 0;
            let wanted = vector(&case.outputs["capacity_after_each_op"]);
            let operations = case.inputs["ops"].as_array().unwrap();
            for (operation, wanted) in operations.iter().zip(wanted) {
                match operation.as_str().unwrap() {
                    "enqueue" => {}
                    "submit" => limit.start(),
                    "accept" => limit.end(true),
                    "reject" => limit.end(false),
                    "version" => version += 1,
                    "recover" => limit.recover(version),
                    other => panic!("unknown operation {other}"),
                }
                assert_eq!(limit.capacity(version), wanted as i64, "{}", case.params);
            }
        });
    }

    #[test]
    fn a_run_that_goes_on_starts_as_many_as_a_new_one() {
        let fresh = StalenessLimit::new(100, 4, 2);
        let mut resumed = fresh;
        resumed.recover(7);
        assert_eq!((fresh.capacity(0), resumed.capacity(7)), (12, 12));
        let mut crowded = StalenessLimit::new(1, 1, 0);
        (0..3).for_each(|_| crowded.start());
        assert_eq!(crowded.capacity(0), -2);
        assert_eq!(StalenessLimit::new(u64::MAX, u64::MAX, u64::MAX).capacity(u64::MAX), i64::MAX);
    }
}
