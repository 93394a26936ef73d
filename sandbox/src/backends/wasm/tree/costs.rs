//! Whether a tree charges what it costs: each way of writing little that costs much is tried in a
//! process of its own, whose memory must not grow by more than the limit.

use std::fs;
use std::process::{Child, Command, Stdio};

use super::*;

/// The tree's limit in bytes.
const LIMIT: u64 = 3 << 20;

/// Bytes that the process itself may take meanwhile.
const SLACK: u64 = 512 << 10;

/// Steps after which a tree that still takes more has charged too little.
const MOST_STEPS: u64 = LIMIT / 48;

const ATTACK: &str = "SPAR_TREE_COSTS_ATTACK";

type Step = fn(&mut Tree, u64, &mut Node) -> Result<(), Errno>;

/// One step each; the node is what the step before left, at first the root.
const ATTACKS: &[(&str, Step)] = &[
    ("a byte in every piece of a file", |tree, step, file| {
        if step == 0 {
            *file = tree.make_file(ROOT, "holes", 0o644, 0)?;
        }
        tree.write_at(*file, step << 16, b"x", 0).map(drop)
    }),
    ("empty files", |tree, step, _| tree.make_file(ROOT, &format!("{step}"), 0o644, 0).map(drop)),
    ("empty files, last names first", |tree, step, _| {
        tree.make_file(ROOT, &format!("{:07}", 9_999_999 - step), 0o644, 0).map(drop)
    }),
    ("files of one byte", |tree, step, _| {
        let file = tree.make_file(ROOT, &format!("{step}"), 0o644, 0)?;
        tree.write_at(file, 0, b"x", 0).map(drop)
    }),
    ("long names", |tree, step, _| {
        tree.make_file(ROOT, &format!("{step:0255}"), 0o644, 0).map(drop)
    }),
    ("a folder in a folder in a folder", |tree, _, folder| {
        *folder = tree.make_folder(*folder, "d", 0)?;
        Ok(())
    }),
    ("a folder for each file", |tree, step, _| {
        let folder = tree.make_folder(ROOT, &format!("{step}"), 0)?;
        tree.make_file(folder, "f", 0o644, 0).map(drop)
    }),
    ("hard links to one file", |tree, step, file| {
        if step == 0 {
            *file = tree.make_file(ROOT, "file", 0o644, 0)?;
        }
        tree.make_hard_link(*file, ROOT, &format!("{step}"), 0)
    }),
    ("short links", |tree, step, _| tree.make_link("a", ROOT, &format!("{step}"), 0).map(drop)),
    ("pieces that grow by a byte", |tree, step, file| {
        if step % 2 == 0 {
            *file = tree.make_file(ROOT, &format!("{step}"), 0o644, 0)?;
            return tree.write_at(*file, 0, &[1; (32 << 10) + 1], 0).map(drop);
        }
        tree.write_at(*file, (32 << 10) + 1, b"x", 0).map(drop)
    }),
    ("pieces that were cut", |tree, step, _| {
        let file = tree.make_file(ROOT, &format!("{step}"), 0o644, 0)?;
        tree.write_at(file, 0, &[1; 8 << 10], 0)?;
        tree.set_len(file, 1, 0)
    }),
    ("names that moved", |tree, step, _| {
        tree.make_file(ROOT, "f", 0o644, 0)?;
        tree.rename((ROOT, "f"), (ROOT, &format!("tmp/{step}")), 0)
    }),
];

#[test]
fn no_way_of_writing_costs_more_than_it_is_charged() {
    if let Ok(name) = std::env::var(ATTACK) {
        return attack(&name);
    }
    let start = |name: &str| -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let own = "backends::wasm::tree::costs::no_way_of_writing_costs_more_than_it_is_charged";
        command.args(["--exact", own, "--nocapture"]).env(ATTACK, name);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = ATTACKS.iter().map(|(name, _)| (name, start(name))).collect();
    for (name, child) in running {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}: {text}");
        let line = text.lines().find_map(|line| line.split_once("grew by "));
        let (_, rest) = line.unwrap_or_else(|| panic!("{name}: {text}"));
        let grown: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(grown <= LIMIT + SLACK, "{name}: the process grew by {grown} bytes of {LIMIT}");
    }
}

/// Goes on until the tree takes no more, and says what that cost.
fn attack(name: &str) {
    let (_, step) = ATTACKS.iter().find(|(other, _)| *other == name).unwrap();
    let mut tree = Tree::new(LIMIT);
    let mut node = ROOT;
    let before = resident();
    let refused = (0..MOST_STEPS).find_map(|number| step(&mut tree, number, &mut node).err());
    println!("grew by {} bytes", resident().saturating_sub(before));
    assert!(matches!(refused, None | Some(Errno::NoSpace)), "{refused:?}");
    assert!(tree.used() <= LIMIT);
}

/// Bytes of memory that are this process's own: not those of its program, which it reads as it goes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
