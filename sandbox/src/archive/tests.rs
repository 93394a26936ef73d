//! What is taken, what is refused, and what comes of paths.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use tar::EntryType;

use super::check::check_entries;
use super::{PartFile, check_tar, normalise};
use crate::SandboxError;

fn entry(kind: EntryType, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name);
    old.linkname[..link.len()].copy_from_slice(link);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str) -> Vec<u8> {
    entry(EntryType::Regular, name.as_bytes(), b"", b"content")
}

fn folder(name: &str) -> Vec<u8> {
    entry(EntryType::Directory, name.as_bytes(), b"", b"")
}

fn link(name: &str, target: &str) -> Vec<u8> {
    entry(EntryType::Symlink, name.as_bytes(), target.as_bytes(), b"")
}

fn hard_link(name: &str, target: &str) -> Vec<u8> {
    entry(EntryType::Link, name.as_bytes(), target.as_bytes(), b"")
}

fn special(kind: EntryType, name: &str) -> Vec<u8> {
    entry(kind, name.as_bytes(), b"", b"")
}

fn pax(kind: EntryType, records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len();
        while length != rest.len() + length.to_string().len() {
            length = rest.len() + length.to_string().len();
        }
        bytes += &format!("{length}{rest}");
    }
    entry(kind, b"pax", b"", bytes.as_bytes())
}

fn check_bytes(bytes: &[u8]) -> Result<(), SandboxError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    std::fs::write(&path, bytes).unwrap();
    check_tar(&path)
}

fn check(entries: &[Vec<u8>]) -> Result<(), SandboxError> {
    let mut bytes = entries.concat();
    bytes.extend([0; 1024]);
    check_bytes(&bytes)
}

#[test]
fn harmless_archives_are_taken() {
    let long = "d/".repeat(90) + "file";
    let harmless: &[&[Vec<u8>]] = &[
        &[],
        &[folder("./"), file("./a"), file("b/c/d"), folder("b")],
        &[file("a"), file("a")],
        &[link("lib/x.so", "../usr/lib/x.so"), link("here", "."), link("d/e/top", "../..")],
        &[file("a"), hard_link("b", "./a"), hard_link("d/c", "b")],
        &[pax(EntryType::XHeader, &[("path", &long), ("mtime", "1.5")]), file("short")],
        &[pax(EntryType::XGlobalHeader, &[("comment", "of git archive")]), file("a")],
        &[entry(EntryType::GNULongName, b"././@LongLink", b"", long.as_bytes()), file("short")],
        &[entry(EntryType::Regular, b"old/", b"", b""), file("old/file")],
    ];
    for (num, entries) in harmless.iter().enumerate() {
        check(entries).unwrap_or_else(|error| panic!("{num}: {error}"));
    }
}

#[test]
fn hostile_archives_are_refused_and_the_entry_is_named() {
    let x = EntryType::XHeader;
    let hostile: &[(&str, &[Vec<u8>])] = &[
        ("/etc/passwd", &[file("/etc/passwd")]),
        ("../x", &[file("../x")]),
        ("a/../../x", &[file("a/../../x")]),
        ("a/..", &[folder("a/..")]),
        ("l/x", &[link("l", "d"), file("l/x")]),
        ("l/d/x", &[link("l", "."), file("l/d/x")]),
        ("l", &[link("l", "/etc")]),
        ("l", &[link("l", "..")]),
        ("d/l", &[link("d/l", "../../x")]),
        ("./d/.//l", &[link("./d/.//l", "../../x")]),
        ("p", &[link("s", "."), link("p", "s/s/../../x")]),
        ("d", &[file("d/x"), link("d", "elsewhere")]),
        ("d", &[folder("d"), link("d", "elsewhere")]),
        ("f", &[link("f", "g"), file("f")]),
        ("f", &[file("f"), link("f", "g")]),
        ("f/x", &[file("f"), file("f/x")]),
        ("h", &[hard_link("h", "/etc/passwd")]),
        ("h", &[hard_link("h", "../x")]),
        ("h", &[hard_link("h", "not-in-the-archive")]),
        ("h", &[hard_link("h", "h")]),
        ("h", &[link("a/b/l", "../../x"), hard_link("h", "a/b/l")]),
        ("h", &[folder("d"), hard_link("h", "d")]),
        (".", &[link(".", "d")]),
        ("null", &[special(EntryType::Char, "null")]),
        ("sda", &[special(EntryType::Block, "sda")]),
        ("pipe", &[special(EntryType::Fifo, "pipe")]),
        ("s", &[special(EntryType::GNUSparse, "s")]),
        ("?", &[special(EntryType::new(b'?'), "?")]),
        ("a\0b", &[pax(x, &[("path", "a\0b")]), file("a")]),
        ("/abs", &[pax(x, &[("path", "/abs")]), file("a")]),
        ("l", &[pax(x, &[("linkpath", "/etc")]), link("l", "fine")]),
        ("f", &[pax(x, &[("size", "0")]), file("f")]),
        ("pax", &[pax(x, &[("path", "a"), ("path", "b")]), file("f")]),
        ("pax", &[pax(x, &[("GNU.sparse.name", "a")]), file("f")]),
        ("pax", &[pax(EntryType::XGlobalHeader, &[("path", "/etc/x")]), file("f")]),
        (
            "long",
            &[
                pax(x, &[("path", "a")]),
                entry(EntryType::GNULongName, b"long", b"", b"b\0"),
                file("f"),
            ],
        ),
    ];
    for (name, entries) in hostile {
        match check(entries) {
            Err(SandboxError::PathRefused { path, reason }) => {
                assert_eq!(path, *name, "{reason}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn what_is_no_whole_archive_is_an_error_of_the_host() {
    let whole = [file("a"), vec![0; 1024]].concat();
    check_bytes(&whole).unwrap();
    let mut after = whole.clone();
    after.extend(file("../x"));
    let lone = [file("a"), vec![0; 512], file("../x"), vec![0; 1024]].concat();
    let zeros = entry(EntryType::Regular, b"zeros", b"", &[0; 2048]);
    let dangling = [pax(EntryType::XHeader, &[("path", "a")]), vec![0; 1024]].concat();
    let broken: &[&[u8]] = &[
        b"",
        b"garbage",
        &[b'x'; 2000],
        &[0x1f, 0x8b, 8, 0],
        &whole[..100],
        &whole[..600],
        &whole[..1024],
        &zeros,
        &after,
        &lone,
        &dangling,
    ];
    for (num, bytes) in broken.iter().enumerate() {
        match check_bytes(bytes) {
            Err(SandboxError::Host { doing: "read archive", .. }) => {}
            other => panic!("{num}: {other:?}"),
        }
    }
    assert!(matches!(check_tar(Path::new("/nowhere.tar")), Err(SandboxError::Host { .. })));
}

#[test]
fn paths_are_normalised_as_they_read() {
    for (path, expected) in [
        ("/", "/"),
        ("/a//b/./c/", "/a/b/c"),
        ("x", "/job/x"),
        ("./x/../y", "/job/y"),
        ("..", "/"),
        ("../../../etc/passwd", "/etc/passwd"),
        ("/../..", "/"),
    ] {
        assert_eq!(normalise(path, "/job").unwrap(), expected, "{path}");
    }
    for path in ["", "a\0b", &"x/".repeat(3000)] {
        assert!(matches!(normalise(path, "/"), Err(SandboxError::PathRefused { .. })));
    }
}

#[tokio::test]
async fn what_is_saved_is_a_whole_file_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.tar");
    let mut part = PartFile::create("/x", &target, 4).await.unwrap();
    part.write(b"abc").await.unwrap();
    let error = part.write(b"de").await.unwrap_err();
    assert!(matches!(error, SandboxError::TooLarge { limit_bytes: 4, .. }), "{error}");
    drop(part);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut part = PartFile::create("/x", &target, 5).await.unwrap();
    part.write(b"abc").await.unwrap();
    part.write(b"de").await.unwrap();
    assert!(!target.exists());
    part.finish().await.unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"abcde");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let nowhere = folder.path().join("no/out.tar");
    let error = PartFile::create("/x", &nowhere, 5).await.unwrap_err();
    assert!(matches!(error, SandboxError::Host { doing: "create", .. }), "{error}");
}

/// Where a path leads in a world of links, as the kernel would walk it; `None` is outside.
fn walk(
    start: &[String],
    path: &str,
    links: &HashMap<Vec<String>, String>,
    left: u32,
) -> Option<Vec<String>> {
    let mut place = start.to_vec();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                place.pop()?;
            }
            part => {
                place.push(part.to_owned());
                if let Some(target) = links.get(&place) {
                    place.pop();
                    if left == 0 {
                        return Some(place); // A loop: the kernel refuses it.
                    }
                    place = walk(&place, target, links, left - 1)?;
                }
            }
        }
    }
    Some(place)
}

#[test]
fn two_hundred_files_in_the_deepest_folder_are_taken() {
    // Two bytes for each folder, so that the names stay below the limit of 4095.
    let deepest = "d/".repeat(2040);
    let entries = (0..200).map(|number| {
        let path = format!("{deepest}{number}");
        [pax(EntryType::XHeader, &[("path", &path)]), file("short")].concat()
    });
    let entries: Vec<_> = entries.collect();
    check(&entries).unwrap();
}

proptest! {
    #[test]
    fn no_path_through_links_that_were_taken_leads_outside(
        links in proptest::collection::vec(("[ab](/[ab]){0,2}", r"([ab]|\.|\.\.)(/([ab]|\.\.)){0,3}"), 1..6),
        probe in "[ab](/[ab]){0,5}",
    ) {
        let entries: Vec<_> = links.iter().map(|(name, target)| link(name, target)).collect();
        if check(&entries).is_ok() {
            let world = links
                .iter()
                .map(|(name, target)| (name.split('/').map(str::to_owned).collect(), target.clone()))
                .collect();
            prop_assert!(walk(&[], &probe, &world, 8).is_some());
        }
    }

    #[test]
    fn normal_paths_stay_as_they_are(path in r"[a./]{1,12}", workdir in "(/[ab]){0,3}") {
        let once = normalise(&path, &workdir).unwrap();
        prop_assert_eq!(&normalise(&once, "/other").unwrap(), &once);
        prop_assert!(once.starts_with('/'));
        prop_assert!(!once.split('/').any(|part| part == "." || part == ".."));
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = check_entries(bytes.as_slice());
    }

    #[test]
    fn no_cut_of_an_archive_is_taken(cut in 0usize..3072) {
        let whole = [file("a"), file("b"), vec![0; 1024]].concat();
        prop_assert_eq!(check_entries(&whole[..cut]).is_ok(), cut >= 2048 + 512);
    }
}
