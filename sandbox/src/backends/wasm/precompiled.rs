//! Compiled guests on disk.
#![expect(unsafe_code, reason = "wasmtime cannot check machine code that it maps from a file")]

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::folder_lock;
use crate::{ReapReport, SandboxError};

/// Compiled code, ready to be instantiated.
pub(crate) enum Compiled {
    Module(Module),
    Component(Component),
}

/// The folder that compiled guests are kept in.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Makes the folder where it is absent, for its owner alone.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] for a folder that others could write into: who can write there
    /// can make this process run anything.
    pub(crate) fn open(folder: &Path) -> Result<Self, SandboxError> {
        let host = |source| SandboxError::Host {
            doing: "make the cache folder",
            path: folder.to_owned(),
            source,
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(host)?;
        let metadata = fs::symlink_metadata(folder).map_err(host)?;
        let own = fs::metadata("/proc/self").map_err(host)?.uid();
        if !metadata.is_dir() || metadata.uid() != own || metadata.mode() & 0o077 != 0 {
            return Err(SandboxError::Unavailable {
                backend: super::NAME,
                reason: format!("others than its user can reach the cache {}", folder.display()),
                hint: format!("rm -r {0}, or chmod 700 {0}", folder.display()),
            });
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The code kept under `key`, or else that of `wasm`, compiled and kept.
    ///
    /// A file that is damaged is compiled anew.
    pub(crate) fn load_or_compile(
        &self,
        engine: &Engine,
        key: &str,
        wasm: &[u8],
    ) -> wasmtime::Result<Compiled> {
        let is_component = is_component(wasm);
        let path = self.folder.join(format!("{key}.cwasm"));
        if let Some(compiled) = load(engine, &path, is_component) {
            return Ok(compiled);
        }
        let code = if is_component {
            engine.precompile_component(wasm)?
        } else {
            engine.precompile_module(wasm)?
        };
        self.write(&path, &code)?;
        load(engine, &path, is_component)
            .ok_or_else(|| wasmtime::format_err!("{} cannot be read back", path.display()))
    }

    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        // The hash lies beside the code: wasmtime maps a file from its beginning.
        self.replace(&path.with_extension("sum"), blake3::hash(code).to_hex().as_bytes())?;
        self.replace(path, code)
    }

    /// Puts a whole file at `path`, or leaves what is there.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let _making = folder_lock::share(&self.folder)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{}.{number}.tmp", std::process::id()));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&temporary, path))
            .inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    /// Removes what processes that died left half written, unless somebody writes just now.
    pub(crate) fn reap(&self, report: &mut ReapReport) -> io::Result<()> {
        let Some(_lock) = folder_lock::try_own(&self.folder)? else { return Ok(()) };
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.path().extension().is_none_or(|extension| extension != "tmp") {
                continue;
            }
            let name = format!("file {}", entry.path().display());
            if let Err(error) = fs::remove_file(entry.path()) {
                report.failed.push(format!("{name}: {error}"));
            } else {
                report.removed.push(name);
            }
        }
        Ok(())
    }
}

/// Absent if there is none, or none that is whole and fits the engine.
fn load(engine: &Engine, path: &Path, is_component: bool) -> Option<Compiled> {
    let mut file = File::open(path).ok()?;
    let sum = fs::read_to_string(path.with_extension("sum")).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        };
    }
    if hasher.finalize().to_hex().as_str() != sum {
        tracing::warn!(path = %path.display(), "a damaged compiled guest is compiled anew");
        return None;
    }
    file.rewind().ok()?;
    let loaded = if is_component {
        // `Component` has no variant for an open file; the path still leads to what was hashed, or
        // to a file that this user's processes renamed there since, which is as whole.
        // SAFETY: the bytes are what `precompile_component` returned: the file lies in a folder that
        // nobody but this user can write into (`Cache::open`), only `Cache::write` puts files there,
        // by renaming whole ones, and the hash rules out damage. Files are never written in place,
        // so the mapping cannot change. wasmtime itself refuses another version or configuration.
        unsafe { Component::deserialize_file(engine, path) }.map(Compiled::Component)
    } else {
        // SAFETY: as above, with `precompile_module`.
        unsafe { Module::deserialize_open_file(engine, file) }.map(Compiled::Module)
    };
    loaded.inspect_err(|error| tracing::warn!(%error, "a compiled guest does not fit")).ok()
}

/// Whether this is a component rather than a core module; text is told by its first word.
pub(crate) fn is_component(wasm: &[u8]) -> bool {
    match wasm.strip_prefix(b"\0asm") {
        Some(rest) => rest.get(2..4) == Some(&[1, 0]),
        None => {
            let text = String::from_utf8_lossy(wasm);
            text.lines()
                .map(str::trim_start)
                .find(|line| !line.is_empty() && !line.starts_with(";;"))
                .is_some_and(|line| line.starts_with("(component"))
        }
    }
}
