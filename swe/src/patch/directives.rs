//! What an original harness reads out of a test patch: the files that it resets, and those that it hands to the test
//! command. Both are read with its own rules, which are not git's.

use std::sync::LazyLock;

use regex::Regex;

/// Ends of names that no test has, in SWE-bench's list. `csv` has no dot there.
pub const NON_TEST_SUFFIXES: [&str; 11] =
    [".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"];

/// What the test command of SWE-bench's Python repositories is given: the new names of the files that a test patch
/// touches, those without tests left out. For `django/django` they are modules, as its runner takes them.
pub fn test_directives(repo: &str, test_patch: &str) -> Vec<String> {
    if repo == "swe-bench/humaneval" {
        return vec!["test.py".to_owned()];
    }
    static HEADER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"diff --git a/.* b/(.*)").expect("the pattern is valid"));
    let names = HEADER.captures_iter(test_patch).map(|found| found[1].to_owned());
    let tests = names.filter(|name| !NON_TEST_SUFFIXES.iter().any(|end| name.ends_with(end)));
    match repo {
        "django/django" => tests.map(|name| django_module(&name)).collect(),
        _ => tests.collect(),
    }
}

fn django_module(name: &str) -> String {
    let name = name.strip_suffix(".py").unwrap_or(name);
    name.strip_prefix("tests/").unwrap_or(name).replace('/', ".")
}

/// The old names of the files that a patch touches, added ones left out: what an evaluation script checks out again.
///
/// Names are those of `diff --git` lines, or of `---` lines where there are none; names in quotation marks do not count,
/// as they do not in the original, whose reader is `unidiff`. Absent where that reader refuses the patch.
pub fn modified_files(patch: &str) -> Option<Vec<String>> {
    let files = read(patch)?.into_iter();
    Some(files.filter_map(|file| file.source.strip_prefix("a/").map(str::to_owned)).collect())
}

/// The names of all files that a patch touches, as the same reader tells them: the new one of a file that is added or
/// renamed, otherwise the old one. Absent where that reader refuses the patch.
pub fn git_files(patch: &str) -> Option<Vec<String>> {
    let path = |Names { source, target }: Names| {
        let after = |name: &str| name.get(2..).unwrap_or_default().to_owned();
        let is_rename =
            source != DEV_NULL && target != DEV_NULL && after(&source) != after(&target);
        let path = if source == DEV_NULL || is_rename { target } else { source };
        match path
            .strip_prefix(['a', 'b', 'c', 'i', 'o', 'w', '1', '2'])
            .and_then(|rest| rest.strip_prefix('/'))
        {
            Some(rest) => rest.to_owned(),
            None => path,
        }
    };
    Some(read(patch)?.into_iter().map(path).collect())
}

fn read(patch: &str) -> Option<Vec<Names>> {
    let mut headers = Headers::default();
    let mut lines = patch.split_inclusive('\n');
    while let Some(line) = lines.next() {
        match hunk_lengths(line) {
            Some((old, new)) => {
                headers.hunk()?;
                skip_hunk(&mut lines, old, new)?;
            }
            None => headers.line(line)?,
        }
    }
    Some(headers.files)
}

/// The names of a file on both sides, as they are written.
struct Names {
    source: String,
    target: String,
}

/// Where no file is.
const DEV_NULL: &str = "/dev/null";

/// The headers of a patch, read line by line.
#[derive(Default)]
struct Headers {
    files: Vec<Names>,
    /// Whether there is a file that lines belong to.
    has_file: bool,
    /// Hunks of that file.
    hunks: usize,
    /// Whether lines before any hunk are being read.
    in_header: bool,
    /// The name of a `---` line that no file has yet.
    plain_source: Option<String>,
}

impl Headers {
    fn hunk(&mut self) -> Option<()> {
        self.in_header = false;
        self.hunks += 1;
        self.has_file.then_some(())
    }

    fn begin(&mut self, source: String, target: String, in_header: bool) {
        self.files.push(Names { source, target });
        (self.has_file, self.hunks, self.in_header) = (true, 0, in_header);
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let is_git = self.has_file && self.in_header;
        if let Some((source, target)) = git_names(line) {
            self.begin(source, target, true);
        } else if is_mode_line(line, "new file mode ") {
            self.files.last_mut().filter(|_| is_git)?.source = DEV_NULL.to_owned();
        } else if is_mode_line(line, "deleted file mode ") {
            self.files.last_mut().filter(|_| is_git)?.target = DEV_NULL.to_owned();
        } else if let Some(rest) = line.strip_prefix("--- ") {
            self.plain_source = Some(header_name(rest).to_owned());
            self.has_file = is_git;
        } else if let Some(rest) = line.strip_prefix("+++ ") {
            match self.has_file {
                true => return (self.files.last()?.target == header_name(rest)).then_some(()),
                false => {
                    let source = self.plain_source.take()?;
                    self.begin(source, header_name(rest).to_owned(), false);
                }
            }
        } else if line.starts_with("\\ No newline at end of file") || line == "\n" && self.has_file
        {
            return (self.has_file && self.hunks > 0).then_some(());
        } else {
            return self.other(line, is_git);
        }
        Some(())
    }

    /// A line that is none of a header's own: what makes a file binary, or text.
    fn other(&mut self, line: &str, is_git: bool) -> Option<()> {
        static BINARY: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new("^Binary files? ([^\t]+?)(?:\t[\\s0-9:+-]+)?(?: and ([^\t]+?)(?:\t[\\s0-9:+-]+)?)? (?:differ|has changed)")
                .expect("the pattern is valid")
        });
        if let Some(found) = BINARY.captures(line) {
            if !is_git {
                let (source, target) = (
                    found[1].to_owned(),
                    found.get(2).unwrap_or(found.get(1)?).as_str().to_owned(),
                );
                self.files.push(Names { source, target });
            }
            (self.in_header, self.has_file) = (false, false);
        } else if line == "GIT binary patch\n" {
            (self.in_header, self.has_file) = (false, false);
            return is_git.then_some(());
        } else if !self.in_header {
            (self.in_header, self.has_file) = (true, false);
        }
        Some(())
    }
}

/// The names of both sides, as they are written.
fn git_names(line: &str) -> Option<(String, String)> {
    static GIT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("^diff --git (\"?a/[^\t\n]+\"?) (\"?b/[^\t\n]+\"?)")
            .expect("the pattern is valid")
    });
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("^diff --git (.*://[^\t\n]+) (.*://[^\t\n]+)|^diff --git ([^\t\n]+) ([^\t\n]+)")
            .expect("the pattern is valid")
    });
    if let Some(found) = GIT.captures(line) {
        return Some((found[1].to_owned(), found[2].to_owned()));
    }
    let found = OTHER.captures(line)?;
    let group = |first: usize, second: usize| {
        found.get(first).or_else(|| found.get(second)).map(|name| name.as_str().to_owned())
    };
    Some((group(1, 3)?, group(2, 4)?))
}

fn is_mode_line(line: &str, prefix: &str) -> bool {
    let digits = line.strip_prefix(prefix).map(|rest| rest.strip_suffix('\n').unwrap_or(rest));
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn header_name(rest: &str) -> &str {
    rest.split(['\t', '\n']).next().unwrap_or_default()
}

fn hunk_lengths(line: &str) -> Option<(u64, u64)> {
    static HUNK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@").expect("the pattern is valid")
    });
    let found = HUNK.captures(line)?;
    let count = |group: usize| match found.get(group) {
        Some(digits) => digits.as_str().parse().ok(),
        None => Some(1),
    };
    Some((count(2)?, count(4)?))
}

/// Passes the lines of a hunk; absent where it has others than it promises.
fn skip_hunk<'a>(lines: &mut impl Iterator<Item = &'a str>, old: u64, new: u64) -> Option<()> {
    let (mut old_seen, mut new_seen) = (0, 0);
    // The original reads one line even of a hunk without any.
    loop {
        let Some(line) = lines.next() else {
            return (old == 0 && new == 0).then_some(());
        };
        match line.as_bytes().first()? {
            b'+' => new_seen += 1,
            b'-' => old_seen += 1,
            b' ' | b'\n' | b'\r' => (old_seen, new_seen) = (old_seen + 1, new_seen + 1),
            b'\\' => {}
            _ => return None,
        }
        if old_seen > old || new_seen > new {
            return None;
        }
        if old_seen == old && new_seen == new {
            return Some(());
        }
    }
}
