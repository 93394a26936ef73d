//! `GorillaFileSystem`: directories and files.
//!
//! Objects are known by their numbers, as the program knows them by identity: a directory and the table of what it
//! holds are two things, since a moved directory takes over the table of the old one, whose children still call that
//! one their parent; and a copied directory has the same files and directories in it, not copies.

use std::sync::Arc;

use spar_python::signature::Default;
use spar_python::text::{split_lines, words};
use spar_python::{
    Comparison, Dict, Exception, ExceptionKind, Outcome, Value, compare, contains, equal, fixed,
    length, sorted, to_str,
};

use super::method::{Method, error, methods};
use crate::LongContext;

/// CPython gives up on recursion near a thousand calls; directories only nest so deeply in a cycle.
const MAX_NESTING: usize = 900;
/// Directories of a cycle are gone over many times; beyond so many items that is given up.
const MAX_VISITS: usize = 100_000;
/// Nor are longer paths put together.
const MAX_PATH_BYTES: usize = 16 << 20;

/// A file or a directory, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    File(usize),
    Directory(usize),
}

#[derive(Debug, Clone)]
struct File {
    name: Value,
    content: Value,
}

#[derive(Debug, Clone)]
struct Directory {
    name: Value,
    parent: Option<usize>,
    /// The number of the table of what it holds.
    table: usize,
}

/// All objects that there were.
#[derive(Debug, Clone, Default)]
struct Objects {
    files: Vec<File>,
    directories: Vec<Directory>,
    /// Names, and as values the numbers of items: `File` n is 2n, `Directory` n is 2n + 1.
    tables: Vec<Arc<Dict>>,
}

/// The file system.
#[derive(Debug, Clone)]
pub(crate) struct FileSystem {
    objects: Arc<Objects>,
    root: usize,
    current: usize,
    long_context: bool,
}

/// What a search has found so far, and what it has gone over.
struct Found<'a> {
    asked: &'a Value,
    matches: Vec<Value>,
    visits: usize,
    bytes: usize,
}

pub(crate) const METHODS: &[Method<FileSystem>] = methods!(FileSystem, "GorillaFileSystem", {
    pwd() => |fs, _, _| fs.pwd();
    ls(a = Default::Bool(false)) => |fs, _, given| fs.ls(&given[0]);
    cd(folder) => |fs, _, given| fs.cd(&given[0]);
    mkdir(dir_name) => |fs, _, given| fs.mkdir(&given[0]);
    touch(file_name) => |fs, _, given| fs.touch(&given[0]);
    echo(content, file_name = Default::None) => |fs, _, given| fs.echo(&given[0], &given[1]);
    cat(file_name) => |fs, _, given| fs.cat(&given[0]);
    find(path = Default::Str("."), name = Default::None) => |fs, _, given| fs.find(&given[0], &given[1]);
    wc(file_name, mode = Default::Str("l")) => |fs, _, given| fs.wc(&given[0], &given[1]);
    sort(file_name) => |fs, _, given| fs.sort(&given[0]);
    grep(file_name, pattern) => |fs, _, given| fs.grep(&given[0], &given[1]);
    du(human_readable = Default::Bool(false)) => |fs, _, given| fs.du(&given[0]);
    tail(file_name, lines = Default::Int(10)) => |fs, _, given| fs.tail(&given[0], &given[1]);
    diff(file_name1, file_name2) => |fs, _, given| fs.diff(&given[0], &given[1]);
    mv(source, destination) => |fs, _, given| fs.mv(&given[0], &given[1]);
    rm(file_name) => |fs, _, given| fs.rm(&given[0]);
    rmdir(dir_name) => |fs, _, given| fs.rmdir(&given[0]);
    cp(source, destination) => |fs, _, given| fs.cp(&given[0], &given[1]);
});

impl FileSystem {
    /// The file system of a scenario. Only the first name under `root` is used, and is the root's name.
    pub(crate) fn load(scenario: &Dict, long: Option<&LongContext>) -> Outcome<Self> {
        let mut objects = Objects::default();
        let mut root = objects.new_directory(Value::from("/"), None);
        if let Some(given) = scenario.get_str("root") {
            let given = given.as_dict().ok_or_else(|| malformed("root"))?;
            let (name, data) = given.iter().next().ok_or_else(|| malformed("root"))?;
            root = objects.new_directory(name.clone(), None);
            let contents = data.as_dict().and_then(|data| data.get_str("contents"));
            let contents =
                contents.and_then(Value::as_dict).ok_or_else(|| malformed("contents"))?;
            objects.load(contents, root, long, 0)?;
        }
        Ok(Self { objects: Arc::new(objects), root, current: root, long_context: long.is_some() })
    }

    /// The public attributes that differ.
    pub(crate) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let mut differing = Vec::new();
        if self.long_context != other.long_context {
            differing.push("long_context");
        }
        let mut visits = 0;
        if !same_directory((&self.objects, self.root), (&other.objects, other.root), 0, &mut visits)
        {
            differing.push("root");
        }
        differing
    }

    /// The tree, as `{type, name, contents}` and `{type, name, content}`; directories of a cycle end somewhere.
    pub(crate) fn tree(&self) -> Value {
        self.objects.tree(Item::Directory(self.root), 0, &mut 0)
    }

    pub(crate) fn long_context(&self) -> bool {
        self.long_context
    }

    fn table(&self) -> &Dict {
        self.objects.table(self.current)
    }

    fn item(&self, name: &Value) -> Outcome<Option<Item>> {
        self.objects.item(self.current, name)
    }

    fn pwd(&self) -> Outcome<Value> {
        let mut path = Vec::new();
        let mut next = Some(self.current);
        while let Some(at) = next {
            let directory = &self.objects.directories[at];
            path.push(directory.name.clone());
            next = directory.parent;
        }
        path.reverse();
        let path = spar_python::join("/", &Value::list(path))?;
        Ok(Value::record([("current_working_directory", Value::from(format!("/{path}")))]))
    }

    fn ls(&self, all: &Value) -> Outcome<Value> {
        let mut names: Vec<Value> = self.table().keys().cloned().collect();
        if !all.is_true() {
            let mut shown = Vec::with_capacity(names.len());
            for name in names {
                if !text_of(&name, "startswith")?.starts_with('.') {
                    shown.push(name);
                }
            }
            names = shown;
        }
        Ok(Value::record([("current_directory_content", Value::list(names))]))
    }

    fn cd(&mut self, folder: &Value) -> Outcome<Value> {
        let folder = text_of(folder, "rstrip")?.trim_end_matches('/');
        let folder = if folder.is_empty() { "/" } else { folder };
        if !matches!(folder, "." | ".." | "/") && folder.contains('/') {
            return Ok(error(format!(
                "cd: {folder}: Unsupported path. Only one folder level at a time is supported."
            )));
        }
        if folder == ".." {
            if let Some(parent) = self.objects.directories[self.current].parent {
                self.current = parent;
                return Ok(Value::record([]));
            }
            let mut visits = 0;
            let (root, current) = ((&*self.objects, self.root), (&*self.objects, self.current));
            return Ok(error(if same_directory(root, current, 0, &mut visits) {
                "Current directory is already the root. Cannot go back."
            } else {
                "cd: ..: No such directory"
            }));
        }
        match self.navigate(&Value::from(folder))? {
            Ok(target) => {
                self.current = target;
                let name = self.objects.directories[target].name.clone();
                Ok(Value::record([("current_working_directory", name)]))
            }
            Err(told) => Ok(told),
        }
    }

    fn mkdir(&mut self, name: &Value) -> Outcome<Value> {
        if !is_valid_name(name)? {
            let name = to_str(name)?;
            return Ok(error(format!(
                "mkdir: cannot create directory '{name}': Invalid character"
            )));
        }
        if self.table().contains(name)? {
            let name = to_str(name)?;
            return Ok(error(format!("mkdir: cannot create directory '{name}': File exists")));
        }
        self.add_directory(self.current, name)?;
        Ok(Value::None)
    }

    fn touch(&mut self, name: &Value) -> Outcome<Value> {
        if !is_valid_name(name)? {
            return Ok(error(format!(
                "touch: cannot touch '{}': Invalid character",
                to_str(name)?
            )));
        }
        if self.table().contains(name)? {
            return Ok(error(format!("touch: cannot touch '{}': File exists", to_str(name)?)));
        }
        self.add_file(self.current, name, Value::from(""))?;
        Ok(Value::None)
    }

    fn echo(&mut self, content: &Value, name: &Value) -> Outcome<Value> {
        let shown = || Value::record([("terminal_output", content.clone())]);
        if matches!(name, Value::None) {
            return Ok(shown());
        }
        if !is_valid_name(name)? {
            return Ok(error(format!(
                "echo: cannot write to '{}': Invalid character",
                to_str(name)?
            )));
        }
        if !name.is_true() {
            return Ok(shown());
        }
        if !self.table().contains(name)? {
            return Ok(error(format!("echo: cannot write to '{}': No such file", to_str(name)?)));
        }
        match self.item(name)? {
            Some(Item::File(file)) => {
                Arc::make_mut(&mut self.objects).files[file].content = content.clone();
                Ok(Value::None)
            }
            _ => Err(Exception::no_attribute("Directory", "_write")),
        }
    }

    fn cat(&self, name: &Value) -> Outcome<Value> {
        if !is_valid_name(name)? {
            return Ok(error(format!("cat: '{}': Invalid character", to_str(name)?)));
        }
        if !self.table().contains(name)? {
            return Ok(error(format!("cat: '{}': No such file or directory", to_str(name)?)));
        }
        match self.item(name)? {
            Some(Item::File(file)) => {
                Ok(Value::record([("file_content", self.objects.files[file].content.clone())]))
            }
            _ => Ok(error(format!("cat: '{}': Is a directory", to_str(name)?))),
        }
    }

    fn find(&self, path: &Value, name: &Value) -> Outcome<Value> {
        let target = match self.navigate(path)? {
            Ok(target) => target,
            Err(told) => {
                let words = told.as_dict().and_then(|told| told.get_str("error"));
                let words = words.and_then(Value::as_str).unwrap_or_default();
                return Ok(error(words.replacen("cd:", "find:", 1)));
            }
        };
        let base = text_of(path, "rstrip")?.trim_end_matches('/').to_owned();
        let mut found = Found { asked: name, matches: Vec::new(), visits: 0, bytes: 0 };
        self.search(target, &base, 0, &mut found)?;
        Ok(Value::record([("matches", Value::list(found.matches))]))
    }

    fn search(
        &self,
        directory: usize,
        base: &str,
        depth: usize,
        found: &mut Found<'_>,
    ) -> Outcome<()> {
        for (name, item) in self.objects.entries(directory) {
            found.visits += 1;
            if depth > MAX_NESTING || found.visits > MAX_VISITS {
                return Err(recursion());
            }
            let path = format!("{base}/{}", to_str(name)?);
            found.bytes += path.len();
            if found.bytes > MAX_PATH_BYTES {
                return Err(Exception::refused(format_args!(
                    "paths of more than {MAX_PATH_BYTES} bytes are not found here"
                )));
            }
            if matches!(found.asked, Value::None) || contains(name, found.asked)? {
                found.matches.push(Value::from(path.as_str()));
            }
            if let Item::Directory(inner) = item {
                self.search(inner, &path, depth + 1, found)?;
            }
        }
        Ok(())
    }

    /// The content of a file in the current directory, by its name.
    fn content(&self, name: &Value) -> Outcome<Option<&Value>> {
        if !self.table().contains(name)? {
            return Ok(None);
        }
        Ok(match self.item(name)? {
            Some(Item::File(file)) => Some(&self.objects.files[file].content),
            _ => None,
        })
    }

    fn wc(&self, name: &Value, mode: &Value) -> Outcome<Value> {
        let Some(mode @ ("l" | "w" | "c")) = mode.as_str() else {
            return Ok(error(format!("wc: invalid mode '{}'", to_str(mode)?)));
        };
        let Some(content) = self.content(name)? else {
            return Ok(error(format!("wc: {}: No such file or directory", to_str(name)?)));
        };
        let (count, what) = match mode {
            "l" => (split_lines(text_of(content, "splitlines")?).len(), "lines"),
            "w" => (words(text_of(content, "split")?).count(), "words"),
            _ => (length(content)?, "characters"),
        };
        Ok(Value::record([("count", Value::from(count)), ("type", Value::from(what))]))
    }

    fn sort(&self, name: &Value) -> Outcome<Value> {
        let Some(content) = self.content(name)? else {
            return Ok(error(format!("sort: {}: No such file or directory", to_str(name)?)));
        };
        let lines = split_lines(text_of(content, "splitlines")?);
        let lines = sorted(lines.into_iter().map(Value::from).collect())?;
        let joined = spar_python::join("\n", &Value::list(lines))?;
        Ok(Value::record([("sorted_content", Value::from(joined))]))
    }

    fn grep(&self, name: &Value, pattern: &Value) -> Outcome<Value> {
        let Some(content) = self.content(name)? else {
            return Ok(error(format!("grep: {}: No such file or directory", to_str(name)?)));
        };
        let mut matching = Vec::new();
        for line in split_lines(text_of(content, "splitlines")?) {
            let line = Value::from(line);
            if contains(&line, pattern)? {
                matching.push(line);
            }
        }
        Ok(Value::record([("matching_lines", Value::list(matching))]))
    }

    fn du(&self, human_readable: &Value) -> Outcome<Value> {
        let mut visits = 0;
        let total = self.objects.size(Item::Directory(self.current), 0, &mut visits)?;
        let size = if human_readable.is_true() {
            let mut left = total as f64;
            let units = ["B", "KB", "MB", "GB", "TB"];
            let unit = units.into_iter().find(|_| {
                let fits = left < 1024.0;
                if !fits {
                    left /= 1024.0;
                }
                fits
            });
            format!("{} {}", fixed(left, 2), unit.unwrap_or("PB"))
        } else {
            format!("{total} bytes")
        };
        Ok(Value::record([("disk_usage", Value::from(size))]))
    }

    fn tail(&self, name: &Value, lines: &Value) -> Outcome<Value> {
        let Some(content) = self.content(name)? else {
            return Ok(error(format!("tail: {}: No such file or directory", to_str(name)?)));
        };
        let all = split_lines(text_of(content, "splitlines")?);
        let count = Value::from(all.len());
        let lines = if compare(Comparison::Greater, lines, &count)? { &count } else { lines };
        let start = spar_python::negate(lines)?;
        let last = Value::list(all.into_iter().map(Value::from));
        let last = spar_python::slice(&last, &start, &Value::None)?;
        let joined = spar_python::join("\n", &last)?;
        Ok(Value::record([("last_lines", Value::from(joined))]))
    }

    fn diff(&self, one: &Value, other: &Value) -> Outcome<Value> {
        // Both names are asked for before either content is.
        let (first, second) = match self.table().contains(one)? && self.table().contains(other)? {
            true => (self.content(one)?, self.content(other)?),
            false => (None, None),
        };
        let (Some(first), Some(second)) = (first, second) else {
            return Ok(error(format!(
                "diff: {} or {}: No such file or directory",
                to_str(one)?,
                to_str(other)?
            )));
        };
        let first = split_lines(text_of(first, "splitlines")?);
        let second = split_lines(text_of(second, "splitlines")?);
        let lines: Vec<String> = first
            .into_iter()
            .zip(second)
            .filter(|(one, other)| one != other)
            .map(|(one, other)| format!("- {one}\n+ {other}"))
            .collect();
        Ok(Value::record([("diff_lines", Value::from(lines.join("\n")))]))
    }

    fn mv(&mut self, source: &Value, destination: &Value) -> Outcome<Value> {
        if !self.table().contains(source)? {
            return Ok(error(format!(
                "mv: cannot move '{}': No such file or directory",
                to_str(source)?
            )));
        }
        let Some(item) = self.item(source)? else { return Err(recursion()) };
        if contains(destination, &Value::from("/"))? {
            return Ok(error(
                "mv: path not allowed in destination. Provide only a file or directory name.",
            ));
        }
        let (from, to) = (to_str(source)?, to_str(destination));
        if !self.table().contains(destination)? {
            let table = self.objects.directories[self.current].table;
            Arc::make_mut(&mut self.objects).table_mut(table).remove(source)?;
            self.put(self.current, destination, item, false)?;
            return Ok(result(format!("'{from}' moved to '{}'", to?)));
        }
        let to = to?;
        let Some(Item::Directory(target)) = self.item(destination)? else {
            return Ok(error(format!("mv: cannot move '{from}' to '{to}': Not a directory")));
        };
        if self.objects.table(target).contains(&Value::from(from.as_str()))? {
            return Ok(error(format!("mv: cannot move '{from}' to '{to}/{from}': File exists")));
        }
        let table = self.objects.directories[self.current].table;
        Arc::make_mut(&mut self.objects).table_mut(table).remove(source)?;
        self.put(target, source, item, false)?;
        Ok(result(format!("'{from}' moved to '{to}/{from}'")))
    }

    fn rm(&mut self, name: &Value) -> Outcome<Value> {
        if !self.table().contains(name)? {
            return Ok(error(format!(
                "rm: cannot remove '{}': No such file or directory",
                to_str(name)?
            )));
        }
        self.remove(name)?;
        Ok(result(format!("'{}' removed", to_str(name)?)))
    }

    fn rmdir(&mut self, name: &Value) -> Outcome<Value> {
        let told = |words: &str| -> Outcome<Value> {
            Ok(error(format!("rmdir: cannot remove '{}': {words}", to_str(name)?)))
        };
        if !self.table().contains(name)? {
            return told("No such file or directory");
        }
        let Some(Item::Directory(directory)) = self.item(name)? else {
            return told("Not a directory");
        };
        if !self.objects.table(directory).is_empty() {
            return told("Directory not empty");
        }
        self.remove(name)?;
        Ok(result(format!("'{}' removed", to_str(name)?)))
    }

    fn cp(&mut self, source: &Value, destination: &Value) -> Outcome<Value> {
        if !self.table().contains(source)? {
            return Ok(error(format!(
                "cp: cannot copy '{}': No such file or directory",
                to_str(source)?
            )));
        }
        let Some(item) = self.item(source)? else { return Err(recursion()) };
        if contains(destination, &Value::from("/"))? {
            return Ok(error(
                "cp: path not allowed in destination. Provide only a file or directory name.",
            ));
        }
        let (from, to) = (to_str(source)?, to_str(destination));
        if !self.table().contains(destination)? {
            self.put(self.current, destination, item, true)?;
            return Ok(result(format!("'{from}' copied to '{}'", to?)));
        }
        let to = to?;
        let Some(Item::Directory(target)) = self.item(destination)? else {
            return Ok(error(format!("cp: cannot copy '{from}' to '{to}': Not a directory")));
        };
        // The program looks for a name with a slash, which nothing has, and raises where the name is there.
        self.put(target, source, item, true)?;
        Ok(result(format!("'{from}' copied to '{to}/{from}'")))
    }

    /// Puts an item under a name: a new file of the same content, or a new directory over the table of the old one, or
    /// over a copy of it.
    fn put(&mut self, into: usize, name: &Value, item: Item, copies: bool) -> Outcome<()> {
        match item {
            Item::File(file) => {
                let content = self.objects.files[file].content.clone();
                self.add_file(into, name, content)
            }
            Item::Directory(directory) => {
                let new = self.add_directory(into, name)?;
                let objects = Arc::make_mut(&mut self.objects);
                let mut table = objects.directories[directory].table;
                if copies {
                    let copy = Arc::clone(&objects.tables[table]);
                    table = objects.tables.len();
                    objects.tables.push(copy);
                }
                objects.directories[new].table = table;
                Ok(())
            }
        }
    }

    fn remove(&mut self, name: &Value) -> Outcome<()> {
        let table = self.objects.directories[self.current].table;
        Arc::make_mut(&mut self.objects).table_mut(table).remove(name)?;
        Ok(())
    }

    fn add_file(&mut self, into: usize, name: &Value, content: Value) -> Outcome<()> {
        self.check_absent(into, name, "File")?;
        Arc::make_mut(&mut self.objects).add_file(into, name.clone(), content)
    }

    fn add_directory(&mut self, into: usize, name: &Value) -> Outcome<usize> {
        self.check_absent(into, name, "Directory")?;
        let objects = Arc::make_mut(&mut self.objects);
        let new = objects.new_directory(name.clone(), Some(into));
        objects.insert(into, name.clone(), Item::Directory(new))?;
        Ok(new)
    }

    fn check_absent(&self, into: usize, name: &Value, what: &str) -> Outcome<()> {
        if self.objects.table(into).contains(name)? {
            let (name, directory) = (to_str(name)?, to_str(&self.objects.directories[into].name)?);
            return Err(Exception::value_error(format_args!(
                "{what} '{name}' already exists in directory '{directory}'."
            )));
        }
        Ok(())
    }

    /// The directory at a path, or what is told when there is none.
    fn navigate(&self, path: &Value) -> Outcome<Result<usize, Value>> {
        if matches!(path, Value::None) || path.as_str() == Some(".") {
            return Ok(Ok(self.current));
        }
        if path.as_str() == Some("/") {
            return Ok(Ok(self.root));
        }
        let text = text_of(path, "strip")?;
        let mut at = if text.starts_with('/') { self.root } else { self.current };
        for name in text.trim_matches('/').split('/') {
            match self.objects.item(at, &Value::from(name))? {
                Some(Item::Directory(inner)) => at = inner,
                _ => return Ok(Err(error(format!("cd: '{text}': No such file or directory")))),
            }
        }
        Ok(Ok(at))
    }
}

impl Objects {
    fn new_directory(&mut self, name: Value, parent: Option<usize>) -> usize {
        self.tables.push(Arc::default());
        self.directories.push(Directory { name, parent, table: self.tables.len() - 1 });
        self.directories.len() - 1
    }

    fn table(&self, directory: usize) -> &Dict {
        &self.tables[self.directories[directory].table]
    }

    fn table_mut(&mut self, table: usize) -> &mut Dict {
        Arc::make_mut(&mut self.tables[table])
    }

    fn insert(&mut self, into: usize, name: Value, item: Item) -> Outcome<()> {
        let number = match item {
            Item::File(file) => 2 * file,
            Item::Directory(directory) => 2 * directory + 1,
        };
        let table = self.directories[into].table;
        self.table_mut(table).insert(name, Value::from(number))
    }

    fn add_file(&mut self, into: usize, name: Value, content: Value) -> Outcome<()> {
        self.files.push(File { name: name.clone(), content });
        self.insert(into, name, Item::File(self.files.len() - 1))
    }

    fn item(&self, directory: usize, name: &Value) -> Outcome<Option<Item>> {
        if name.as_str() == Some(".") {
            return Ok(Some(Item::Directory(directory)));
        }
        Ok(self.table(directory).get(name)?.map(item_of))
    }

    fn entries(&self, directory: usize) -> impl Iterator<Item = (&Value, Item)> {
        self.table(directory).iter().map(|(name, number)| (name, item_of(number)))
    }

    fn load(
        &mut self,
        contents: &Dict,
        into: usize,
        long: Option<&LongContext>,
        depth: usize,
    ) -> Outcome<()> {
        if depth > MAX_NESTING {
            return Err(recursion());
        }
        let mut is_bottommost = true;
        for (name, data) in contents.iter() {
            let data = data.as_dict().ok_or_else(|| malformed("contents"))?;
            match data.get_str("type").and_then(Value::as_str) {
                Some("directory") => {
                    is_bottommost = false;
                    let inner = self.new_directory(name.clone(), Some(into));
                    let contents = data.get_str("contents").and_then(Value::as_dict);
                    self.load(
                        contents.ok_or_else(|| malformed("contents"))?,
                        inner,
                        long,
                        depth + 1,
                    )?;
                    self.insert(into, name.clone(), Item::Directory(inner))?;
                }
                Some("file") => {
                    let mut content =
                        data.get_str("content").cloned().ok_or_else(|| malformed("content"))?;
                    if let Some(long) = long
                        && !long.files_tail_used.iter().any(|used| equal(used, name))
                    {
                        content = Value::from(to_str(&content)? + &long.file_content);
                    }
                    self.add_file(into, name.clone(), content)?;
                }
                _ => {}
            }
        }
        if let Some(long) = long.filter(|_| is_bottommost) {
            for name in &long.populate_files {
                if self.table(into).contains(name)? {
                    return Err(Exception::value_error(format_args!(
                        "File '{}' already exists in directory '{}'.",
                        to_str(name)?,
                        to_str(&self.directories[into].name)?
                    )));
                }
                self.add_file(into, name.clone(), Value::from(""))?;
            }
        }
        Ok(())
    }

    fn size(&self, item: Item, depth: usize, visits: &mut usize) -> Outcome<usize> {
        *visits += 1;
        if depth > MAX_NESTING || *visits > MAX_VISITS {
            return Err(recursion());
        }
        match item {
            Item::File(file) => Ok(text_of(&self.files[file].content, "encode")?.len()),
            Item::Directory(directory) => self
                .entries(directory)
                .try_fold(0, |total, (_, item)| Ok(total + self.size(item, depth + 1, visits)?)),
        }
    }

    fn tree(&self, item: Item, depth: usize, visits: &mut usize) -> Value {
        *visits += 1;
        let (kind, name, part, inner) = match item {
            Item::File(file) => {
                let File { name, content } = &self.files[file];
                ("file", name, "content", content.clone())
            }
            Item::Directory(directory) => {
                let mut contents = Dict::default();
                if depth < 64 && *visits < MAX_VISITS {
                    for (name, item) in self.entries(directory) {
                        let _ = contents.insert(name.clone(), self.tree(item, depth + 1, visits));
                    }
                }
                let name = &self.directories[directory].name;
                ("directory", name, "contents", Value::Dict(contents.into()))
            }
        };
        Value::record([("type", Value::from(kind)), ("name", name.clone()), (part, inner)])
    }
}

fn item_of(number: &Value) -> Item {
    let number = number.as_i64().and_then(|number| usize::try_from(number).ok());
    let number = number.expect("tables hold numbers of items");
    if number.is_multiple_of(2) { Item::File(number / 2) } else { Item::Directory(number / 2) }
}

/// Directories are equal when their names are and what they hold is, whatever the order.
fn same_directory(
    (one, at): (&Objects, usize),
    (other, there): (&Objects, usize),
    depth: usize,
    visits: &mut usize,
) -> bool {
    *visits += 1;
    if depth > MAX_NESTING || *visits > MAX_VISITS {
        return false;
    }
    if std::ptr::eq(one, other) && at == there {
        return true;
    }
    let (first, second) = (one.table(at), other.table(there));
    if !equal(&one.directories[at].name, &other.directories[there].name)
        || first.len() != second.len()
    {
        return false;
    }
    first.iter().all(|(name, number)| {
        let Ok(Some(counterpart)) = second.get(name) else { return false };
        match (item_of(number), item_of(counterpart)) {
            (Item::File(a), Item::File(b)) => {
                let (a, b) = (&one.files[a], &other.files[b]);
                equal(&a.name, &b.name) && equal(&a.content, &b.content)
            }
            (Item::Directory(a), Item::Directory(b)) => {
                same_directory((one, a), (other, b), depth + 1, visits)
            }
            _ => false,
        }
    })
}

fn result(text: String) -> Value {
    Value::record([("result", Value::from(text))])
}

fn is_valid_name(name: &Value) -> Outcome<bool> {
    for mark in ["|", "/", "\\", "?", "%", "*", ":", "\"", ">", "<"] {
        if contains(name, &Value::from(mark))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The text on which a method is called.
pub(crate) fn text_of<'v>(value: &'v Value, method: &str) -> Outcome<&'v str> {
    value.as_str().ok_or_else(|| Exception::no_attribute(value.type_name(), method))
}

fn recursion() -> Exception {
    Exception::new(ExceptionKind::Recursion, "maximum recursion depth exceeded")
}

fn malformed(what: &str) -> Exception {
    Exception::refused(format_args!("the scenario's `{what}` is not as a file system has it"))
}
