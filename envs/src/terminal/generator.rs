//! Small chores from seeds.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use spar_core::Seed;
use spar_tasks::{TaskFile, TerminalTask, VERIFIER_FOLDER};

/// What kind of chore a generated task is.
///
/// All of them can be done with `sh` and the plainest tools, and none is done before it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Count the lines with a word.
    Count,
    /// Replace a word by another one.
    Replace,
    /// Move the files with one ending into a folder.
    Move,
    /// Sort lines and drop repeats.
    Sort,
    /// Find the file that holds a word.
    Find,
    /// Keep the last lines.
    Last,
    /// Take a column out of a table.
    Column,
}

impl TaskKind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Count, Self::Replace, Self::Move, Self::Sort, Self::Find, Self::Last, Self::Column];

    /// Its name, as parameters and tags have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Replace => "replace",
            Self::Move => "move",
            Self::Sort => "sort",
            Self::Find => "find",
            Self::Last => "last",
            Self::Column => "column",
        }
    }

    /// The kind of a seed's task, where none is asked for.
    pub(super) fn of_seed(seed: u64) -> Self {
        Self::draw(&mut rng_of(seed))
    }

    fn draw(rng: &mut impl Rng) -> Self {
        Self::ALL[rng.random_range(0..Self::ALL.len())]
    }
}

/// None of them is a part of another one, so that searching finds whole words.
const WORDS: [&str; 24] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper",
    "kelp", "lemon", "maple", "nectar", "olive", "pebble", "quartz", "raven", "saffron", "tulip",
    "umber", "violet", "willow", "zinc",
];
const FILES: [&str; 8] =
    ["notes", "list", "words", "items", "report", "journal", "draft", "record"];
const RESULTS: [&str; 4] = ["answer", "result", "found", "output"];
const FOLDERS: [&str; 4] = ["archive", "sorted", "old", "keep"];
const ENDINGS: [&str; 4] = ["log", "csv", "bak", "tmp"];

/// Seconds that a command of a chore may take.
const COMMAND_SECS: u64 = 10;
/// Bytes that are shown of what it writes.
const OUTPUT_LIMIT_BYTES: usize = 1000;

/// The task of a seed; of any kind where none is given.
pub fn generate(seed: u64, kind: Option<TaskKind>) -> (TaskKind, TerminalTask) {
    let mut rng = rng_of(seed);
    let drawn = TaskKind::draw(&mut rng);
    let kind = kind.unwrap_or(drawn);
    let mut task = match kind {
        TaskKind::Count => count(&mut rng),
        TaskKind::Replace => replace(&mut rng),
        TaskKind::Move => relocate(&mut rng),
        TaskKind::Sort => sort(&mut rng),
        TaskKind::Find => find(&mut rng),
        TaskKind::Last => last(&mut rng),
        TaskKind::Column => column(&mut rng),
    };
    (task.command_secs, task.output_limit_bytes) = (COMMAND_SECS, OUTPUT_LIMIT_BYTES);
    // One sandbox suits all of them.
    (task.create_secs, task.setup_secs, task.verifier.verify_secs) = (120, 60, 60);
    (kind, task)
}

fn rng_of(seed: u64) -> impl Rng {
    Seed::from_u64(seed).derive("terminal", 0).rng()
}

fn count(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 5);
    let (file, result) = (named(rng, &FILES, "txt"), named(rng, &RESULTS, "txt"));
    let wanted = words[0];
    let mut lines = random_lines(rng, &words, 6..15);
    lines.push(wanted.to_owned());
    lines.shuffle(rng);
    let number = lines.iter().filter(|line| line.contains(wanted)).count();
    judged_by_result(
        format!(
            "Count the lines of {file} that hold the word {wanted} and write the number into {result}."
        ),
        [(file.clone(), text(&lines))],
        &result,
        &format!("{number}\n"),
        [format!("grep -c {wanted} {file} > {result}")],
    )
}

fn replace(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 5);
    let (old, new) = (words[0], words[1]);
    let file = named(rng, &FILES, "txt");
    let mut lines = random_lines(rng, &[old, words[2], words[3], words[4]], 3..8);
    lines.push(format!("{old} {}", words[2]));
    lines.shuffle(rng);
    let before = text(&lines);
    let after = before.replace(old, new);
    judged_by_result(
        format!("Replace every {old} by {new} in {file}."),
        [(file.clone(), before)],
        &file,
        &after,
        [format!("sed 's/{old}/{new}/g' {file} > changed && mv changed {file}")],
    )
}

fn relocate(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 6);
    let endings = pick(rng, &ENDINGS, 2);
    let (ending, folder) = (endings[0], FOLDERS.choose(rng).expect("there are some"));
    let num_moved = rng.random_range(2..4);
    let mut files = Vec::new();
    let mut checks = Vec::new();
    for (index, name) in words.iter().enumerate() {
        let is_moved = index < num_moved;
        let file = format!("{name}.{}", if is_moved { ending } else { endings[1] });
        checks.push(if is_moved {
            format!("[ -f {folder}/{file} ] && [ ! -e {file} ]")
        } else {
            format!("[ -f {file} ]")
        });
        files.push((file, format!("{name}\n")));
    }
    let mut task = TerminalTask::new(
        format!("Move all files whose names end in .{ending} into a new folder {folder}."),
        checks.join(" && "),
    );
    task.files = files.into_iter().map(|(path, text)| (path, TaskFile::Text(text))).collect();
    task.solution = vec![format!("mkdir {folder} && mv *.{ending} {folder}")];
    task
}

fn sort(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 7);
    let (file, result) = (named(rng, &FILES, "txt"), named(rng, &RESULTS, "txt"));
    let mut lines: Vec<String> = words.iter().map(ToString::to_string).collect();
    // Repeats, so that sorting alone is not enough, and at least two lines out of order.
    lines.extend(pick(rng, &words, 3).into_iter().map(str::to_owned));
    lines.shuffle(rng);
    lines.insert(0, words.iter().max().expect("there are some").to_string());
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    sorted.dedup();
    judged_by_result(
        format!("Write the lines of {file} into {result}, sorted and without repeats."),
        [(file.clone(), text(&lines))],
        &result,
        &text(&sorted),
        [format!("sort -u {file} > {result}")],
    )
}

fn find(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 6);
    let (wanted, others) = (words[0], &words[1..]);
    let names = pick(rng, &FILES, 4);
    let holder = rng.random_range(0..names.len());
    let files: Vec<(String, String)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let mut lines = random_lines(rng, others, 2..6);
            if index == holder {
                lines.push(wanted.to_owned());
                lines.shuffle(rng);
            }
            (format!("{name}.txt"), text(&lines))
        })
        .collect();
    let result = RESULTS.choose(rng).expect("there are some");
    let found = files[holder].0.clone();
    judged_by_result(
        format!(
            "One of the files whose names end in .txt holds the word {wanted}. Write its name into \
             {result}."
        ),
        files,
        result,
        &format!("{found}\n"),
        [format!("grep -l {wanted} *.txt"), format!("echo {found} > {result}")],
    )
}

fn last(rng: &mut impl Rng) -> TerminalTask {
    let words = pick(rng, &WORDS, 6);
    let (file, result) = (named(rng, &FILES, "txt"), named(rng, &RESULTS, "txt"));
    let number = rng.random_range(2..6);
    let lines = random_lines(rng, &words, 7..14);
    judged_by_result(
        format!("Write the last {number} lines of {file} into {result}."),
        [(file.clone(), text(&lines))],
        &result,
        &text(&lines[lines.len() - number..]),
        [format!("tail -n {number} {file} > {result}")],
    )
}

fn column(rng: &mut impl Rng) -> TerminalTask {
    let (file, result) = (named(rng, &FILES, "csv"), named(rng, &RESULTS, "txt"));
    let number = rng.random_range(1..4);
    let rows: Vec<Vec<&str>> = (0..rng.random_range(4..9)).map(|_| pick(rng, &WORDS, 3)).collect();
    let table: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
    let wanted: Vec<String> = rows.iter().map(|row| row[number - 1].to_owned()).collect();
    judged_by_result(
        format!(
            "The columns of {file} are divided by commas. Write column {number} into {result}."
        ),
        [(file.clone(), text(&table))],
        &result,
        &text(&wanted),
        [format!("cut -d , -f {number} {file} > {result}")],
    )
}

/// A task that is solved when the file `result` holds `expected`.
fn judged_by_result(
    instruction: String,
    files: impl IntoIterator<Item = (String, String)>,
    result: &str,
    expected: &str,
    solution: impl IntoIterator<Item = String>,
) -> TerminalTask {
    // A link could lead to what is expected.
    let verifier = format!(
        "[ ! -L {result} ] && [ \"$(cat {result})\" = \"$(cat {VERIFIER_FOLDER}/expected)\" ]"
    );
    let mut task = TerminalTask::new(instruction, verifier);
    task.files = files.into_iter().map(|(path, text)| (path, TaskFile::Text(text))).collect();
    task.verifier.files = [("expected".to_owned(), expected.into())].into();
    task.solution = solution.into_iter().collect();
    task
}

fn pick<'a>(rng: &mut impl Rng, from: &[&'a str], count: usize) -> Vec<&'a str> {
    let mut picked: Vec<&str> = from.sample(rng, count).copied().collect();
    // Samples come in an order that is not random in itself.
    picked.shuffle(rng);
    picked
}

fn named(rng: &mut impl Rng, from: &[&str], ending: &str) -> String {
    format!("{}.{ending}", from.choose(rng).expect("there are some"))
}

/// Lines of one to three words.
fn random_lines(rng: &mut impl Rng, words: &[&str], count: std::ops::Range<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..rng.random_range(count) {
        let mut line = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            line.push(*words.choose(rng).expect("there are some"));
        }
        lines.push(line.join(" "));
    }
    lines
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_tasks_and_all_kinds_occur() {
        let mut found = std::collections::HashSet::new();
        for seed in 0..200 {
            let (kind, task) = generate(seed, None);
            assert_eq!((kind, task.clone()), generate(seed, None));
            assert_eq!(TaskKind::of_seed(seed), kind);
            assert_eq!(task.problems(), Vec::<String>::new());
            assert!(!task.solution.is_empty());
            found.insert(kind);
        }
        assert_eq!(found.len(), TaskKind::ALL.len());
    }

    #[test]
    fn no_word_is_a_part_of_another() {
        let all: Vec<&str> = [&WORDS[..], &FILES, &RESULTS, &FOLDERS, &ENDINGS].concat();
        for (index, one) in all.iter().enumerate() {
            let others = all.iter().enumerate().filter(|(other, _)| *other != index);
            assert!(others.clone().all(|(_, other)| !other.contains(one)), "{one}");
        }
    }

    #[test]
    fn tasks_of_every_kind() {
        let tasks: Vec<_> = TaskKind::ALL
            .iter()
            .map(|kind| {
                let task = generate(7, Some(*kind)).1;
                format!(
                    "{}: {}\n  {}\n  {}\n",
                    kind.name(),
                    task.instruction,
                    task.solution.join("; "),
                    task.verifier.command
                )
            })
            .collect();
        insta::assert_snapshot!(tasks.concat());
    }
}
