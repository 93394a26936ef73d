//! Work that is noted down once and done many times.

use std::sync::Arc;

use super::DeviceError;
use super::driver::Driver;

/// Work that a device has noted down, to be done over and over.
#[derive(Debug)]
pub(super) struct Recording {
    driver: Arc<dyn Driver>,
    id: u64,
}

impl Recording {
    /// Notes down what `work` asks for; nothing of it is done. What it allocates it has to give back.
    pub(super) fn new(
        driver: &Arc<dyn Driver>,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Self, DeviceError> {
        let id = driver.record(work)?;
        Ok(Self { driver: driver.clone(), id })
    }

    /// Does the work with what lies at its addresses now.
    ///
    /// # Safety
    ///
    /// What the work was about still belongs to the caller.
    #[expect(unsafe_code, reason = "the work goes by addresses")]
    pub(super) unsafe fn replay(&self) -> Result<(), DeviceError> {
        // SAFETY: as this function's.
        unsafe { self.driver.replay(self.id) }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.driver.forget(self.id);
    }
}
