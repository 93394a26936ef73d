//! Indexes on disk, built once for each corpus.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tantivy::directory::MmapDirectory;
use tantivy::index::SegmentId;
use tantivy::indexer::NoMergePolicy;
use tantivy::{Index, IndexWriter, TantivyDocument};

use crate::corpus::{CorpusReader, content_hash};
use crate::search_index::{PLACE, schema, tokenizers};
use crate::{CorpusError, IndexError, SearchIndex};

/// The form in which indexes are kept; grows with every change after which older ones cannot be read.
const FORMAT: u32 = 1;
const MANIFEST: &str = "spar-index.json";
/// How much is held in memory while an index is built.
const MEMORY_BUDGET_BYTES: usize = 128 << 20;
/// The most documents of a segment before all are merged.
const SEGMENT_DOCUMENTS: u64 = 1 << 20;
/// What was being built so long ago was given up.
const GIVEN_UP: Duration = Duration::from_secs(24 * 3600);
const BUILDING: &str = ".building-";

/// A folder of indexes, each in a folder named by the hash of its corpus.
#[derive(Debug, Clone)]
pub struct IndexFolder {
    folder: PathBuf,
}

/// What lies beside the files of an index.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    /// The hash of the corpus.
    corpus: String,
    documents: u64,
    /// The bytes of every file.
    files: BTreeMap<String, u64>,
}

/// What lies where an index would be.
enum Found {
    Index(SearchIndex),
    Nothing,
    /// One of ours that is not whole.
    Damaged,
}

impl IndexFolder {
    /// The folder at a path, which is made when something is kept in it.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder `spar/search` in the user's folder of caches (`$XDG_CACHE_HOME`, else `~/.cache`), else in that for
    /// temporary files.
    pub fn of_user() -> Self {
        let given = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
        let home = std::env::var_os("HOME").filter(|path| !path.is_empty());
        let caches = given.map(PathBuf::from).or_else(|| Some(PathBuf::from(home?).join(".cache")));
        Self::new(caches.unwrap_or_else(std::env::temp_dir).join("spar/search"))
    }

    /// The index of a corpus: the one that is kept, or a new one. One that is not whole is built anew; of two processes
    /// that build it at a time, the first one's stays.
    ///
    /// # Errors
    ///
    /// [`IndexError`] when the corpus is wrong, the folder cannot be used, or something else lies where the index would.
    pub fn open(&self, corpus: &Path) -> Result<SearchIndex, IndexError> {
        let hash = content_hash(corpus)?;
        let place = self.folder.join(format!("{hash}-{FORMAT}"));
        match check(&place, &hash)? {
            Found::Index(index) => return Ok(index),
            Found::Nothing => {}
            Found::Damaged => fs::remove_dir_all(&place).map_err(folder_error(&place))?,
        }
        fs::create_dir_all(&self.folder).map_err(folder_error(&self.folder))?;
        self.remove_given_up();
        let building = tempfile::Builder::new()
            .prefix(BUILDING)
            .tempdir_in(&self.folder)
            .map_err(folder_error(&self.folder))?;
        build(corpus, &hash, building.path(), SEGMENT_DOCUMENTS)?;
        match fs::rename(building.path(), &place) {
            // What is gone from there cannot be removed from there.
            Ok(()) => drop(building.keep()),
            // Somebody else was faster.
            Err(_) if place.exists() => {}
            Err(source) => return Err(folder_error(&place)(source)),
        }
        match check(&place, &hash)? {
            Found::Index(index) => Ok(index),
            Found::Nothing | Found::Damaged => Err(IndexError::Foreign {
                path: place,
                detail: "it was changed while it was opened".to_owned(),
            }),
        }
    }

    /// Removes what processes that were killed have left. That it may fail does no harm.
    fn remove_given_up(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let is_building = entry.file_name().to_string_lossy().starts_with(BUILDING);
            let age =
                entry.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
            if is_building && age.is_some_and(|age| age > GIVEN_UP) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn folder_error(path: &Path) -> impl Fn(io::Error) -> IndexError {
    move |source| IndexError::Folder { path: path.to_owned(), source }
}

/// What lies at a place: an index is opened after the bytes of all its files were checked.
fn check(place: &Path, hash: &str) -> Result<Found, IndexError> {
    let foreign =
        |detail: &str| IndexError::Foreign { path: place.to_owned(), detail: detail.to_owned() };
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(source) => return Err(folder_error(place)(source)),
        Ok(found) if !found.is_dir() => return Err(foreign("it is no folder")),
        Ok(_) => {}
    }
    let manifest: Manifest = match fs::read(place.join(MANIFEST)) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(manifest) => manifest,
            Err(_) => return Ok(Found::Damaged),
        },
        Err(_) => return Err(foreign(&format!("it has no {MANIFEST}"))),
    };
    if manifest.format != FORMAT || manifest.corpus != hash {
        return Err(foreign("its manifest names another corpus or form"));
    }
    let is_whole = manifest.files.iter().all(|(name, len)| {
        fs::metadata(place.join(name)).is_ok_and(|found| found.is_file() && found.len() == *len)
    });
    if !is_whole {
        return Ok(Found::Damaged);
    }
    let Ok(mut index) = Index::open_in_dir(place) else { return Ok(Found::Damaged) };
    index.set_tokenizers(tokenizers());
    if !index.validate_checksum().is_ok_and(|damaged| damaged.is_empty()) {
        return Ok(Found::Damaged);
    }
    match SearchIndex::stored(&index) {
        Ok(index) if index.len() == manifest.documents => Ok(Found::Index(index)),
        _ => Ok(Found::Damaged),
    }
}

/// Builds the index of a corpus in an empty folder: one segment, its documents in their order, merged from segments of
/// `segment` documents each.
fn build(corpus: &Path, hash: &str, folder: &Path, segment: u64) -> Result<(), IndexError> {
    let failed = IndexError::engine("build an index");
    let (schema, contents, fields) = schema(true);
    let fields = fields.expect("they are stored");
    let directory = MmapDirectory::open(folder)
        .map_err(|error| IndexError::engine("build an index")(error.into()))?;
    let index = Index::builder()
        .schema(schema)
        .tokenizers(tokenizers())
        .open_or_create(directory)
        .map_err(&failed)?;
    // One thread, so that documents keep their order.
    let mut writer: IndexWriter =
        index.writer_with_num_threads(1, MEMORY_BUDGET_BYTES).map_err(&failed)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let mut reader = CorpusReader::open(corpus)?;
    let mut documents = 0;
    for document in reader.by_ref() {
        let document = document?;
        if documents > 0 && documents % segment == 0 {
            writer.commit().map_err(&failed)?;
        }
        let mut stored = TantivyDocument::default();
        stored.add_text(contents, document.contents());
        stored.add_u64(fields.place, documents);
        stored.add_text(fields.id, document.id);
        stored.add_text(fields.title, document.title);
        stored.add_text(fields.text, document.text);
        writer.add_document(stored).map_err(&failed)?;
        documents += 1;
    }
    if documents == 0 {
        return Err(CorpusError::Empty { path: corpus.to_owned() }.into());
    }
    if reader.content_hash() != hash {
        return Err(CorpusError::Changed { path: corpus.to_owned() }.into());
    }
    writer.commit().map_err(&failed)?;
    let segments = segments_in_order(&index).map_err(&failed)?;
    if segments.len() > 1 {
        writer.merge(&segments).wait().map_err(&failed)?;
        writer.garbage_collect_files().wait().map_err(&failed)?;
    }
    writer.wait_merging_threads().map_err(&failed)?;
    write_manifest(folder, hash, documents)
}

/// The segments of an index in the order of their documents; the index lists them in another.
fn segments_in_order(index: &Index) -> tantivy::Result<Vec<SegmentId>> {
    let searcher = index.reader()?.searcher();
    let mut segments = Vec::new();
    for reader in searcher.segment_readers() {
        let first = reader.fast_fields().u64(PLACE)?.first(0);
        segments.push((first, reader.segment_id()));
    }
    segments.sort();
    Ok(segments.into_iter().map(|(_, id)| id).collect())
}

/// Writes beside the files of an index what they are.
fn write_manifest(folder: &Path, hash: &str, documents: u64) -> Result<(), IndexError> {
    let entries = fs::read_dir(folder).map_err(folder_error(folder))?;
    let mut files = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(folder_error(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Locks are nobody's any more.
        if name.ends_with(".lock") {
            continue;
        }
        let len = entry.metadata().map_err(folder_error(folder))?.len();
        files.insert(name, len);
    }
    let manifest = Manifest { format: FORMAT, corpus: hash.to_owned(), documents, files };
    let text = serde_json::to_vec_pretty(&manifest).expect("a manifest has only string keys");
    let path = folder.join(MANIFEST);
    let written = fs::write(&path, text).and_then(|()| fs::File::open(&path)?.sync_all());
    written.map_err(folder_error(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    const COUNT: usize = 60;

    fn documents() -> Vec<Document> {
        let document = |n: usize| {
            let text = format!("same words, number {n}, {}", ["even", "odd"][n % 2]);
            Document { id: format!("d{n}"), title: format!("T{}", n / 10), text }
        };
        (0..COUNT).map(document).collect()
    }

    fn write_corpus(path: &Path) {
        let lines = documents().into_iter().map(|it| it.to_json().to_string() + "\n");
        fs::write(path, lines.collect::<String>()).unwrap();
    }

    #[test]
    fn an_index_on_disk_finds_what_one_in_memory_finds() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("corpus.jsonl");
        write_corpus(&corpus);
        let memory = SearchIndex::in_memory(documents()).unwrap();
        let indexes = IndexFolder::new(folder.path().join("cache"));
        let disk = indexes.open(&corpus).unwrap();
        // Merged from several segments.
        let hash = content_hash(&corpus).unwrap();
        let merged = indexes.folder.join("merged");
        fs::create_dir(&merged).unwrap();
        build(&corpus, &hash, &merged, 7).unwrap();
        let Found::Index(merged) = check(&merged, &hash).unwrap() else { panic!("it is whole") };
        for query in ["words", "odd number", "T3 even 7", "t5 T5"] {
            let expected = memory.search(query, 25).unwrap();
            assert!(!expected.is_empty());
            assert_eq!(disk.search(query, 25).unwrap(), expected, "{query}");
            assert_eq!(merged.search(query, 25).unwrap(), expected, "{query}");
        }
        assert_eq!((disk.len(), merged.len()), (COUNT as u64, COUNT as u64));
    }

    #[test]
    fn an_index_is_built_once_and_anew_when_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("corpus.jsonl");
        write_corpus(&corpus);
        let indexes = IndexFolder::new(folder.path().join("cache"));
        indexes.open(&corpus).unwrap();
        let place = || {
            let mut entries = fs::read_dir(&indexes.folder).unwrap();
            let place = entries.next().unwrap().unwrap().path();
            assert!(entries.next().is_none(), "nothing else is left there");
            place
        };
        let manifest = place().join(MANIFEST);
        let built = fs::metadata(&manifest).unwrap().modified().unwrap();
        let is_rebuilt = || fs::metadata(&manifest).unwrap().modified().unwrap() != built;
        indexes.open(&corpus).unwrap();
        assert!(!is_rebuilt());
        let store = || {
            let mut files = fs::read_dir(place()).unwrap().map(|entry| entry.unwrap().path());
            files.find(|path| path.extension().is_some_and(|end| end == "store")).unwrap()
        };
        // Truncated.
        let bytes = fs::read(store()).unwrap();
        fs::write(store(), &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(indexes.open(&corpus).unwrap().search("odd", 1).unwrap().len(), 1);
        assert!(is_rebuilt());
        // A bit that turned over.
        let mut bytes = fs::read(store()).unwrap();
        bytes[10] ^= 1;
        fs::write(store(), bytes).unwrap();
        assert_eq!(indexes.open(&corpus).unwrap().search("odd", 1).unwrap().len(), 1);
        fs::write(&manifest, "{").unwrap();
        assert_eq!(indexes.open(&corpus).unwrap().search("odd", 1).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_index_of_the_corpus_is_left_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("corpus.jsonl");
        write_corpus(&corpus);
        let indexes = IndexFolder::new(folder.path().join("cache"));
        let place = indexes.folder.join(format!("{}-{FORMAT}", content_hash(&corpus).unwrap()));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("letters.txt"), "dear").unwrap();
        let told = indexes.open(&corpus).unwrap_err().to_string();
        assert!(told.contains("it has no spar-index.json") && told.contains("remove it"), "{told}");
        assert!(place.join("letters.txt").exists());
        fs::remove_dir_all(&place).unwrap();
        fs::write(&place, "a file").unwrap();
        assert!(indexes.open(&corpus).unwrap_err().to_string().contains("it is no folder"));
        fs::write(&corpus, "\n").unwrap();
        assert!(indexes.open(&corpus).unwrap_err().to_string().contains("it is empty"));
    }
}
