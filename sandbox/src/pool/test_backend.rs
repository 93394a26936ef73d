//! A backend that counts: how many sandboxes there are, and when they were started.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};

use crate::{
    ByteStream, Capabilities, Changes, Death, ExecRequest, ExecResult, FileEntry, Image,
    NetworkPolicy, OutputSink, Process, PtyProcess, PtySize, ReapReport, Sandbox, SandboxBackend,
    SandboxError, SandboxRecord, SandboxSpec, SandboxStats, Shell, ShellOptions, Snapshot,
};

/// A backend that counts.
#[derive(Default)]
pub(super) struct TestBackend {
    pub(super) counts: Arc<TestCounts>,
    /// How long starting and closing take.
    pub(super) start: Duration,
    pub(super) close: Duration,
    /// Whether starts fail, and how where it is not the daemon that cannot be reached.
    pub(super) failing: AtomicBool,
    pub(super) failure: Mutex<Option<fn() -> SandboxError>>,
    pub(super) panics: AtomicBool,
    /// How long preparing an image takes, by its name; one that is not here takes no time.
    pub(super) prepare: Mutex<HashMap<&'static str, Duration>>,
    /// An image that cannot be prepared.
    pub(super) unfit_image: Mutex<Option<&'static str>>,
    /// An image of which no sandbox gets ready in time.
    pub(super) bad_image: Mutex<Option<&'static str>>,
    /// Names of engines, which get sandboxes in turn; where there are none, the backend is one.
    pub(super) engines: &'static [&'static str],
}

/// What was counted.
#[derive(Default)]
pub(super) struct TestCounts {
    pub(super) live: AtomicUsize,
    pub(super) most_live: AtomicUsize,
    pub(super) starting: AtomicUsize,
    pub(super) most_starting: AtomicUsize,
    pub(super) starts: Mutex<Vec<Instant>>,
    pub(super) next: AtomicU64,
    pub(super) closing_fails: AtomicBool,
    pub(super) execs_fail: AtomicBool,
    pub(super) warm_died: AtomicBool,
    pub(super) reaps: AtomicUsize,
    pub(super) preparing: AtomicUsize,
    pub(super) most_preparing: AtomicUsize,
    /// Images in the order in which they were asked for.
    pub(super) prepared: Mutex<Vec<String>>,
    /// An engine that is gone: what it keeps can neither be used nor removed, and nothing is
    /// started there.
    pub(super) dead_engine: Mutex<Option<&'static str>>,
    /// Checks of what the dead engine keeps get no answer.
    pub(super) is_silent: AtomicBool,
}

pub(super) struct TestSandbox {
    id: String,
    spec: SandboxSpec,
    engine: &'static str,
    counts: Arc<TestCounts>,
    close: Duration,
    is_closed: AtomicBool,
}

pub(super) fn unreachable_daemon() -> SandboxError {
    SandboxError::Backend { doing: "reach the daemon".into(), source: "refused".into() }
}

impl TestCounts {
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    pub(super) fn num_starts(&self) -> usize {
        self.starts.lock().unwrap().len()
    }

    fn is_dead(&self, engine: &str) -> bool {
        self.dead_engine.lock().unwrap().is_some_and(|dead| dead == engine)
    }
}

/// Counts one up, and down again whatever happens.
struct Starting<'a>(&'a TestCounts);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TestBackend {
    async fn make(
        counts: &Arc<TestCounts>,
        spec: &SandboxSpec,
        engine: &'static str,
        times: (Duration, Duration),
    ) -> Box<dyn Sandbox> {
        counts.starts.lock().unwrap().push(Instant::now());
        let starting = counts.starting.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most_starting.fetch_max(starting, Ordering::SeqCst);
        let guard = Starting(counts);
        // A daemon has it from the first moment on.
        let live = counts.live.fetch_add(1, Ordering::SeqCst) + 1;
        counts.most_live.fetch_max(live, Ordering::SeqCst);
        let sandbox = TestSandbox {
            id: counts.next.fetch_add(1, Ordering::SeqCst).to_string(),
            spec: spec.clone(),
            engine,
            counts: Arc::clone(counts),
            close: times.1,
            is_closed: AtomicBool::new(false),
        };
        sleep(times.0).await;
        drop(guard);
        Box::new(sandbox)
    }
}

#[async_trait]
impl SandboxBackend for TestBackend {
    fn name(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { fork: true, ..Capabilities::default() }
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        Ok("test".into())
    }

    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let image = spec.image.to_string();
        let takes = self.prepare.lock().unwrap().get(image.as_str()).copied();
        let unfit = *self.unfit_image.lock().unwrap();
        self.counts.prepared.lock().unwrap().push(image.clone());
        let preparing = self.counts.preparing.fetch_add(1, Ordering::SeqCst) + 1;
        self.counts.most_preparing.fetch_max(preparing, Ordering::SeqCst);
        sleep(takes.unwrap_or_default()).await;
        self.counts.preparing.fetch_sub(1, Ordering::SeqCst);
        if unfit == Some(image.as_str()) {
            let (reason, hint) = ("nobody has it".to_owned(), "make it".to_owned());
            return Err(SandboxError::ImageMissing { image, reason, hint });
        }
        Ok(())
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        assert!(!self.panics.load(Ordering::SeqCst), "told to panic");
        if self.failing.load(Ordering::SeqCst) {
            self.counts.starts.lock().unwrap().push(Instant::now());
            sleep(self.start).await;
            let failure = *self.failure.lock().unwrap();
            return Err(failure.unwrap_or(unreachable_daemon)());
        }
        let bad = *self.bad_image.lock().unwrap();
        if bad.is_some_and(|bad| spec.image == Image::Reference(bad.to_owned())) {
            self.counts.starts.lock().unwrap().push(Instant::now());
            sleep(self.start).await;
            return Err(SandboxError::CreateTimedOut { seconds: 0 });
        }
        let alive: Vec<_> =
            self.engines.iter().copied().filter(|engine| !self.counts.is_dead(engine)).collect();
        let turn = self.counts.next.load(Ordering::SeqCst) as usize;
        let engine = if alive.is_empty() { "" } else { alive[turn % alive.len()] };
        Ok(Self::make(&self.counts, spec, engine, (self.start, self.close)).await)
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.create(&snapshot.spec).await
    }

    async fn remove_snapshot(&self, _: &Snapshot) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError> {
        Ok(Vec::new())
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        self.counts.reaps.fetch_add(1, Ordering::SeqCst);
        Ok(ReapReport::default())
    }
}

impl TestSandbox {
    fn gone(&self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.counts.live.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for TestSandbox {
    fn drop(&mut self) {
        self.gone();
    }
}

fn unsupported<T>(what: &str) -> Result<T, SandboxError> {
    Err(SandboxError::Unsupported { backend: "test", what: what.to_owned() })
}

#[async_trait]
impl Sandbox for TestSandbox {
    fn id(&self) -> &str {
        &self.id
    }

    fn engine(&self) -> &str {
        self.engine
    }

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { fork: true, ..Capabilities::default() }
    }

    async fn exec_streaming(
        &self,
        _: &ExecRequest,
        _: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        let death = if self.is_closed.load(Ordering::SeqCst) {
            Death::Closed
        } else if self.counts.execs_fail.load(Ordering::SeqCst) || self.counts.is_dead(self.engine)
        {
            Death::DaemonGone
        } else {
            return unsupported("run a command");
        };
        Err(SandboxError::Died { sandbox: self.id.clone(), death })
    }

    async fn spawn(&self, _: &ExecRequest) -> Result<Process, SandboxError> {
        unsupported("start a process")
    }

    async fn spawn_pty(&self, _: &ExecRequest, _: PtySize) -> Result<PtyProcess, SandboxError> {
        unsupported("start a process")
    }

    async fn connect_within(&self, _: u16, _: Duration) -> Result<ByteStream, SandboxError> {
        unsupported("connect to a sandbox")
    }

    async fn open_shell(&self, _: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        unsupported("open a shell")
    }

    async fn read_file(&self, _: &str, _: u64) -> Result<Vec<u8>, SandboxError> {
        unsupported("read a file")
    }

    async fn write_file(&self, _: &str, _: &[u8], _: u32) -> Result<(), SandboxError> {
        unsupported("write a file")
    }

    async fn list_files(&self, _: &str) -> Result<Vec<FileEntry>, SandboxError> {
        unsupported("list files")
    }

    async fn upload_tar(&self, _: &str, _: &Path) -> Result<(), SandboxError> {
        unsupported("upload files")
    }

    async fn download_tar(&self, _: &str, _: &Path, _: u64) -> Result<(), SandboxError> {
        unsupported("download files")
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        unsupported("end what runs in a sandbox")
    }

    async fn set_network(&self, _: &NetworkPolicy) -> Result<(), SandboxError> {
        unsupported("change the network of a sandbox that runs")
    }

    async fn changes(&self, _: usize) -> Result<Changes, SandboxError> {
        unsupported("tell what has changed")
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        unsupported("keep a snapshot")
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let times = (Duration::ZERO, self.close);
        Ok(TestBackend::make(&self.counts, &self.spec, self.engine, times).await)
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        Ok(SandboxStats::default())
    }

    async fn check(&self) -> Result<(), SandboxError> {
        if self.counts.is_dead(self.engine) {
            if self.counts.is_silent.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let death = Death::DaemonGone;
            return Err(SandboxError::Died { sandbox: self.id.clone(), death });
        }
        if self.counts.warm_died.load(Ordering::SeqCst) {
            return Err(SandboxError::Died { sandbox: self.id.clone(), death: Death::Killed });
        }
        Ok(())
    }

    async fn close(&self) -> Result<(), SandboxError> {
        sleep(self.close).await;
        if self.counts.closing_fails.load(Ordering::SeqCst) || self.counts.is_dead(self.engine) {
            return Err(unreachable_daemon());
        }
        self.gone();
        Ok(())
    }
}
