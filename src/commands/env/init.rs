//! `spar env init`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

use super::super::print;
use crate::cli::{EnvInitArguments, EnvKind};

/// What stands for the environment's name in a skeleton.
const NAME: &str = "NAME";
/// What stands for the folder as it was typed.
const FOLDER: &str = "FOLDER";
/// What stands for the folder of spar's sources.
const SPAR: &str = "SPAR_SOURCES";

/// A file of a skeleton: its path in the folder, and what is in it.
type Skeleton = &'static [(&'static str, &'static str)];

const PYTHON: Skeleton = &[
    ("env.toml", include_str!("skeletons/python/env.toml")),
    ("game.py", include_str!("skeletons/python/game.py")),
    ("spar_env.py", include_str!("skeletons/python/spar_env.py")),
    ("recipe.toml", include_str!("skeletons/python/recipe.toml")),
];

/// The game is that of `examples/own-gym`, which is compiled and played in spar's own tests.
const RUST: Skeleton = &[
    ("Cargo.toml", include_str!("skeletons/rust/Cargo.toml.in")),
    ("suite.toml", include_str!("../../../examples/own-gym/suite.toml")),
    ("src/main.rs", include_str!("skeletons/rust/main.rs.in")),
    ("src/guess.rs", include_str!("../../../examples/own-gym/src/guess.rs")),
    ("recipe.toml", include_str!("skeletons/rust/recipe.toml")),
];

const TASKS: Skeleton = &[
    ("suite.toml", include_str!("skeletons/tasks/suite.toml")),
    ("train.jsonl", include_str!("skeletons/tasks/train.jsonl")),
    ("test/count-lines/instruction.md", include_str!("skeletons/tasks/test/instruction.md")),
    ("test/count-lines/files/words.txt", include_str!("skeletons/tasks/test/words.txt")),
    ("test/count-lines/solution.sh", include_str!("skeletons/tasks/test/solution.sh")),
    ("test/count-lines/tests/test.sh", include_str!("skeletons/tasks/test/test.sh")),
];

/// Writes a folder with a small environment that works, and says what to do with it.
pub(super) fn init(arguments: &EnvInitArguments) -> anyhow::Result<ExitCode> {
    let EnvInitArguments { folder, kind, spar } = arguments;
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    ensure!(
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_plain),
        "name an environment `{name}`: use letters, digits, `-` and `_`, a letter first"
    );
    let typed = folder.to_str().context("name a folder in UTF-8")?;
    ensure!(
        !typed.contains(['"', '\\']) && !typed.contains(char::is_control),
        "make folder `{}`: its path has characters that no file would bear",
        typed.escape_debug()
    );
    ensure!(
        *kind == EnvKind::Rust || spar.is_none(),
        "write a skeleton: --spar is for --kind rust and has no effect otherwise"
    );
    ensure!(
        folder.symlink_metadata().is_err(),
        "make folder `{typed}`: it is there already, and nothing is overwritten; name another one"
    );
    let sources = match kind {
        EnvKind::Rust => sources(spar.as_deref())?.to_string_lossy().into_owned(),
        EnvKind::Python | EnvKind::Tasks => String::new(),
    };
    let files = match kind {
        EnvKind::Python => PYTHON,
        EnvKind::Rust => RUST,
        EnvKind::Tasks => TASKS,
    };
    for (path, text) in files {
        let path = folder.join(path);
        // What is the same in an example is written as it is there.
        let text = match path.extension().is_some_and(|end| end == "rs" || end == "jsonl") {
            true => (*text).to_owned(),
            false => text.replace(FOLDER, typed).replace(SPAR, &sources).replace(NAME, name),
        };
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("make folder `{}`", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("write `{}`", path.display()))?;
    }
    print(&next_steps(*kind, typed, name))?;
    Ok(ExitCode::SUCCESS)
}

fn next_steps(kind: EnvKind, folder: &str, name: &str) -> String {
    let steps: &[&str] = match kind {
        EnvKind::Python => &[
            "spar validate FOLDER            # does the program keep to the protocol?",
            "spar train --suite FOLDER       # trains a small model by FOLDER/recipe.toml",
            "spar eval --suite FOLDER        # measures it",
        ],
        EnvKind::Rust => &[
            "cd FOLDER",
            "cargo run --release -- validate guess",
            "cargo run --release -- train recipe.toml",
        ],
        EnvKind::Tasks => &[
            "spar validate FOLDER --backend local       # does the solution solve each task?",
            "spar eval --policy oracle --suite FOLDER --backend local",
        ],
    };
    let steps: Vec<_> =
        steps.iter().map(|step| format!("  {}\n", step.replace(FOLDER, folder))).collect();
    format!("wrote environment `{name}` to `{folder}`. Next:\n{}", steps.concat())
}

/// The folder of spar's sources: the one that was named, or one that holds the present folder.
fn sources(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let is_spar = |folder: &Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"spar\"")
    };
    if let Some(named) = named {
        ensure!(is_spar(named), "use spar's sources in `{}`: they are not there", named.display());
        return named.canonicalize().with_context(|| format!("find `{}`", named.display()));
    }
    let here = std::env::current_dir().context("find the present folder")?;
    match here.ancestors().find(|folder| is_spar(folder)) {
        Some(found) => Ok(found.to_owned()),
        None => {
            bail!("find spar's sources, which the crate depends on: name their folder with --spar")
        }
    }
}
