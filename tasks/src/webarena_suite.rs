//! The suite of a file of WebArena's tasks.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Suite, SuiteError, SuiteManifest, Task};

const INSTRUCTION: &str = "You work in a web browser. Do what the first message asks for. Elements stand with a number in brackets, by which \
                           actions name them. Answer every message with one action, such as click('13') or fill('15', 'some text'). When \
                           you are done, or have the answer, say so by send_msg_to_user('the answer').";
/// The most actions of an episode, WebArena's.
const MAX_TURNS: u32 = 30;
/// Bytes of a file that are looked at to tell what it is.
const HEAD: u64 = 1 << 16;
/// The folder beside a file whose pages its tasks are on.
const PAGES: &str = "www";
/// The file beside it that tells of an application whose pages its tasks are on, and the application's folder where it names none.
const SERVED: &str = "serve.toml";
const APPLICATION: &str = "app";

/// Tasks in WebArena's form (`test.raw.json`): a `.json` file with a list of them, or with one, as the split `test`.
///
/// They are on the sites that ship (`http://forum.test`, `http://shop.test`, `http://map.test`), or, where a folder `www` lies beside the file, on
/// its pages (`http://site.test`), or, where a `serve.toml` does, on those of the application that it tells of: `command`, `port`, `folder` (default `app`,
/// beside it), and what else the environment `site` knows of `serve`. What cannot be played or judged is told when the task is opened.
#[derive(Debug)]
pub struct WebArenaSuite {
    manifest: SuiteManifest,
    tasks: Vec<Value>,
    pages: Option<PathBuf>,
    served: Option<Value>,
}

impl WebArenaSuite {
    /// Whether a path is a file of such tasks, by the words that every one of them has in its beginning.
    pub(crate) fn is_at(path: &Path) -> bool {
        let head = || {
            let mut head = Vec::new();
            std::fs::File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
            Some(String::from_utf8_lossy(&head).into_owned())
        };
        path.extension().is_some_and(|end| end == "json")
            && path.is_file()
            && head().is_some_and(|head| {
                ["\"intent\"", "\"start_url\""].iter().all(|it| head.contains(it))
            })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] where it cannot be read, or is no list of tasks.
    pub fn open(path: &Path) -> Result<Self, SuiteError> {
        let io = |source| SuiteError::Io { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(io)?;
        let read: Value = serde_json::from_str(&text).map_err(|error| io(error.into()))?;
        let tasks = match read {
            Value::Array(tasks) => tasks,
            one => vec![one],
        };
        let is_task = |task: &Value| task.get("eval").is_some() && task.get("intent").is_some();
        if tasks.is_empty() || !tasks.iter().all(is_task) {
            let what = "tasks of WebArena, each with an `intent` and `eval`";
            return Err(SuiteError::EmptyData { path: path.to_owned(), what });
        }
        let pages = path.with_file_name(PAGES);
        let pages = pages.is_dir().then(|| pages.canonicalize()).transpose().map_err(io)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        let served = served(&path.with_file_name(SERVED), &mut hasher)?;
        if let (Some(pages), Some(_)) = (&pages, &served) {
            let detail =
                format!("`{}` and `{SERVED}` lie beside it, it takes one of them", pages.display());
            return Err(SuiteError::Task {
                path: path.to_owned(),
                place: "the file".to_owned(),
                detail,
            });
        }
        let manifest = SuiteManifest {
            name: "webarena".to_owned(),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: vec![("test".to_owned(), tasks.len())],
        };
        Ok(Self { manifest, tasks, pages, served })
    }
}

impl Suite for WebArenaSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "Tasks in WebArena's form, from the user's own file."
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let mut parameters = json!({ "task": self.tasks[index] });
        if let Some(pages) = &self.pages {
            parameters["folder"] = pages.to_string_lossy().into();
        }
        if let Some(served) = &self.served {
            parameters["serve"] = served.clone();
        }
        Ok(Task {
            id: format!("webarena/{split}/{index}"),
            environment: "site".to_owned(),
            parameters,
            instruction: INSTRUCTION.to_owned(),
            max_turns: MAX_TURNS,
            tags: Vec::new(),
            graders: Vec::new(),
        })
    }
}

/// What a `serve.toml` tells, with the whole path of its folder; absent where there is none.
fn served(path: &Path, hasher: &mut blake3::Hasher) -> Result<Option<Value>, SuiteError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SuiteError::Io { path: path.to_owned(), source }),
    };
    hasher.update(text.as_bytes());
    let refuse = |detail: String| SuiteError::Task {
        path: path.to_owned(),
        place: "the file".to_owned(),
        detail,
    };
    let mut read: Value = toml::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    let folder = match read.get("folder") {
        None => APPLICATION.to_owned(),
        Some(Value::String(folder)) => folder.clone(),
        Some(other) => return Err(refuse(format!("`folder` is {other}, must be a path"))),
    };
    let folder = path.with_file_name(folder);
    let folder = folder.canonicalize().map_err(|source| SuiteError::Io { path: folder, source })?;
    read["folder"] = folder.to_string_lossy().into();
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_with_the_pages_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let task = r#"{"task_id": 1, "intent": "i", "start_url": "http://site.test/", "eval": {"eval_types": []}}"#;
        std::fs::write(&path, format!("[{task}, {task}]")).unwrap();
        assert!(WebArenaSuite::is_at(&path));
        let suite = WebArenaSuite::open(&path).unwrap();
        assert_eq!(suite.len("test").unwrap(), 2);
        let first = suite.task("test", 0).unwrap();
        assert!(first.parameters.get("folder").is_none());
        assert_eq!(first.parameters["task"]["intent"], "i");
        std::fs::create_dir(folder.path().join("www")).unwrap();
        let suite = WebArenaSuite::open(&path).unwrap();
        assert!(suite.task("test", 1).unwrap().parameters["folder"].is_string());
        let before = suite.manifest().content_hash.clone();
        std::fs::write(
            folder.path().join("serve.toml"),
            "command = 'python3 app.py'\nport = 8000\n",
        )
        .unwrap();
        assert!(WebArenaSuite::open(&path).is_err(), "there is no folder `app`");
        std::fs::create_dir(folder.path().join("app")).unwrap();
        let told = WebArenaSuite::open(&path).unwrap_err().to_string();
        assert!(told.contains("takes one of them"), "{told}");
        std::fs::remove_dir(folder.path().join("www")).unwrap();
        let suite = WebArenaSuite::open(&path).unwrap();
        let parameters = suite.task("test", 1).unwrap().parameters;
        assert_eq!(parameters["serve"]["port"], 8000);
        assert!(parameters["serve"]["folder"].as_str().unwrap().ends_with("/app"));
        assert_ne!(suite.manifest().content_hash, before);
        for wrong in ["[]", "[{\"intent\": \"\\\"start_url\\\"\"}]", "{", "7"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(WebArenaSuite::open(&path).is_err(), "{wrong}");
        }
    }
}
