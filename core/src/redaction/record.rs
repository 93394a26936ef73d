//! Secrets in records.

use serde_json::{Map, Value};

use super::Redactor;
use crate::{Action, Boundary, EndReason, Media, Observation, Trajectory};

impl Redactor {
    /// Takes the secrets out of all texts in a JSON value, names of fields among them; whether there were any.
    /// Numbers stay as they are.
    pub fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.clean(text),
            Value::Array(values) => {
                values.iter_mut().fold(false, |found, value| self.value(value) | found)
            }
            Value::Object(fields) => {
                let found = fields.values_mut().fold(false, |found, it| self.value(it) | found);
                let has_secret = |name: &String| self.is_match(name.as_bytes());
                if !fields.keys().any(has_secret) {
                    return found;
                }
                let renamed = std::mem::take(fields).into_iter();
                *fields = renamed
                    .map(|(name, value)| (self.text(&name).into_owned(), value))
                    .collect::<Map<_, _>>();
                true
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Takes the secrets out of what an environment shows, before anybody sees it; whether there were any. Media are
    /// looked through where they are text.
    pub fn observation(&self, observation: &mut Observation) -> bool {
        let Observation {
            text,
            media: _,
            results,
            instruction,
            carried_out,
            admissible,
            state_key,
        } = observation;
        let mut found = self.clean(text) | self.clean(state_key);
        if let Some(Action::Text { text } | Action::Calls { text, .. }) = carried_out {
            found |= self.clean(text);
        }
        if let Some(Action::Calls { calls, .. }) = carried_out {
            let arguments = calls.iter_mut().flat_map(|call| call.arguments.values_mut());
            found |= arguments.fold(false, |found, value| self.value(value) | found);
        }
        for result in results {
            found |= self.clean(&mut result.text) | self.clean(&mut result.call);
        }
        if let Some(told) = instruction
            && self.is_match(told.as_bytes())
        {
            *told = self.text(told).as_ref().into();
            found = true;
        }
        if let Some(actions) = admissible
            && actions.iter().any(|action| self.is_match(action.as_bytes()))
        {
            let mut cleaned: Vec<_> =
                actions.iter().map(|action| self.text(action).as_ref().into()).collect();
            // Sorted and without repeats, as before.
            cleaned.sort();
            cleaned.dedup();
            *actions = cleaned.into();
            found = true;
        }
        observation.all_media_mut().fold(found, |found, media| self.media(media) | found)
    }

    /// Takes the secrets out of a record; whether there were any.
    ///
    /// What tokens stand for cannot be told here: where a secret was found in a record with tokens, all of them
    /// become 0, and the record is marked as [redacted](Trajectory::redacted), so that nothing is trained on it. Of a
    /// record in which a secret stands where only certain words can, nothing is left but its end.
    pub fn trajectory(&self, trajectory: &mut Trajectory) -> bool {
        // A look at what would be written costs less than changing it.
        let written = serde_json::to_vec(&*trajectory).unwrap_or_default();
        let has_media = trajectory.media().any(|media| self.is_in_media(media));
        if !has_media && !self.is_match(&written) {
            return false;
        }
        let mut value = serde_json::to_value(&*trajectory).expect("a record is JSON");
        if !self.value(&mut value) && !has_media {
            // It stood across what is written, not in a text.
            return false;
        }
        let media: Vec<Media> = trajectory.media().cloned().collect();
        match serde_json::from_value::<Trajectory>(value) {
            Ok(cleaned) => {
                *trajectory = cleaned;
                // Bytes of media stand beside records.
                for (now, mut before) in trajectory.media_mut().zip(media) {
                    self.media(&mut before);
                    *now = before;
                }
                forget_tokens(trajectory);
            }
            Err(_) => {
                let Trajectory { task, environment, policy, versions, .. } = &mut *trajectory;
                for name in [task, environment, policy].into_iter().chain(&mut versions.scaffold) {
                    self.clean(name);
                }
                versions.graders = std::mem::take(&mut versions.graders)
                    .into_iter()
                    .map(|(name, version)| (self.text(&name).into_owned(), version))
                    .collect();
                trajectory.turns.clear();
                trajectory.tools.clear();
                trajectory.grammars.clear();
                trajectory.verdict = None;
                trajectory.first_observation = Observation::default();
                trajectory.success = false;
                trajectory.redacted = true;
                let detail = "a secret stood among the words of its record".to_owned();
                trajectory.end = EndReason::Failed { boundary: Boundary::Environment, detail };
            }
        }
        true
    }

    fn is_in_media(&self, media: &Media) -> bool {
        is_text(media) && media.bytes().is_ok_and(|bytes| self.is_match(bytes))
    }

    fn media(&self, media: &mut Media) -> bool {
        if !self.is_in_media(media) {
            return false;
        }
        let Ok(bytes) = media.bytes() else { return false };
        *media = Media::new(media.media_type.clone(), self.bytes(bytes).into_owned());
        true
    }
}

fn is_text(media: &Media) -> bool {
    let kind = media.media_type.as_str();
    kind.starts_with("text/") || ["json", "xml", "javascript"].iter().any(|it| kind.contains(it))
}

/// Nobody can tell which of them spelt the secret.
fn forget_tokens(trajectory: &mut Trajectory) {
    let mut had_tokens = false;
    for turn in &mut trajectory.turns {
        had_tokens |= !turn.prompt.appended.is_empty() || !turn.sampled.ids.is_empty();
        turn.prompt.appended.fill(0);
        turn.sampled.ids.fill(0);
        turn.sampled.allowed.clear();
        turn.sampled.grammar = None;
        // Actions stand elsewhere in a text that has changed.
        if let crate::ParsedAction::Action { spans, .. } = &mut turn.parsed {
            spans.clear();
        }
    }
    trajectory.grammars.clear();
    trajectory.redacted |= had_tokens;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{SampledTokens, ToolResult};

    const SECRET: &str = "c0rrect-h0rse-\"battery\"";

    fn redactor() -> Redactor {
        Redactor::new([("KEY", SECRET)], &[])
    }

    fn record(text: &str, shown: &str) -> Trajectory {
        let record = json!({
            "version": 4, "episode": 3, "task": "t", "environment": "e", "seed": crate::Seed::from_u64(1),
            "policy": "local",
            "first_observation": { "text": "a room", "state_key": "start" },
            "turns": [{
                "prompt": { "kept": 0, "appended": [1, 2] },
                "author": "local",
                "text": text,
                "sampled": { "ids": [5, 6], "logprobs": [-0.5, 0.0], "versions": [4, 4], "allowed": [[5, 7], []] },
                "parsed": {
                    "kind": "action",
                    "action": { "kind": "text", "text": text },
                    "spans": [{ "start": 0, "end": text.len() }],
                },
                "state_key": "start",
                "step": {
                    "observation": { "text": shown, "state_key": shown },
                    "rewards": [], "terminated": true, "success": true, "valid": true,
                    "wall_time": Duration::ZERO,
                },
                "policy_time": Duration::ZERO,
            }],
            "end": { "kind": "terminated" }, "success": true, "wall_time": Duration::ZERO,
        });
        Trajectory::from_json(record.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_record_that_holds_a_secret_is_cleaned_and_trains_nothing() {
        let clean = record("go", "a hall");
        let mut same = clean.clone();
        assert!(!redactor().trajectory(&mut same));
        assert_eq!(same, clean);
        for (text, shown) in [(SECRET, "a hall"), ("go", SECRET)] {
            let mut cleaned = record(&format!("say {text}"), &format!("so: {shown}!"));
            assert!(redactor().trajectory(&mut cleaned));
            cleaned.validate().unwrap();
            let written = serde_json::to_string(&cleaned).unwrap();
            assert!(
                !written.contains("c0rrect") && written.contains("[redacted KEY]"),
                "{written}"
            );
            assert!(cleaned.redacted);
            assert_eq!(cleaned.turns[0].sampled.ids, [0, 0]);
            assert_eq!(cleaned.turns[0].sampled.logprobs, [-0.5, 0.0]);
            let again = cleaned.clone();
            assert!(!redactor().trajectory(&mut cleaned));
            assert_eq!(cleaned, again);
        }
        let mut without_tokens = record("go", SECRET);
        without_tokens.turns[0].prompt.appended.clear();
        without_tokens.turns[0].sampled = SampledTokens::default();
        assert!(redactor().trajectory(&mut without_tokens));
        assert!(!without_tokens.redacted, "nothing could be trained on it before");
    }

    #[test]
    fn a_secret_among_the_words_of_a_record_leaves_its_end_alone() {
        let mut record = record("go", "a hall");
        record.task = format!("log in with {SECRET}");
        record.versions.graders.insert(SECRET.to_owned(), 1);
        let secrets = [("ODD", "terminated"), ("KEY", SECRET)];
        assert!(Redactor::new(secrets, &[]).trajectory(&mut record));
        assert_eq!(record.task, "log in with [redacted KEY]");
        assert!(record.versions.graders.contains_key("[redacted KEY]"));
        assert!(record.redacted && record.turns.is_empty() && record.is_failed());
        assert!(!serde_json::to_string(&record).unwrap().contains("\"terminated\""));
    }

    #[test]
    fn what_is_shown_is_cleaned_in_all_its_parts() {
        let told = |text: &str| format!("{text} {SECRET}");
        let result = ToolResult {
            call: String::new(),
            text: told("cat .env"),
            media: vec![
                Media::new("text/plain", told("log").into_bytes()),
                Media::new("image/png", told("pixels").into_bytes()),
            ],
            is_error: false,
        };
        let mut shown = Observation {
            results: vec![result],
            admissible: Some([Arc::from(told("use")), Arc::from("go")].into()),
            instruction: Some(told("find").into()),
            ..Observation::new(told("env"))
        };
        assert!(redactor().observation(&mut shown));
        assert_eq!((&*shown.text, &*shown.state_key), ("env [redacted KEY]", "env [redacted KEY]"));
        assert_eq!(shown.instruction.as_deref(), Some("find [redacted KEY]"));
        assert_eq!(shown.admissible.as_deref().unwrap()[1].as_ref(), "use [redacted KEY]");
        let result = &shown.results[0];
        assert_eq!(result.text, "cat .env [redacted KEY]");
        assert_eq!(&**result.media[0].bytes().unwrap(), b"log [redacted KEY]");
        assert_eq!(result.media[0].hash, crate::MediaHash::of(b"log [redacted KEY]"));
        let pixels = result.media[1].bytes().unwrap();
        assert!(pixels.ends_with(SECRET.as_bytes()), "pictures are not looked through");
        assert!(!redactor().observation(&mut shown));
    }

    #[test]
    fn numbers_and_the_shape_of_a_value_stay() {
        let mut value = json!({ "12345678": 12_345_678, "a": ["12345678", null, true] });
        assert!(Redactor::new([("N", "12345678")], &[]).value(&mut value));
        assert_eq!(value, json!({ "[redacted N]": 12_345_678, "a": ["[redacted N]", null, true] }));
    }
}
