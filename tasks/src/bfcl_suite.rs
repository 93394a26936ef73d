//! The suite of the public release of the Berkeley Function-Calling Leaderboard.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Suite, SuiteError, SuiteManifest, Task};

/// What the names of its files begin with.
const PREFIX: &str = "BFCL_v4_";
/// Categories that this program does not play.
const LEFT_OUT: [&str; 3] = ["memory", "web_search", "format_sensitivity"];
const INSTRUCTION: &str =
    "Answer what the user asks by calls of the functions. An answer without a call ends the turn.";

/// The files of a release as they are: `BFCL_v4_<category>.json` of one JSON object on every line, with those of the
/// possible answers in `possible_answer/` and the descriptions of functions in `multi_turn_func_doc/`.
///
/// Every category is a split. For long contexts `long_context.py` of the release is looked for in the folder and where the
/// release has it, or `long_context.json` in the folder. Its tasks are for evaluation alone.
#[derive(Debug)]
pub struct BfclSuite {
    manifest: SuiteManifest,
    splits: BTreeMap<String, Category>,
    documents: PathBuf,
    long_context: Option<PathBuf>,
}

#[derive(Debug)]
struct Category {
    path: PathBuf,
    /// One entry on each.
    lines: Vec<String>,
    /// Where the entry of an id stands among them.
    places: HashMap<String, usize>,
    /// Answers by the id of their entry.
    answers: HashMap<String, Value>,
}

impl BfclSuite {
    /// Whether there is a file of a release in a folder.
    pub(crate) fn is_at(folder: &Path) -> bool {
        files(folder).is_ok_and(|files| !files.is_empty())
    }

    /// Reads the release in a folder.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a file cannot be read, is not as the release has it, or there are none.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let mut hasher = blake3::Hasher::new();
        let mut splits = BTreeMap::new();
        for (category, path) in files(folder)? {
            let text = read(&path)?;
            hasher.update(category.as_bytes());
            hasher.update(text.as_bytes());
            let lines: Vec<String> =
                text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
            let places = places(&path, &lines)?;
            let answer_path =
                folder.join("possible_answer").join(format!("{PREFIX}{category}.json"));
            let mut answers = HashMap::new();
            if answer_path.exists() {
                let text = read(&answer_path)?;
                hasher.update(text.as_bytes());
                for (at, line) in
                    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
                {
                    let answer = parse(&answer_path, at, line)?;
                    let id = answer["id"].as_str().unwrap_or_default().to_owned();
                    answers.insert(id, answer["ground_truth"].clone());
                }
            } else if !category.contains("relevance") {
                let what = "the possible answers of every category but those of relevance";
                return Err(SuiteError::EmptyData { path: answer_path, what });
            }
            splits.insert(category, Category { path, lines, places, answers });
        }
        if splits.is_empty() {
            let what = "a `BFCL_v4_<category>.json`";
            return Err(SuiteError::EmptyData { path: folder.to_owned(), what });
        }
        let of_release = "../eval_checker/multi_turn_eval/func_source_code/long_context.py";
        let long_context = ["long_context.py", "long_context.json", of_release]
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists());
        let manifest = SuiteManifest {
            name: "bfcl-v4".to_owned(),
            version: "4".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: splits
                .iter()
                .map(|(name, category): (&String, &Category)| (name.clone(), category.lines.len()))
                .collect(),
        };
        let documents = folder.join("multi_turn_func_doc");
        Ok(Self { manifest, splits, documents, long_context })
    }
}

impl Suite for BfclSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "The Berkeley Function-Calling Leaderboard, from the files of its release."
    }

    fn is_for_evaluation(&self) -> bool {
        true
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let category = &self.splits[split];
        let entry = parse(&category.path, index, &category.lines[index])?;
        let id = entry["id"].as_str().unwrap_or_default();
        let answer = category.answers.get(id).cloned().unwrap_or(Value::Null);
        let is_multi_turn = split.starts_with("multi_turn");
        let mut parameters = if is_multi_turn {
            json!({
                "kind": "multi_turn",
                "id": id,
                "question": entry["question"],
                "initial_config": entry["initial_config"],
                "involved_classes": entry["involved_classes"],
                "ground_truth": answer,
                "documents": self.documents,
            })
        } else {
            json!({
                "kind": "single_turn",
                "id": id,
                "category": split,
                "question": entry["question"],
                "function": entry["function"],
                "possible_answer": answer,
            })
        };
        if let Some(missed) = entry.get("missed_function") {
            parameters["missed_function"] = missed.clone();
        }
        if split.contains("long_context") {
            let path = self.long_context.as_ref().ok_or_else(|| SuiteError::Task {
                path: category.path.clone(),
                place: format!("line {}", index + 1),
                detail: "it needs `long_context.py` of the release beside the data".to_owned(),
            })?;
            parameters["long_context"] = json!(path);
        }
        // A turn has 20 steps, one that is too many, and the answer that ends it.
        let turns = entry["question"].as_array().map_or(1, Vec::len);
        let max_turns = if is_multi_turn { turns as u32 * 22 } else { 1 };
        Ok(Task {
            id: format!("bfcl-v4/{split}/{id}"),
            environment: "bfcl".to_owned(),
            parameters,
            instruction: INSTRUCTION.to_owned(),
            max_turns,
            tags: vec![split.to_owned()],
            graders: Vec::new(),
        })
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let place = id.strip_prefix("bfcl-v4/").and_then(|rest| {
            let (split, key) = rest.split_once('/')?;
            Some((split, *self.splits.get(split)?.places.get(key)?))
        });
        let unknown =
            || SuiteError::UnknownTask { suite: self.manifest.name.clone(), id: id.to_owned() };
        let (split, index) = place.ok_or_else(unknown)?;
        self.task(split, index)
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        let entry: Value = serde_json::from_str(&self.splits[split].lines[index]).ok()?;
        let classes = entry["involved_classes"].as_array()?;
        let names: Vec<&str> = classes.iter().filter_map(Value::as_str).collect();
        Some(names.join("+"))
    }
}

/// Where the entry of every id stands.
fn places(path: &Path, lines: &[String]) -> Result<HashMap<String, usize>, SuiteError> {
    let mut places = HashMap::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let refuse = |detail: String| SuiteError::Task {
            path: path.to_owned(),
            place: format!("line {}", at + 1),
            detail,
        };
        let entry = parse(path, at, line)?;
        let id = entry["id"].as_str().ok_or_else(|| refuse("`id` must be a text".to_owned()))?;
        if let Some(other) = places.insert(id.to_owned(), at) {
            return Err(refuse(format!("line {} has the id `{id}` as well", other + 1)));
        }
    }
    Ok(places)
}

/// The files of the categories that are played.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, SuiteError> {
    let fail = |source| SuiteError::Io { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let category = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".json"));
        if let Some(category) = category.filter(|category| !LEFT_OUT.contains(category)) {
            found.push((category.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, SuiteError> {
    std::fs::read_to_string(path).map_err(|source| SuiteError::Io { path: path.to_owned(), source })
}

fn parse(path: &Path, at: usize, line: &str) -> Result<Value, SuiteError> {
    serde_json::from_str(line).map_err(|error| SuiteError::Task {
        path: path.to_owned(),
        place: format!("line {}", at + 1),
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_release_are_tasks() {
        let folder = std::env::temp_dir().join(format!("spar-bfcl-suite-{}", std::process::id()));
        let answers = folder.join("possible_answer");
        std::fs::create_dir_all(&answers).unwrap();
        let entry = json!({
            "id": "multi_turn_base_0", "question": [[{"role": "user", "content": "Log out."}]],
            "initial_config": {"TicketAPI": {"current_user": "ann"}}, "involved_classes": ["TicketAPI"],
            "path": ["TicketAPI.logout"],
        });
        std::fs::write(folder.join("BFCL_v4_multi_turn_base.json"), format!("{entry}\n")).unwrap();
        let answer = json!({"id": "multi_turn_base_0", "ground_truth": [["logout()"]]});
        let path = answers.join("BFCL_v4_multi_turn_base.json");
        std::fs::write(&path, format!("{answer}\n")).unwrap();
        assert!(BfclSuite::is_at(&folder));
        let suite = BfclSuite::open(&folder).unwrap();
        assert_eq!(suite.manifest().splits, [("multi_turn_base".to_owned(), 1)]);
        let task = suite.task("multi_turn_base", 0).unwrap();
        assert_eq!(task.parameters["ground_truth"], json!([["logout()"]]));
        assert_eq!(task.max_turns, 22);
        assert_eq!(suite.stratum("multi_turn_base", 0).as_deref(), Some("TicketAPI"));
        assert_eq!(suite.task_by_id("bfcl-v4/multi_turn_base/multi_turn_base_0").unwrap(), task);
        assert_eq!(task.id, "bfcl-v4/multi_turn_base/multi_turn_base_0");
        for unknown in ["bfcl-v4/multi_turn_base/0", "bfcl-v4/multi_turn_base_0", "bfcl-v4/a/0"] {
            let told = suite.task_by_id(unknown);
            assert!(matches!(told, Err(SuiteError::UnknownTask { .. })), "{unknown}");
        }
        let entries = folder.join("BFCL_v4_multi_turn_base.json");
        std::fs::write(&entries, format!("{entry}\n{entry}\n")).unwrap();
        let told = BfclSuite::open(&folder).unwrap_err().to_string();
        assert!(told.contains("line 2") && told.contains("as well"), "{told}");
        std::fs::write(&entries, format!("{entry}\n")).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(BfclSuite::open(&folder).is_err(), "answers have to be there");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
