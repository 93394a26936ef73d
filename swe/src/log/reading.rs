use super::statuses::{StatusMap, Statuses};
use super::{LogError, MAX_LINE_BYTES, MAX_WHOLE_BYTES};
use crate::python_text::split_line;

/// Reads a log line by line.
pub(crate) trait LineParser {
    /// Reads one line, without its end.
    fn line(&mut self, line: &str, tests: &mut Statuses);

    /// There are no more lines.
    fn end(&mut self, tests: &mut Statuses) {
        let _ = tests;
    }
}

impl<F: FnMut(&str, &mut Statuses)> LineParser for F {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        self(line, tests);
    }
}

/// How a parser wants its log.
pub(crate) enum Reader {
    /// In lines that end at `\n`.
    Lines(Box<dyn LineParser + Send>),
    /// In lines that end where Python's `str.splitlines` ends them.
    PythonLines(Box<dyn LineParser + Send>),
    /// At once, which bounds its length.
    Whole(fn(&str, &mut Statuses)),
}

impl Reader {
    pub(crate) fn lines(parser: impl LineParser + Send + 'static) -> Self {
        Self::Lines(Box::new(parser))
    }

    pub(crate) fn python_lines(parser: impl LineParser + Send + 'static) -> Self {
        Self::PythonLines(Box::new(parser))
    }
}

/// A log that is being read; of most parsers' logs only the line under way is kept.
///
/// ```
/// use spar_swe::log::{LogContext, Origin, find_log_parser};
///
/// let parser = find_log_parser(Origin::SweBench, "parse_log_cargo")?;
/// let mut reading = parser.open(&LogContext::default())?;
/// reading.push("test a::b ... o");
/// reading.push("k\ntest c ... FAILED\n");
/// assert_eq!(reading.finish()?.len(), 2);
/// # Ok::<(), spar_swe::log::LogError>(())
/// ```
pub struct LogReading {
    reader: Reader,
    pending: String,
    /// The line under way has reached its bound: the rest of it is left out.
    is_full: bool,
    tests: Statuses,
}

impl LogReading {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, pending: String::new(), is_full: false, tests: Statuses::default() }
    }

    /// Reads on. Of lines longer than [`MAX_LINE_BYTES`] the rest is left out.
    pub fn push(&mut self, text: &str) {
        if self.tests.is_spoiled() {
            return;
        }
        type Split = fn(&str) -> Option<(&str, &str)>;
        let (parser, split, is_python): (_, Split, _) = match &mut self.reader {
            Reader::Lines(parser) => (parser, |text| text.split_once('\n'), false),
            Reader::PythonLines(parser) => (parser, split_line, true),
            Reader::Whole(_) if self.pending.len() + text.len() > MAX_WHOLE_BYTES => {
                self.pending = String::new();
                return self.tests.spoil(LogError::TooLong { limit: MAX_WHOLE_BYTES });
            }
            Reader::Whole(_) => return self.pending.push_str(text),
        };
        let mut rest = text;
        // A carriage return that waited at the end of the last piece may have been half an end.
        if is_python && self.pending.ends_with('\r') && !rest.is_empty() {
            self.pending.pop();
            parser.line(&self.pending, &mut self.tests);
            self.pending.clear();
            self.is_full = false;
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        while let Some((line, after)) = split(rest) {
            rest = after;
            if self.pending.is_empty() && !self.is_full {
                parser.line(cut(line, MAX_LINE_BYTES), &mut self.tests);
            } else {
                extend(&mut self.pending, &mut self.is_full, line);
                parser.line(&self.pending, &mut self.tests);
                self.pending.clear();
                self.is_full = false;
            }
            if self.tests.is_spoiled() {
                return;
            }
        }
        let waits = is_python && rest.ends_with('\r');
        extend(
            &mut self.pending,
            &mut self.is_full,
            if waits { &rest[..rest.len() - 1] } else { rest },
        );
        if waits {
            self.pending.push('\r');
        }
    }

    /// The log has ended.
    ///
    /// # Errors
    ///
    /// [`LogError`] where the original raises, and where a bound is passed.
    pub fn finish(mut self) -> Result<StatusMap, LogError> {
        if self.tests.is_spoiled() {
            return self.tests.finish();
        }
        match &mut self.reader {
            Reader::Whole(parse) => parse(&self.pending, &mut self.tests),
            Reader::Lines(parser) => {
                parser.line(&self.pending, &mut self.tests);
                parser.end(&mut self.tests);
            }
            Reader::PythonLines(parser) => {
                if !self.pending.is_empty() {
                    let line = self.pending.strip_suffix('\r').unwrap_or(&self.pending);
                    parser.line(line, &mut self.tests);
                }
                parser.end(&mut self.tests);
            }
        }
        self.tests.finish()
    }
}

fn extend(pending: &mut String, is_full: &mut bool, text: &str) {
    if *is_full {
        return;
    }
    let room = MAX_LINE_BYTES.saturating_sub(pending.len());
    *is_full = text.len() > room;
    pending.push_str(cut(text, room));
}

/// At most `bytes` of a text, whole characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TestStatus;

    fn names(reader: Reader, pieces: &[&str]) -> Vec<String> {
        let mut reading = LogReading::new(reader);
        pieces.iter().for_each(|piece| reading.push(piece));
        reading.finish().unwrap().into_keys().collect()
    }

    fn keep(line: &str, tests: &mut Statuses) {
        tests.set(format!("<{line}>"), TestStatus::Passed);
    }

    #[test]
    fn pieces_do_not_matter() {
        let text = "a\r\nb\rc\n\u{85}d\r";
        for whole in [Reader::lines as fn(fn(&str, &mut Statuses)) -> Reader, Reader::python_lines]
        {
            let at_once = names(whole(keep), &[text]);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(names(whole(keep), &pieces), at_once);
        }
        assert_eq!(names(Reader::python_lines(keep), &[text]), ["<a>", "<b>", "<c>", "<>", "<d>"]);
    }

    #[test]
    fn long_lines_are_cut() {
        let long = "é".repeat(MAX_LINE_BYTES);
        let kept = names(Reader::lines(keep), &[&long, &long, "\nb"]);
        assert_eq!(kept[0].len(), MAX_LINE_BYTES + 2);
        assert_eq!(kept[1], "<b>");
    }
}
