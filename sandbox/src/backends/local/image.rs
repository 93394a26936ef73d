//! Where the file system of a sandbox comes from: read-only layers below its own.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::packing::{Ownership, unpack};
use super::{BACKEND, backend_error, host_error, tree};
use crate::folder_lock;
use crate::{Image, ReapReport, SandboxError};

/// A mount point and the folders that lie below the sandbox's own layer there, topmost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    /// `/` first.
    pub(crate) overlays: Vec<(String, Vec<PathBuf>)>,
}

/// Folders of the host that hold programs: they appear inside as they are.
const SHARED: [&str; 8] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt"];

/// Empty folders of a sandbox from the host, with their permissions.
const EMPTY: [(&str, u32); 16] = [
    ("dev", 0o755),
    ("home", 0o755),
    ("home/user", 0o755),
    ("media", 0o755),
    ("mnt", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("srv", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/cache", 0o755),
    ("var/lib", 0o755),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
];

/// Names in `/etc` that tell about the host or its people.
const HIDDEN: [&str; 22] = [
    "passwd",
    "passwd-",
    "group",
    "group-",
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "subuid",
    "subgid",
    "hostname",
    "hosts",
    "machine-id",
    "resolv.conf",
    "mtab",
    "fstab",
    "ssh",
    "sudoers",
    "sudoers.d",
    "cron.d",
    "NetworkManager",
    "docker",
];

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
    user:x:1000:1000:user:/home/user:/bin/sh\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost sandbox\n::1 localhost\n";

/// The layers of `image`, made where they are absent. `cache` is the folder they are kept in.
///
/// The host's configuration is looked at once per process, an archive when it has changed.
///
/// # Errors
///
/// [`SandboxError::ImageMissing`], [`SandboxError::Unsupported`], [`SandboxError::Host`].
pub(crate) fn base(image: &Image, cache: &Path) -> Result<Base, SandboxError> {
    type Known = HashMap<(String, PathBuf), (Stamp, Base)>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let key = (format!("{image:?}"), cache.to_owned());
    let stamp = stamp(image);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((seen, base)) = known.get_or_insert_default().get(&key)
        && *seen == stamp
        && base.overlays.iter().flat_map(|(_, folders)| folders).all(|folder| folder.is_dir())
    {
        return Ok(base.clone());
    }
    drop(known);
    let base = make(image, cache)?;
    known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().insert(key, (stamp, base.clone()));
    Ok(base)
}

/// What changes with an archive: its file, its size and its time.
type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(image: &Image) -> Stamp {
    let Image::RootTar(archive) = image else { return None };
    let meta = fs::metadata(archive).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

fn make(image: &Image, cache: &Path) -> Result<Base, SandboxError> {
    match image {
        Image::Default => host(cache),
        Image::Reference(name) if name == "host" => host(cache),
        Image::Reference(name) => Err(SandboxError::ImageMissing {
            image: name.clone(),
            reason: "the backend knows only `host`".to_owned(),
            hint: "use `host`, or the path of a root file system that ends in `.tar`".to_owned(),
        }),
        Image::RootTar(archive) => {
            let root = root_tar(archive, cache)?;
            Ok(Base { overlays: vec![("/".to_owned(), vec![root])] })
        }
        Image::Build { .. } => {
            Err(SandboxError::Unsupported { backend: BACKEND, what: "build an image".to_owned() })
        }
    }
}

/// The host's programs, its readable configuration, and nothing else of it.
fn host(cache: &Path) -> Result<Base, SandboxError> {
    let key = host_key().map_err(backend_error("look at the host's root"))?;
    let root = make_once(cache, &format!("host-{key}"), |folder| {
        host_root(folder).map_err(backend_error("copy the host's configuration"))
    })?;
    let mut overlays = vec![("/".to_owned(), vec![root])];
    for name in SHARED {
        let path = Path::new("/").join(name);
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
            overlays.push((format!("/{name}"), vec![path]));
        }
    }
    Ok(Base { overlays })
}

/// Changes when the copy would.
fn host_key() -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("1 {EMPTY:?} {HIDDEN:?} {PASSWD} {GROUP} {HOSTS}").as_bytes());
    walk_readable(Path::new("/etc"), &mut |path, meta| {
        let line = format!("{path:?} {} {} {}\n", meta.mode(), meta.len(), meta.mtime());
        hasher.update(line.as_bytes());
        Ok(())
    })?;
    for name in SHARED {
        let path = Path::new("/").join(name);
        let kind = fs::symlink_metadata(&path).map(|meta| meta.is_dir()).ok();
        hasher.update(format!("{name} {kind:?} {:?}\n", fs::read_link(&path).ok()).as_bytes());
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

fn host_root(folder: &Path) -> io::Result<()> {
    for (name, mode) in EMPTY {
        let path = folder.join(name);
        DirBuilder::new().create(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
    }
    for name in SHARED {
        let path = Path::new("/").join(name);
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            fs::create_dir(folder.join(name))?;
        } else if meta.is_symlink() {
            symlink(fs::read_link(&path)?, folder.join(name))?;
        }
    }
    symlink("../run", folder.join("var/run"))?;
    fs::create_dir(folder.join("etc"))?;
    walk_readable(Path::new("/etc"), &mut |path, meta| {
        let target = folder.join("etc").join(path.strip_prefix("/etc").unwrap_or(path));
        if meta.is_dir() {
            DirBuilder::new().mode(0o755).create(target)
        } else if meta.is_symlink() {
            symlink(fs::read_link(path)?, target)
        } else {
            fs::copy(path, target).map(drop)
        }
    })?;
    for (name, text) in
        [("passwd", PASSWD), ("group", GROUP), ("hosts", HOSTS), ("hostname", "sandbox\n")]
    {
        fs::write(folder.join("etc").join(name), text)?;
    }
    fs::write(folder.join("etc/resolv.conf"), "")
}

/// Visits what other users of the host may read, parents first and in order.
fn walk_readable(
    start: &Path,
    visit: &mut dyn FnMut(&Path, &fs::Metadata) -> io::Result<()>,
) -> io::Result<()> {
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(start)? {
        let entry = entry?;
        names.insert(entry.file_name(), entry.path());
    }
    for (name, path) in names {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let is_hidden = start == Path::new("/etc") && HIDDEN.iter().any(|hidden| name == *hidden);
        let is_readable = meta.is_symlink()
            || meta.is_file() && meta.mode() & 0o004 != 0
            || meta.is_dir() && meta.mode() & 0o005 == 0o005;
        if is_hidden || !is_readable {
            continue;
        }
        visit(&path, &meta)?;
        if meta.is_dir() {
            walk_readable(&path, visit)?;
        }
    }
    Ok(())
}

/// The root file system of an archive, unpacked once for all who use the same bytes.
fn root_tar(archive: &Path, cache: &Path) -> Result<PathBuf, SandboxError> {
    let missing = |reason: String| SandboxError::ImageMissing {
        image: archive.display().to_string(),
        reason,
        hint: "give the path of a tar archive that holds a root file system".to_owned(),
    };
    let file = File::open(archive).map_err(|error| missing(error.to_string()))?;
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut BufReader::with_capacity(1 << 20, file), &mut hasher)
        .map_err(|error| missing(error.to_string()))?;
    // Users see different files of one archive: only the first may give them away to all.
    let user = rustix::process::geteuid().as_raw();
    let key = format!("root-{}-{user}", &hasher.finalize().to_hex()[..32]);
    make_once(cache, &key, |folder| {
        let folder = File::open(folder).map_err(host_error("open", folder))?.into();
        with_plain(archive, |reader| unpack(&folder, reader, &Ownership::Archive))
    })
}

/// Hands over the archive's bytes without their compression.
fn with_plain(
    archive: &Path,
    mut take: impl FnMut(&mut dyn Read) -> Result<(), SandboxError>,
) -> Result<(), SandboxError> {
    let open = || File::open(archive).map_err(host_error("open", archive));
    let mut magic = [0; 4];
    let _ = open()?.read(&mut magic).map_err(host_error("read", archive))?;
    let program = match magic {
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0x1f, 0x8b, ..] => "gzip",
        _ => return take(&mut BufReader::with_capacity(1 << 20, open()?)),
    };
    let mut unpacker = Command::new(program)
        .arg("-dc")
        .stdin(open()?)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| SandboxError::ImageMissing {
            image: archive.display().to_string(),
            reason: format!("`{program}` cannot be run: {error}"),
            hint: format!("apt-get install {program}"),
        })?;
    let mut output = unpacker.stdout.take().expect("its output is piped");
    let taken = take(&mut output).and_then(|()| {
        // To the end, so that it can check that it is whole.
        io::copy(&mut output, &mut io::sink()).map_err(host_error("read", archive)).map(drop)
    });
    drop(output);
    let status = unpacker.wait().map_err(backend_error("unpack an archive"))?;
    taken?;
    if !status.success() {
        return Err(host_error("unpack", archive)(io::ErrorKind::InvalidData.into()));
    }
    Ok(())
}

/// A folder of the cache, made by `fill` if it is not there. Others may do the same at the same
/// time: it appears whole.
fn make_once(
    cache: &Path,
    key: &str,
    fill: impl FnOnce(&Path) -> Result<(), SandboxError>,
) -> Result<PathBuf, SandboxError> {
    let place = cache.join(key);
    if place.is_dir() {
        return Ok(place);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(cache)
        .map_err(host_error("make", cache))?;
    let _making = folder_lock::share(cache).map_err(host_error("lock", cache))?;
    let part = cache.join(format!("{key}.{}.part", crate::nonce::nonce()));
    DirBuilder::new().mode(0o755).create(&part).map_err(host_error("make", &part))?;
    let made = fill(&part).and_then(|()| match fs::rename(&part, &place) {
        Err(error) if !place.is_dir() => Err(host_error("make", &place)(error)),
        _ => Ok(()),
    });
    // Left over where it failed, or where somebody else was faster.
    let _ = tree::remove_tree(&part);
    made.map(|()| place)
}

/// Removes what processes that died have left half unpacked, unless somebody unpacks just now.
pub(crate) fn reap(cache: &Path, report: &mut ReapReport) -> io::Result<()> {
    if !cache.is_dir() {
        return Ok(());
    }
    let Some(_lock) = folder_lock::try_own(cache)? else { return Ok(()) };
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "part") {
            match tree::remove_tree(&path) {
                Ok(()) => report.removed.push(format!("folder {}", path.display())),
                Err(error) => report.failed.push(format!("folder {}: {error}", path.display())),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_image_shows_no_secrets() {
        let cache = tempfile::tempdir().unwrap();
        let base = base(&Image::Default, cache.path()).unwrap();
        let root = &base.overlays[0].1[0];
        assert!(base.overlays.iter().any(|(target, _)| target == "/usr"));
        assert!(!root.join("etc/shadow").exists());
        assert_eq!(fs::read_to_string(root.join("etc/passwd")).unwrap(), PASSWD);
        assert_eq!(fs::read_dir(root.join("root")).unwrap().count(), 0);
        assert_eq!(super::base(&Image::Reference("host".into()), cache.path()).unwrap(), base);
        let names = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name != folder_lock::LOCK).count(), 1);
    }

    #[test]
    fn what_is_half_unpacked_is_reaped_unless_somebody_is_at_it() {
        let cache = tempfile::tempdir().unwrap();
        let part = cache.path().join("root-x.0123.part");
        fs::create_dir(&part).unwrap();
        let making = folder_lock::share(cache.path()).unwrap();
        let mut report = ReapReport::default();
        reap(cache.path(), &mut report).unwrap();
        assert!(part.exists() && report.removed.is_empty());
        drop(making);
        reap(cache.path(), &mut report).unwrap();
        assert!(!part.exists() && report.removed.len() == 1, "{report:?}");
    }

    #[test]
    fn a_root_archive_is_unpacked_once_and_its_links_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "lib", "/usr/lib").unwrap();
        header.set_entry_type(tar::EntryType::Char);
        builder.append_data(&mut header, "null", io::empty()).unwrap();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(4);
        builder.append_data(&mut header, "usr/lib/file", &b"text"[..]).unwrap();
        builder.append_data(&mut header, "lib/other", &b"text"[..]).unwrap();
        let archive = folder.path().join("root.tar");
        fs::write(&archive, builder.into_inner().unwrap()).unwrap();
        let cache = folder.path().join("cache");
        let first = base(&Image::RootTar(archive.clone()), &cache).unwrap();
        let root = &first.overlays[0].1[0];
        assert_eq!(fs::read(root.join("usr/lib/other")).unwrap(), b"text");
        assert!(!root.join("null").exists());
        let packed = Command::new("gzip").arg("-k").arg(&archive).status().unwrap();
        assert!(packed.success());
        let second = folder.path().join("root.tar.gz");
        let second = base(&Image::RootTar(second), &cache).unwrap();
        assert_eq!(fs::read(second.overlays[0].1[0].join("usr/lib/file")).unwrap(), b"text");
        assert!(base(&Image::RootTar(folder.path().join("absent.tar")), &cache).is_err());
    }
}
