//! Hostile programs: each has to end contained, in time, and be told for what it is.

use std::time::{Duration, Instant};

use super::context::{Context, Finding, HostFolder, ensure, sh, sh_for};
use super::{Trial, trials};
use crate::{ExecEnd, ExecRequest, Sandbox};

pub(super) const TRIALS: &[Trial] = trials![
    "a memory bomb is ended and told as such" => memory_bomb,
    "a fork bomb stays in its sandbox" => fork_bomb,
    "a full disk is told to the command inside" => disk_fill,
    "a process that ignores signals ends at the deadline" => ignored_signals,
    "nothing a command started outlives its deadline" => nothing_outlives,
    "a process that double-forks and keeps the pipe open holds nothing up" => kept_pipe,
    "a flood of output that nobody waits for ends at the deadline" => flood,
    "files of the host cannot be reached" => host_files,
    "processes of the host cannot be seen" => host_processes,
    "devices cannot be used or made" => devices,
    "nothing can be mounted" => mounts,
    "settings of the kernel cannot be changed" => kernel_settings,
    "no other process of the machine can be traced" => tracing,
    "nothing can be reached over the network" => egress,
    "the clock cannot be set" => clock,
    "the host's name is not told" => host_name,
];

/// Everything that might lead out of a sandbox, or hold it up, one after the other.
pub(super) async fn all_that_reach(context: &Context<'_>) -> Result<(), Finding> {
    fork_bomb_where_limited(context).await?;
    ignored_signals(context).await?;
    nothing_outlives(context).await?;
    kept_pipe(context).await?;
    host_files(context).await?;
    host_processes(context).await?;
    devices(context).await?;
    mounts(context).await?;
    kernel_settings(context).await?;
    tracing(context).await?;
    egress(context).await?;
    clock(context).await
}

async fn fork_bomb_where_limited(context: &Context<'_>) -> Result<(), Finding> {
    if context.can().pids_limit { fork_bomb(context).await } else { Ok(()) }
}

/// The sandbox still does its work; a bomb may need a moment to be cleared away.
async fn still_works(sandbox: &dyn Sandbox) -> Result<(), Finding> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let request = ExecRequest::sh("echo fine").with_timeout(Duration::from_secs(20));
        let seen = match sandbox.exec(&request).await {
            Ok(result) if result.stdout.text() == "fine\n" => return Ok(()),
            Ok(result) => format!("it {}: {}", result.end, result.stderr.text()),
            Err(error) => format!("could not {error}"),
        };
        ensure!(Instant::now() < until, "afterwards {seen}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A script that writes `REACHED` and more wherever it gets through must write nothing, and come to
/// its end.
async fn must_not_reach(context: &Context<'_>, script: &str) -> Result<(), Finding> {
    let sandbox = context.scripted().await?;
    let script = format!("{script}; echo TRIED");
    let result = sh_for(&*sandbox, &script, Duration::from_secs(60)).await?;
    let text = result.stdout.text();
    ensure!(!text.contains("REACHED"), "{}", text.trim());
    ensure!(result.end != ExecEnd::TimedOut, "the script hung");
    let is_tried = text.trim_end().ends_with("TRIED");
    ensure!(is_tried, "the script {}: {}", result.end, result.stderr.text());
    still_works(&*sandbox).await?;
    Ok(sandbox.close().await?)
}

async fn memory_bomb(context: &Context<'_>) -> Result<(), Finding> {
    if !context.can().memory_limit {
        return Err(Finding::Skipped("the backend does not limit memory".into()));
    }
    let (program, mut spec) = context.program(&context.options.programs.allocate)?;
    spec.limits.memory_bytes = Some(64 << 20);
    let sandbox = context.backend.create(&spec).await?;
    let request = program.request().with_timeout(Duration::from_secs(60));
    let result = sandbox.exec(&request).await?;
    let is_told = match result.end {
        ExecEnd::OutOfMemory => true,
        // A guest whose memory may not grow is told so itself.
        ExecEnd::Trapped => !context.can().posix,
        ExecEnd::Exited { code } => !context.can().posix && code != 0,
        _ => false,
    };
    ensure!(is_told, "it {}: {}", result.end, result.stderr.text());
    if context.can().posix {
        still_works(&*sandbox).await?;
    }
    Ok(sandbox.close().await?)
}

async fn fork_bomb(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_posix()?;
    if !context.can().pids_limit {
        return Err(Finding::Skipped("the backend does not limit processes".into()));
    }
    let mut spec = context.spec();
    spec.limits.pids = Some(64);
    let sandbox = context.backend.create(&spec).await?;
    let bomb = "f() { f & f & sleep 5; }; f; sleep 98765";
    let result = sh_for(&*sandbox, bomb, Duration::from_secs(3)).await?;
    ensure!(!result.end.is_success(), "it {}", result.end);
    ensure!(result.wall.as_secs() < 60, "it took {:?}", result.wall);
    if let Some(pids) = sandbox.stats().await?.pids {
        let bound = 64 + context.can().pids_reserve;
        ensure!(pids <= bound, "{pids} processes, more than {bound}");
    }
    still_works(&*sandbox).await?;
    Ok(sandbox.close().await?)
}

async fn disk_fill(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_scripts()?;
    if !context.can().disk_limit {
        return Err(Finding::Skipped("the backend does not limit the disk".into()));
    }
    let mut spec = context.spec();
    spec.limits.disk_bytes = Some(32 << 20);
    let sandbox = context.backend.create(&spec).await?;
    let script = if context.can().posix {
        "head -c 200000000 /dev/zero >/large"
    } else {
        // Where there are no devices.
        "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; \
         while printf %s \"$x\" >>/large; do :; done; exit 1"
    };
    let result = sh_for(&*sandbox, script, Duration::from_secs(60)).await?;
    let text = result.stderr.text().to_lowercase();
    let is_told = text.contains("no space") || text.contains("quota");
    ensure!(is_told && !result.end.is_success(), "it {}: {text}", result.end);
    sh(&*sandbox, "rm /large; echo x >/small").await?;
    Ok(sandbox.close().await?)
}

async fn ignored_signals(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let script = "trap '' HUP INT QUIT TERM USR1 USR2; while :; do sleep 1; done";
    let result = sh_for(&*sandbox, script, Duration::from_secs(1)).await?;
    ensure!(result.end == ExecEnd::TimedOut, "it {}", result.end);
    ensure!(result.wall.as_secs() < 60, "it took {:?}", result.wall);
    still_works(&*sandbox).await?;
    Ok(sandbox.close().await?)
}

/// How many processes inside have `word` on their command line.
async fn num_running(sandbox: &dyn Sandbox, word: &str) -> Result<usize, Finding> {
    let script = format!(
        "n=0; for p in /proc/[0-9]*; do [ $p = /proc/$$ ] && continue; \
         case $(tr '\\000' ' ' <$p/cmdline 2>/dev/null) in *{word}*) n=$((n + 1));; esac; done; echo $n"
    );
    let text = sh(sandbox, &script).await?;
    text.trim().parse().map_err(|_| Finding::Failed(format!("counted {text:?}")))
}

async fn nothing_outlives(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let script = "sleep 98761 & (sleep 98761 &) ; setsid sleep 98761 2>/dev/null & \
                  (setsid sh -c 'trap \"\" TERM; sleep 98761 & sleep 98761' >/dev/null 2>&1 </dev/null &); \
                  sleep 98761";
    let result = sh_for(&*sandbox, script, Duration::from_secs(2)).await?;
    ensure!(result.end == ExecEnd::TimedOut, "it {}", result.end);
    let mut num = 0;
    for _ in 0..10 {
        num = num_running(&*sandbox, "9876[1]").await?;
        if num == 0 {
            return Ok(sandbox.close().await?);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(Finding::Failed(format!("{num} processes still run")))
}

async fn kept_pipe(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let script =
        "(sleep 98762 &); (setsid sh -c 'sleep 98762 & sleep 98762' &) 2>/dev/null; echo started";
    let result = sh_for(&*sandbox, script, Duration::from_secs(40)).await?;
    ensure!(result.stdout.text() == "started\n", "it wrote {:?}", result.stdout.text());
    ensure!(result.end.is_success(), "it {}", result.end);
    ensure!(result.wall.as_secs() < 30, "it took {:?}", result.wall);
    still_works(&*sandbox).await?;
    let began = Instant::now();
    sandbox.close().await?;
    ensure!(began.elapsed().as_secs() < 60, "closing took {:?}", began.elapsed());
    Ok(())
}

async fn flood(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.scripted().await?;
    let script = if context.can().posix {
        "yes & yes >&2 & cat /dev/zero"
    } else {
        "while :; do echo yes; echo yes >&2; done"
    };
    let result = sh_for(&*sandbox, script, Duration::from_secs(2)).await?;
    ensure!(result.end == ExecEnd::TimedOut, "it {}", result.end);
    ensure!(result.wall.as_secs() < 60, "it took {:?}", result.wall);
    still_works(&*sandbox).await?;
    Ok(sandbox.close().await?)
}

async fn host_files(context: &Context<'_>) -> Result<(), Finding> {
    let folder = HostFolder::new()?;
    let secret = folder.file("secret", b"of the host")?;
    let path = secret.display();
    let script = format!(
        "for root in '' /proc/1/root /proc/self/root /proc/*/root /proc/*/cwd/../../../../..; do \
         grep -q 'of the host' \"$root{path}\" 2>/dev/null && echo \"REACHED through '$root'\"; \
         done; :"
    );
    must_not_reach(context, &script).await
}

async fn host_processes(context: &Context<'_>) -> Result<(), Finding> {
    let own = std::env::current_exe().unwrap_or_default();
    let own = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if own.len() < 8 {
        return Err(Finding::Skipped("this process has too common a name".into()));
    }
    // The name in two parts, so that the script does not find itself.
    let (head, tail) = own.split_at(own.len() / 2);
    let script = format!(
        "tail='{tail}'; for p in /proc/[0-9]*; do \
         case $(tr '\\000' ' ' <$p/cmdline 2>/dev/null) in *'{head}'\"$tail\"*) echo REACHED $p;; esac; \
         done; :"
    );
    must_not_reach(context, &script).await
}

async fn devices(context: &Context<'_>) -> Result<(), Finding> {
    let script = "for d in /dev/mem /dev/kmem /dev/port /dev/kmsg /dev/sda /dev/vda /dev/nvme0n1 \
                  /dev/loop0 /dev/fuse /dev/kvm /dev/net/tun /proc/kcore; do \
                  [ -e $d ] && head -c 1 $d >/dev/null 2>&1 && echo REACHED $d; done; \
                  for d in '8 0' '259 0' '1 1' '7 0'; do rm -f /tmp/device; \
                  mknod /tmp/device b $d 2>/dev/null && head -c 1 /tmp/device >/dev/null 2>&1 && \
                  echo REACHED made $d; done; \
                  rm -f /tmp/device; mknod /tmp/device c 1 1 2>/dev/null && \
                  head -c 1 /tmp/device >/dev/null 2>&1 && echo REACHED made memory; :";
    must_not_reach(context, script).await
}

async fn mounts(context: &Context<'_>) -> Result<(), Finding> {
    let script = "mkdir -p /tmp/m; \
                  mount -t tmpfs none /tmp/m 2>/dev/null && echo REACHED tmpfs; \
                  mount -t proc none /tmp/m 2>/dev/null && echo REACHED proc; \
                  mount -t sysfs none /tmp/m 2>/dev/null && echo REACHED sysfs; \
                  mount -t cgroup2 none /tmp/m 2>/dev/null && echo REACHED cgroup2; \
                  mount --bind / /tmp/m 2>/dev/null && echo REACHED bind; \
                  mount -o remount,rw / 2>/dev/null && echo REACHED remount; \
                  umount /proc 2>/dev/null && echo REACHED umount; :";
    must_not_reach(context, script).await
}

async fn kernel_settings(context: &Context<'_>) -> Result<(), Finding> {
    // Only asks whether they could be written: an escape must not do harm. Each write that would
    // be tried puts back what is there.
    let script = "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe \
                  /proc/sys/vm/overcommit_memory /proc/sys/kernel/randomize_va_space \
                  /proc/sys/fs/file-max /sys/kernel/uevent_helper; do \
                  [ -e $f ] || continue; old=$(cat $f 2>/dev/null) || continue; \
                  (printf '%s\\n' \"$old\" >$f) 2>/dev/null && echo REACHED $f; done; \
                  for f in /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/release_agent; do \
                  [ -e $f ] || continue; old=$(cat $f 2>/dev/null) || continue; \
                  (printf '%s\\n' \"$old\" >$f) 2>/dev/null && echo REACHED $f; done; :";
    must_not_reach(context, script).await
}

async fn tracing(context: &Context<'_>) -> Result<(), Finding> {
    // The memory of a process of this machine, by the number it has there.
    let own = std::process::id();
    let script = format!(
        "for f in mem environ maps; do \
         [ \"$(readlink /proc/{own}/exe 2>/dev/null)\" = '{}' ] && echo REACHED $f; done; \
         kill -0 {own} 2>/dev/null && [ \"$(cat /proc/{own}/comm)\" = \"{}\" ] && echo REACHED by signal; :",
        std::env::current_exe().unwrap_or_default().display(),
        std::fs::read_to_string("/proc/self/comm").unwrap_or_default().trim(),
    );
    must_not_reach(context, &script).await
}

async fn egress(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_scripts()?;
    // A listener on the host, on all its addresses.
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await;
    let listener = listener.map_err(|error| Finding::Skipped(format!("no listener: {error}")))?;
    let port = listener.local_addr().map(|address| address.port()).unwrap_or(0);
    let script = format!(
        "[ -r /proc/net/route ] && while read -r device target rest; do \
         case $device in Iface|lo) ;; *) echo REACHED a route over $device to $target;; esac; \
         done </proc/net/route; \
         for address in 127.0.0.1 172.17.0.1 10.0.2.2 192.168.0.1; do \
         if command -v nc >/dev/null; then \
         nc -w 1 $address {port} </dev/null >/dev/null 2>&1 && echo REACHED $address; \
         elif command -v bash >/dev/null; then \
         timeout 1 bash -c \"exec 3<>/dev/tcp/$address/{port}\" 2>/dev/null && echo REACHED $address; \
         fi; done; :"
    );
    let arrives = async {
        let arrived = listener.accept().await;
        Err(Finding::Failed(format!("a connection came in: {:?}", arrived.map(|from| from.1))))
    };
    tokio::select! {
        tried = must_not_reach(context, &script) => tried,
        arrived = arrives => arrived,
    }
}

async fn clock(context: &Context<'_>) -> Result<(), Finding> {
    // A `date` that takes no notice of `-s` has set nothing, but says so no more than one that has.
    context.needs_posix()?;
    // To what it is already, so that an escape does no harm. The date of busybox exits with 0 even
    // where it was refused; only its message tells.
    let script =
        "said=$(date -s \"@$(date +%s)\" 2>&1 >/dev/null) && [ -z \"$said\" ] && echo REACHED; :";
    must_not_reach(context, script).await
}

async fn host_name(context: &Context<'_>) -> Result<(), Finding> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if host.is_empty() || host == "localhost" {
        return Err(Finding::Skipped("the host has no name of its own".into()));
    }
    let script = format!("[ \"$(cat /proc/sys/kernel/hostname)\" = '{host}' ] && echo REACHED; :");
    must_not_reach(context, &script).await
}
