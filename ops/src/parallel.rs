//! Work that is spread over threads, without a say in the result.
//!
//! Pieces write to places of their own and each is computed by one thread from first to last, so
//! results are the same whatever the number of threads and pieces.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

thread_local! {
    static IS_SERIAL: Cell<bool> = const { Cell::new(false) };
    /// Of the batches that this thread works on one of, outermost first: how many nobody has begun.
    static WAITING: RefCell<Vec<Arc<AtomicUsize>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with all operations inside it on this thread.
///
/// For callers that keep all threads busy to the end: a thread that waits for a piece would take up another
/// piece of their work meanwhile, with all its memory. See [`Batches`] for those that run out of work.
pub fn serially<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_SERIAL.set(self.0);
        }
    }
    let _restore = Restore(IS_SERIAL.replace(true));
    work()
}

/// Batches that threads work on at the same time, each from first to last.
///
/// As long as there are batches that nobody has begun, the operations within a batch stay on its
/// thread. Behind that they are spread over all threads, so that those without a batch help with the
/// last ones; none of them can take up another batch while it waits, since none is left. Where the thread of
/// a batch begins batches of its own, those wait for both.
pub struct Batches {
    waiting: Arc<AtomicUsize>,
}

impl Batches {
    /// `count` batches, none of them begun.
    pub fn new(count: usize) -> Self {
        Self { waiting: Arc::new(AtomicUsize::new(count)) }
    }

    /// Works on one of them; to be called `count` times.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                WAITING.with_borrow_mut(Vec::pop);
            }
        }
        // Saturating: once too often must not stand for very many.
        let _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            Some(waiting.saturating_sub(1))
        });
        WAITING.with_borrow_mut(|all| all.push(Arc::clone(&self.waiting)));
        let _restore = Restore;
        work()
    }
}

/// Runs `work` on a thread of rayon's pool, where operations start at once.
///
/// From any other thread each operation would have to wake the pool and wait for it.
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if threads() == 1 || rayon::current_thread_index().is_some() {
        work()
    } else {
        rayon::scope(|_| work())
    }
}

/// Threads that a piece of work may be spread over.
pub fn threads() -> usize {
    let waits =
        |all: &Vec<Arc<AtomicUsize>>| all.iter().any(|waiting| waiting.load(Ordering::Relaxed) > 0);
    if IS_SERIAL.get() || WAITING.with_borrow(waits) { 1 } else { rayon::current_num_threads() }
}

/// Calls `work` for every number below `count`, on any thread and in any order.
pub fn for_each(count: usize, work: impl Fn(usize) + Sync + Send) {
    if count <= 1 || threads() == 1 {
        (0..count).for_each(work);
    } else {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// Calls `work` for every piece, in any order.
pub fn run<P: IndexedParallelIterator>(pieces: P, work: impl Fn(P::Item) + Sync + Send) {
    let count = pieces.len();
    if count <= 1 || threads() == 1 {
        pieces.with_min_len(count.max(1)).for_each(work);
    } else {
        pieces.for_each(work);
    }
}

/// A pointer whose users take care to touch different places.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(T);

#[expect(unsafe_code, reason = "a promise that users of `Shared` make where they read it")]
// SAFETY: to use the pointer needs an unsafe block, whose reason says why places differ.
unsafe impl<T> Sync for Shared<T> {}
#[expect(unsafe_code, reason = "a promise that users of `Shared` make where they read it")]
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Whoever reads it promises to touch only what nobody else does meanwhile.
    pub(crate) fn new(pointer: T) -> Self {
        Self(pointer)
    }

    /// The pointer.
    pub(crate) fn get(&self) -> T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_visited_once() {
        let visits: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        let visit = |i: usize| {
            visits[i].fetch_add(1, Ordering::Relaxed);
        };
        for_each(100, visit);
        serially(|| {
            assert_eq!(threads(), 1);
            for_each(100, visit);
        });
        in_pool(|| for_each(100, visit));
        assert!(visits.iter().all(|count| count.load(Ordering::Relaxed) == 3));
        assert!(!IS_SERIAL.get());
    }

    #[test]
    fn operations_stay_on_a_thread_until_the_last_batch_has_begun() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| {
            let batches = Batches::new(2);
            batches.run(|| {
                assert_eq!(threads(), 1);
                batches.run(|| assert_eq!(threads(), 3));
                assert_eq!(threads(), 3);
                serially(|| assert_eq!(threads(), 1));
                Batches::new(2).run(|| assert_eq!(threads(), 1));
                assert_eq!(threads(), 3);
            });
            assert_eq!(threads(), 3);
            // What is within waits for what is around it.
            let outer = Batches::new(2);
            outer.run(|| {
                Batches::new(1).run(|| assert_eq!(threads(), 1));
                outer.run(|| Batches::new(1).run(|| assert_eq!(threads(), 3)));
            });
            assert_eq!(threads(), 3);
        });
    }
}
