//! What becomes of sandboxes from creation to the end.

use std::time::Duration;

use super::context::{Context, Finding, ensure, is_unsupported};
use super::{Trial, trials};
use crate::{Death, Determinism, Image, NetworkPolicy, OwnerState, Sandbox, SandboxError};

pub(super) const TRIALS: &[Trial] = trials![
    "it works here" => probe,
    "a wrong spec is refused with all its problems" => invalid_spec,
    "an image that is absent is told" => missing_image,
    "closing twice is no error, and nothing works afterwards" => close,
    "a snapshot keeps the files of its moment" => snapshot,
    "a fork and its origin do not see each other" => fork,
    "what was used up is told" => stats,
    "living sandboxes are listed, and a reaper leaves them alone" => reap,
    "a set-up command that fails is told, and leaves nothing" => setup,
    "set-up commands run in turn before the sandbox is handed out" => setup_order,
    "a creation beyond its deadline ends, and leaves nothing" => create_deadline,
    "a dropped creation leaves nothing" => dropped_creation,
    "a limit of the disk that is not kept is refused" => disk_limit,
    "a limit of the fuel that is not kept is refused" => fuel_limit,
    "determinism that is not kept is refused" => determinism,
    "a network that cannot be had is refused" => network,
    "an allow-list that is not kept is refused" => allow_list,
    "images that cannot be built are refused" => image_build,
    "archives that cannot be images are refused" => image_root_tar,
];

/// Runs after all others.
pub(super) const LAST: &[Trial] = trials!["no sandbox of the checks is left" => nothing_left,];

async fn probe(context: &Context<'_>) -> Result<(), Finding> {
    let line = context.backend.probe().await?;
    ensure!(!line.is_empty() && !line.contains('\n'), "it says {line:?}");
    Ok(context.backend.prepare(&context.spec()).await?)
}

async fn invalid_spec(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.limits.cpus = Some(-1.0);
    spec.limits.pids = Some(0);
    spec.workdir = Some("relative".into());
    match context.backend.create(&spec).await.map(drop) {
        Err(SandboxError::InvalidSpec { problems }) if problems.len() == 3 => Ok(()),
        other => Err(Finding::Failed(format!("{other:?}"))),
    }
}

async fn missing_image(context: &Context<'_>) -> Result<(), Finding> {
    let Some(image) = &context.options.missing_image else {
        return Err(Finding::Skipped("every name is an image".into()));
    };
    let mut spec = context.spec();
    spec.image = image.clone();
    match context.backend.create(&spec).await.map(drop) {
        Err(SandboxError::ImageMissing { hint, .. }) if !hint.is_empty() => Ok(()),
        other => Err(Finding::Failed(format!("{other:?}"))),
    }
}

async fn close(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.close().await?;
    sandbox.close().await?;
    let program = context.program(&context.options.programs.echo)?.0;
    let results = [
        ("exec", sandbox.exec(&program.request()).await.map(drop)),
        ("read", sandbox.read_file("/tmp/x", 1).await.map(drop)),
        ("write", sandbox.write_file("/tmp/x", b"", 0o644).await),
        ("list", sandbox.list_files("/tmp").await.map(drop)),
        ("stats", sandbox.stats().await.map(drop)),
    ];
    for (what, result) in results {
        let is_told = matches!(result, Err(SandboxError::Died { death: Death::Closed, .. }));
        ensure!(is_told, "{what}: {result:?}");
    }
    Ok(())
}

async fn put(sandbox: &dyn Sandbox, text: &str) -> Result<(), Finding> {
    Ok(sandbox.write_file("/tmp/state", text.as_bytes(), 0o644).await?)
}

async fn expect(sandbox: &dyn Sandbox, text: &str) -> Result<(), Finding> {
    let bytes = sandbox.read_file("/tmp/state", 100).await?;
    ensure!(bytes == text.as_bytes(), "{:?} in place of {text:?}", String::from_utf8_lossy(&bytes));
    Ok(())
}

async fn snapshot(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    if !context.can().snapshot {
        let error = sandbox.snapshot().await.err();
        sandbox.close().await?;
        return error.map_or_else(|| Err(Finding::Failed("it was taken".into())), is_unsupported);
    }
    // Not in `/tmp`, which a backend may leave out.
    sandbox.write_file("/kept/state", b"first", 0o644).await?;
    let snapshot = sandbox.snapshot().await?;
    sandbox.write_file("/kept/state", b"second", 0o644).await?;
    let first = context.backend.restore(&snapshot).await?;
    let second = context.backend.restore(&snapshot).await?;
    sandbox.close().await?;
    first.write_file("/kept/state", b"third", 0o644).await?;
    let kept = second.read_file("/kept/state", 100).await?;
    ensure!(kept == b"first", "{:?} was restored", String::from_utf8_lossy(&kept));
    ensure!(second.spec() == &snapshot.spec, "the spec is another");
    first.close().await?;
    second.close().await?;
    context.backend.remove_snapshot(&snapshot).await?;
    context.backend.remove_snapshot(&snapshot).await?;
    let gone = context.backend.restore(&snapshot).await.map(drop);
    ensure!(matches!(gone, Err(SandboxError::ImageMissing { .. })), "once removed: {gone:?}");
    Ok(())
}

async fn fork(context: &Context<'_>) -> Result<(), Finding> {
    let origin = context.create().await?;
    if !context.can().fork {
        let error = origin.fork().await.err();
        origin.close().await?;
        return error.map_or_else(|| Err(Finding::Failed("it was forked".into())), is_unsupported);
    }
    put(&*origin, "origin").await?;
    let fork = origin.fork().await?;
    ensure!(fork.id() != origin.id(), "both are `{}`", fork.id());
    expect(&*fork, "origin").await?;
    put(&*fork, "fork").await?;
    expect(&*origin, "origin").await?;
    let again = fork.fork().await?;
    origin.close().await?;
    expect(&*fork, "fork").await?;
    fork.close().await?;
    expect(&*again, "fork").await?;
    Ok(again.close().await?)
}

async fn stats(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let stats = sandbox.stats().await?;
    sandbox.close().await?;
    let is_sane = stats.pids.is_none_or(|pids| pids < 100_000)
        && stats.memory_bytes.is_none_or(|bytes| bytes < 1 << 40);
    ensure!(is_sane, "{stats:?}");
    Ok(())
}

async fn reap(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    put(&*sandbox, "lives").await?;
    let listed = context.backend.list().await?;
    let record = listed.iter().find(|record| record.id == sandbox.id());
    let Some(record) = record else { return Err(Finding::Failed("it is not listed".into())) };
    ensure!(record.owner_state == OwnerState::Own, "it is {:?}", record.owner_state);
    let lifetime = record.expires.duration_since(record.created).unwrap_or_default();
    let expected = sandbox.spec().lifetimes.time_to_live();
    ensure!(lifetime.abs_diff(expected).as_secs() < 10, "it lives for {lifetime:?}");
    let report = context.backend.reap().await?;
    ensure!(report.failed.is_empty(), "{:?}", report.failed);
    expect(&*sandbox, "lives").await?;
    sandbox.close().await?;
    let listed = context.backend.list().await?;
    ensure!(listed.iter().all(|record| record.id != sandbox.id()), "closed, and still listed");
    Ok(())
}

/// Ids of all that is ours.
async fn own_ids(context: &Context<'_>) -> Result<Vec<String>, Finding> {
    let listed = context.backend.list().await?;
    let own = listed.into_iter().filter(|record| record.owner_state == OwnerState::Own);
    Ok(own.map(|record| record.id).collect())
}

async fn setup(context: &Context<'_>) -> Result<(), Finding> {
    // Where commands are found by name, set-up commands are as well.
    context.program(&context.options.programs.missing)?;
    let before = own_ids(context).await?;
    let mut spec = context.spec();
    spec.setup = vec!["true".into(), "no-such-program".into(), "true".into()];
    match context.backend.create(&spec).await.map(drop) {
        Err(SandboxError::Setup { command, end, output })
            if command == "no-such-program" && end.shell_code() == 127 =>
        {
            ensure!(output.contains("not found"), "it says {output:?}");
        }
        other => return Err(Finding::Failed(format!("{other:?}"))),
    }
    let after = own_ids(context).await?;
    ensure!(after.iter().all(|id| before.contains(id)), "a sandbox is left");
    Ok(())
}

async fn setup_order(context: &Context<'_>) -> Result<(), Finding> {
    context.needs_posix()?;
    let mut spec = context.spec();
    spec.setup =
        vec!["mkdir -p /kept".into(), "echo 1 >>/kept/f".into(), "echo 2 >>/kept/f".into()];
    let sandbox = context.backend.create(&spec).await?;
    let bytes = sandbox.read_file("/kept/f", 100).await?;
    sandbox.close().await?;
    ensure!(bytes == b"1\n2\n", "{:?}", String::from_utf8_lossy(&bytes));
    Ok(())
}

async fn create_deadline(context: &Context<'_>) -> Result<(), Finding> {
    let before = own_ids(context).await?;
    let mut spec = context.spec();
    spec.lifetimes.create_secs = 0;
    match context.backend.create(&spec).await {
        Err(SandboxError::CreateTimedOut { seconds: 0 }) => {}
        Err(error) => return Err(error.into()),
        // No time at all was enough.
        Ok(sandbox) => sandbox.close().await?,
    }
    settles(context, &before).await
}

async fn dropped_creation(context: &Context<'_>) -> Result<(), Finding> {
    let before = own_ids(context).await?;
    for millis in [1, 20, 100] {
        let spec = context.spec();
        let creating = context.backend.create(&spec);
        if let Ok(Ok(sandbox)) = tokio::time::timeout(Duration::from_millis(millis), creating).await
        {
            sandbox.close().await?;
        }
    }
    settles(context, &before).await
}

/// Soon nothing is left but what was there before.
async fn settles(context: &Context<'_>, before: &[String]) -> Result<(), Finding> {
    let mut left = Vec::new();
    for _ in 0..30 {
        left = own_ids(context).await?;
        left.retain(|id| !before.contains(id));
        if left.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Err(Finding::Failed(format!("left after 30 s: {left:?}")))
}

async fn disk_limit(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.limits.disk_bytes = Some(64 << 20);
    kept_or_refused(context, context.can().disk_limit, &spec).await
}

async fn fuel_limit(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.limits.fuel = Some(1 << 40);
    kept_or_refused(context, context.can().fuel_limit, &spec).await
}

async fn determinism(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.determinism = Some(Determinism { seed: 1, start_secs: 0 });
    kept_or_refused(context, context.can().determinism, &spec).await
}

async fn network(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.network = NetworkPolicy::Bridge;
    kept_or_refused(context, context.can().network, &spec).await
}

async fn allow_list(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.network = NetworkPolicy::allow(["localhost:1".parse().expect("it is an entry")]);
    kept_or_refused(context, context.can().network_allow_list, &spec).await
}

async fn image_build(context: &Context<'_>) -> Result<(), Finding> {
    if context.can().image_build {
        return Err(Finding::Skipped("the backend's own tests build images".into()));
    }
    let mut spec = context.spec();
    spec.image = Image::Build { context: "/nowhere".into(), dockerfile: "Dockerfile".into() };
    context.must_refuse(&spec).await
}

async fn image_root_tar(context: &Context<'_>) -> Result<(), Finding> {
    if context.can().image_root_tar {
        return Err(Finding::Skipped("the backend's own tests unpack images".into()));
    }
    let mut spec = context.spec();
    spec.image = Image::RootTar("/nowhere.tar".into());
    context.must_refuse(&spec).await
}

async fn kept_or_refused(
    context: &Context<'_>,
    can: bool,
    spec: &crate::SandboxSpec,
) -> Result<(), Finding> {
    if !can {
        return context.must_refuse(spec).await;
    }
    Ok(context.backend.create(spec).await?.close().await?)
}

async fn nothing_left(context: &Context<'_>) -> Result<(), Finding> {
    // A check that failed may just have dropped its sandbox, which is closed in the background.
    settles(context, &context.before).await
}
