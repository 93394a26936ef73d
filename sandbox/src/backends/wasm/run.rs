//! One command in a fresh instance.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use super::engine::{Code, EngineKind};
use super::host::{Descriptors, GuestState, SharedTree, Stdin};
use super::output::Output;
use super::preview2;
use super::surroundings::Surroundings;
use super::usage::{Limiter, OutOfMemory, Usage};
use crate::{ExecEnd, OutputSink, SandboxError};

/// The host's side of an instance that is to be started.
pub(crate) struct Launch {
    pub(crate) tree: SharedTree,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) usage: Arc<Usage>,
    pub(crate) output: Arc<Output>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) deadline: Instant,
    pub(crate) memory_limit: u64,
    pub(crate) table_limit: usize,
    pub(crate) fuel: Option<u64>,
}

/// Ends a guest at its deadline.
#[derive(Debug, thiserror::Error)]
#[error("the deadline is over")]
struct DeadlineOver;

impl Launch {
    /// A store with all limits in force.
    pub(crate) fn store(
        self,
        engine: &Engine,
        kind: EngineKind,
    ) -> wasmtime::Result<Store<GuestState>> {
        let host = GuestState {
            descriptors: Descriptors::new(&self.tree),
            tree: self.tree,
            surroundings: self.surroundings,
            output: self.output,
            limiter: Limiter::new(self.usage, self.memory_limit, self.table_limit),
            arguments: self.arguments,
            environment: self.environment,
            stdin: Stdin::new(self.stdin),
            deadline: self.deadline,
            component: None,
        };
        let mut store = Store::new(engine, host);
        store.limiter(|host| &mut host.limiter);
        if kind.fuel {
            store.set_fuel(self.fuel.unwrap_or(u64::MAX))?;
        }
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            if Instant::now() >= store.data().deadline {
                return Err(DeadlineOver.into());
            }
            // Tokio's own yield lets its timers and sockets go first.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        Ok(store)
    }
}

/// Runs command-style `code` in `store` to its end.
pub(crate) async fn run_command(
    code: &Code,
    store: &mut Store<GuestState>,
) -> wasmtime::Result<i32> {
    match code {
        Code::Module(module) => {
            let instance = module.module.instantiate_async(&mut *store).await?;
            let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
            start.call_async(&mut *store, ()).await?;
            Ok(0)
        }
        Code::Component(component) => {
            store.data_mut().component = Some(preview2::component_host(store.data()));
            let command = component.instantiate_async(&mut *store).await?;
            let result = command.wasi_cli_run().call_run(&mut *store).await?;
            Ok(i32::from(result.is_err()))
        }
    }
}

/// Polls `work` until it ends or the deadline is over, and hands on output each time it pauses.
/// Absent: the deadline came first.
pub(crate) async fn drive<F: Future>(
    work: F,
    deadline: Instant,
    output: &Output,
    usage: &Usage,
    sink: &mut dyn OutputSink,
) -> Option<F::Output> {
    let mut work = pin!(tokio::time::timeout_at(deadline.into(), work));
    poll_fn(|context| {
        let started = Instant::now();
        let polled = work.as_mut().poll(context);
        let spent = started.elapsed().as_nanos() as u64;
        usage.cpu_nanos.fetch_add(spent, Ordering::Relaxed);
        output.drain(sink);
        polled
    })
    .await
    .ok()
}

/// What the end of an instance means. Absent: not the guest's doing.
pub(crate) fn end_of(result: &wasmtime::Result<i32>, refused_memory: bool) -> Option<ExecEnd> {
    let error = match result {
        Ok(code) => return Some(ExecEnd::Exited { code: *code }),
        Err(error) => error,
    };
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Some(ExecEnd::Exited { code: exit.0 });
    }
    if error.is::<DeadlineOver>() {
        return Some(ExecEnd::TimedOut);
    }
    if error.is::<OutOfMemory>() {
        return Some(ExecEnd::OutOfMemory);
    }
    match error.downcast_ref::<Trap>()? {
        Trap::OutOfFuel => Some(ExecEnd::OutOfFuel),
        // Allocators end the program when they get no memory.
        _ if refused_memory => Some(ExecEnd::OutOfMemory),
        _ => Some(ExecEnd::Trapped),
    }
}

/// A failure that is not the guest's.
pub(crate) fn host_error(error: wasmtime::Error) -> SandboxError {
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return SandboxError::Saturated {
            reason: "all slots for WebAssembly instances are in use".into(),
        };
    }
    SandboxError::Backend { doing: "run the guest".into(), source: message(&error).into() }
}

/// The error with all of its causes, on one line.
pub(crate) fn message(error: &wasmtime::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.join(": ")
}

/// `timeout` from now; far enough for those who name none.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + Duration::from_secs(1 << 30))
}
