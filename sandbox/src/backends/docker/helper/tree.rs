//! Which processes descend from one, and their end.

use crate::sys;
use crate::wire::{Path, small_file};

/// Process numbers end below this (`PID_MAX_LIMIT`).
const MAX_PID: usize = 1 << 22;
/// Processes that are looked at in one pass; the next pass sees the others.
const MAX_SEEN: usize = 1 << 15;

struct Process {
    pid: u32,
    parent: u32,
    state: u8,
}

/// Ends everything that descends from the process `own`, which must be one that orphans fall to, as
/// far as the caller may. Returns whether all of that is gone.
///
/// First everything is stopped, pass by pass until none is left that could fork, then killed.
/// What a descendant does meanwhile cannot lead out of the tree: a process whose parent ends
/// falls to that one.
pub fn end_descendants(own: i32, milliseconds: u64) -> bool {
    let until = sys::now() + milliseconds;
    let mut signal = sys::SIGSTOP;
    let mut passes = 0;
    loop {
        let mut stopped = true;
        let mut alive = 0;
        for_each_descendant(own, |process| {
            if matches!(process.state, b'Z' | b'X') {
                return;
            }
            // That of another user is not for this one to end.
            if sys::kill(process.pid as i32, signal) {
                alive += 1;
                stopped &= matches!(process.state, b'T' | b't');
            }
        });
        while matches!(sys::wait(), Ok((pid, _)) if pid > 0) {}
        if alive == 0 {
            return true;
        }
        if sys::now() >= until {
            return false;
        }
        passes += 1;
        if stopped || passes > 20 {
            signal = sys::SIGKILL;
        }
        if passes > 2 {
            sys::poll(&mut [], Some(1));
        }
    }
}

/// Ends every process but the calling one, which must be the first of its namespace: what descends
/// from it, what the engine has started beside it, and what those have started. Returns whether all of
/// it is gone; what belongs to another user may resist.
pub fn end_all_others(milliseconds: u64) -> bool {
    let until = sys::now() + milliseconds;
    while sys::kill_all_others(sys::SIGKILL) {
        while matches!(sys::wait(), Ok((pid, _)) if pid > 0) {}
        if sys::now() >= until {
            return false;
        }
        sys::poll(&mut [], Some(1));
    }
    true
}

/// Whether there is no process but the first and the calling one.
pub fn is_alone() -> bool {
    let Ok(folder) = sys::open(sys::AT_FDCWD, c"/proc", sys::O_DIRECTORY, 0) else { return false };
    let own = sys::own_pid() as u32;
    let (mut is_alone, mut is_whole) = (true, false);
    let mut buffer = [0u8; 8192];
    while let Ok(length) = sys::entries(folder, &mut buffer) {
        if length == 0 {
            is_whole = true;
            break;
        }
        crate::files::for_each_name(&buffer[..length], |name, _| {
            is_alone &= parse(name).is_none_or(|pid| pid == 1 || pid == own);
        });
    }
    sys::close(folder);
    is_alone && is_whole
}

fn for_each_descendant(own: i32, mut visit: impl FnMut(&Process)) {
    let Ok(folder) = sys::open(sys::AT_FDCWD, c"/proc", sys::O_DIRECTORY, 0) else { return };
    let mut seen = [const { Process { pid: 0, parent: 0, state: 0 } }; MAX_SEEN];
    let mut count = 0;
    let mut buffer = [0u8; 8192];
    while let Ok(length) = sys::entries(folder, &mut buffer) {
        if length == 0 {
            break;
        }
        crate::files::for_each_name(&buffer[..length], |name, _| {
            if let Some(pid) = parse(name)
                && count < MAX_SEEN
                && let Some(process) = look_at(name, pid)
            {
                seen[count] = process;
                count += 1;
            }
        });
    }
    sys::close(folder);
    let mut descends = [0u8; MAX_PID / 8];
    let has = |set: &[u8], pid: u32| set[pid as usize / 8] & (1 << (pid % 8)) != 0;
    descends[own as usize / 8] |= 1 << (own % 8);
    // Numbers mostly grow from parent to child, so few passes are needed.
    loop {
        let mut changed = false;
        for process in &seen[..count] {
            if has(&descends, process.parent) && !has(&descends, process.pid) {
                descends[process.pid as usize / 8] |= 1 << (process.pid % 8);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    for process in &seen[..count] {
        if process.pid != own as u32 && has(&descends, process.pid) {
            visit(process);
        }
    }
}

fn look_at(name: &[u8], pid: u32) -> Option<Process> {
    let mut path = Path::new(b"/proc/").ok()?;
    path.push(name).ok()?;
    path.push(b"/stat").ok()?;
    let mut buffer = [0u8; 512];
    let text = small_file(path.as_c(), &mut buffer).ok()?;
    // The name in parentheses may hold anything.
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let state = *text.get(end + 2)?;
    let parent = text.get(end + 4..)?.split(|&byte| byte == b' ').next()?;
    Some(Process { pid, parent: parse(parent)?, state })
}

fn parse(text: &[u8]) -> Option<u32> {
    let number = core::str::from_utf8(text).ok()?.parse::<u32>().ok()?;
    ((number as usize) < MAX_PID).then_some(number)
}
