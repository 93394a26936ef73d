//! Search over a corpus.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, OptionSet, Row};
use spar_core::{ToolCall, ToolSpec};
use spar_search::{Corpora, CorpusSource, IndexFolder, Retriever, listing};

use super::tool::too_slow;
use super::{NamedTool, Tool, ToolError, ToolOutput, ToolRow, read_arguments, spec_of};
use crate::EnvironmentError;

const NAME: &str = "search";

pub(super) const ROW: ToolRow = Row {
    name: NAME,
    about: "Finds documents of a corpus by their words.",
    source: "BM25, Robertson and Zaragoza 2009; retrieval servers as Search-R1's, arXiv 2503.09516",
    formula: "sum_w idf(w) f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|)), k1 = 1.2, b = 0.75",
    options: OptionSet::of::<SearchOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        // There is none without a corpus.
        specs: Vec::new,
        open: |given, place| {
            let options: SearchOptions = given.read()?;
            if options.corpus.is_none() && options.server.is_none() {
                return Err(EnvironmentError::Parameters {
                    task: place.task.to_owned(),
                    environment: "toolbox",
                    detail: "tool `search` needs a `corpus` or a `server`".to_owned(),
                });
            }
            let corpora = place.resources.corpora.clone();
            Ok(Box::new(SearchTool {
                specs: [spec_of::<SearchCall>(NAME)].into(),
                source: options.source(),
                options,
                corpora,
                retriever: None,
            }))
        },
    },
};

/// Options of the tool `search`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SearchOptions {
    /// A file with a document on every line, `id` with `contents`, or with `title` and `text`. Default absent; this or `server` is
    /// needed.
    corpus: Option<PathBuf>,
    /// The address of a retrieval server with Search-R1's interface. Default absent.
    server: Option<String>,
    /// Documents that a search shows, 1 to 100. Default 3.
    results: usize,
    /// Characters of a document's text that are shown; at least 1. Default 4000.
    max_chars: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { corpus: None, server: None, results: 3, max_chars: 4000 }
    }
}

impl NamedOptions for SearchOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.corpus.is_some() && self.server.is_some() {
            problems.push("corpus and server exclude each other".to_owned());
        }
        if !(1..=100).contains(&self.results) {
            problems.push(format!("results is {}, must be 1 to 100", self.results));
        }
        if self.max_chars == 0 {
            problems.push("max_chars is 0, must be at least 1".to_owned());
        }
        problems
    }
}

impl SearchOptions {
    fn source(&self) -> CorpusSource {
        match (&self.corpus, &self.server) {
            (Some(path), _) => CorpusSource::File(path.clone()),
            (None, server) => CorpusSource::Server(server.clone().unwrap_or_default()),
        }
    }
}

/// Finds documents by their words, the best first.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchCall {
    /// What to search for: words.
    query: String,
}

#[derive(Debug, Clone)]
struct SearchTool {
    specs: Arc<[ToolSpec]>,
    options: SearchOptions,
    source: CorpusSource,
    corpora: Corpora,
    retriever: Option<Retriever>,
}

#[async_trait]
impl Tool for SearchTool {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        if self.retriever.is_none() {
            let (corpora, source) = (self.corpora.clone(), self.source.clone());
            let open = move || corpora.open(&source, &IndexFolder::of_user());
            let opened = tokio::task::spawn_blocking(open).await;
            let opened = opened.expect("opening a corpus does not panic");
            self.retriever = Some(opened.map_err(EnvironmentError::Corpus)?);
        }
        Ok(())
    }

    async fn call(&mut self, call: &ToolCall, limit: Duration) -> Result<ToolOutput, ToolError> {
        let SearchCall { query } = read_arguments(&self.specs[0], call)?;
        self.prepare().await?;
        let retriever = self.retriever.as_ref().expect("it was prepared");
        let search = retriever.search(&query, self.options.results);
        let found = tokio::time::timeout(limit, search).await;
        match found.map_err(|_| too_slow(&call.name, limit))? {
            Ok(hits) if hits.is_empty() => Ok("Nothing was found.".into()),
            Ok(hits) => {
                let documents = hits.iter().map(|hit| &*hit.document);
                Ok(listing(documents, self.options.max_chars).trim_end().into())
            }
            Err(error) if error.is_about_query() => Err(format!("Could not {error}.").into()),
            Err(error) => Err(EnvironmentError::Search(error).into()),
        }
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Tool>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spar_core::Seed;

    use super::*;
    use crate::Resources;
    use crate::tools::{ToolChoice, ToolPlace};

    const LIMIT: Duration = Duration::from_secs(5);

    fn refusal(options: Value) -> String {
        open(options).map(|_| ()).unwrap_err()
    }

    fn open(options: Value) -> Result<Box<dyn Tool>, String> {
        let resources = Resources::default();
        let place = ToolPlace { task: "test", seed: Seed::from_u64(1), resources: &resources };
        let mut choice = ToolChoice::named(NAME);
        choice.options = serde_json::from_value(options).unwrap();
        choice.open(&place).map_err(|error| error.to_string())
    }

    async fn search(tool: &mut dyn Tool, query: Value) -> Result<String, ToolError> {
        let arguments = [("query".to_owned(), query)].into_iter().collect();
        Ok(tool.call(&ToolCall::new(NAME, arguments), LIMIT).await?.text)
    }

    #[tokio::test]
    async fn a_file_of_documents_is_searched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        let lines = "{\"id\": 1, \"title\": \"Graz\", \"text\": \"A town.\"}\n{\"id\": 2, \"title\": \"Mur\", \"text\": \"A river.\"}\n";
        std::fs::write(&path, lines).unwrap();
        let mut tool = open(json!({ "corpus": path, "results": 1 })).unwrap();
        tool.specs()[0].validate().unwrap();
        assert_eq!(
            search(&mut *tool, json!("graz town")).await.unwrap(),
            "Doc 1(Title: Graz) A town."
        );
        assert_eq!(search(&mut *tool, json!("zebra")).await.unwrap(), "Nothing was found.");
        let mut fork = tool.fork().await.unwrap().unwrap();
        assert!(search(&mut *fork, json!("river")).await.unwrap().contains("Mur"));
        for hostile in [json!(null), json!(7), json!(["a"]), json!("a ".repeat(5000))] {
            let told = search(&mut *tool, hostile).await.unwrap_err();
            assert!(matches!(told, ToolError::Told(_)), "{told}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_searched_is_refused_or_fails() {
        assert!(refusal(json!({})).contains("needs a `corpus` or a `server`"));
        let both = json!({ "corpus": "a", "server": "b" });
        assert!(refusal(both).contains("corpus and server exclude each other"));
        let told = refusal(json!({ "corpus": "a", "results": 0, "max_chars": 0 }));
        assert!(told.contains("max_chars is 0") && told.contains("results is 0"), "{told}");
        let mut tool = open(json!({ "corpus": "/no/such/file" })).unwrap();
        let failed = search(&mut *tool, json!("a")).await.unwrap_err();
        assert!(matches!(failed, ToolError::Failed(EnvironmentError::Corpus(_))), "{failed}");
    }
}
