//! The backend: one engine, or several as one pool.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::container::{self, Started};
use super::engine::{Engine, REQUEST, status, within};
use super::host::DockerHost;
use super::sandbox::{DockerSandbox, snapshot_missing};
use super::{NAME, image, reap};
use crate::{
    Capabilities, ReapReport, Sandbox, SandboxBackend, SandboxError, SandboxRecord, SandboxSpec,
    Snapshot,
};

/// How long an engine of a pool may take to say that it lives, before a sandbox goes to another.
const ALIVE: Duration = Duration::from_secs(5);

/// Sandboxes in containers of Docker or Podman.
///
/// Of several engines each new sandbox gets the one with the fewest of this process's sandboxes;
/// engines that do not answer are passed over until they do.
pub struct DockerBackend {
    engines: Vec<Arc<Engine>>,
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
        let mut trouble = None;
        for engine in &backend.engines {
            if let Err(error) = engine.facts().await {
                tracing::warn!(%error, "passed over an engine");
                trouble = Some(error);
            } else {
                trouble = None;
                break;
            }
        }
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
            return Ok(Self { engines });
        }
        Err(trouble.unwrap_or_else(|| SandboxError::Unavailable {
            backend: NAME,
            reason: "no engine is named".into(),
            hint: "name at least one host".into(),
        }))
    }

    /// Addresses of the engines, each with the number of this process's sandboxes on it.
    pub fn live(&self) -> Vec<(String, usize)> {
        let live = |engine: &Arc<Engine>| (engine.host.address().to_owned(), engine.count_live());
        self.engines.iter().map(live).collect()
    }

    /// The engine for the next sandbox. It is counted there from now on, so that many that are
    /// made at one time spread.
    async fn place(&self) -> Result<Placed, SandboxError> {
        let mut engines: Vec<_> = self.engines.iter().collect();
        engines.sort_by_key(|engine| engine.count_live());
        if let [only] = engines.as_slice() {
            return Ok(Placed::new(only));
        }
        let mut trouble = None;
        for engine in engines {
            match within(ALIVE, engine.docker.ping()).await {
                Ok(_) => match engine.facts().await {
                    Ok(_) => return Ok(Placed::new(engine)),
                    Err(error) => trouble = Some(error),
                },
                Err(error) => trouble = Some(engine.host.unavailable(error.to_string())),
            }
        }
        Err(trouble.expect("there is at least one engine"))
    }

    /// The engine that has the snapshot.
    async fn find(&self, snapshot: &Snapshot) -> Result<&Arc<Engine>, SandboxError> {
        let mut trouble = None;
        for engine in &self.engines {
            match within(REQUEST, engine.docker.inspect_image(&snapshot.id)).await {
                Ok(_) => return Ok(engine),
                Err(error) if status(&error) == Some(404) => {
                    trouble = Some(snapshot_missing(&snapshot.id, &error));
                }
                Err(error) => {
                    let error = engine.error(format!("look for snapshot {}", snapshot.id), error);
                    trouble = trouble.or(Some(error));
                }
            }
        }
        Err(trouble.expect("there is at least one engine"))
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
            ..all
        })
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        let mut lines = Vec::new();
        let mut trouble = None;
        for engine in &self.engines {
            match engine.describe().await {
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
        for engine in &self.engines {
            match image::prepare(engine, spec, true).await {
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
        let placed = self.place().await?;
        placed.0.facts().await?;
        check(spec, placed.0.capabilities())?;
        let started = start(&placed.0, spec).await?;
        let sandbox = DockerSandbox::new(Arc::clone(&placed.0), started, spec.clone(), None);
        sandbox.or_closed(sandbox.set_up().await).await?;
        Ok(Box::new(sandbox))
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
        for engine in &self.engines {
            records.extend(reap::list(engine).await?);
        }
        Ok(records)
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        let mut report = ReapReport::default();
        let mut trouble = None;
        let mut asked = false;
        for engine in &self.engines {
            match reap::reap(engine, &mut report).await {
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
