//! How recordings of the reference are compared with what is done here.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::{Domain, Requestor};
use crate::error::Tau2Error;
use crate::release::Release;
use crate::reward::judge;
use crate::task::{
    Called, EvaluationCriteria, FunctionCall, InitialState, Message, RewardType, Said, Tau2Task,
};
use crate::validate::PYDANTIC_VERSION;
use crate::world::World;

/// Mismatches beyond so many are counted and not told.
const MOST_TOLD: usize = 50;
/// Longer lines are refused.
const MOST_LINE_BYTES: usize = 64 << 20;

/// What came of comparing recordings.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// Files that were read.
    pub files: usize,
    /// Recordings in them.
    pub traces: usize,
    /// Calls that were carried out.
    pub calls: usize,
    /// Answers, hashes and judgements that differ.
    pub mismatches: usize,
    /// The first of them.
    pub told: Vec<Mismatch>,
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The file.
    pub file: PathBuf,
    /// The recording.
    pub trace: String,
    /// What of it.
    pub place: String,
    /// What was recorded.
    pub expected: String,
    /// What came instead.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, trace, place, expected, found } = self;
        let file = file.display();
        write!(formatter, "{file}: {trace}: {place}: recorded {expected}, found {found}")
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.told {
            writeln!(formatter, "{mismatch}")?;
        }
        let Self { files, traces, calls, mismatches, .. } = self;
        write!(formatter, "{files} files, {traces} traces, {calls} calls, {mismatches} mismatches")
    }
}

/// One recorded call.
#[derive(Debug, Clone, Deserialize)]
struct Recorded {
    requestor: Requestor,
    name: String,
    arguments: Map<String, Value>,
    output: String,
    error: bool,
    #[serde(default)]
    db_hash: Option<String>,
    #[serde(default)]
    user_db_hash: Option<String>,
    /// The answer differs from run to run.
    #[serde(default)]
    nondeterministic: bool,
    /// So does the database afterwards.
    #[serde(default)]
    nondeterministic_hash: bool,
}

/// A call that only looks: who, which tool, arguments, answer, whether that is an error.
type Probe = (Requestor, String, Map<String, Value>, String, bool);

/// A recording of a task.
#[derive(Debug, Deserialize)]
struct Trace {
    task_id: String,
    #[serde(default)]
    evaluation_criteria: Option<EvaluationCriteria>,
    #[serde(default)]
    reward_basis: Option<Vec<RewardType>>,
    #[serde(default)]
    initial_db_hash: Option<String>,
    #[serde(default)]
    initial_user_db_hash: Option<String>,
    gold: Vec<Recorded>,
    #[serde(default)]
    perturbed: Vec<Recorded>,
    #[serde(default)]
    probes_before: Vec<Probe>,
    #[serde(default)]
    probes_after_gold: Vec<Probe>,
    #[serde(default)]
    rewards: BTreeMap<String, Map<String, Value>>,
}

/// A recording of calls at random.
#[derive(Debug, Deserialize)]
struct Fuzz {
    id: String,
    #[serde(default)]
    init_actions: Option<Vec<FunctionCall>>,
    calls: Vec<Recorded>,
    #[serde(default)]
    final_db_hash: Option<String>,
    #[serde(default)]
    final_user_db_hash: Option<String>,
}

/// Where a comparison stands, and what it found.
struct Comparing<'c> {
    domain: &'c Arc<Domain>,
    file: &'c Path,
    trace: String,
    compared: &'c mut Compared,
}

/// Compares recordings with what is done here: below `traces` the files `*.jsonl` in a folder for each domain, or those of
/// one domain where `data` has only one, or `traces` or the folder of that file is called like it. `data` is where a [`Release`] is found; tasks that it lacks are looked for in a
/// `tasks.json` beside the recordings.
///
/// # Errors
///
/// [`Tau2Error`] when there is no release or no recording, or a file cannot be read or has another form.
pub fn compare_folder(data: &Path, traces: &Path) -> Result<Compared, Tau2Error> {
    let release =
        Release::find(data).ok_or_else(|| Tau2Error::NoRelease { path: data.to_owned() })?;
    let mut compared = Compared::default();
    for (name, folder) in release.domains() {
        let is_called = |path: Option<&Path>| {
            path.and_then(Path::file_name).is_some_and(|it| it == name.as_str())
        };
        let is_one = release.domains().len() == 1;
        let below = traces.join(name.as_str());
        let (recordings, files) = if below.is_dir() {
            (below.clone(), recordings_in(&below)?)
        } else if traces.is_file() && (is_one || is_called(traces.parent())) {
            let folder = traces.parent().unwrap_or(Path::new(""));
            (folder.to_owned(), vec![traces.to_owned()])
        } else if traces.is_dir() && (is_one || is_called(Some(traces))) {
            (traces.to_owned(), recordings_in(traces)?)
        } else {
            continue;
        };
        let mut tasks = Domain::read_tasks(folder)?;
        if recordings.join("tasks.json").is_file() {
            tasks.extend(Domain::read_tasks(&recordings)?);
        }
        let tasks = tasks.into_iter().map(|task| (task.id.clone(), task)).collect();
        let domain = Arc::new(Domain::open(*name, folder)?);
        for file in &files {
            compare_file(&domain, &tasks, file, &mut compared)?;
        }
    }
    let known: Vec<String> =
        release.domains().iter().map(|(name, _)| format!("`{}`", name.as_str())).collect();
    for name in folders_with_recordings(traces) {
        if !release.domains().iter().any(|(domain, _)| domain.as_str() == name) {
            return Err(Tau2Error::UnknownDomain { name, known: known.join(", ") });
        }
    }
    match compared.traces {
        0 => Err(Tau2Error::NoRecordings { path: traces.to_owned() }),
        _ => Ok(compared),
    }
}

/// The files of recordings in a folder, in their order.
fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, Tau2Error> {
    let failed = |source| Tau2Error::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The folders below one that have recordings, by their names.
fn folders_with_recordings(traces: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(traces).into_iter().flatten().flatten();
    let has_some =
        |path: &PathBuf| path.is_dir() && recordings_in(path).is_ok_and(|it| !it.is_empty());
    let folders = entries.map(|entry| entry.path()).filter(has_some);
    let mut names: Vec<String> =
        folders.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Compares the recordings of one file, of tasks or of calls at random, with what is done here.
fn compare_file(
    domain: &Arc<Domain>,
    tasks: &BTreeMap<String, Tau2Task>,
    file: &Path,
    compared: &mut Compared,
) -> Result<(), Tau2Error> {
    let failed = |source| Tau2Error::Read { path: file.to_owned(), source };
    let wrong = |at: usize, detail: String| Tau2Error::Data {
        path: file.to_owned(),
        detail: format!("line {}: {detail}", at + 1),
    };
    let reader = BufReader::new(File::open(file).map_err(failed)?);
    compared.files += 1;
    for (at, line) in reader.lines().enumerate() {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        if line.len() > MOST_LINE_BYTES {
            return Err(wrong(at, "it is too long".to_owned()));
        }
        let row: Value =
            serde_json::from_str(&line).map_err(|error| wrong(at, error.to_string()))?;
        compared.traces += 1;
        let is_trace = row.get("task_id").is_some();
        let mut comparing = Comparing { domain, file, trace: String::new(), compared };
        if is_trace {
            let trace: Trace =
                serde_json::from_value(row).map_err(|error| wrong(at, error.to_string()))?;
            comparing.trace.clone_from(&trace.task_id);
            comparing.task(tasks, &trace);
        } else {
            let fuzz: Fuzz =
                serde_json::from_value(row).map_err(|error| wrong(at, error.to_string()))?;
            comparing.trace.clone_from(&fuzz.id);
            comparing.fuzz(&fuzz);
        }
    }
    Ok(())
}

impl Comparing<'_> {
    fn expect(
        &mut self,
        place: impl FnOnce() -> String,
        expected: impl fmt::Debug,
        found: impl fmt::Debug,
    ) {
        let (expected, found) = (of_our_pydantic(&format!("{expected:?}")), format!("{found:?}"));
        if expected == found {
            return;
        }
        self.compared.mismatches += 1;
        if self.compared.told.len() < MOST_TOLD {
            let (file, trace) = (self.file.to_owned(), self.trace.clone());
            let place = place();
            self.compared.told.push(Mismatch { file, trace, place, expected, found });
        }
    }

    fn world(&mut self, state: Option<&InitialState>, is_solo: bool) -> World {
        let mut world = World::new(Arc::clone(self.domain), is_solo, 0);
        if let Err(error) = world.initialise(state) {
            self.expect(|| "initial state".to_owned(), "no error", error.text);
        }
        world
    }

    fn hashes(
        &mut self,
        place: impl Fn() -> String,
        expected: [&Option<String>; 2],
        world: &World,
    ) {
        for (requestor, expected) in
            [Requestor::Assistant, Requestor::User].into_iter().zip(expected)
        {
            if let Some(expected) = expected {
                let found = world.hash(requestor).unwrap_or_default();
                self.expect(|| format!("{}, hash of {requestor:?}", place()), expected, found);
            }
        }
    }

    fn calls(&mut self, what: &str, world: &mut World, calls: &[Recorded]) {
        for (at, recorded) in calls.iter().enumerate() {
            self.compared.calls += 1;
            let answered = world.respond(&called(at, recorded));
            let place = || format!("{what} {at} `{}`", recorded.name);
            if !recorded.nondeterministic {
                self.expect(place, &recorded.output, answered.content.unwrap_or_default());
            }
            self.expect(place, recorded.error, answered.error);
            if !recorded.nondeterministic_hash {
                self.hashes(place, [&recorded.db_hash, &recorded.user_db_hash], world);
            }
        }
    }

    fn probes(&mut self, what: &str, world: &World, probes: &[Probe]) {
        for (at, (requestor, name, arguments, output, error)) in probes.iter().enumerate() {
            self.compared.calls += 1;
            let call = Called {
                id: at.to_string(),
                name: name.clone(),
                arguments: arguments.clone(),
                requestor: *requestor,
            };
            let answered = world.clone().respond(&call);
            let found = (answered.content.unwrap_or_default(), answered.error);
            self.expect(|| format!("{what} {at} `{name}`"), (output, error), (&found.0, &found.1));
        }
    }

    fn fuzz(&mut self, fuzz: &Fuzz) {
        let state = InitialState {
            initialization_actions: fuzz.init_actions.clone(),
            ..InitialState::default()
        };
        let mut world = self.world(Some(&state), false);
        self.calls("call", &mut world, &fuzz.calls);
        if !fuzz.calls.last().is_some_and(|last| last.nondeterministic_hash) {
            let expected = [&fuzz.final_db_hash, &fuzz.final_user_db_hash];
            self.hashes(|| "the end".to_owned(), expected, &world);
        }
    }

    fn task(&mut self, tasks: &BTreeMap<String, Tau2Task>, trace: &Trace) {
        let Some(task) = tasks.get(&trace.task_id) else {
            self.expect(|| "tasks".to_owned(), "a task of this id", "none");
            return;
        };
        let mut task = task.clone();
        if let Some(criteria) = &trace.evaluation_criteria {
            let mut criteria = criteria.clone();
            if let Some(basis) = &trace.reward_basis {
                criteria.reward_basis.clone_from(basis);
            }
            task.evaluation_criteria = Some(criteria);
        }
        let world = self.world(task.initial_state.as_ref(), false);
        let expected = [&trace.initial_db_hash, &trace.initial_user_db_hash];
        self.hashes(|| "the beginning".to_owned(), expected, &world);
        self.probes("probe before", &world, &trace.probes_before);
        let mut played = world.clone();
        self.calls("gold", &mut played, &trace.gold);
        self.probes("probe after", &played, &trace.probes_after_gold);
        self.calls("perturbed", &mut world.clone(), &trace.perturbed);
        for (kind, expected) in &trace.rewards {
            let is_solo = kind == "gold_solo";
            let mut calls: Vec<Called> = match kind.as_str() {
                "perturbed" => &trace.perturbed[..],
                "none" => &[],
                _ => &trace.gold[..],
            }
            .iter()
            .enumerate()
            .map(|(at, recorded)| called(at, recorded))
            .collect();
            if let Some(dropped) = expected.get("dropped_index").and_then(Value::as_u64) {
                calls.retain(|call| call.id != dropped.to_string());
            }
            if is_solo {
                calls.iter_mut().for_each(|call| call.requestor = Requestor::Assistant);
            }
            let texts = match kind.as_str() {
                "gold_plus_text" => task
                    .evaluation_criteria
                    .as_ref()
                    .and_then(|criteria| criteria.communicate_info.clone())
                    .unwrap_or_default(),
                _ => Vec::new(),
            };
            self.reward(&task, kind, calls, texts, is_solo, expected);
        }
    }

    fn reward(
        &mut self,
        task: &Tau2Task,
        kind: &str,
        calls: Vec<Called>,
        texts: Vec<String>,
        is_solo: bool,
        expected: &Map<String, Value>,
    ) {
        let history = task.initial_state.as_ref().and_then(|state| state.message_history.clone());
        let mut messages = history.unwrap_or_default();
        if is_solo {
            messages.retain(|message| !matches!(message, Message::User(_)));
        }
        let mut world = self.world(task.initial_state.as_ref(), is_solo);
        for call in calls {
            self.compared.calls += 1;
            let answered = world.respond(&call);
            let by = call.requestor;
            let said = Said { content: None, tool_calls: Some(vec![call]) };
            messages.push(match by {
                Requestor::Assistant => Message::Assistant(said),
                Requestor::User => Message::User(said),
            });
            messages.push(Message::Tool(answered));
        }
        let texts = texts.into_iter();
        messages.extend(
            texts.map(|text| Message::Assistant(Said { content: Some(text), tool_calls: None })),
        );
        let place = |what: &str| format!("reward of {kind}: {what}");
        let judgement = match judge(self.domain, task, &messages, is_solo, 0) {
            Ok(judgement) => judgement,
            Err(error) => {
                let expected = expected.contains_key("env_exception");
                self.expect(|| place(&format!("raised `{error}`")), expected, true);
                return;
            }
        };
        let mut compare = |what: &str, found: Value| {
            if let Some(expected) = expected.get(what) {
                self.expect(|| place(what), expected, found);
            }
        };
        let all = |found: &[bool]| Value::from(if found.iter().all(|it| *it) { 1.0 } else { 0.0 });
        compare("env_exception", Value::Null);
        compare("env_reward", judgement.env_reward().into());
        compare("db_match", judgement.is_db_match.unwrap_or(true).into());
        compare("env_assertions_met", judgement.assertions.clone().into());
        compare("action_matches", judgement.actions.clone().into());
        compare("action_reward", all(&judgement.actions));
        compare("communicate_reward", all(&judgement.communicated));
        let world_parts = [RewardType::Db, RewardType::EnvAssertion];
        if let Some(Value::Object(expected)) = expected.get("breakdown") {
            for (part, value) in judgement.parts() {
                if world_parts.contains(&part) {
                    let expected = expected.get(part.as_str()).cloned().unwrap_or_default();
                    self.expect(|| place(part.as_str()), expected, Value::from(value));
                }
            }
        }
    }
}

/// A recorded text as the pydantic of our own errors writes it, of which another one differs in the address that it names.
fn of_our_pydantic(text: &str) -> String {
    const ADDRESS: &str = "https://errors.pydantic.dev/";
    let mut parts = text.split(ADDRESS);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        told.push_str(ADDRESS);
        told.push_str(PYDANTIC_VERSION);
        told.push_str(rest);
    }
    told
}

fn called(at: usize, recorded: &Recorded) -> Called {
    Called {
        id: at.to_string(),
        name: recorded.name.clone(),
        arguments: recorded.arguments.clone(),
        requestor: recorded.requestor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_was_recorded_of_the_reference_is_equal() {
        let folder = std::env::var_os("TAU2_DATA").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/tools/tau2"),
            PathBuf::from,
        );
        if Release::find(&folder).is_none() {
            println!(
                "nothing compared: no recordings in {} (TAU2_DATA names the folder)",
                folder.display()
            );
            return;
        }
        let traces = std::env::var_os("TAU2_TRACES").map_or_else(|| folder.clone(), PathBuf::from);
        let compared = compare_folder(&folder, &traces).unwrap();
        assert!(compared.calls > 0);
        assert_eq!(compared.mismatches, 0, "{compared}");
    }

    #[test]
    fn errors_of_another_pydantic_are_the_same() {
        let of =
            |version: &str| format!("x\n visit https://errors.pydantic.dev/{version}/v/missing");
        assert_eq!(of_our_pydantic(&of("2.14")), of(PYDANTIC_VERSION));
        assert_eq!(of_our_pydantic(&of("2.14").repeat(2)), of(PYDANTIC_VERSION).repeat(2));
        assert_eq!(of_our_pydantic("a 2.14 b"), "a 2.14 b");
    }

    #[test]
    fn recordings_of_small_data_of_ones_own_are_equal() {
        // Written by `scripts/record_tau2.py`, of data that were made for it.
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tau2");
        let compared =
            compare_folder(&fixtures.join("domains"), &fixtures.join("recordings")).unwrap();
        assert_eq!(compared.mismatches, 0, "{compared}");
        assert!(compared.files == 8 && compared.calls > 200, "{compared}");
    }

    #[test]
    fn what_differs_from_a_recording_is_told() {
        let folder =
            std::env::temp_dir().join(format!("spar-tau2-conformance-{}", std::process::id()));
        let mock = folder.join("mock");
        std::fs::create_dir_all(&mock).unwrap();
        let (database, inbox) = crate::tests::data();
        let tasks = r#"[{"id": "t", "user_scenario": {"instructions": "i"}, "evaluation_criteria":
            {"actions": [{"action_id": "a", "name": "get_users", "arguments": {}}]}}]"#;
        let call = |name: &str, output: &str| {
            format!(
                r#"{{"requestor": "assistant", "name": "{name}", "arguments": {{}}, "output": {output:?}, "error": false}}"#
            )
        };
        let users = r#"[{"user_id": "user_1", "name": "Ada", "tasks": ["task_1"]}]"#;
        let recorded = format!(
            r#"{{"task_id": "t", "gold": [{}], "perturbed": [{}], "rewards": {{"gold": {{"env_reward": 1.0, "db_match": true,
                "action_matches": [true]}}, "none": {{"env_reward": 0.0, "action_reward": 0.0}}}}}}"#,
            call("get_users", users),
            call("get_nothing", "nothing"),
        );
        for (file, text) in [
            ("db.json", database.to_string()),
            ("user_db.json", inbox.to_string()),
            ("policy.md", "p".to_owned()),
            ("tasks.json", tasks.to_owned()),
            ("traces.jsonl", recorded.replace('\n', " ")),
        ] {
            std::fs::write(mock.join(file), text).unwrap();
        }
        let compared = compare_folder(&folder, &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((compared.files, compared.traces, compared.calls), (1, 1, 3));
        let told = compared.to_string();
        assert_eq!(compared.mismatches, 3, "{told}");
        assert!(told.contains("Tool 'get_nothing' not found."), "{told}");
        assert!(told.contains("reward of none: env_reward: recorded Number(0.0)"), "{told}");
        assert!(matches!(
            compare_folder(Path::new("no-such-folder"), &folder),
            Err(Tau2Error::NoRelease { .. })
        ));
    }
}
