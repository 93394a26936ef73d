//! What commands may do beyond what files' permissions say, and what each of their processes may hold.

use super::context::{Context, Finding, ensure, sh};
use super::{Trial, abuse, trials};
use crate::{CapabilitySet, ExecRequest, Sandbox, SandboxSpec};

pub(super) const TRIALS: &[Trial] = trials![
    "a limit of shared memory is kept" => shared_memory,
    "a limit of open files is kept" => open_files,
    "commands have no capabilities that nobody asked for" => no_capabilities,
    "capabilities for packages give files away and change users" => packages,
    "capabilities for packages lead nowhere out" => contained,
];

async fn shared_memory(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.limits.shm_bytes = Some(1 << 20);
    if !context.can().shm_limit {
        return context.must_refuse(&spec).await;
    }
    context.needs_posix()?;
    let fits = "head -c 1000000 /dev/zero >/dev/shm/a && echo fits";
    let too_much = "head -c 2000000 /dev/zero >/dev/shm/a 2>/dev/null || echo full";
    let sandbox = context.backend.create(&spec).await?;
    let said = sh(&*sandbox, &format!("{fits}; {too_much}")).await?;
    sandbox.close().await?;
    ensure!(said == "fits\nfull\n", "with 1 MiB: {said}");
    // More than there is where nothing is asked for.
    spec.limits.shm_bytes = Some(100 << 20);
    let sandbox = context.backend.create(&spec).await?;
    let said = sh(&*sandbox, "head -c 90000000 /dev/zero >/dev/shm/a && echo fits").await?;
    ensure!(said == "fits\n", "with 100 MiB: {said}");
    Ok(sandbox.close().await?)
}

async fn open_files(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.limits.open_files = Some(64);
    if !context.can().open_files_limit {
        return context.must_refuse(&spec).await;
    }
    context.needs_posix()?;
    let sandbox = context.backend.create(&spec).await?;
    let script = "mkdir /tmp/f; cd /tmp/f; list=; i=0; \
                  while [ $i -lt 100 ]; do list=\"$list f$i\"; i=$((i+1)); done; \
                  : | tee $list 2>&1 >/dev/null | grep -ci 'too many open files\\|no file descriptors'; \
                  ls | wc -l; ulimit -Hn; ulimit -n 128 2>/dev/null && echo RAISED; :";
    let said = sh(&*sandbox, script).await?;
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let [refused, made, hard] = lines[..] else {
        return Err(Finding::Failed(format!("it said {said:?}")));
    };
    ensure!(refused != "0" && hard == "64", "it said {said:?}");
    let made: u32 = made.parse().unwrap_or(u32::MAX);
    ensure!((30..64).contains(&made), "{made} files were open at one time");
    // A process of its own has as many again.
    let again = sh(&*sandbox, "cat /tmp/f/f1 && echo fine").await?;
    ensure!(again == "fine\n", "afterwards: {again}");
    Ok(sandbox.close().await?)
}

/// The capabilities of a command, as the kernel tells them: at hand, and those that it can ever have.
async fn held(sandbox: &dyn Sandbox, user: Option<&str>) -> Result<(u64, u64), Finding> {
    let mut request = ExecRequest::sh("grep -e CapEff -e CapBnd /proc/self/status");
    request.user = user.map(str::to_owned);
    let result = sandbox.exec(&request).await?;
    let text = result.stdout.text();
    let numbers = text.lines().filter_map(|line| line.split_whitespace().nth(1));
    let numbers: Vec<_> =
        numbers.filter_map(|number| u64::from_str_radix(number, 16).ok()).collect();
    match numbers[..] {
        [effective, bounding] => Ok((effective, bounding)),
        _ => Err(Finding::Failed(format!("it says {text:?}, {}", result.stderr.text()))),
    }
}

async fn no_capabilities(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.posix().await?;
    let held = held(&*sandbox, None).await?;
    ensure!(held == (0, 0), "it has {held:x?}");
    let script = "touch /tmp/f; chown 1:1 /tmp/f 2>/dev/null && echo GIVEN; \
                  su -s /bin/sh nobody -c 'echo CHANGED' 2>/dev/null </dev/null; :";
    let said = sh(&*sandbox, script).await?;
    ensure!(said.is_empty(), "it could: {said}");
    Ok(sandbox.close().await?)
}

fn with_packages(context: &Context<'_>) -> SandboxSpec {
    SandboxSpec { capabilities: CapabilitySet::Packages, ..context.spec() }
}

async fn packages(context: &Context<'_>) -> Result<(), Finding> {
    let spec = with_packages(context);
    if !context.can().capability_sets {
        return context.must_refuse(&spec).await;
    }
    context.needs_posix()?;
    let sandbox = context.backend.create(&spec).await?;
    let names = CapabilitySet::Packages.capabilities();
    let mask = names.iter().fold(0, |mask, (_, number)| mask | 1u64 << number);
    let of_root = held(&*sandbox, None).await?;
    ensure!(of_root == (mask, mask), "root has {of_root:x?} in place of {mask:x}");
    let of_nobody = held(&*sandbox, Some("nobody")).await?;
    ensure!(of_nobody.0 == 0, "another user has {of_nobody:x?}");
    let script = "cd /tmp; echo x >mine; chown 1:2 mine; ls -ln mine | tr -s ' ' | cut -d' ' -f3,4; \
                  [ \"$(su -s /bin/sh nobody -c 'id -u')\" = \"$(id -u nobody)\" ] && echo changed; \
                  su -s /bin/sh nobody -c 'cd /tmp; echo secret >n; chmod 000 n; echo x >mine' 2>/dev/null; \
                  cat n mine; cp \"$(command -v id)\" own-id; chmod 4755 own-id; \
                  [ \"$(su -s /bin/sh nobody -c '/tmp/own-id -u' 2>/dev/null)\" = 0 ] && echo GAINED; \
                  su -s /bin/sh nobody -c 'chown 0 /tmp/n' 2>/dev/null && echo GIVEN; :";
    let said = sh(&*sandbox, script).await?;
    ensure!(said == "1 2\nchanged\nsecret\nx\n", "it said {said:?}");
    // What another user left behind is ended as well.
    let leaves =
        "su -s /bin/sh nobody -c '(setsid sleep 98766 </dev/null >/dev/null 2>&1 &)'; sleep 1";
    sh(&*sandbox, leaves).await?;
    sandbox.end_all().await?;
    let left = sh(&*sandbox, "grep -l 9876[6] /proc/[0-9]*/cmdline 2>/dev/null; :").await?;
    ensure!(left.is_empty(), "still runs: {left}");
    Ok(sandbox.close().await?)
}

/// What abuse cannot reach without capabilities, it cannot reach with these.
async fn contained(context: &Context<'_>) -> Result<(), Finding> {
    let spec = with_packages(context);
    if !context.can().capability_sets {
        return context.must_refuse(&spec).await;
    }
    context.needs_posix()?;
    let context = Context { capabilities: CapabilitySet::Packages, before: Vec::new(), ..*context };
    abuse::all_that_reach(&context).await
}
