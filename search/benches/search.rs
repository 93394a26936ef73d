//! Queries per second over 18,000 documents, side by side with a library of Python's.
//!
//! `SPAR_BENCH_PYTHON` names a Python that has `rank_bm25` or `bm25s`; without it, only this side is measured. Both sides index
//! the same documents and answer the same questions, three documents each, one after the other on one thread.

use std::process::Command;
use std::time::Instant;

use spar_search::world::{Names, QuestionSpec, World, WorldSpec};
use spar_search::{Document, SearchIndex};

const WORLDS: u64 = 100;
const QUESTIONS: u64 = 20;
const K: usize = 3;

fn main() {
    let worlds: Vec<World> =
        (0..WORLDS).map(|seed| World::new(&WorldSpec { seed, names: Names::Train })).collect();
    let documents: Vec<Document> =
        worlds.iter().flat_map(|world| world.documents.clone()).collect();
    let ask = |world: &World| {
        let spec = |seed| QuestionSpec { seed, hops: 1 + seed as usize % 4, aliases: true };
        (0..QUESTIONS).map(|seed| world.question(&spec(seed)).text).collect::<Vec<_>>()
    };
    let queries: Vec<String> = worlds.iter().flat_map(ask).collect();
    let one = worlds[0].documents.clone();
    println!("{} documents, {} queries", documents.len(), queries.len());

    let began = Instant::now();
    let small = SearchIndex::in_memory(one).expect("an index can be built in memory");
    println!("index of one world: {:.2} ms", began.elapsed().as_secs_f64() * 1e3);
    println!("one world: {:.0} queries/s", rate(&small, &queries));

    let began = Instant::now();
    let index = SearchIndex::in_memory(documents.clone()).expect("an index can be built in memory");
    println!("index of all: {:.2} s", began.elapsed().as_secs_f64());
    let own = rate(&index, &queries);
    println!("all: {own:.0} queries/s");

    let Some(python) = std::env::var_os("SPAR_BENCH_PYTHON") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (corpus, asked) = (folder.path().join("corpus.jsonl"), folder.path().join("queries.txt"));
    let lines: String = documents.iter().map(|it| it.to_json().to_string() + "\n").collect();
    std::fs::write(&corpus, lines).expect("the corpus can be written");
    std::fs::write(&asked, queries.join("\n")).expect("the queries can be written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/bm25.py");
    let status =
        Command::new(python).arg(script).args([&corpus, &asked]).arg(own.to_string()).status();
    assert!(status.expect("Python can be started").success());
    println!("again, all: {:.0} queries/s", rate(&index, &queries));
}

fn rate(index: &SearchIndex, queries: &[String]) -> f64 {
    let began = Instant::now();
    let mut found = 0;
    for query in queries {
        found += index.search(query, K).expect("the query is short").len();
    }
    assert_eq!(found, K * queries.len());
    queries.len() as f64 / began.elapsed().as_secs_f64()
}
