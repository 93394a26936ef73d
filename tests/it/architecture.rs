//! The crate graph is the data flow: acting and learning meet only in `core`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate with the crates of this workspace it may depend on. A new edge is a design
/// decision and changes this list.
const ALLOWED: &[(&str, &[&str])] = &[
    ("features", &[]),
    ("core", &[]),
    // What a policy wrote, as actions: acting and serving read it alike.
    ("parsers", &["core"]),
    // Acting: no tensors.
    ("sandbox", &["core"]),
    // What worlds of tools are made of, without any episode: state, calls, verdicts.
    ("python", &[]),
    ("bfcl", &["core", "python"]),
    ("tau2", &["core", "python"]),
    ("grids", &["core", "python"]),
    ("answers", &[]),
    // Rows of datasets, as others publish them.
    ("parquet", &[]),
    ("sql", &["core"]),
    ("search", &["core", "parquet"]),
    ("shop", &["core", "python"]),
    ("quests", &["core"]),
    ("crafting", &["core", "python"]),
    ("apps", &["core"]),
    ("games", &["core", "python"]),
    ("web", &["core", "python"]),
    // Puzzles and their scorers, drawn as a Python package draws them.
    ("puzzles", &["core", "python"]),
    ("mcp", &["core", "sandbox"]),
    ("ors", &["core"]),
    // Instances of software engineering and how they are graded: texts in, texts out.
    ("swe", &["parquet"]),
    // Tasks of repair, made of packages: what runs their tests, and no episode.
    ("repair", &["core", "sandbox", "swe"]),
    (
        "tasks",
        &[
            "core", "sandbox", "answers", "bfcl", "ors", "parquet", "python", "search", "shop",
            "sql", "swe", "tau2",
        ],
    ),
    (
        "envs",
        &[
            "core", "sandbox", "tasks", "answers", "apps", "puzzles", "bfcl", "games", "crafting",
            "grids", "mcp", "ors", "python", "quests", "search", "shop", "sql", "swe", "tau2",
            "web",
        ],
    ),
    ("agent", &["core", "parsers", "sandbox", "swe", "tasks", "envs"]),
    // Small learned functions beside the policy: features in, numbers out.
    ("predictors", &["core"]),
    // Learning: no environments.
    ("ops", &[]),
    ("text", &["core"]),
    ("policy", &["core", "ops", "text"]),
    ("trainer", &["core", "policy"]),
    // The trained model, and corpora, for others: HTTP stays out of the crates that learn.
    ("serve", &["core", "policy", "search"]),
    // The facade.
    (
        ".",
        &[
            "core",
            "parsers",
            "python",
            "bfcl",
            "tau2",
            "answers",
            "sql",
            "search",
            "mcp",
            "sandbox",
            "swe",
            "repair",
            "tasks",
            "envs",
            "agent",
            "policy",
            "predictors",
            "trainer",
            "serve",
        ],
    ),
    // A program of a user's, who knows the facade alone.
    ("examples/own-gym", &[]),
];

/// The only places where `unsafe` may stand: kernels and their launches, the system calls of the programs that run
/// inside sandboxes, and the loading of machine code that was compiled before.
const UNSAFE: &[&str] = &[
    "ops/src/",
    "policy/src/cuda/cuda_driver.rs",
    "policy/src/cuda/device.rs",
    "policy/src/cuda/driver.rs",
    "policy/src/cuda/emulator.rs",
    "policy/src/cuda/library.rs",
    "policy/src/cuda/nccl.rs",
    "policy/src/cuda/nccl_library.rs",
    "policy/src/cuda/operations/",
    "policy/src/cuda/products.rs",
    "policy/src/cuda/recording.rs",
    "policy/src/cuda/step.rs",
    "sandbox/src/backends/docker/helper/sys.rs",
    "sandbox/src/backends/local/helper/sys.rs",
    "sandbox/src/backends/wasm/precompiled.rs",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn manifest(krate: &str) -> toml::Table {
    let path = root().join(krate).join("Cargo.toml");
    toml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The crates of this workspace that a crate names, in whatever kind of dependency.
fn edges(krate: &str) -> BTreeSet<String> {
    fn collect(table: &toml::Table, found: &mut BTreeSet<String>) {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            if ["dependencies", "dev-dependencies", "build-dependencies"].contains(&key.as_str()) {
                let package = |(name, value): (&String, &toml::Value)| {
                    let renamed = value.get("package").and_then(toml::Value::as_str);
                    renamed.unwrap_or(name).strip_prefix("spar-").map(str::to_owned)
                };
                found.extend(inner.iter().filter_map(package));
            } else if key == "target" {
                inner.values().filter_map(toml::Value::as_table).for_each(|t| collect(t, found));
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&manifest(krate), &mut found);
    // No code: only what dependencies are compiled with.
    found.remove("features");
    found
}

/// What cargo would compile of others for a selection of crates, along these edges: packages with their features.
fn compiled(edges: &str, selection: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}"])
        .args(["--edges", edges])
        .args(selection)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
    lines.filter(|line| !line.starts_with("spar")).collect()
}

#[test]
fn a_crate_alone_compiles_its_dependencies_as_the_workspace_does() {
    // And their tests.
    let edges = "normal,build,dev";
    let all = compiled(edges, &["--workspace"]);
    for (krate, _) in
        ALLOWED.iter().filter(|(krate, _)| !["features", ".", "examples/own-gym"].contains(krate))
    {
        let package = format!("spar-{krate}");
        let alone = compiled(edges, &["--package", &package]);
        let anew: Vec<_> = alone.difference(&all).collect();
        assert!(anew.is_empty(), "`{package}` alone: add to features/Cargo.toml {anew:#?}");
    }
}

/// Crates that have features, with one of them each: what `scripts/ci.sh` checks, where a dependency with other
/// features would be checked anew.
#[test]
fn crates_with_some_of_their_features_compile_their_dependencies_as_the_workspace_does() {
    // Procedural macros are compiled with features of their own, which would hide those of the same crates here.
    let edges = "normal,no-proc-macro";
    let all = compiled(edges, &["--workspace"]);
    let crates = ["spar-policy", "spar-predictors", "spar-sandbox"].map(|name| ["--package", name]);
    for features in [
        "",
        "spar-policy/cuda,spar-sandbox/docker",
        "spar-policy/emulator,spar-sandbox/wasm",
        "spar-sandbox/local",
    ] {
        let with = ["--no-default-features", "--features", features];
        let alone = compiled(edges, &[crates.as_flattened(), &with].concat());
        let anew: Vec<_> = alone.difference(&all).collect();
        assert!(anew.is_empty(), "with `{features}` alone: add to features/Cargo.toml {anew:#?}");
    }
}

#[test]
fn crates_depend_only_on_what_the_design_allows() {
    for (krate, allowed) in ALLOWED {
        let allowed: BTreeSet<String> = allowed.iter().map(ToString::to_string).collect();
        let surplus: Vec<_> = edges(krate).difference(&allowed).cloned().collect();
        assert!(surplus.is_empty(), "`{krate}` may not depend on {surplus:?}");
    }
}

#[test]
fn every_crate_of_the_workspace_has_its_place_in_the_design() {
    let manifest = manifest(".");
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
    let known = ALLOWED.iter().map(|(krate, _)| *krate).filter(|krate| *krate != ".").collect();
    assert_eq!(members, known);
    // A bare `cargo test` tests the default members.
    let default = manifest["workspace"]["default-members"].as_array().unwrap();
    assert_eq!(default.len(), members.len() + 1);
}

#[test]
fn acting_and_learning_meet_only_in_core() {
    for (one, others) in [
        (
            ["sandbox", "tasks", "envs", "agent"].as_slice(),
            ["ops", "text", "policy", "predictors", "trainer", "serve"].as_slice(),
        ),
        (
            &["ops", "text", "policy", "predictors", "trainer", "serve"],
            &["sandbox", "tasks", "envs", "agent"],
        ),
    ] {
        for krate in one {
            let found = edges(krate);
            assert!(others.iter().all(|other| !found.contains(*other)), "{krate}: {found:?}");
        }
    }
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let mut files = Vec::new();
    for (krate, _) in ALLOWED {
        for part in ["src", "tests", "benches", "examples"] {
            rust_files(&root().join(krate).join(part), &mut files);
        }
    }
    assert!(files.len() > 100);
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let name = name.trim_start_matches("./");
        if UNSAFE.iter().any(|place| name.starts_with(place)) || name == "tests/it/architecture.rs"
        {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let is_unsafe = |line: &str| {
            ["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe_code", "expect(unsafe_code"]
                .iter()
                .any(|part| line.contains(part))
        };
        if code.into_iter().any(is_unsafe) {
            found.push(name.to_owned());
        }
    }
    found.sort();
    assert!(found.is_empty(), "unsafe code stands in {found:?}");
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
