//! Sums over devices by NCCL.
#![expect(unsafe_code, reason = "calls of NCCL")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudarc::nccl::sys;

use super::DeviceError;
use super::device::{Buffer, Device, Kind};
use super::group::{Meeting, Reduction};
use super::nccl_library::NcclLibrary;

/// What a sum may take; links between devices carry gigabytes a second.
const PATIENCE: Duration = Duration::from_secs(600);

/// Communicators of the devices of a group, by rank.
#[derive(Debug)]
pub(super) struct Nccl {
    library: &'static NcclLibrary,
    members: Vec<Communicator>,
    devices: Vec<Device>,
    /// Whether a communicator was ended, after which none may be used.
    is_broken: AtomicBool,
}

#[derive(Debug)]
struct Communicator(sys::ncclComm_t);

// SAFETY: a communicator may be used from any thread, by one at a time: every rank has a thread.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

fn failed(what: &'static str) -> impl Fn(sys::ncclResult_t) -> DeviceError {
    move |code| DeviceError::Call { what, detail: format!("{code:?}") }
}

fn check(what: &'static str, code: sys::ncclResult_t) -> Result<(), DeviceError> {
    match code {
        sys::ncclResult_t::ncclSuccess | sys::ncclResult_t::ncclInProgress => Ok(()),
        code => Err(failed(what)(code)),
    }
}

/// Version of NCCL, as in `2.30.1`, once it is known to be there.
pub(super) fn version() -> Result<String, DeviceError> {
    let library = NcclLibrary::get()?;
    let mut code = 0;
    // SAFETY: the number is written.
    check("ask for NCCL's version", unsafe { (library.get_version)(&raw mut code) })?;
    Ok(format!("{}.{}.{}", code / 10_000, code / 100 % 100, code % 100))
}

impl Nccl {
    /// Connects the devices, which are the machine's first ones in order.
    pub(super) fn new(devices: &[Device]) -> Result<Self, DeviceError> {
        let library = NcclLibrary::get()?;
        let ordinals: Vec<i32> = (0..devices.len() as i32).collect();
        let mut handles = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: as many handles are written as there are ordinals.
        let code = unsafe {
            (library.init_all)(handles.as_mut_ptr(), ordinals.len() as i32, ordinals.as_ptr())
        };
        check("connect the devices", code)?;
        let members = handles.into_iter().map(Communicator).collect();
        let is_broken = AtomicBool::new(false);
        Ok(Self { library, members, devices: devices.to_vec(), is_broken })
    }

    /// Whether the sum on this rank is done; an error where it never will be.
    fn is_done(&self, rank: usize, meeting: &Meeting) -> Result<bool, DeviceError> {
        meeting.check()?;
        let mut code = sys::ncclResult_t::ncclSuccess;
        // SAFETY: the communicator is alive; the code is written.
        let asked = unsafe { (self.library.async_error)(self.members[rank].0, &raw mut code) };
        check("ask for NCCL's errors", asked)?;
        check("add up over devices", code)?;
        self.devices[rank].driver.is_idle()
    }
}

impl Reduction for Nccl {
    fn add_up(&self, rank: usize, own: &Buffer, meeting: &Meeting) -> Result<(), DeviceError> {
        assert_eq!(own.kind(), Kind::F32, "sums are in f32");
        if self.is_broken.load(Ordering::Acquire) {
            let detail = "the group failed before".to_owned();
            return Err(DeviceError::Call { what: "add up over devices", detail });
        }
        let (at, count) = (own.address() as *mut std::ffi::c_void, own.len());
        self.devices[rank].driver.on_stream(&mut |stream| {
            // SAFETY: the numbers are the caller's until the sum is there, which is waited for below.
            let code = unsafe {
                (self.library.all_reduce)(
                    at.cast_const(),
                    at,
                    count,
                    sys::ncclDataType_t::ncclFloat32,
                    sys::ncclRedOp_t::ncclSum,
                    self.members[rank].0,
                    stream.cast(),
                )
            };
            check("add up over devices", code)
        })?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let error = match self.is_done(rank, meeting) {
                Ok(true) => return Ok(()),
                Ok(false) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_micros(50));
                    continue;
                }
                Ok(false) => DeviceError::Call {
                    what: "add up over devices",
                    detail: format!("it took more than {} s", PATIENCE.as_secs()),
                },
                Err(error) => error,
            };
            self.is_broken.store(true, Ordering::Release);
            // Ends the kernel that waits on this device for the others.
            // SAFETY: the communicator is not used any more: the group has failed.
            let _ = unsafe { (self.library.abort)(self.members[rank].0) };
            return Err(error);
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        if *self.is_broken.get_mut() {
            return;
        }
        for member in &self.members {
            // SAFETY: nobody uses the communicator any more.
            let _ = unsafe { (self.library.destroy)(member.0) };
        }
    }
}
