//! What a policy sees of its episode.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spar_core::{
    Action, Message, Observation, ParsedAction, Policy, PromptTokens, Role, Trajectory,
};
use spar_tasks::Task;

/// What a policy sees of its episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// How many of the last turns are kept behind the first observation, which always stays; at
    /// least 1. Default absent: all turns are kept.
    pub window_turns: Option<usize>,
    /// Whether the environment's words for what is demanded stand behind every observation.
    /// Default false.
    pub reminder: bool,
    /// Whether the task's instruction opens the conversation as a system message. Default true.
    pub instruction: bool,
    /// Whether observations list the admissible actions. Default false.
    pub list_admissible: bool,
    /// Whether observations list those admissible actions alone that name what their text does not: for
    /// the first time in the episode, and with a numbered thing (`cabinet 7`) that the text leaves out. In
    /// household rooms several places can be within reach of one, which only the actions tell.
    /// Nothing where all are listed. Default false.
    pub list_unnamed: bool,
    /// When an action is answered with the admissible ones that begin with the same word (`go`) and were not
    /// taken yet in the episode: what is left to try. Of those that differ in numbers alone (`go to cabinet 3`,
    /// `go to cabinet 7`) one is listed, that whose thing was named first: so a short list leaves no kind of
    /// thing out, and the next of a kind comes when the one before is taken. Default never.
    pub list_untried: ListUntried,
    /// The most that are listed of those; at least 1. They stand in the order in which what they name was named
    /// first. Default absent: all.
    pub max_untried: Option<usize>,
    /// Tokens of prompt and answer together, beyond which an episode is truncated. Default
    /// absent: the policy's own limit.
    pub max_context_tokens: Option<usize>,
}

/// When actions that were not taken yet are listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListUntried {
    /// Not at all.
    #[default]
    Never,
    /// Behind an action that was taken before in the episode: who searches in circles reads there how to leave
    /// them, and who does not repeat itself is shown nothing.
    Repeated,
    /// Behind every action.
    Always,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window_turns: None,
            reminder: false,
            instruction: true,
            list_admissible: false,
            list_unnamed: false,
            list_untried: ListUntried::Never,
            max_untried: None,
            max_context_tokens: None,
        }
    }
}

impl ContextConfig {
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.window_turns == Some(0) {
            problems.push("context.window_turns is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried == Some(0) {
            problems.push("context.max_untried is 0, must be at least 1 or absent".to_owned());
        }
        if self.max_untried.is_some() && self.list_untried == ListUntried::Never {
            problems.push(
                "context.max_untried has no effect: context.list_untried is `never`".to_owned(),
            );
        }
        if self.max_context_tokens == Some(0) {
            problems
                .push("context.max_context_tokens is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

impl ContextConfig {
    /// The texts of an episode's observations with what is listed behind them, reminders left out.
    pub fn observations(&self, trajectory: &Trajectory) -> Vec<Arc<Message>> {
        let mut context = Context::empty(self, None);
        context.push_observation(&trajectory.first_observation, None);
        for turn in &trajectory.turns {
            context.push_observation(&turn.step.observation, said_in(&turn.parsed));
        }
        Arc::unwrap_or_clone(context.messages)
    }
}

/// The prompt of one turn.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation as text.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The conversation as tokens.
    pub ids: Arc<[u32]>,
    /// The tokens as the difference to the previous turn.
    pub tokens: PromptTokens,
}

/// The conversation of one episode, as messages and as tokens.
///
/// Every message is encoded once; what a policy sampled stays as it was sampled.
pub struct Context<'a> {
    config: &'a ContextConfig,
    encoder: Option<&'a dyn Policy>,
    reminder: Option<Arc<str>>,
    /// Actions that were admissible before; only kept where unnamed ones are listed.
    known: HashSet<Arc<str>>,
    /// Actions that were taken; only kept where untried ones are listed.
    taken: HashSet<String>,
    /// When numbered things were named first, as a place among all of them; only kept where untried actions are listed.
    named: HashMap<(String, String), usize>,
    /// Shared with the requests that are under way.
    messages: Arc<Vec<Arc<Message>>>,
    /// How many messages come before the first turn.
    head: usize,
    /// Tokens of every message; only kept where a window may show them again.
    tokens: Vec<Vec<u32>>,
    /// The previous turn's prompt and sampled tokens.
    previous: Vec<u32>,
    /// Tokens of the messages since then.
    pending: Vec<u32>,
    /// The previous turn's prompt and sampled tokens where the policy lays conversations out itself, and tells.
    laid_out: Vec<u32>,
}

impl<'a> Context<'a> {
    /// The conversation after a reset; without an encoder it has no tokens.
    pub fn new(
        config: &'a ContextConfig,
        encoder: Option<&'a dyn Policy>,
        task: &Task,
        first: &Observation,
    ) -> Self {
        let mut context = Self::empty(config, encoder);
        context.reminder = first.instruction.clone().filter(|_| config.reminder);
        if config.instruction && !task.instruction.is_empty() {
            context.push_message(Message::new(Role::System, task.instruction.as_str()));
        }
        context.push_observation(first, None);
        context.head = context.messages.len();
        context
    }

    fn empty(config: &'a ContextConfig, encoder: Option<&'a dyn Policy>) -> Self {
        Self {
            config,
            encoder,
            reminder: None,
            known: HashSet::new(),
            taken: HashSet::new(),
            named: HashMap::new(),
            messages: Arc::default(),
            head: 0,
            tokens: Vec::new(),
            previous: Vec::new(),
            pending: Vec::new(),
            laid_out: Vec::new(),
        }
    }

    /// What the policy is to continue now; asked for once per turn.
    pub fn prompt(&mut self) -> Prompt {
        let num_shown = self.num_shown();
        let start = self.messages.len() - num_shown;
        let appended = std::mem::take(&mut self.pending);
        if start == self.head {
            let kept = self.previous.len();
            self.previous.extend_from_slice(&appended);
            return Prompt {
                messages: Arc::clone(&self.messages),
                ids: Arc::from(self.previous.as_slice()),
                tokens: PromptTokens { kept, appended },
            };
        }
        let shown = |index: &usize| *index < self.head || *index >= start;
        let indices = (0..self.messages.len()).filter(shown);
        let ids: Vec<u32> =
            indices.clone().flat_map(|index| &self.tokens[index]).copied().collect();
        let kept = ids.iter().zip(&self.previous).take_while(|(a, b)| a == b).count();
        let prompt = Prompt {
            messages: indices
                .map(|index| Arc::clone(&self.messages[index]))
                .collect::<Vec<_>>()
                .into(),
            ids: Arc::from(ids.as_slice()),
            tokens: PromptTokens { kept, appended: ids[kept..].to_vec() },
        };
        self.previous = ids;
        prompt
    }

    /// How many of the last messages are shown behind the first ones, which always are.
    fn num_shown(&self) -> usize {
        let turns = &self.messages[self.head..];
        let Some(window) = self.config.window_turns else { return turns.len() };
        // A turn begins with an answer.
        let answers = (0..turns.len()).filter(|index| turns[*index].role == Role::Assistant);
        let first = answers.rev().nth(window.saturating_sub(1));
        first.map_or(turns.len(), |first| turns.len() - first)
    }

    /// Takes over the prompt of this turn as the policy has laid it out itself; absent where it does not tell. What is
    /// returned is the prompt as the difference to the previous turn.
    pub(crate) fn lay_out(&mut self, ids: Option<&[u32]>) -> Option<PromptTokens> {
        let Some(ids) = ids else {
            self.laid_out.clear();
            return None;
        };
        let kept = ids.iter().zip(&self.laid_out).take_while(|(a, b)| a == b).count();
        self.laid_out = ids.to_vec();
        Some(PromptTokens { kept, appended: ids[kept..].to_vec() })
    }

    /// The whole prompt of a turn whose policy has laid it out itself.
    pub(crate) fn laid_out(&self, prompt: &PromptTokens) -> Vec<u32> {
        let kept = &self.laid_out[..prompt.kept.min(self.laid_out.len())];
        [kept, &prompt.appended[..]].concat()
    }

    /// Appends what the policy answered, with the tokens as it sampled them.
    pub fn push_answer(&mut self, text: &str, sampled: &[u32]) {
        Arc::make_mut(&mut self.messages).push(Arc::new(Message::new(Role::Assistant, text)));
        if !self.laid_out.is_empty() {
            self.laid_out.extend_from_slice(sampled);
            if self.config.window_turns.is_some() {
                self.tokens.push(Vec::new());
            }
            return;
        }
        self.previous.extend_from_slice(sampled);
        if self.config.window_turns.is_some() {
            self.tokens.push(sampled.to_vec());
        }
    }

    /// Appends what the environment showed, behind `action` where one was understood.
    pub fn push_observation(&mut self, observation: &Observation, action: Option<&str>) {
        let mut text = observation.text.clone();
        let admissible = observation.admissible.as_deref().unwrap_or_default();
        if self.config.list_admissible {
            if observation.admissible.is_some() {
                list(&mut text, "Admissible actions:", admissible);
            }
        } else if self.config.list_unnamed {
            let unnamed = self.unnamed(&observation.text, admissible);
            if !unnamed.is_empty() {
                list(&mut text, "Also admissible:", &unnamed);
            }
        }
        if self.config.list_untried != ListUntried::Never {
            self.name_things(&text);
            let untried = action.map(|action| self.untried(action, admissible)).unwrap_or_default();
            if !untried.is_empty() {
                list(&mut text, "Not tried yet:", &untried);
            }
        }
        if let Some(reminder) = &self.reminder {
            text.push_str("\n> ");
            text.push_str(reminder);
        }
        self.push_message(Message::new(Role::User, text));
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
    fn untried(&mut self, action: &str, admissible: &[Arc<str>]) -> Vec<Arc<str>> {
        let is_new = self.taken.insert(action.to_owned());
        if is_new && self.config.list_untried == ListUntried::Repeated {
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
        left.truncate(self.config.max_untried.unwrap_or(usize::MAX));
        left
    }

    /// Appends a message that is no answer of the policy.
    pub(crate) fn push_message(&mut self, message: Message) {
        let before = self.messages.last().map(AsRef::as_ref);
        let encode = |encoder: &dyn Policy| encoder.encode(before, &message);
        let tokens = self.encoder.map(encode).unwrap_or_default();
        self.pending.extend_from_slice(&tokens);
        if self.config.window_turns.is_some() {
            self.tokens.push(tokens);
        }
        Arc::make_mut(&mut self.messages).push(Arc::new(message));
    }
}

/// What was said in the action that a turn was read as.
pub(crate) fn said_in(parsed: &ParsedAction) -> Option<&str> {
    parsed.action().map(Action::said)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::ScriptedPolicy;

    fn task() -> Task {
        Task {
            id: "t".to_owned(),
            environment: "e".to_owned(),
            parameters: serde_json::Value::Null,
            instruction: "be good".to_owned(),
            max_turns: 3,
            tags: Vec::new(),
            graders: Vec::new(),
        }
    }

    fn observation(text: &str) -> Observation {
        Observation {
            text: text.to_owned(),
            instruction: Some("heat it".into()),
            admissible: Some([Arc::from("go"), Arc::from("wait")].into()),
            ..Observation::default()
        }
    }

    fn play(config: &ContextConfig, turns: usize) -> Vec<Prompt> {
        let policy = ScriptedPolicy::new(Vec::<String>::new());
        let mut context = Context::new(config, Some(&policy), &task(), &observation("o0"));
        let mut tokens: Vec<u32> = Vec::new();
        (0..turns)
            .map(|turn| {
                let prompt = context.prompt();
                tokens.truncate(prompt.tokens.kept);
                tokens.extend(&prompt.tokens.appended);
                assert_eq!(tokens, *prompt.ids);
                let encode = |message: &Arc<Message>| policy.encode(None, message);
                let encoded: Vec<u32> = prompt.messages.iter().flat_map(encode).collect();
                assert_eq!(encoded, *prompt.ids, "tokens and messages tell the same");
                let answer = Message::new(Role::Assistant, format!("a{turn}"));
                let sampled = policy.encode(None, &answer);
                tokens.extend(&sampled);
                context.push_answer(&answer.text(), &sampled);
                context.push_observation(&observation(&format!("o{}", turn + 1)), Some("go"));
                prompt
            })
            .collect()
    }

    fn texts(prompt: &Prompt) -> Vec<String> {
        prompt.messages.iter().map(|message| message.text().into_owned()).collect()
    }

    #[test]
    fn everything_is_appended() {
        let prompts = play(&ContextConfig::default(), 3);
        assert_eq!(texts(&prompts[2]), ["be good", "o0", "a0", "o1", "a1", "o2"]);
        assert_eq!(prompts[0].tokens.kept, 0);
        assert!(prompts[2].tokens.kept > prompts[1].ids.len());
    }

    #[test]
    fn a_window_keeps_the_first_observation_and_the_last_turns() {
        let config =
            ContextConfig { window_turns: Some(1), instruction: false, ..ContextConfig::default() };
        let prompts = play(&config, 4);
        assert_eq!(texts(&prompts[0]), ["o0"]);
        assert_eq!(texts(&prompts[1]), ["o0", "a0", "o1"]);
        assert_eq!(texts(&prompts[3]), ["o0", "a2", "o3"]);
        assert_eq!(prompts[1].tokens.kept, prompts[0].ids.len() + 3);
    }

    #[test]
    fn observations_carry_what_was_asked_for() {
        let config =
            ContextConfig { reminder: true, list_admissible: true, ..ContextConfig::default() };
        let prompts = play(&config, 2);
        assert_eq!(texts(&prompts[1])[3], "o1\nAdmissible actions:\n- go\n- wait\n> heat it");
    }

    #[test]
    fn what_the_text_does_not_name_is_listed_once() {
        let config =
            ContextConfig { instruction: false, list_unnamed: true, ..ContextConfig::default() };
        let seen = |text: &str, actions: &[&str]| Observation {
            admissible: Some(actions.iter().map(|action| Arc::from(*action)).collect()),
            ..observation(text)
        };
        let first = seen(
            "You see a cabinet 10, and a bed 2.",
            &["go to bed 2", "go to cabinet 10", "look"],
        );
        let mut context = Context::new(&config, None, &task(), &first);
        let near =
            ["go to bed 2", "open cabinet 1", "open cabinet 10", "take pen 3 from cabinet 10"];
        context.push_observation(&seen("The cabinet 10 is closed.", &near), None);
        context.push_observation(&seen("Nothing happens.", &near), None);
        let shown = context.prompt();
        let listed = "The cabinet 10 is closed.\nAlso admissible:\n- open cabinet 1\n- take pen 3 from cabinet 10";
        assert_eq!(texts(&shown), [&*first.text, listed, "Nothing happens."]);
    }

    #[test]
    fn what_is_left_stands_in_the_order_in_which_it_was_named() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Always,
            max_untried: Some(2),
            ..ContextConfig::default()
        };
        let seen = |text: &str| Observation {
            admissible: Some(
                ["go away", "go to bed 1", "go to bed 2", "go to desk 1", "look"]
                    .map(Arc::from)
                    .into(),
            ),
            ..observation(text)
        };
        let first = seen("You see a desk 1, and a bed 2.");
        let mut context = Context::new(&config, None, &task(), &first);
        let mut next = |action: Option<&str>| {
            context.push_observation(&seen("o"), action);
            context.prompt().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next(None), "o");
        assert_eq!(next(Some("look")), "o");
        assert_eq!(next(Some("go off")), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
        assert_eq!(next(Some("go to desk 1")), "o\nNot tried yet:\n- go to bed 2\n- go away");
        assert_eq!(next(Some("go to bed 2")), "o\nNot tried yet:\n- go away\n- go to bed 1");
    }

    #[test]
    fn of_what_differs_in_numbers_alone_one_is_listed() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Always,
            ..ContextConfig::default()
        };
        let first = observation("You see a desk 1, a bed 2, a bed 1, and a desk 2.");
        let mut context = Context::new(&config, None, &task(), &first);
        let mut next = |action: &str| {
            let admissible =
                ["go to bed 1", "go to bed 2", "go to desk 1", "go to desk 2"].map(Arc::from);
            let observation =
                Observation { admissible: Some(admissible.into()), ..observation("o") };
            context.push_observation(&observation, Some(action));
            context.prompt().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next("go off"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 2");
        assert_eq!(next("go to bed 2"), "o\nNot tried yet:\n- go to desk 1\n- go to bed 1");
        assert_eq!(next("go to bed 1"), "o\nNot tried yet:\n- go to desk 1");
        assert_eq!(next("go to desk 1"), "o\nNot tried yet:\n- go to desk 2");
    }

    #[test]
    fn who_repeats_an_action_is_told_what_is_left() {
        let config = ContextConfig {
            instruction: false,
            list_untried: ListUntried::Repeated,
            ..ContextConfig::default()
        };
        let mut context = Context::new(&config, None, &task(), &observation("o0"));
        let mut next = |action: Option<&str>| {
            let admissible =
                ["go to bed 1", "go to bed 2", "go to desk 1", "goad", "look"].map(Arc::from);
            let observation =
                Observation { admissible: Some(admissible.into()), ..observation("o") };
            context.push_observation(&observation, action);
            context.prompt().messages.last().unwrap().text().into_owned()
        };
        assert_eq!(next(Some("go to bed 1")), "o");
        assert_eq!(next(Some("go to desk 1")), "o");
        assert_eq!(next(None), "o");
        assert_eq!(next(Some("go to bed 1")), "o\nNot tried yet:\n- go to bed 2");
        assert_eq!(next(Some("go to bed 2")), "o");
        // Nothing is left.
        assert_eq!(next(Some("go to bed 2")), "o");
    }
}
