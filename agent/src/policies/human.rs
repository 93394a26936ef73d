//! A policy that asks a person.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, Role, StopCause};

/// Shows the conversation to a person and reads the actions they type.
///
/// `?` shows the admissible actions; the end of the input closes the policy. Reading waits on a
/// thread of its own, which no deadline can interrupt.
#[derive(Clone)]
pub struct HumanPolicy {
    console: Arc<Mutex<Console>>,
}

struct Console {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    /// The last message of every episode in progress that was shown.
    shown: HashMap<u64, Arc<Message>>,
}

impl HumanPolicy {
    /// A person who reads `output` and types into `input`.
    pub fn new(input: impl BufRead + Send + 'static, output: impl Write + Send + 'static) -> Self {
        let console =
            Console { input: Box::new(input), output: Box::new(output), shown: HashMap::new() };
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

    async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
        request.refuse_all_but_choices(self.name())?;
        let console = Arc::clone(&self.console);
        let ask = move || console.lock().unwrap_or_else(PoisonError::into_inner).ask(&request);
        let name = || "human".to_owned();
        let unreachable = |detail: String| PolicyError::Unreachable { name: name(), detail };
        match tokio::task::spawn_blocking(ask).await {
            Ok(Ok(Some(text))) => Ok(Completion::new(name(), text, StopCause::EndOfTurn)),
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
    /// Asks until there is an answer; `None` at the end of the input.
    fn ask(&mut self, request: &CompletionRequest) -> io::Result<Option<String>> {
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
        loop {
            write!(self.output, "> ")?;
            self.output.flush()?;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                writeln!(self.output)?;
                return Ok(None);
            }
            match (line.trim(), &request.choices) {
                ("", _) => {}
                ("?", Some(choices)) => {
                    for choice in choices.iter() {
                        writeln!(self.output, "  {choice}")?;
                    }
                }
                ("?", None) => writeln!(self.output, "  (this environment lists no actions)")?,
                (answer, _) => return Ok(Some(answer.to_owned())),
            }
        }
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
}
