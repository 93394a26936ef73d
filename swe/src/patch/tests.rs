use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;

fn parse(patch: &str) -> Result<Patch, PatchError> {
    Patch::parse(patch.as_bytes(), &PatchLimits::default())
}

/// Lines as `git apply --numstat -z` prints them.
fn numstat(patch: &Patch) -> String {
    let mut lines = Vec::new();
    for change in &patch.files {
        let counts = change
            .line_counts()
            .map_or("-\t-".to_owned(), |(added, removed)| format!("{added}\t{removed}"));
        lines.extend(counts.bytes());
        lines.push(b'\t');
        lines.extend(change.path().as_bytes());
        lines.push(0);
    }
    String::from_utf8_lossy(&lines).into_owned()
}

fn git(folder: &Path, args: &[&str]) -> std::process::Output {
    Command::new("git")
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "protocol.file.allow=always",
            "-c",
            "core.autocrlf=false",
        ])
        .args(args)
        .output()
        .unwrap()
}

/// Whether there is a git to ask; says so where there is none.
fn has_git() -> bool {
    let has =
        Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("not run: there is no git");
    }
    has
}

#[test]
fn all_kinds_of_changes_are_read() {
    let patch = "some words\n\
        diff --git a/a.py b/a.py\nindex 1111111..2222222 100755\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@ def f():\n x\n-a\n+b\n+c\n\\ No newline at end of file\n\
        diff --git a/new file b/new file\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/new file\t\n@@ -0,0 +1 @@\n+a\n\
        diff --git a/gone b/gone\ndeleted file mode 100644\nindex 1111111..0000000\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
        diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n\
        diff --git a/from b/to\nsimilarity index 100%\ncopy from from\ncopy to to\n\
        diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n\
        diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100644\nindex 0000000..e69de29\n\
        diff --git a/p.png b/p.png\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 4\nLcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n\n\
        diff --git a/q.png b/q.png\nindex 1111111..2222222 100644\nBinary files a/q.png and b/q.png differ\n\
        diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n\
        diff --git a/link b/link\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+a.py\n\\ No newline at end of file\n";
    let found = parse(patch).unwrap();
    let kinds: Vec<(Kind, String)> =
        found.files.iter().map(|change| (change.kind, change.path().to_string())).collect();
    let expected = [
        (Kind::Modified, "a.py"),
        (Kind::Added, "new file"),
        (Kind::Deleted, "gone"),
        (Kind::Renamed, "new name"),
        (Kind::Copied, "to"),
        (Kind::Modified, "mode"),
        (Kind::Added, "ü"),
        (Kind::Modified, "p.png"),
        (Kind::Modified, "q.png"),
        (Kind::Modified, "sub"),
        (Kind::Added, "link"),
    ];
    assert_eq!(kinds, expected.map(|(kind, path)| (kind, path.to_owned())));
    assert_eq!(found.files[0].line_counts(), Some((2, 1)));
    assert_eq!(
        (found.files[0].old_mode, found.files[5].new_mode),
        (Some(0o100755), Some(0o100755))
    );
    assert_eq!(
        found.files[7].body,
        Body::Binary(Binary::Data { bytes: 4, is_delta: false, has_reverse: true })
    );
    assert_eq!(found.files[8].body, Body::Binary(Binary::Differs));
    assert!(found.files[9].is_submodule() && found.files[10].is_symbolic_link());
    assert_eq!(found.unsafe_changes(patch.as_bytes()), []);
    // Together the spans are the patch without the words before it.
    let bytes: usize = found.files.iter().map(|change| change.span.len()).sum();
    assert_eq!(bytes, patch.len() - "some words\n".len());
}

#[test]
fn carriage_returns_belong_to_the_lines() {
    let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\r\n-a\r\n+b\r\n";
    let found = parse(patch).unwrap();
    let Body::Text(hunks) = &found.files[0].body else { panic!("no text") };
    assert!(patch[hunks[0].span.clone()].ends_with("+b\r\n"));
}

#[test]
fn what_git_calls_corrupt_is_refused() {
    let head = "diff --git a/a b/a\n--- a/a\n+++ b/a\n";
    for (text, expected) in [
        (format!("{head}@@ -1,2 +1,2 @@\n x\n"), PatchError::CorruptHunk { line: 6 }),
        (format!("{head}@@ -1 +1 @@\n-a\n+b"), PatchError::CorruptHunk { line: 6 }),
        (format!("{head}@@ -1 +1 @@\n x\n"), PatchError::CorruptHunk { line: 4 }),
        (format!("{head}@@ -1 +1 @@\n-a\n-b\n"), PatchError::CorruptHunk { line: 6 }),
        (format!("{head}@@ -1 +1 @@\n?\n"), PatchError::CorruptHunk { line: 5 }),
        (format!("{head}@@ -x +1 @@\n+a\n"), PatchError::BadHunk { line: 4 }),
        ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), PatchError::HunkWithoutFile { line: 1 }),
        ("diff --git a/a b/b\nold mode 100644\n".to_owned(), PatchError::NoName { line: 1 }),
        ("diff --git a/a b/a\nold mode 9\n".to_owned(), PatchError::BadMode { line: 2 }),
        (
            "diff --git a/a b/a\nindex 1..2\nGIT binary patch\nliteral x\n".to_owned(),
            PatchError::CorruptBinary { line: 4 },
        ),
        (
            "diff --git a/a b/a\nindex 1..2\nGIT binary patch\nliteral 4\nZZ\n\n".to_owned(),
            PatchError::CorruptBinary { line: 5 },
        ),
    ] {
        assert_eq!(parse(&text).unwrap_err(), expected, "{text}");
    }
    let text = "diff --git a/a b/a\n--- a/a\n+++ b/c\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(parse(text).unwrap().files[0].path().to_string(), "c");
    let text = "diff --git a/a b/a\nnew file mode 100644\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+b\n";
    assert!(
        matches!(parse(text), Err(PatchError::Inconsistent { line: 3, .. })),
        "{:?}",
        parse(text)
    );
    assert!(parse("no patch at all\n").unwrap().is_empty());
    let small = PatchLimits { bytes: 10, files: 1 };
    assert_eq!(
        Patch::parse(b"01234567890", &small),
        Err(PatchError::TooLarge { bytes: 11, limit: 10 })
    );
    let two = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n".repeat(2);
    let one_file = PatchLimits { files: 1, ..PatchLimits::default() };
    assert_eq!(Patch::parse(two.as_bytes(), &one_file), Err(PatchError::TooManyFiles { limit: 1 }));
}

#[test]
fn patches_that_reach_out_of_a_repository_are_told() {
    let change = |path: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n");
    for path in [
        "../x",
        "a/../../x",
        ".git/config",
        "a/.GIT/x",
        "a/.git. /x",
        "git~1/x",
        "a/./b",
        ".g\u{200c}it/x",
        ".git::$X/y",
    ] {
        let patch = change(path);
        let found = parse(&patch).unwrap();
        assert!(
            matches!(found.unsafe_changes(patch.as_bytes())[..], [UnsafeChange::Path { .. }]),
            "{path}: {found:?}"
        );
    }
    for path in ["a/b.py", ".github/x", ".gitignore", "a..b/c", "git/x", ".git2/x"] {
        let patch = change(path);
        assert_eq!(parse(&patch).unwrap().unsafe_changes(patch.as_bytes()), [], "{path}");
    }
    let absolute =
        "diff --git a//etc/x b//etc/x\n--- a//etc/x\n+++ b//etc/x\n@@ -1 +1 @@\n-a\n+b\n";
    assert!(!parse(absolute).unwrap().unsafe_changes(absolute.as_bytes()).is_empty());
    let link = |target: &str| {
        format!(
            "diff --git a/d/l b/d/l\nnew file mode 120000\n--- /dev/null\n+++ b/d/l\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        )
    };
    for (target, is_out) in [
        ("x", false),
        ("../x", false),
        ("../../x", true),
        ("/etc/passwd", true),
        ("a/../../../x", true),
    ] {
        let patch = link(target);
        let found = parse(&patch).unwrap().unsafe_changes(patch.as_bytes());
        assert_eq!(
            matches!(found[..], [UnsafeChange::LinkOut { .. }]),
            is_out,
            "{target}: {found:?}"
        );
    }
    let behind = format!("{}{}", link("x"), change("d/l/y"));
    let found = parse(&behind).unwrap().unsafe_changes(behind.as_bytes());
    assert!(matches!(found[..], [UnsafeChange::BehindLink { .. }]), "{found:?}");
    let mode = "diff --git a/a b/a\nold mode 100644\nnew mode 060000\n";
    let found = parse(mode).unwrap().unsafe_changes(mode.as_bytes());
    assert!(matches!(found[..], [UnsafeChange::Mode { mode: 0o060000, .. }]), "{found:?}");
}

#[test]
fn directives_and_modified_files_are_the_harness_s() {
    let patch = "diff --git a/tests/a/test_x.py b/tests/a/test_x.py\n--- a/tests/a/test_x.py\n+++ b/tests/a/test_x.py\n@@ -1 +1 @@\n-a\n+b\n\
        diff --git a/tests/data.json b/tests/data.json\n--- a/tests/data.json\n+++ b/tests/data.json\n@@ -1 +1 @@\n-a\n+b\n\
        diff --git a/tests/new.py b/tests/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/new.py\n@@ -0,0 +1 @@\n+b\n";
    assert_eq!(test_directives("a/b", patch), ["tests/a/test_x.py", "tests/new.py"]);
    assert_eq!(test_directives("django/django", patch), ["a.test_x", "new"]);
    assert_eq!(test_directives("swe-bench/humaneval", patch), ["test.py"]);
    assert_eq!(modified_files(patch).unwrap(), ["tests/a/test_x.py", "tests/data.json"]);
    assert_eq!(modified_files(""), Some(vec![]));
    assert_eq!(modified_files("@@ -1 +1 @@\n-a\n+b\n"), None);
    assert_eq!(modified_files("--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-a\n+b\n"), None);
}

/// What a file of a generated repository is.
#[derive(Debug, Clone)]
enum Entry {
    Text(Vec<String>, &'static str, bool),
    Bytes(Vec<u8>),
    Link(String),
}

fn entry() -> impl Strategy<Value = Entry> {
    let line = prop::sample::select(vec![
        "",
        "a",
        "b",
        " c",
        "-d",
        "+e",
        "@@ -1 +1 @@",
        "diff --git a/x b/x",
        "--- a/q",
        "\\ No",
    ]);
    let text = (
        prop::collection::vec(line.prop_map(str::to_owned), 0..12),
        prop::sample::select(vec!["\n", "\r\n"]),
        any::<bool>(),
    );
    prop_oneof![
        6 => text.prop_map(|(lines, end, ends)| Entry::Text(lines, end, ends)),
        2 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|mut bytes| { bytes.push(0); Entry::Bytes(bytes) }),
        1 => prop::sample::select(vec!["x", "a/b"]).prop_map(|target| Entry::Link(target.to_owned())),
    ]
}

type Tree = std::collections::BTreeMap<&'static str, (Entry, bool)>;

fn tree() -> impl Strategy<Value = Tree> {
    let names = vec!["a.py", "b b.txt", "dir/c", "dir/ü", "dir/t\tab", "dir/q\"uote", "z"];
    prop::collection::btree_map(prop::sample::select(names), (entry(), any::<bool>()), 0..6)
}

#[cfg(unix)]
fn write(folder: &Path, tree: &Tree) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name() != ".git" {
            match entry.file_type().unwrap().is_dir() {
                true => std::fs::remove_dir_all(entry.path()).unwrap(),
                false => std::fs::remove_file(entry.path()).unwrap(),
            }
        }
    }
    for (name, (entry, is_program)) in tree {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Entry::Text(lines, end, ends) => {
                let mut text = lines.join(end);
                if *ends {
                    text.push_str(end);
                }
                std::fs::write(&path, text).unwrap();
            }
            Entry::Bytes(bytes) => std::fs::write(&path, bytes).unwrap(),
            Entry::Link(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
        }
        if !matches!(entry, Entry::Link(_)) {
            let mode = if *is_program { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

#[cfg(unix)]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Diffs that git makes of trees are read as git reads them, in each of its ways of writing them.
    #[test]
    fn what_git_writes_is_read_as_git_reads_it(before in tree(), after in tree()) {
        if has_git() {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            git(root, &["init", "-q"]);
            write(root, &before);
            git(root, &["add", "-A"]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "before"]);
            write(root, &after);
            git(root, &["add", "-A"]);
            for options in [&["--binary", "-M", "-C"][..], &["--binary", "--no-renames", "-U0"], &["-M10%", "--full-index"]] {
                let diff = git(root, &[&["diff", "--cached"], options].concat()).stdout;
                std::fs::write(root.join(".git/p.diff"), &diff).unwrap();
                let theirs = git(root, &["apply", "--numstat", "-z", "--unidiff-zero", ".git/p.diff"]);
                let ours = Patch::parse(&diff, &PatchLimits::default());
                let shown = String::from_utf8_lossy(&diff);
                match ours {
                    Ok(ours) if ours.is_empty() => prop_assert!(diff.is_empty(), "{}", shown),
                    Ok(ours) => {
                        prop_assert!(theirs.status.success(), "{}\n{:?}", shown, theirs);
                        prop_assert_eq!(
                            numstat(&ours), String::from_utf8_lossy(&theirs.stdout), "{}", shown
                        );
                        prop_assert_eq!(ours.unsafe_changes(&diff), vec![]);
                    }
                    Err(error) => prop_assert!(!theirs.status.success(), "{}: {}", error, shown),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Patch::parse(&bytes, &PatchLimits::default()).map(|patch| patch.unsafe_changes(&bytes));
    }

    #[test]
    fn lines_of_patches_in_any_order_do_no_harm(lines in prop::collection::vec(prop::sample::select(vec![
        "diff --git a/a b/a\n", "diff --git \"a/a\" b/a\n", "diff --git a/a\n", "--- a/a\n", "+++ b/a\n", "--- /dev/null\n",
        "+++ /dev/null\n", "@@ -1 +1 @@\n", "@@ -0,0 +1,2 @@ x\n", "@@ -18446744073709551615,1 +1 @@\n", " a\n", "+a\n", "-a\n", "\n",
        "\\ No newline at end of file\n", "new file mode 100644\n", "deleted file mode 100644\n", "old mode 120000\n", "new mode 120000\n",
        "rename from a\n", "rename to b\n", "copy from \n", "copy to c\n", "similarity index 90%\n", "index 1..2 100644\n",
        "GIT binary patch\n", "literal 1\n", "delta 4\n", "zcmV\n", "HcmV?d00001\n", "Binary files a/a and b/a differ\n", "words\n", "\"\n",
    ]), 0..30)) {
        let text = lines.concat();
        let _ = parse(&text).map(|patch| patch.unsafe_changes(text.as_bytes()));
        let _ = (modified_files(&text), git_files(&text), test_directives("django/django", &text));
    }
}
