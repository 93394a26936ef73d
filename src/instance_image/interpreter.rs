use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::ImageError;
use super::error::ImageError::Io;
use crate::child;

/// Shared libraries that every Linux of glibc has, and that belong to it.
const OF_GLIBC: [&str; 9] = [
    "ld-linux",
    "libc.so",
    "libm.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libutil.so",
    "libresolv.so",
    "linux-vdso",
];

/// An interpreter of Python on this machine, whose folder is put into an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its folder: `bin/python3` and `lib/pythonX.Y` lie in it.
    pub folder: PathBuf,
    /// Its version, such as `3.9.18`.
    pub version: String,
    /// BLAKE3 of the program, in hexadecimal digits.
    pub hash: String,
}

impl Interpreter {
    /// The interpreter in a folder, which has to be of a version (`3.9`, or `3.9.18`).
    ///
    /// # Errors
    ///
    /// [`ImageError::Interpreter`] where there is none, or one of another version.
    pub async fn open(folder: &Path, wanted: &str) -> Result<Self, ImageError> {
        let refuse = |why: String| ImageError::Interpreter {
            folder: folder.to_owned(),
            version: wanted.to_owned(),
            why,
        };
        let program = folder.join("bin/python3");
        if !program.is_file() {
            return Err(refuse("it has no `bin/python3`".to_owned()));
        }
        let mut ask = Command::new(&program);
        ask.args(["-I", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]);
        let asked = child::output(&mut ask, child::ANSWER).await?;
        let version = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        if !asked.status.success() || version.is_empty() {
            return Err(refuse(format!(
                "it does not run: {}",
                String::from_utf8_lossy(&asked.stderr).trim()
            )));
        }
        if version != wanted && !version.starts_with(&format!("{wanted}.")) {
            return Err(refuse(format!("it is {version}")));
        }
        let library = folder.join("lib").join(library_of(&version));
        if !library.join("os.py").is_file() {
            return Err(refuse(format!(
                "`{}` is not its library: a whole installation is needed",
                library.display()
            )));
        }
        let bytes = fs::read(&program).map_err(|source| Io {
            doing: "read",
            path: program.clone(),
            source,
        })?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        Ok(Self { folder: folder.to_owned(), version, hash })
    }

    /// The newest interpreter of a version among those of pyenv.
    ///
    /// # Errors
    ///
    /// [`ImageError::Interpreter`] where there is none.
    pub async fn find(wanted: &str) -> Result<Self, ImageError> {
        let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
        let versions = root.or(home).unwrap_or_default().join("versions");
        let mut found: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(&versions)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let fits = name == wanted || name.starts_with(&format!("{wanted}."));
                let parts: Option<Vec<u32>> =
                    name.split('.').map(|part| part.parse().ok()).collect();
                fits.then(|| Some((parts?, entry.path())))?
            })
            .collect();
        found.sort();
        match found.pop() {
            Some((_, folder)) => Self::open(&folder, wanted).await,
            None => Err(ImageError::Interpreter {
                folder: versions,
                version: wanted.to_owned(),
                why: "none of its folders is called so".to_owned(),
            }),
        }
    }

    /// Major and minor version, such as `3.9`.
    pub fn minor(&self) -> String {
        self.version.rsplit_once('.').map_or(self.version.clone(), |(minor, _)| minor.to_owned())
    }

    /// Copies what is the interpreter's own into a folder: programs, library without what was installed later, headers.
    pub(super) fn copy_to(&self, target: &Path) -> Result<(), ImageError> {
        let library = library_of(&self.version);
        let bin = target.join("bin");
        make(&bin)?;
        for name in names(&self.folder.join("bin"))? {
            // `pip` and the like have this machine's paths in them, and are made anew.
            let is_python = name == "python"
                || name
                    .strip_prefix("python")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if is_python && !name.ends_with("-config") {
                copy(&self.folder.join("bin").join(&name), &bin.join(&name))?;
            }
        }
        if fs::symlink_metadata(bin.join("python")).is_err() {
            link(Path::new("python3"), &bin.join("python"))?;
        }
        copy_tree(&self.folder.join("lib").join(&library), &target.join("lib").join(&library), 0)?;
        for name in names(&self.folder.join("lib"))? {
            if name.starts_with("libpython") && name.contains(".so") {
                copy(&self.folder.join("lib").join(&name), &target.join("lib").join(&name))?;
            }
        }
        for name in names(&self.folder.join("include")).unwrap_or_default() {
            if name.starts_with(&library) {
                copy_tree(
                    &self.folder.join("include").join(&name),
                    &target.join("include").join(&name),
                    0,
                )?;
            }
        }
        make(&target.join("lib").join(&library).join("site-packages"))
    }

    /// Shared libraries of this machine that it is linked with, by name, but for those of glibc.
    pub(super) async fn libraries(&self) -> Result<BTreeMap<String, PathBuf>, ImageError> {
        let dynamic = self.folder.join("lib").join(library_of(&self.version)).join("lib-dynload");
        let mut objects = vec![self.folder.join("bin/python3")];
        for name in names(&dynamic).unwrap_or_default() {
            if name.ends_with(".so") {
                objects.push(dynamic.join(name));
            }
        }
        let told = child::output(Command::new("ldd").args(&objects), child::ANSWER).await?;
        Ok(linked(&String::from_utf8_lossy(&told.stdout), &self.folder))
    }
}

/// What `ldd` tells: names with paths, but for those below `own` and those of glibc.
fn linked(told: &str, own: &Path) -> BTreeMap<String, PathBuf> {
    told.lines()
        .filter_map(|line| {
            let (name, rest) = line.trim().split_once(" => ")?;
            let path = Path::new(rest.split_whitespace().next()?);
            let is_foreign = path.is_absolute() && !path.starts_with(own);
            let is_of_glibc = OF_GLIBC.iter().any(|known| name.starts_with(known));
            (is_foreign && !is_of_glibc).then(|| (name.to_owned(), path.to_owned()))
        })
        .collect()
}

fn library_of(version: &str) -> String {
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    format!("python{minor}")
}

fn names(folder: &Path) -> Result<BTreeSet<String>, ImageError> {
    let read = fs::read_dir(folder).map_err(|source| Io {
        doing: "read",
        path: folder.to_owned(),
        source,
    })?;
    Ok(read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

pub(super) fn make(folder: &Path) -> Result<(), ImageError> {
    fs::create_dir_all(folder).map_err(|source| Io {
        doing: "make the folder",
        path: folder.to_owned(),
        source,
    })
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> Result<(), ImageError> {
    std::os::unix::fs::symlink(to, at).map_err(|source| Io {
        doing: "make the link",
        path: at.to_owned(),
        source,
    })
}

#[cfg(not(unix))]
fn link(_: &Path, at: &Path) -> Result<(), ImageError> {
    let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
    Err(Io { doing: "make the link", path: at.to_owned(), source })
}

/// Copies a file, or a link as a link.
fn copy(from: &Path, to: &Path) -> Result<(), ImageError> {
    let fail = |source| Io { doing: "copy", path: from.to_owned(), source };
    match fs::symlink_metadata(from).map_err(fail)?.is_symlink() {
        // One that leads out of the folder is followed.
        true => match fs::read_link(from).map_err(fail)? {
            near if near.components().count() == 1 => link(&near, to),
            _ => fs::copy(from, to).map(drop).map_err(fail),
        },
        false => fs::copy(from, to).map(drop).map_err(fail),
    }
}

/// Copies a library without what tools left there and what was installed later.
fn copy_tree(from: &Path, to: &Path, depth: usize) -> Result<(), ImageError> {
    const LEFT_OUT: [&str; 3] = ["__pycache__", "site-packages", "idlelib"];
    const MAX_DEPTH: usize = 32;
    make(to)?;
    for name in names(from)? {
        let (inner, target) = (from.join(&name), to.join(&name));
        if inner.is_dir() && !inner.is_symlink() {
            // `config-*` has the archive that other programs link.
            if !LEFT_OUT.contains(&&*name) && depth < MAX_DEPTH {
                copy_tree(&inner, &target, depth + 1)?;
            }
        } else if !name.ends_with(".a") && (inner.is_file() || inner.is_symlink()) {
            copy(&inner, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_other_packages_are_carried_along() {
        let told = "/opt/py/lib/a.so:\n\tlinux-vdso.so.1 (0x1)\n\tlibssl.so.3 => /lib/x/libssl.so.3 (0x2)\n\
                    \tlibc.so.6 => /lib/x/libc.so.6 (0x3)\n\tlibpython3.9.so => /opt/py/lib/libpython3.9.so (0x4)\n\
                    \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x5)\n";
        let found = linked(told, Path::new("/opt/py"));
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("libssl.so.3".to_owned(), PathBuf::from("/lib/x/libssl.so.3"))]
        );
    }

    #[test]
    fn what_was_installed_later_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = folder.path().join("from").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for path in [
            "bin/python3.9",
            "bin/pip",
            "bin/python3.9-config",
            "lib/python3.9/os.py",
            "lib/python3.9/site-packages/a.py",
            "lib/python3.9/__pycache__/os.pyc",
            "lib/libpython3.9.a",
            "lib/python3.9/json/__init__.py",
            "include/python3.9/Python.h",
        ] {
            put(path);
        }
        link(Path::new("python3.9"), &folder.path().join("from/bin/python3")).unwrap();
        let interpreter = Interpreter {
            folder: folder.path().join("from"),
            version: "3.9.1".into(),
            hash: String::new(),
        };
        let to = folder.path().join("to");
        interpreter.copy_to(&to).unwrap();
        for (path, is_there) in [
            ("bin/python3", true),
            ("bin/python", true),
            ("bin/pip", false),
            ("bin/python3.9-config", false),
            ("lib/python3.9/os.py", true),
            ("lib/python3.9/json/__init__.py", true),
            ("lib/python3.9/__pycache__", false),
            ("include/python3.9/Python.h", true),
            ("lib/python3.9/site-packages/a.py", false),
            ("lib/libpython3.9.a", false),
        ] {
            assert_eq!(to.join(path).exists(), is_there, "{path}");
        }
    }

    #[tokio::test]
    async fn a_folder_without_an_interpreter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let told = Interpreter::open(folder.path(), "3.9").await.unwrap_err().to_string();
        assert!(told.contains("has no Python 3.9: it has no `bin/python3`"), "{told}");
    }
}
