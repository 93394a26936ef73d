//! A sandbox that was handed out by a pool.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::inner::Origin;
use super::kept::{PooledSnapshot, keep};
use super::live::Live;
use super::sandbox_pool::acquire;
use crate::{
    ByteStream, Capabilities, Changes, ExecRequest, ExecResult, FileEntry, NetworkPolicy,
    OutputSink, Process, PtyProcess, PtySize, Sandbox, SandboxError, SandboxSpec, SandboxStats,
    Shell, ShellOptions, Snapshot,
};

/// A sandbox that was handed out by a pool. Dropping it removes it in the background, which makes
/// room for another; it is never handed out again.
///
/// Forks take up room in the pool as well, and wait for it.
pub struct PooledSandbox {
    live: Live,
}

impl PooledSandbox {
    pub(super) fn new(live: Live) -> Self {
        Self { live }
    }

    fn sandbox(&self) -> &dyn Sandbox {
        self.live.core.sandbox.as_ref()
    }

    /// Tells the pool about failures that its other sandboxes may share.
    fn watch<T>(&self, result: Result<T, SandboxError>) -> Result<T, SandboxError> {
        if let Err(error) = &result {
            self.live.inner.suspect(self.sandbox().engine(), error);
        }
        result
    }

    /// As [`Sandbox::fork`], still known to be of a pool.
    ///
    /// # Errors
    ///
    /// As [`SandboxPool::acquire`](super::SandboxPool::acquire) and [`Sandbox::fork`].
    pub async fn fork_pooled(&self) -> Result<Self, SandboxError> {
        acquire(&self.live.inner, Origin::Fork(Arc::clone(&self.live.core))).await
    }

    /// As [`Sandbox::snapshot`], but that the pool removes it when it is dropped. Dropping the future leaves none behind.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::snapshot`].
    pub async fn snapshot_pooled(&self) -> Result<PooledSnapshot, SandboxError> {
        keep(&self.live.inner, &self.live.core).await
    }
}

#[async_trait]
impl Sandbox for PooledSandbox {
    fn id(&self) -> &str {
        self.sandbox().id()
    }

    fn engine(&self) -> &str {
        self.sandbox().engine()
    }

    fn spec(&self) -> &SandboxSpec {
        self.sandbox().spec()
    }

    fn capabilities(&self) -> Capabilities {
        self.sandbox().capabilities()
    }

    async fn exec(&self, request: &ExecRequest) -> Result<ExecResult, SandboxError> {
        self.watch(self.sandbox().exec(request).await)
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        self.watch(self.sandbox().exec_streaming(request, sink).await)
    }

    async fn spawn(&self, request: &ExecRequest) -> Result<Process, SandboxError> {
        self.watch(self.sandbox().spawn(request).await)
    }

    async fn spawn_pty(
        &self,
        request: &ExecRequest,
        size: PtySize,
    ) -> Result<PtyProcess, SandboxError> {
        self.watch(self.sandbox().spawn_pty(request, size).await)
    }

    async fn connect_within(
        &self,
        port: u16,
        patience: Duration,
    ) -> Result<ByteStream, SandboxError> {
        self.watch(self.sandbox().connect_within(port, patience).await)
    }

    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        self.watch(self.sandbox().open_shell(options).await)
    }

    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        self.watch(self.sandbox().read_file(path, limit_bytes).await)
    }

    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        self.watch(self.sandbox().write_file(path, bytes, mode).await)
    }

    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        self.watch(self.sandbox().list_files(path).await)
    }

    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        self.watch(self.sandbox().upload_tar(path, archive).await)
    }

    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        self.watch(self.sandbox().download_tar(path, archive, limit_bytes).await)
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        self.watch(self.sandbox().end_all().await)
    }

    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        self.watch(self.sandbox().set_network(network).await)
    }

    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        self.watch(self.sandbox().changes(limit).await)
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        self.watch(self.sandbox().snapshot().await)
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.fork_pooled().await?))
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        self.watch(self.sandbox().stats().await)
    }

    async fn check(&self) -> Result<(), SandboxError> {
        self.watch(self.sandbox().check().await)
    }

    async fn close(&self) -> Result<(), SandboxError> {
        let Some(closed) = self.live.inner.close_later(&self.live.core) else { return Ok(()) };
        let given_up = |_| {
            let doing = "close a sandbox".to_owned();
            Err(SandboxError::Backend { doing, source: "the pool gave up waiting for it".into() })
        };
        closed.await.unwrap_or_else(given_up)
    }
}
