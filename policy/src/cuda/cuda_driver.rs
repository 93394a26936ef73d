//! A GPU by way of NVIDIA's driver.
#![expect(unsafe_code, reason = "calls of the driver")]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError, RwLockReadGuard};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::arguments::Arguments;
use super::driver::{Driver, HeadKind, Kernel, Launch, Product};
use super::kernel_cache::KernelCache;
use super::kernels::KernelFile;
use super::library::compiler_version;
use super::products::Products;
use super::recorder::{GivenBack, Recorder};
use super::{DeviceError, DeviceInfo};

/// Shared memory of a block that need not be asked for.
const ORDINARY_SHARED_BYTES: u32 = 48 * 1024;

/// A GPU of the machine. All work goes through one stream, in order.
#[derive(Debug)]
pub(super) struct CudaDriver {
    context: sys::CUcontext,
    stream: sys::CUstream,
    processors: usize,
    shared_bytes: usize,
    cache: KernelCache,
    modules: Mutex<HashMap<(&'static str, Option<HeadKind>), Module>>,
    products: Mutex<Products>,
    recorder: Recorder<Graph>,
}

/// Recorded work, ready to be launched.
#[derive(Debug)]
struct Graph(sys::CUgraphExec);

// SAFETY: the driver's handles may be used from every thread in which the context is current, which
// every call makes sure of; what is not handles is behind a lock.
unsafe impl Send for CudaDriver {}
// SAFETY: as above.
unsafe impl Sync for CudaDriver {}

/// A file of kernels on the device.
#[derive(Debug)]
struct Module {
    handle: sys::CUmodule,
    /// With the dynamic shared memory that has been asked for.
    functions: HashMap<String, (sys::CUfunction, u32)>,
}

/// Version of CUDA that the driver supports, major and minor.
fn driver_version() -> Result<(i32, i32), DeviceError> {
    let mut version = 0;
    // SAFETY: the number is written.
    let asked = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
    asked.map_err(failed("ask for the driver's version"))?;
    Ok((version / 1000, version % 1000 / 10))
}

/// `what` could not be done.
fn failed(what: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError::Call { what, detail: format!("{error:?}") }
}

impl CudaDriver {
    /// Opens a device by its place.
    pub(super) fn open(ordinal: usize) -> Result<(Self, DeviceInfo), DeviceError> {
        // SAFETY: opening the libraries is all that is done.
        let (has_driver, has_products) =
            unsafe { (sys::is_culib_present(), cudarc::cublaslt::sys::is_culib_present()) };
        if !has_driver {
            return Err(DeviceError::LibraryMissing { library: "cuda" });
        }
        match result::init() {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => {
                return Err(DeviceError::NoDevice);
            }
            other => other.map_err(failed("start the driver"))?,
        }
        let found = result::device::get_count().map_err(failed("count devices"))? as usize;
        if found == 0 {
            return Err(DeviceError::NoDevice);
        }
        if ordinal >= found {
            return Err(DeviceError::TooFewDevices { found, wanted: ordinal + 1 });
        }
        let compiler = compiler_version()?;
        let version = driver_version()?;
        let name = |(major, minor): (i32, i32)| format!("{major}.{minor}");
        // Machine code runs under every driver of the same major version, and of later ones.
        if version.0 < compiler.0 {
            return Err(DeviceError::DriverTooOld { found: name(version), needed: compiler.0 });
        }
        let compiler = name(compiler);
        if !has_products {
            return Err(DeviceError::LibraryMissing { library: "cublasLt" });
        }
        let device = result::device::get(ordinal as i32).map_err(failed("open the device"))?;
        let device_name = result::device::get_name(device).map_err(failed("ask for the name"))?;
        // SAFETY: the device was given by the driver.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        use sys::CUdevice_attribute_enum as Attribute;
        let ask = failed("ask for attributes");
        let major =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).map_err(&ask)?;
        let minor =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR).map_err(&ask)?;
        let processors =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(&ask)?;
        let shared_bytes =
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                .map_err(&ask)?;
        if major < 8 {
            let found = format!("{major}.{minor}");
            return Err(DeviceError::TooOld { name: device_name, found });
        }
        let start = failed("prepare the device");
        // SAFETY: the device was given by the driver; the context is kept for the life of the process.
        let (context, memory_bytes, stream) = unsafe {
            let context = result::primary_ctx::retain(device).map_err(&start)?;
            result::ctx::set_current(context).map_err(&start)?;
            let memory_bytes = result::device::total_mem(device).map_err(&start)?;
            // What was freed is kept for the next allocation.
            let pool = result::device::get_default_mem_pool(device).map_err(&start)?;
            let mut keep = u64::MAX;
            let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            let keep: *mut c_void = (&raw mut keep).cast();
            result::mem_pool::set_attribute(pool, threshold, keep).map_err(&start)?;
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking);
            (context, memory_bytes, stream.map_err(&start)?)
        };
        let architecture = format!("sm_{major}{minor}");
        let cache = KernelCache::new(KernelCache::user_folder()?, architecture, compiler.clone());
        let driver = Self {
            context,
            stream,
            processors: processors as usize,
            shared_bytes: shared_bytes as usize,
            cache,
            modules: Mutex::default(),
            products: Mutex::new(Products::new()?),
            recorder: Recorder::default(),
        };
        let (capability, version) = (format!("{major}.{minor}"), name(version));
        Ok((
            driver,
            DeviceInfo {
                name: device_name,
                capability,
                memory_bytes,
                compiler,
                driver_version: version,
            },
        ))
    }

    /// The driver's calls are for the thread's context; while what is returned lives, nobody else
    /// records.
    fn enter(&self) -> Result<Option<RwLockReadGuard<'_, ()>>, DeviceError> {
        let entered = self.recorder.enter();
        // SAFETY: the context is kept for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("use the device"))?;
        Ok(entered)
    }

    /// As [`CudaDriver::enter`], for what cannot be part of recorded work.
    fn enter_unrecorded(
        &self,
        what: &'static str,
    ) -> Result<Option<RwLockReadGuard<'_, ()>>, DeviceError> {
        self.recorder.refuse(what)?;
        self.enter()
    }

    fn allocated<T>(bytes: usize, allocated: Result<T, DriverError>) -> Result<T, DeviceError> {
        allocated.map_err(|error| match error {
            DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                DeviceError::OutOfMemory { bytes }
            }
            other => failed("allocate")(other),
        })
    }

    /// Memory that was given back, once the work that was asked for before is done.
    fn free_later(&self, address: u64) {
        // What cannot be freed is lost to others; there is nobody here who could do anything about it.
        if let Ok(_entered) = self.enter() {
            // SAFETY: the address was given by an allocation; all work goes through this stream.
            let _ = unsafe { result::free_async(address, self.stream) };
        }
    }

    /// The kernel, loaded at its first use, with so much dynamic shared memory.
    fn function(&self, kernel: &Kernel, shared_bytes: u32) -> Result<sys::CUfunction, DeviceError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kernel.file, kernel.heads);
        let module = match modules.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let image = self.cache.load(KernelFile::find(kernel.file), kernel.heads)?;
                // SAFETY: the compiler made the image, or a whole file holds what it made before.
                let handle = unsafe { result::module::load_data(image.as_ptr().cast()) };
                let handle = handle.map_err(failed("load kernels"))?;
                place.insert(Module { handle, functions: HashMap::new() })
            }
        };
        let find = failed("find a kernel");
        let (function, asked) = match module.functions.get(&kernel.name) {
            Some(known) => *known,
            None => {
                let name = CString::new(kernel.name.as_str()).expect("names have no zero");
                // SAFETY: modules are never unloaded.
                let found = unsafe { result::module::get_function(module.handle, name) };
                (found.map_err(&find)?, ORDINARY_SHARED_BYTES)
            }
        };
        if shared_bytes > asked {
            use sys::CUfunction_attribute_enum as Attribute;
            let most = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is one of a loaded module.
            unsafe {
                result::function::set_function_attribute(function, most, shared_bytes as i32)
            }
            .map_err(|_| DeviceError::Unsupported {
                detail: format!(
                    "`{}` needs {shared_bytes} bytes of shared memory, more than a block gets here",
                    kernel.name
                ),
            })?;
        }
        module.functions.insert(kernel.name.clone(), (function, asked.max(shared_bytes)));
        Ok(function)
    }
}

impl Driver for CudaDriver {
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let _entered = self.enter()?;
        if self.recorder.is_recording() {
            // Not from the stream: there, it would become a part of the recorded work. The relaxed way of
            // recording allows other allocations.
            // SAFETY: nothing but memory is asked for.
            let new = |bytes| Self::allocated(bytes, unsafe { result::malloc_sync(bytes) });
            return self.recorder.allocate(bytes, new);
        }
        // SAFETY: all work goes through this stream.
        Self::allocated(bytes, unsafe { result::malloc_async(self.stream, bytes) })
    }

    fn free(&self, address: u64, bytes: usize) {
        if self.recorder.give_back(address, bytes) == GivenBack::Free {
            self.free_later(address);
        }
    }

    unsafe fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let _entered = self.enter_unrecorded("upload")?;
        // SAFETY: the caller owns the bytes; from memory that is not locked the call returns once it has
        // read all of it.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream) }.map_err(failed("upload"))
    }

    unsafe fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let _entered = self.enter_unrecorded("download")?;
        // SAFETY: the caller owns the bytes, and they are waited for.
        unsafe {
            result::memcpy_dtoh_async(bytes, address, self.stream).map_err(failed("download"))?;
            result::stream::synchronize(self.stream).map_err(failed("download"))
        }
    }

    unsafe fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        // SAFETY: the caller owns the bytes.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(failed("copy"))
    }

    unsafe fn clear(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller owns the bytes.
        unsafe { result::memset_d8_async(address, 0, bytes, self.stream) }.map_err(failed("clear"))
    }

    unsafe fn launch(
        &self,
        kernel: &Kernel,
        launch: Launch,
        arguments: &Arguments,
    ) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        let function = self.function(kernel, launch.shared_bytes)?;
        let [x, y, z] = launch.grid;
        let (grid, block) = ((x, y, z), (launch.block, 1, 1));
        // SAFETY: as this function's.
        unsafe {
            result::launch_kernel(
                function,
                grid,
                block,
                launch.shared_bytes,
                self.stream,
                &mut arguments.pointers(),
            )
        }
        .map_err(|error| DeviceError::Call {
            what: "run a kernel",
            detail: format!("{}: {error:?}", kernel.name),
        })
    }

    unsafe fn multiply(&self, product: &Product) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        let mut products = self.products.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller owns the operands; the stream lives as long as the driver.
        unsafe { products.multiply(product, self.stream) }
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let _entered = self.enter_unrecorded("finish the work")?;
        // SAFETY: the stream lives as long as the driver.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed("finish the work"))
    }

    fn record(
        &self,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<u64, DeviceError> {
        let failed = failed("record work");
        // SAFETY: the context is kept for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.map_err(&failed)?;
        let begin = || {
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: the stream lives as long as the driver; no other thread uses it meanwhile.
            unsafe { result::stream::begin_capture(self.stream, mode) }.map_err(&failed)
        };
        let end = || {
            // SAFETY: the recording was begun on this stream; the graph is not used any more once it has
            // been made ready.
            unsafe {
                let graph = result::stream::end_capture(self.stream).map_err(&failed)?;
                let ready = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
                let _ = result::graph::destroy(graph);
                ready.map(Graph).map_err(&failed)
            }
        };
        let recorded = self.recorder.record(begin, work, end);
        for (address, _) in self.recorder.take_late() {
            self.free_later(address);
        }
        recorded
    }

    unsafe fn replay(&self, recording: u64) -> Result<(), DeviceError> {
        let _entered = self.enter_unrecorded("do recorded work")?;
        self.recorder.with(recording, |Graph(graph)| {
            // SAFETY: the graph is alive; the caller owns what it is about.
            unsafe { result::graph::launch(*graph, self.stream) }
                .map_err(failed("do recorded work"))
        })
    }

    fn forget(&self, recording: u64) {
        let (graph, memory) = self.recorder.forget(recording);
        let Ok(_entered) = self.enter() else { return };
        if let Some(Graph(graph)) = graph {
            // SAFETY: nobody launches it any more; what is under way is finished first.
            let _ = unsafe { result::graph::exec_destroy(graph) };
        }
        for (address, _) in memory {
            // SAFETY: only recorded work used it, of which none is left; the call waits for what is
            // under way.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn processors(&self) -> usize {
        self.processors
    }

    fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    fn free_bytes(&self) -> Result<usize, DeviceError> {
        let _entered = self.enter()?;
        result::mem_get_info().map(|(free, _)| free).map_err(failed("ask for free memory"))
    }

    fn is_idle(&self) -> Result<bool, DeviceError> {
        let _entered = self.enter_unrecorded("ask for the work")?;
        // SAFETY: the stream lives as long as the driver.
        match unsafe { sys::cuStreamQuery(self.stream) }.result() {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(other) => Err(failed("ask for the work")(other)),
        }
    }

    fn on_stream(
        &self,
        add: &mut dyn FnMut(*mut c_void) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        add(self.stream.cast())
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            // SAFETY: nobody uses the stream any more.
            unsafe {
                let _ = result::stream::synchronize(self.stream);
                let _ = result::stream::destroy(self.stream);
            }
        }
    }
}
