//! The program that the docker backend puts into every container, at `/dev/spar/exec`.
//!
//! It needs no library and no file of the image. As `init` it is the container's first process;
//! as `run` it stands above one command and ends it with everything that came of it, and as `pty` above
//! one on a terminal; as `relay` and `dial` it carries connections; the other operations move files. `wire.rs` describes what it speaks with the backend.
//!
//! What runs in the container may kill it (it has the same user), but can neither leave its tree
//! (`tree.rs`) nor kill `init`, which the kernel protects: after a signal of the backend `init`
//! ends everything that no living helper stands above, or everything; `alone` tells when that is done.

#![no_std]
#![no_main]

mod files;
mod look;
mod relay;
mod run;
mod sys;
mod tree;
mod unpack;
mod wire;

use sys::Arguments;

/// Carries out the operation that the first argument names.
fn main(arguments: &Arguments) -> i32 {
    sys::hide_memory();
    let code = match arguments.get(1).to_bytes() {
        b"init" => return run::init(),
        b"run" => run::run(arguments),
        b"pty" => run::run_on_terminal(arguments),
        b"sweep" => wire::report(run::sweep()),
        b"relay" => relay::relay(arguments),
        b"dial" => relay::dial(arguments),
        b"read" => wire::report(files::read(arguments.get(2), arguments.number(3))),
        b"write" => wire::report(files::write(arguments.get(2), arguments.number(3))),
        b"list" => wire::report(files::list(arguments.get(2), arguments.number(3))),
        b"look" => wire::report(look::look()),
        b"pack" => wire::report(files::pack(arguments.get(2), arguments.number(3))),
        b"unpack" => wire::report(unpack::unpack(arguments.get(2))),
        b"alone" => wire::report(run::alone(arguments)),
        b"usage" => wire::report(files::usage(arguments)),
        b"written" => wire::report(files::written(arguments)),
        _ => return 125,
    };
    wire::await_hang_up();
    code
}
