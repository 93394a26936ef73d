//! Questions over a corpus: what finds documents, and how answers are judged.
//!
//! ```text
//!  corpus.jsonl ─┐                                        ┌─ squad (EM, F1)
//!  paragraphs ───┼─▶ SearchIndex ─┐                       │
//!  World ────────┘  (BM25)        ├─▶ Retriever ─▶ Hits ──┼─ search_r1 (tags, information)
//!  server ─▶ RetrievalClient ─────┘     ▲                 └─ wire (/retrieve)
//!                                    Corpora (open ones, shared)
//!  files of questions ─▶ QuestionFile ─▶ QuestionRecord
//! ```
//!
//! Nothing here knows an episode: queries go in, documents and verdicts come out.
//!
//! ```
//! use spar_search::{Document, SearchIndex, squad};
//!
//! let corpus = vec![
//!     Document::from_contents("0", "Anna Weber\nAnna Weber was born in Graz."),
//!     Document::from_contents("1", "Graz\nGraz is a town on the Mur."),
//! ];
//! let index = SearchIndex::in_memory(corpus)?;
//! let found = index.search("where was Anna Weber born", 1)?;
//! assert_eq!(found[0].document.title, "Anna Weber");
//! assert!(squad::exact_match("the Graz.", ["Graz"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
pub mod corpus;
mod document;
mod error;
mod index_folder;
pub mod questions;
mod retriever;
mod search_index;
pub mod search_r1;
pub mod squad;
pub mod wire;
pub mod world;

pub use client::{RetrievalClient, RetrievalConfig};
pub use document::{Document, listing};
pub use error::{CorpusError, FieldError, IndexError, SearchError};
pub use index_folder::IndexFolder;
pub use retriever::{Corpora, CorpusSource, MAX_IN_MEMORY_BYTES, Retriever, RetrieverError};
pub use search_index::{Hit, MAX_QUERY_BYTES, MAX_RESULTS, SearchIndex};
