//! The root file system of a sandbox, and getting into it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;

use crate::payload::Payload;
use crate::{Doing, Failure, sys};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Parts of `/proc` that can only be read, Docker's list: the first user of the host may write them
/// by being that user, without any capability.
const PROC_READ_ONLY: [&str; 6] = ["bus", "fs", "irq", "sys", "sysrq-trigger", "mtrr"];

/// Files and folders in `/proc` that tell about the host's kernel, devices and processes, or set
/// them: Docker's list, and what only the first user of the host may read.
const PROC_HIDDEN: [&str; 19] = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
    // Not Docker's.
    "kallsyms",
    "key-users",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "slabinfo",
    "vmallocinfo",
];

/// Mounts everything and makes it the root; returns the root and the folder that holds what the
/// sandbox writes.
pub fn build(payload: &mut Payload) -> Result<(OwnedFd, OwnedFd), Failure> {
    let reading = "read the set-up";
    let home = payload.text().doing(reading)?;
    let merged = payload.text().doing(reading)?;
    let overlays =
        payload.list(|payload| Ok((payload.text()?, payload.bytes()?.to_vec()))).doing(reading)?;
    let disk = payload.text().doing(reading)?;
    let disk_options = payload.bytes().doing(reading)?.to_vec();
    let upper = payload.text().doing(reading)?;
    let read_only = payload.number().doing(reading)? != 0;
    let shm_bytes = payload.number().doing(reading)?;
    let binds = payload
        .list(|payload| Ok((payload.bytes()?.to_vec(), payload.text()?, payload.number()? != 0)))
        .doing(reading)?;

    // Stage 1: copies of what comes from the host, while it can be seen.
    std::env::set_current_dir(&home).doing("enter the state folder")?;
    sys::mount_at("none", "/", "", sys::MS_REC | sys::MS_PRIVATE, b"")
        .doing("keep mounts apart")?;
    let devices: Vec<(&str, OwnedFd)> = DEVICES
        .iter()
        .filter_map(|name| Some((*name, sys::copy_mount(format!("/dev/{name}").as_bytes()).ok()?)))
        .collect();
    let mut trees = Vec::new();
    for (source, target, read_only) in &binds {
        let named = || format!("mount `{}`", String::from_utf8_lossy(source));
        let tree = sys::copy_mount(source).doing(&named())?;
        let mut attributes = sys::MOUNT_ATTR_NOSUID | sys::MOUNT_ATTR_NODEV;
        if *read_only {
            attributes |= sys::MOUNT_ATTR_RDONLY;
        }
        sys::restrict_mount(&tree, attributes).doing(&named())?;
        trees.push((tree, target, fs::metadata(Path::new(os(source))).is_ok_and(|m| m.is_dir())));
    }

    // Stage 2: the overlays, `/` first.
    if !disk_options.is_empty() {
        let flags = sys::MS_NOSUID | sys::MS_NODEV;
        sys::mount_at("disk", &disk, "tmpfs", flags, &disk_options).doing("mount the disk")?;
        for (target, _) in &overlays {
            for kind in ["upper", "scratch"] {
                let folder = format!("{disk}/{kind}/{}", part(target));
                fs::create_dir_all(folder).doing("make the upper layer")?;
            }
        }
    }
    let upper = sys::open_path(&upper).doing("open the upper layer")?;
    for (target, options) in &overlays {
        let place = format!("{merged}{target}");
        if !fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_dir()) {
            return Err(Failure::new(
                format!("mount on `{target}`"),
                io::ErrorKind::NotADirectory.into(),
            ));
        }
        let flags = sys::MS_NOSUID | sys::MS_NODEV;
        sys::mount_at("root", &place, "overlay", flags, options)
            .doing(&format!("mount the overlay on `{target}`"))?;
    }

    // Stage 3: into it. From here on no path can lead to the host.
    std::env::set_current_dir(&merged).doing("enter the root")?;
    sys::pivot_here().doing("change the root")?;
    // A new /proc may only be mounted while another one can be seen.
    make_folder("/proc", 0o555).doing("make /proc")?;
    sys::mount_at("proc", "/proc", "proc", proc_flags(), b"").doing("mount /proc")?;
    sys::detach(".").doing("leave the old root")?;
    std::env::set_current_dir("/").doing("enter the new root")?;

    // Stage 4: what every system has.
    make_devices(&devices, shm_bytes).doing("make /dev")?;
    guard_proc().doing("guard /proc")?;
    make_folder("/tmp", 0o1777).doing("make /tmp")?;
    if read_only {
        let flags = sys::MS_NOSUID | sys::MS_NODEV;
        sys::mount_at("tmp", "/tmp", "tmpfs", flags, b"mode=1777").doing("mount /tmp")?;
    }
    for (tree, target, is_folder) in &trees {
        make_target(target, *is_folder).doing(&format!("make `{target}`"))?;
        sys::attach_mount(tree, target).doing(&format!("mount at `{target}`"))?;
    }
    if read_only {
        let flags =
            sys::MS_REMOUNT | sys::MS_BIND | sys::MS_RDONLY | sys::MS_NOSUID | sys::MS_NODEV;
        for (target, _) in &overlays {
            sys::mount_at("none", target, "", flags, b"").doing("make the root read-only")?;
        }
    }
    sys::name_host("sandbox").doing("name the host")?;
    let root = sys::open_path("/").doing("open the root")?;
    Ok((root, upper))
}

/// Mounts the `/proc` of a new process namespace over the one that is there.
pub fn mount_own_proc() -> io::Result<()> {
    sys::mount_at("proc", "/proc", "proc", proc_flags(), b"")?;
    guard_proc()
}

fn proc_flags() -> std::ffi::c_ulong {
    sys::MS_NOSUID | sys::MS_NODEV | sys::MS_NOEXEC
}

fn guard_proc() -> io::Result<()> {
    for name in PROC_READ_ONLY {
        let path = format!("/proc/{name}");
        let Ok(tree) = sys::copy_mount(path.as_bytes()) else { continue };
        sys::restrict_mount(&tree, sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID)?;
        sys::attach_mount(&tree, &path)?;
    }
    for name in PROC_HIDDEN {
        let path = format!("/proc/{name}");
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            let flags = sys::MS_RDONLY | proc_flags();
            sys::mount_at("none", &path, "tmpfs", flags, b"size=4096,nr_inodes=2,mode=555")?;
        } else {
            sys::mount_at("/dev/null", &path, "", sys::MS_BIND, b"")?;
        }
    }
    Ok(())
}

fn make_devices(devices: &[(&str, OwnedFd)], shm_bytes: u64) -> io::Result<()> {
    make_folder("/dev", 0o755)?;
    let flags = sys::MS_NOSUID | sys::MS_NOEXEC;
    sys::mount_at("dev", "/dev", "tmpfs", flags, b"mode=755,size=65536,nr_inodes=256")?;
    for (name, tree) in devices {
        let path = format!("/dev/{name}");
        fs::File::create(&path)?;
        // Bytes pass all the same; but whose it is and who may use it, which is the host's, stays.
        sys::restrict_mount(tree, sys::MOUNT_ATTR_RDONLY | sys::MOUNT_ATTR_NOSUID)?;
        sys::attach_mount(tree, &path)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, format!("/dev/{name}"))?;
    }
    fs::create_dir("/dev/shm")?;
    let options = format!("mode=1777,size={shm_bytes}");
    let flags = sys::MS_NOSUID | sys::MS_NODEV;
    sys::mount_at("shm", "/dev/shm", "tmpfs", flags, options.as_bytes())?;
    fs::create_dir("/dev/pts")?;
    let flags = sys::MS_NOSUID | sys::MS_NOEXEC;
    sys::mount_at("pts", "/dev/pts", "devpts", flags, b"newinstance,ptmxmode=0666,mode=620")
}

/// The folder inside a layer that belongs to a mount point: `root`, `usr`, `opt`.
fn part(target: &str) -> &str {
    if target == "/" { "root" } else { target.trim_start_matches('/') }
}

/// A folder, made where there is none.
fn make_folder(path: &str, mode: u32) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    // A file or a link to nowhere that the image has in its place.
    let _ = fs::remove_file(path);
    DirBuilder::new().mode(mode).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn make_target(path: &str, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(path);
    }
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::metadata(path).is_err() {
        fs::File::create(path)?;
    }
    Ok(())
}

fn os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}
