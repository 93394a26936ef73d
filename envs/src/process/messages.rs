//! The lines that go to and fro.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::{
    Action, Media, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec,
};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;
/// Parts of a reward, tags, tools and media of one answer at the most.
const MOST_PARTS: usize = 64;
const MOST_TAGS: usize = 64;
const MOST_TOOLS: usize = 256;
const MOST_MEDIA: usize = 64;
/// Characters of a name: of a reward's part, a tag, a type of media.
const MOST_NAME: usize = 128;
/// The highest value of a part of a reward and of their sum, without their signs.
const MOST_REWARD: f64 = 1e6;
/// JSON values of an answer at the most, with all that they hold: in memory a value takes up to some 200 bytes, however few
/// it has in its line.
const MOST_VALUES: usize = 1 << 16;
/// Sessions that a program may say it can have.
const MOST_SESSIONS: usize = 1 << 20;

/// What a program is asked, behind the `id` of the request.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(super) enum Call<'a> {
    /// Who are you?
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// Begin a session, or begin it anew.
    Reset {
        /// The session.
        env: u64,
        /// Of what is left to chance in this episode; below 2^53.
        seed: u64,
        /// Whether it is played by calls of tools.
        tools: bool,
        /// What the task is.
        task: &'a Map<String, Value>,
    },
    /// Carry out an action.
    Step {
        /// The session.
        env: u64,
        /// What is done.
        action: SentAction<'a>,
    },
    /// Which tools are there now?
    Tools {
        /// The session.
        env: u64,
    },
    /// Make a session `to` that is where `env` is.
    Fork {
        /// The session.
        env: u64,
        /// The new one.
        to: u64,
    },
    /// Tell all of a session's state in a text.
    Snapshot {
        /// The session.
        env: u64,
    },
    /// Make a session of such a text.
    Restore {
        /// The session.
        env: u64,
        /// What another session told, in this program or in another one.
        snapshot: &'a str,
    },
    /// End a session.
    Close {
        /// The session.
        env: u64,
    },
    /// What no version of the protocol has: programs are to refuse it.
    Nonsense {},
}

impl Call<'_> {
    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Reset { .. } => "reset",
            Self::Step { .. } => "step",
            Self::Tools { .. } => "tools",
            Self::Fork { .. } => "fork",
            Self::Snapshot { .. } => "snapshot",
            Self::Restore { .. } => "restore",
            Self::Close { .. } => "close",
            Self::Nonsense {} => "nonsense",
        }
    }

    /// The line of a request, with its end.
    pub(super) fn line(&self, id: u64) -> Vec<u8> {
        #[derive(Serialize)]
        struct Request<'a> {
            id: u64,
            #[serde(flatten)]
            call: &'a Call<'a>,
        }
        let mut line = serde_json::to_vec(&Request { id, call: self }).expect("keys are strings");
        line.push(b'\n');
        line
    }
}

/// An action as it is sent.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SentAction<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "<[ToolCall]>::is_empty")]
    calls: &'a [ToolCall],
}

impl<'a> From<&'a Action> for SentAction<'a> {
    fn from(action: &'a Action) -> Self {
        Self { text: action.said(), calls: action.tool_calls() }
    }
}

/// A number that a program can tell apart from a seed's others, exact also in readers that know numbers only as doubles.
pub(super) fn seed_number(seed: Seed) -> u64 {
    seed.as_u64() >> 11
}

/// A program's answer: which request it answers, and what it says.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn parse_line(line: &[u8]) -> Result<(u64, Map<String, Value>), String> {
    let line = line.trim_ascii();
    if !line.starts_with(b"{") {
        return Err(
            "a line is to be a JSON object (what is meant for people belongs on standard error)"
                .to_owned(),
        );
    }
    if values_at_most(line) > MOST_VALUES {
        return Err(format!("it has more than {MOST_VALUES} values"));
    }
    let mut answer: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let id = answer.shift_remove("id").ok_or("it has no `id`")?;
    let id = id.as_u64().ok_or_else(|| format!("its `id` is {id}, must be that of a request"))?;
    Ok((id, answer))
}

/// How many values a line of JSON has, or more: each but the first stands behind a comma, a colon or an opening bracket
/// that is in no string.
fn values_at_most(line: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in line {
        match (is_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_text = !is_text,
            (false, b',' | b':' | b'[' | b'{') => count += 1,
            _ => {}
        }
    }
    count
}

/// Reads what a line says as the answer to a call of this name, as the process environment does: what fuzzing checks.
///
/// # Errors
///
/// What is wrong with it.
pub fn read_answer(line: &[u8], call: &str) -> Result<(), String> {
    let limits = AnswerLimits { media_bytes: 1 << 20 };
    let (_, answer) = parse_line(line)?;
    match call {
        "hello" => read::<Hello>(answer)?.check().map(drop),
        "reset" => read::<ResetAnswer>(answer)?.check(limits).map(drop),
        "step" => read::<StepAnswer>(answer)?.check(&"look".into(), limits).map(drop),
        "tools" => read::<ToolsAnswer>(answer)?.check().map(drop),
        "snapshot" => read::<SnapshotAnswer>(answer).map(drop),
        _ => read::<Nothing>(answer).map(drop),
    }
}

/// What an answer says, of which nothing may be unknown.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read<T: DeserializeOwned>(answer: Map<String, Value>) -> Result<T, String> {
    T::deserialize(Value::Object(answer)).map_err(|error| error.to_string())
}

/// What bounds an answer beside its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerLimits {
    /// Bytes of all its media, decoded.
    pub(super) media_bytes: usize,
}

/// The answer to `hello`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    /// For people.
    #[serde(default)]
    pub(super) name: String,
    /// Sessions that it can have at one time.
    #[serde(default = "one")]
    pub(super) concurrent: usize,
    /// Whether it understands `fork`.
    #[serde(default)]
    pub(super) fork: bool,
    /// Whether it understands `snapshot` and `restore`.
    #[serde(default)]
    pub(super) snapshot: bool,
    /// Whether it has tools.
    #[serde(default)]
    pub(super) tools: bool,
}

fn one() -> usize {
    1
}

impl Hello {
    /// The same, where it can be talked to.
    pub(super) fn check(self) -> Result<Self, String> {
        if self.protocol != PROTOCOL {
            return Err(format!("its `protocol` is {}, spar speaks {PROTOCOL}", self.protocol));
        }
        if !(1..=MOST_SESSIONS).contains(&self.concurrent) {
            let most = MOST_SESSIONS;
            return Err(format!("`concurrent` is {}, must lie in 1..={most}", self.concurrent));
        }
        Ok(self)
    }
}

/// The answer to `reset`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResetAnswer {
    observation: WrittenObservation,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    oracle: Option<WrittenAction>,
    #[serde(default)]
    expert: Option<WrittenAction>,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    pub(super) observation: Observation,
    pub(super) tags: Vec<String>,
    pub(super) guides: Guides,
}

/// What players who know more than the policy would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Guides {
    pub(super) oracle: Option<Action>,
    pub(super) expert: Option<Action>,
}

impl Guides {
    fn of(oracle: Option<WrittenAction>, expert: Option<WrittenAction>) -> Self {
        Self { oracle: oracle.map(Action::from), expert: expert.map(Action::from) }
    }
}

impl ResetAnswer {
    /// What a session shows that was reset.
    pub(super) fn check(self, limits: AnswerLimits) -> Result<Shown, String> {
        let Self { observation, tags, oracle, expert } = self;
        if tags.len() > MOST_TAGS || tags.iter().any(|tag| !is_name(tag)) {
            return Err(format!("`tags` are at most {MOST_TAGS} names"));
        }
        let guides = Guides::of(oracle, expert);
        Ok(Shown { observation: observation.check(&[], limits)?, tags, guides })
    }
}

/// The answer to `step`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepAnswer {
    observation: WrittenObservation,
    #[serde(default)]
    reward: Option<f64>,
    #[serde(default)]
    rewards: Map<String, Value>,
    #[serde(default)]
    terminated: bool,
    #[serde(default)]
    success: bool,
    #[serde(default = "yes")]
    valid: bool,
    #[serde(default)]
    tools_changed: bool,
    #[serde(default)]
    oracle: Option<WrittenAction>,
    #[serde(default)]
    expert: Option<WrittenAction>,
}

fn yes() -> bool {
    true
}

/// What came of an action.
#[derive(Debug)]
pub(super) struct Stepped {
    pub(super) step: Step,
    pub(super) has_other_tools: bool,
    pub(super) guides: Guides,
}

impl StepAnswer {
    /// What came of `action`.
    pub(super) fn check(self, action: &Action, limits: AnswerLimits) -> Result<Stepped, String> {
        let mut rewards = Vec::new();
        if self.reward.is_some() && !self.rewards.is_empty() {
            return Err("`reward` and `rewards` exclude each other".to_owned());
        }
        if self.rewards.len() > MOST_PARTS {
            return Err(format!(
                "`rewards` has {} parts, at most {MOST_PARTS}",
                self.rewards.len()
            ));
        }
        if let Some(value) = self.reward.filter(|reward| *reward != 0.0) {
            rewards.push(RewardPart { name: "reward".to_owned(), value });
        }
        for (name, value) in self.rewards {
            let value = value.as_f64().filter(|value| value.is_finite() && is_name(&name));
            let value = value.ok_or_else(|| {
                let name: String = name.chars().take(MOST_NAME).collect();
                format!("part `{name}` of `rewards` is to be a name with a finite number")
            })?;
            rewards.push(RewardPart { name, value });
        }
        let sum: f64 = rewards.iter().map(|part| part.value).sum();
        if rewards.iter().any(|part| part.value.abs() > MOST_REWARD) || sum.abs() > MOST_REWARD {
            return Err(format!(
                "its rewards and their sum are to lie in -{MOST_REWARD}..={MOST_REWARD}"
            ));
        }
        let step = Step {
            observation: self.observation.check(action.tool_calls(), limits)?,
            rewards,
            terminated: self.terminated,
            success: self.success,
            valid: self.valid,
            wall_time: Duration::ZERO,
        };
        let guides = Guides::of(self.oracle, self.expert);
        Ok(Stepped { step, has_other_tools: self.tools_changed, guides })
    }
}

/// The answer to `tools`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsAnswer {
    tools: Vec<ToolSpec>,
}

impl ToolsAnswer {
    /// The tools, each of which can be called.
    pub(super) fn check(self) -> Result<Arc<[ToolSpec]>, String> {
        if self.tools.len() > MOST_TOOLS {
            return Err(format!("it has {} tools, at most {MOST_TOOLS}", self.tools.len()));
        }
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            tool.validate().map_err(|error| error.to_string())?;
            if !names.insert(tool.name.as_str()) {
                return Err(format!("it has two tools `{}`", tool.name));
            }
        }
        Ok(self.tools.into())
    }
}

/// The answer to `snapshot`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotAnswer {
    pub(super) snapshot: String,
}

/// An answer that says only that it was done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// An observation as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenObservation {
    #[serde(default)]
    text: String,
    #[serde(default)]
    instruction: Option<Arc<str>>,
    #[serde(default)]
    admissible: Option<Vec<Arc<str>>>,
    #[serde(default)]
    state_key: Option<String>,
    #[serde(default)]
    media: Vec<WrittenMedia>,
    #[serde(default)]
    results: Vec<WrittenResult>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMedia {
    media_type: String,
    base64: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenResult {
    #[serde(default)]
    text: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    media: Vec<WrittenMedia>,
}

/// An action as it is written: words, or an object as `step` has it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WrittenAction {
    Words(String),
    Calls(WrittenCalls),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCalls {
    #[serde(default)]
    text: String,
    calls: Vec<ToolCall>,
}

impl From<WrittenAction> for Action {
    fn from(action: WrittenAction) -> Self {
        match action {
            WrittenAction::Words(text) => Self::Text { text },
            WrittenAction::Calls(WrittenCalls { text, calls }) if calls.is_empty() => {
                Self::Text { text }
            }
            WrittenAction::Calls(WrittenCalls { text, calls }) => Self::Calls { text, calls },
        }
    }
}

impl WrittenObservation {
    fn check(self, calls: &[ToolCall], limits: AnswerLimits) -> Result<Observation, String> {
        let Self { text, instruction, admissible, state_key, media, results } = self;
        if results.len() != calls.len() {
            return Err(format!("{} `results` for {} calls", results.len(), calls.len()));
        }
        let count = media.len() + results.iter().map(|result| result.media.len()).sum::<usize>();
        if count > MOST_MEDIA {
            return Err(format!("it has {count} media, at most {MOST_MEDIA}"));
        }
        let mut left = limits.media_bytes;
        let media = decoded(media, &mut left)?;
        let answer = |(result, call): (WrittenResult, &ToolCall)| {
            let WrittenResult { text, is_error, media } = result;
            let media = decoded(media, &mut left)?;
            Ok(ToolResult { call: call.id.clone(), text, media, is_error })
        };
        let results = results.into_iter().zip(calls).map(answer).collect::<Result<_, String>>()?;
        let admissible = admissible.map(|mut actions| {
            actions.sort_unstable();
            actions.dedup();
            actions.into()
        });
        let state_key = state_key.unwrap_or_else(|| text.clone());
        let carried_out = None;
        Ok(Observation { text, media, results, instruction, carried_out, admissible, state_key })
    }
}

/// Media of so many bytes at the most, which they are taken from.
fn decoded(media: Vec<WrittenMedia>, left: &mut usize) -> Result<Vec<Media>, String> {
    let decode = |WrittenMedia { media_type, base64 }: WrittenMedia| {
        if !is_name(&media_type) || !media_type.contains('/') {
            return Err("a `media_type` is to be one such as `image/png`".to_owned());
        }
        // Three bytes of every four characters: refused before they are decoded.
        if base64.len() / 4 * 3 > left.saturating_add(3) {
            return Err("its media are beyond `limits.media_bytes`".to_owned());
        }
        let bytes = STANDARD.decode(&base64).map_err(|error| format!("a `base64`: {error}"))?;
        *left = left.checked_sub(bytes.len()).ok_or("its media are beyond `limits.media_bytes`")?;
        Ok(Media::new(media_type, bytes))
    };
    media.into_iter().map(decode).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MOST_NAME && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_with_the_number_first() {
        let action = Action::from("a\n\"b\"");
        let call = Call::Step { env: 3, action: (&action).into() };
        let line = String::from_utf8(call.line(7)).unwrap();
        assert_eq!(
            line,
            "{\"id\":7,\"call\":\"step\",\"env\":3,\"action\":{\"text\":\"a\\n\\\"b\\\"\"}}\n"
        );
        let task = Map::from_iter([("seed".to_owned(), 5.into())]);
        let call = Call::Reset { env: 1, seed: 2, tools: false, task: &task };
        let line = String::from_utf8(call.line(0)).unwrap();
        let wanted = "{\"id\":0,\"call\":\"reset\",\"env\":1,\"seed\":2,\"tools\":false,\"task\":{\"seed\":5}}\n";
        assert_eq!(line, wanted);
    }

    fn refused(line: &str, call: &str, part: &str) {
        let told = read_answer(line.as_bytes(), call).unwrap_err();
        assert!(told.contains(part), "{line}: {told}");
    }

    #[test]
    fn what_is_no_answer_is_refused_with_what_is_wrong() {
        for call in ["hello", "reset", "step", "tools", "snapshot", "close"] {
            refused("hello, world", call, "JSON object");
            refused("{\"id\":", call, "EOF");
            refused("{}", call, "no `id`");
            refused("{\"id\":-1}", call, "its `id` is -1");
            refused("{\"id\":1,\"nonsense\":1}", call, "nonsense");
            refused(&format!("{{\"id\":{}", "[".repeat(50_000)), call, "recursion");
        }
        refused("{\"id\":1,\"protocol\":2}", "hello", "spar speaks 1");
        refused("{\"id\":1,\"protocol\":1,\"concurrent\":0}", "hello", "1..=");
        let step = |rest: &str| format!("{{\"id\":1,\"observation\":{{\"text\":\"t\"}},{rest}}}");
        refused(&step("\"reward\":NaN"), "step", "expected");
        refused(&step("\"reward\":1e999"), "step", "out of range");
        refused(&step("\"rewards\":{\"a\":\"1\"}"), "step", "finite number");
        refused(&step("\"reward\":-1e7"), "step", "lie in -1000000..=1000000");
        refused(&step("\"rewards\":{\"a\":1e308,\"b\":1e308}"), "step", "lie in");
        refused(&step("\"rewards\":{\"a\":6e5,\"b\":6e5}"), "step", "lie in");
        read_answer(step("\"rewards\":{\"a\":6e5,\"b\":-6e5}").as_bytes(), "step").unwrap();
        refused(&step("\"reward\":1,\"rewards\":{\"a\":1}"), "step", "exclude");
        refused("{\"id\":1,\"observation\":{\"results\":[{}]}}", "step", "1 `results` for 0 calls");
        let media = |text: &str| {
            format!(
                "{{\"id\":1,\"observation\":{{\"media\":[{{\"media_type\":\"image/png\",\"base64\":\"{text}\"}}]}}}}"
            )
        };
        refused(&media("%"), "reset", "base64");
        refused(&media(&"A".repeat(2 << 20)), "reset", "limits.media_bytes");
        read_answer(media("AAAA").as_bytes(), "reset").unwrap();
        refused("{\"id\":1,\"tools\":[{\"name\":\"\",\"parameters\":{}}]}", "tools", "a name is");
        let tool = "{\"name\":\"t\",\"parameters\":{}}";
        refused(&format!("{{\"id\":1,\"tools\":[{tool},{tool}]}}"), "tools", "two tools `t`");
    }

    #[test]
    fn few_bytes_do_not_become_many_values() {
        // The word's brackets and commas are text.
        let line = |values: usize| {
            let zeros = vec!["0"; values].join(",");
            format!("{{\"id\":1,\"word\":\"[\\\",{{,,\",\"oracle\":[{zeros}]}}")
        };
        refused(&line(MOST_VALUES), "step", "more than 65536 values");
        // Behind the object and `id` and `word` with their commas and colons.
        parse_line(line(MOST_VALUES - 8).as_bytes()).unwrap();
        refused(&line(MOST_VALUES - 3), "step", "more than");
    }

    #[test]
    fn answers_become_steps() {
        let line = "{\"id\":4,\"observation\":{\"text\":\"t\",\"admissible\":[\"b\",\"a\",\"b\"],\"results\":[{\"text\":\"r\",\
                    \"is_error\":true}]},\"rewards\":{\"success\":1,\"haste\":-0.5},\"terminated\":true,\"success\":true,\
                    \"oracle\":{\"calls\":[{\"name\":\"f\",\"arguments\":{}}]}}";
        let (id, answer) = parse_line(line.as_bytes()).unwrap();
        let call = ToolCall { id: "c".to_owned(), ..ToolCall::new("f", Map::new()) };
        let answer: StepAnswer = read(answer).unwrap();
        let limits = AnswerLimits { media_bytes: 0 };
        let Stepped { step, guides, .. } =
            answer.check(&Action::calls(vec![call]), limits).unwrap();
        assert_eq!((id, step.reward(), step.valid), (4, 0.5, true));
        assert_eq!((step.terminated, step.success), (true, true));
        let observation = step.observation;
        assert_eq!(observation.results[0].call, "c");
        assert_eq!(observation.admissible.unwrap().len(), 2);
        assert_eq!(observation.state_key, "t");
        assert_eq!(guides.oracle.unwrap().tool_calls().len(), 1);
    }
}
