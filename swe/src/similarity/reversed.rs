use crate::python_text::pattern;

const NO_NEWLINE: &str = "\\ No newline at end of file";

/// A patch the other way round, as text: what it adds is removed, and the reverse. Names of files change sides only where one is
/// `/dev/null`; binary files stay as they are. Text that belongs to no hunk and is no header stays too.
pub fn reversed_patch(patch: &str) -> String {
    let mut reversed = String::with_capacity(patch.len());
    let (mut left, mut right) = (0u64, 0u64);
    // Lines of the run of changes under way: those that are removed now, and those that are added.
    let (mut removed, mut added) = (String::new(), String::new());
    let mut last_was_added = false;
    let mut source: Option<&str> = None;
    for line in patch.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        if bare == NO_NEWLINE && !(removed.is_empty() && added.is_empty()) {
            if last_was_added {
                added.push_str(line)
            } else {
                removed.push_str(line)
            }
            continue;
        }
        if left > 0 || right > 0 {
            let (sign, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
            match sign {
                "+" => {
                    removed.push('-');
                    removed.push_str(rest);
                    (right, last_was_added) = (right.saturating_sub(1), false);
                }
                "-" => {
                    added.push('+');
                    added.push_str(rest);
                    (left, last_was_added) = (left.saturating_sub(1), true);
                }
                _ => {
                    reversed.extend([removed.as_str(), added.as_str(), line]);
                    removed.clear();
                    added.clear();
                    (left, right) = (left.saturating_sub(1), right.saturating_sub(1));
                }
            }
            continue;
        }
        reversed.extend([removed.as_str(), added.as_str()]);
        removed.clear();
        added.clear();
        if let Some(from) = source.take_if(|_| !line.starts_with("+++ ")) {
            // It was no header after all.
            reversed.extend(["--- ", from]);
        }
        let hunk = pattern!(r"^@@ -(\d+(?:,\d+)?) \+(\d+(?:,\d+)?) @@(.*)");
        if let Some(groups) = hunk.captures(bare) {
            let count = |range: &str| match range.split_once(',') {
                Some((_, count)) => count.parse().unwrap_or(0),
                None => 1,
            };
            (left, right) = (count(&groups[1]), count(&groups[2]));
            reversed.push_str(&format!("@@ -{} +{} @@{}\n", &groups[2], &groups[1], &groups[3]));
        } else if let Some(mode) = line.strip_prefix("new file mode ") {
            reversed.push_str(&format!("deleted file mode {mode}"));
        } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
            reversed.push_str(&format!("new file mode {mode}"));
        } else if let Some(name) = line.strip_prefix("--- ") {
            source = Some(name);
        } else if let (Some(target), Some(from)) = (line.strip_prefix("+++ "), source.take()) {
            let is_nowhere = |name: &str| name.trim_end() == "/dev/null";
            let sides = match is_nowhere(from) || is_nowhere(target) {
                true => [letter(target, 'a'), letter(from, 'b')],
                false => [from.to_owned(), target.to_owned()],
            };
            reversed.push_str(&format!("--- {}+++ {}", sides[0], sides[1]));
        } else {
            reversed.push_str(line);
        }
    }
    reversed.extend([removed, added]);
    reversed.extend(source.into_iter().flat_map(|from| ["--- ", from]));
    reversed
}

/// A name with the letter that tools put before those of a side.
fn letter(name: &str, letter: char) -> String {
    match name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")) {
        Some(rest) => format!("{letter}/{rest}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::patch_reward;

    const PATCH: &str = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n\
        @@ -1,4 +1,3 @@ def f():\n one\n-two\n-three\n+four\n five\n@@ -9 +8,2 @@\n-x\n\\ No newline at end of file\n+y\n+z\n\
        diff --git a/b.py b/b.py\nnew file mode 100644\nindex 0..3\n--- /dev/null\n+++ b/b.py\n@@ -0,0 +1,2 @@\n+--- no header\n++++ none\n";

    #[test]
    fn twice_reversed_is_the_same() {
        let once = reversed_patch(PATCH);
        assert_eq!(
            once,
            "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n\
             @@ -1,3 +1,4 @@ def f():\n one\n-four\n+two\n+three\n five\n@@ -8,2 +9 @@\n-y\n-z\n+x\n\\ No newline at end of file\n\
             diff --git a/b.py b/b.py\ndeleted file mode 100644\nindex 0..3\n--- a/b.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n---- no header\n-+++ none\n"
        );
        assert_eq!(reversed_patch(&once), PATCH);
        assert_eq!(patch_reward(&reversed_patch(&once), PATCH).unwrap().value, 1.0);
    }

    #[test]
    fn hostile_text_is_no_trouble() {
        for text in [
            "",
            "@@ -1 +1 @@",
            "@@ -99999999999999999999 +1 @@\n+x\n",
            "+++ a\n",
            "\u{e9}\n",
            "@@ -1 +1 @@\n\u{e9}\n",
            NO_NEWLINE,
        ] {
            let _ = reversed_patch(text);
        }
    }
}
