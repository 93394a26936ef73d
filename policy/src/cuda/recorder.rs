//! What drivers need to record work: whose turn it is, and the memory that the work takes in passing.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::DeviceError;

/// What a driver has recorded, and whose turn it is to ask for work.
///
/// Recorded work is done in the order of all work, so that all recordings share the memory that they
/// take in passing.
#[derive(Debug)]
pub(super) struct Recorder<R> {
    /// Held for reading by whoever asks for work, for writing by whoever records.
    gate: RwLock<()>,
    state: Mutex<State<R>>,
}

#[derive(Debug)]
struct State<R> {
    next: u64,
    recordings: HashMap<u64, R>,
    pieces: Vec<Piece>,
    /// Other memory that was given back while something was recorded.
    late: Vec<(u64, usize)>,
}

/// Memory that recorded work takes in passing.
#[derive(Debug)]
struct Piece {
    address: u64,
    bytes: usize,
    is_taken: bool,
}

/// What becomes of memory that is given back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GivenBack {
    /// It is to be freed now.
    Free,
    /// It is kept for now: the recorder tells when it is to be freed.
    Kept,
}

thread_local! {
    /// The recorder that this thread records with, by its address.
    static RECORDING: Cell<usize> = const { Cell::new(0) };
}

/// Ends a thread's recording, however it comes to its end.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        RECORDING.set(0);
    }
}

impl<R> Default for Recorder<R> {
    fn default() -> Self {
        let (recordings, pieces, late) = (HashMap::new(), Vec::new(), Vec::new());
        let state = Mutex::new(State { next: 0, recordings, pieces, late });
        Self { gate: RwLock::new(()), state }
    }
}

impl<R> Recorder<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this thread records.
    pub(super) fn is_recording(&self) -> bool {
        RECORDING.get() == std::ptr::from_ref(self).addr()
    }

    /// Waits until nobody else records; nobody begins to while what is returned lives.
    pub(super) fn enter(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let read = || self.gate.read().unwrap_or_else(PoisonError::into_inner);
        (!self.is_recording()).then(read)
    }

    /// Refuses what cannot be recorded.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), DeviceError> {
        if self.is_recording() {
            let detail = "it cannot be part of recorded work".to_owned();
            return Err(DeviceError::Call { what, detail });
        }
        Ok(())
    }

    /// Records `work` between `begin` and `end`, which makes the recording and is called even if the
    /// work fails.
    ///
    /// # Panics
    ///
    /// When the work keeps memory that it allocated.
    pub(super) fn record(
        &self,
        begin: impl FnOnce() -> Result<(), DeviceError>,
        work: &mut dyn FnMut() -> Result<(), DeviceError>,
        end: impl FnOnce() -> Result<R, DeviceError>,
    ) -> Result<u64, DeviceError> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        RECORDING.set(std::ptr::from_ref(self).addr());
        let ends = Ends;
        begin()?;
        let done = work();
        let made = end();
        drop(ends);
        let mut state = self.state();
        let is_taken = state.pieces.iter().any(|piece| piece.is_taken);
        assert!(!is_taken, "recorded work gives back what it allocates");
        done?;
        let made = made?;
        state.next += 1;
        let id = state.next;
        state.recordings.insert(id, made);
        Ok(id)
    }

    /// Memory for recorded work: a piece that was given back, or a new one.
    pub(super) fn allocate(
        &self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<u64, DeviceError>,
    ) -> Result<u64, DeviceError> {
        let mut state = self.state();
        let free = state.pieces.iter_mut().filter(|piece| !piece.is_taken && piece.bytes >= bytes);
        if let Some(piece) = free.min_by_key(|piece| piece.bytes) {
            piece.is_taken = true;
            return Ok(piece.address);
        }
        let address = new(bytes)?;
        state.pieces.push(Piece { address, bytes, is_taken: true });
        Ok(address)
    }

    /// Takes memory back from a thread that may be recording.
    pub(super) fn give_back(&self, address: u64, bytes: usize) -> GivenBack {
        if !self.is_recording() {
            return GivenBack::Free;
        }
        let mut state = self.state();
        match state.pieces.iter_mut().find(|piece| piece.address == address) {
            Some(piece) => piece.is_taken = false,
            None => state.late.push((address, bytes)),
        }
        GivenBack::Kept
    }

    /// Other memory that was given back while something was recorded, to be freed now.
    pub(super) fn take_late(&self) -> Vec<(u64, usize)> {
        std::mem::take(&mut self.state().late)
    }

    /// Something recorded.
    pub(super) fn with<T>(&self, id: u64, use_it: impl FnOnce(&R) -> T) -> T {
        use_it(self.state().recordings.get(&id).expect("a recording lives as long as its owner"))
    }

    /// Something recorded that nobody needs any more, and memory that is to be freed after it.
    pub(super) fn forget(&self, id: u64) -> (Option<R>, Vec<(u64, usize)>) {
        let mut state = self.state();
        let recording = state.recordings.remove(&id);
        let mut pieces = Vec::new();
        if state.recordings.is_empty() {
            pieces = state.pieces.drain(..).map(|piece| (piece.address, piece.bytes)).collect();
        }
        (recording, pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(recorder: &Recorder<u8>, mut work: impl FnMut()) -> Result<u64, DeviceError> {
        let mut work = || {
            work();
            Ok(())
        };
        recorder.record(|| Ok(()), &mut work, || Ok(1))
    }

    #[test]
    fn memory_of_recorded_work_is_used_again_and_freed_with_the_last_of_it() {
        let recorder = Recorder::default();
        let first = record(&recorder, || {
            assert_eq!(recorder.allocate(100, |_| Ok(7)), Ok(7));
            assert_eq!(recorder.allocate(10, |_| Ok(8)), Ok(8));
            assert_eq!(recorder.give_back(7, 100), GivenBack::Kept);
            assert_eq!(recorder.allocate(50, |_| unreachable!()), Ok(7));
            assert_eq!(recorder.give_back(8, 10), GivenBack::Kept);
            assert_eq!(recorder.give_back(7, 50), GivenBack::Kept);
            // What has nothing to do with it waits.
            assert_eq!(recorder.give_back(9, 30), GivenBack::Kept);
        });
        assert_eq!(recorder.take_late(), [(9, 30)]);
        assert_eq!(recorder.give_back(9, 30), GivenBack::Free);
        let second = record(&recorder, || {
            assert_eq!(recorder.allocate(10, |_| unreachable!()), Ok(8));
            recorder.give_back(8, 10);
        });
        assert_eq!(recorder.forget(first.unwrap()), (Some(1), vec![]));
        assert_eq!(recorder.forget(second.unwrap()), (Some(1), vec![(7, 100), (8, 10)]));
    }

    #[test]
    fn others_wait_while_one_records() {
        let recorder = Recorder::default();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            record(&recorder, || {
                assert!(recorder.is_recording() && recorder.enter().is_none());
                let (begun, has_begun) = std::sync::mpsc::channel();
                let (recorder, order) = (&recorder, &order);
                scope.spawn(move || {
                    assert!(!recorder.is_recording());
                    begun.send(()).unwrap();
                    let entered = recorder.enter();
                    order.lock().unwrap().push("other");
                    drop(entered);
                });
                has_begun.recv().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                order.lock().unwrap().push("recorder");
            })
            .unwrap();
        });
        assert_eq!(*order.lock().unwrap(), ["recorder", "other"]);
        assert!(!recorder.is_recording());
    }

    #[test]
    fn a_recording_that_fails_is_none_and_ends() {
        let recorder: Recorder<u8> = Recorder::default();
        let failed = recorder.record(|| Ok(()), &mut || recorder.refuse("wait"), || Ok(1));
        assert!(matches!(failed, Err(DeviceError::Call { what: "wait", .. })), "{failed:?}");
        assert!(!recorder.is_recording() && recorder.enter().is_some());
        assert_eq!(recorder.refuse("wait"), Ok(()));
    }
}
