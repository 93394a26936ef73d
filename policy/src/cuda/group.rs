//! Several devices of one machine that train side by side.

use std::fmt::Debug;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::device::{Buffer, Device};
use super::{DeviceError, DeviceLearner};

/// What members wait for each other at the most: an update's work is done in a fraction of it.
const PATIENCE: Duration = Duration::from_secs(600);

/// Several devices of one machine, each with a thread of its own while they work.
///
/// A member that fails ends the others, wherever they wait for it; none is left hanging.
#[derive(Debug)]
pub struct DeviceGroup {
    devices: Vec<Device>,
    reduction: Box<dyn Reduction>,
}

/// Adds up what the members of a group have.
pub(super) trait Reduction: Debug + Send + Sync {
    /// Replaces the numbers of `own` by the sums over all members, which are the same to the bit for
    /// each. All members call it, each on its thread, once all have come so far; it returns when the
    /// sums are there.
    fn add_up(&self, rank: usize, own: &Buffer, meeting: &Meeting) -> Result<(), DeviceError>;
}

/// A device of a group at work.
#[derive(Debug)]
pub struct Member<'a> {
    rank: usize,
    group: &'a DeviceGroup,
    meeting: &'a Meeting,
}

impl DeviceGroup {
    /// The group of `first` and the machine's GPUs behind it, `count` together.
    ///
    /// # Errors
    ///
    /// When there are fewer, or NCCL is missing.
    pub fn around(first: &Device, count: usize) -> Result<Self, DeviceError> {
        #[cfg(any(test, feature = "emulator"))]
        if first.is_emulated() {
            return Ok(emulated::group(first, count));
        }
        #[cfg(feature = "cuda")]
        {
            let mut devices = vec![first.clone()];
            for ordinal in 1..count {
                let device = Device::open_at(ordinal)?;
                device.try_out()?;
                devices.push(device);
            }
            let reduction = Box::new(super::nccl::Nccl::new(&devices)?);
            Ok(Self { devices, reduction })
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (first, count);
            Err(DeviceError::NotBuiltIn)
        }
    }

    /// The devices in the order of their ranks.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Does the work of every member at the same time.
    ///
    /// # Errors
    ///
    /// That of the member that failed first.
    pub fn run<E: Debug + Send>(
        &self,
        work: impl Fn(&Member<'_>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let meeting = Meeting::new(self.devices.len());
        let results: Vec<Result<(), E>> = std::thread::scope(|scope| {
            let start = |rank: usize| {
                let (work, meeting) = (&work, &meeting);
                scope.spawn(move || {
                    // A panic has to end the others as well.
                    let absence = Absence { rank, meeting };
                    let result = work(&Member { rank, group: self, meeting });
                    match &result {
                        Ok(()) => std::mem::forget(absence),
                        Err(error) => meeting.fail(rank, &format!("{error:?}")),
                    }
                    result
                })
            };
            let threads: Vec<_> = (0..self.devices.len()).map(start).collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let first = meeting.state().failed.as_ref().map(|(rank, _)| *rank);
        for (rank, result) in results.into_iter().enumerate() {
            if first.is_none_or(|first| first == rank) {
                result?;
            }
        }
        Ok(())
    }
}

impl Member<'_> {
    /// Its place in the group, from 0 on.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Replaces the learner's gradient by the sum of those of all members; every member calls it.
    ///
    /// # Errors
    ///
    /// When a device, or the exchange between them, fails: [`DeviceError::MemberFailed`] tells whose
    /// failure it was where that was another's.
    pub fn add_up_gradients(&self, learner: &DeviceLearner) -> Result<(), DeviceError> {
        // Work that fails is found out of before anybody waits in the exchange for it.
        self.group.devices[self.rank].wait()?;
        self.meeting.arrive()?;
        self.group.reduction.add_up(self.rank, learner.gradient(), self.meeting)
    }
}

/// Where the members of a group wait for each other.
#[derive(Debug)]
pub(super) struct Meeting {
    members: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// Counts the times that all have been there.
    round: u64,
    /// Who failed first, and how.
    failed: Option<(usize, String)>,
}

impl Meeting {
    fn new(members: usize) -> Self {
        Self { members, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all are there, or one of them has failed.
    pub(super) fn arrive(&self) -> Result<(), DeviceError> {
        let mut state = self.state();
        let round = state.round;
        state.arrived += 1;
        if state.arrived == self.members && state.failed.is_none() {
            state.arrived = 0;
            state.round += 1;
            self.changed.notify_all();
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        while state.round == round {
            if let Some((rank, detail)) = &state.failed {
                return Err(DeviceError::MemberFailed { rank: *rank, detail: detail.clone() });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(DeviceError::Call {
                    what: "wait for the other devices",
                    detail: format!("they did not come within {} s", PATIENCE.as_secs()),
                });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn fail(&self, rank: usize, detail: &str) {
        self.state().failed.get_or_insert_with(|| (rank, detail.to_owned()));
        self.changed.notify_all();
    }

    /// An error where a member has failed.
    #[cfg(feature = "cuda")]
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        match &self.state().failed {
            None => Ok(()),
            Some((rank, detail)) => {
                Err(DeviceError::MemberFailed { rank: *rank, detail: detail.clone() })
            }
        }
    }
}

/// Tells the others of a member that is gone.
struct Absence<'a> {
    rank: usize,
    meeting: &'a Meeting,
}

impl Drop for Absence<'_> {
    fn drop(&mut self) {
        self.meeting.fail(self.rank, "its thread ended");
    }
}

#[cfg(any(test, feature = "emulator"))]
mod emulated {
    //! Sums by way of the host's memory.

    use std::sync::Arc;

    use super::*;

    #[derive(Debug)]
    struct ThroughTheHost {
        parts: Mutex<Vec<Arc<[f32]>>>,
    }

    pub(super) fn group(first: &Device, count: usize) -> DeviceGroup {
        let others = (1..count).map(|_| Device::emulated());
        let devices = std::iter::once(first.clone()).chain(others).collect();
        let parts = Mutex::new(vec![Arc::default(); count]);
        DeviceGroup { devices, reduction: Box::new(ThroughTheHost { parts }) }
    }

    impl Reduction for ThroughTheHost {
        fn add_up(&self, rank: usize, own: &Buffer, meeting: &Meeting) -> Result<(), DeviceError> {
            let part: Arc<[f32]> = own.read()?.into();
            self.parts.lock().unwrap_or_else(PoisonError::into_inner)[rank] = part;
            meeting.arrive()?;
            let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let sum = |index: usize| parts.iter().map(|part| part[index]).sum();
            let sums: Vec<f32> = (0..own.len()).map(sum).collect();
            own.write(&sums)?;
            // Nobody brings the next part before all have read this one.
            meeting.arrive()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_fails_ends_those_who_wait_for_it() {
        let group = DeviceGroup::around(&Device::emulated(), 3).unwrap();
        let failure = DeviceError::OutOfMemory { bytes: 7 };
        let error = group
            .run(|member| match member.rank() {
                1 => Err(failure.clone()),
                _ => member.meeting.arrive(),
            })
            .unwrap_err();
        assert_eq!(error, failure);
        // What the others were told.
        let told = Mutex::new(Vec::new());
        let _ = group.run(|member| {
            if member.rank() == 2 {
                return Err(failure.clone());
            }
            let error = member.meeting.arrive().unwrap_err();
            told.lock().unwrap().push(error.clone());
            Err(error)
        });
        let told = told.into_inner().unwrap();
        assert_eq!(told.len(), 2);
        let is_told = |error| matches!(error, &DeviceError::MemberFailed { rank: 2, .. });
        assert!(told.iter().all(is_told), "{told:?}");
    }

    #[test]
    fn all_have_the_sums_again_and_again() {
        let group = DeviceGroup::around(&Device::emulated(), 3).unwrap();
        group
            .run(|member| {
                let device = &group.devices()[member.rank()];
                for round in 0..20 {
                    let own = device.upload_f32(&[member.rank() as f32, round as f32])?;
                    member.meeting.arrive()?;
                    group.reduction.add_up(member.rank(), &own, member.meeting)?;
                    assert_eq!(own.read()?, [3.0, 3.0 * round as f32]);
                }
                Ok::<(), DeviceError>(())
            })
            .unwrap();
    }

    #[test]
    fn a_thread_that_panics_ends_the_others() {
        let group = DeviceGroup::around(&Device::emulated(), 2).unwrap();
        let run = || {
            group.run(|member| match member.rank() {
                0 => member.meeting.arrive(),
                _ => panic!("as planned"),
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
