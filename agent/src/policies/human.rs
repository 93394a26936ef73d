//! A policy that asks a person.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use spar_core::{
    Action, Completion, CompletionRequest, Message, Policy, PolicyError, Role, StopCause, ToolSpec,
};

use super::typed_line::{HOW_TO_CALL, list_tools, typed_action};

const HELP: &str = "  type what you do, or say where no tools are offered
  where tools are, type a call: NAME {\"ARGUMENT\": 1} or NAME(ARGUMENT=1), several one behind the other
  \"WORDS    says words where tools are offered; so does :say WORDS anywhere
  :say      alone says the lines behind it, up to one that is a dot
  ?         lists the tools, or the actions that can be carried out now
  ? WORD    lists those with a word in them
  :quit     leaves
";

/// Shows the conversation to a person and reads the actions they type.
///
/// A line is an action; where tools are offered, it is a [call](typed_action) or marked as words. `?` shows the tools or
/// the admissible actions, `:help` all that can be typed; `:quit` and the end of the input close the policy. Reading waits
/// on a thread of its own, which no deadline can interrupt.
#[derive(Clone)]
pub struct HumanPolicy {
    console: Arc<Mutex<Console>>,
}

struct Console {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    /// The last message of every episode in progress that was shown.
    shown: HashMap<u64, Arc<Message>>,
    /// Whether it was told how tools are called.
    has_told: bool,
}

impl HumanPolicy {
    /// A person who reads `output` and types into `input`.
    pub fn new(input: impl BufRead + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let console = Console {
            input: Box::new(input),
            output: Box::new(output),
            shown: HashMap::new(),
            has_told: false,
        };
        Self { console: Arc::new(Mutex::new(console)) }
    }
}

#[async_trait]
impl Policy for HumanPolicy {
    fn name(&self) -> &str {
        "human"
    }

    fn encode(&self, _before: Option<&Message>, _message: &Message) -> Vec<u32> {
        Vec::new()
    }

    async fn complete(&self, mut request: CompletionRequest) -> Result<Completion, PolicyError> {
        // A person reads by itself which calls it types.
        let tools = std::mem::take(&mut request.tools);
        request.refuse_all_but_choices(self.name())?;
        let console = Arc::clone(&self.console);
        let ask =
            move || console.lock().unwrap_or_else(PoisonError::into_inner).ask(&request, &tools);
        let name = || "human".to_owned();
        let unreachable = |detail: String| PolicyError::Unreachable { name: name(), detail };
        match tokio::task::spawn_blocking(ask).await {
            Ok(Ok(Some(Action::Text { text }))) => {
                Ok(Completion::new(name(), text, StopCause::EndOfTurn))
            }
            Ok(Ok(Some(Action::Calls { text, calls }))) => Ok(Completion {
                calls: Some(Ok(calls)),
                ..Completion::new(name(), text, StopCause::ToolCalls)
            }),
            Ok(Ok(None)) => Err(PolicyError::Closed { name: name() }),
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(error) => Err(unreachable(error.to_string())),
        }
    }

    fn forget(&self, episode: u64) {
        // Whoever is typing holds the lock; what is left then is one message.
        if let Ok(mut console) = self.console.try_lock() {
            console.shown.remove(&episode);
        }
    }
}

impl Console {
    /// Asks until there is an answer; `None` where the person leaves.
    fn ask(
        &mut self,
        request: &CompletionRequest,
        tools: &[ToolSpec],
    ) -> io::Result<Option<Action>> {
        let last = self.shown.get(&request.episode);
        let first_new = last
            .and_then(|last| request.messages.iter().rposition(|other| Arc::ptr_eq(other, last)))
            .map_or(0, |position| position + 1);
        for message in &request.messages[first_new..] {
            if message.role != Role::Assistant {
                writeln!(self.output, "{}\n", message.text())?;
            }
        }
        if let Some(last) = request.messages.last() {
            self.shown.insert(request.episode, Arc::clone(last));
        }
        if !tools.is_empty() && !std::mem::replace(&mut self.has_told, true) {
            writeln!(self.output, "{HOW_TO_CALL}\n")?;
        }
        let choices = request.choices.as_deref();
        loop {
            let Some(line) = self.read_line()? else { return Ok(None) };
            match line.trim() {
                "" => {}
                ":quit" | ":q" => return Ok(None),
                ":help" => write!(self.output, "{HELP}")?,
                ":say" => return Ok(self.read_lines()?.map(Action::text)),
                question if question.starts_with('?') => {
                    self.list(question[1..].trim(), choices, tools)?;
                }
                command if command.starts_with(':') && !command.starts_with(":say ") => {
                    writeln!(
                        self.output,
                        "  `{command}` is unknown; `:help` lists what there is, `:say {command}` says it"
                    )?;
                }
                listed if choices.is_some_and(|all| all.iter().any(|it| **it == *listed)) => {
                    return Ok(Some(listed.into()));
                }
                line => match typed_action(line, tools) {
                    Ok(action) => return Ok(Some(action)),
                    Err(told) => writeln!(self.output, "  {told}")?,
                },
            }
        }
    }

    /// The next line; `None` at the end of the input.
    fn read_line(&mut self) -> io::Result<Option<String>> {
        write!(self.output, "> ")?;
        self.output.flush()?;
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            writeln!(self.output)?;
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// Lines up to one that is a dot.
    fn read_lines(&mut self) -> io::Result<Option<String>> {
        let mut lines = Vec::new();
        loop {
            let Some(line) = self.read_line()? else { return Ok(None) };
            match line.trim_end_matches(['\r', '\n']) {
                "." => return Ok(Some(lines.join("\n"))),
                line => lines.push(line.to_owned()),
            }
        }
    }

    fn list(
        &mut self,
        word: &str,
        choices: Option<&[Arc<str>]>,
        tools: &[ToolSpec],
    ) -> io::Result<()> {
        if choices.is_none() && tools.is_empty() {
            return writeln!(self.output, "  (this environment lists no actions)");
        }
        for choice in choices.unwrap_or_default().iter().filter(|it| it.contains(word)) {
            writeln!(self.output, "  {choice}")?;
        }
        if tools.is_empty() {
            return Ok(());
        }
        write!(self.output, "{}", list_tools(tools, word))
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_person_sees_each_message_once_and_may_ask_for_actions() {
        let screen = Screen::default();
        let policy = HumanPolicy::new(&b"?\n\n go \nwait\n"[..], screen.clone());
        let mut request = CompletionRequest {
            messages: vec![Arc::new(Message::new(Role::User, "a room"))].into(),
            choices: Some([Arc::from("go")].into()),
            ..CompletionRequest::new(1, Seed::from_u64(0))
        };
        assert_eq!(policy.complete(request.clone()).await.unwrap().text, "go");
        let messages = Arc::make_mut(&mut request.messages);
        messages.push(Arc::new(Message::new(Role::Assistant, "go")));
        messages.push(Arc::new(Message::new(Role::User, "a hall")));
        assert_eq!(policy.complete(request.clone()).await.unwrap().text, "wait");
        let end = policy.complete(request).await;
        assert!(matches!(end, Err(PolicyError::Closed { .. })));
        let shown = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        assert_eq!(shown, "a room\n\n>   go\n> > a hall\n\n> > \n");
    }

    #[tokio::test]
    async fn a_person_calls_tools_and_says_words_that_are_marked() {
        let screen = Screen::default();
        let lines = "?\n:help\n:what\nhello\npay {\"amount\": 3}\n\"It is paid.\n:say\none\ntwo\n.\n:quit\npay\n";
        let policy = HumanPolicy::new(lines.as_bytes(), screen.clone());
        let tool = ToolSpec::new("pay", "Pays.", serde_json::json!({}));
        let request = CompletionRequest {
            tools: [tool].into(),
            ..CompletionRequest::new(1, Seed::from_u64(0))
        };
        let call = policy.complete(request.clone()).await.unwrap();
        assert_eq!(call.calls.unwrap().unwrap()[0].arguments["amount"], 3);
        let words = policy.complete(request.clone()).await.unwrap();
        assert_eq!((&*words.text, words.calls), ("It is paid.", None));
        assert_eq!(policy.complete(request.clone()).await.unwrap().text, "one\ntwo");
        assert!(matches!(policy.complete(request).await, Err(PolicyError::Closed { .. })));
        let shown = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        for told in [
            HOW_TO_CALL,
            "  pay {}  Pays.",
            "leaves",
            "`:what` is unknown",
            "`hello` is no call of a tool",
        ] {
            assert_eq!(shown.matches(told).count(), 1, "{told} in {shown}");
        }
    }
}
