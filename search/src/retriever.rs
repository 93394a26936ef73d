//! Whatever finds documents.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::corpus::CorpusReader;
use crate::questions::read_paragraphs;
use crate::world::{World, WorldSpec};
use crate::{
    CorpusError, Hit, IndexError, IndexFolder, RetrievalClient, RetrievalConfig, SearchError,
    SearchIndex,
};

/// Whatever finds documents. Clones share it.
#[derive(Debug, Clone)]
pub enum Retriever {
    /// An index in this process.
    Index(SearchIndex),
    /// A server that is asked.
    Server(RetrievalClient),
}

impl Retriever {
    /// The `k` documents that fit a query best, the best first.
    ///
    /// # Errors
    ///
    /// [`SearchError`]; of a query that is wrong itself it [says so](SearchError::is_about_query).
    pub async fn search(&self, query: &str, k: usize) -> Result<Vec<Hit>, SearchError> {
        match self {
            Self::Index(index) => index.search(query, k),
            Self::Server(client) => {
                // What no index of ours takes is nothing to ask another with.
                if query.len() > crate::MAX_QUERY_BYTES {
                    let (bytes, limit) = (query.len(), crate::MAX_QUERY_BYTES);
                    return Err(SearchError::QueryTooLong { bytes, limit });
                }
                client.search(query, k).await
            }
        }
    }
}

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CorpusSource {
    /// A file with a document on every line.
    File(PathBuf),
    /// The paragraphs that stand beside the questions of a file, each once.
    Paragraphs(PathBuf),
    /// A server at this address, with Search-R1's interface.
    Server(String),
    /// An invented world.
    World(WorldSpec),
}

/// Corpora of larger files are indexed on disk: 32 MiB.
pub const MAX_IN_MEMORY_BYTES: u64 = 32 << 20;
/// The most indexes that are kept open.
const MAX_OPEN: usize = 96;

/// Corpora that are open, so that episodes share their indexes. Clones share them.
///
/// At most 96 are kept; the one that was asked for longest ago goes first, and goes on for who still has it.
#[derive(Debug, Clone, Default)]
pub struct Corpora {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    /// By what they are of.
    slots: HashMap<String, Slot>,
    /// Counts what was asked for.
    asked: u64,
}

#[derive(Debug, Default)]
struct Slot {
    /// Held while it is made, so that it is made once.
    index: Arc<Mutex<Option<SearchIndex>>>,
    asked: u64,
}

impl Corpora {
    /// What finds the documents of a source.
    ///
    /// Indexing a file takes as long as reading it, at the first call; larger files are indexed in `folder`.
    ///
    /// # Errors
    ///
    /// [`RetrieverError`] when the source cannot be used.
    pub fn open(
        &self,
        source: &CorpusSource,
        folder: &IndexFolder,
    ) -> Result<Retriever, RetrieverError> {
        let index = match source {
            CorpusSource::Server(url) => {
                let client = RetrievalClient::new(url, RetrievalConfig::default())?;
                return Ok(Retriever::Server(client));
            }
            CorpusSource::World(spec) => self.world(spec)?,
            CorpusSource::File(path) => {
                self.shared(file_key("file", path)?, || open_file(path, folder))?
            }
            CorpusSource::Paragraphs(path) => self.shared(file_key("paragraphs", path)?, || {
                SearchIndex::in_memory(read_paragraphs(path)?)
            })?,
        };
        Ok(Retriever::Index(index))
    }

    /// The index of an invented world.
    ///
    /// # Errors
    ///
    /// [`IndexError`] when it could not be built.
    pub fn world(&self, spec: &WorldSpec) -> Result<SearchIndex, IndexError> {
        self.shared(format!("{spec:?}"), || {
            SearchIndex::in_memory(World::shared(spec).documents.clone())
        })
    }

    fn shared(
        &self,
        key: String,
        make: impl FnOnce() -> Result<SearchIndex, IndexError>,
    ) -> Result<SearchIndex, IndexError> {
        let slot = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.asked += 1;
            let asked = open.asked;
            if !open.slots.contains_key(&key) && open.slots.len() >= MAX_OPEN {
                let oldest = open.slots.iter().min_by_key(|(_, slot)| slot.asked);
                let oldest = oldest.map(|(key, _)| key.clone());
                oldest.map(|key| open.slots.remove(&key));
            }
            let slot = open.slots.entry(key).or_default();
            slot.asked = asked;
            Arc::clone(&slot.index)
        };
        let mut index = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*index {
            return Ok(index.clone());
        }
        Ok(index.insert(make()?).clone())
    }
}

/// What tells a file apart from others, and from what it was before it changed.
fn file_key(kind: &str, path: &Path) -> Result<String, IndexError> {
    let fail = |source| CorpusError::Io { path: path.to_owned(), source };
    let found = std::fs::metadata(path).map_err(fail)?;
    let modified = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(format!("{kind} {} {} {modified:?}", path.display(), found.len()))
}

fn open_file(path: &Path, folder: &IndexFolder) -> Result<SearchIndex, IndexError> {
    let len = std::fs::metadata(path)
        .map_err(|source| CorpusError::Io { path: path.to_owned(), source })?
        .len();
    if len > MAX_IN_MEMORY_BYTES {
        return folder.open(path);
    }
    let documents = CorpusReader::open(path)?.collect::<Result<Vec<_>, _>>()?;
    match documents.is_empty() {
        true => Err(CorpusError::Empty { path: path.to_owned() }.into()),
        false => SearchIndex::in_memory(documents),
    }
}

/// Nothing that finds documents can be had of a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetrieverError {
    /// Its index cannot be had.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its server cannot be asked.
    #[error(transparent)]
    Server(#[from] SearchError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corpus_is_indexed_once_and_again_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.jsonl");
        std::fs::write(&path, "{\"id\": 1, \"contents\": \"A\\none\"}\n").unwrap();
        let (corpora, indexes) = (Corpora::default(), IndexFolder::new(folder.path().join("x")));
        let source = CorpusSource::File(path.clone());
        let count = || match corpora.open(&source, &indexes).unwrap() {
            Retriever::Index(index) => index.len(),
            Retriever::Server(_) => panic!("it is a file"),
        };
        assert_eq!((count(), count()), (1, 1));
        assert_eq!(corpora.open.lock().unwrap().slots.len(), 1);
        let two =
            "{\"id\": 1, \"contents\": \"A\\none\"}\n{\"id\": 2, \"contents\": \"B\\ntwo\"}\n";
        std::fs::write(&path, two).unwrap();
        assert_eq!(count(), 2);
        std::fs::write(&path, "").unwrap();
        assert!(corpora.open(&source, &indexes).unwrap_err().to_string().contains("it is empty"));
        assert!(corpora.open(&CorpusSource::Server("x".to_owned()), &indexes).is_err());
        assert!(corpora.open(&CorpusSource::File("/no/such".into()), &indexes).is_err());
    }

    #[test]
    fn as_many_indexes_stay_open_as_there_may_be() {
        let corpora = Corpora::default();
        for n in 0..MAX_OPEN + 20 {
            let empty = || SearchIndex::in_memory(Vec::new());
            corpora.shared(n.to_string(), empty).unwrap();
            corpora.shared("first".to_owned(), empty).unwrap();
        }
        let open = corpora.open.lock().unwrap();
        assert_eq!(open.slots.len(), MAX_OPEN);
        assert!(open.slots.contains_key("first"), "it was asked for all the time");
    }
}
