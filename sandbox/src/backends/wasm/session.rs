//! Instances that live on between commands.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use wasmtime::{Extern, Global, Instance, Memory, Store, TypedFunc, Val};

use super::engine::{ModuleCode, Ticking};
use super::host::{Descriptor, Descriptors, GuestState};
use super::opaque::Live;
use super::output::Output;
use super::run::{deadline, drive, end_of, host_error};
use super::sandbox::{Inner, KILLED};
use crate::{Death, ExecEnd, SandboxError, Shell, ShellOptions, ShellResult, Stream};

/// Added by a guest to the code of a command that ended the session.
const ENDED: i32 = 256;
/// The longest command.
const MAX_COMMAND: usize = 16 << 20;

/// Memory is compared with what it was in pieces of this size.
const PAGE: usize = 4096;
const ZEROS: [u8; PAGE] = [0; PAGE];

/// A session between commands; absent while one runs, and after one that ended it.
pub(crate) type Slot = Mutex<Option<Box<dyn Live>>>;

/// An instance that waits for its next command, and all that a command needs of it.
struct LiveInstance {
    store: Store<GuestState>,
    memory: Memory,
    /// What the memory was before the session began.
    first_memory: Arc<[u8]>,
    globals: Vec<(String, Global)>,
    buffer: TypedFunc<i32, i32>,
    run: TypedFunc<i32, i32>,
    cwd: TypedFunc<(), i32>,
}

/// Everything that a session is: what a live instance has beyond a new one of its module.
///
/// A guest that exports the session functions promises that between two calls all of its state
/// lies in its exported memory and exported globals (`sandbox/guests/common/session.h`).
#[derive(Clone)]
pub(crate) struct SessionImage {
    memory: Arc<MemoryImage>,
    globals: Vec<(String, Val)>,
    descriptors: Vec<Option<Descriptor>>,
}

/// What differs in a memory from the one that every instance begins with.
struct MemoryImage {
    len: usize,
    /// Where bytes differ, and these; in order, apart from one another.
    changes: Vec<(usize, Vec<u8>)>,
}

impl MemoryImage {
    fn new(memory: &[u8], first: &[u8]) -> Self {
        let mut changes: Vec<(usize, Vec<u8>)> = Vec::new();
        for (number, page) in memory.chunks(PAGE).enumerate() {
            let at = number * PAGE;
            // Memories are whole pages of 64 KiB, and those that were grown begin as zeros.
            if page == first.get(at..at + page.len()).unwrap_or(&ZEROS[..page.len()]) {
                continue;
            }
            match changes.last_mut() {
                Some((start, bytes)) if *start + bytes.len() == at => bytes.extend_from_slice(page),
                _ => changes.push((at, page.to_vec())),
            }
        }
        Self { len: memory.len(), changes }
    }
}

impl LiveInstance {
    fn new(
        mut store: Store<GuestState>,
        instance: Instance,
        first_memory: Arc<[u8]>,
    ) -> wasmtime::Result<Self> {
        let buffer = instance.get_typed_func(&mut store, "session_buffer")?;
        let run = instance.get_typed_func(&mut store, "session_run")?;
        let cwd = instance.get_typed_func(&mut store, "session_cwd")?;
        let memory = memory_of(&mut store, &instance)?;
        let exports = instance.exports(&mut store);
        let globals = exports.filter_map(|export| {
            let name = export.name().to_owned();
            export.into_extern().into_global().map(|global| (name, global))
        });
        let globals: Vec<_> = globals.collect();
        let globals = globals
            .into_iter()
            .filter(|(_, global)| global.ty(&store).mutability() == wasmtime::Mutability::Var)
            .collect();
        Ok(Self { store, memory, first_memory, globals, buffer, run, cwd })
    }

    async fn call(&mut self, command: &str) -> wasmtime::Result<(i32, Option<String>)> {
        let len = command.len() as i32;
        let at = self.buffer.call_async(&mut self.store, len).await?;
        self.memory.write(&mut self.store, at as u32 as usize, command.as_bytes())?;
        let code = self.run.call_async(&mut self.store, len).await?;
        if code & ENDED != 0 {
            return Ok((code, None));
        }
        let at = self.cwd.call_async(&mut self.store, ()).await? as u32 as usize;
        let bytes = self.memory.data(&self.store).get(at..).unwrap_or_default();
        let end = bytes.iter().take(4097).position(|byte| *byte == 0);
        let cwd = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
        Ok((code, cwd.map(str::to_owned)))
    }
}

impl Live for LiveInstance {
    fn image(&mut self) -> SessionImage {
        let memory = MemoryImage::new(self.memory.data(&self.store), &self.first_memory);
        let mut globals = Vec::new();
        for (name, global) in &self.globals {
            globals.push((name.clone(), global.get(&mut self.store)));
        }
        let descriptors = self.store.data().descriptors.slots();
        SessionImage { memory: Arc::new(memory), globals, descriptors }
    }

    fn limit(&mut self, deadline: Instant, fuel: Option<u64>) -> wasmtime::Result<()> {
        self.store.data_mut().deadline = deadline;
        match fuel {
            Some(fuel) => self.store.set_fuel(fuel),
            None => Ok(()),
        }
    }

    fn output(&self) -> Arc<Output> {
        Arc::clone(&self.store.data().output)
    }

    fn command<'a>(
        &'a mut self,
        command: &'a str,
    ) -> BoxFuture<'a, wasmtime::Result<(i32, Option<String>)>> {
        Box::pin(self.call(command))
    }

    fn was_refused_memory(&self) -> bool {
        self.store.data().limiter.refused
    }
}

/// A shell whose commands are calls into one instance.
pub(crate) struct Session {
    inner: Arc<Inner>,
    options: ShellOptions,
    slot: Arc<Slot>,
    cwd: String,
    is_closed: bool,
}

impl Session {
    /// A new session, or the one that was copied with the sandbox.
    pub(crate) async fn open(
        inner: &Arc<Inner>,
        options: &ShellOptions,
    ) -> Result<Self, SandboxError> {
        let cwd = inner.existing_workdir(options.workdir.as_deref())?;
        let mut session = Self {
            inner: Arc::clone(inner),
            options: options.clone(),
            slot: Arc::default(),
            cwd,
            is_closed: false,
        };
        let deadline = deadline(inner.spec().lifetimes.exec());
        let image = inner.take_suspended();
        let live = session.start(deadline, image).await?;
        *session.slot.lock().await = Some(live);
        inner.register_session(Arc::downgrade(&session.slot));
        Ok(session)
    }

    async fn start(
        &mut self,
        deadline: Instant,
        image: Option<SessionImage>,
    ) -> Result<Box<dyn Live>, SandboxError> {
        let output = Arc::new(Output::new(self.options.output_limit_bytes));
        let launch =
            self.inner.launch(&[], &self.cwd, &Default::default(), Arc::clone(&output), deadline);
        let started = self.inner.program().session(launch, image)?;
        let _ticking = self.inner.ticking();
        let nobody = &mut |_: Stream, _: &[u8]| {};
        match drive(started, deadline, &output, self.inner.usage(), nobody).await {
            Some(live) => live.map_err(host_error),
            None => Err(SandboxError::Backend {
                doing: "start a session in time".into(),
                source: "the guest does not answer".into(),
            }),
        }
    }
}

/// A session of `module` in `store`: a new one, or one that goes on from `image`.
pub(crate) async fn start(
    module: &ModuleCode,
    mut store: Store<GuestState>,
    image: Option<SessionImage>,
) -> wasmtime::Result<Box<dyn Live>> {
    let instance = module.module.instantiate_async(&mut store).await?;
    let memory = memory_of(&mut store, &instance)?;
    let first = Arc::clone(module.first_memory.get_or_init(|| Arc::from(memory.data(&store))));
    let live = match image {
        None => {
            let open = instance.get_typed_func::<(), ()>(&mut store, "session_open")?;
            open.call_async(&mut store, ()).await?;
            LiveInstance::new(store, instance, first)?
        }
        Some(image) => resume(store, instance, first, image)?,
    };
    Ok(Box::new(live))
}

fn memory_of(store: &mut Store<GuestState>, instance: &Instance) -> wasmtime::Result<Memory> {
    instance
        .get_memory(store, "memory")
        .ok_or_else(|| wasmtime::format_err!("the module exports no memory"))
}

/// Brings a new instance to where a session was.
fn resume(
    mut store: Store<GuestState>,
    instance: Instance,
    first_memory: Arc<[u8]>,
    image: SessionImage,
) -> wasmtime::Result<LiveInstance> {
    let tree = Arc::clone(&store.data().tree);
    store.data_mut().descriptors = Descriptors::restore(&tree, image.descriptors);
    for (name, value) in image.globals {
        if let Some(Extern::Global(global)) = instance.get_export(&mut store, &name) {
            global.set(&mut store, value)?;
        }
    }
    let mut live = LiveInstance::new(store, instance, first_memory)?;
    let missing = image.memory.len.saturating_sub(live.memory.data_size(&live.store));
    live.memory.grow(&mut live.store, (missing as u64).div_ceil(1 << 16))?;
    for (at, bytes) in &image.memory.changes {
        live.memory.write(&mut live.store, *at, bytes)?;
    }
    Ok(live)
}

#[async_trait]
impl Shell for Session {
    async fn run(&mut self, command: &str, timeout: Duration) -> Result<ShellResult, SandboxError> {
        let started = Instant::now();
        let deadline = deadline(timeout);
        self.inner.check_alive()?;
        if self.is_closed {
            let sandbox = self.inner.id().to_owned();
            return Err(SandboxError::Died { sandbox, death: Death::Closed });
        }
        if command.len() > MAX_COMMAND {
            return Err(SandboxError::TooLarge {
                path: "command".into(),
                limit_bytes: MAX_COMMAND as u64,
            });
        }
        let inner = Arc::clone(&self.inner);
        let _running = inner.begin(deadline).await?;
        let slot = Arc::clone(&self.slot);
        let mut slot = slot.lock().await;
        // Taken out while the command runs: if this future is dropped, the session is gone.
        let mut live = match slot.take() {
            Some(live) => live,
            None => self.start(deadline, None).await?,
        };
        live.limit(deadline, self.inner.spec().limits.fuel).map_err(host_error)?;
        let output = live.output();
        let nobody = &mut |_: Stream, _: &[u8]| {};
        let ended = {
            let _ticking: Ticking = self.inner.ticking();
            let work = self.inner.until_ended(live.command(command));
            drive(work, deadline, &output, self.inner.usage(), nobody).await
        };
        let refused = live.was_refused_memory();
        let end = match ended {
            None => ExecEnd::TimedOut,
            Some(Err(death)) => return Err(death),
            Some(Ok(None)) => KILLED,
            Some(Ok(Some(answer))) => {
                let result = answer.map(|(code, cwd)| {
                    self.cwd = cwd.unwrap_or_else(|| self.cwd.clone());
                    if code & ENDED == 0 {
                        *slot = Some(live);
                    }
                    code & 0xff
                });
                match (end_of(&result, refused), result) {
                    (Some(end), Ok(_)) => end,
                    (Some(end), result) => self.inner.note(end, &result, &output),
                    (None, Ok(code)) => ExecEnd::Exited { code },
                    (None, Err(error)) => return Err(host_error(error)),
                }
            }
        };
        let (stdout, stderr) = output.take(self.options.output_limit_bytes);
        let restarted = slot.is_none();
        Ok(ShellResult { end, stdout, stderr, restarted, wall: started.elapsed() })
    }

    async fn close(&mut self) -> Result<(), SandboxError> {
        self.is_closed = true;
        self.slot.lock().await.take();
        Ok(())
    }
}

/// Copies of all sessions that wait for a command, once those that run one have ended it.
pub(crate) async fn images(sessions: Vec<Weak<Slot>>) -> Vec<SessionImage> {
    let mut images = Vec::new();
    for slot in sessions.iter().filter_map(Weak::upgrade) {
        if let Some(live) = slot.lock().await.as_mut() {
            images.push(live.image());
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_holds_what_differs_and_no_more() {
        let first = vec![7; 4 * PAGE];
        let mut memory = first.clone();
        memory.resize(8 * PAGE, 0);
        memory[PAGE] = 1;
        memory[2 * PAGE + 5] = 2;
        memory[6 * PAGE] = 3;
        let image = MemoryImage::new(&memory, &first);
        let pieces: Vec<_> = image.changes.iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(pieces, [(PAGE, 2 * PAGE), (6 * PAGE, PAGE)]);
        let mut again = first;
        again.resize(image.len, 0);
        for (at, bytes) in &image.changes {
            again[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        assert!(again == memory);
    }
}
