//! One exec: its supervisor, and becoming the command.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::payload::Payload;
use crate::sys::{Children, PollFd};
use crate::{Doing, Exec, Failure, Streams, build_root, read_from_signals, sys};

/// A command in this process namespace.
struct Command {
    pid: i32,
    status: OwnedFd,
    /// The one that the namespace was made for; the first process ends it.
    is_first: bool,
    /// Its terminal, which stays open as long as it runs: whoever reads the other side sees an end when
    /// nobody holds this one, be it for a moment.
    _terminal: Option<OwnedFd>,
}

/// The first process of an exec's process namespace: starts the command and those that join it,
/// tells how they ended, and stays until nothing is left of what they started.
pub fn supervise(exec: Exec, side: &UnixStream, filter: &[u8]) -> ! {
    let first = exec.status.as_raw_fd();
    let result = (|| -> Result<(), Failure> {
        // The control socket must not be held by anybody else; its place stays taken, so that
        // none of the streams gets it.
        let null = sys::open_path("/dev/null").doing("open /dev/null")?;
        sys::duplicate(null.as_raw_fd(), 0).doing("close the control socket")?;
        drop(null);
        let mut fds: Vec<RawFd> = match &exec.streams {
            Streams::Given(streams) => streams.iter().map(AsRawFd::as_raw_fd).collect(),
            Streams::Terminal { .. } => Vec::new(),
        };
        fds.extend([exec.status.as_raw_fd(), side.as_raw_fd()]);
        sys::close_others(3, &fds);
        build_root::mount_own_proc().doing("mount /proc")?;
        let children = sys::child_signals().doing("wait for children")?;
        let mut commands = Vec::new();
        start(exec, true, &mut commands, filter)?;
        serve(&children, side, commands, filter)
    })();
    if result.is_err() {
        let _ = sys::send(first, b'P', &[]);
    }
    sys::exit_now(0)
}

fn serve(
    children: &OwnedFd,
    side: &UnixStream,
    mut commands: Vec<Command>,
    filter: &[u8],
) -> Result<(), Failure> {
    loop {
        let mut fds = vec![PollFd::new(side.as_raw_fd()), PollFd::new(children.as_raw_fd())];
        let joined = commands.iter().filter(|command| !command.is_first);
        fds.extend(joined.map(|command| PollFd::new(command.status.as_raw_fd())));
        sys::wait_readable(&mut fds);
        let joined = commands.iter().filter(|command| !command.is_first);
        for (command, fd) in joined.zip(&fds[2..]) {
            // Whoever waits for one that joined has gone.
            if fd.is_ready() {
                sys::send_signal(command.pid, sys::SIGKILL);
            }
        }
        if fds[1].is_ready() {
            let _ = read_from_signals(children);
            loop {
                match sys::wait_child(false) {
                    Children::Ended(pid, code) => {
                        commands.retain(|command| command.pid != pid || !command.tell(code));
                    }
                    Children::Running => break,
                    Children::None => return Ok(()),
                }
            }
        }
        if fds[0].is_ready()
            && let Ok(Some((b'J', fds))) = sys::receive(side.as_raw_fd())
            && let Ok(exec) = Exec::new(fds)
        {
            let _ = start(exec, false, &mut commands, filter);
        }
    }
}

impl Command {
    /// Tells how it ended. Returns true: nothing more is to be told.
    fn tell(&self, code: i32) -> bool {
        let status = self.status.as_raw_fd();
        let _ = sys::send(status, b'X', &[]);
        for byte in code.to_le_bytes() {
            let _ = sys::send(status, byte, &[]);
        }
        true
    }
}

fn start(
    exec: Exec,
    is_first: bool,
    commands: &mut Vec<Command>,
    filter: &[u8],
) -> Result<(), Failure> {
    let Exec { payload, streams, status, .. } = exec;
    let mut terminal = None;
    let streams = match streams {
        Streams::Given(streams) => streams,
        Streams::Terminal { rows, columns } => {
            let (typist, program) =
                sys::open_terminal(rows, columns).doing("make a terminal for a command")?;
            sys::send(status.as_raw_fd(), b'M', &[typist.as_raw_fd()])
                .doing("hand out a terminal")?;
            let streams = [program.try_clone(), program.try_clone(), program.try_clone()];
            terminal = Some(program);
            let [stdin, stdout, stderr] = streams;
            let copying = "hand out a terminal";
            [stdin.doing(copying)?, stdout.doing(copying)?, stderr.doing(copying)?]
        }
    };
    match sys::fork_process() {
        Ok(Some(pid)) => {
            // The streams close here: only the command and what it starts hold them open.
            commands.push(Command { pid, status, is_first, _terminal: terminal });
            Ok(())
        }
        Ok(None) => {
            for (stream, place) in streams.iter().zip(0..) {
                if sys::duplicate(stream.as_raw_fd(), place).is_err() {
                    sys::exit_now(126);
                }
            }
            sys::close_others(3, &[]);
            become_command(payload, terminal.is_some(), filter)
        }
        Err(source) => {
            let _ = sys::send(status.as_raw_fd(), b'P', &[]);
            Err(Failure::new("start a command", source))
        }
    }
}

fn become_command(payload: Payload, has_terminal: bool, filter: &[u8]) -> ! {
    let (code, failure) = match prepare(payload, has_terminal, filter) {
        Ok((arguments, environment)) => {
            let error = execute(&arguments, &environment);
            let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            let name = arguments.first().map(|name| name.to_string_lossy().into_owned());
            (code, Failure::new(name.unwrap_or_default(), error))
        }
        Err(failure) => (126, failure),
    };
    let _ = writeln!(io::stderr(), "{}: {}", failure.doing, failure.source);
    sys::exit_now(code)
}

/// Everything up to the program itself; afterwards this process can do no more than it may.
fn prepare(
    mut payload: Payload,
    has_terminal: bool,
    filter: &[u8],
) -> Result<(Vec<CString>, Vec<CString>), Failure> {
    let reading = "read the command";
    let string = |payload: &mut Payload| {
        CString::new(payload.bytes()?).map_err(|_| io::ErrorKind::InvalidInput.into())
    };
    let arguments = payload.list(string).doing(reading)?;
    let environment = payload.list(string).doing(reading)?;
    let folder = payload.text().doing(reading)?;
    let user = payload.number().doing(reading)? as u32;
    let group = payload.number().doing(reading)? as u32;
    let groups = payload.list(|payload| Ok(payload.number()? as u32)).doing(reading)?;
    let limits =
        payload.list(|payload| Ok((payload.number()? as u32, payload.number()?))).doing(reading)?;
    let held = payload.number().doing(reading)?;
    let bounding = payload.number().doing(reading)?;
    sys::new_session();
    if has_terminal {
        sys::control_terminal().doing("take over the terminal")?;
        std::os::unix::fs::fchown(io::stdin(), Some(user), None).doing("own the terminal")?;
    }
    sys::set_mask();
    // Where it was never changed, setting it back fails or changes nothing.
    let _ = std::fs::write("/proc/self/oom_score_adj", "0");
    for (resource, value) in limits {
        sys::limit_resource(resource, value).doing("limit resources")?;
    }
    sys::drop_bounding_set(bounding).doing("give up capabilities")?;
    sys::become_user(user, group, &groups).doing("become the user")?;
    sys::keep_capabilities(held).doing("give up capabilities")?;
    sys::no_new_privileges().doing("give up privileges")?;
    // As the user, who may lack the right to enter it.
    std::env::set_current_dir(&folder).doing(&format!("cd {folder}"))?;
    sys::default_signals();
    sys::filter_system_calls(filter).doing("filter system calls")?;
    Ok((arguments, environment))
}

/// Looks the program up in the environment's `PATH` where its name has no slash.
fn execute(arguments: &[CString], environment: &[CString]) -> io::Error {
    let Some(name) = arguments.first() else { return io::ErrorKind::NotFound.into() };
    if name.as_bytes().contains(&b'/') {
        return sys::execute(name, arguments, environment);
    }
    let path = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    let mut result = io::Error::from(io::ErrorKind::NotFound);
    for folder in path.unwrap_or(b"/usr/bin:/bin").split(|byte| *byte == b':') {
        let candidate = [folder, b"/", name.as_bytes()].concat();
        let Ok(candidate) = CString::new(candidate) else { continue };
        let error = sys::execute(&candidate, arguments, environment);
        if error.kind() == io::ErrorKind::PermissionDenied {
            result = error;
        } else if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return error;
        }
    }
    result
}
