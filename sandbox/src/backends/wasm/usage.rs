//! What the instances of a sandbox take up, and the limits on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::ResourceLimiter;

/// Counters of a sandbox, shared by its instances.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) memory_bytes: AtomicU64,
    pub(crate) peak_memory_bytes: AtomicU64,
    pub(crate) cpu_nanos: AtomicU64,
    pub(crate) running: AtomicU64,
    pub(crate) out_of_memory_kills: AtomicU64,
}

/// Ends a guest that wants more memory than its sandbox may have.
#[derive(Debug, thiserror::Error)]
#[error("out of memory")]
pub(crate) struct OutOfMemory;

/// Limits on the memories and tables of one instance; gives back what it took when dropped.
#[derive(Debug)]
pub(crate) struct Limiter {
    usage: Arc<Usage>,
    /// Of all instances of the sandbox together.
    memory_limit: u64,
    table_limit: usize,
    taken: u64,
    last_growth: u64,
    table_elements: usize,
    /// Whether the guest was refused memory in a way that it could see.
    pub(crate) refused: bool,
}

impl Limiter {
    pub(crate) fn new(usage: Arc<Usage>, memory_limit: u64, table_limit: usize) -> Self {
        Self {
            usage,
            memory_limit,
            table_limit,
            taken: 0,
            last_growth: 0,
            table_elements: 0,
            refused: false,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            self.refused = true;
            return Ok(false);
        }
        let growth = desired.saturating_sub(current) as u64;
        let now = self.usage.memory_bytes.fetch_add(growth, Ordering::Relaxed) + growth;
        self.taken += growth;
        self.last_growth = growth;
        if now > self.memory_limit {
            // As a kernel does it: what goes on after a refusal would blame the program.
            return Err(OutOfMemory.into());
        }
        self.usage.peak_memory_bytes.fetch_max(now, Ordering::Relaxed);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused = true;
        self.usage.memory_bytes.fetch_sub(self.last_growth, Ordering::Relaxed);
        self.taken -= std::mem::take(&mut self.last_growth);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.table_elements += desired.saturating_sub(current);
        if self.table_elements > self.table_limit {
            return Err(OutOfMemory.into());
        }
        Ok(true)
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        self.usage.memory_bytes.fetch_sub(self.taken, Ordering::Relaxed);
    }
}
