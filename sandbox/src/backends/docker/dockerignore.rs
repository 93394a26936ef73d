//! Which files of a build context stay at home.

/// The patterns of a `.dockerignore` file, as Docker reads them: from the root of the context, the
/// last one that matches a path or a folder above it decides, `!` takes back.
///
/// Source of the rules: <https://docs.docker.com/build/concepts/context/#dockerignore-files>.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DockerIgnore {
    rules: Vec<Rule>,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    parts: Vec<String>,
    takes_back: bool,
}

impl DockerIgnore {
    /// Reads the text of such a file. Lines that begin with `#` say nothing.
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let lines = text.lines().filter(|line| !line.starts_with('#')).map(str::trim);
        let rules = lines.filter_map(|line| {
            let (takes_back, pattern) = match line.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, line),
            };
            let mut parts: Vec<String> = Vec::new();
            for part in pattern.split('/') {
                match part {
                    "" | "." => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part.to_owned()),
                }
            }
            (!parts.is_empty()).then_some(Rule { parts, takes_back })
        });
        Self { rules: rules.collect() }
    }

    /// Whether the file or folder at `path`, from the root of the context on, stays at home.
    pub(super) fn excludes(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        let decides = |rule: &&Rule| (1..=path.len()).any(|end| matches(&rule.parts, &path[..end]));
        self.rules.iter().rev().find(decides).is_some_and(|rule| !rule.takes_back)
    }

    /// Whether something below a folder that stays at home may be taken back.
    pub(super) fn takes_back(&self) -> bool {
        self.rules.iter().any(|rule| rule.takes_back)
    }
}

/// Whether a pattern is the whole path; `**` is any number of folders.
fn matches(pattern: &[String], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((first, rest)), _) if first == "**" => {
            // At the end it stands for at least one name.
            let least = usize::from(rest.is_empty());
            (least..=path.len()).any(|skipped| matches(rest, &path[skipped..]))
        }
        (Some(_), None) => false,
        (Some((first, rest)), Some((name, below))) => {
            let pattern: Vec<char> = first.chars().collect();
            let name: Vec<char> = name.chars().collect();
            matches_name(&pattern, &name) && matches(rest, below)
        }
    }
}

/// `*`, `?`, `[a-z]`, `[^a-z]` and `\` within one name.
fn matches_name(pattern: &[char], name: &[char]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return name.is_empty() };
    match first {
        '*' => (0..=name.len()).any(|skipped| matches_name(rest, &name[skipped..])),
        '[' => {
            let Some(end) = rest.iter().skip(1).position(|&c| c == ']').map(|at| at + 1) else {
                return false;
            };
            let Some((&letter, below)) = name.split_first() else { return false };
            let class = &rest[..end];
            let (negated, class) = match class.split_first() {
                Some(('^', class)) => (true, class),
                _ => (false, class),
            };
            is_in(class, letter) != negated && matches_name(&rest[end + 1..], below)
        }
        _ => {
            let (wanted, rest) = match (first, rest.split_first()) {
                ('\\', Some((&escaped, rest))) => (Some(escaped), rest),
                ('?', _) => (None, rest),
                _ => (Some(first), rest),
            };
            name.split_first().is_some_and(|(&letter, below)| {
                wanted.is_none_or(|wanted| wanted == letter) && matches_name(rest, below)
            })
        }
    }
}

fn is_in(mut class: &[char], letter: char) -> bool {
    while let Some((&low, rest)) = class.split_first() {
        if let ['-', high, ..] = *rest {
            if (low..=high).contains(&letter) {
                return true;
            }
            class = &rest[2..];
        } else {
            if low == letter {
                return true;
            }
            class = rest;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_at_home_as_the_documentation_of_docker_says() {
        let cases: [(&str, &str, bool); 30] = [
            ("*/temp*", "somedir/temporary.txt", true),
            ("*/temp*", "somedir/temp", true),
            ("*/temp*", "temp", false),
            ("*/*/temp*", "somedir/subdir/temporary.txt", true),
            ("temp?", "tempa", true),
            ("temp?", "temp", false),
            ("temp?", "tempab", false),
            ("**/*.go", "a/b/c.go", true),
            ("**/*.go", "c.go", true),
            ("*.md", "README.md", true),
            ("*.md", "docs/README.md", false),
            ("*.md\n!README.md", "README.md", false),
            ("*.md\n!README*.md\nREADME-secret.md", "README-secret.md", true),
            ("*.md\n!README*.md\nREADME-secret.md", "README-open.md", false),
            ("*.md\nREADME-secret.md\n!README*.md", "README-secret.md", false),
            ("# comment\n\n  target  \n", "target/debug/x", true),
            ("#target", "#target", false),
            ("/target/", "target", true),
            ("./a/../b", "b", true),
            ("target", "sub/target", false),
            ("**/target", "sub/target/x", true),
            ("docs/**", "docs/a/b", true),
            ("docs/**", "docs", false),
            ("docs\n!docs/keep", "docs/keep/a", false),
            ("docs\n!docs/keep", "docs/other", true),
            ("[a-c].txt", "b.txt", true),
            ("[^a-c].txt", "b.txt", false),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            ("a[", "a[", false),
        ];
        for (text, path, excluded) in cases {
            assert_eq!(DockerIgnore::new(text).excludes(path), excluded, "{text:?} {path}");
        }
        assert!(!DockerIgnore::default().excludes("anything"));
        assert!(!DockerIgnore::new("!").takes_back() && DockerIgnore::new("!a").takes_back());
    }
}
