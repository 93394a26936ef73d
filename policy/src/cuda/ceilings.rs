//! What a device can do at best, measured.

use std::time::{Duration, Instant};

use super::device::Kind;
use super::driver::Number;
use super::{Device, DeviceError};

/// Repetitions, of which the first ones are not counted.
const ROUNDS: usize = 20;

impl Device {
    /// Operations per second of a product of square bf16 matrices of `width`, a multiplication and an
    /// addition counted as two.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn measure_products(&self, width: usize) -> Result<f64, DeviceError> {
        let kind = Kind::Number(Number::Bf16);
        let [left, right, out] = [(); 3].map(|()| self.zeros(kind, width * width));
        let (left, right, out) = (left?, right?, out?);
        let time = self.measure(|| {
            self.multiply((&left, false), (&right, true), &out, width, width, width, false)
        })?;
        Ok(2.0 * (width as f64).powi(3) / time.as_secs_f64())
    }

    /// Bytes per second that are read and written by copying `bytes`.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn measure_copies(&self, bytes: usize) -> Result<f64, DeviceError> {
        let (from, to) = (self.zeros(Kind::F32, bytes / 4)?, self.zeros(Kind::F32, bytes / 4)?);
        let time = self.measure(|| to.copy_from(&from))?;
        Ok(2.0 * bytes as f64 / time.as_secs_f64())
    }

    /// The mean time of some work.
    fn measure(
        &self,
        mut work: impl FnMut() -> Result<(), DeviceError>,
    ) -> Result<Duration, DeviceError> {
        (0..ROUNDS / 4).try_for_each(|_| work())?;
        self.wait()?;
        let start = Instant::now();
        (0..ROUNDS).try_for_each(|_| work())?;
        self.wait()?;
        Ok(start.elapsed() / ROUNDS as u32)
    }
}
