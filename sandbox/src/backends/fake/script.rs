//! The small part of a shell's language that fake sandboxes understand.

use super::FakeReply;
use super::programs::Surroundings;

/// Words that begin what this shell does not know.
const RESERVED: [&str; 13] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "{",
];

/// Runs a script: commands with `;`, `&&`, `||`, `!`, pipes, `<`, `>`, `>>`, quotes, `$(...)` and
/// `*` in the last part of a path. A script in another language is a syntax error, code 2.
pub(super) fn run_script(text: &str, stdin: Vec<u8>, at: &mut Surroundings<'_>) -> FakeReply {
    let mut parser = Parser { left: text };
    let parsed = parser.list().and_then(|list| match parser.left {
        "" => Ok(list),
        _ => Err("unexpected `)`".to_owned()),
    });
    match parsed {
        Ok(list) => run_list(&list, stdin, at).0,
        Err(reason) => FakeReply::failed(2, format!("sh: syntax error: {reason}\n")),
    }
}

/// Pipelines, each with what has to hold for it to run.
type List = Vec<(When, Pipeline)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Succeeded,
    Failed,
}

#[derive(Debug, Default)]
struct Pipeline {
    is_negated: bool,
    commands: Vec<Command>,
}

#[derive(Debug, Default)]
struct Command {
    words: Vec<Word>,
    input: Option<Word>,
    /// Where the output goes, and whether behind what is there.
    output: Option<(Word, bool)>,
}

type Word = Vec<Piece>;

#[derive(Debug)]
enum Piece {
    Quoted(String),
    Bare(String),
    Substitution(List),
}

struct Parser<'a> {
    left: &'a str,
}

impl<'a> Parser<'a> {
    fn list(&mut self) -> Result<List, String> {
        let mut list = Vec::new();
        let mut when = When::Always;
        loop {
            self.skip(|c| c.is_whitespace() || c == ';');
            if self.left.is_empty() || self.left.starts_with(')') {
                return if when == When::Always { Ok(list) } else { Err("it ends early".into()) };
            }
            list.push((when, self.pipeline()?));
            when = if self.take("&&") {
                When::Succeeded
            } else if self.take("||") {
                When::Failed
            } else {
                When::Always
            };
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let mut pipeline = Pipeline::default();
        self.blanks();
        while self.left.starts_with("! ") {
            self.take("!");
            self.blanks();
            pipeline.is_negated = !pipeline.is_negated;
        }
        loop {
            pipeline.commands.push(self.command()?);
            if self.left.starts_with("||") || !self.take("|") {
                return Ok(pipeline);
            }
        }
    }

    fn command(&mut self) -> Result<Command, String> {
        let mut command = Command::default();
        loop {
            self.blanks();
            if self.take(">>") {
                command.output = Some((self.target()?, true));
            } else if self.take(">") {
                command.output = Some((self.target()?, false));
            } else if self.take("<") {
                command.input = Some(self.target()?);
            } else if self.left.is_empty() || self.left.starts_with(['|', '&', ';', '\n', ')']) {
                break;
            } else {
                let word = self.word()?;
                if let ([], [Piece::Bare(first)]) = (&*command.words, &*word)
                    && RESERVED.contains(&first.as_str())
                {
                    return Err(format!("unexpected `{first}`"));
                }
                command.words.push(word);
            }
        }
        if command.words.is_empty() {
            return Err("a command is missing".into());
        }
        if self.left.starts_with('&') && !self.left.starts_with("&&") {
            return Err("unexpected `&`".into());
        }
        Ok(command)
    }

    fn target(&mut self) -> Result<Word, String> {
        self.blanks();
        self.word()
    }

    fn word(&mut self) -> Result<Word, String> {
        let mut word = Vec::new();
        while let Some(next) = self.left.chars().next() {
            match next {
                '\'' => word.push(Piece::Quoted(self.until_quote()?.to_owned())),
                '"' => {
                    self.take("\"");
                    self.in_double_quotes(&mut word)?;
                }
                '$' => word.push(self.substitution()?),
                '`' | '(' => return Err(format!("unexpected `{next}`")),
                '|' | '&' | ';' | ')' | '<' | '>' => break,
                c if c.is_whitespace() => break,
                _ => {
                    let is_end = |c: char| c.is_whitespace() || "'\"$`()|&;<>".contains(c);
                    let end = self.left.find(is_end).unwrap_or(self.left.len());
                    let (bare, left) = self.left.split_at(end);
                    word.push(Piece::Bare(bare.to_owned()));
                    self.left = left;
                }
            }
        }
        if word.is_empty() { Err("a word is missing".into()) } else { Ok(word) }
    }

    fn until_quote(&mut self) -> Result<&'a str, String> {
        let (quoted, left) =
            self.left[1..].split_once('\'').ok_or("a quote is not closed".to_owned())?;
        self.left = left;
        Ok(quoted)
    }

    fn in_double_quotes(&mut self, word: &mut Word) -> Result<(), String> {
        // An empty string is a word as well.
        word.push(Piece::Quoted(String::new()));
        loop {
            let end = self.left.find(['"', '$']).ok_or("a quote is not closed".to_owned())?;
            let (text, left) = self.left.split_at(end);
            word.push(Piece::Quoted(text.to_owned()));
            self.left = left;
            if self.take("\"") {
                return Ok(());
            }
            word.push(self.substitution()?);
        }
    }

    fn substitution(&mut self) -> Result<Piece, String> {
        if !self.take("$(") {
            return Err("unexpected `$`".into());
        }
        let list = self.list()?;
        if self.take(")") {
            Ok(Piece::Substitution(list))
        } else {
            Err("a `$(` is not closed".into())
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let left = self.left.strip_prefix(token);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.left = self.left.trim_start_matches(is_skipped);
    }

    fn blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }
}

/// What came of a list, and whether it ended the script.
fn run_list(list: &List, stdin: Vec<u8>, at: &mut Surroundings<'_>) -> (FakeReply, bool) {
    let mut sum = FakeReply::exited(0, "");
    for (when, pipeline) in list {
        let has_succeeded = sum.end.is_success();
        if (*when == When::Succeeded && !has_succeeded) || (*when == When::Failed && has_succeeded)
        {
            continue;
        }
        let (reply, is_over) = run_pipeline(pipeline, stdin.clone(), at);
        sum.end = reply.end;
        sum.takes += reply.takes;
        sum.stdout.extend(reply.stdout);
        sum.stderr.extend(reply.stderr);
        if is_over {
            return (sum, true);
        }
    }
    (sum, false)
}

fn run_pipeline(
    pipeline: &Pipeline,
    stdin: Vec<u8>,
    at: &mut Surroundings<'_>,
) -> (FakeReply, bool) {
    let mut sum = FakeReply::exited(0, stdin);
    let mut is_exit = false;
    for command in &pipeline.commands {
        let input = std::mem::take(&mut sum.stdout);
        let reply = run_command(command, input, at, &mut is_exit);
        sum.end = reply.end;
        sum.takes += reply.takes;
        sum.stdout = reply.stdout;
        sum.stderr.extend(reply.stderr);
    }
    if pipeline.is_negated {
        let code = i32::from(sum.end.is_success());
        sum.end = crate::ExecEnd::Exited { code };
    }
    (sum, is_exit && pipeline.commands.len() == 1)
}

fn run_command(
    command: &Command,
    mut stdin: Vec<u8>,
    at: &mut Surroundings<'_>,
    is_exit: &mut bool,
) -> FakeReply {
    let words: Vec<String> = command.words.iter().flat_map(|word| expand(word, at)).collect();
    if let Some(word) = &command.input {
        let path = expand(word, at).join(" ");
        match at.read(&path) {
            Some(bytes) => stdin = bytes,
            None => return FakeReply::failed(1, format!("sh: {path}: cannot be read\n")),
        }
    }
    let output = command.output.as_ref().map(|(word, behind)| (expand(word, at).join(" "), behind));
    if let Some((path, behind)) = &output {
        let before = at.read(path).filter(|_| **behind).unwrap_or_default();
        if !at.write(path, before) {
            return FakeReply::failed(1, format!("sh: {path}: cannot be written\n"));
        }
    }
    *is_exit = words.first().is_some_and(|word| word == "exit");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut reply = at.run(&words, stdin);
    if let Some((path, _)) = &output {
        let mut bytes = at.read(path).unwrap_or_default();
        bytes.append(&mut reply.stdout);
        at.write(path, bytes);
    }
    reply
}

/// The words that a word stands for: several where it has a `*` that fits.
fn expand(word: &Word, at: &mut Surroundings<'_>) -> Vec<String> {
    let (mut text, mut has_star) = (String::new(), false);
    for piece in word {
        match piece {
            Piece::Quoted(quoted) => text.push_str(quoted),
            Piece::Bare(bare) => {
                has_star |= bare.contains('*');
                text.push_str(bare);
            }
            Piece::Substitution(list) => {
                let (reply, _) = run_list(list, Vec::new(), at);
                text.push_str(String::from_utf8_lossy(&reply.stdout).trim_end_matches('\n'));
            }
        }
    }
    let found = if has_star { at.glob(&text) } else { Vec::new() };
    if found.is_empty() { vec![text] } else { found }
}
