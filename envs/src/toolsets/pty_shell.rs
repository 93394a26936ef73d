//! An interactive bash on a terminal, which tells by its prompt when a command has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt as _;
use spar_sandbox::{ExecRequest, PtyProcess, PtySize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Halt, Workplace};

/// Bytes of an output that are kept, half from its beginning and half from its end.
const KEPT_BYTES: usize = 8 << 20;
/// How long a shell may take to be there.
const START: Duration = Duration::from_secs(30);
/// How long what was interrupted may take to end, before it is interrupted again.
const INTERRUPT: Duration = Duration::from_millis(500);
/// How often it is interrupted before it is killed.
const INTERRUPTS: usize = 3;

/// An interactive bash on a terminal without echo: what SWE-ReX keeps for an agent.
///
/// The prompt is a word that nobody knows, with the status of the command before and the working directory in it. What an
/// agent prints of it confuses this shell alone.
pub(super) struct PtyShell {
    process: PtyProcess,
    mark: String,
    buffer: Vec<u8>,
    /// Bytes that were left out of the middle of `buffer`.
    dropped: usize,
    /// Where the last command has left it.
    pub(super) workdir: String,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// It ended.
    Ended {
        /// All that was shown, as bytes of a terminal.
        output: Vec<u8>,
        /// Its status.
        code: i32,
    },
    /// Its time is over; it runs on.
    Late {
        /// What was shown until then.
        output: Vec<u8>,
    },
    /// The shell has ended.
    Gone {
        /// What was shown until then.
        output: Vec<u8>,
    },
}

impl PtyShell {
    /// Starts a shell that reads `sources` first, with these variables.
    pub(super) async fn open(
        place: &mut Workplace<'_>,
        env: &BTreeMap<String, String>,
        sources: &[&str],
    ) -> Result<Self, Halt> {
        let mark = format!("SHELLPS1PREFIX{:016x}", rand::rng().random::<u64>());
        let mut request = ExecRequest::new(["sh", "-c", "stty -echo; exec /usr/bin/env bash"]);
        // Escapes that a terminal would need are nothing that anybody should read.
        request.env = env.clone();
        request.env.insert("TERM".to_owned(), "dumb".to_owned());
        for (name, text) in [("PS1", "> "), ("PS2", ""), ("PS0", "")] {
            request.env.insert(name.to_owned(), text.to_owned());
        }
        let process = place.spawn_pty(request, PtySize::default()).await?;
        let workdir = place.workdir().to_owned();
        let mut shell = Self { process, mark, buffer: Vec::new(), dropped: 0, workdir };
        let read: String = sources.iter().map(|path| format!("source {path} ; ")).collect();
        // In two parts, so that the line itself is no prompt where it is shown after all.
        let (first, rest) = shell.mark.split_at(4);
        let begin = format!(
            "{read}set +H ; unset PROMPT_COMMAND ; PS2= ; PS0= ; PS1='{first}''{rest} $? $PWD {rest}'\n"
        );
        shell.type_in(begin.as_bytes()).await?;
        match shell.until_prompt(START).await? {
            Typed::Ended { .. } => Ok(shell),
            Typed::Late { .. } | Typed::Gone { .. } => {
                Err(Halt::Refused("start bash: it is not there, or does not answer".to_owned()))
            }
        }
    }

    /// Runs what may be several lines.
    pub(super) async fn run(&mut self, command: &str, limit: Duration) -> Result<Typed, Halt> {
        let line = format!("eval {}\n", ansi_c_quoted(command));
        self.type_in(line.as_bytes()).await?;
        self.until_prompt(limit).await
    }

    /// Waits on for what runs.
    pub(super) async fn wait(&mut self, limit: Duration) -> Result<Typed, Halt> {
        self.until_prompt(limit).await
    }

    /// Presses keys for what runs.
    pub(super) async fn keys(&mut self, keys: &[u8]) -> Result<(), Halt> {
        self.type_in(keys).await
    }

    /// Ends what still runs, as keys do; whether the shell has a prompt again.
    pub(super) async fn interrupt(&mut self) -> Result<bool, Halt> {
        for _ in 0..INTERRUPTS {
            self.type_in(b"\x03").await?;
            match self.until_prompt(INTERRUPT).await? {
                Typed::Ended { .. } => {
                    // A line that was read before it may have a prompt of its own.
                    self.drain().await;
                    return Ok(true);
                }
                Typed::Late { .. } => {}
                Typed::Gone { .. } => return Ok(false),
            }
        }
        self.type_in(b"\x1a").await?;
        if !matches!(self.until_prompt(INTERRUPT).await?, Typed::Ended { .. }) {
            return Ok(false);
        }
        self.type_in(b"kill -9 %1\n").await?;
        let ended = self.until_prompt(INTERRUPT).await?;
        self.drain().await;
        Ok(matches!(ended, Typed::Ended { .. }))
    }

    async fn type_in(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        let written = async {
            self.process.terminal.write_all(bytes).await?;
            self.process.terminal.flush().await
        };
        match timeout(START, written).await {
            Ok(Ok(())) => Ok(()),
            // Its end is told by what is read.
            Ok(Err(error)) => {
                tracing::debug!(%error, "a terminal takes no more keys");
                Ok(())
            }
            Err(_) => Err(Halt::Refused("type: the terminal takes no more keys".to_owned())),
        }
    }

    /// Throws away what comes within a moment.
    async fn drain(&mut self) {
        let mut bytes = [0; 4096];
        let until = Instant::now() + Duration::from_millis(200);
        while let Ok(Ok(1..)) = timeout_at(until, self.process.terminal.read(&mut bytes)).await {}
        (self.buffer, self.dropped) = (Vec::new(), 0);
    }

    /// Reads up to the next prompt.
    async fn until_prompt(&mut self, limit: Duration) -> Result<Typed, Halt> {
        let end = Instant::now() + limit;
        let mut bytes = vec![0; 64 << 10];
        let mut searched = 0;
        loop {
            if let Some(ended) = self.prompt(searched) {
                return Ok(ended);
            }
            searched = self.buffer.len().saturating_sub(2 * self.mark.len() + 8192);
            match timeout_at(end, self.process.terminal.read(&mut bytes)).await {
                Err(_) => return Ok(Typed::Late { output: self.taken() }),
                Ok(Ok(0) | Err(_)) => return Ok(Typed::Gone { output: self.taken() }),
                Ok(Ok(count)) => {
                    self.buffer.extend_from_slice(&bytes[..count]);
                    if self.buffer.len() > KEPT_BYTES {
                        let surplus = self.buffer.len() - KEPT_BYTES;
                        self.buffer.drain(KEPT_BYTES / 2..KEPT_BYTES / 2 + surplus);
                        self.dropped += surplus;
                        searched = searched.saturating_sub(surplus);
                    }
                }
            }
        }
    }

    /// What stands before a prompt that was read, and what the prompt says.
    fn prompt(&mut self, from: usize) -> Option<Typed> {
        let start = from + find(&self.buffer[from..], self.mark.as_bytes())?;
        let inside = start + self.mark.len();
        let close = &self.mark.as_bytes()[4..];
        let end = inside + find(&self.buffer[inside..], close)?;
        let said = String::from_utf8_lossy(&self.buffer[inside..end]).into_owned();
        let rest = self.buffer.split_off(end + close.len());
        self.buffer.truncate(start);
        let output = self.taken();
        self.buffer = rest;
        let (code, workdir) = said.trim().split_once(' ')?;
        self.workdir = workdir.to_owned();
        Some(Typed::Ended { output, code: code.parse().unwrap_or(-1) })
    }

    fn taken(&mut self) -> Vec<u8> {
        let mut output = std::mem::take(&mut self.buffer);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let told = format!("\n[... {dropped} bytes left out ...]\n");
            let middle = (KEPT_BYTES / 2).min(output.len());
            output.splice(middle..middle, told.into_bytes());
        }
        output
    }
}

/// Where `needle` first stands.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// `text` as one word of bash on one line, in which no key has a meaning to the terminal.
fn ansi_c_quoted(text: &str) -> String {
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' => word.push_str("\\'"),
            '\\' => word.push_str("\\\\"),
            '\n' => word.push_str("\\n"),
            '\t' => word.push_str("\\t"),
            // No argument of a program can have one.
            '\0' => {}
            c if c.is_ascii_control() => word.push_str(&format!("\\x{:02x}", c as u32)),
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// Bytes as Python decodes them with `errors="backslashreplace"`.
pub(super) fn backslash_replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// What SWE-ReX keeps of what a terminal has shown: no escape sequences, and lines that end as they do elsewhere.
pub(super) fn stripped(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        kept.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let length = escape_length(sequence).unwrap_or(1);
        if length == 1 {
            kept.push('\u{1b}');
        }
        rest = &sequence[length..];
    }
    kept.push_str(rest);
    kept.replace("\r\n", "\n")
}

/// Bytes of an escape sequence at the beginning: `\x1B[@-_][0-?]*[ -/]*[@-~]`.
fn escape_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.get(1).filter(|byte| (b'@'..=b'_').contains(byte))?;
    let mut at = 2;
    while bytes.get(at).is_some_and(|byte| (b'0'..=b'?').contains(byte)) {
        at += 1;
    }
    while bytes.get(at).is_some_and(|byte| (b' '..=b'/').contains(byte)) {
        at += 1;
    }
    bytes.get(at).filter(|byte| (b'@'..=b'~').contains(byte))?;
    Some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_stands_on_one_line() {
        assert_eq!(ansi_c_quoted("echo 'a'\n\tb\\ \u{3}ä\0"), "$'echo \\'a\\'\\n\\tb\\\\ \\x03ä'");
    }

    #[test]
    fn text_is_kept_as_swe_rex_keeps_it() {
        assert_eq!(backslash_replaced(b"a\xff\xc3\xa4\xc3"), "a\\xffä\\xc3");
        assert_eq!(stripped("\u{1b}[31mred\u{1b}[0m\r\nx\ry\r\n"), "red\nx\ry\n");
        // As the expression finds it: two letters are one sequence, and what is cut off is none.
        assert_eq!(stripped("\u{1b}[?2004lx \u{1b}[ \u{1b}"), "x \u{1b}[ \u{1b}");
        assert_eq!(stripped("\u{1b}Mx"), "");
    }
}
