//! Prints what files of rows and folders of tasks hold, one instance a line in JSON, errors as `{"error": .., "path": ..}`.
//!
//! ```text
//! cargo run -p spar-swe --example instances -- [--summary] PATH...
//! ```
//!
//! With `--summary` it prints how many were read of each path, and what is unsupported in how many of them. A path `-`
//! stands for the paths that standard input names, one a line.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use spar_swe::{FolderSuite, Instance, LoadError, RowFile, RowOptions};

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let is_summary = paths.iter().any(|path| path == "--summary");
    paths.retain(|path| path != "--summary");
    let mut all = Vec::new();
    for path in paths {
        match path.as_str() {
            "-" => all.extend(std::io::stdin().lock().lines().map_while(Result::ok)),
            _ => all.push(path),
        }
    }
    for path in all {
        let found = read(Path::new(&path));
        match is_summary {
            true => summarise(&path, &found),
            false => found.iter().for_each(|found| print(&path, found)),
        }
    }
}

fn read(path: &Path) -> Vec<Result<Instance, LoadError>> {
    let opened = match path.is_dir() {
        true => FolderSuite::open(path).map(|suite| suite.instances().collect()),
        false => RowFile::open(path, RowOptions::default()).map(Iterator::collect),
    };
    opened.unwrap_or_else(|error| vec![Err(error)])
}

fn message(error: &LoadError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

fn print(path: &str, found: &Result<Instance, LoadError>) {
    let line = match found {
        Ok(instance) => serde_json::to_string(instance).expect("an instance has only string keys"),
        Err(error) => serde_json::json!({ "error": message(error), "path": path }).to_string(),
    };
    println!("{line}");
}

fn summarise(path: &str, found: &[Result<Instance, LoadError>]) {
    let read: Vec<&Instance> = found.iter().filter_map(|found| found.as_ref().ok()).collect();
    let gradable = read.iter().filter(|instance| instance.is_gradable()).count();
    println!(
        "{path}: {} read, {gradable} of them can be judged, {} refused",
        read.len(),
        found.len() - read.len()
    );
    let mut unsupported: BTreeMap<&str, usize> = BTreeMap::new();
    for text in read.iter().flat_map(|instance| &instance.unsupported) {
        *unsupported.entry(text).or_default() += 1;
    }
    for (text, count) in unsupported {
        println!("  {count} x {text}");
    }
    for error in found.iter().filter_map(|found| found.as_ref().err()) {
        println!("  refused: {}", message(error));
    }
}
