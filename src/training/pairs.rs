//! Pairs of answers in files, as samples.

use std::path::PathBuf;

use anyhow::ensure;
use serde_json::{Value, json};
use spar_core::{Preference, Sample};
use spar_policy::Tokenizer;

use super::chats::Chat;
use super::json_lines::read_json_lines;

/// Two answers to one prompt, of which one was chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreferencePair {
    chosen: Chat,
    rejected: Chat,
}

/// Reads pairs of answers, a JSON object per line, or tells all that is wrong with the files.
pub(crate) fn read_pairs(files: &[PathBuf]) -> Result<Vec<PreferencePair>, Vec<String>> {
    read_json_lines(files, "pair of answers", PreferencePair::new)
}

impl PreferencePair {
    fn new(source: &str, value: Value) -> Result<Self, Vec<String>> {
        let tell = |problem: &str| vec![format!("{source}: {problem}")];
        let Value::Object(fields) = value else {
            return Err(tell("a pair is an object with `chosen` and `rejected`"));
        };
        let mut problems = Vec::new();
        let mut messages = |name: &str, role: &str| match fields.get(name) {
            Some(Value::String(text)) => {
                Some((vec![json!({ "role": role, "content": text })], true))
            }
            Some(Value::Array(messages)) => Some((messages.clone(), false)),
            None | Some(Value::Null) if name == "prompt" => None,
            found => {
                let found =
                    if found.is_some() { "no text and no list of messages" } else { "missing" };
                problems.extend(tell(&format!("`{name}` is {found}")));
                None
            }
        };
        let prompt = messages("prompt", "user");
        let answers = (messages("chosen", "assistant"), messages("rejected", "assistant"));
        let (Some((chosen, is_text)), Some((rejected, is_other_text))) = answers else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        if is_text != is_other_text {
            return Err(tell("`chosen` and `rejected` are a text and a list of messages"));
        }
        if chosen == rejected {
            return Err(tell("`chosen` and `rejected` are equal"));
        }
        let shared = chosen.iter().zip(&rejected).take_while(|(a, b)| a == b).count();
        let (before, first_answered) = match prompt {
            Some((prompt, _)) => match [&chosen, &rejected].map(|it| end_of_prompt(it, &prompt)) {
                [None, None] => {
                    let end = prompt.len();
                    (prompt, end)
                }
                // Whole conversations bring their prompt themselves.
                [Some(end), Some(other_end)]
                    if end == other_end && are_same(&chosen[..end], &rejected[..end]) =>
                {
                    (Vec::new(), end)
                }
                _ => {
                    let problem = "only one of `chosen` and `rejected` begins with `prompt`, or both differently";
                    return Err(tell(problem));
                }
            },
            None if is_text => {
                let problem = "`prompt` is missing: it can only be told from lists of messages";
                return Err(tell(problem));
            }
            None if shared == 0 => {
                let problem = "`prompt` is missing, and `chosen` and `rejected` do not begin alike";
                return Err(tell(problem));
            }
            None => (Vec::new(), shared),
        };
        let tools = fields.get("tools").cloned().unwrap_or_default();
        let chat = |name: &str, answer: Vec<Value>| {
            let messages: Vec<Value> = before.iter().cloned().chain(answer).collect();
            let conversation = json!({ "messages": messages, "tools": tools });
            Chat::answer(&format!("{source} ({name})"), conversation, first_answered)
        };
        match (chat("chosen", chosen), chat("rejected", rejected)) {
            (Ok(chosen), Ok(rejected)) => Ok(Self { chosen, rejected }),
            (chosen, rejected) => {
                let problems = chosen.err().into_iter().chain(rejected.err());
                Err(problems.flatten().collect())
            }
        }
    }

    /// All that is said, message by message, in each of the two conversations.
    pub(crate) fn words(&self) -> [Vec<String>; 2] {
        [self.chosen.words(), self.rejected.words()]
    }

    /// Both answers as samples of the pair with this number, whose answered tokens weigh 1 in the cross-entropy term.
    pub(crate) fn samples(&self, tokenizer: &Tokenizer, pair: u64) -> anyhow::Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (answer, is_chosen) in [(&self.chosen, true), (&self.rejected, false)] {
            let found = answer.samples(tokenizer)?;
            ensure!(!found.is_empty(), "{}: the answer is empty", answer.source);
            let parts = u32::try_from(found.len()).unwrap_or(u32::MAX);
            let preference = Some(Preference { pair, is_chosen, parts });
            samples.extend(found.into_iter().map(|sample| Sample { preference, ..sample }));
        }
        Ok(samples)
    }
}

/// Where the prompt ends that a conversation begins with, by roles, contents and calls; `None` where it begins otherwise.
/// Before a prompt without a system message there can be one.
fn end_of_prompt(conversation: &[Value], prompt: &[Value]) -> Option<usize> {
    let is_system =
        |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let has_system = prompt.first().is_none_or(is_system);
    let leading =
        conversation.iter().take_while(|message| !has_system && is_system(message)).count();
    let end = leading + prompt.len();
    let found = conversation.get(leading..end)?;
    are_same(found, prompt).then_some(end)
}

/// Whether messages have the same roles, contents and calls.
fn are_same(messages: &[Value], others: &[Value]) -> bool {
    let is_same = |(a, b): (&Value, &Value)| {
        ["role", "content", "tool_calls"].into_iter().all(|field| a[field] == b[field])
    };
    messages.len() == others.len() && messages.iter().zip(others).all(is_same)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use spar_policy::TokenizerConfig;

    use super::*;

    fn read(text: &str) -> Result<Vec<PreferencePair>, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.jsonl");
        fs::write(&path, text).unwrap();
        read_pairs(&[path])
    }

    fn tokenizer() -> Tokenizer {
        let texts = ["sky", "blue", "green", "more", "up", "down"];
        Tokenizer::train([texts.into_iter()], &TokenizerConfig::default()).unwrap()
    }

    /// What each sample trains, and whether it was chosen.
    fn trained(line: &str) -> Vec<(bool, String)> {
        let tokenizer = tokenizer();
        let samples = read(line).unwrap()[0].samples(&tokenizer, 7).unwrap();
        let told = samples.iter().map(|sample| {
            sample.validate().unwrap();
            let weighed = sample.tokens.iter().zip(&sample.cross_entropy_weights);
            let ids: Vec<u32> = weighed.filter(|(_, w)| **w == 1.0).map(|(id, _)| *id).collect();
            let preference = sample.preference.unwrap();
            assert_eq!((preference.pair, preference.parts), (7, 1));
            (preference.is_chosen, tokenizer.decode(&ids).trim().to_owned())
        });
        told.collect()
    }

    #[test]
    fn every_shape_of_a_pair_trains_the_same_answers() {
        let wanted = [(true, "blue".to_owned()), (false, "green".to_owned())];
        let [user, blue, green] = [("user", "sky"), ("assistant", "blue"), ("assistant", "green")]
            .map(|(role, text)| format!(r#"{{"role": "{role}", "content": "{text}"}}"#));
        let shapes = [
            r#"{"prompt": "sky", "chosen": "blue", "rejected": "green", "score": 3}"#.to_owned(),
            format!(r#"{{"prompt": [{user}], "chosen": [{blue}], "rejected": [{green}]}}"#),
            format!(r#"{{"prompt": [{user}], "chosen": "blue", "rejected": "green"}}"#),
            format!(r#"{{"prompt": "sky", "chosen": [{blue}], "rejected": [{green}]}}"#),
            // The prompt told once more, or only by what both begin with.
            format!(
                r#"{{"prompt": "sky", "chosen": [{user}, {blue}], "rejected": [{user}, {green}]}}"#
            ),
            format!(
                r#"{{"prompt": [{user}], "chosen": [{user}, {blue}], "rejected": [{user}, {green}]}}"#
            ),
            format!(r#"{{"chosen": [{user}, {blue}], "rejected": [{user}, {green}]}}"#),
        ];
        for shape in &shapes {
            assert_eq!(trained(shape), wanted, "{shape}");
        }
        let samples = |shape: &str| read(shape).unwrap()[0].samples(&tokenizer(), 0).unwrap();
        for shape in &shapes[1..] {
            assert_eq!(samples(shape), samples(&shapes[0]), "{shape}");
        }
    }

    #[test]
    fn a_prompt_is_put_in_front_unless_both_conversations_begin_with_it() {
        let message = |(role, text): (&str, &str)| json!({ "role": role, "content": text });
        let words = |prompt: Value, chosen: &[(&str, &str)], rejected: &[(&str, &str)]| {
            let [chosen, rejected] =
                [chosen, rejected].map(|all| all.iter().copied().map(message).collect::<Vec<_>>());
            let pair = json!({ "prompt": prompt, "chosen": chosen, "rejected": rejected });
            read(&pair.to_string()).map(|pairs| pairs[0].words().map(|words| words.join(" ")))
        };
        let (user, blue, green) = (("user", "sky"), ("assistant", "blue"), ("assistant", "green"));
        // A first message in common that is not the prompt, or has its words in another role.
        let more = ("user", "more");
        let found = words("sky".into(), &[more, blue], &[more, green]).unwrap();
        assert_eq!(found, ["sky more blue", "sky more green"]);
        let said = json!([message(user), message(("assistant", "more"))]);
        let found = words(said.clone(), &[more, blue], &[more, green]).unwrap();
        assert_eq!(found, ["sky more more blue", "sky more more green"]);
        // The whole prompt, also behind the system's message.
        let asked = ("assistant", "more");
        let found = words(said, &[user, asked, blue], &[user, asked, green]).unwrap();
        assert_eq!(found, ["sky more blue", "sky more green"]);
        let system = ("system", "up");
        let found = words("sky".into(), &[system, user, blue], &[system, user, green]).unwrap();
        assert_eq!(found, ["up sky blue", "up sky green"]);
        let told = words("sky".into(), &[user, blue], &[green]).unwrap_err();
        assert!(told[0].contains("pairs.jsonl:1: only one of `chosen` and `rejected`"), "{told:?}");
    }

    #[test]
    fn behind_a_prompt_all_of_the_assistant_is_compared() {
        let [user, up, blue, green] =
            [("user", "sky"), ("assistant", "up"), ("assistant", "blue"), ("assistant", "green")]
                .map(|(role, text)| json!({ "role": role, "content": text }));
        let of_answers =
            json!({ "prompt": "sky", "chosen": [up, user, blue], "rejected": [up, user, green] });
        let whole = json!({ "prompt": "sky", "chosen": [user, up, user, blue], "rejected": [user, up, user, green] });
        let found = trained(&of_answers.to_string());
        assert!(found[0].1.contains("up") && found[0].1.contains("blue"), "{found:?}");
        assert_eq!(trained(&whole.to_string()), found);
    }

    #[test]
    fn of_conversations_only_what_they_do_not_share_is_compared() {
        let line = r#"{"chosen": [{"role": "user", "content": "sky"}, {"role": "assistant", "content": "blue"},
            {"role": "user", "content": "more"}, {"role": "assistant", "content": "up"}, {"role": "user", "content": "more"},
            {"role": "assistant", "content": "blue"}], "rejected": [{"role": "user", "content": "sky"},
            {"role": "assistant", "content": "blue"}, {"role": "user", "content": "more"},
            {"role": "assistant", "content": "down"}]}"#;
        let found = trained(&line.replace('\n', " "));
        assert_eq!(found.len(), 2);
        assert!(found[0].1.contains("up") && found[0].1.contains("blue"), "{found:?}");
        assert!(!found[0].1.contains("more"), "{found:?}");
        assert_eq!(found[1].1, "down");
    }

    #[test]
    fn everything_that_is_wrong_with_pairs_is_told_with_its_line() {
        let user = r#"{"role": "user", "content": "a"}"#;
        let said = r#"{"role": "assistant", "content": "b"}"#;
        let lines = [
            "[]".to_owned(),
            r#"{"prompt": "a", "chosen": "b"}"#.to_owned(),
            r#"{"prompt": "a", "chosen": 3}"#.to_owned(),
            r#"{"prompt": "a", "chosen": "b", "rejected": "b"}"#.to_owned(),
            r#"{"chosen": "b", "rejected": "c"}"#.to_owned(),
            format!(r#"{{"chosen": [{said}], "rejected": [{user}]}}"#),
            format!(r#"{{"prompt": "a", "chosen": [{said}], "rejected": "c"}}"#),
            format!(r#"{{"chosen": [{user}, {said}], "rejected": [{user}]}}"#),
            r#"{"prompt": "a", "chosen": "b", "rejected": "c", "tools": [1]}"#.to_owned(),
            r#"{"prompt": "a", "chosen": [{"role": "bot"}], "rejected": []}"#.to_owned(),
            format!(r#"{{"chosen": [{said}, {user}, {said}], "rejected": [{said}, {said}]}}"#),
            format!(r#"{{"prompt": [], "chosen": [{said}], "rejected": [{said}, {said}]}}"#),
        ];
        let told = read(&lines.join("\n")).unwrap_err();
        let parts = [
            "pairs.jsonl:1: a pair is an object",
            "pairs.jsonl:2: `rejected` is missing",
            "pairs.jsonl:3: `chosen` is no text and no list",
            "pairs.jsonl:3: `rejected` is missing",
            "pairs.jsonl:4: `chosen` and `rejected` are equal",
            "pairs.jsonl:5: `prompt` is missing: it can only be told",
            "pairs.jsonl:6: `prompt` is missing, and `chosen` and `rejected` do not begin alike",
            "pairs.jsonl:7: `chosen` and `rejected` are a text and a list",
            "pairs.jsonl:8 (rejected): it has no message of the assistant",
            "pairs.jsonl:9 (chosen): `tools` is no list",
            "pairs.jsonl:9 (rejected): `tools` is no list",
            "pairs.jsonl:10 (chosen): message 2: role `bot`",
            "pairs.jsonl:10 (rejected): it has no message of the assistant",
            "pairs.jsonl:11 (chosen): it opens with the assistant: a prompt has to come first",
            "pairs.jsonl:11 (rejected): it opens with the assistant",
            "pairs.jsonl:12 (chosen): it opens with the assistant",
            "pairs.jsonl:12 (rejected): it opens with the assistant",
        ];
        assert_eq!(told.len(), parts.len(), "{told:#?}");
        for (told, part) in told.iter().zip(parts) {
            assert!(told.contains(part), "{told} lacks {part}");
        }
        assert!(read("\n").unwrap_err()[0].contains("it has no pair of answers"));
    }
}
