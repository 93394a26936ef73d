//! Recordings of the reference, replayed and compared.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::single_turn::{Language, check_single_turn};
use crate::{BfclError, Class, LongContext, MultiTurnVerdict, World};

/// Mismatches that a report describes; the others are only counted.
const MAX_DESCRIBED: usize = 10;
/// Of what differs so much is shown.
const SHOWN: usize = 240;

/// The outcome of [`replay_traces`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConformanceReport {
    /// Files.
    pub files: usize,
    /// Entries in them.
    pub traces: usize,
    /// Calls, states and verdicts in them.
    pub records: usize,
    /// Records that differ.
    pub mismatches: usize,
    /// The first few.
    pub described: Vec<String>,
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, traces, records, mismatches, described } = self;
        write!(
            formatter,
            "{traces} traces with {records} records in {files} files: {mismatches} mismatches"
        )?;
        described.iter().try_for_each(|line| write!(formatter, "\n{line}"))
    }
}

#[derive(Deserialize)]
struct MultiTurnTrace {
    id: String,
    involved_classes: Vec<String>,
    initial_config: Json,
    initial_state: Json,
    turns: Vec<TracedTurn>,
    #[serde(default)]
    perturbed: Vec<TracedPerturbation>,
    verdicts: BTreeMap<String, Json>,
}

#[derive(Deserialize)]
struct TracedTurn {
    gold_calls: Vec<String>,
    results: Vec<Json>,
    state_after: Json,
}

#[derive(Deserialize)]
struct TracedPerturbation {
    calls: Vec<TracedCall>,
    state_after: Json,
}

#[derive(Deserialize)]
struct TracedCall {
    call: String,
    result: String,
    #[serde(default)]
    nondeterministic: bool,
}

#[derive(Deserialize)]
struct FuzzTrace {
    id: String,
    class: String,
    long_context: bool,
    initial_config: Json,
    calls: Vec<TracedCall>,
    state_final: Json,
}

#[derive(Deserialize)]
struct SingleTurnTrace {
    id: String,
    category: String,
    language: String,
    function: Json,
    possible_answer: Json,
    answers: Vec<TracedAnswer>,
}

#[derive(Deserialize)]
struct TracedAnswer {
    kind: String,
    decoded: Json,
    verdict: Json,
}

/// Replays every trace below a folder: `multi_turn_*.jsonl`, `fuzz.jsonl` and `single_*.jsonl`, as recorded from the
/// reference. The data folder has the texts of long contexts, `long_context.json` or `long_context.py`.
///
/// # Errors
///
/// [`BfclError`] when a file cannot be read or there are none. Differences are no error.
pub fn replay_traces(data: &Path, traces: &Path) -> Result<ConformanceReport, BfclError> {
    let mut replay = Replay { report: ConformanceReport::default(), long: Long::find(data)? };
    let files = if traces.is_file() {
        vec![traces.to_owned()]
    } else {
        let listed = std::fs::read_dir(traces)
            .map_err(|source| BfclError::Read { path: traces.to_owned(), source })?;
        let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
    };
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one: fn(&mut Replay, &str, &str) -> Result<(), String> = match &*name {
            "fuzz.jsonl" => Replay::fuzz,
            name if name.starts_with("multi_turn_") && name.ends_with(".jsonl") => {
                Replay::multi_turn
            }
            name if name.starts_with("single_") && name.ends_with(".jsonl") => Replay::single_turn,
            _ => continue,
        };
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BfclError::Read { path: path.clone(), source })?;
        replay.report.files += 1;
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            replay.report.traces += 1;
            one(&mut replay, &format!("{name}:{}", at + 1), line).map_err(|detail| {
                BfclError::Malformed { what: format!("{name}:{}", at + 1), detail }
            })?;
        }
    }
    if replay.report.traces == 0 {
        let detail = match replay.report.files {
            0 => "there is no `multi_turn_*.jsonl`, `fuzz.jsonl` or `single_*.jsonl`",
            _ => "no recording is in its files",
        };
        let what = traces.display().to_string();
        return Err(BfclError::Malformed { what, detail: detail.to_owned() });
    }
    Ok(replay.report)
}

/// The texts of long contexts, and the tokens that stand for them in recordings.
struct Long {
    texts: Option<Arc<LongContext>>,
    tokens: Vec<(String, String)>,
    constants: Json,
}

impl Long {
    fn find(data: &Path) -> Result<Self, BfclError> {
        let json = data.join("long_context.json");
        let python = data.join("long_context.py");
        let path = if json.exists() { &json } else { &python };
        if !path.exists() {
            return Ok(Self { texts: None, tokens: Vec::new(), constants: Json::Null });
        }
        let texts = Some(Arc::new(LongContext::load(path)?));
        let mut tokens = Vec::new();
        let mut constants = Json::Null;
        if path == &json {
            let text = std::fs::read_to_string(&json)
                .map_err(|source| BfclError::Read { path: json.clone(), source })?;
            let whole: Json = serde_json::from_str(&text).map_err(|error| {
                BfclError::Malformed { what: json.display().to_string(), detail: error.to_string() }
            })?;
            for (token, text) in whole["tokens"].as_object().into_iter().flatten() {
                tokens.push((token.clone(), text.as_str().unwrap_or_default().to_owned()));
            }
            constants = whole["constants"].clone();
        }
        Ok(Self { texts, tokens, constants })
    }

    /// A text with what its tokens stand for.
    fn expanded(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.contains("<<LC:") {
            for (token, whole) in &self.tokens {
                text = text.replace(token, whole);
            }
        }
        text
    }

    /// A state with what its tokens stand for.
    fn expanded_state(&self, state: &Json) -> Json {
        match state {
            Json::String(text) => Json::String(self.expanded(text)),
            Json::Array(items) => items.iter().map(|item| self.expanded_state(item)).collect(),
            Json::Object(entries) => {
                let mut whole = serde_json::Map::new();
                for (key, value) in entries {
                    let added = match &**key {
                        "<<LC:CREDIT_CARDS>>" => &self.constants["CREDIT_CARD_EXTENSION"],
                        "<<LC:BOOKINGS>>" => &self.constants["BOOKING_RECORD_EXTENSION"],
                        "<<LC:POPULATE>>" => &self.constants["POPULATE_FILE_EXTENSION"],
                        _ => {
                            whole.insert(key.clone(), self.expanded_state(value));
                            continue;
                        }
                    };
                    for (key, value) in added.as_object().into_iter().flatten() {
                        whole.insert(key.clone(), value.clone());
                    }
                    for name in added.as_array().into_iter().flatten().filter_map(Json::as_str) {
                        let file = serde_json::json!({"type": "file", "name": name, "content": ""});
                        whole.insert(name.to_owned(), file);
                    }
                }
                Json::Object(whole)
            }
            other => other.clone(),
        }
    }
}

struct Replay {
    report: ConformanceReport,
    long: Long,
}

impl Replay {
    fn compare(&mut self, place: &str, what: &str, found: &str, expected: &str) {
        self.report.records += 1;
        if found == expected {
            return;
        }
        self.report.mismatches += 1;
        if self.report.described.len() < MAX_DESCRIBED {
            let start = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
            let cut = |text: &str| -> String {
                let start =
                    (0..=start.saturating_sub(40)).rev().find(|&at| text.is_char_boundary(at));
                text[start.unwrap_or(0)..].chars().take(SHOWN).collect()
            };
            self.report.described.push(format!(
                "{place}: {what}\n  found    {}\n  expected {}",
                cut(found),
                cut(expected)
            ));
        }
    }

    fn compare_call(&mut self, place: &str, traced: &TracedCall, found: &str) {
        let expected = self.long.expanded(&traced.result);
        if traced.nondeterministic {
            let sorted = |text: &str| {
                let mut characters: Vec<char> = text.chars().collect();
                characters.sort_unstable();
                characters.into_iter().collect::<String>()
            };
            self.compare(place, &traced.call, &sorted(found), &sorted(&expected));
        } else {
            self.compare(place, &traced.call, found, &expected);
        }
    }

    fn compare_state(&mut self, place: &str, found: Json, expected: &Json) {
        let expected = self.long.expanded_state(expected);
        let (found, expected) = (sorted_keys(&found), sorted_keys(&expected));
        self.compare(place, "state", &found.to_string(), &expected.to_string());
    }

    fn world(
        &self,
        id: &str,
        classes: &[String],
        scenario: Json,
        is_long: bool,
    ) -> Result<World, String> {
        let classes: Result<Vec<Class>, _> = classes.iter().map(|name| name.parse()).collect();
        let long_context = if is_long {
            let missing = || BfclError::NoLongContext { entry: id.to_owned() }.to_string();
            Some(self.long.texts.clone().ok_or_else(missing)?)
        } else {
            None
        };
        Ok(World {
            id: id.to_owned(),
            classes: classes.map_err(|error| error.to_string())?,
            scenario: Arc::new(scenario),
            long_context,
        })
    }

    fn multi_turn(&mut self, place: &str, line: &str) -> Result<(), String> {
        let trace: MultiTurnTrace =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let is_long = trace.id.contains("long_context");
        let world =
            self.world(&trace.id, &trace.involved_classes, trace.initial_config, is_long)?;
        let text = |error: BfclError| error.to_string();
        let raised = |error: spar_python::Exception| error.to_string();
        let mut process = world.process();
        let mut instances = world.instances("m", &process).map_err(text)?;
        let state = instances.state(&process).map_err(raised)?;
        self.compare_state(&format!("{place} begin"), state, &trace.initial_state);
        for (at, turn) in trace.turns.iter().enumerate() {
            let place = format!("{place} turn {at}");
            for (call, result) in turn.gold_calls.iter().zip(&turn.results) {
                let found = instances.execute(call, &mut process);
                let expected = self.long.expanded(result.as_str().unwrap_or_default());
                self.compare(&place, call, &found, &expected);
            }
            let state = instances.state(&process).map_err(raised)?;
            self.compare_state(&place, state, &turn.state_after);
        }
        let mut process = world.process();
        let mut instances = world.instances("m", &process).map_err(text)?;
        for (at, turn) in trace.perturbed.iter().enumerate() {
            let place = format!("{place} perturbed turn {at}");
            for traced in &turn.calls {
                let found = instances.execute(&traced.call, &mut process);
                self.compare_call(&place, traced, &found);
            }
            let state = instances.state(&process).map_err(raised)?;
            self.compare_state(&place, state, &turn.state_after);
        }
        let gold: Vec<Vec<String>> =
            trace.turns.iter().map(|turn| turn.gold_calls.clone()).collect();
        let perturbed: Vec<Vec<String>> = trace
            .perturbed
            .iter()
            .map(|turn| turn.calls.iter().map(|traced| traced.call.clone()).collect())
            .collect();
        for (kind, expected) in &trace.verdicts {
            let Some(answer) = answer_of(kind, &gold, &perturbed, expected) else { continue };
            let verdict = world.check(&answer, &gold).map_err(text)?;
            let found = told(&verdict, expected);
            let expected = sorted_keys(expected).to_string();
            self.compare(place, &format!("verdict of {kind}"), &found, &expected);
        }
        Ok(())
    }

    fn fuzz(&mut self, place: &str, line: &str) -> Result<(), String> {
        let trace: FuzzTrace = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let scenario = match trace.initial_config.get(&trace.class) {
            Some(_) => trace.initial_config.clone(),
            None => serde_json::json!({ &trace.class: trace.initial_config }),
        };
        // Objects are called after the class alone there.
        let world =
            self.world("fuzz", std::slice::from_ref(&trace.class), scenario, trace.long_context)?;
        let mut process = world.process();
        let mut instances = world.instances("m", &process).map_err(|error| error.to_string())?;
        for (at, traced) in trace.calls.iter().enumerate() {
            let found = instances.execute(&traced.call, &mut process);
            self.compare_call(&format!("{place} {} call {at}", trace.id), traced, &found);
        }
        let state = instances.state(&process).map_err(|error| error.to_string())?;
        let expected = match trace.state_final.get(&trace.class) {
            Some(_) => trace.state_final.clone(),
            None => serde_json::json!({ &trace.class: trace.state_final }),
        };
        self.compare_state(&format!("{place} {}", trace.id), state, &expected);
        Ok(())
    }

    fn single_turn(&mut self, place: &str, line: &str) -> Result<(), String> {
        let trace: SingleTurnTrace =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let language: Language = trace.language.parse()?;
        for answer in &trace.answers {
            let verdict = check_single_turn(
                &trace.category,
                language,
                &trace.function,
                &trace.possible_answer,
                &answer.decoded,
            )
            .map_err(|error| error.to_string())?;
            let found = verdict.as_json(answer.verdict.get("error").is_some());
            let place = format!("{place} {}", trace.id);
            let expected = sorted_keys(&answer.verdict).to_string();
            self.compare(&place, &answer.kind, &sorted_keys(&found).to_string(), &expected);
        }
        Ok(())
    }
}

/// The answer of which a verdict was recorded.
fn answer_of(
    kind: &str,
    gold: &[Vec<String>],
    perturbed: &[Vec<String>],
    recorded: &Json,
) -> Option<Vec<Vec<Vec<String>>>> {
    let in_one_step = |turns: &[Vec<String>]| -> Vec<Vec<Vec<String>>> {
        turns
            .iter()
            .map(|calls| if calls.is_empty() { Vec::new() } else { vec![calls.clone()] })
            .collect()
    };
    Some(match kind {
        "gold" => in_one_step(gold),
        "empty" => vec![Vec::new(); gold.len()],
        "gold_minus_last" => {
            let mut turns = gold.to_vec();
            turns.iter_mut().rev().find(|calls| !calls.is_empty())?.pop();
            in_one_step(&turns)
        }
        "gold_plus_read" => {
            let mut turns = in_one_step(gold);
            let at = usize::try_from(recorded["added_at_turn"].as_u64()?).ok()?;
            turns.get_mut(at)?.insert(0, vec![recorded["added_call"].as_str()?.to_owned()]);
            turns
        }
        "gold_one_call_per_step" => {
            gold.iter().map(|calls| calls.iter().map(|call| vec![call.clone()]).collect()).collect()
        }
        "gold_reversed_within_turn" => {
            let reversed: Vec<Vec<String>> =
                gold.iter().map(|calls| calls.iter().rev().cloned().collect()).collect();
            in_one_step(&reversed)
        }
        "perturbed" => in_one_step(perturbed),
        _ => return None,
    })
}

/// A verdict in the form of a recorded one.
fn told(verdict: &MultiTurnVerdict, recorded: &Json) -> String {
    let mut told = serde_json::Map::new();
    told.insert("valid".to_owned(), Json::Bool(verdict.is_valid()));
    for name in ["added_call", "added_at_turn"] {
        if let Some(value) = recorded.get(name) {
            told.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(kind) = verdict.error_type() {
        told.insert("error_type".to_owned(), Json::from(kind));
        told.insert("error_message".to_owned(), Json::from(verdict.error_message()));
    }
    match verdict {
        MultiTurnVerdict::StateMismatch { attributes, .. } => {
            let mut attributes = attributes.clone();
            attributes.sort_unstable();
            told.insert("differing_attributes".to_owned(), Json::from(attributes));
        }
        MultiTurnVerdict::ResponseMismatch { missing, .. } => {
            told.insert("missing_count".to_owned(), Json::from(missing.len()));
        }
        _ => {}
    }
    sorted_keys(&Json::Object(told)).to_string()
}

/// The same with the keys of objects in order, since their order says nothing.
fn sorted_keys(json: &Json) -> Json {
    match json {
        Json::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            Json::Object(
                entries.into_iter().map(|(key, value)| (key.clone(), sorted_keys(value))).collect(),
            )
        }
        Json::Array(items) => items.iter().map(sorted_keys).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `scripts/record_bfcl.py` from entries of our own.
    #[test]
    fn recordings_that_ship_are_equal() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded");
        let report = replay_traces(&folder, &folder).unwrap();
        assert_eq!(report.mismatches, 0, "{report}");
        assert_eq!((report.files, report.traces), (3, 20), "{report}");
        assert!(report.records > 300, "{report}");
    }

    #[test]
    fn what_differs_is_told() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded");
        let changed = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(folder.join("fuzz.jsonl")).unwrap();
        let text = text.replacen("Error during execution", "error during execution", 1);
        std::fs::write(changed.path().join("fuzz.jsonl"), text).unwrap();
        let report = replay_traces(&folder, changed.path()).unwrap();
        assert_eq!((report.mismatches, report.described.len()), (1, 1), "{report}");
    }

    /// Says so where the recordings are not at hand.
    #[test]
    fn recordings_of_the_reference_are_equal() {
        let folder = std::env::var_os("BFCL_TRACES").map(PathBuf::from).unwrap_or_else(|| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/tools/bfcl")
        });
        if !folder.join("fuzz.jsonl").exists() {
            eprintln!("not run: there are no recordings at {}", folder.display());
            return;
        }
        let report = replay_traces(&folder, &folder).unwrap();
        assert_eq!(report.mismatches, 0, "{report}");
        assert!(report.records > 1_000, "{report}");
    }
}
