//! The programs that fake sandboxes have.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{FakeFiles, FakeReply};
use crate::archive::normalise;

/// Where a program runs.
pub(super) struct Surroundings<'a> {
    pub(super) files: &'a mut FakeFiles,
    pub(super) workdir: &'a str,
    pub(super) env: BTreeMap<String, String>,
    /// Whether the file at an absolute path can be written.
    pub(super) is_writable: &'a dyn Fn(&str) -> bool,
}

impl Surroundings<'_> {
    /// Runs a program.
    pub(super) fn run(&mut self, words: &[&str], stdin: Vec<u8>) -> FakeReply {
        match words {
            ["true"] | [] => FakeReply::exited(0, ""),
            ["false"] => FakeReply::exited(1, ""),
            ["echo", rest @ ..] => FakeReply::exited(0, rest.join(" ") + "\n"),
            ["complain", rest @ ..] => FakeReply::failed(1, rest.join(" ") + "\n"),
            ["exit", code] => FakeReply::exited(code.parse().unwrap_or(2), ""),
            ["cat"] => FakeReply::exited(0, stdin),
            ["cat", paths @ ..] => self.cat(paths),
            ["write", path, rest @ ..] => {
                let is_written = self.write(path, rest.join(" ").into_bytes());
                done(is_written, || format!("write: {}: cannot be written", self.absolute(path)))
            }
            ["sleep", seconds] => match seconds.parse::<f64>().map(Duration::try_from_secs_f64) {
                Ok(Ok(takes)) => FakeReply::exited(0, "").after(takes),
                _ => FakeReply::failed(1, format!("sleep: {seconds}: no number\n")),
            },
            ["pwd"] => FakeReply::exited(0, format!("{}\n", self.workdir)),
            ["env"] => {
                let line = |(name, value): (&String, &String)| format!("{name}={value}\n");
                FakeReply::exited(0, self.env.iter().map(line).collect::<String>())
            }
            ["repeat", num] => match num.parse() {
                Ok(num) => FakeReply::exited(0, vec![0; num]),
                Err(_) => FakeReply::failed(1, format!("repeat: {num}: no number\n")),
            },
            ["ls"] => self.ls("."),
            ["ls", path] => self.ls(path),
            ["mkdir", paths @ ..] => {
                let made = paths.iter().filter(|path| **path != "-p").all(|path| {
                    let place = self.absolute(path);
                    (self.is_writable)(&place) && self.files.make_folder(&place).is_ok()
                });
                done(made, || "mkdir: a folder cannot be made".to_owned())
            }
            ["rm", paths @ ..] => {
                let is_forced = paths.iter().any(|path| path.starts_with('-'));
                let mut removed = true;
                for path in paths.iter().filter(|path| !path.starts_with('-')) {
                    let place = self.absolute(path);
                    removed &= (self.is_writable)(&place) && self.files.remove(&place);
                }
                done(removed || is_forced, || "rm: a file is not there".to_owned())
            }
            ["mv", from @ .., to] if !from.is_empty() => self.copy(from, to, true),
            ["cp", from @ .., to] if !from.is_empty() => self.copy(from, to, false),
            ["test", rest @ ..] => self.test(rest),
            ["[", rest @ .., "]"] => self.test(rest),
            ["grep", flag @ ("-c" | "-l" | "-q"), pattern, paths @ ..] => {
                self.grep(flag, pattern, paths, &stdin)
            }
            ["grep", pattern, paths @ ..] => self.grep("", pattern, paths, &stdin),
            ["sort", flags @ .., path] if !path.starts_with('-') => match self.text(path) {
                Some(text) => sort(&text, flags),
                None => absent("sort", path),
            },
            ["sort", flags @ ..] => sort(&String::from_utf8_lossy(&stdin), flags),
            ["sed", script, paths @ ..] => self.by_line("sed", paths, &stdin, |line| {
                let mut parts = script.strip_prefix("s/")?.split('/');
                let (old, new, flags) = (parts.next()?, parts.next()?, parts.next()?);
                Some(line.replacen(old, new, if flags == "g" { usize::MAX } else { 1 }))
            }),
            ["cut", "-d", by, "-f", number, paths @ ..] => {
                self.by_line("cut", paths, &stdin, |line| {
                    let index = number.parse::<usize>().ok()?.checked_sub(1)?;
                    Some(line.split(by).nth(index).unwrap_or_default().to_owned())
                })
            }
            [program @ ("head" | "tail"), "-n", number, paths @ ..] => {
                let Some(text) = self.all_text(paths, &stdin) else {
                    return absent(program, paths[0]);
                };
                let (lines, number) = (text.lines().count(), number.parse().unwrap_or(0));
                let skipped = if *program == "tail" { lines.saturating_sub(number) } else { 0 };
                let shown = text.lines().skip(skipped).take(number);
                FakeReply::exited(0, shown.map(|line| format!("{line}\n")).collect::<String>())
            }
            ["wc", "-l"] => {
                let count = stdin.iter().filter(|byte| **byte == b'\n').count();
                FakeReply::exited(0, format!("{count}\n"))
            }
            [program, ..] => FakeReply::failed(127, format!("{program}: not found\n")),
        }
    }

    /// The bytes of a file.
    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.files.read(&self.absolute(path)).map(<[u8]>::to_vec)
    }

    /// Makes or replaces a file; `false` where that is not allowed.
    pub(super) fn write(&mut self, path: &str, bytes: Vec<u8>) -> bool {
        let place = self.absolute(path);
        (self.is_writable)(&place) && self.files.write(&place, bytes)
    }

    /// The paths that a pattern with `*` in its last part fits, in order.
    pub(super) fn glob(&self, pattern: &str) -> Vec<String> {
        let (folder, last) = pattern.rsplit_once('/').map_or(("", pattern), |(f, l)| (f, l));
        let place = self.absolute(if folder.is_empty() { "." } else { folder });
        let entries = self.files.list(&place).unwrap_or_default();
        let fits = entries.iter().filter(|entry| {
            (!entry.name.starts_with('.') || last.starts_with('.')) && fits(last, &entry.name)
        });
        let before = &pattern[..pattern.len() - last.len()];
        fits.map(|entry| format!("{before}{}", entry.name)).collect()
    }

    fn absolute(&self, path: &str) -> String {
        normalise(path, self.workdir).unwrap_or_default()
    }

    fn text(&self, path: &str) -> Option<String> {
        self.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn all_text(&self, paths: &[&str], stdin: &[u8]) -> Option<String> {
        match paths {
            [] => Some(String::from_utf8_lossy(stdin).into_owned()),
            paths => paths.iter().map(|path| self.text(path)).collect(),
        }
    }

    fn cat(&self, paths: &[&str]) -> FakeReply {
        let mut bytes = Vec::new();
        for path in paths {
            match self.read(path) {
                Some(content) => bytes.extend(content),
                None => return FakeReply { stdout: bytes, ..absent("cat", path) },
            }
        }
        FakeReply::exited(0, bytes)
    }

    fn ls(&self, path: &str) -> FakeReply {
        match self.files.list(&self.absolute(path)) {
            Ok(entries) => {
                let line = |entry: &crate::FileEntry| format!("{}\n", entry.name);
                FakeReply::exited(0, entries.iter().map(line).collect::<String>())
            }
            Err(_) => absent("ls", path),
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        self.files.list(&self.absolute(path)).is_ok()
    }

    fn copy(&mut self, from: &[&str], to: &str, is_move: bool) -> FakeReply {
        let into_folder = self.is_folder(to);
        for path in from {
            let Some(bytes) = self.read(path) else { return absent("cp", path) };
            let name = path.rsplit('/').next().unwrap_or(path);
            let target = if into_folder { format!("{to}/{name}") } else { to.to_owned() };
            if !self.write(&target, bytes) {
                return FakeReply::failed(1, format!("cp: {target}: cannot be written\n"));
            }
            if is_move && self.absolute(path) != self.absolute(&target) {
                let place = self.absolute(path);
                self.files.remove(&place);
            }
        }
        FakeReply::exited(0, "")
    }

    fn test(&self, words: &[&str]) -> FakeReply {
        let holds = match words {
            ["!", rest @ ..] => return done(!self.test(rest).end.is_success(), String::new),
            [a, "=", b] => a == b,
            [a, "!=", b] => a != b,
            ["-d", path] => self.is_folder(path),
            // There are no links here.
            ["-L", _] => false,
            ["-f", path] => self.read(path).is_some(),
            ["-e", path] => self.read(path).is_some() || self.is_folder(path),
            _ => return FakeReply::failed(2, "test: not understood\n"),
        };
        FakeReply::exited(i32::from(!holds), "")
    }

    /// Lines that hold a pattern, which is taken literally.
    fn grep(&self, flag: &str, pattern: &str, paths: &[&str], stdin: &[u8]) -> FakeReply {
        let mut output = String::new();
        let mut count = 0;
        let from_stdin = [("".to_owned(), String::from_utf8_lossy(stdin).into_owned())];
        let texts: Vec<(String, String)> = match paths {
            [] => from_stdin.into(),
            paths => paths
                .iter()
                .filter_map(|path| Some(((*path).to_owned(), self.text(path)?)))
                .collect(),
        };
        for (path, text) in &texts {
            let lines: Vec<_> = text.lines().filter(|line| line.contains(pattern)).collect();
            count += lines.len();
            let prefix = if texts.len() > 1 { format!("{path}:") } else { String::new() };
            match flag {
                "-c" => output += &format!("{prefix}{}\n", lines.len()),
                "-l" if !lines.is_empty() => output += &format!("{path}\n"),
                "-l" | "-q" => {}
                _ => lines.iter().for_each(|line| output += &format!("{prefix}{line}\n")),
            }
        }
        FakeReply::exited(i32::from(count == 0), output)
    }

    fn by_line(
        &self,
        program: &str,
        paths: &[&str],
        stdin: &[u8],
        change: impl Fn(&str) -> Option<String>,
    ) -> FakeReply {
        let Some(text) = self.all_text(paths, stdin) else { return absent(program, paths[0]) };
        let lines: Option<Vec<String>> = text.lines().map(change).collect();
        match lines {
            Some(lines) => FakeReply::exited(
                0,
                lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
            ),
            None => FakeReply::failed(2, format!("{program}: not understood\n")),
        }
    }
}

fn sort(text: &str, flags: &[&str]) -> FakeReply {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    if flags.contains(&"-u") {
        lines.dedup();
    }
    FakeReply::exited(0, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, rest)) => {
            let Some(left) = name.strip_prefix(before) else { return false };
            let mut starts = left.char_indices().map(|(at, _)| at).chain([left.len()]);
            starts.any(|at| fits(rest, &left[at..]))
        }
    }
}

fn done(is_done: bool, why_not: impl FnOnce() -> String) -> FakeReply {
    if is_done {
        FakeReply::exited(0, "")
    } else {
        let why = why_not();
        FakeReply::failed(1, if why.is_empty() { why } else { why + "\n" })
    }
}

fn absent(program: &str, path: &str) -> FakeReply {
    FakeReply::failed(1, format!("{program}: {path}: No such file or directory\n"))
}

#[cfg(test)]
mod tests {
    use super::super::script::run_script;
    use super::*;
    use crate::FileKind;

    fn run(files: &mut FakeFiles, script: &str) -> (i32, String, String) {
        let mut at = Surroundings {
            files,
            workdir: "/w",
            env: BTreeMap::new(),
            is_writable: &|path| !path.starts_with("/fixed"),
        };
        let reply = run_script(script, Vec::new(), &mut at);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (reply.end.shell_code(), text(reply.stdout), text(reply.stderr))
    }

    #[test]
    fn scripts_do_what_a_shell_would_do() {
        for (script, code, output) in [
            ("echo a b", 0, "a b\n"),
            ("echo 'a  b'\"c\"d; false", 1, "a  bcd\n"),
            ("false && echo a || echo b", 0, "b\n"),
            ("! false && echo a", 0, "a\n"),
            ("cat x.txt | sort -u", 0, "a\nb\n"),
            ("sort -u < x.txt > y && cat y", 0, "a\nb\n"),
            ("echo 1 > n; echo 2 >> n; cat n", 0, "1\n2\n"),
            ("[ \"$(cat x.txt)\" = \"$(cat x.txt)\" ] && echo same", 0, "same\n"),
            ("grep -c a x.txt", 0, "2\n"),
            ("grep -l b *.txt", 0, "x.txt\n"),
            ("sed 's/a/c/g' x.txt | head -n 1", 0, "c\n"),
            ("tail -n 1 x.txt", 0, "a\n"),
            ("echo p,q | cut -d , -f 2", 0, "q\n"),
            ("mkdir d && mv *.txt d && ls d", 0, "x.txt\nz.txt\n"),
            ("[ -e x.txt ] || echo gone", 0, ""),
            ("rm -rf x.txt; [ ! -e x.txt ] && echo gone", 0, "gone\n"),
            ("exit 3; echo on", 3, ""),
            ("wc -l < x.txt", 0, "3\n"),
        ] {
            let mut files = FakeFiles::default();
            files.write("/w/x.txt", "a\nb\na\n");
            files.write("/w/z.txt", "z\n");
            let found = run(&mut files, script);
            assert_eq!((found.0, found.1.as_str()), (code, output), "{script}: {}", found.2);
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut files = FakeFiles::default();
        for script in ["do it", "echo 'a", "a | ", "echo $HOME", "sleep 1 &", "x=$(cat", "a &&"] {
            let (code, _, error) = run(&mut files, script);
            assert_eq!(code, 2, "{script}");
            assert!(error.starts_with("sh: syntax error"), "{script}: {error}");
        }
        assert_eq!(run(&mut files, "nowhere").0, 127);
        assert_eq!(run(&mut files, "echo a > /fixed/b").0, 1);
    }

    #[test]
    fn kinds_are_told_apart() {
        let mut files = FakeFiles::default();
        files.write("/w/d/f", "");
        let kinds: Vec<_> = files.list("/w/d").unwrap().iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [FileKind::File]);
        assert_eq!(run(&mut files, "[ -d d ] && [ -f d/f ] && [ ! -d d/f ]").0, 0);
    }
}
