//! Conversations that are shortened as they grow.

use std::sync::Arc;

use spar_core::{Encoded, Message, Part, PolicyError, PromptTokens, Role, ToolSpec};

use super::context::{Context, Mark};
use super::thoughts::split_thoughts;
use super::{ContextEditor, Next, Prompt, SummaryRules};

impl<'a> Context<'a> {
    /// Whether a context policy is to be asked before every turn.
    pub(crate) fn is_shortened(&self) -> bool {
        self.policy.is_some()
    }

    /// How the conversation is summed up; absent where it never is.
    pub(crate) fn summaries(&self) -> Option<&'a SummaryRules> {
        self.policy?.summaries()
    }

    /// Has the context policy shorten the conversation before a turn in which these tools are offered.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when it cannot become short enough, or the policy has no layout for it.
    pub(crate) fn shorten(&mut self, tools: &Arc<[ToolSpec]>) -> Result<Next, PolicyError> {
        let Some(policy) = self.policy else { return Ok(Next::Act) };
        self.offer(tools);
        policy.shorten(&mut ContextEditor::new(self))
    }

    /// The prompt of a turn that sums the conversation up: all of it, and what is asked at its end.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the policy has no layout for the conversation.
    pub(crate) fn summary_prompt(
        &mut self,
        tools: &Arc<[ToolSpec]>,
        rules: &SummaryRules,
    ) -> Result<Prompt, PolicyError> {
        self.offer(tools);
        let mut messages = Vec::clone(&self.messages);
        // Many templates take no two messages of the user one behind the other.
        match messages.last_mut() {
            Some(last) if last.role == Role::User => *last = with_text(last, &rules.request),
            _ => messages.push(Arc::new(Message::new(Role::User, &*rules.request))),
        }
        let start = if self.is_broken { 0 } else { self.encoded };
        let encoded = self.encode(&messages, start)?;
        // What comes behind a summary is another conversation.
        self.is_broken = true;
        let messages = Arc::new(messages);
        Ok(match encoded {
            Encoded::Alone(appended) | Encoded::Behind(appended) if start > 0 => {
                let kept = self.previous.len();
                self.previous.extend_from_slice(&appended);
                let ids = Arc::from(self.previous.as_slice());
                Prompt { messages, ids, tokens: PromptTokens { kept, appended } }
            }
            Encoded::Alone(ids) | Encoded::Behind(ids) | Encoded::Anew(ids) => {
                self.begin_anew(messages, ids)
            }
        })
    }

    /// Puts what the policy has summed up, with the tokens as it sampled them, in the place of all but the task and the
    /// last turns. What it thought before is not carried on.
    pub(crate) fn push_summary(&mut self, text: &str, sampled: &[u32], rules: &SummaryRules) {
        self.answer = self.previous.len();
        match self.laid_out.is_empty() {
            true => self.previous.extend_from_slice(sampled),
            false => self.laid_out.extend_from_slice(sampled),
        }
        let summed = self.starts().count().saturating_sub(rules.keep_turns);
        self.drop_turns(summed);
        self.note_behind_task(&rules.note(split_thoughts(text).1.trim()));
        self.since_summary = 0;
    }

    /// Where the shown turns begin: each with an answer.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        let is_answer = |(_, mark): &(usize, &Mark)| matches!(mark, Mark::Answer(_));
        self.marks.iter().enumerate().filter(is_answer).map(|(place, _)| place)
    }

    /// Drops so many of the shown turns, oldest first, or all of them where they are fewer, and tells how many.
    pub(super) fn drop_turns(&mut self, count: usize) -> usize {
        let mut starts = self.starts();
        let Some(first) = starts.next().filter(|_| count > 0) else { return 0 };
        let dropped = 1 + starts.by_ref().take(count - 1).count();
        let end = starts.next().unwrap_or(self.messages.len());
        drop(starts);
        Arc::make_mut(&mut self.messages).drain(first..end);
        self.marks.drain(first..end);
        self.is_broken = true;
        dropped
    }

    /// Puts a note behind the task, in the place of the one that stood there.
    pub(super) fn note_behind_task(&mut self, note: &str) {
        let messages = Arc::make_mut(&mut self.messages);
        let task = self.task.get_or_insert_with(|| match self.head.checked_sub(1) {
            Some(last) if messages[last].role == Role::User => Arc::clone(&messages[last]),
            // What came first were results of tools alone, or nothing.
            _ => {
                let empty = Arc::new(Message::of_parts(Role::User, Vec::new()));
                messages.insert(self.head, Arc::clone(&empty));
                self.marks.insert(self.head, Mark::Task);
                self.head += 1;
                empty
            }
        });
        messages[self.head - 1] = with_text(task, note);
        self.is_broken = true;
    }

    /// Tokens of the last prompt and answer where the policy lays conversations out itself; 0 where it does not tell.
    pub(super) fn laid_out_len(&self) -> usize {
        self.laid_out.len()
    }
}

/// A message with more to say, in a paragraph of its own.
fn with_text(message: &Message, text: &str) -> Arc<Message> {
    let mut message = message.clone();
    let separator = if message.parts.is_empty() { "" } else { "\n\n" };
    message.parts.push(Part::Text(format!("{separator}{text}")));
    Arc::new(message)
}
