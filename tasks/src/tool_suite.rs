//! Suites of tasks for tools, in files, with the servers that they name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::graders::GraderConfig;
use crate::lines::{self, Line};
use crate::suite_file::{SplitFile, SuiteFile, check_graders};
use crate::{Suite, SuiteError, SuiteManifest, Task};

const INSTRUCTION: &str =
    "Do what the first message asks for, by calls of tools. Then call `answer` with the answer.";
/// Turns of a task that names none.
const TURNS: u32 = 16;
/// The file that names servers.
const SERVERS: &str = "mcp.json";
/// Sets of tools, the first tasks of which are tried out before others are played.
const MOST_FIRSTS: usize = 64;
/// Bytes of a file that a server is started from, which goes into the hash of the suite.
const MOST_PROGRAM: u64 = 64 << 20;

/// Tasks for tools from the `.jsonl` files that a folder's `suite.toml` names, with `environment` `toolbox` or `mcp`.
///
/// ```json
/// {"id": "sum", "prompt": "What is 6 * 7?", "answer": 42, "tools": ["calculator"]}
/// ```
///
/// `id`, `tags`, `graders`, `instruction` and `max_turns` are the task's; all else are parameters of the environment. An
/// `mcp.json` beside the `suite.toml` names servers, as other programs have it (`mcpServers`): their tools are offered by every
/// task, beside those that it names. They work in the suite's folder; files that tools name (`corpus`, `database`, `module`) are looked for in it
/// first, and then where `spar` runs.
#[derive(Debug)]
pub struct ToolSuite {
    folder: PathBuf,
    file: SuiteFile,
    manifest: SuiteManifest,
    splits: BTreeMap<String, ToolTasks>,
    /// The servers, as `tools` of tasks name them.
    servers: Vec<Value>,
}

/// The tasks of a split.
#[derive(Debug)]
struct ToolTasks {
    path: PathBuf,
    /// First bytes of their lines.
    starts: Vec<u64>,
    by_id: HashMap<String, usize>,
    /// The first task of every set of tools, by index.
    firsts: Vec<usize>,
}

/// A line as it is written.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    graders: Vec<GraderConfig>,
    #[serde(default)]
    instruction: Option<String>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(flatten)]
    parameters: Map<String, Value>,
}

/// What names servers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServersFile {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, WrittenServer>,
}

/// A server as it is written: `command` with `args`, or `url`; all else as the tool `mcp` has it.
#[derive(Debug, Deserialize)]
struct WrittenServer {
    /// Other programs keep servers that are not to be started, and say so here.
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    /// Other programs name the transport here; the URL tells it.
    #[serde(default, rename = "type")]
    _kind: Option<String>,
    #[serde(flatten)]
    options: Map<String, Value>,
}

impl ToolSuite {
    /// The environments of its tasks.
    pub const ENVIRONMENTS: [&str; 2] = ["toolbox", "mcp"];

    /// Opens the suite of a folder.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read or a line of it is wrong.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let file = SuiteFile::open(folder, &mut hasher)?;
        let servers = read_servers(folder, &mut hasher)?;
        let (mut splits, mut sizes) = (BTreeMap::new(), Vec::new());
        for (name, SplitFile { tasks }) in &file.splits {
            let tasks = ToolTasks::read(folder.join(tasks), &mut hasher)?;
            sizes.push((name.clone(), tasks.starts.len()));
            splits.insert(name.clone(), tasks);
        }
        let manifest = SuiteManifest {
            name: file.name.clone(),
            version: file.version.clone(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes,
        };
        Ok(Self { folder: folder.to_owned(), file, manifest, splits, servers })
    }
}

/// The servers of a folder, as tools of tasks; none where it has no file of them.
fn read_servers(folder: &Path, hasher: &mut blake3::Hasher) -> Result<Vec<Value>, SuiteError> {
    let path = folder.join(SERVERS);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| SuiteError::Io { path: path.clone(), source })?,
    };
    hasher.update(text.as_bytes());
    let refuse =
        |place: String, detail: String| SuiteError::Task { path: path.clone(), place, detail };
    let ServersFile { servers } = serde_json::from_str(&text)
        .map_err(|error| refuse("`mcpServers`".to_owned(), error.to_string()))?;
    let home = folder.canonicalize();
    let home = home.map_err(|source| SuiteError::Io { path: folder.to_owned(), source })?;
    let tool = |(name, server): (String, WrittenServer)| {
        let WrittenServer { command, args, options, .. } = server;
        let is_reached = options.contains_key("url");
        if command.is_some() == is_reached {
            let detail = "name a `command` or a `url`, one of them".to_owned();
            return Err(refuse(format!("server `{name}`"), detail));
        }
        let mut tool = json!({ "tool": "mcp", "name": name });
        let fields = tool.as_object_mut().expect("it is an object");
        if let Some(command) = command {
            for part in args.iter().chain([&command]) {
                hash_program(&home, part, hasher);
            }
            let command: Vec<String> = std::iter::once(command).chain(args).collect();
            fields.insert("command".to_owned(), command.into());
            fields.insert("folder".to_owned(), home.to_string_lossy().into());
        }
        fields.extend(options);
        Ok(tool)
    };
    servers.into_iter().filter(|(_, server)| !server.disabled).map(tool).collect()
}

/// Options of tools that name files. A relative one is looked for in the folder of the suite first, then where `spar` runs.
const FILES: [&str; 3] = ["corpus", "database", "module"];

/// A tool as a task names it, the files of the suite's folder that it names with their whole path.
fn with_files(mut tool: Value, folder: &Path) -> Value {
    for name in FILES {
        if let Some(Value::String(file)) = tool.get_mut(name)
            && Path::new(file).is_relative()
            && let Ok(found) = folder.join(&*file).canonicalize()
        {
            *file = found.to_string_lossy().into_owned();
        }
    }
    tool
}

/// Takes a file of the suite that a command names into its hash.
fn hash_program(folder: &Path, part: &str, hasher: &mut blake3::Hasher) {
    let path = folder.join(part);
    let is_file = std::fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= MOST_PROGRAM);
    if Path::new(part).is_relative()
        && is_file
        && let Ok(bytes) = std::fs::read(&path)
    {
        hasher.update(part.as_bytes()).update(&bytes);
    }
}

impl ToolTasks {
    fn read(path: PathBuf, hasher: &mut blake3::Hasher) -> Result<Self, SuiteError> {
        let (mut starts, mut by_id) = (Vec::new(), HashMap::new());
        let (mut firsts, mut seen) = (Vec::new(), HashSet::new());
        lines::read(&path, hasher, |line| {
            let written = parse(&line, &path)?;
            if firsts.len() < MOST_FIRSTS && seen.insert(tool_names(&written)) {
                firsts.push(starts.len());
            }
            if let Some(id) = written.id
                && let Some(other) = by_id.insert(id.clone(), starts.len())
            {
                let detail = format!("task {other}, from 0, has the id `{id}` as well");
                return Err(line.refuse(&path, detail));
            }
            starts.push(line.start);
            Ok(())
        })?;
        Ok(Self { path, starts, by_id, firsts })
    }
}

/// The names of the tools that a task offers, and of the options that they are given.
fn tool_names(written: &Written) -> Vec<String> {
    let tools = written.parameters.get("tools").and_then(Value::as_array);
    let mut names: Vec<String> = tools
        .into_iter()
        .flatten()
        .map(|tool| match tool {
            Value::Object(options) => {
                let name = options.get("tool").and_then(Value::as_str).unwrap_or_default();
                let options: Vec<&str> = options.keys().map(String::as_str).collect();
                format!("{name} {}", options.join(" "))
            }
            name => name.as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn parse(line: &Line<'_>, path: &Path) -> Result<Written, SuiteError> {
    let written: Written = line.parse(path)?;
    let mut problems = Vec::new();
    let prompt = written.parameters.get("prompt").and_then(Value::as_str).unwrap_or_default();
    if prompt.trim().is_empty() {
        problems.push("`prompt` is empty".to_owned());
    }
    if let Some(id) = &written.id
        && (id.is_empty()
            || id.chars().any(|c| c.is_whitespace() || c.is_control())
            || id.bytes().all(|byte| byte.is_ascii_digit()))
    {
        problems.push(format!("`id` is {id:?}, must be a word and no number"));
    }
    if written.max_turns == Some(0) {
        problems.push("`max_turns` is 0, must be at least 1".to_owned());
    }
    if !written.parameters.get("tools").is_none_or(Value::is_array) {
        problems.push("`tools` is to be a list".to_owned());
    }
    if let Err(error) = check_graders(&written.graders, path) {
        problems.push(error.to_string());
    }
    if problems.is_empty() { Ok(written) } else { Err(line.refuse(path, problems.join("; "))) }
}

impl Suite for ToolSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        &self.file.about
    }

    fn is_for_evaluation(&self) -> bool {
        self.file.evaluation_only
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let ToolTasks { path, starts, .. } = &self.splits[split];
        let written = lines::read_at(path, starts[index], |line| parse(line, path))?;
        let Written { id, tags: own_tags, graders, instruction, max_turns, mut parameters } =
            written;
        let mut tools = match parameters.shift_remove("tools") {
            Some(Value::Array(tools)) => {
                tools.into_iter().map(|tool| with_files(tool, &self.folder)).collect()
            }
            _ => Vec::new(),
        };
        tools.extend(self.servers.iter().cloned());
        parameters.insert("tools".to_owned(), tools.into());
        let mut tags = self.file.tags.clone();
        tags.extend(own_tags);
        let instruction = instruction.or_else(|| self.file.instruction.clone());
        let key = id.unwrap_or_else(|| index.to_string());
        Ok(Task {
            id: format!("{}/{split}/{key}", self.file.name),
            environment: self.file.environment.clone(),
            parameters: parameters.into(),
            instruction: instruction.unwrap_or_else(|| INSTRUCTION.to_owned()),
            max_turns: max_turns.or(self.file.max_turns).unwrap_or(TURNS),
            tags,
            graders: if graders.is_empty() { self.file.graders.clone() } else { graders },
        })
    }

    fn firsts(&self, split: &str) -> Vec<usize> {
        self.splits.get(split).map(|tasks| tasks.firsts.clone()).unwrap_or_default()
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let find = || {
            let rest = id.strip_prefix(self.file.name.as_str())?.strip_prefix('/')?;
            let (split, key) = rest.rsplit_once('/')?;
            let tasks = self.splits.get(split)?;
            let index = tasks.by_id.get(key).copied().or_else(|| key.parse().ok())?;
            self.task(split, index).ok().filter(|task| task.id == id)
        };
        find().ok_or_else(|| SuiteError::UnknownTask {
            suite: self.manifest.name.clone(),
            id: id.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SUITE: &str = "name = 'errands'\nversion = '1'\nabout = 'Errands.'\nenvironment = 'mcp'\nmax_turns = 5\n\
                         [splits.test]\ntasks = 'test.jsonl'\n";
    const SERVERS_JSON: &str = r#"{"mcpServers": {
        "files": {"command": "python3", "args": ["server.py"], "env": {"A": "b"}},
        "web": {"type": "http", "url": "https://example.org/mcp", "secret_headers": {"Authorization": "TOKEN"}}
    }}"#;

    fn suite(lines: &str, servers: &str) -> Result<(tempfile::TempDir, ToolSuite), SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("suite.toml"), SUITE).unwrap();
        fs::write(folder.path().join("test.jsonl"), lines).unwrap();
        fs::write(folder.path().join("server.py"), "pass").unwrap();
        fs::write(folder.path().join("mcp.json"), servers).unwrap();
        ToolSuite::open(folder.path()).map(|suite| (folder, suite))
    }

    #[test]
    fn tasks_have_their_own_tools_and_those_of_the_servers() {
        let lines = concat!(
            r#"{"prompt": "a?", "answer": "b"}"#,
            "\n",
            r#"{"id": "two", "prompt": "c?", "tools": ["calculator"], "max_turns": 2, "tags": ["t"], "instruction": "Go."}"#,
        );
        let (folder, suite) = suite(lines, SERVERS_JSON).unwrap();
        let [one, two] = [0, 1].map(|index| suite.task("test", index).unwrap());
        assert_eq!(
            (one.id.as_str(), one.max_turns, one.environment.as_str()),
            ("errands/test/0", 5, "mcp")
        );
        assert_eq!(
            (two.max_turns, two.instruction.as_str(), &*two.tags),
            (2, "Go.", &["t".to_owned()][..])
        );
        let home = folder.path().canonicalize().unwrap();
        let files = json!({
            "tool": "mcp", "name": "files", "command": ["python3", "server.py"], "folder": home, "env": { "A": "b" },
        });
        let web = json!({
            "tool": "mcp", "name": "web", "url": "https://example.org/mcp", "secret_headers": { "Authorization": "TOKEN" },
        });
        assert_eq!(one.parameters["tools"], json!([files, web]));
        assert_eq!(two.parameters["tools"], json!(["calculator", files, web]));
        assert_eq!(two.parameters["prompt"], "c?");
        assert_eq!(suite.firsts("test"), [0, 1], "each has tools of its own");
        for task in [one, two] {
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        }
        let hash = suite.manifest().content_hash.clone();
        fs::write(folder.path().join("server.py"), "exit()").unwrap();
        assert_ne!(ToolSuite::open(folder.path()).unwrap().manifest().content_hash, hash);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |lines: &str, servers: &str| suite(lines, servers).unwrap_err().to_string();
        let wrong = told(r#"{"prompt": "", "id": "7", "max_turns": 0, "tools": 1}"#, SERVERS_JSON);
        for part in ["line 1", "`prompt`", "`id`", "`max_turns`", "`tools`"] {
            assert!(wrong.contains(part), "{wrong}");
        }
        let off = r#"{"mcpServers": {"a": {"command": "b", "disabled": true}}}"#;
        let (_folder, none) = suite("{\"prompt\": \"?\"}", off).unwrap();
        assert_eq!(none.task("test", 0).unwrap().parameters["tools"], json!([]));
        let both = r#"{"mcpServers": {"a": {"command": "b", "url": "c"}}}"#;
        assert!(told("", both).contains("server `a`"));
        assert!(told("", r#"{"servers": {}}"#).contains("mcp.json"));
    }

    #[test]
    fn files_that_tools_name_are_those_of_the_suites_folder() {
        let lines = r#"{"prompt": "?", "tools": [{"tool": "search", "corpus": "server.py"}, {"tool": "search", "corpus": "none"}, "notes"]}"#;
        let (folder, suite) = suite(lines, r#"{"mcpServers": {}}"#).unwrap();
        let tools = suite.task("test", 0).unwrap().parameters["tools"].clone();
        let file = folder.path().canonicalize().unwrap().join("server.py");
        assert_eq!((&tools[0]["corpus"], &tools[1]["corpus"]), (&json!(file), &json!("none")));
        assert_eq!(tools[2], "notes");
    }
}
