//! What the documents say is what the code does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use spar::recipe::Recipe;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The blocks of a document in a language, without their fences.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    document.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_documented_settings_are_the_defaults() {
    let document = read("docs/training.md");
    let [block] = blocks(&document, "toml")[..] else { panic!("one block of settings") };
    let documented: toml::Table = toml::from_str(block).unwrap();
    let defaults: toml::Table = toml::from_str(&Recipe::default().to_toml()).unwrap();
    assert_eq!(documented, defaults);
    // Those that are absent by default exist as well.
    for line in block.lines().filter(|line| line.starts_with("# ")) {
        let Some((name, _)) = line[2..].split_once(" = ") else { continue };
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
    }
    let with_absent: String = block
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|line| line.contains(" = ")).unwrap_or(line))
        // One of two kinds of average is enough.
        .filter(|line| !line.starts_with("average = { last"))
        .map(|line| format!("{line}\n"))
        .collect();
    Recipe::parse("docs/training.md", &with_absent, &[]).unwrap();
}

#[test]
fn what_is_reconstructed_from_summaries_is_called_so() {
    for document in ["README.md", "docs/training.md", "docs/results.md", "CHANGELOG.md"] {
        let text = read(document);
        let is_told = |paragraph: &&str| paragraph.contains("SALT") || paragraph.contains("`salt`");
        let first = text.split("\n\n").find(|part| is_told(part) && part.contains("econstruct"));
        assert!(first.is_some(), "{document} does not call SALT a reconstruction");
    }
    let credit = spar::agent::credit::credit_registry();
    let salt = credit.iter().find(|entry| entry.name == "salt").unwrap();
    assert!(salt.about.contains("reconstructed"));
}

#[test]
fn every_command_is_in_the_readme() {
    let help = Command::new(env!("CARGO_BIN_EXE_spar")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands: BTreeSet<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        // Continued descriptions are indented further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    let readme = read("README.md");
    let documented: BTreeSet<&str> = readme
        .lines()
        .skip_while(|line| !line.starts_with("| command |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split('`').nth(1)?.split_whitespace().next())
        .collect();
    assert!(!commands.is_empty());
    assert_eq!(documented, commands);
}

#[test]
fn the_code_in_contributing_is_that_of_the_example() {
    let document = read("CONTRIBUTING.md");
    let mut quoted = BTreeSet::new();
    for part in document.split("<!-- examples/").skip(1) {
        let (path, rest) = part.split_once(" -->\n```").unwrap();
        let (_, code) = rest.split_once('\n').unwrap();
        let (code, _) = code.split_once("\n```").unwrap();
        let source = read(&format!("examples/{path}"));
        assert!(source.contains(code), "not in examples/{path}:\n{code}");
        quoted.insert(path.to_owned());
    }
    // Every file of the example is quoted, each from its row on.
    for entry in std::fs::read_dir(root().join("examples/own-gym/src")).unwrap() {
        let name = format!("own-gym/src/{}", entry.unwrap().file_name().to_str().unwrap());
        assert!(quoted.contains(&name), "{name} is not in CONTRIBUTING.md");
    }
}

#[test]
fn the_grader_in_contributing_is_one_of_the_table() {
    let document = read("CONTRIBUTING.md");
    let (_, chapter) = document.split_once("## Add a grader").unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let [grader, row] = blocks(chapter, "rust")[..] else { panic!("a grader and a row") };
    assert!(read("tasks/src/graders/environment.rs").contains(grader.trim_end()), "{grader}");
    let unindented = |text: String| -> Vec<String> {
        text.lines().map(|line| line.trim_start().to_owned()).collect()
    };
    let rows = unindented(read("tasks/src/graders/registry.rs")).join("\n");
    assert!(rows.contains(unindented(row.trim_end().to_owned()).join("\n").as_str()), "{row}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(Into::into).into();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            documents.push(format!("docs/{name}"));
        }
    }
    for document in documents {
        let text = read(&document);
        let folder = root().join(&document);
        let folder = folder.parent().unwrap_or(Path::new("."));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            // Pictures are drawn by runs, which a fresh checkout need not have made.
            let is_picture = target.ends_with(".svg");
            if !target.is_empty() && !target.starts_with("https:") && !is_picture {
                assert!(folder.join(target).exists(), "{document} links to `{target}`");
            }
        }
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_table_of_methods_names_what_exists_and_counts_right() {
    let text = read("docs/methods.md");
    let mut ids = Vec::new();
    let mut counts = std::collections::BTreeMap::<&str, [usize; 3]>::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = &title[..1];
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, _, rows, shown_by, state, _] = cells[..] else { continue };
        let Ok(id) = id.parse::<u32>() else { continue };
        ids.push(id);
        for row in quoted(rows) {
            let (axis, name) = row.split_once('/').unwrap();
            let table =
                spar::registry::tables().into_iter().find(|table| table.axis().name == axis);
            let table = table.unwrap_or_else(|| panic!("{id}: there is no axis `{axis}`"));
            let is_there = table.describe().iter().any(|row| row.name == name);
            assert!(is_there, "{id}: there is no `{row}`");
        }
        for place in quoted(shown_by) {
            let (file, test) = place.split_once("::").unwrap_or((place, ""));
            let source = std::fs::read_to_string(root().join(file));
            let source = source.unwrap_or_else(|_| panic!("{id}: {file}"));
            assert!(source.contains(&format!("fn {test}")) || test.is_empty(), "{id}: {place}");
        }
        let place = match state {
            "works" => {
                assert!(!quoted(shown_by).is_empty(), "{id} works, and nothing shows it");
                0
            }
            state if state.starts_with("in parts: ") => 1,
            state if state.starts_with("waits: ") => 2,
            state => panic!("{id} is neither here nor there: {state}"),
        };
        counts.entry(section).or_default()[place] += 1;
    }
    let total = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((total, ids.len()), (175, 175));
    let [a, b, c] = ["A", "B", "C"].map(|section| counts[section]);
    assert_eq!([a, b, c].map(|counts| counts.iter().sum::<usize>()), [44, 99, 32]);
    let told = format!(
        "A and B together: {} of 143 work, {} work in parts; C: {} of 32 work, {} in parts.",
        a[0] + b[0],
        a[1] + b[1],
        c[0],
        c[1]
    );
    assert!(text.contains(&told), "{told}");
}

#[test]
fn every_recorded_function_has_one_of_ours_and_a_test_that_reads_its_numbers() {
    let text = read("docs/methods.md");
    let (_, chapter) = text.split_once("## Golden numbers").unwrap();
    let mut files = BTreeSet::new();
    for line in chapter.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.rsplit('|').map(str::trim).collect();
        let [_, shown_by, ours, ..] = cells[..] else { panic!("{line}") };
        let file = quoted(line)[0];
        for place in quoted(ours) {
            let (path, item) = place.split_once("::").unwrap();
            let source = read(path);
            let is_there = ["fn", "struct", "enum"]
                .iter()
                .any(|kind| source.contains(&format!("{kind} {item}")));
            assert!(is_there, "{file}: {place}");
        }
        assert!(!quoted(ours).is_empty(), "{file} has no function of ours");
        let [place] = quoted(shown_by)[..] else { panic!("{file}: one test") };
        let (path, test) = place.split_once("::").unwrap();
        let source = read(path);
        assert!(source.contains(&format!("fn {test}(")), "{file}: {place}");
        let reads = [format!("\"{file}\""), format!("\"{file}.json\"")];
        assert!(reads.iter().any(|name| source.contains(name)), "{file} is not read by {path}");
        assert!(files.insert(file.to_owned()), "{file} stands there twice");
    }
    // Every fixture of a crate that says what it was recorded from, and every vector where there is a folder of them.
    let mut found = BTreeSet::new();
    let own = root().join("../shared/vectors");
    let vectors = std::env::var_os("SPAR_VECTORS").map_or(own, PathBuf::from);
    for entry in std::fs::read_dir(vectors).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        found.extend(name.strip_suffix(".json").map(str::to_owned));
    }
    assert_eq!(found.difference(&files).next(), None, "a file of vectors without a row");
    let fixtures = ["agent", "tasks", "trainer", "swe", "envs"]
        .map(|name| root().join(name).join("tests/fixtures"));
    let is_fixture =
        |file: &String| fixtures.iter().any(|it| it.join(format!("{file}.json")).is_file());
    let without: Vec<&String> = files.iter().filter(|file| !is_fixture(file)).collect();
    assert_eq!(without, ["gdro_prompt_weights", "gdro_rollout_arms"]);
    assert!(files.len() > 70, "{}", files.len());
}
