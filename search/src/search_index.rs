//! An index of documents by their words.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::tokenizer::{
    LowerCaser, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, TokenizerManager,
};
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::{Document, IndexError, SearchError};

/// The most bytes that a query may have.
pub const MAX_QUERY_BYTES: usize = 4096;
/// The most documents that can be asked for at a time.
pub const MAX_RESULTS: usize = 1000;
/// Longer words than these bytes are not indexed, and not searched for.
const MAX_WORD_BYTES: usize = 40;
const TOKENIZER: &str = "words";
pub(crate) const PLACE: &str = "place";
/// What the one segment of an index in memory begins with.
const MEMORY_BUDGET_BYTES: usize = 1 << 20;

/// A document that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The document.
    pub document: Arc<Document>,
    /// How well it fits the query: its BM25 score, positive.
    pub score: f32,
}

/// Documents, found by their words: BM25 over title and text together.
///
/// `score(d, q) = sum_{w in q} n_q(w) idf(w) f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|))`, with `f` how often the word `w` is
/// in `d`, `idf(w) = ln(1 + (N - N_w + 0.5) / (N_w + 0.5))`, `k1 = 1.2`, `b = 0.75`, and lengths rounded to one byte, as Lucene has
/// it. Words are runs of letters and digits in small letters, with no stemming and no stop words (Pyserini's default has both).
///
/// Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; computed by tantivy.
///
/// A query is words and nothing else: no sign in it means anything. Equal scores stand in the order of the documents, so
/// that equal queries have equal results. Clones share the index.
#[derive(Clone)]
pub struct SearchIndex {
    searcher: Searcher,
    contents: Field,
    analyzer: TextAnalyzer,
    documents: Documents,
}

/// Where documents are.
#[derive(Clone)]
enum Documents {
    InMemory(Arc<[Arc<Document>]>),
    /// In the index.
    Stored(StoredFields),
}

/// The fields of an index on disk.
#[derive(Clone, Copy)]
pub(crate) struct StoredFields {
    /// The document's place in its corpus, from 0.
    pub(crate) place: Field,
    pub(crate) id: Field,
    pub(crate) title: Field,
    pub(crate) text: Field,
}

impl SearchIndex {
    /// Indexes documents in memory.
    ///
    /// # Errors
    ///
    /// [`IndexError::Engine`] when it could not be built.
    pub fn in_memory(documents: Vec<Document>) -> Result<Self, IndexError> {
        let failed = IndexError::engine("index documents in memory");
        let (schema, contents, _) = schema(false);
        let mut writer = Index::builder()
            .schema(schema)
            .tokenizers(tokenizers())
            .single_segment_index_writer::<TantivyDocument>(
                RamDirectory::create(),
                MEMORY_BUDGET_BYTES,
            )
            .map_err(&failed)?;
        for document in &documents {
            let mut indexed = TantivyDocument::default();
            indexed.add_text(contents, document.contents());
            writer.add_document(indexed).map_err(&failed)?;
        }
        let index = writer.finalize().map_err(&failed)?;
        let documents = documents.into_iter().map(Arc::new).collect();
        Self::new(&index, contents, Documents::InMemory(documents))
    }

    /// An index that holds its documents itself.
    pub(crate) fn stored(index: &Index) -> Result<Self, IndexError> {
        let failed = IndexError::engine("open an index");
        let schema = index.schema();
        let field = |name| schema.get_field(name).map_err(&failed);
        let fields = StoredFields {
            place: field(PLACE)?,
            id: field("id")?,
            title: field("title")?,
            text: field("text")?,
        };
        Self::new(index, field("contents")?, Documents::Stored(fields))
    }

    fn new(index: &Index, contents: Field, documents: Documents) -> Result<Self, IndexError> {
        let failed = IndexError::engine("open an index");
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(&failed)?;
        Ok(Self { searcher: reader.searcher(), contents, analyzer: analyzer(), documents })
    }

    /// How many documents there are.
    pub fn len(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `k` documents that fit a query best, the best first; fewer where fewer have a word of it, none where it has no
    /// word.
    ///
    /// # Errors
    ///
    /// [`SearchError`] when the query has more than [`MAX_QUERY_BYTES`], `k` is more than [`MAX_RESULTS`], or the index could
    /// not be read.
    pub fn search(&self, query: &str, k: usize) -> Result<Vec<Hit>, SearchError> {
        if query.len() > MAX_QUERY_BYTES {
            let (bytes, limit) = (query.len(), MAX_QUERY_BYTES);
            return Err(SearchError::QueryTooLong { bytes, limit });
        }
        if k > MAX_RESULTS {
            return Err(SearchError::TooMany { asked: k, limit: MAX_RESULTS });
        }
        let failed = |error| SearchError::Engine(Box::new(error));
        let clauses = self.clauses(query);
        if clauses.is_empty() || k == 0 {
            return Ok(Vec::new());
        }
        let best = TopDocs::with_limit(k).order_by_score();
        let found = self.searcher.search(&BooleanQuery::new(clauses), &best).map_err(failed)?;
        let hit = |(score, place)| Ok(Hit { document: self.document(place)?, score });
        found.into_iter().map(hit).collect::<tantivy::Result<_>>().map_err(failed)
    }

    /// A clause for every word, weighed by how often it stands in the query, in alphabetical order, so that sums do not
    /// depend on the order of words.
    fn clauses(&self, query: &str) -> Vec<(Occur, Box<dyn Query>)> {
        let mut counts: BTreeMap<String, f32> = BTreeMap::new();
        let mut analyzer = self.analyzer.clone();
        let mut words = analyzer.token_stream(query);
        while words.advance() {
            *counts.entry(words.token().text.clone()).or_default() += 1.0;
        }
        let clause = |(word, count): (String, f32)| {
            let term = Term::from_field_text(self.contents, &word);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            let query: Box<dyn Query> = match count > 1.0 {
                true => Box::new(BoostQuery::new(Box::new(query), count)),
                false => Box::new(query),
            };
            (Occur::Should, query)
        };
        counts.into_iter().map(clause).collect()
    }

    fn document(&self, place: DocAddress) -> tantivy::Result<Arc<Document>> {
        match &self.documents {
            // One segment, in the order of the documents.
            Documents::InMemory(documents) => Ok(Arc::clone(&documents[place.doc_id as usize])),
            Documents::Stored(fields) => {
                let stored: TantivyDocument = self.searcher.doc(place)?;
                let text = |field| {
                    let value = stored.get_first(field).and_then(|value| value.as_str());
                    value.unwrap_or_default().to_owned()
                };
                let (id, title) = (text(fields.id), text(fields.title));
                Ok(Arc::new(Document { id, title, text: text(fields.text) }))
            }
        }
    }
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept = match self.documents {
            Documents::InMemory(_) => "in memory",
            Documents::Stored(_) => "on disk",
        };
        f.debug_struct("SearchIndex").field("documents", &self.len()).field("kept", &kept).finish()
    }
}

/// What is indexed, and what is kept beside that.
pub(crate) fn schema(is_stored: bool) -> (Schema, Field, Option<StoredFields>) {
    let mut builder = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs);
    let indexed = TextOptions::default().set_indexing_options(indexing);
    let contents = builder.add_text_field("contents", indexed);
    let fields = is_stored.then(|| StoredFields {
        place: builder.add_u64_field(PLACE, FAST),
        id: builder.add_text_field("id", STORED),
        title: builder.add_text_field("title", STORED),
        text: builder.add_text_field("text", STORED),
    });
    (builder.build(), contents, fields)
}

/// The tokenizers of an index.
pub(crate) fn tokenizers() -> TokenizerManager {
    let tokenizers = TokenizerManager::default();
    tokenizers.register(TOKENIZER, analyzer());
    tokenizers
}

/// Cuts texts into words.
fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(LowerCaser)
        .build()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(texts: &[&str]) -> SearchIndex {
        let document = |(place, text): (usize, &&str)| Document {
            id: place.to_string(),
            title: String::new(),
            text: (*text).to_owned(),
        };
        SearchIndex::in_memory(texts.iter().enumerate().map(document).collect()).unwrap()
    }

    fn ids(hits: &[Hit]) -> Vec<&str> {
        hits.iter().map(|hit| &*hit.document.id).collect()
    }

    const TEXTS: [&str; 4] =
        ["the red fox", "a red red boat", "Blue boat, red Boat!", "nothing of all that"];

    /// Lengths up to 40 words are stored as they are.
    #[test]
    fn scores_are_those_of_the_formula() {
        let index = index(&TEXTS);
        let words: Vec<Vec<String>> = TEXTS
            .iter()
            .map(|text| {
                let words = text.split(|c: char| !c.is_alphanumeric());
                words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
            })
            .collect();
        let mean = words.iter().map(Vec::len).sum::<usize>() as f64 / words.len() as f64;
        let bm25 = |query: &[&str], document: &[String]| -> f64 {
            let of_word = |word: &&str| {
                let found = words.iter().filter(|it| it.iter().any(|w| w == word)).count() as f64;
                let idf = (1.0 + (words.len() as f64 - found + 0.5) / (found + 0.5)).ln();
                let f = document.iter().filter(|w| w == word).count() as f64;
                idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * document.len() as f64 / mean))
            };
            query.iter().map(of_word).sum()
        };
        for query in [&["red", "boat"][..], &["boat", "boat", "fox"], &["all"]] {
            let hits = index.search(&query.join(" "), 10).unwrap();
            let mut expected: Vec<(usize, f64)> = (0..words.len())
                .map(|place| (place, bm25(query, &words[place])))
                .filter(|(_, score)| *score > 0.0)
                .collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1));
            assert_eq!(hits.len(), expected.len(), "{query:?}");
            for (hit, (place, score)) in hits.iter().zip(expected) {
                assert_eq!(hit.document.id, place.to_string(), "{query:?}");
                assert!((f64::from(hit.score) - score).abs() < 1e-5, "{query:?}: {hit:?} {score}");
            }
        }
    }

    #[test]
    fn equal_scores_stand_in_the_order_of_the_documents() {
        let texts = vec!["same words here"; 50];
        let index = index(&texts);
        let hits = index.search("words", 7).unwrap();
        assert_eq!(ids(&hits), ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(hits, index.search("WORDS", 7).unwrap());
    }

    #[test]
    fn a_query_is_words_and_nothing_else() {
        let index = index(&TEXTS);
        let plain = index.search("red boat", 4).unwrap();
        for query in ["+red AND -boat", "contents:red \"boat\"~2", "red* (boat", "boat red^"] {
            let hits = index.search(query, 4).unwrap();
            let found = ids(&hits);
            assert!(plain.iter().all(|hit| found.contains(&&*hit.document.id)), "{query}");
        }
        for empty in ["", " \t\n", "!?*", "zebra"] {
            assert!(index.search(empty, 3).unwrap().is_empty());
        }
        assert!(index.search("red", 0).unwrap().is_empty());
        let long = index.search(&"red ".repeat(2000), 3).unwrap_err();
        assert_eq!(long.to_string(), "search for a query of 8000 bytes: 4096 are allowed");
        assert!(long.is_about_query() && index.search("red", 1001).unwrap_err().is_about_query());
        assert!(SearchIndex::in_memory(Vec::new()).unwrap().search("red", 3).unwrap().is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn no_query_does_harm(query in any::<String>(), k in 0_usize..9) {
            let index = index(&TEXTS);
            let hits = index.search(&query, k).unwrap();
            prop_assert!(hits.len() <= k);
            prop_assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
            prop_assert!(hits.iter().all(|hit| hit.score > 0.0));
        }
    }
}
