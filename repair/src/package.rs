use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::PackageError;
use crate::mutation::Language;

/// Bytes of all files of a package.
pub const MAX_PACKAGE_BYTES: u64 = 256 << 20;
/// Files of a package.
pub const MAX_PACKAGE_FILES: usize = 50_000;

/// Folders that are no part of a source package: what tools leave behind.
const LEFT_OUT: [&str; 12] = [
    ".git",
    ".hg",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    "node_modules",
    "target",
    ".hypothesis",
];

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Whether it can be executed.
    pub is_executable: bool,
}

/// A source package that has tests, in memory.
#[derive(Debug, Clone)]
pub struct SourcePackage {
    /// Its name, in letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its version, as it tells; empty where it does not.
    pub version: String,
    /// What it is written in.
    pub language: Language,
    /// Its licence as it tells it, such as `MIT`; absent where it does not.
    pub licence: Option<String>,
    /// SHA-256 in hexadecimal digits: of the archive, or of a folder's files with their names.
    pub sha256: String,
    /// Its files by their paths, whose parts `/` separates. Links are left out.
    pub files: BTreeMap<String, PackageFile>,
}

impl SourcePackage {
    /// Reads a package: a folder, or an archive (`.tar`, `.tar.gz`, `.tgz`, `.crate`) with one folder in it, which
    /// `gzip` unpacks.
    ///
    /// # Errors
    ///
    /// [`PackageError`] when it cannot be read, is too large, or is neither a Python package nor a crate.
    pub fn open(path: &Path) -> Result<Self, PackageError> {
        let (files, sha256) = match path.is_dir() {
            true => {
                let mut files = BTreeMap::new();
                let mut left = MAX_PACKAGE_BYTES;
                read_folder(path, "", &mut files, &mut left)?;
                let sha256 = hash_of(&files);
                (files, sha256)
            }
            false => read_archive(path)?,
        };
        let called =
            path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self::of_files(&called, files, sha256)
            .map_err(|what| PackageError::Unknown { path: path.to_owned(), what })
    }

    fn of_files(
        called: &str,
        files: BTreeMap<String, PackageFile>,
        sha256: String,
    ) -> Result<Self, String> {
        let text = |name: &str| {
            files.get(name).map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
        };
        let manifest = text("Cargo.toml").filter(|text| text.contains("[package]"));
        let is_python = ["PKG-INFO", "pyproject.toml", "setup.py", "setup.cfg"]
            .iter()
            .any(|name| files.contains_key(*name))
            || files.keys().any(|name| name.ends_with(".py"));
        let language = match (&manifest, is_python) {
            (Some(_), _) => Language::Rust,
            (None, true) => Language::Python,
            (None, false) => {
                return Err(
                    "it has neither Python files nor a `Cargo.toml` with a package".to_owned()
                );
            }
        };
        let (name, version, licence) = match &manifest {
            Some(manifest) => {
                let package = manifest.split("[package]").nth(1).unwrap_or_default();
                let package = package.split("\n[").next().unwrap_or_default();
                let field = |name| toml_text(package, name);
                (field("name"), field("version"), field("license"))
            }
            None => python_metadata(&text("PKG-INFO").unwrap_or_default()),
        };
        let stem = [".tar.gz", ".tgz", ".crate", ".tar"]
            .iter()
            .find_map(|end| called.strip_suffix(end))
            .unwrap_or(called);
        let name = name.unwrap_or_else(|| stem.to_owned());
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        let name = name.trim_matches(['.', '-']).to_owned();
        if name.is_empty() {
            return Err("it has no name".to_owned());
        }
        Ok(Self { name, version: version.unwrap_or_default(), language, licence, sha256, files })
    }

    /// Name and hash as one word: `inflection.1a2b3c4d`.
    pub fn key(&self) -> String {
        format!("{}.{}", self.name, &self.sha256[..8])
    }

    /// A file's text, where it is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.files.get(path)?.bytes).ok()
    }

    /// Whether a path is one of tests, by its folders and its name.
    pub fn is_test(path: &str) -> bool {
        let mut parts: Vec<&str> = path.split('/').collect();
        let name = parts.pop().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        parts.iter().any(|part| matches!(*part, "tests" | "test" | "testing" | "benches"))
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || matches!(stem, "conftest" | "tests" | "test")
    }

    /// Sources that may be mutated, in order: of its language, and no tests.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .keys()
            .filter(|path| {
                Language::of_file(Path::new(path)) == Some(self.language) && !Self::is_test(path)
            })
            .filter_map(|path| Some((path.as_str(), self.text(path)?)))
    }

    /// For Python: the folders that modules are imported from, relative, the first first.
    pub fn import_paths(&self) -> Vec<String> {
        ["src", "lib"]
            .iter()
            .filter(|folder| {
                let inside = format!("{folder}/");
                self.files.keys().any(|path| path.starts_with(&inside) && path.ends_with(".py"))
            })
            .map(|folder| (*folder).to_owned())
            .chain([String::new()])
            .collect()
    }

    /// Writes its files below a folder.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        for (path, file) in &self.files {
            let target = folder.join(path);
            if let Some(above) = target.parent() {
                fs::create_dir_all(above)?;
            }
            fs::write(&target, &file.bytes)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = if file.is_executable { 0o755 } else { 0o644 };
                fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
            }
        }
        Ok(())
    }
}

/// A text that a table of TOML has under a name, in the plain form that manifests have it in.
fn toml_text(table: &str, name: &str) -> Option<String> {
    table.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.trim().strip_prefix('"')?;
        (key.trim() == name).then(|| value.split('"').next().unwrap_or_default().to_owned())
    })
}

/// Name, version and licence by the metadata of a source distribution.
fn python_metadata(text: &str) -> (Option<String>, Option<String>, Option<String>) {
    let head = text.split("\n\n").next().unwrap_or_default();
    let field = |name: &str| {
        let start = format!("{name}: ");
        let found = head.lines().find_map(|line| line.strip_prefix(&start));
        found
            .map(str::trim)
            .filter(|value| !value.is_empty() && *value != "UNKNOWN")
            .map(str::to_owned)
    };
    let classifier = || {
        let licences: Vec<&str> = head
            .lines()
            .filter_map(|line| line.strip_prefix("Classifier: License ::"))
            .filter_map(|line| line.rsplit(" :: ").next())
            .map(str::trim)
            .collect();
        (!licences.is_empty()).then(|| licences.join(" or "))
    };
    // Some have the whole text of their licence in the older field.
    let licence = field("License-Expression")
        .or_else(classifier)
        .or_else(|| field("License").filter(|text| text.len() < 80));
    (field("Name"), field("Version"), licence)
}

fn hash_of(files: &BTreeMap<String, PackageFile>) -> String {
    let mut hasher = Sha256::new();
    for (path, file) in files {
        hasher.update((path.len() as u64).to_le_bytes());
        hasher.update(path);
        hasher.update([u8::from(file.is_executable)]);
        hasher.update((file.bytes.len() as u64).to_le_bytes());
        hasher.update(&file.bytes);
    }
    hexadecimal(hasher)
}

/// The digits of a hash.
pub(crate) fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keep(
    files: &mut BTreeMap<String, PackageFile>,
    left: &mut u64,
    path: String,
    bytes: Vec<u8>,
    is_executable: bool,
) -> Result<(), PackageError> {
    *left = left.checked_sub(bytes.len() as u64).ok_or(PackageError::TooLarge)?;
    if files.len() >= MAX_PACKAGE_FILES {
        return Err(PackageError::TooLarge);
    }
    files.insert(path, PackageFile { bytes, is_executable });
    Ok(())
}

fn read_folder(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, PackageFile>,
    left: &mut u64,
) -> Result<(), PackageError> {
    let io = |source| PackageError::Io { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        // What is no UTF-8 could not be named in a row.
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let kind = entry.file_type().map_err(io)?;
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) && prefix.matches('/').count() < 64 {
                read_folder(&entry.path(), &format!("{path}/"), files, left)?;
            }
        } else if kind.is_file() && !name.ends_with(".pyc") {
            let io = |source| PackageError::Io { path: entry.path(), source };
            let file = File::open(entry.path()).map_err(io)?;
            let is_executable = is_executable(&file.metadata().map_err(io)?);
            let mut bytes = Vec::new();
            file.take(*left + 1).read_to_end(&mut bytes).map_err(io)?;
            keep(files, left, path, bytes, is_executable)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn is_executable(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

fn read_archive(path: &Path) -> Result<(BTreeMap<String, PackageFile>, String), PackageError> {
    let io = |source| PackageError::Io { path: path.to_owned(), source };
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path).map_err(io)?.take(MAX_PACKAGE_BYTES), &mut hasher)
        .map_err(io)?;
    let sha256 = hexadecimal(hasher);
    let name = path.to_string_lossy();
    if name.ends_with(".tar") {
        return Ok((read_tar(path, File::open(path).map_err(io)?)?, sha256));
    }
    if ![".tar.gz", ".tgz", ".crate"].iter().any(|end| name.ends_with(end)) {
        let what = "it is neither a folder nor an archive that ends in `.tar`, `.tar.gz`, `.tgz` or `.crate`".to_owned();
        return Err(PackageError::Unknown { path: path.to_owned(), what });
    }
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(File::open(path).map_err(io)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| PackageError::Program { program: "gzip", source })?;
    let unpacked = gzip.stdout.take().expect("it is piped");
    let files = read_tar(path, unpacked);
    // It ends when nobody reads any more; where it has not, its archive was longer than what is read.
    let _ = gzip.kill();
    let _ = gzip.wait();
    Ok((files?, sha256))
}

/// The regular files of an archive without the one folder that all lie in.
fn read_tar(
    path: &Path,
    archive: impl Read,
) -> Result<BTreeMap<String, PackageFile>, PackageError> {
    let io = |source| PackageError::Io { path: path.to_owned(), source };
    let (mut files, mut left) = (BTreeMap::new(), MAX_PACKAGE_BYTES);
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(io)? {
        let entry = entry.map_err(io)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path().map_err(io)?.into_owned();
        let Some(name) = relative(&name) else {
            let what = format!("`{}` in it leads out of it", name.display());
            return Err(PackageError::Unknown { path: path.to_owned(), what });
        };
        let is_executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        let mut bytes = Vec::new();
        entry.take(left + 1).read_to_end(&mut bytes).map_err(io)?;
        keep(&mut files, &mut left, name, bytes, is_executable)?;
    }
    let top = files
        .keys()
        .next()
        .and_then(|first: &String| Some(format!("{}/", first.split_once('/')?.0)));
    Ok(match top {
        Some(top) if files.keys().all(|path| path.starts_with(&top)) => {
            files.into_iter().map(|(path, file)| (path[top.len()..].to_owned(), file)).collect()
        }
        _ => files,
    })
}

/// A path of plain parts alone, joined by `/`; absent where it has others.
fn relative(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(part) => part.to_str().filter(|part| *part != ".git"),
            _ => None,
        })
        .collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, &str)]) -> BTreeMap<String, PackageFile> {
        let file =
            |text: &str| PackageFile { bytes: text.as_bytes().to_vec(), is_executable: false };
        names.iter().map(|(name, text)| ((*name).to_owned(), file(text))).collect()
    }

    #[test]
    fn metadata_are_read_as_packages_have_them() {
        let info = "Metadata-Version: 2.1\nName: inflection\nVersion: 0.5.1\nLicense: MIT\nClassifier: License :: OSI Approved :: MIT License\n\nName: no\n";
        let package = SourcePackage::of_files(
            "x",
            files(&[("PKG-INFO", info), ("a.py", "")]),
            "0".repeat(64),
        )
        .unwrap();
        assert_eq!(
            (&*package.name, &*package.version, package.licence.as_deref()),
            ("inflection", "0.5.1", Some("MIT License"))
        );
        assert_eq!(
            (package.language, package.key()),
            (Language::Python, "inflection.00000000".to_owned())
        );
        let manifest = "[package]\nname = \"semver\"\nversion = \"1.0.0\"\nlicense = \"MIT OR Apache-2.0\"\n[dependencies]\nname = \"no\"\n";
        let package =
            SourcePackage::of_files("x", files(&[("Cargo.toml", manifest)]), "0".repeat(64))
                .unwrap();
        assert_eq!(
            (package.language, package.licence.as_deref()),
            (Language::Rust, Some("MIT OR Apache-2.0"))
        );
        assert!(SourcePackage::of_files("x", files(&[("a.c", "")]), "0".repeat(64)).is_err());
    }

    #[test]
    fn tests_are_told_from_sources() {
        for path in [
            "tests/a.py",
            "pkg/tests/x.py",
            "test_a.py",
            "pkg/a_test.py",
            "conftest.py",
            "test/a.rs",
        ] {
            assert!(SourcePackage::is_test(path), "{path}");
        }
        for path in ["pkg/latest.py", "pkg/a.py", "contest.py", "src/lib.rs"] {
            assert!(!SourcePackage::is_test(path), "{path}");
        }
    }

    #[test]
    fn a_folder_and_its_archive_are_the_same_package() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("pkg-1.0");
        let package = SourcePackage::of_files(
            "pkg",
            files(&[("setup.py", "x"), ("pkg/a.py", "y = 1\n")]),
            "0".repeat(64),
        )
        .unwrap();
        package.write_to(&root).unwrap();
        fs::create_dir(root.join("__pycache__")).unwrap();
        fs::write(root.join("__pycache__/a.pyc"), "z").unwrap();
        let read = SourcePackage::open(&root).unwrap();
        assert_eq!((&read.files, read.name.as_str()), (&package.files, "pkg-1.0"));
        let archive = folder.path().join("pkg-1.0.tar");
        let mut tar = tar::Builder::new(File::create(&archive).unwrap());
        for (path, file) in &package.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(file.bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("pkg-1.0/{path}"), &file.bytes[..]).unwrap();
        }
        tar.finish().unwrap();
        let packed = SourcePackage::open(&archive).unwrap();
        assert_eq!((packed.files, packed.name), (read.files, read.name));
        assert_ne!(packed.sha256, read.sha256);
        assert!(matches!(
            SourcePackage::open(&folder.path().join("none.zip")),
            Err(PackageError::Io { .. })
        ));
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        assert_eq!(relative(Path::new("./a/b")), Some("a/b".to_owned()));
        for path in ["../a", "/a", "a/../b", ".git/config", "."] {
            assert_eq!(relative(Path::new(path)), None, "{path}");
        }
    }
}
