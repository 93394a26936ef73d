//! Formats of suites: how files on disk become tasks.
//!
//! ```text
//!  path ──matches──▶ the one SuiteFormat it is of ──open──▶ Suite
//! ```
//!
//! A path that no format knows, or more than one, is an error that says what was looked for. A new format is one file
//! and one row of [`suite_formats`].

mod alfworld;
mod bfcl;
mod bird;
mod code_problems;
mod env_toml;
mod jsonl;
mod offline;
mod ors_toml;
mod question_array;
mod questions;
mod spider;
mod suite_toml;
mod swe;
mod tau2;
mod webarena;
mod webshop;

use std::fmt;
use std::path::Path;

pub use alfworld::Alfworld;
pub use bfcl::Bfcl;
pub use bird::Bird;
pub use code_problems::CodeProblems;
pub use env_toml::EnvToml;
pub use jsonl::Jsonl;
pub use offline::Offline;
pub use ors_toml::OrsToml;
pub use question_array::QuestionArray;
pub use questions::Questions;
pub use spider::Spider;
pub use suite_toml::SuiteToml;
pub use swe::Swe;
pub use tau2::Tau2;
pub use webarena::WebArena;
pub use webshop::WebShop;

use spar_core::registry::{Axis, OptionSet, Row, Table};
use spar_parquet::ParquetFile;

use crate::{Schema, Suite, SuiteError};

/// A form in which tasks lie on disk.
pub trait SuiteFormat: Send + Sync + fmt::Debug {
    /// The name.
    fn name(&self) -> &'static str;

    /// What a path has to be, or to hold, to be of this format; reads well behind "looked for".
    fn looks_for(&self) -> &'static str;

    /// Whether a path is of this format, by what is there and not by what it says: files that are wrong match, so that
    /// opening them tells what is wrong.
    fn matches(&self, path: &Path) -> bool;

    /// Opens the suite at a path that matches.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when it cannot be read or a task of it is wrong.
    fn open(&self, path: &Path) -> Result<Box<dyn Suite>, SuiteError>;
}

/// A format of suites that has a name.
pub type FormatRow = Row<&'static dyn SuiteFormat>;

const AXIS: Axis = Axis {
    name: "suite-formats",
    what: "suite format",
    about: "Forms in which tasks lie on disk.",
};

const ROWS: &[FormatRow] = &[
    Row {
        name: "suite.toml",
        about: "A folder whose suite.toml has splits of parameters and seeds, or names files of tasks.",
        source: "own, docs/formats.md",
        formula: "",
        options: OptionSet::NONE,
        open: &SuiteToml,
    },
    Row {
        name: "env.toml",
        about: "A folder with a program in any language that plays the tasks, and what they are.",
        source: "own, docs/process-environments.md",
        formula: "",
        options: OptionSet::NONE,
        open: &EnvToml,
    },
    Row {
        name: "ors.toml",
        about: "A folder that names a server of the Open Reward Standard, which gives the tasks and judges them.",
        source: "Open Reward Standard, openrewardstandard.io, docs/ors.md",
        formula: "",
        options: OptionSet::NONE,
        open: &OrsToml,
    },
    Row {
        name: "jsonl",
        about: "A task on every line: a prompt with its answer, a question over a corpus, or a task at a shell.",
        source: "JSON Lines, docs/formats.md",
        formula: "",
        options: OptionSet::NONE,
        open: &Jsonl,
    },
    Row {
        name: "offline",
        about: "A folder with episodes that others played, by how good they were; `spar collect` writes it.",
        source: "own, after D4RL, arXiv 2004.07219, docs/offline.md",
        formula: "",
        options: OptionSet::NONE,
        open: &Offline,
    },
    Row {
        name: "questions",
        about: "Questions in published columns: GSM8K, MATH, AIME, Guru, MMLU, GPQA and the like.",
        source: "their publishers, docs/formats.md",
        formula: "",
        options: OptionSet::NONE,
        open: &Questions,
    },
    Row {
        name: "question-array",
        about: "An array of questions over a corpus, with the paragraphs that stand beside them.",
        source: "HotpotQA, arXiv 1809.09600; 2WikiMultihopQA, arXiv 2011.01060",
        formula: "",
        options: OptionSet::NONE,
        open: &QuestionArray,
    },
    Row {
        name: "humaneval",
        about: "HumanEval's problems: a function to complete, and a check of it.",
        source: "HumanEval, arXiv 2107.03374, HumanEval.jsonl",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::HumanEval),
    },
    Row {
        name: "mbpp",
        about: "MBPP's problems: a function to write, and asserts about it.",
        source: "MBPP, arXiv 2108.07732, mbpp.jsonl",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::Mbpp),
    },
    Row {
        name: "apps",
        about: "APPS' problems: texts to read and write, or a function to call.",
        source: "APPS, arXiv 2105.09938, train.jsonl and test.jsonl",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::Apps),
    },
    Row {
        name: "taco",
        about: "TACO's problems, as JSON lines: as those of APPS, with more to train on.",
        source: "TACO, arXiv 2312.14852",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::Taco),
    },
    Row {
        name: "livecodebench",
        about: "LiveCodeBench's code generation problems, with their public and private tests.",
        source: "LiveCodeBench, arXiv 2403.07974, test.jsonl to test6.jsonl of code_generation_lite",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::LiveCodeBench),
    },
    Row {
        name: "guru-code",
        about: "Guru's programs, as JSON lines: asserts about them, or texts to read and write.",
        source: "Guru, arXiv 2506.14965, its files of the domain codegen",
        formula: "",
        options: OptionSet::NONE,
        open: &CodeProblems(Schema::Guru),
    },
    Row {
        name: "alfworld",
        about: "ALFWorld's household games, in the folders of its own download.",
        source: "ALFWorld, arXiv 2010.03768, its alfworld-download",
        formula: "",
        options: OptionSet::NONE,
        open: &Alfworld,
    },
    Row {
        name: "spider",
        about: "Questions about databases, in the folder that Spider is released as.",
        source: "Spider, arXiv 1809.08887; databases of equal schema, arXiv 2010.02840",
        formula: "",
        options: OptionSet::NONE,
        open: &Spider,
    },
    Row {
        name: "bird",
        about: "Questions about databases with what has to be known for them, in the folder that BIRD is released as.",
        source: "BIRD, arXiv 2305.03111",
        formula: "",
        options: OptionSet::NONE,
        open: &Bird,
    },
    Row {
        name: "bfcl",
        about: "The files of the Berkeley Function-Calling Leaderboard, in the folders of its release.",
        source: "BFCL v4, github.com/ShishirPatil/gorilla",
        formula: "",
        options: OptionSet::NONE,
        open: &Bfcl,
    },
    Row {
        name: "tau2",
        about: "tau2-bench's domains and tasks, in the folders of its release.",
        source: "tau2-bench, arXiv 2506.07982, its data/tau2/domains",
        formula: "",
        options: OptionSet::NONE,
        open: &Tau2,
    },
    Row {
        name: "webshop",
        about: "WebShop's products and instructions, in its own files.",
        source: "WebShop, arXiv 2207.01206, its data folder",
        formula: "",
        options: OptionSet::NONE,
        open: &WebShop,
    },
    Row {
        name: "webarena",
        about: "Tasks in WebArena's form, on the sites that ship or on a folder of pages.",
        source: "WebArena, arXiv 2307.13854, its test.raw.json",
        formula: "",
        options: OptionSet::NONE,
        open: &WebArena,
    },
    Row {
        name: "swe",
        about: "Issues of repositories: rows of SWE-bench and its relatives, task folders of SWE-bench, Harbor and terminal-bench.",
        source: "their publishers, docs/swe.md",
        formula: "",
        options: OptionSet::NONE,
        open: &Swe,
    },
];

static TABLE: Table<&'static dyn SuiteFormat> = Table::new(AXIS, ROWS);

/// All formats of suites; a new one is one file and one row here.
pub fn suite_formats() -> &'static Table<&'static dyn SuiteFormat> {
    &TABLE
}

/// The format of what lies at a path.
///
/// # Errors
///
/// [`SuiteError::NoFormat`] where it is of none, [`SuiteError::Ambiguous`] where it is of several.
pub fn format_of(path: &Path) -> Result<&'static dyn SuiteFormat, SuiteError> {
    choose(path, suite_formats().iter().map(|row| row.open))
}

fn choose(
    path: &Path,
    formats: impl Iterator<Item = &'static dyn SuiteFormat>,
) -> Result<&'static dyn SuiteFormat, SuiteError> {
    let formats: Vec<_> = formats.collect();
    let found: Vec<_> = formats.iter().copied().filter(|format| format.matches(path)).collect();
    let listed = |formats: &[&'static dyn SuiteFormat]| {
        let each = formats.iter().map(|it| format!("{} (`{}`)", it.looks_for(), it.name()));
        each.collect::<Vec<_>>().join(", ")
    };
    let is_named_parquet = path.extension().is_some_and(|end| end == "parquet") && path.is_file();
    let path = path.to_owned();
    if found.is_empty() && is_named_parquet && !ParquetFile::is_at(&path) {
        let (place, detail) =
            ("the file".to_owned(), "it does not begin as Parquet does".to_owned());
        return Err(SuiteError::Task { path, place, detail });
    }
    match &found[..] {
        [format] => Ok(*format),
        [] => Err(SuiteError::NoFormat { path, looked_for: listed(&formats) }),
        several => Err(SuiteError::Ambiguous { path, found: listed(several) }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sql_suite::tests::{BIRD, SPIDER, write_bird, write_spider};
    use crate::{SuiteOptions, open_suite};

    const SUITE: &str = "name = 's'\nversion = '1'\nabout = 'a'\nenvironment = 'frozen-lake'\ninstruction = 'i'\n\
                         max_turns = 3\n[splits.test]\ncount = 2\nfirst_seed = 0\n";

    /// A suite of every format, below a folder.
    fn write_all(root: &Path) -> Vec<(&'static str, std::path::PathBuf)> {
        let (toml, lines, games) = (root.join("toml"), root.join("q.jsonl"), root.join("games"));
        fs::create_dir_all(&toml).unwrap();
        fs::write(toml.join("suite.toml"), SUITE).unwrap();
        fs::write(&lines, "{\"prompt\": \"1 + 1?\", \"answer\": \"2\"}\n").unwrap();
        let program = root.join("program");
        fs::create_dir_all(&program).unwrap();
        let env = "name = 'p'\nversion = '1'\nabout = 'a'\nmax_turns = 3\ncommand = ['true']\n[splits.test]\ncount = 2\n";
        fs::write(program.join("env.toml"), env).unwrap();
        let game = games.join("test/problem/trial");
        fs::create_dir_all(&game).unwrap();
        fs::write(game.join("game.tw-pddl"), "{}").unwrap();
        let questions = root.join("questions.json");
        fs::write(&questions, "[{\"problem\": \"1 + 1?\", \"answer\": 2}]").unwrap();
        let array = root.join("dev.json");
        let question = r#"[{"_id": "a", "question": "q", "answer": "b", "supporting_facts": [], "context": [["T", ["s"]]]}]"#;
        fs::write(&array, question).unwrap();
        let (spider, bird) = (root.join("spider"), root.join("bird"));
        write_spider(&spider, SPIDER);
        write_bird(&bird, BIRD);
        let domain = root.join("release/mock");
        fs::create_dir_all(&domain).unwrap();
        fs::write(domain.join("db.json"), "{}").unwrap();
        fs::write(domain.join("user_db.json"), "{}").unwrap();
        fs::write(domain.join("split_tasks.json"), r#"{"test": ["a"]}"#).unwrap();
        let tasks = r#"[{"id": "a", "user_scenario": {"instructions": "i"}}]"#;
        fs::write(domain.join("tasks.json"), tasks).unwrap();
        let release = root.join("release");
        let shop = root.join("shop");
        fs::create_dir_all(&shop).unwrap();
        let item = r#"[{"asin": "B1", "name": "Red Lamp", "category": "c", "query": "lamps", "product_category": "a"}]"#;
        fs::write(shop.join("items_shuffle_1000.json"), item).unwrap();
        fs::write(shop.join("items_ins_v2_1000.json"), r#"{"B1": {"attributes": ["red"]}}"#)
            .unwrap();
        let said = r#"{"instruction": "a lamp.", "instruction_attributes": ["red"], "instruction_options": []}"#;
        let said = format!(r#"{{"B1": [{said}, {said}, {said}]}}"#);
        fs::write(shop.join("items_human_ins.json"), said).unwrap();
        let web = root.join("web.json");
        let task = r#"[{"task_id": 1, "intent": "i", "start_url": "http://map.test/", "eval": {"eval_types": ["url_match"], "reference_url": "x"}}]"#;
        fs::write(&web, task).unwrap();
        let leaderboard = root.join("leaderboard");
        fs::create_dir_all(leaderboard.join("possible_answer")).unwrap();
        let file = "BFCL_v4_multi_turn_base.json";
        let entry = r#"{"id": "multi_turn_base_0", "question": [[{"role": "user", "content": "Log out."}]],
            "initial_config": {"TicketAPI": {"current_user": "ann"}}, "involved_classes": ["TicketAPI"], "path": []}"#;
        fs::write(leaderboard.join(file), entry.replace('\n', "") + "\n").unwrap();
        let answer = r#"{"id": "multi_turn_base_0", "ground_truth": [["logout()"]]}"#;
        fs::write(leaderboard.join("possible_answer").join(file), answer).unwrap();
        let server = root.join("server");
        fs::create_dir_all(&server).unwrap();
        let ors = "name = 's'\nversion = '1'\nabout = 'a'\nmax_turns = 3\n[server]\nurl = 'http://127.0.0.1:9'\n[splits.test]\ncount = 2\n";
        fs::write(server.join("ors.toml"), ors).unwrap();
        let offline = root.join("offline");
        crate::offline::tests::write_dataset(&offline);
        let rows = root.join("rows.jsonl");
        fs::write(&rows, crate::swe_suite::tests::row("a__b-1")).unwrap();
        let mut all = vec![
            ("suite.toml", toml),
            ("env.toml", program),
            ("jsonl", lines),
            ("alfworld", games),
            ("questions", questions),
            ("question-array", array),
            ("spider", spider),
            ("bird", bird),
            ("tau2", release),
            ("webshop", shop),
            ("webarena", web),
            ("bfcl", leaderboard),
            ("ors.toml", server),
            ("swe", rows),
            ("offline", offline),
        ];
        let case = r#"[{\"input\": \"\", \"output\": \"\", \"testtype\": \"stdin\"}]"#;
        let cases = r#""{\"inputs\": [\"\"], \"outputs\": [\"\"]}""#;
        for (name, line) in [
            (
                "humaneval",
                r#"{"prompt": "def f():", "test": "assert f()", "entry_point": "f"}"#.to_owned(),
            ),
            ("mbpp", r#"{"text": "a", "code": "b", "test_list": ["assert f()"]}"#.to_owned()),
            ("apps", format!(r#"{{"question": "a", "input_output": {cases}}}"#)),
            ("taco", format!(r#"{{"question": "a", "input_output": {cases}, "raw_tags": "[]"}}"#)),
            (
                "livecodebench",
                format!(r#"{{"question_content": "a", "public_test_cases": "{case}"}}"#),
            ),
            (
                "guru-code",
                format!(
                    r#"{{"data_source": "codegen__a", "raw_prompt": "a", "reward_model": {{"ground_truth": {cases}}}}}"#
                ),
            ),
        ] {
            let path = root.join(format!("{name}.jsonl"));
            fs::write(&path, line + "\n").unwrap();
            all.push((name, path));
        }
        all
    }

    #[test]
    fn every_format_opens_what_it_matches_and_nothing_else_matches_that() {
        let folder = tempfile::tempdir().unwrap();
        let paths = write_all(folder.path());
        assert_eq!(paths.len(), suite_formats().len());
        for (name, path) in paths {
            let format = format_of(&path).unwrap();
            assert_eq!(format.name(), name);
            let suite = open_suite(path.to_str().unwrap(), &SuiteOptions::default()).unwrap();
            let (split, len) = &suite.manifest().splits[0];
            assert!(*len > 0, "{name}");
            let task = suite.task(split, 0).unwrap();
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        }
    }

    #[test]
    fn what_is_of_no_format_or_of_several_is_told_with_what_was_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path| match open_suite(path.to_str().unwrap(), &SuiteOptions::default())
        {
            Ok(_) => panic!("it opened"),
            Err(error) => error.to_string(),
        };
        let told = open(folder.path());
        for part in ["suite.toml", "env.toml", ".jsonl", "game.tw-pddl"] {
            assert!(told.contains(part), "{told}");
        }
        let (_, games) = write_all(folder.path()).remove(3);
        fs::write(games.join("suite.toml"), SUITE).unwrap();
        let told = open(&games);
        assert!(told.contains("`suite.toml`") && told.contains("`alfworld`"), "{told}");
        assert!(!told.contains("jsonl"), "{told}");
        let told = open(Path::new("no-such-suite"));
        assert!(told.contains("`household`") && told.contains("suite.toml"), "{told}");
    }
}
