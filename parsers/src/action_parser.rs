//! What reads actions, and writes them.

use spar_core::{Action, GrammarSource, ToolSpec};

use crate::{CallRules, FormatError, Parsed, WriteError};

/// A syntax in which a policy writes its actions.
pub trait ActionParser: Send + Sync {
    /// The name that [`open_parser`](crate::open_parser) knows it by.
    fn name(&self) -> &'static str;

    /// Reads the action in `text`, what a policy wrote in one turn.
    ///
    /// `tools` are those that were offered. Calls of others are read as well, and arguments are
    /// not checked: that is the environment's business.
    ///
    /// # Errors
    ///
    /// [`FormatError`] when there is no action in this syntax, or one that is malformed; its
    /// message is for the policy.
    fn parse(&self, text: &str, tools: &[ToolSpec]) -> Result<Parsed, FormatError>;

    /// All that could be the action in `text`, where the syntax wants exactly one; for the words in which a format error is
    /// told. Default none.
    fn candidates<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let _ = text;
        Vec::new()
    }

    /// The text that [`parse`](Self::parse) reads as `action` where the same tools are offered, as
    /// a demonstrator writes it.
    ///
    /// White space around what is said is left out, and so are the ids of calls, save where the
    /// syntax has a place for them. Nothing else is lost: what is written was read back.
    ///
    /// # Errors
    ///
    /// [`WriteError`] when the syntax cannot say it.
    fn write(&self, action: &Action, tools: &[ToolSpec]) -> Result<String, WriteError>;

    /// The texts that [`write`](Self::write) gives for calls of `tools` with arguments of their schemas, so that a
    /// policy can be held to them; each is read as calls of these tools. Default none: where there are no tools, where
    /// the syntax does not have what `rules` allow, or where its marks are no ordinary text.
    fn call_grammar(&self, tools: &[ToolSpec], rules: CallRules) -> Option<GrammarSource> {
        let _ = (tools, rules);
        None
    }
}

/// Hands out `text` if it is read as `action`.
pub(crate) fn read_back(
    parser: &dyn ActionParser,
    text: String,
    action: &Action,
    tools: &[ToolSpec],
) -> Result<String, WriteError> {
    let comparable = |action: &Action| {
        let mut action = action.clone();
        match &mut action {
            Action::Text { text } => *text = text.trim().to_owned(),
            Action::Calls { text, calls } => {
                *text = text.trim().to_owned();
                calls.iter_mut().for_each(|call| call.id.clear());
            }
        }
        action
    };
    match parser.parse(&text, tools) {
        Ok(parsed) if comparable(&parsed.action) == comparable(action) => Ok(text),
        _ => Err(WriteError::Misread { parser: parser.name(), text }),
    }
}
