//! The backend: one engine, or several as one pool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::container::{self, Started};
use super::engine::{Engine, REQUEST, status, within};
use super::host::DockerHost;
use super::sandbox::{DockerSandbox, snapshot_missing};
use super::{NAME, image, reap};
use crate::{
    Capabilities, NetworkPolicy, ReapReport, Sandbox, SandboxBackend, SandboxError, SandboxRecord,
    SandboxSpec, Snapshot,
};

/// How long the engine with the fewest sandboxes may take to say that it lives before the next one
/// is asked as well.
const HEAD_START: Duration = Duration::from_millis(500);

/// Sandboxes in containers of Docker or Podman.
///
/// Of several engines each new sandbox gets the one with the fewest of this process's sandboxes.
/// Engines that do not answer, or start nothing, are passed over and asked again in the background,
/// so that nobody waits for them as long as there are others.
pub struct DockerBackend {
    engines: Vec<Arc<Engine>>,
    /// Asks engines that were given up whether they are back; ended with the backend.
    asking: Mutex<JoinSet<()>>,
}

impl DockerBackend {
    /// The engines that `DOCKER_HOST` names, separated by commas, or that of the default socket.
    /// They are asked when they are first needed.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] if there is no socket, or an address cannot be understood.
    pub fn new() -> Result<Self, SandboxError> {
        Self::open(DockerHost::from_environment()?)
    }

    /// As [`DockerBackend::new`], and makes sure that an engine answers.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] with the one thing to do.
    pub async fn connect() -> Result<Self, SandboxError> {
        Self::connect_many(DockerHost::from_environment()?).await
    }

    /// Several engines as one pool. One that does not answer may do so later.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] if none answers, with what the last one's trouble is.
    pub async fn connect_many(
        hosts: impl IntoIterator<Item = DockerHost>,
    ) -> Result<Self, SandboxError> {
        let backend = Self::open(hosts)?;
        let mut asked: FuturesUnordered<_> =
            backend.engines.iter().map(|engine| engine.facts()).collect();
        let mut trouble = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(_) => {
                    trouble = None;
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, "passed over an engine");
                    trouble = Some(error);
                }
            }
        }
        drop(asked);
        trouble.map_or(Ok(backend), Err)
    }

    fn open(hosts: impl IntoIterator<Item = DockerHost>) -> Result<Self, SandboxError> {
        let (mut engines, mut trouble) = (Vec::new(), None);
        for host in hosts {
            match Engine::new(host) {
                Ok(engine) => engines.push(Arc::new(engine)),
                Err(error) => {
                    tracing::warn!(%error, "passed over an engine");
                    trouble = Some(error);
                }
            }
        }
        if !engines.is_empty() {
            return Ok(Self { engines, asking: Mutex::default() });
        }
        Err(trouble.unwrap_or_else(|| SandboxError::Unavailable {
            backend: NAME,
            reason: "no engine is named".into(),
            hint: "name at least one host".into(),
        }))
    }

    #[cfg(test)]
    pub(super) fn engine(&self, index: usize) -> &Engine {
        &self.engines[index]
    }

    /// Addresses of the engines, each with the number of this process's sandboxes on it.
    pub fn live(&self) -> Vec<(String, usize)> {
        let live = |engine: &Arc<Engine>| (engine.host.address().to_owned(), engine.count_live());
        self.engines.iter().map(live).collect()
    }

    /// The engine for the next sandbox, which is none of `tried`. It is counted there from now on,
    /// so that many that are made at one time spread.
    async fn place(&self, tried: &[Arc<Engine>]) -> Result<Placed, SandboxError> {
        if let [only] = self.engines.as_slice() {
            return Ok(Placed::new(only));
        }
        self.ask_again();
        let mut engines: Vec<_> = self
            .engines
            .iter()
            .filter(|engine| !tried.iter().any(|tried| Arc::ptr_eq(tried, engine)))
            .collect();
        engines.sort_by_key(|engine| engine.count_live());
        let (trusted, others): (Vec<_>, Vec<_>) =
            engines.into_iter().partition(|engine| engine.health.is_trusted());
        match first_answer(trusted).await {
            Ok(placed) => Ok(placed),
            // Those that were given up are better than none.
            Err(trouble) => match first_answer(others).await {
                Ok(placed) => Ok(placed),
                Err(more) => Err(trouble.or(more).expect("there is an engine that was not tried")),
            },
        }
    }

    /// Asks engines that were given up a while ago whether they are back.
    fn ask_again(&self) {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        while asking.try_join_next().is_some() {}
        for engine in &self.engines {
            if engine.health.begin_asking(Instant::now()) {
                let engine = Arc::clone(engine);
                asking.spawn(async move { drop(engine.answers().await) });
            }
        }
    }

    /// The engine that has the snapshot.
    async fn find(&self, snapshot: &Snapshot) -> Result<&Arc<Engine>, SandboxError> {
        let looks = self.engines.iter().map(|engine| async move {
            (engine, within(REQUEST, engine.docker.inspect_image(&snapshot.id)).await)
        });
        let mut looks: FuturesUnordered<_> = looks.collect();
        let (mut missing, mut trouble) = (None, None);
        while let Some((engine, found)) = looks.next().await {
            match found {
                Ok(_) => return Ok(engine),
                Err(error) if status(&error) == Some(404) => {
                    missing = Some(snapshot_missing(&snapshot.id, &error));
                }
                Err(error) => {
                    let doing = format!("look for snapshot {}", snapshot.id);
                    trouble = Some(engine.error(doing, error));
                }
            }
        }
        // One that cannot be asked may have it.
        Err(trouble.or(missing).expect("there is at least one engine"))
    }
}

/// The first of these engines that answers. They are asked in their order, each when those before it
/// have failed or had a head start.
async fn first_answer(engines: Vec<&Arc<Engine>>) -> Result<Placed, Option<SandboxError>> {
    let mut asked = FuturesUnordered::new();
    let mut engines = engines.into_iter();
    let mut trouble = None;
    loop {
        if let Some(engine) = engines.next() {
            let placed = Asked { placed: Some(Placed::new(engine)), since: Instant::now() };
            asked.push(async move { (placed.engine().answers().await, placed) });
        }
        tokio::select! {
            biased;
            answer = asked.next() => match answer {
                Some((Ok(()), placed)) => return Ok(placed.take()),
                Some((Err(error), placed)) => {
                    drop(placed.take());
                    trouble = Some(error);
                }
                None => return Err(trouble),
            },
            () = tokio::time::sleep(HEAD_START), if engines.len() > 0 => {}
        }
    }
}

/// An engine that is being asked. Where another answers before it, it was too slow.
struct Asked {
    placed: Option<Placed>,
    since: Instant,
}

impl Asked {
    fn engine(&self) -> &Arc<Engine> {
        &self.placed.as_ref().expect("it is only taken by value").0
    }

    /// It has said what it had to say.
    fn take(mut self) -> Placed {
        self.placed.take().expect("it is only taken once")
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(Placed(engine)) = &self.placed
            && self.since.elapsed() >= HEAD_START
        {
            engine.health.failed(Instant::now());
        }
    }
}

/// A place on an engine that a new sandbox takes.
struct Placed(Arc<Engine>);

impl Placed {
    fn new(engine: &Arc<Engine>) -> Self {
        engine.live.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self(Arc::clone(engine))
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// What this backend cannot do is said before anything is made.
fn check(spec: &SandboxSpec, capabilities: Capabilities) -> Result<(), SandboxError> {
    spec.validate()?;
    let limits = &spec.limits;
    let asked = [
        (spec.determinism.is_some(), "fix chance and time"),
        (limits.fuel.is_some(), "limit the fuel"),
        (
            spec.network == NetworkPolicy::Bridge && !capabilities.network,
            "keep sandboxes on a bridge of Podman apart",
        ),
        (limits.cpus.is_some() && !capabilities.cpu_limit, "limit the cpus"),
        (limits.memory_bytes.is_some() && !capabilities.memory_limit, "limit the memory"),
        (limits.pids.is_some() && !capabilities.pids_limit, "limit the processes"),
        (
            limits.disk_bytes.is_some() && !capabilities.disk_limit && !spec.read_only_root,
            "limit the disk where the engine's storage has no quotas and the root can be written",
        ),
    ];
    match asked.iter().find(|(asked, _)| *asked) {
        Some((_, what)) => Err(container::unsupported(what)),
        None => Ok(()),
    }
}

pub(super) async fn create_on(
    engine: &Arc<Engine>,
    spec: &SandboxSpec,
) -> Result<DockerSandbox, SandboxError> {
    engine.facts().await?;
    check(spec, engine.capabilities())?;
    let started = start(engine, spec).await?;
    let sandbox = DockerSandbox::new(Arc::clone(engine), started, spec.clone(), None);
    sandbox.or_closed(sandbox.set_up().await).await?;
    Ok(sandbox)
}

async fn start(engine: &Arc<Engine>, spec: &SandboxSpec) -> Result<Started, SandboxError> {
    let name = image::prepare(engine, spec, false).await?;
    match container::start(engine, spec, &name).await {
        Err(SandboxError::ImageMissing { .. }) => {
            // It was there, and somebody removed it.
            image::forget(engine, &spec.image);
            let name = image::prepare(engine, spec, true).await?;
            container::start(engine, spec, &name).await
        }
        other => other,
    }
}

#[async_trait]
impl SandboxBackend for DockerBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        // Those that all engines have: a sandbox may come to any.
        let mut engines = self.engines.iter().map(|engine| engine.capabilities());
        let first = engines.next().unwrap_or_default();
        engines.fold(first, |all, next| Capabilities {
            cpu_limit: all.cpu_limit && next.cpu_limit,
            memory_limit: all.memory_limit && next.memory_limit,
            pids_limit: all.pids_limit && next.pids_limit,
            disk_limit: all.disk_limit && next.disk_limit,
            network: all.network && next.network,
            bridge_change: all.bridge_change && next.bridge_change,
            ..all
        })
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        let mut lines = Vec::new();
        let mut trouble = None;
        for described in join_all(self.engines.iter().map(|engine| engine.describe())).await {
            match described {
                Ok(line) => lines.push(line),
                Err(error) => trouble = Some(error),
            }
        }
        match trouble {
            Some(error) if lines.is_empty() => Err(error),
            Some(error) => Ok(format!("{}; {error}", lines.join("; "))),
            None => Ok(lines.join("; ")),
        }
    }

    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let mut trouble = None;
        let mut done = false;
        // Nobody is to wait for engines that were given up, unless there are no others.
        let is_any_trusted = self.engines.iter().any(|engine| engine.health.is_trusted());
        let asked =
            self.engines.iter().filter(|engine| engine.health.is_trusted() || !is_any_trusted);
        let all = asked.map(|engine| image::prepare(engine, spec, true));
        for prepared in join_all(all).await {
            match prepared {
                Ok(_) => done = true,
                Err(error @ SandboxError::Unavailable { .. }) => trouble = Some(error),
                Err(error) => return Err(error),
            }
        }
        match trouble {
            Some(error) if !done => Err(error),
            _ => Ok(()),
        }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let mut tried = Vec::new();
        loop {
            let placed = self.place(&tried).await?;
            let engine = Arc::clone(&placed.0);
            let made = create_on(&placed.0, spec).await;
            drop(placed);
            let is_last = tried.len() + 1 == self.engines.len();
            match made {
                Ok(sandbox) => {
                    engine.health.worked();
                    return Ok(Box::new(sandbox));
                }
                // Another engine may do better.
                Err(error @ (SandboxError::Unavailable { .. } | SandboxError::DiskFull { .. })) => {
                    engine.health.failed(Instant::now());
                    if is_last {
                        return Err(error);
                    }
                    tracing::warn!(%error, "passed over an engine");
                    tried.push(engine);
                }
                Err(error) => {
                    if error.is_backend_failure() {
                        engine.health.doubted(Instant::now());
                    }
                    return Err(error);
                }
            }
        }
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError> {
        let engine = self.find(snapshot).await?;
        engine.facts().await?;
        check(&snapshot.spec, engine.capabilities())?;
        let started = container::start(engine, &snapshot.spec, &snapshot.id).await?;
        let spec = snapshot.spec.clone();
        let sandbox = DockerSandbox::new(Arc::clone(engine), started, spec, None);
        sandbox.or_closed(sandbox.open_network().await).await?;
        Ok(Box::new(sandbox))
    }

    async fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError> {
        match self.find(snapshot).await {
            Ok(engine) => reap::remove_image(engine, &snapshot.id).await,
            Err(SandboxError::ImageMissing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError> {
        let mut records = Vec::new();
        for listed in join_all(self.engines.iter().map(|engine| reap::list(engine))).await {
            records.extend(listed?);
        }
        Ok(records)
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        let mut report = ReapReport::default();
        let mut trouble = None;
        let mut asked = false;
        let reaps = self.engines.iter().map(|engine| async move {
            let mut report = ReapReport::default();
            let looked = reap::reap(engine, &mut report).await;
            (engine, report, looked)
        });
        for (engine, own, looked) in join_all(reaps).await {
            report.add(own);
            match looked {
                Ok(()) => asked = true,
                Err(error) => {
                    report.failed.push(format!("engine {}: {error}", engine.host.address()));
                    trouble = Some(error);
                }
            }
        }
        match trouble {
            Some(error) if !asked => Err(error),
            _ => Ok(report),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Determinism, Image};

    #[test]
    fn what_a_container_cannot_give_is_refused_by_name() {
        let all = Capabilities {
            cpu_limit: true,
            memory_limit: true,
            pids_limit: true,
            network: true,
            ..Capabilities::default()
        };
        let plain = SandboxSpec::new(Image::Default);
        check(&plain, all).unwrap();
        let mut spec = plain.clone();
        spec.determinism = Some(Determinism { seed: 1, start_secs: 0 });
        let error = check(&spec, all).unwrap_err();
        assert!(error.to_string().contains("fix chance and time"), "{error}");
        let mut spec = plain.clone();
        spec.limits.disk_bytes = Some(1 << 20);
        let error = check(&spec, all).unwrap_err();
        assert!(error.to_string().contains("limit the disk"), "{error}");
        spec.read_only_root = true;
        check(&spec, all).unwrap();
        let error = check(&plain, Capabilities::default()).unwrap_err();
        assert!(matches!(error, SandboxError::Unsupported { backend: "docker", .. }));
    }
}
