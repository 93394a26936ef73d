use super::names::{is_dev_null, name, name_of_both, until_tab};
use super::{Binary, Body, FileChange, Hunk, Kind, PatchError, RepoPath};

/// A patch, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// What it changes, in its order.
    pub files: Vec<FileChange>,
}

/// How large a patch may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchLimits {
    /// Bytes of the whole. Default 64 MiB.
    pub bytes: usize,
    /// Files that it changes. Default 10,000.
    pub files: usize,
}

impl Default for PatchLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20, files: 10_000 }
    }
}

impl Patch {
    /// Reads a patch as `git apply` does, with one leading part stripped from its names. Text that belongs to no file is
    /// skipped, so a patch without any file is no error here: it is empty. The data of binary files is not unpacked.
    ///
    /// # Errors
    ///
    /// [`PatchError`] where it is too large, or `git apply` would call it corrupt.
    pub fn parse(patch: &[u8], limits: &PatchLimits) -> Result<Self, PatchError> {
        if patch.len() > limits.bytes {
            return Err(PatchError::TooLarge { bytes: patch.len(), limit: limits.bytes });
        }
        let mut reader = Reader { text: patch, at: 0, line: 1 };
        let mut files = Vec::new();
        while let Some(change) = reader.next_change()? {
            if files.len() == limits.files {
                return Err(PatchError::TooManyFiles { limit: limits.files });
            }
            files.push(change);
        }
        Ok(Self { files })
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// What a header says so far.
#[derive(Default)]
struct Header {
    /// The one name of both sides, if the first line tells it.
    both: Option<RepoPath>,
    old: Option<RepoPath>,
    new: Option<RepoPath>,
    is_new: bool,
    is_deleted: bool,
    is_rename: bool,
    is_copy: bool,
    old_mode: Option<u32>,
    new_mode: Option<u32>,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// The number of the line at `at`, from 1.
    line: usize,
}

impl<'a> Reader<'a> {
    /// The line at the reader with its end; empty at the end of the text.
    fn peek(&self) -> &'a [u8] {
        line_of(&self.text[self.at..])
    }

    fn step(&mut self, line: &[u8]) {
        self.at += line.len();
        self.line += 1;
    }

    fn next_change(&mut self) -> Result<Option<FileChange>, PatchError> {
        loop {
            let line = self.peek();
            if line.is_empty() {
                return Ok(None);
            }
            if line.starts_with(b"@@ -") && ranges(line).is_some() {
                return Err(PatchError::HunkWithoutFile { line: self.line });
            }
            let (start, first) = (self.at, self.line);
            if let Some(rest) = line.strip_prefix(b"diff --git ".as_slice()) {
                let mut header = Header { both: name_of_both(rest), ..Header::default() };
                self.step(line);
                // A first line alone is text like any other.
                if self.git_header(&mut header)? {
                    return self.finish(header, start, first).map(Some);
                }
                continue;
            }
            if line.starts_with(b"--- ")
                && let Some(header) = self.plain_header(line)?
            {
                return self.finish(header, start, first).map(Some);
            }
            self.step(line);
        }
    }

    /// The lines of a git header after its first; whether there is any.
    fn git_header(&mut self, header: &mut Header) -> Result<bool, PatchError> {
        let mut is_any = false;
        loop {
            let line = self.peek();
            if line.last() != Some(&b'\n') || !self.header_line(line, header)? {
                return Ok(is_any);
            }
            is_any = true;
            self.step(line);
        }
    }

    /// Whether a line belongs to the header.
    fn header_line(&self, line: &[u8], header: &mut Header) -> Result<bool, PatchError> {
        let number = self.line;
        if let Some(rest) = line.strip_prefix(b"--- ".as_slice()) {
            header.old = self.check_name(rest, header.is_new, header.old.take())?;
        } else if let Some(rest) = line.strip_prefix(b"+++ ".as_slice()) {
            header.new = self.check_name(rest, header.is_deleted, header.new.take())?;
        } else if let Some(rest) = line.strip_prefix(b"old mode ".as_slice()) {
            header.old_mode = Some(mode(rest, number)?);
        } else if let Some(rest) = line.strip_prefix(b"new mode ".as_slice()) {
            header.new_mode = Some(mode(rest, number)?);
        } else if let Some(rest) = line.strip_prefix(b"deleted file mode ".as_slice()) {
            header.is_deleted = true;
            header.old = header.both.clone();
            header.old_mode = Some(mode(rest, number)?);
        } else if let Some(rest) = line.strip_prefix(b"new file mode ".as_slice()) {
            header.is_new = true;
            header.new = header.both.clone();
            header.new_mode = Some(mode(rest, number)?);
        } else if let Some(rest) = line.strip_prefix(b"copy from ".as_slice()) {
            header.is_copy = true;
            header.old = name(rest, 0, false);
        } else if let Some(rest) = line.strip_prefix(b"copy to ".as_slice()) {
            header.is_copy = true;
            header.new = name(rest, 0, false);
        } else if let Some(rest) = strip_any(line, &[b"rename from ".as_slice(), b"rename old "]) {
            header.is_rename = true;
            header.old = name(rest, 0, false);
        } else if let Some(rest) = strip_any(line, &[b"rename to ".as_slice(), b"rename new "]) {
            header.is_rename = true;
            header.new = name(rest, 0, false);
        } else if let Some(rest) = line.strip_prefix(b"index ".as_slice()) {
            if let Some(kept) = kept_mode(rest) {
                header.old_mode = Some(mode(kept, number)?);
            }
        } else {
            return Ok(
                line.starts_with(b"similarity index ") || line.starts_with(b"dissimilarity index ")
            );
        }
        Ok(true)
    }

    /// The name that a `---` or `+++` line of a git header gives, which must be the one that is known already.
    fn check_name(
        &self,
        rest: &[u8],
        is_absent: bool,
        known: Option<RepoPath>,
    ) -> Result<Option<RepoPath>, PatchError> {
        let is_null = is_dev_null(rest);
        let wrong = |path: &RepoPath, detail| {
            Err(PatchError::Inconsistent { line: self.line, path: path.clone(), detail })
        };
        match known {
            Some(path) if is_absent => wrong(&path, "a side that does not exist has a name"),
            Some(path) if name(rest, 1, true).as_ref() != Some(&path) => {
                wrong(&path, "its lines name different files")
            }
            Some(path) => Ok(Some(path)),
            None if is_absent && !is_null => wrong(
                &name(rest, 1, true).unwrap_or_else(|| RepoPath::from("")),
                "`/dev/null` was expected",
            ),
            None if is_absent => Ok(None),
            None => Ok(name(rest, 1, true)),
        }
    }

    /// A header of `---` and `+++` alone, if a hunk follows it.
    fn plain_header(&mut self, first: &'a [u8]) -> Result<Option<Header>, PatchError> {
        let after = &self.text[self.at + first.len()..];
        let second = line_of(after);
        let hunk = line_of(&after[second.len()..]);
        if !second.starts_with(b"+++ ") || !hunk.starts_with(b"@@ -") {
            return Ok(None);
        }
        let (old, new) = (&first[4..], &second[4..]);
        let (is_new, is_deleted) = (is_dev_null(old), is_dev_null(new));
        let plain = |text: &[u8]| !until_tab(text).contains(&b'/');
        let parts = usize::from(!(plain(old) && plain(new)));
        let header = Header {
            old: if is_new { None } else { name(old, parts, true) },
            new: if is_deleted { None } else { name(new, parts, true) },
            is_new,
            is_deleted,
            ..Header::default()
        };
        if header.old.is_none() && !is_new || header.new.is_none() && !is_deleted {
            return Err(PatchError::NoName { line: self.line });
        }
        // Two names of one file: the new one, unless it is the old one with something behind it, as of a copy kept aside.
        let header = match (&header.old, &header.new) {
            (Some(old), Some(new)) if old != new => {
                let is_longer = new.as_bytes().starts_with(old.as_bytes());
                let path = if is_longer { old.clone() } else { new.clone() };
                Header { old: Some(path.clone()), new: Some(path), ..header }
            }
            _ => header,
        };
        self.step(first);
        self.step(second);
        Ok(Some(header))
    }

    /// The change of a header whose lines have been read, with what follows it.
    fn finish(
        &mut self,
        mut header: Header,
        start: usize,
        first: usize,
    ) -> Result<FileChange, PatchError> {
        if header.old.is_none() && header.new.is_none() {
            header.old = header.both.clone();
            header.new = header.both.clone();
        }
        // Where one side only has a name though both exist, the first line may still tell the other.
        if header.is_new {
            header.old = None;
        }
        if header.is_deleted {
            header.new = None;
        }
        if header.new.is_none() && !header.is_deleted || header.old.is_none() && !header.is_new {
            return Err(PatchError::NoName { line: first });
        }
        if header.is_new && header.is_deleted {
            let path = header.both.unwrap_or_else(|| RepoPath::from(""));
            let detail = "it is both added and deleted";
            return Err(PatchError::Inconsistent { line: first, path, detail });
        }
        let body = self.body(&header)?;
        let kind = match () {
            () if header.is_new => Kind::Added,
            () if header.is_deleted => Kind::Deleted,
            () if header.is_rename => Kind::Renamed,
            () if header.is_copy => Kind::Copied,
            () => Kind::Modified,
        };
        let new_mode = match header.is_deleted {
            true => None,
            false => header.new_mode.or(header.old_mode),
        };
        Ok(FileChange {
            kind,
            old_path: header.old,
            new_path: header.new,
            old_mode: header.old_mode,
            new_mode,
            body,
            span: start..self.at,
        })
    }

    fn body(&mut self, header: &Header) -> Result<Body, PatchError> {
        let mut hunks = Vec::new();
        while self.peek().starts_with(b"@@ -") {
            hunks.push(self.hunk(header)?);
        }
        if !hunks.is_empty() {
            return Ok(Body::Text(hunks));
        }
        let line = self.peek();
        if line == b"GIT binary patch\n" {
            self.step(line);
            return self.binary_data().map(Body::Binary);
        }
        if is_binary_mark(line) {
            self.step(line);
            return Ok(Body::Binary(Binary::Differs));
        }
        Ok(Body::None)
    }

    fn hunk(&mut self, header: &Header) -> Result<Hunk, PatchError> {
        let line = self.peek();
        let (start, first) = (self.at, self.line);
        let ((old_start, old_lines), (new_start, new_lines)) =
            ranges(line).ok_or(PatchError::BadHunk { line: first })?;
        if header.is_new && old_lines > 0 || header.is_deleted && new_lines > 0 {
            let path = header.new.clone().or_else(|| header.old.clone());
            let path = path.unwrap_or_else(|| RepoPath::from(""));
            let detail = "a side that does not exist has lines";
            return Err(PatchError::Inconsistent { line: first, path, detail });
        }
        self.step(line);
        let (mut old_left, mut new_left) = (old_lines, new_lines);
        let (mut added, mut removed) = (0, 0);
        let mut take = |old: bool, new: bool| -> Option<()> {
            old_left = old_left.checked_sub(u64::from(old))?;
            new_left = new_left.checked_sub(u64::from(new))?;
            Some(())
        };
        let mut is_open = old_lines > 0 || new_lines > 0;
        let (mut old_seen, mut new_seen) = (0u64, 0u64);
        while is_open {
            let line = self.peek();
            let corrupt = PatchError::CorruptHunk { line: self.line };
            // Lines end; the last of a hunk as well.
            if line.last() != Some(&b'\n') {
                return Err(corrupt);
            }
            let (old, new) = match line[0] {
                b'\n' | b' ' => (true, true),
                b'-' => (true, false),
                b'+' => (false, true),
                b'\\' if line.len() >= 12 && line[1] == b' ' => (false, false),
                _ => return Err(corrupt),
            };
            take(old, new).ok_or(corrupt)?;
            old_seen += u64::from(old);
            new_seen += u64::from(new);
            removed += u64::from(old && !new);
            added += u64::from(new && !old);
            self.step(line);
            is_open = old_seen < old_lines || new_seen < new_lines;
        }
        if added == 0 && removed == 0 {
            return Err(PatchError::CorruptHunk { line: first });
        }
        let line = self.peek();
        if line.len() >= 12 && line.starts_with(b"\\ ") {
            self.step(line);
        }
        Ok(Hunk {
            old_start,
            old_lines,
            new_start,
            new_lines,
            added,
            removed,
            span: start..self.at,
        })
    }

    fn binary_data(&mut self) -> Result<Binary, PatchError> {
        let line = self.line;
        let (bytes, is_delta) = self.binary_side()?.ok_or(PatchError::CorruptBinary { line })?;
        let has_reverse = self.binary_side()?.is_some();
        Ok(Binary::Data { bytes, is_delta, has_reverse })
    }

    /// One side of a binary file's data, if it stands here.
    fn binary_side(&mut self) -> Result<Option<(u64, bool)>, PatchError> {
        let line = self.peek();
        let (digits, is_delta) =
            match (line.strip_prefix(b"literal "), line.strip_prefix(b"delta ")) {
                (Some(digits), _) => (digits, false),
                (_, Some(digits)) => (digits, true),
                _ => return Ok(None),
            };
        let corrupt = |line| PatchError::CorruptBinary { line };
        let bytes = match number(digits) {
            Some((bytes, b"\n")) => bytes,
            _ => return Err(corrupt(self.line)),
        };
        self.step(line);
        loop {
            let line = self.peek();
            if line == b"\n" {
                self.step(line);
                return Ok(Some((bytes, is_delta)));
            }
            // A letter tells how many bytes the line stands for, four of them by five digits.
            let count = match line.first() {
                Some(letter @ b'A'..=b'Z') => usize::from(letter - b'A') + 1,
                Some(letter @ b'a'..=b'z') => usize::from(letter - b'a') + 27,
                _ => return Err(corrupt(self.line)),
            };
            let is_line = line.len() == 2 + count.div_ceil(4) * 5
                && line.last() == Some(&b'\n')
                && line[1..line.len() - 1].iter().all(|byte| is_base85(*byte));
            if !is_line {
                return Err(corrupt(self.line));
            }
            self.step(line);
        }
    }
}

/// The first line of a text with its end; empty where there is none.
fn line_of(text: &[u8]) -> &[u8] {
    match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => &text[..=end],
        None => text,
    }
}

fn strip_any<'a>(line: &'a [u8], prefixes: &[&[u8]]) -> Option<&'a [u8]> {
    prefixes.iter().find_map(|prefix| line.strip_prefix(*prefix))
}

fn is_base85(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&()*+-;<=>?@^_`{|}~".contains(&byte)
}

fn is_binary_mark(line: &[u8]) -> bool {
    line == b"GIT binary patch\n"
        || line.ends_with(b" differ\n")
            && (line.starts_with(b"Binary files ") || line.starts_with(b"Files "))
}

/// Digits at the start of a text, and what follows them.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let digits = std::str::from_utf8(&text[..end]).ok()?;
    Some((digits.parse().ok()?, &text[end..]))
}

type Lines = (u64, u64);

/// The old and the new lines that the header of a hunk names, each by its first and how many.
fn ranges(line: &[u8]) -> Option<(Lines, Lines)> {
    let rest = line.strip_prefix(b"@@ -")?;
    let (old, rest) = range(rest)?;
    let (new, rest) = range(rest.strip_prefix(b" +")?)?;
    rest.starts_with(b" @@").then_some((old, new))
}

fn range(text: &[u8]) -> Option<(Lines, &[u8])> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => number(rest).map(|(count, rest)| ((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

/// The mode that `OLD..NEW MODE` names, which it does where the mode stays; a line that is written otherwise says nothing.
fn kept_mode(text: &[u8]) -> Option<&[u8]> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let hashes = std::str::from_utf8(&text[..space]).ok()?;
    let is_hash = |hash: &str| hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (old, new) = hashes.split_once("..")?;
    (is_hash(old) && is_hash(new)).then(|| &text[space + 1..])
}

fn mode(text: &[u8], line: usize) -> Result<u32, PatchError> {
    let digits = text.trim_ascii();
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, 8).ok())
        .ok_or(PatchError::BadMode { line })
}
