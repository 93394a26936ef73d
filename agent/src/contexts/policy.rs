//! What becomes of a conversation as it grows.

use std::fmt;

use spar_core::PolicyError;

use super::{ContextEditor, SummaryRules};
use crate::EpisodeConfig;

/// What becomes of a conversation as it grows: which of it the policy that acts still sees.
///
/// It is asked before every turn, and changes the conversation once and for all: what it left out stays out. From the
/// same conversation it does the same, so that a fork sees what its origin saw.
///
/// ```
/// use spar_agent::contexts::{ContextEditor, ContextPolicy, Next};
/// use spar_core::PolicyError;
///
/// /// Keeps the last turn alone.
/// #[derive(Debug)]
/// struct Forgetful;
///
/// impl ContextPolicy for Forgetful {
///     fn name(&self) -> &'static str {
///         "forgetful"
///     }
///
///     fn shorten(&self, conversation: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError> {
///         let too_many = conversation.num_turns().saturating_sub(1);
///         conversation.drop_turns(too_many);
///         Ok(Next::Act)
///     }
/// }
/// ```
pub trait ContextPolicy: fmt::Debug + Send + Sync {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// Whether it never changes anything, so that it need not be asked. Default false.
    fn keeps_all(&self) -> bool {
        false
    }

    /// All that does not fit with the other settings of an episode; by default nothing.
    fn problems(&self, episode: &EpisodeConfig) -> Vec<String> {
        let _ = episode;
        Vec::new()
    }

    /// Shortens the conversation, or has it summed up, before the next turn.
    ///
    /// # Errors
    ///
    /// [`PolicyError::ContextFull`] when nothing is left that could be left out, which truncates the episode; another when
    /// the policy has no layout for the conversation.
    fn shorten(&self, conversation: &mut ContextEditor<'_, '_>) -> Result<Next, PolicyError>;

    /// How it has conversations summed up; by default it never does.
    fn summaries(&self) -> Option<&SummaryRules> {
        None
    }
}

/// What comes next in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The policy acts.
    Act,
    /// The policy sums up what came before, as its [rules](ContextPolicy::summaries) say: a turn of its own.
    Summarize,
}
