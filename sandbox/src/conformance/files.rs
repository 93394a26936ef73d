//! What files and archives have to do.

use super::context::{Context, Finding, HostFolder, ensure, sh};
use super::{Trial, trials};
use crate::{FileKind, SandboxError};

pub(super) const TRIALS: &[Trial] = trials![
    "what is written to a file is read from it" => round_trip,
    "commands see files that were written, and the other way round" => shared_with_commands,
    "a file that is not there is not found" => missing,
    "a folder is not read as a file, nor written as one" => folders,
    "a file beyond the limit is too large" => too_large,
    "a folder's files are listed by name" => listing,
    "paths lead nowhere but into the sandbox" => dots,
    "an archive comes out as it went in" => archives,
    "an archive beyond the limit leaves no file" => archive_too_large,
    "a read-only root can be written in /tmp alone" => read_only_root,
];

async fn round_trip(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let bytes: Vec<u8> = (0..200_000u32).map(|num| (num % 253) as u8).collect();
    for path in ["/tmp/file", "/tmp/deep/er/a file with 'quotes'", "/tmp/-dash"] {
        sandbox.write_file(path, &bytes, 0o644).await?;
        let read = sandbox.read_file(path, 1 << 20).await?;
        ensure!(read == bytes, "{} bytes came back from `{path}`", read.len());
        sandbox.write_file(path, b"", 0o600).await?;
        ensure!(sandbox.read_file(path, 0).await?.is_empty(), "`{path}` was not replaced");
    }
    Ok(sandbox.close().await?)
}

async fn shared_with_commands(context: &Context<'_>) -> Result<(), Finding> {
    let (reads, spec) = context.program(&context.options.programs.read_file)?;
    let sandbox = context.backend.create(&spec).await?;
    sandbox.write_file("/tmp/given", b"given", 0o644).await?;
    let result = sandbox.exec(&reads.request()).await?;
    sandbox.close().await?;
    ensure!(result.stdout.text() == "given", "the command read {:?}", result.stdout.text());

    let (writes, spec) = context.program(&context.options.programs.write_file)?;
    let sandbox = context.backend.create(&spec).await?;
    let result = sandbox.exec(&writes.request()).await?;
    ensure!(result.end.is_success(), "it {}: {}", result.end, result.stderr.text());
    let bytes = sandbox.read_file("/tmp/made", 100).await?;
    sandbox.close().await?;
    ensure!(bytes == b"made", "the command made {:?}", String::from_utf8_lossy(&bytes));
    Ok(())
}

async fn missing(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let read = sandbox.read_file("/tmp/nothing", 10).await.map(drop);
    let list = sandbox.list_files("/tmp/nothing").await.map(drop);
    let folder = HostFolder::new()?;
    let target = folder.path.join("out.tar");
    let tar = sandbox.download_tar("/tmp/nothing", &target, 1 << 20).await;
    sandbox.close().await?;
    for (what, result) in [("read", read), ("list", list), ("download", tar)] {
        let is_told = matches!(result, Err(SandboxError::NotFound { .. }));
        ensure!(is_told, "{what}: {result:?}");
    }
    ensure!(!target.exists(), "a file was made on the host");
    Ok(())
}

async fn folders(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/folder/file", b"x", 0o644).await?;
    let results = [
        ("read a folder", sandbox.read_file("/tmp/folder", 10).await.map(drop)),
        ("write a folder", sandbox.write_file("/tmp/folder", b"y", 0o644).await),
        ("list a file", sandbox.list_files("/tmp/folder/file").await.map(drop)),
        ("write an empty path", sandbox.write_file("", b"y", 0o644).await),
        ("write a NUL byte", sandbox.write_file("/tmp/a\0b", b"y", 0o644).await),
    ];
    sandbox.close().await?;
    for (what, result) in results {
        ensure!(matches!(result, Err(SandboxError::PathRefused { .. })), "{what}: {result:?}");
    }
    Ok(())
}

async fn too_large(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/file", &[b'x'; 1001], 0o644).await?;
    let exact = sandbox.read_file("/tmp/file", 1001).await?;
    let result = sandbox.read_file("/tmp/file", 1000).await.map(drop);
    sandbox.close().await?;
    ensure!(exact.len() == 1001, "{} bytes at the limit", exact.len());
    let is_told = matches!(result, Err(SandboxError::TooLarge { limit_bytes: 1000, .. }));
    ensure!(is_told, "{result:?}");
    Ok(())
}

async fn listing(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    for path in ["/tmp/list/b", "/tmp/list/a", "/tmp/list/folder/inner", "/tmp/list/.hidden"] {
        sandbox.write_file(path, b"12345", 0o644).await?;
    }
    let entries = sandbox.list_files("/tmp/list").await?;
    sandbox.close().await?;
    let found: Vec<_> =
        entries.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.size_bytes)).collect();
    let expected = [
        (".hidden", FileKind::File, 5),
        ("a", FileKind::File, 5),
        ("b", FileKind::File, 5),
        ("folder", FileKind::Folder, 0),
    ];
    ensure!(found == expected, "{found:?}");
    Ok(())
}

async fn dots(context: &Context<'_>) -> Result<(), Finding> {
    let folder = HostFolder::new()?;
    let secret = folder.file("secret", b"of the host")?;
    let secret = secret.to_string_lossy();
    let sandbox = context.create().await?;
    for path in [secret.to_string(), format!("/tmp/../..{secret}"), format!("../../../..{secret}")]
    {
        let read = sandbox.read_file(&path, 100).await.unwrap_or_default();
        ensure!(read != b"of the host", "`{path}` was read");
        // Whether that is refused or goes to a file inside does not matter.
        let _ = sandbox.write_file(&path, b"overwritten", 0o644).await;
    }
    sandbox.close().await?;
    let kept = std::fs::read(&*secret).unwrap_or_default();
    ensure!(kept == b"of the host", "the host's file was overwritten");
    Ok(())
}

async fn archives(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/packed/a", b"1", 0o644).await?;
    sandbox.write_file("/tmp/packed/folder/b", &[7; 100_000], 0o755).await?;
    let folder = HostFolder::new()?;
    let archive = folder.path.join("out.tar");
    sandbox.download_tar("/tmp/packed", &archive, 10 << 20).await?;
    sandbox.upload_tar("/tmp/unpacked", &archive).await?;
    let b = sandbox.read_file("/tmp/unpacked/packed/folder/b", 1 << 20).await?;
    ensure!(b == [7; 100_000], "{} bytes came back", b.len());
    if context.can().posix {
        let script = "cd /tmp/unpacked/packed && [ -x folder/b ] && [ ! -x a ] && cat a";
        let text = sh(&*sandbox, script).await?;
        ensure!(text == "1", "{text:?}");
    }
    let one = folder.path.join("one.tar");
    sandbox.download_tar("/tmp/packed/a", &one, 10 << 20).await?;
    sandbox.upload_tar("/tmp/one", &one).await?;
    let a = sandbox.read_file("/tmp/one/a", 10).await?;
    ensure!(a == b"1", "a single file came back as {a:?}");
    Ok(sandbox.close().await?)
}

async fn archive_too_large(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    sandbox.write_file("/tmp/large", &[1; 100_000], 0o644).await?;
    let folder = HostFolder::new()?;
    let result = sandbox.download_tar("/tmp/large", &folder.path.join("out.tar"), 50_000).await;
    sandbox.close().await?;
    ensure!(matches!(result, Err(SandboxError::TooLarge { .. })), "{result:?}");
    let left = std::fs::read_dir(&folder.path).map(Iterator::count).unwrap_or(0);
    ensure!(left == 0, "{left} files were left on the host");
    Ok(())
}

async fn read_only_root(context: &Context<'_>) -> Result<(), Finding> {
    let mut spec = context.spec();
    spec.read_only_root = true;
    let sandbox = match context.backend.create(&spec).await {
        Ok(sandbox) => sandbox,
        Err(error) => return super::context::is_unsupported(error),
    };
    sandbox.write_file("/tmp/file", b"x", 0o644).await?;
    let refused = sandbox.write_file("/outside", b"x", 0o644).await;
    ensure!(refused.is_err(), "the root was written");
    if context.can().posix {
        let text =
            sh(&*sandbox, "touch /outside 2>/dev/null && echo written; echo y >/tmp/y").await?;
        ensure!(text.is_empty(), "a command wrote the root");
    }
    Ok(sandbox.close().await?)
}
