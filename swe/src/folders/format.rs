use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{harbor, sweb, terminal_bench};
use crate::error::{LoadError, Place};
use crate::instance::Instance;

/// A format of task folders.
#[derive(Debug, Clone, Copy)]
pub struct FolderFormat {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    matches: fn(&Path) -> bool,
    read: fn(&Path) -> Result<Instance, LoadError>,
}

/// The formats of task folders. The first that matches a folder is its format.
pub const FOLDER_FORMATS: [FolderFormat; 3] = [
    FolderFormat {
        name: "swe-bench-folder",
        about: "task folders of SWE-bench 5, with `task.yaml` and `tests.json`",
        matches: sweb::matches,
        read: sweb::read,
    },
    FolderFormat {
        name: "harbor",
        about: "task folders of Harbor, with `task.toml`",
        matches: harbor::matches,
        read: harbor::read,
    },
    FolderFormat {
        name: "terminal-bench",
        about: "task folders of terminal-bench 1, with `task.yaml` and `run-tests.sh`",
        matches: terminal_bench::matches,
        read: terminal_bench::read,
    },
];

impl FolderFormat {
    /// The format of a task folder, if it is one.
    pub fn of(folder: &Path) -> Option<&'static Self> {
        FOLDER_FORMATS.iter().find(|format| (format.matches)(folder))
    }

    /// Reads a task folder of this format.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when a file is missing, cannot be read or says what it must not.
    pub fn read(&self, folder: &Path) -> Result<Instance, LoadError> {
        let mut instance = (self.read)(folder)?;
        self.name.clone_into(&mut instance.format);
        let problems = instance.problems();
        match problems.is_empty() {
            true => Ok(instance),
            false => Err(LoadError::Instance { place: Box::new(Place::of(folder)), problems }),
        }
    }
}

/// The task folders of a folder, in the order of their names.
#[derive(Debug)]
pub struct FolderSuite {
    folders: Vec<(&'static FolderFormat, PathBuf)>,
}

/// Folders below the one that is opened in which tasks are looked for.
const MAX_DEPTH: usize = 3;
/// Task folders.
const MAX_TASKS: usize = 1_000_000;

impl FolderSuite {
    /// Opens a task folder, or a folder of them; folders without tasks may lie between.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when a folder cannot be read or there is no task.
    pub fn open(folder: &Path) -> Result<Self, LoadError> {
        let mut folders = Vec::new();
        find(folder, MAX_DEPTH, &mut folders)?;
        if folders.is_empty() {
            let names: Vec<&str> = FOLDER_FORMATS.iter().map(|format| format.about).collect();
            let detail = format!(
                "there is no task folder here or {MAX_DEPTH} folders below; known are {}",
                names.join("; ")
            );
            return Err(LoadError::file(folder, detail));
        }
        Ok(Self { folders })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.folders.len()
    }

    /// Whether there is none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Each with its format.
    pub fn folders(&self) -> impl Iterator<Item = (&'static FolderFormat, &Path)> {
        self.folders.iter().map(|(format, path)| (*format, path.as_path()))
    }

    /// All of them, read. An error of one keeps none of the others from being read.
    pub fn instances(&self) -> impl Iterator<Item = Result<Instance, LoadError>> {
        let mut seen = HashSet::new();
        self.folders().map(move |(format, folder)| {
            let instance = format.read(folder)?;
            match seen.insert(instance.id.clone()) {
                true => Ok(instance),
                false => {
                    let place = Place { id: Some(instance.id), ..Place::of(folder) };
                    Err(LoadError::SameId { place: Box::new(place) })
                }
            }
        })
    }
}

fn find(
    folder: &Path,
    depth: usize,
    found: &mut Vec<(&'static FolderFormat, PathBuf)>,
) -> Result<(), LoadError> {
    if let Some(format) = FolderFormat::of(folder) {
        if found.len() == MAX_TASKS {
            return Err(LoadError::file(
                folder,
                format!("there are more than {MAX_TASKS} task folders"),
            ));
        }
        found.push((format, folder.to_owned()));
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(LoadError::io(folder))? {
        let entry = entry.map_err(LoadError::io(folder))?;
        // Links are not followed: they could lead anywhere, and round in circles.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !entry.file_name().as_encoded_bytes().starts_with(b".")
        {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|folder| find(folder, depth - 1, found))
}
