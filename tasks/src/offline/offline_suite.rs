//! Recorded episodes as tasks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Dataset, MEDIUM_EXPERT, Recording, Tier};
use crate::lines::{self, Line};
use crate::{Suite, SuiteError, SuiteManifest, Task};

/// The name of suite and environment.
const NAME: &str = "offline";

/// What is known of a recorded episode without reading it again.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEpisode {
    /// The id of its task in the suite that was played.
    pub task: String,
    /// The sum of its rewards.
    pub total_reward: f64,
    /// Whether it solved its task.
    pub success: bool,
    /// How many turns it has.
    pub turns: usize,
    /// Where its line begins in the file of its tier.
    start: u64,
}

/// The recorded episodes of a dataset as tasks: each is played by doing again what was done.
///
/// Splits are the tiers that are there (`random`, `medium`, `medium-replay`, `expert`), and `medium-expert`, the episodes of both.
/// [`Task::parameters`]`["recording"]` is the [`Recording`].
#[derive(Debug)]
pub struct OfflineSuite {
    folder: PathBuf,
    dataset: Dataset,
    episodes: BTreeMap<Tier, Vec<RecordedEpisode>>,
    manifest: SuiteManifest,
    about: String,
}

impl OfflineSuite {
    /// Whether a dataset lies in a folder.
    pub(crate) fn is_at(folder: &Path) -> bool {
        Dataset::is_at(folder)
    }

    /// Reads the dataset in a folder; all recordings are looked at.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when the folder has no dataset, a file cannot be read, or a line is no recording of the dataset's suite: it
    /// tells which line, and what is wrong.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let dataset = Dataset::read(folder)?;
        let mut hasher = blake3::Hasher::new();
        let mut episodes = BTreeMap::new();
        for (tier, told) in &dataset.tiers {
            if told.tasks != dataset.tasks {
                let (name, tasks, all) = (tier.name(), told.tasks, dataset.tasks);
                let path = folder.join("dataset.json");
                let place = format!("tier `{name}`");
                let detail = format!(
                    "{tasks} of {all} tasks were played: the same `spar collect` goes on with it"
                );
                return Err(SuiteError::Task { path, place, detail });
            }
            let path = Dataset::file_of(folder, *tier);
            hasher.update(tier.name().as_bytes());
            let found = read_tier(&path, &dataset.suite, &mut hasher)?;
            if found.len() != told.episodes {
                let (found, told) = (found.len(), told.episodes);
                let detail = format!(
                    "it has {found} recordings, and dataset.json tells of {told}: it was cut off or changed"
                );
                let place = "the file".to_owned();
                return Err(SuiteError::Task { path, place, detail });
            }
            episodes.insert(*tier, found);
        }
        if episodes.is_empty() {
            let what = "a tier (`spar collect` plays them)";
            return Err(SuiteError::EmptyData { path: folder.to_owned(), what });
        }
        let mut splits: Vec<(String, usize)> = episodes
            .iter()
            .map(|(tier, episodes)| (tier.name().to_owned(), episodes.len()))
            .collect();
        if let (Some(medium), Some(expert)) =
            (episodes.get(&Tier::Medium), episodes.get(&Tier::Expert))
        {
            splits.push((MEDIUM_EXPERT.to_owned(), medium.len() + expert.len()));
        }
        let manifest = SuiteManifest {
            name: NAME.to_owned(),
            version: dataset.version.to_string(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits,
        };
        let about = format!("Episodes of `{}` that others played, tier by tier.", dataset.suite);
        Ok(Self { folder: folder.to_owned(), dataset, episodes, manifest, about })
    }

    /// What the dataset is of, and how it came about.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The files that it reads.
    pub fn files(&self) -> Vec<PathBuf> {
        let tiers = self.episodes.keys().map(|tier| Dataset::file_of(&self.folder, *tier));
        tiers.collect()
    }

    /// What is known of the episodes of a split, by their index.
    ///
    /// # Errors
    ///
    /// [`SuiteError::UnknownSplit`] names the splits there are.
    pub fn recorded(&self, split: &str) -> Result<Vec<&RecordedEpisode>, SuiteError> {
        self.len(split)?;
        Ok(tiers_of(split).iter().flat_map(|tier| &self.episodes[tier]).collect())
    }

    /// The recording of a task, as it stands in the file.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when it cannot be read any more.
    pub fn recording(&self, split: &str, index: usize) -> Result<Recording, SuiteError> {
        let (tier, episode) = self.place(split, index);
        let path = Dataset::file_of(&self.folder, tier);
        lines::read_at(&path, episode.start, |line| line.parse(&path))
    }

    fn place(&self, split: &str, index: usize) -> (Tier, &RecordedEpisode) {
        let mut before = 0;
        for tier in tiers_of(split) {
            let episodes = &self.episodes[&tier];
            if let Some(episode) = episodes.get(index - before) {
                return (tier, episode);
            }
            before += episodes.len();
        }
        panic!("`{split}` has no recording {index}");
    }
}

/// The tiers that a split is made of.
fn tiers_of(split: &str) -> Vec<Tier> {
    match split {
        MEDIUM_EXPERT => vec![Tier::Medium, Tier::Expert],
        _ => Tier::named(split).into_iter().collect(),
    }
}

/// Reads the recordings of a tier.
fn read_tier(
    path: &Path,
    suite: &str,
    hasher: &mut blake3::Hasher,
) -> Result<Vec<RecordedEpisode>, SuiteError> {
    let mut found = Vec::new();
    lines::read(path, hasher, |line: Line<'_>| {
        let recording: Recording = line.parse(path)?;
        if let Some(problem) = recording.problem() {
            return Err(line.refuse(path, problem));
        }
        let is_of = |id: &str| id.strip_prefix(suite).is_some_and(|rest| rest.starts_with('/'));
        if !is_of(&recording.task) {
            let task = &recording.task;
            let detail = format!(
                "it is of task `{task}`, and the dataset of suite `{suite}`: files of several datasets are mixed up"
            );
            return Err(line.refuse(path, detail));
        }
        found.push(RecordedEpisode {
            total_reward: recording.total_reward(),
            success: recording.success,
            turns: recording.turns.len(),
            task: recording.task,
            start: line.start,
        });
        Ok(())
    })?;
    Ok(found)
}

impl Suite for OfflineSuite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let recording = self.recording(split, index)?;
        let mut tags = recording.tags.clone();
        tags.push(format!("by-{}", self.place(split, index).0.name()));
        Ok(Task {
            id: format!("{NAME}/{split}/{index}"),
            environment: NAME.to_owned(),
            instruction: recording.instruction.clone(),
            max_turns: u32::try_from(recording.turns.len()).unwrap_or(u32::MAX),
            tags,
            parameters: serde_json::json!({ "recording": recording }),
            graders: Vec::new(),
        })
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        Some(self.place(split, index).0.name().to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::error::Error;
    use std::fs;

    use serde_json::{Value, json};

    use super::super::{DATASET_VERSION, DatasetTier, RecordingFile, ScoreReferences};
    use super::*;

    fn recording(task: &str, reward: f64) -> Value {
        let observation = |text: &str| json!({ "text": text, "state_key": text });
        json!({
            "task": task, "environment": "frozen-lake", "player": "oracle",
            "first": observation("start"), "success": reward > 0.0,
            "turns": [{
                "action": { "kind": "text", "text": "go east" },
                "step": {
                    "observation": observation("goal"), "rewards": [{ "name": "success", "value": reward }],
                    "terminated": true, "success": reward > 0.0, "valid": true,
                    "wall_time": { "secs": 0, "nanos": 0 },
                },
            }],
        })
    }

    /// Writes a dataset of one episode into a folder.
    pub(crate) fn write_dataset(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        dataset(folder, &[(Tier::Expert, &[recording("frozen-lake/train/3", 1.0)])]);
    }

    fn dataset(folder: &Path, tiers: &[(Tier, &[Value])]) {
        let of = |lines: &[Value]| {
            let rewards =
                lines.iter().map(|it| it["turns"][0]["step"]["rewards"][0]["value"].as_f64());
            DatasetTier {
                player: "p".to_owned(),
                tasks: 1,
                episodes: lines.len(),
                successes: 0,
                mean_return: rewards.flatten().sum::<f64>() / lines.len() as f64,
                mean_turns: 1.0,
                missing: 0,
            }
        };
        let dataset = Dataset {
            version: DATASET_VERSION,
            suite: "frozen-lake".to_owned(),
            suite_hash: "h".to_owned(),
            split: "train".to_owned(),
            seed: 1,
            tasks: 1,
            episodes_per_task: 2,
            settings: BTreeMap::new(),
            tiers: tiers.iter().map(|(tier, lines)| (*tier, of(lines))).collect(),
        };
        dataset.write(folder).unwrap();
        for (tier, lines) in tiers {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(Dataset::file_of(folder, *tier), text).unwrap();
        }
    }

    /// What opening says, all causes.
    fn refused(folder: &Path) -> String {
        let error = OfflineSuite::open(folder).unwrap_err();
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            told.push_str(&format!(": {source}"));
            cause = source.source();
        }
        told
    }

    #[test]
    fn tiers_are_splits_and_two_of_them_are_one_more() {
        let folder = tempfile::tempdir().unwrap();
        let (low, high) =
            (recording("frozen-lake/train/3", 0.25), recording("frozen-lake/train/3", 1.0));
        let tiers: [(Tier, &[Value]); 3] = [
            (Tier::Random, &[recording("frozen-lake/train/3", 0.0)]),
            (Tier::Medium, &[low.clone(), low]),
            (Tier::Expert, &[high]),
        ];
        dataset(folder.path(), &tiers);
        let suite = OfflineSuite::open(folder.path()).unwrap();
        let splits: Vec<(&str, usize)> =
            suite.manifest().splits.iter().map(|(name, len)| (name.as_str(), *len)).collect();
        assert_eq!(splits, [("random", 1), ("medium", 2), ("expert", 1), ("medium-expert", 3)]);
        let rewards = |split: &str| -> Vec<f64> {
            suite.recorded(split).unwrap().iter().map(|it| it.total_reward).collect()
        };
        assert_eq!(rewards("medium-expert"), [0.25, 0.25, 1.0]);
        let task = suite.task("medium-expert", 2).unwrap();
        assert_eq!((task.environment.as_str(), task.max_turns), ("offline", 1));
        assert_eq!(task.tags, ["by-expert"]);
        assert_eq!(task.parameters["recording"]["turns"][0]["action"]["text"], "go east");
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        assert!(suite.recorded("medium-replay").unwrap_err().to_string().contains("`medium`"));
        let references = suite.dataset().references().unwrap();
        assert_eq!((references.random, references.expert), (0.0, 1.0));
        assert_eq!(references.normalized(0.25), Some(25.0));
        assert_eq!(ScoreReferences { random: 1.0, expert: 1.0 }.normalized(1.0), None);
    }

    #[test]
    fn files_that_are_cut_off_corrupt_or_of_another_suite_are_told_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(refused(folder).contains("there is no dataset.json"), "{}", refused(folder));
        let good = recording("frozen-lake/train/3", 1.0);
        dataset(folder, &[(Tier::Expert, &[good.clone(), good.clone()])]);
        let path = Dataset::file_of(folder, Tier::Expert);
        let whole = fs::read_to_string(&path).unwrap();
        let one = good.to_string();
        let nowhere = one.replace("\"turns\":[", "\"turns\":[],\"other\":[");
        for (text, parts) in [
            (whole[..whole.len() - 40].to_owned(), &["line 2", "as if cut off"][..]),
            (format!("{one}\n"), &["1 recordings", "tells of 2"]),
            (format!("{one}\nno json\n"), &["line 2", "expected"]),
            (
                whole.replacen("\"value\":1.0", "\"value\":null", 1),
                &["line 1", "invalid type: null"],
            ),
            (whole.replacen("\"value\":1.0", "\"value\":1e999", 1), &["line 1", "out of range"]),
            (whole.replacen("\"value\":1.0", "\"value\":NaN", 1), &["line 1", "expected value"]),
            (
                whole.replacen("frozen-lake/", "household/", 1),
                &["line 1", "of suite `frozen-lake`"],
            ),
            (format!("{nowhere}\n{one}\n"), &["line 1", "unknown field `other`"]),
        ] {
            fs::write(&path, text).unwrap();
            let told = refused(folder);
            assert!(parts.iter().all(|part| told.contains(part)), "{parts:?}: {told}");
        }
        fs::remove_file(&path).unwrap();
        assert!(refused(folder).contains("expert.jsonl"), "{}", refused(folder));
        fs::write(folder.join("dataset.json"), r#"{"version": 9}"#).unwrap();
        assert!(refused(folder).contains("version 9"), "{}", refused(folder));
        fs::write(folder.join("dataset.json"), "{").unwrap();
        assert!(refused(folder).contains("no dataset"), "{}", refused(folder));
    }

    #[test]
    fn recordings_whose_turns_do_not_fit_are_told() {
        let problem = |change: fn(&mut Value)| {
            let mut value = recording("frozen-lake/train/3", 1.0);
            change(&mut value);
            serde_json::from_value::<Recording>(value).unwrap().problem().unwrap_or_default()
        };
        assert_eq!(problem(|_| {}), "");
        assert!(problem(|it| it["turns"] = json!([])).contains("no turns"));
        let twice = problem(|it| {
            let turn = it["turns"][0].clone();
            it["turns"].as_array_mut().unwrap().push(turn);
        });
        assert!(twice.contains("behind turn 0"), "{twice}");
        let huge = problem(|it| {
            let part = json!({ "name": "a", "value": 1e308 });
            it["turns"][0]["step"]["rewards"] = json!([part, part, part]);
        });
        assert!(huge.contains("no number"), "{huge}");
    }

    #[test]
    fn what_a_broken_off_write_left_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = Dataset::file_of(folder.path(), Tier::Random);
        let one: Recording = serde_json::from_value(recording("s/train/1", 0.5)).unwrap();
        let open = |kept: usize| RecordingFile::open(path.clone(), kept);
        let mut file = open(0).unwrap();
        file.append(&[one.clone(), one.clone()]).unwrap();
        file.append(std::slice::from_ref(&one)).unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 3);
        fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        open(2).unwrap().append(std::slice::from_ref(&one)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        // What nobody has noted stands for nothing.
        open(1).unwrap().append(&[one.clone(), one]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        // Nor does what a write has left that failed in the middle.
        let mut file = open(2).unwrap();
        fs::write(&path, [&whole, &whole[..5]].concat()).unwrap();
        file.append(&[]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole[..whole.len() / 3 * 2]);
        fs::write(&path, &whole).unwrap();
        let lost = open(5).unwrap_err();
        let told = lost.source().unwrap().to_string();
        assert!(told.contains("3 recordings") && told.contains("tells of 5"), "{told}");
    }

    #[test]
    fn a_tier_counts_what_is_added_to_it() {
        let of = |reward| -> Recording {
            serde_json::from_value(recording("s/train/1", reward)).unwrap()
        };
        let mut tier = DatasetTier::default();
        tier.add(1, &[of(0.0), of(1.0)]);
        tier.add(1, &[of(0.5)]);
        tier.add(1, &[]);
        assert_eq!((tier.tasks, tier.episodes, tier.successes), (3, 3, 2));
        assert_eq!((tier.mean_return, tier.mean_turns), (0.5, 1.0));
    }
}
