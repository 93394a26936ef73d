//! Time and chance as a guest sees them.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::Determinism;
use crate::nonce::nonce;

/// How far a virtual clock goes on each time it is read, so that loops that wait for it end.
const VIRTUAL_STEP_NANOS: u64 = 1_000;

/// Where the clocks and random numbers of a sandbox come from.
#[derive(Debug)]
pub(crate) enum Surroundings {
    /// The host's clocks, and random numbers that nobody can guess.
    Host { started: Instant, random: Mutex<ChaCha12Rng> },
    /// Seeded random numbers and a clock that goes on only when it is read or slept on. What a guest
    /// is given depends on nothing but the seed and the calls so far.
    Virtual(Mutex<Virtual>),
}

/// A virtual clock and seeded random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Virtual {
    start_nanos: u64,
    elapsed_nanos: u64,
    random: ChaCha12Rng,
}

impl Surroundings {
    pub(crate) fn new(determinism: Option<&Determinism>) -> Self {
        match determinism {
            None => Self::Host { started: Instant::now(), random: unguessable() },
            Some(determinism) => Self::Virtual(Mutex::new(Virtual {
                start_nanos: determinism.start_secs.saturating_mul(1_000_000_000),
                elapsed_nanos: 0,
                random: ChaCha12Rng::seed_from_u64(determinism.seed),
            })),
        }
    }

    /// A copy that goes on by itself from here.
    pub(crate) fn fork(&self) -> Self {
        match self {
            Self::Host { started, .. } => Self::Host { started: *started, random: unguessable() },
            Self::Virtual(state) => Self::Virtual(Mutex::new(lock(state).clone())),
        }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn wall(&self) -> u64 {
        match self {
            Self::Host { .. } => now_nanos(),
            Self::Virtual(state) => {
                let mut state = lock(state);
                state.elapsed_nanos += VIRTUAL_STEP_NANOS;
                state.start_nanos.saturating_add(state.elapsed_nanos)
            }
        }
    }

    /// Time for marks on files: reading it does not move a virtual clock.
    pub(crate) fn file_time(&self) -> u64 {
        match self {
            Self::Host { .. } => now_nanos(),
            Self::Virtual(state) => {
                let state = lock(state);
                state.start_nanos.saturating_add(state.elapsed_nanos)
            }
        }
    }

    /// Nanoseconds since the sandbox began.
    pub(crate) fn monotonic(&self) -> u64 {
        match self {
            Self::Host { started, .. } => started.elapsed().as_nanos() as u64,
            Self::Virtual(state) => {
                let mut state = lock(state);
                state.elapsed_nanos += VIRTUAL_STEP_NANOS;
                state.elapsed_nanos
            }
        }
    }

    /// What is left to be slept on the host: a virtual clock jumps.
    pub(crate) fn sleep(&self, nanos: u64) -> Duration {
        match self {
            Self::Host { .. } => Duration::from_nanos(nanos),
            Self::Virtual(state) => {
                let mut state = lock(state);
                state.elapsed_nanos = state.elapsed_nanos.saturating_add(nanos);
                Duration::ZERO
            }
        }
    }

    /// Nanoseconds until a moment of the monotonic clock; asking does not move a virtual clock.
    pub(crate) fn until(&self, when_nanos: u64) -> u64 {
        when_nanos.saturating_sub(match self {
            Self::Host { started, .. } => started.elapsed().as_nanos() as u64,
            Self::Virtual(state) => lock(state).elapsed_nanos,
        })
    }

    pub(crate) fn fill_random(&self, bytes: &mut [u8]) {
        match self {
            Self::Host { random, .. } => lock(random).fill_bytes(bytes),
            Self::Virtual(state) => lock(state).random.fill_bytes(bytes),
        }
    }

    /// A generator of its own for each instance, drawn from this one.
    pub(crate) fn generator(&self) -> ChaCha12Rng {
        let mut seed = [0; 32];
        self.fill_random(&mut seed);
        ChaCha12Rng::from_seed(seed)
    }
}

fn now_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn unguessable() -> Mutex<ChaCha12Rng> {
    let seed = blake3::hash(nonce().as_bytes());
    Mutex::new(ChaCha12Rng::from_seed(*seed.as_bytes()))
}

fn lock<T>(state: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_and_chance_repeat_and_go_on_alike_in_a_fork() {
        let determinism = Determinism { seed: 7, start_secs: 100 };
        let draw = |surroundings: &Surroundings| {
            let mut bytes = [0; 16];
            surroundings.fill_random(&mut bytes);
            (bytes, surroundings.wall(), surroundings.monotonic())
        };
        let (one, two) =
            (Surroundings::new(Some(&determinism)), Surroundings::new(Some(&determinism)));
        assert_eq!(draw(&one), draw(&two));
        assert_eq!(one.sleep(5_000_000_000), Duration::ZERO);
        assert!(one.wall() > 105_000_000_000);
        assert_eq!(
            draw(&one),
            draw(&{
                let again = two.fork();
                again.sleep(5_000_000_000);
                again.wall();
                again
            })
        );
    }
}
