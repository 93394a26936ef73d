//! Engines, and the programs that are loaded into them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::future::BoxFuture;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, OptLevel,
    PoolingAllocationConfig, Store, component,
};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::host::GuestState;
use super::opaque::{Command, Live, Load, Start};
use super::precompiled::{Cache, Compiled};
use super::run::{Launch, host_error, run_command};
use super::sandbox::unsupported;
use super::session::{self, SessionImage};
use super::settings::{Allocation, WasmSettings};
use super::{preview1, preview2};
use crate::SandboxError;

/// How often a guest lets others run and looks at its deadline.
const TICK: Duration = Duration::from_millis(2);
/// Ticks without any guest after which the ticker sleeps.
const IDLE_TICKS: u32 = 250;
/// Stack of a guest. CPython recurses deeply.
const STACK: usize = 4 << 20;
/// The host's functions run on the same stack.
const HOST_STACK: usize = 1 << 20;

/// What code is compiled for; each kind is an engine of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EngineKind {
    /// Instructions are counted, which costs up to 15 %.
    pub(crate) fuel: bool,
    /// Floating-point results do not depend on the processor.
    pub(crate) deterministic: bool,
}

/// An engine with everything that is loaded into it.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    kind: EngineKind,
    modules: Linker<GuestState>,
    components: component::Linker<GuestState>,
    programs: Mutex<HashMap<blake3::Hash, Arc<dyn Start>>>,
    /// Held while something is compiled, so that nothing is compiled twice.
    loading: Mutex<()>,
}

/// A program that can be started, with the engine that it is loaded into.
struct Program {
    engine: Engine,
    kind: EngineKind,
    code: Arc<Code>,
}

/// What runs: its imports are resolved.
pub(crate) enum Code {
    Module(ModuleCode),
    Component(CommandPre<GuestState>),
}

/// A core module.
pub(crate) struct ModuleCode {
    pub(crate) module: InstancePre<GuestState>,
    /// The memory that every instance begins with, kept from the first session on.
    pub(crate) first_memory: OnceLock<Arc<[u8]>>,
}

/// A command that has not begun.
struct OneCommand {
    code: Arc<Code>,
    store: Store<GuestState>,
}

impl Start for Program {
    fn has_sessions(&self) -> bool {
        match &*self.code {
            Code::Module(module) => {
                let exports = ["session_open", "session_buffer", "session_run", "session_cwd"];
                exports.iter().all(|name| module.module.module().get_export(name).is_some())
            }
            Code::Component(_) => false,
        }
    }

    fn command(&self, launch: Launch) -> Result<Box<dyn Command>, SandboxError> {
        let store = launch.store(&self.engine, self.kind).map_err(host_error)?;
        Ok(Box::new(OneCommand { code: Arc::clone(&self.code), store }))
    }

    fn session(
        &self,
        launch: Launch,
        image: Option<SessionImage>,
    ) -> Result<BoxFuture<'_, wasmtime::Result<Box<dyn Live>>>, SandboxError> {
        let store = launch.store(&self.engine, self.kind).map_err(host_error)?;
        match &*self.code {
            Code::Module(module) => Ok(Box::pin(session::start(module, store, image))),
            Code::Component(_) => Err(unsupported("open a shell in a component")),
        }
    }
}

impl Command for OneCommand {
    fn run(&mut self) -> BoxFuture<'_, wasmtime::Result<i32>> {
        Box::pin(run_command(&self.code, &mut self.store))
    }

    fn was_refused_memory(&self) -> bool {
        self.store.data().limiter.refused
    }
}

impl Runtime {
    pub(crate) fn new(settings: &WasmSettings, kind: EngineKind) -> wasmtime::Result<Self> {
        let engine = Engine::new(&config(settings, kind))?;
        let mut modules = Linker::new(&engine);
        preview1::add_to_linker(&mut modules)?;
        let mut components = component::Linker::new(&engine);
        preview2::add_to_linker(&mut components)?;
        let (programs, loading) = Default::default();
        Ok(Self { engine, kind, modules, components, programs, loading })
    }
}

impl Load for Runtime {
    fn loaded(&self, hash: &blake3::Hash) -> Option<Arc<dyn Start>> {
        lock(&self.programs).get(hash).cloned()
    }

    fn load(
        &self,
        cache: &Cache,
        hash: blake3::Hash,
        wasm: &[u8],
    ) -> wasmtime::Result<Arc<dyn Start>> {
        let _guard = lock(&self.loading);
        if let Some(program) = self.loaded(&hash) {
            return Ok(program);
        }
        let mut hasher = DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        let key = format!("{}-{:016x}", &hash.to_hex()[..32], hasher.finish());
        let code = Arc::new(match cache.load_or_compile(&self.engine, &key, wasm)? {
            Compiled::Module(module) => Code::Module(ModuleCode {
                module: self.modules.instantiate_pre(&module)?,
                first_memory: OnceLock::new(),
            }),
            Compiled::Component(component) => {
                Code::Component(CommandPre::new(self.components.instantiate_pre(&component)?)?)
            }
        });
        let program: Arc<dyn Start> =
            Arc::new(Program { engine: self.engine.clone(), kind: self.kind, code });
        lock(&self.programs).insert(hash, Arc::clone(&program));
        Ok(program)
    }
}

fn config(settings: &WasmSettings, kind: EngineKind) -> Config {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .memory_init_cow(true)
        .epoch_interruption(true)
        .consume_fuel(kind.fuel)
        .cranelift_nan_canonicalization(kind.deterministic)
        .relaxed_simd_deterministic(kind.deterministic)
        .max_wasm_stack(STACK)
        .async_stack_size(STACK + HOST_STACK)
        .wasm_component_model(true);
    if let Allocation::Pooled { instances } = settings.allocation {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(instances)));
    }
    config
}

fn pool(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    // A component is several core instances with a memory, or two, of their own.
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(64))
        .total_memories(instances.saturating_mul(2))
        .total_tables(instances.saturating_mul(4))
        .total_stacks(instances)
        .table_elements(100_000)
        .max_tables_per_module(4)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        .max_memory_size(4 << 30)
        .max_unused_warm_slots(64)
        // Where the kernel tells which pages were written, only these are made clean again.
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(256 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10);
    pool
}

/// A thread that moves the epochs of all engines on while guests run.
pub(crate) struct Ticker {
    shared: Arc<TickerState>,
    thread: Option<JoinHandle<()>>,
}

/// Moves an engine's epoch on; false once the engine is gone.
type Advance = Box<dyn Fn() -> bool + Send>;

#[derive(Default)]
struct TickerState {
    engines: Mutex<Vec<Advance>>,
    running: AtomicU64,
    parked: AtomicBool,
    stopped: AtomicBool,
}

/// While one exists, the epochs go on.
pub(crate) struct Ticking(Arc<TickerState>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Ticker {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(TickerState::default());
        let state = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("wasm-ticker".into()).spawn(move || tick(&state))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(crate) fn add(&self, engine: &Engine) {
        let engine = engine.weak();
        lock(&self.shared.engines).push(Box::new(move || match engine.upgrade() {
            Some(engine) => {
                engine.increment_epoch();
                true
            }
            None => false,
        }));
    }

    /// A guest starts.
    pub(crate) fn running(&self) -> Ticking {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.parked.load(Ordering::SeqCst) {
            self.wake();
        }
        Ticking(Arc::clone(&self.shared))
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn tick(state: &TickerState) {
    let mut idle = 0;
    while !state.stopped.load(Ordering::SeqCst) {
        if state.running.load(Ordering::SeqCst) > 0 {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle > IDLE_TICKS {
            state.parked.store(true, Ordering::SeqCst);
            // Whoever came in between saw `parked`, and its `unpark` lets this return at once.
            if state.running.load(Ordering::SeqCst) == 0 && !state.stopped.load(Ordering::SeqCst) {
                std::thread::park();
            }
            state.parked.store(false, Ordering::SeqCst);
            idle = 0;
        }
        std::thread::sleep(TICK);
        lock(&state.engines).retain(|advance| advance());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
