//! A tool that is a struct of arguments and a function.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use spar_core::{ToolCall, ToolSpec};
use tokio::sync::Semaphore;

use super::tool::too_slow;
use super::{Tool, ToolError, ToolOutput, read_arguments, spec_of};
use crate::EnvironmentError;

/// Calls that compute on threads of their own at one time, in this process; others wait for one to end. Below the
/// number of threads that a runtime of tokio keeps for such work, so that others find one.
const MOST_THREADS: usize = 256;
/// How long a call waits for a thread.
const WAIT_FOR_THREAD: Duration = Duration::from_secs(20);

/// A tool that is a struct of arguments and a function over a state. An error of the function is for the policy to read, a
/// sentence.
///
/// The state is copied where the tool is forked. Whatever is costly to copy stands behind an `Arc`.
#[derive(Debug)]
pub struct FunctionTool<A, S> {
    specs: Arc<[ToolSpec]>,
    state: S,
    run: Run<A, S>,
    /// Whether calls compute on threads of their own.
    is_apart: bool,
}

type Run<A, S> = fn(&mut S, A) -> Result<ToolOutput, String>;

impl<A, S> FunctionTool<A, S>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    S: Clone + Send + 'static,
{
    /// A tool whose function takes some microseconds at the most: it runs on the thread that asks for it. Its spec is
    /// that of `A` ([`spec_of`]).
    pub fn new(name: &'static str, state: S, run: Run<A, S>) -> Self {
        Self { specs: specs::<A>(name), state, run, is_apart: false }
    }

    /// A tool whose function may compute for long, or wait: it runs on a thread of its own, with a copy of the state that
    /// becomes the state when it is done. One that takes longer than its call may goes on to its end, and what it does
    /// then is lost. At the most 256 run at one time.
    pub fn blocking(name: &'static str, state: S, run: Run<A, S>) -> Self {
        Self { is_apart: true, ..Self::new(name, state, run) }
    }

    async fn run_apart(
        &mut self,
        tool: &str,
        arguments: A,
        limit: Duration,
    ) -> Result<ToolOutput, ToolError> {
        static THREADS: OnceLock<Arc<Semaphore>> = OnceLock::new();
        let threads = THREADS.get_or_init(|| Arc::new(Semaphore::new(MOST_THREADS)));
        let permit = Arc::clone(threads).acquire_owned();
        let permit = tokio::time::timeout(WAIT_FOR_THREAD, permit).await.map_err(|_| {
            let seconds = WAIT_FOR_THREAD.as_secs();
            EnvironmentError::Late { doing: "find a thread for a call of a tool", seconds }
        })?;
        let permit = permit.expect("nobody closes it");
        let (mut state, run) = (self.state.clone(), self.run);
        let task = tokio::task::spawn_blocking(move || {
            let done = run(&mut state, arguments);
            // Held until the thread is free, whether or not somebody still waits.
            drop(permit);
            (done, state)
        });
        let (done, state) = match tokio::time::timeout(limit, task).await {
            Err(_) => return Err(too_slow(tool, limit)),
            Ok(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            Ok(Ok(done)) => done,
        };
        self.state = state;
        Ok(done?)
    }
}

/// The spec of arguments under a name, made once.
fn specs<A: JsonSchema + 'static>(name: &'static str) -> Arc<[ToolSpec]> {
    type Made = HashMap<(TypeId, &'static str), Arc<[ToolSpec]>>;
    static MADE: OnceLock<Mutex<Made>> = OnceLock::new();
    let mut made = MADE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let specs = made.entry((TypeId::of::<A>(), name));
    Arc::clone(specs.or_insert_with(|| [spec_of::<A>(name)].into()))
}

#[async_trait]
impl<A, S> Tool for FunctionTool<A, S>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    S: Clone + Send + 'static,
{
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        let arguments = read_arguments::<A>(&self.specs[0], call)?;
        match self.is_apart {
            true => self.run_apart(&call.name, arguments, limit).await,
            false => Ok((self.run)(&mut self.state, arguments)?),
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        let Self { specs, state, run, is_apart } = &*self;
        let (specs, state) = (Arc::clone(specs), state.clone());
        Ok(Some(Box::new(Self { specs, state, run: *run, is_apart: *is_apart })))
    }
}
