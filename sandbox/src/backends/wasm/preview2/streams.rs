//! Standard streams and files as streams of preview 2.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_io::bytes::Bytes;

use super::files::Handle;
use crate::Stream;
use crate::backends::wasm::host::Stdin;
use crate::backends::wasm::output::Output;

/// Bytes that one call moves at most.
const CHUNK: usize = 64 << 10;

pub(super) struct In(pub(super) Arc<Mutex<Stdin>>);

impl IsTerminal for In {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for In {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        // Only preview 3 asks for it, which is not linked.
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(In(Arc::clone(&self.0)))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for In {
    async fn ready(&mut self) {}
}

impl InputStream for In {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut stdin = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = stdin.take(size.min(CHUNK));
        if bytes.is_empty() && size > 0 {
            return Err(StreamError::Closed);
        }
        Ok(Bytes::copy_from_slice(bytes))
    }
}

#[derive(Clone)]
pub(super) struct Out {
    output: Arc<Output>,
    stream: Stream,
}

impl Out {
    pub(super) fn new(output: &Arc<Output>, stream: Stream) -> Self {
        Self { output: Arc::clone(output), stream }
    }
}

impl IsTerminal for Out {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Out {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Only preview 3 asks for it, which is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Out {
    async fn ready(&mut self) {
        while self.output.is_full() {
            tokio::task::yield_now().await;
        }
    }
}

impl OutputStream for Out {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.push(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(if self.output.is_full() { 0 } else { CHUNK })
    }
}

/// A file read from a position on.
pub(super) struct FileIn {
    pub(super) handle: Handle,
    pub(super) position: u64,
}

#[wasmtime_wasi::async_trait]
impl Pollable for FileIn {
    async fn ready(&mut self) {}
}

impl InputStream for FileIn {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut bytes = vec![0; size.min(CHUNK)];
        let read = self.handle.tree().read_at(self.handle.node, self.position, &mut bytes);
        let n = read.map_err(|errno| StreamError::LastOperationFailed(errno.into()))?;
        if n == 0 && size > 0 {
            return Err(StreamError::Closed);
        }
        bytes.truncate(n);
        self.position += n as u64;
        Ok(bytes.into())
    }
}

/// A file written from a position on, or at its end where there is none.
pub(super) struct FileOut {
    pub(super) handle: Handle,
    pub(super) position: Option<u64>,
    pub(super) now: u64,
}

#[wasmtime_wasi::async_trait]
impl Pollable for FileOut {
    async fn ready(&mut self) {}
}

impl OutputStream for FileOut {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let mut tree = self.handle.tree();
            let at = match self.position {
                Some(position) => Ok(position),
                None => tree.stat(self.handle.node).map(|stat| stat.size),
            };
            let written = at.and_then(|at| tree.write_at(self.handle.node, at, rest, self.now));
            let n = written.map_err(|errno| StreamError::LastOperationFailed(errno.into()))?;
            if let Some(position) = &mut self.position {
                *position += n as u64;
            }
            rest = &rest[n..];
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }
}
