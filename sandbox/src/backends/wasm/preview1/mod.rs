//! WASI preview 1 on the in-memory file system: the imports of core modules.

mod descriptors;
mod guest;
mod paths;
mod system;

use wasmtime::{Caller, Linker};

use guest::with_guest;

use super::host::GuestState;

const MODULE: &str = "wasi_snapshot_preview1";

/// Makes all functions of WASI preview 1 known to `linker`. There are no sockets: each call on one
/// says so.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    system::add_to_linker(linker)?;
    descriptors::add_to_linker(linker)?;
    paths::add_to_linker(linker)?;
    add_sockets(linker)
}

fn add_sockets(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    use super::errno::Errno::NotSocket;
    let none = NotSocket.preview1();
    linker.func_wrap(MODULE, "sock_accept", move |_: i32, _: i32, _: i32| none)?;
    linker.func_wrap(
        MODULE,
        "sock_recv",
        move |_: i32, _: i32, _: i32, _: i32, _: i32, _: i32| none,
    )?;
    linker.func_wrap(MODULE, "sock_send", move |_: i32, _: i32, _: i32, _: i32, _: i32| none)?;
    linker.func_wrap(MODULE, "sock_shutdown", move |_: i32, _: i32| none)?;
    Ok(())
}

type Context<'a> = Caller<'a, GuestState>;
