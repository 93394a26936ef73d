//! The interface of a local sandbox.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;

use super::files::RootFiles;
use super::running::RunningSandbox;
use super::transport::LocalTransport;
use super::{BACKEND, LocalBackend, blocking, connect, exec, host_error, reach};
use crate::archive::{check_tar, normalise};
use crate::byte_stream::connect_by;
use crate::shell::PosixShell;
use crate::{
    ByteStream, Capabilities, Changes, ExecRequest, ExecResult, FileEntry, NetworkPolicy,
    OutputSink, Process, PtyProcess, PtySize, Sandbox, SandboxBackend, SandboxError, SandboxSpec,
    SandboxStats, Shell, ShellOptions, Snapshot,
};

/// A sandbox of namespaces.
#[derive(Debug)]
pub(crate) struct LocalSandbox {
    backend: LocalBackend,
    pub(super) sandbox: Arc<RunningSandbox>,
}

impl LocalSandbox {
    pub(crate) fn new(backend: LocalBackend, sandbox: Arc<RunningSandbox>) -> Self {
        Self { backend, sandbox }
    }

    /// Runs `work` on its files where it may block.
    async fn with_files<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&RunningSandbox, &RootFiles, &str) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let path = normalise(path, self.sandbox.workdir())?;
        let _gate = self.sandbox.gate.read().await;
        let sandbox = self.sandbox.clone();
        blocking(move || {
            sandbox.check_alive()?;
            let limits = &sandbox.record.spec.limits;
            let worked = work(&sandbox, &sandbox.files, &path);
            worked.map_err(|error| error.or_no_space(&path, limits))
        })
        .await
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn id(&self) -> &str {
        &self.sandbox.record.id
    }

    fn spec(&self) -> &SandboxSpec {
        &self.sandbox.record.spec
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        exec::run(&self.sandbox, request, sink).await
    }

    async fn spawn(&self, request: &ExecRequest) -> Result<Process, SandboxError> {
        request.check_spawn(BACKEND)?;
        exec::spawn(&self.sandbox, request).await
    }

    async fn spawn_pty(
        &self,
        request: &ExecRequest,
        size: PtySize,
    ) -> Result<PtyProcess, SandboxError> {
        request.check_spawn(BACKEND)?;
        exec::spawn_pty(&self.sandbox, request, size).await
    }

    async fn connect_within(
        &self,
        port: u16,
        patience: Duration,
    ) -> Result<ByteStream, SandboxError> {
        connect_by(port, patience, || connect::connect(&self.sandbox, port)).await
    }

    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        let transport = LocalTransport::new(self.sandbox.clone());
        Ok(Box::new(PosixShell::open(transport, options.clone()).await?))
    }

    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        self.with_files(path, move |_, files, path| files.read(path, limit_bytes)).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let bytes = bytes.to_owned();
        self.with_files(path, move |sandbox, files, path| {
            files.write(path, &bytes, mode, sandbox.file_owner())
        })
        .await
    }

    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        self.with_files(path, |_, files, path| files.list(path)).await
    }

    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        let archive = archive.to_owned();
        self.with_files(path, move |sandbox, files, path| {
            check_tar(&archive)?;
            let file = File::open(&archive).map_err(host_error("read archive", &archive))?;
            files.upload(path, BufReader::with_capacity(1 << 18, file), sandbox.file_owner())
        })
        .await
    }

    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        let archive = archive.to_owned();
        self.with_files(path, move |_, files, path| {
            let mut part = PartFile::create(&archive, limit_bytes)?;
            let packed = files.download(path, &mut part);
            if part.left_bytes.is_none() {
                return Err(SandboxError::TooLarge { path: path.to_owned(), limit_bytes });
            }
            if let Some(source) = part.failure.take() {
                return Err(part.error("write", source));
            }
            packed?;
            part.finish()
        })
        .await
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        let _gate = self.sandbox.gate.write().await;
        let sandbox = self.sandbox.clone();
        blocking(move || sandbox.end_all()).await
    }

    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        self.sandbox.check_alive()?;
        SandboxSpec { network: network.clone(), ..self.spec().clone() }.validate()?;
        if !self.capabilities().can_change_network(&self.sandbox.network(), network) {
            let what = "change the network of a sandbox that runs from or to the host's".to_owned();
            return Err(SandboxError::Unsupported { backend: BACKEND, what });
        }
        reach::change(&self.sandbox, network).await
    }

    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        let _gate = self.sandbox.gate.read().await;
        let sandbox = self.sandbox.clone();
        blocking(move || sandbox.changes(limit)).await
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        let _gate = self.sandbox.gate.write().await;
        let sandbox = self.sandbox.clone();
        blocking(move || sandbox.keep().map(|record| record.as_snapshot())).await
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let snapshot = self.snapshot().await?;
        let forked = self.backend.restore(&snapshot).await;
        // Its layers stay as long as the new sandbox needs them.
        let removed = self.backend.remove_snapshot(&snapshot).await;
        let forked = forked?;
        removed.map(|()| forked)
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        let sandbox = self.sandbox.clone();
        blocking(move || sandbox.stats()).await
    }

    async fn check(&self) -> Result<(), SandboxError> {
        self.sandbox.check_alive()
    }

    async fn close(&self) -> Result<(), SandboxError> {
        let sandbox = self.sandbox.clone();
        blocking(move || sandbox.close()).await
    }
}

impl Drop for LocalSandbox {
    fn drop(&mut self) {
        if !self.sandbox.is_closed() {
            let sandbox = self.sandbox.clone();
            // What fails here is left to the reaper.
            let close = move || drop(sandbox.close());
            drop(thread::Builder::new().name("spar-close".to_owned()).spawn(close));
        }
    }
}

/// A file of the host that appears whole or not at all.
struct PartFile<'a> {
    file: BufWriter<File>,
    part: std::path::PathBuf,
    target: &'a Path,
    /// Absent when more was written than may be.
    left_bytes: Option<u64>,
    /// Why it could not be written: the host's doing, and not that of what is packed.
    failure: Option<io::Error>,
}

impl<'a> PartFile<'a> {
    fn create(target: &'a Path, limit_bytes: u64) -> Result<Self, SandboxError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(target.file_name().unwrap_or_default());
        name.push(format!(".{}.part", crate::nonce::nonce()));
        let part = target.with_file_name(name);
        let path = target.to_owned();
        let file = File::create_new(&part).map_err(|source| SandboxError::Host {
            doing: "create",
            path,
            source,
        })?;
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(Self { file, part, target, left_bytes: Some(limit_bytes), failure: None })
    }

    fn finish(mut self) -> Result<(), SandboxError> {
        self.file.flush().map_err(|source| self.error("write", source))?;
        fs::rename(&self.part, self.target).map_err(|source| self.error("write", source))
    }

    fn error(&self, doing: &'static str, source: io::Error) -> SandboxError {
        SandboxError::Host { doing, path: self.target.to_owned(), source }
    }
}

impl Write for PartFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left_bytes = self.left_bytes.and_then(|left| left.checked_sub(bytes.len() as u64));
        if self.left_bytes.is_none() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Err(error) = self.file.write_all(bytes) {
            let kind = error.kind();
            self.failure = Some(error);
            return Err(kind.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PartFile<'_> {
    fn drop(&mut self) {
        // Gone already if it was finished.
        let _ = fs::remove_file(&self.part);
    }
}
