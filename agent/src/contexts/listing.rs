//! What is listed behind observations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spar_core::Observation;

use super::{ContextConfig, ListUntried};

/// What is listed behind the observations of one episode, as far as it depends on those before.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Actions that were admissible before; only kept where unnamed ones are listed.
    known: HashSet<Arc<str>>,
    /// Actions that were taken; only kept where untried ones are listed.
    taken: HashSet<String>,
    /// When numbered things were named first, as a place among all of them; only kept where untried actions are listed.
    named: HashMap<(String, String), usize>,
}

impl Listing {
    /// Appends to the shown `text` of an observation, behind `action` where one was understood, what is listed there.
    pub(super) fn append(
        &mut self,
        config: &ContextConfig,
        text: &mut String,
        observation: &Observation,
        action: Option<&str>,
    ) {
        let admissible = observation.admissible.as_deref().unwrap_or_default();
        if config.list_admissible {
            if observation.admissible.is_some() {
                list(text, "Admissible actions:", admissible);
            }
        } else if config.list_unnamed {
            let unnamed = self.unnamed(&observation.text, admissible);
            if !unnamed.is_empty() {
                list(text, "Also admissible:", &unnamed);
            }
        }
        if config.list_untried != ListUntried::Never {
            self.name_things(text);
            let untried = action.map(|action| self.untried(config, action, admissible));
            let untried = untried.unwrap_or_default();
            if !untried.is_empty() {
                list(text, "Not tried yet:", &untried);
            }
        }
    }

    /// The actions that are new in this episode and name a thing that `text` does not.
    fn unnamed(&mut self, text: &str, admissible: &[Arc<str>]) -> Vec<Arc<str>> {
        let named: HashSet<(&str, &str)> = numbered_things(text).collect();
        let mut unnamed = Vec::new();
        for action in admissible {
            let is_new = self.known.insert(Arc::clone(action));
            if is_new && numbered_things(action).any(|thing| !named.contains(&thing)) {
                unnamed.push(Arc::clone(action));
            }
        }
        unnamed
    }

    fn name_things(&mut self, text: &str) {
        for (word, number) in numbered_things(text) {
            let place = self.named.len();
            self.named.entry((word.to_owned(), number.to_owned())).or_insert(place);
        }
    }

    /// What could be done in place of an action, where that is to be told.
    fn untried(
        &mut self,
        config: &ContextConfig,
        action: &str,
        admissible: &[Arc<str>],
    ) -> Vec<Arc<str>> {
        let is_new = self.taken.insert(action.to_owned());
        if is_new && config.list_untried == ListUntried::Repeated {
            return Vec::new();
        }
        let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
        let word = first_word(action);
        let is_left =
            |other: &&Arc<str>| first_word(other) == word && !self.taken.contains(&***other);
        let mut left: Vec<_> = admissible.iter().filter(is_left).cloned().collect();
        // What names nothing, or nothing that was named, comes last.
        left.sort_by_cached_key(|other| {
            let places = numbered_things(other)
                .map(|(word, number)| self.named.get(&(word.to_owned(), number.to_owned())));
            places.map(|place| place.copied().unwrap_or(usize::MAX)).max().unwrap_or(usize::MAX)
        });
        let mut kinds = HashSet::new();
        left.retain(|other| kinds.insert(without_numbers(other)));
        left.truncate(config.max_untried.unwrap_or(usize::MAX));
        left
    }
}

fn list(text: &mut String, title: &str, actions: &[Arc<str>]) {
    text.push('\n');
    text.push_str(title);
    for action in actions {
        text.push_str("\n- ");
        text.push_str(action);
    }
}

/// Words with the number behind them, such as `cabinet 7`.
fn numbered_things(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words().zip(words().skip(1)).filter(move |(word, number)| !is_number(word) && is_number(number))
}

/// The words that are no numbers.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    text.split_whitespace().filter(|word| !is_number(word)).collect::<Vec<_>>().join(" ")
}
