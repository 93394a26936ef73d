//! The command line of spar.

use std::process::ExitCode;

/// Updates take and give back large buffers all the time, which the C library's allocator returns to the
/// system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    spar::main(spar::Registry::builtin())
}
