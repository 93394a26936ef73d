//! Files in folders, shared or not.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{address, clipped, has_words, lines, optional_text};
use crate::diff::Change;
use crate::table::Table;
use crate::tool::{AppTool, tool};

const MOST_LISTED: usize = 30;
const MOST_TEXT: usize = 4_000;
const MOST_PATH: usize = 120;
const MOST_SHARED: usize = 20;

/// A file.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct File {
    pub(crate) text: String,
    /// Addresses of those it is shared with.
    pub(crate) shared_with: BTreeSet<String>,
}

/// A folder, which has nothing but its path.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Folder {}

/// All files and folders by path. Paths begin with `/`, and `/` itself is there always.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub(crate) files: Table<String, File>,
    pub(crate) folders: Table<String, Folder>,
}

/// What stands behind the last `/`.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path in its one form: `/` in front, none at the end, names of letters, digits, `.`, `-`, `_` and spaces. The root is empty.
fn clean(path: &str) -> Result<String, String> {
    let refuse = |why: &str| Err(format!("`{}` is no path: {why}.", clipped(path, 60)));
    if path.len() > MOST_PATH {
        return refuse("it is too long");
    }
    let mut found = String::new();
    for name in path.trim().split('/').filter(|name| !name.is_empty()) {
        if name == "." || name == ".." {
            return refuse("`.` and `..` are not followed");
        }
        if !name.chars().all(|c| c.is_alphanumeric() || " .-_".contains(c)) {
            return refuse("names have letters, digits, spaces, `.`, `-` and `_`");
        }
        found.push('/');
        found.push_str(name);
    }
    Ok(found)
}

impl Files {
    pub(crate) fn diff(&self, after: &Self, changes: &mut Vec<Change>) {
        self.files.diff(&after.files, "file", String::clone, changes);
        self.folders.diff(&after.folders, "folder", String::clone, changes);
    }

    pub(crate) fn num_records(&self) -> usize {
        self.files.len() + self.folders.len()
    }

    /// The file at a path, with the path in its one form.
    pub(crate) fn get(&self, path: &str) -> Result<(String, &File), String> {
        let path = clean(path)?;
        let file = self.files.get(&path).ok_or_else(|| no_file(&path))?;
        Ok((path, file))
    }

    fn get_mut(&mut self, path: &str) -> Result<(String, &mut File), String> {
        let path = clean(path)?;
        let file = self.files.get_mut(&path).ok_or_else(|| no_file(&path))?;
        Ok((path, file))
    }

    fn has_folder(&self, path: &str) -> bool {
        path.is_empty() || self.folders.contains(&path.to_owned())
    }

    fn folder(&self, path: &str) -> Result<String, String> {
        let path = clean(path)?;
        match self.has_folder(&path) {
            true => Ok(path),
            false => Err(format!("There is no folder `{path}`; `files_make_folder` makes one.")),
        }
    }

    /// The path of a name in a folder that is there.
    pub(crate) fn path_in(&self, folder: &str, name: &str) -> Result<String, String> {
        Ok(format!("{}/{name}", self.folder(folder)?))
    }

    /// Makes a file that is not there yet, in a folder that is.
    pub(crate) fn create(&mut self, path: &str, file: File) -> Result<String, String> {
        let path = clean(path)?;
        self.folder(folder_of(&path))?;
        if name_of(&path).is_empty() {
            return Err("A file needs a name.".to_owned());
        }
        if self.files.contains(&path) || self.folders.contains(&path) {
            return Err(format!("`{path}` is there already."));
        }
        self.files.insert(path.clone(), file)?;
        Ok(path)
    }

    /// Where something goes: the path, or in the folder that the path is of, under the name that it has.
    fn target(&self, from: &str, to: &str) -> Result<String, String> {
        let to = clean(to)?;
        Ok(if self.has_folder(&to) { format!("{to}/{}", name_of(from)) } else { to })
    }
}

fn no_file(path: &str) -> String {
    format!("There is no file `{path}`; `files_list` and `files_search` tell what there is.")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InFolder {
    /// The path of the folder, such as /notes.
    folder: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Words of the path or the text.
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The path of the file, such as /notes/list.txt.
    path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    /// The path of the file, such as /notes/list.txt.
    path: String,
    /// The text.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The path of the file, such as /notes/list.txt.
    path: String,
    /// The new path, or the folder that it goes to.
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Share {
    /// The path of the file, such as /notes/list.txt.
    path: String,
    /// The mail address of the other.
    email: String,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!(
        "files_list",
        Files,
        "Lists the files and folders in a folder.",
        InFolder,
        |world, it| {
            let folder = world.files.folder(&it.folder)?;
            let is_here = |path: &&String| folder_of(path) == folder;
            let folders = world.files.folders.iter().map(|(path, _)| path).filter(is_here);
            let mut all: Vec<String> = folders.map(|path| format!("{path}/")).collect();
            let files = world.files.files.iter().filter(|(path, _)| is_here(path));
            all.extend(
                files.map(|(path, file)| {
                    format!("{path} | {} characters", file.text.chars().count())
                }),
            );
            Ok(lines("file", all, MOST_LISTED))
        }
    ),
    tool!("files_search", Files, "Finds files by words of path or text.", Search, |world, it| {
        let fits = |(path, file): &(&String, &File)| {
            has_words(&format!("{path} {}", file.text), &it.query)
        };
        let all = world.files.files.iter().filter(fits).map(|(path, _)| path.clone()).collect();
        Ok(lines("file", all, MOST_LISTED))
    }),
    tool!("files_read", Files, "Shows the text of a file.", One, |world, it| {
        Ok(world.files.get(&it.path)?.1.text.clone())
    }),
    tool!(
        "files_info",
        Files,
        "Tells how long a file is and whom it is shared with.",
        One,
        |world, it| {
            let (path, file) = world.files.get(&it.path)?;
            let shared: Vec<&str> = file.shared_with.iter().map(String::as_str).collect();
            let shared = if shared.is_empty() { "nobody".to_owned() } else { shared.join(", ") };
            Ok(format!("{path} | {} characters | shared with {shared}", file.text.chars().count()))
        }
    ),
    tool!(
        "files_write",
        Files,
        "Makes a file, or replaces the text of one.",
        Write,
        |world, it| {
            let text = optional_text("text", &it.text, MOST_TEXT)?;
            if let Ok((path, file)) = world.files.get_mut(&it.path) {
                file.text = text;
                return Ok(format!("Replaced the text of {path}."));
            }
            let path = world.files.create(&it.path, File { text, ..File::default() })?;
            Ok(format!("Made {path}."))
        }
    ),
    tool!("files_append", Files, "Adds a line to the end of a file.", Write, |world, it| {
        let line = optional_text("text", &it.text, MOST_TEXT)?;
        let (path, file) = world.files.get_mut(&it.path)?;
        if file.text.chars().count() + line.chars().count() >= MOST_TEXT {
            return Err(format!("`{path}` would be longer than {MOST_TEXT} characters."));
        }
        if !file.text.is_empty() {
            file.text.push('\n');
        }
        file.text += &line;
        Ok(format!("Added a line to {path}."))
    }),
    tool!("files_copy", Files, "Copies a file; the copy is not shared.", Move, |world, it| {
        let (path, file) = world.files.get(&it.path)?;
        let copy = File { text: file.text.clone(), ..File::default() };
        let to = world.files.target(&path, &it.to)?;
        let to = world.files.create(&to, copy)?;
        Ok(format!("Copied {path} to {to}."))
    }),
    tool!("files_move", Files, "Moves or renames a file.", Move, |world, it| {
        let (path, file) = world.files.get(&it.path)?;
        let file = file.clone();
        let to = world.files.target(&path, &it.to)?;
        let to = world.files.create(&to, file)?;
        world.files.files.remove(&path);
        Ok(format!("Moved {path} to {to}."))
    }),
    tool!("files_delete", Files, "Removes a file for good.", One, |world, it| {
        let (path, _) = world.files.get(&it.path)?;
        world.files.files.remove(&path);
        Ok(format!("Removed {path}."))
    }),
    tool!("files_make_folder", Files, "Makes a folder.", InFolder, |world, it| {
        let path = clean(&it.folder)?;
        world.files.folder(folder_of(&path))?;
        if world.files.has_folder(&path) || world.files.files.contains(&path) {
            return Err(format!("`{path}` is there already."));
        }
        world.files.folders.insert(path.clone(), Folder {})?;
        Ok(format!("Made {path}/."))
    }),
    tool!("files_share", Files, "Shares a file with somebody.", Share, |world, it| {
        let email = address(&it.email)?;
        let (path, file) = world.files.get_mut(&it.path)?;
        if file.shared_with.len() >= MOST_SHARED {
            return Err(format!("`{path}` is shared with {MOST_SHARED} already."));
        }
        match file.shared_with.insert(email.clone()) {
            true => Ok(format!("{path} is shared with {email} now.")),
            false => Err(format!("{path} is shared with {email} already.")),
        }
    }),
    tool!("files_unshare", Files, "No longer shares a file with somebody.", Share, |world, it| {
        let email = address(&it.email)?;
        let (path, file) = world.files.get_mut(&it.path)?;
        match file.shared_with.remove(&email) {
            true => Ok(format!("{path} is no longer shared with {email}.")),
            false => Err(format!("{path} is not shared with {email}.")),
        }
    }),
];
