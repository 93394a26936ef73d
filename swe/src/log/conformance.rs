//! Every parser of the table against what its original made of the same logs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::{LOG_PARSERS, LogContext, LogParser, StatusMap};
use crate::TestStatus;

/// Logs that the original of a parser was given, and how many of them name a test.
#[derive(Default)]
struct Count {
    logs: usize,
    /// Of these, logs that a runner printed.
    runs: usize,
    with_tests: usize,
    raised: usize,
}

/// Parsers of runners that are held against twenty logs or more which these printed themselves.
const OF_RUNS: [&str; 17] = [
    "pytest",
    "pytest_options",
    "pytest_v2",
    "django",
    "sympy",
    "cargo",
    "gotest",
    "jest",
    "vitest",
    "maven",
    "gradle_custom",
    "googletest",
    "tap",
    "rspec_transformed_json",
    "phpunit",
    "minitest",
    "ruby_unit",
];

fn key(row: &LogParser) -> String {
    format!("{}/{}", row.origin, row.name)
}

fn recorded() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/logs");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut logs = Vec::new();
    for path in paths {
        let corpus = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in fs::read_to_string(path).unwrap().lines() {
            logs.push((corpus.clone(), serde_json::from_str(line).unwrap()));
        }
    }
    logs
}

fn statuses(tests: &Value) -> StatusMap {
    let tests = tests.as_object().unwrap().iter();
    tests
        .map(|(name, word)| (name.clone(), TestStatus::from_word(word.as_str().unwrap())))
        .collect()
}

fn compare() -> BTreeMap<String, Count> {
    let rows: BTreeMap<String, &LogParser> =
        LOG_PARSERS.iter().map(|row| (key(row), row)).collect();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for (corpus, log) in recorded() {
        let text = |key: &str| log[key].as_str().unwrap_or_default();
        let context = LogContext { instance_id: text("instance_id"), version: text("version") };
        for group in log["expected"].as_array().unwrap() {
            for parser in group[0].as_array().unwrap() {
                let name = parser.as_str().unwrap();
                // The original of version 4 is that of version 5 where the table has no row of its own.
                let row = rows.get(name).or_else(|| rows.get(&name.replace("bench 4", "bench 5")));
                let ours = row.unwrap_or_else(|| panic!("no {name}")).parse(text("log"), &context);
                let count = counts.entry(name.to_owned()).or_default();
                count.logs += 1;
                count.runs += usize::from(corpus.starts_with("run_"));
                match group[1].get("tests") {
                    Some(tests) => {
                        count.with_tests += usize::from(!tests.as_object().unwrap().is_empty());
                        assert_eq!(ours, Ok(statuses(tests)), "{corpus} {name} {:?}", text("log"));
                        // The order in which the log names them as well.
                        let theirs = tests.as_object().unwrap().keys();
                        let same = ours.unwrap().keys().eq(theirs);
                        let sorted = ["boost", "haskell_v2", "dune", "ocaml_v2", "java_mvn"];
                        assert!(
                            same || sorted.iter().any(|part| name.contains(part)),
                            "{corpus} {name}"
                        );
                    }
                    None => {
                        count.raised += 1;
                        assert!(ours.is_err(), "{corpus} {name} {:?}", text("log"));
                    }
                }
            }
        }
    }
    counts
}

/// The table of the documentation, which is written anew where `SPAR_UPDATE_DOCS` is set.
fn table(counts: &BTreeMap<String, Count>) -> String {
    let mut text = String::from(
        "| origin | parser | logs | of runs | with tests | errors | what it reads |\n|---|---|--:|--:|--:|--:|---|\n",
    );
    for row in LOG_PARSERS {
        let Count { logs, runs, with_tests, raised } = counts[&key(row)];
        let (origin, name, about) = (row.origin, row.name, row.about.replace('|', "\\|"));
        writeln!(
            text,
            "| {origin} | `{name}` | {logs} | {runs} | {with_tests} | {raised} | {about} |"
        )
        .unwrap();
    }
    text
}

#[test]
fn every_parser_equals_its_original() {
    const BEGIN: &str = "<!-- begin of the table of log parsers -->\n";
    const END: &str = "<!-- end of the table of log parsers -->\n";
    let counts = compare();
    for row in LOG_PARSERS {
        let count = counts.get(&key(row)).unwrap_or_else(|| panic!("no logs for {row:?}"));
        assert!(count.logs >= 20 && count.with_tests >= 3, "{row:?}: {} logs", count.logs);
    }
    for name in OF_RUNS {
        let runs = counts[&format!("{}/parse_log_{name}", super::Origin::SweBench)].runs;
        assert!(runs >= 20, "{name}: {runs} logs that a runner printed");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/swe.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the table has a beginning");
    let (old, tail) = rest.split_once(END).expect("the table has an end");
    let new = table(&counts);
    if std::env::var_os("SPAR_UPDATE_DOCS").is_some() {
        fs::write(path, format!("{head}{BEGIN}{new}{END}{tail}")).unwrap();
    } else {
        assert_eq!(old, new, "write it with SPAR_UPDATE_DOCS=1");
    }
}

#[test]
fn names_are_found_once_and_unknown_ones_tell_the_known() {
    use super::{LogError, Origin, find_log_parser};
    for (index, row) in LOG_PARSERS.iter().enumerate() {
        let found = find_log_parser(row.origin, row.name).unwrap();
        assert!(std::ptr::eq(found, row), "{row:?}");
        assert!(row.about.ends_with('.'), "{row:?}");
        assert!(!LOG_PARSERS[..index].iter().any(|other| key(other) == key(row)), "{row:?}");
    }
    assert_eq!(
        find_log_parser(Origin::SweRebench, "parse_log_tap").unwrap().origin,
        Origin::SweBench
    );
    let error = find_log_parser(Origin::R2eGym, "parse_log").unwrap_err();
    assert_eq!(
        error,
        LogError::UnknownParser {
            name: "parse_log".to_owned(),
            origin: Origin::R2eGym,
            known: vec!["parse_log_pytest"]
        }
    );
}

/// Texts that parsers look for, line by line from the recorded logs, and what ends lines, colours and nests.
fn pieces() -> &'static [String] {
    static PIECES: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
        let mut pieces: Vec<String> = recorded()
            .iter()
            .step_by(3)
            .filter_map(|(_, log)| {
                let lines: Vec<&str> = log["log"].as_str()?.lines().collect();
                Some((*lines.get(lines.len() / 2)?).to_owned())
            })
            .collect();
        pieces.extend(
            [
                "\n",
                "\n\n",
                "\r",
                "\u{1b}[31m",
                "\u{1b}[0m",
                " ",
                "  ",
                "[",
                "]",
                "é",
                "\u{2028}",
                "<",
                "{",
                "}",
                "FAILED",
                "PASSED ",
                " ... ok",
                "1) ",
            ]
            .map(str::to_owned),
        );
        pieces
    });
    &PIECES
}

fn any_log() -> impl Strategy<Value = String> {
    proptest::collection::vec((0..pieces().len(), any::<bool>()), 0..24).prop_map(|chosen| {
        chosen.into_iter().fold(String::new(), |mut log, (piece, ends)| {
            log.push_str(&pieces()[piece]);
            if ends {
                log.push('\n');
            }
            log
        })
    })
}

/// Parsers whose originals take out colours before they look at a line.
const COLOUR_BLIND: [&str; 5] = [
    "parse_log_chart_js",
    "parse_log_p5js",
    "parse_log_haskell",
    "parse_lue_nvim",
    "parse_log_pytest_v2",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pieces_of_a_log_do_not_matter(log in any_log(), step in 1usize..9) {
        let letters: Vec<char> = log.chars().collect();
        let context = LogContext { instance_id: "jekyll__jekyll-9141", version: "1.27" };
        for row in LOG_PARSERS {
            let Ok(mut reading) = row.open(&context) else { continue };
            letters.chunks(step).for_each(|piece| reading.push(&piece.iter().collect::<String>()));
            let in_pieces = reading.finish();
            prop_assert_eq!(&in_pieces, &row.parse(&log, &context), "{:?}", row);
            if let Ok(tests) = in_pieces {
                // Tests that are only counted are the only ones that a log does not spell out.
                let counted = tests.keys().all(|name| name.ends_with(|last: char| last.is_ascii_digit()));
                prop_assert!(tests.len() <= log.len() + 1 || counted, "{:?}", row);
            }
        }
    }

    #[test]
    fn colours_do_not_matter_to_those_that_take_them_out(log in any_log()) {
        let plain: String = log.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        let mut coloured = String::new();
        for line in plain.split_inclusive('\n') {
            coloured.push_str("\u{1b}[32m");
            coloured.push_str(line);
        }
        let context = LogContext::default();
        for row in LOG_PARSERS.iter().filter(|row| COLOUR_BLIND.contains(&row.name)) {
            prop_assert_eq!(row.parse(&coloured, &context), row.parse(&plain, &context), "{:?}", row);
        }
    }
}

#[test]
fn hostile_logs_take_no_longer_than_they_are_long() {
    const BYTES: usize = 6_000;
    let hostile = [
        "_ ",
        "<a>",
        "<testcase name=\"a\">",
        "<?xml version=\"1.0\"?><testsuite>",
        "  1)\n",
        " ./node_modules/.bin/jest ",
        "test_a ... Testing against Django installed in ",
        "-Dtest=a\n",
        "((((",
        "[[[[",
        "AssertionError: #",
        "a - ",
        "a:",
        "Running:a)\n\n\n  b\n",
        "FAILED - ",
        " 1) a\n  b\n",
        "<doctest><SubCase>",
        "The following tests FAILED:\n 1 - a",
        "Error in: ",
        "✓ a (",
        "{",
        "}",
        "\r",
        "é",
        "a\n ",
        "PASSED",
        ">>>>>",
        "... ",
        "Running[1]: (a)\nOutput[1]:\n",
    ];
    let context = LogContext { instance_id: "jekyll__jekyll-9141", version: "1.27" };
    for text in hostile {
        let log = text.repeat(BYTES / text.len());
        let deep: String = (0..60).map(|depth| format!("{}{text}\n", " ".repeat(depth))).collect();
        for row in LOG_PARSERS {
            let _ = row.parse(&log, &context);
            let _ = row.parse(&deep, &context);
        }
    }
}
