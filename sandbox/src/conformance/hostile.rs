//! Archives and links that try to leave.

use super::context::{Context, Finding, HostFolder, ensure, sh};
use super::{Trial, trials};
use crate::{Sandbox, SandboxError};

pub(super) const TRIALS: &[Trial] = trials![
    "archives that lead out are refused before anything is unpacked" => archives,
    "what is no archive is refused" => no_archive,
    "links made inside do not lead files out" => links_for_files,
    "links made inside do not lead archives out" => links_for_archives,
];

fn header(kind: tar::EntryType, name: &str, link: &str, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    // The setters of the crate refuse what is tried here.
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    header
}

/// An archive of a harmless file and these entries.
fn archive(entries: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let harmless = (tar::EntryType::Regular, "harmless", "");
    for (kind, name, link) in std::iter::once(&harmless).chain(entries) {
        let content: &[u8] = if *kind == tar::EntryType::Regular { b"x" } else { b"" };
        bytes.extend_from_slice(header(*kind, name, link, content.len() as u64).as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

async fn archives(context: &Context<'_>) -> Result<(), Finding> {
    use tar::EntryType as E;
    let hostile: &[&[(E, &str, &str)]] = &[
        &[(E::Regular, "/tmp/absolute", "")],
        &[(E::Regular, "../above", "")],
        &[(E::Regular, "a/../../above", "")],
        &[(E::Symlink, "link", "/etc")],
        &[(E::Symlink, "link", "../..")],
        &[(E::Symlink, "link", "."), (E::Regular, "link/beneath", "")],
        &[(E::Directory, "d", ""), (E::Symlink, "d", "elsewhere")],
        &[(E::Link, "hard", "/etc/passwd")],
        &[(E::Link, "hard", "../../etc/passwd")],
        &[(E::Symlink, "a/b/l", "../../x"), (E::Link, "hard", "a/b/l")],
        &[(E::Char, "device", "")],
        &[(E::Block, "device", "")],
        &[(E::Fifo, "pipe", "")],
    ];
    let sandbox = context.create().await?;
    let folder = HostFolder::new()?;
    for (num, entries) in hostile.iter().enumerate() {
        let file = folder.file("hostile.tar", &archive(entries))?;
        let result = sandbox.upload_tar("/tmp/target", &file).await;
        let is_told = matches!(result, Err(SandboxError::PathRefused { .. }));
        ensure!(is_told, "number {num} ({:?}): {result:?}", entries[0].1);
        let unpacked = sandbox.read_file("/tmp/target/harmless", 10).await;
        ensure!(unpacked.is_err(), "number {num}: a part of it was unpacked");
    }
    let file = folder.file("harmless.tar", &archive(&[]))?;
    sandbox.upload_tar("/tmp/target", &file).await?;
    let harmless = sandbox.read_file("/tmp/target/harmless", 10).await?;
    ensure!(harmless == b"x", "a harmless one came out as {harmless:?}");
    Ok(sandbox.close().await?)
}

async fn no_archive(context: &Context<'_>) -> Result<(), Finding> {
    let sandbox = context.create().await?;
    let folder = HostFolder::new()?;
    let whole = archive(&[]);
    for (what, bytes) in
        [("garbage", &[b'x'; 3000][..]), ("an empty file", b""), ("a cut archive", &whole[..700])]
    {
        let file = folder.file("broken.tar", bytes)?;
        let result = sandbox.upload_tar("/tmp/target", &file).await;
        ensure!(matches!(result, Err(SandboxError::Host { .. })), "{what}: {result:?}");
    }
    let result = sandbox.upload_tar("/tmp/target", &folder.path.join("none.tar")).await;
    ensure!(matches!(result, Err(SandboxError::Host { .. })), "a missing file: {result:?}");
    Ok(sandbox.close().await?)
}

/// A sandbox with links to a folder of the host: `/tmp/folder`, and `/tmp/file` to a file in it.
async fn with_links(context: &Context<'_>, host: &HostFolder) -> Result<Box<dyn Sandbox>, Finding> {
    host.file("secret", b"of the host")?;
    let sandbox = context.scripted().await?;
    let path = host.path.display();
    sh(&*sandbox, &format!("ln -s '{path}' /tmp/folder; ln -s '{path}/secret' /tmp/file")).await?;
    Ok(sandbox)
}

fn is_untouched(host: &HostFolder) -> Result<(), Finding> {
    let kept = std::fs::read(host.path.join("secret")).unwrap_or_default();
    ensure!(kept == b"of the host", "the host's file was changed");
    let num = std::fs::read_dir(&host.path).map(Iterator::count).unwrap_or(0);
    ensure!(num == 1, "files were made on the host");
    Ok(())
}

async fn links_for_files(context: &Context<'_>) -> Result<(), Finding> {
    let host = HostFolder::new()?;
    let sandbox = with_links(context, &host).await?;
    for path in ["/tmp/file", "/tmp/folder/secret"] {
        let read = sandbox.read_file(path, 100).await.unwrap_or_default();
        ensure!(read != b"of the host", "`{path}` was read");
        // Refused, or written inside: both are contained.
        let _ = sandbox.write_file(path, b"overwritten", 0o644).await;
        is_untouched(&host)?;
    }
    sh(&*sandbox, "rm -f /tmp/folder; ln -s / /tmp/folder; echo inside >/inside").await?;
    let inside = sandbox.read_file("/tmp/folder/inside", 100).await?;
    ensure!(inside == b"inside\n", "a link inside led to {:?}", String::from_utf8_lossy(&inside));
    Ok(sandbox.close().await?)
}

async fn links_for_archives(context: &Context<'_>) -> Result<(), Finding> {
    let host = HostFolder::new()?;
    let sandbox = with_links(context, &host).await?;
    let folder = HostFolder::new()?;
    let file = folder.file("in.tar", &archive(&[]))?;
    let _ = sandbox.upload_tar("/tmp/folder", &file).await;
    is_untouched(&host)?;
    let out = folder.path.join("out.tar");
    if sandbox.download_tar("/tmp/folder/", &out, 10 << 20).await.is_ok() {
        let bytes = std::fs::read(&out).unwrap_or_default();
        let is_leaked = bytes.windows(11).any(|window| window == b"of the host");
        ensure!(!is_leaked, "the host's file came out");
    }
    Ok(sandbox.close().await?)
}
