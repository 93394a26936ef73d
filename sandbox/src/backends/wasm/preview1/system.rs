//! Arguments, environment, clocks, random numbers, waiting and ending.

use std::time::Duration;

use wasmtime::Linker;
use wasmtime_wasi::I32Exit;

use super::guest::Memory;
use super::{Context, MODULE, with_guest};
use crate::backends::wasm::errno::Errno;
use crate::backends::wasm::host::{Descriptor, GuestState};

/// The most random bytes of one call.
const MAX_RANDOM: u32 = 16 << 20;
/// The most events that one call may wait for.
const MAX_SUBSCRIPTIONS: i32 = 4096;

pub(super) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "args_get", |mut c: Context<'_>, list: i32, text: i32| {
        with_guest(&mut c, |m, host| put_strings(m, &host.arguments, list, text))
    })?;
    linker.func_wrap(MODULE, "args_sizes_get", |mut c: Context<'_>, count: i32, size: i32| {
        with_guest(&mut c, |m, host| put_sizes(m, &host.arguments, count, size))
    })?;
    linker.func_wrap(MODULE, "environ_get", |mut c: Context<'_>, list: i32, text: i32| {
        with_guest(&mut c, |m, host| put_strings(m, &variables(host), list, text))
    })?;
    linker.func_wrap(
        MODULE,
        "environ_sizes_get",
        |mut c: Context<'_>, count: i32, size: i32| {
            with_guest(&mut c, |m, host| put_sizes(m, &variables(host), count, size))
        },
    )?;
    linker.func_wrap(MODULE, "clock_res_get", |mut c: Context<'_>, clock: i32, at: i32| {
        with_guest(&mut c, |mut m, _| match clock {
            0..=3 => m.put_u64(at, 1_000),
            _ => Err(Errno::Invalid),
        })
    })?;
    linker.func_wrap(
        MODULE,
        "clock_time_get",
        |mut c: Context<'_>, clock: i32, _precision: i64, at: i32| {
            with_guest(&mut c, |mut m, host| {
                let now = clock_time(host, clock as u32)?;
                m.put_u64(at, now)
            })
        },
    )?;
    linker.func_wrap(MODULE, "random_get", |mut c: Context<'_>, at: i32, len: i32| {
        with_guest(&mut c, |mut m, host| {
            if len as u32 > MAX_RANDOM {
                return Err(Errno::Invalid);
            }
            host.surroundings.fill_random(m.bytes(at, len)?);
            Ok(())
        })
    })?;
    linker.func_wrap(MODULE, "proc_exit", |code: i32| -> wasmtime::Result<()> {
        Err(I32Exit(code).into())
    })?;
    linker.func_wrap(MODULE, "proc_raise", |_signal: i32| Errno::Unsupported.preview1())?;
    linker.func_wrap_async(MODULE, "sched_yield", |_: Context<'_>, (): ()| {
        Box::new(async {
            tokio::task::yield_now().await;
            0i32
        })
    })?;
    linker.func_wrap_async(
        MODULE,
        "poll_oneoff",
        |mut c: Context<'_>, (list, events, count, num): (i32, i32, i32, i32)| {
            Box::new(async move { poll(&mut c, list, events, count, num).await })
        },
    )?;
    Ok(())
}

fn variables(host: &GuestState) -> Vec<String> {
    host.environment.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

fn put_sizes(mut m: Memory<'_>, texts: &[String], count: i32, size: i32) -> Result<(), Errno> {
    m.put_u32(count, texts.len() as u32)?;
    m.put_u32(size, texts.iter().map(|text| text.len() as u32 + 1).sum())
}

fn put_strings(mut m: Memory<'_>, texts: &[String], list: i32, text: i32) -> Result<(), Errno> {
    let (mut list, mut at) = (list, text);
    for text in texts {
        m.put_u32(list, at as u32)?;
        m.put(at, text.as_bytes())?;
        at = at.wrapping_add(text.len() as i32);
        m.put(at, &[0])?;
        (list, at) = (list.wrapping_add(4), at.wrapping_add(1));
    }
    Ok(())
}

fn clock_time(host: &GuestState, clock: u32) -> Result<u64, Errno> {
    match clock {
        0 => Ok(host.surroundings.wall()),
        // Processor time is no more exact than time gone by.
        1..=3 => Ok(host.surroundings.monotonic()),
        _ => Err(Errno::Invalid),
    }
}

/// One event that a guest waits for.
struct Subscription {
    userdata: u64,
    what: Awaited,
}

enum Awaited {
    /// Nanoseconds from now.
    Clock(Result<u64, Errno>),
    /// Nothing in this file system makes anyone wait.
    Ready { tag: u8, bytes: Result<u64, Errno> },
}

async fn poll(
    c: &mut Context<'_>,
    list: i32,
    events: i32,
    count: i32,
    num: i32,
) -> wasmtime::Result<i32> {
    let mut subscriptions = Vec::new();
    let errno = with_guest(c, |mut m, host| {
        if !(1..=MAX_SUBSCRIPTIONS).contains(&count) {
            return Err(Errno::Invalid);
        }
        for index in 0..count {
            subscriptions.push(read_subscription(&mut m, host, list.wrapping_add(index * 48))?);
        }
        Ok(())
    })?;
    if errno != 0 {
        return Ok(errno);
    }
    let nanos = subscriptions.iter().map(|subscription| match subscription.what {
        Awaited::Clock(Ok(nanos)) => nanos,
        Awaited::Clock(Err(_)) | Awaited::Ready { .. } => 0,
    });
    let nanos = nanos.min().unwrap_or(0);
    if nanos > 0 {
        let left = c.data().surroundings.sleep(nanos);
        // The caller ends the instance at its deadline, wherever it waits.
        tokio::time::sleep(left.min(Duration::from_secs(1 << 32))).await;
    } else {
        tokio::task::yield_now().await;
    }
    with_guest(c, |mut m, _| {
        let mut written = 0;
        for Subscription { userdata, what } in &subscriptions {
            let (tag, errno, bytes) = match what {
                Awaited::Clock(Ok(other)) if *other <= nanos => (0, 0, 0),
                Awaited::Clock(Ok(_)) => continue,
                Awaited::Clock(Err(errno)) => (0, errno.preview1(), 0),
                Awaited::Ready { tag, bytes: Ok(bytes) } => (*tag, 0, *bytes),
                Awaited::Ready { tag, bytes: Err(errno) } => (*tag, errno.preview1(), 0),
            };
            let mut event = [0; 32];
            event[..8].copy_from_slice(&userdata.to_le_bytes());
            event[8..10].copy_from_slice(&(errno as u16).to_le_bytes());
            event[10] = tag;
            event[16..24].copy_from_slice(&bytes.to_le_bytes());
            m.put(events.wrapping_add(written * 32), &event)?;
            written += 1;
        }
        m.put_u32(num, written as u32)
    })
}

fn read_subscription(
    m: &mut Memory<'_>,
    host: &GuestState,
    at: i32,
) -> Result<Subscription, Errno> {
    let userdata = m.u64(at)?;
    let tag = m.u8(at.wrapping_add(8))?;
    let what = match tag {
        0 => {
            let clock = m.u32(at.wrapping_add(16))?;
            let timeout = m.u64(at.wrapping_add(24))?;
            let is_absolute = m.u16(at.wrapping_add(40))? & 1 != 0;
            Awaited::Clock(if is_absolute {
                clock_time(host, clock).map(|now| timeout.saturating_sub(now))
            } else if clock <= 3 {
                Ok(timeout)
            } else {
                Err(Errno::Invalid)
            })
        }
        1 | 2 => {
            let fd = m.u32(at.wrapping_add(16))? as i32;
            let bytes = host.descriptors.get(fd).map(|descriptor| match descriptor {
                Descriptor::Stdin | Descriptor::Folder { .. } => 1,
                Descriptor::Stdout | Descriptor::Stderr | Descriptor::File { .. } => 1 << 16,
            });
            Awaited::Ready { tag, bytes }
        }
        _ => return Err(Errno::Invalid),
    };
    Ok(Subscription { userdata, what })
}
