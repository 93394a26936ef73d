//! Entries of the leaderboard.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{BfclError, Class, documents};

/// Functions that come at a turn, by the turn.
pub type LaterFunctions = BTreeMap<usize, Vec<Json>>;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMessage {
    /// Who says it: `user` or `system`.
    pub role: String,
    /// What.
    pub content: String,
}

/// An entry of the multi-turn half.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiTurnEntry {
    /// Its name.
    pub id: String,
    /// The messages of each turn; none where functions come back that were withheld.
    pub question: Vec<Vec<EntryMessage>>,
    /// How the classes begin.
    pub initial_config: Json,
    /// The classes.
    pub involved_classes: Vec<String>,
    /// The gold calls of each turn.
    pub ground_truth: Vec<Vec<String>>,
    /// Functions that are withheld until a turn, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missed_function: BTreeMap<String, Vec<String>>,
    /// The folder with the descriptions of functions, of one `.json` or `.jsonl` file for each class; absent: own ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<PathBuf>,
    /// The file with the texts of long contexts, where the entry has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_context: Option<PathBuf>,
}

/// An entry of a single-turn category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleTurnEntry {
    /// Its name.
    pub id: String,
    /// The category.
    pub category: String,
    /// The messages of its only turn.
    pub question: Vec<Vec<EntryMessage>>,
    /// Descriptions of the functions.
    pub function: Vec<Json>,
    /// The possible answers; none in categories of relevance.
    #[serde(default)]
    pub possible_answer: Json,
}

impl MultiTurnEntry {
    /// The classes.
    ///
    /// # Errors
    ///
    /// [`BfclError::UnknownClass`] for a name that there is not.
    pub fn classes(&self) -> Result<Vec<Class>, BfclError> {
        self.involved_classes.iter().map(|name| name.parse()).collect()
    }

    /// The functions that are there from the beginning, and those that come at a turn, with what is said of their language.
    ///
    /// # Errors
    ///
    /// [`BfclError`] when a description cannot be read.
    pub fn functions(&self) -> Result<(Vec<Json>, LaterFunctions), BfclError> {
        let mut functions = Vec::new();
        for class in self.classes()? {
            functions.extend(match &self.documents {
                Some(folder) => read_documents(folder, class)?,
                None => documents::of_class(class),
            });
        }
        let mut later = LaterFunctions::new();
        for (turn, names) in &self.missed_function {
            let turn = turn.parse().map_err(|_| BfclError::Malformed {
                what: self.id.clone(),
                detail: format!("`{turn}` is no turn"),
            })?;
            for name in names {
                let place = functions.iter().position(|function| function["name"] == **name);
                if let Some(place) = place {
                    later.entry(turn).or_default().push(functions.remove(place));
                }
            }
        }
        let told = |function: &Json| crate::in_language(function, crate::Language::Python);
        let later = later
            .into_iter()
            .map(|(turn, functions)| (turn, functions.iter().map(told).collect()))
            .collect();
        Ok((functions.iter().map(told).collect(), later))
    }
}

fn read_documents(folder: &Path, class: Class) -> Result<Vec<Json>, BfclError> {
    let path = [".json", ".jsonl"]
        .map(|ending| folder.join(format!("{}{ending}", class.document())))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_else(|| folder.join(class.document()));
    let text = std::fs::read_to_string(&path)
        .map_err(|source| BfclError::Read { path: path.clone(), source })?;
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            serde_json::from_str(line).map_err(|error| BfclError::Malformed {
                what: path.display().to_string(),
                detail: error.to_string(),
            })
        })
        .collect()
}
