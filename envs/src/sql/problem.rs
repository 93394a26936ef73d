//! What a task asks, and its database.

use serde::Deserialize;
use spar_sql::{Database, Descriptions, DomainSet, Level, Rule, generate, read_descriptions};
use spar_tasks::{SqlTask, Task};

use super::environment::{NAME, told};
use crate::EnvironmentError;

/// Bytes of tables that are shown at a time.
const MOST_SCHEMA: usize = 12_000;

/// A question about a database.
#[derive(Debug)]
pub(super) struct Problem {
    /// The task's id.
    pub(super) task: String,
    pub(super) question: String,
    pub(super) evidence: Option<String>,
    pub(super) gold: String,
    /// At least one; the first is asked.
    pub(super) databases: Vec<Database>,
    pub(super) rule: Rule,
    pub(super) shows_schema: bool,
    pub(super) tags: Vec<String>,
    descriptions: Descriptions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    seed: u64,
    #[serde(default)]
    level: Level,
    #[serde(default)]
    domains: DomainSet,
    #[serde(default)]
    shows_schema: bool,
}

impl Problem {
    pub(super) fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        if task.parameters.get("seed").is_some() {
            let Generated { seed, level, domains, shows_schema } =
                Generated::deserialize(&task.parameters)
                    .map_err(|error| refuse(error.to_string()))?;
            let drawn =
                generate(seed, level, domains).map_err(|error| refuse(error.to_string()))?;
            let level = match drawn.level {
                Level::Easy => "easy",
                Level::Medium => "medium",
                Level::Hard | Level::Mixed => "hard",
            };
            let tags = [level, drawn.form, drawn.database.domain].map(str::to_owned).to_vec();
            return Ok(Self {
                task: task.id.clone(),
                question: drawn.question,
                evidence: None,
                gold: drawn.gold,
                databases: drawn.database.all(),
                rule: Rule::default(),
                shows_schema,
                tags,
                descriptions: Descriptions::new(),
            });
        }
        let written =
            SqlTask::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if written.databases.is_empty() {
            return Err(refuse("`databases` names no file".to_owned()));
        }
        let open = |path: &std::path::PathBuf| Database::open_shared(path);
        let databases: Result<Vec<Database>, _> = written.databases.iter().map(open).collect();
        let databases = databases.map_err(|error| refuse(error.to_string()))?;
        let descriptions = match &written.descriptions {
            Some(folder) => read_descriptions(folder).map_err(|error| refuse(error.to_string()))?,
            None => Descriptions::new(),
        };
        Ok(Self {
            task: task.id.clone(),
            question: written.question,
            evidence: written.evidence.filter(|text| !text.trim().is_empty()),
            gold: written.gold,
            databases,
            rule: written.rule,
            shows_schema: written.shows_schema,
            tags: Vec::new(),
            descriptions,
        })
    }

    /// What is shown at first.
    pub(super) fn words(&self) -> Result<String, EnvironmentError> {
        let mut words = format!("Question: {}", self.question);
        if let Some(evidence) = &self.evidence {
            words.push_str(&format!("\nHint: {evidence}"));
        }
        if self.shows_schema {
            let tables = self.schema(None).map_err(|detail| EnvironmentError::Parameters {
                task: self.task.clone(),
                environment: NAME,
                detail,
            })?;
            words.push_str(&format!("\nTables:\n{tables}"));
        }
        Ok(words)
    }

    /// The tables, or one of them whole. An error is for the policy.
    pub(super) fn schema(&self, table: Option<&str>) -> Result<String, String> {
        shown_schema(&self.databases[0], &self.descriptions, table)
    }
}

/// The tables of a database, or one of them whole. An error is for the policy.
pub(super) fn shown_schema(
    database: &Database,
    descriptions: &Descriptions,
    table: Option<&str>,
) -> Result<String, String> {
    let schema = database.schema().map_err(|error| told(&error))?;
    let Some(name) = table else {
        return Ok(schema.to_text(MOST_SCHEMA));
    };
    let Some(table) = schema.table(name.trim()) else {
        let known: Vec<&str> = schema.tables.iter().map(|table| &*table.name).collect();
        let name: String = name.chars().take(64).collect();
        let known: String = known.join(", ").chars().take(1_000).collect();
        return Err(format!("There is no table `{name}`, only {known}."));
    };
    let mut text = table.to_lines(descriptions);
    if text.len() > MOST_SCHEMA {
        let end = (0..=MOST_SCHEMA).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
    }
    Ok(text)
}
