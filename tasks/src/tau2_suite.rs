//! The suite of a release of tau2-bench.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use spar_tau2::{Domain, DomainName, Release, RewardType, Tau2Error, Tau2Task};

use crate::graders::GraderConfig;
use crate::{Suite, SuiteError, SuiteManifest, Task};

const INSTRUCTION: &str = "";
/// Turns of a seat; the release's own limits break a conversation off before.
const MAX_TURNS: u32 = 200;

/// The tasks of a release of tau2-bench: a checkout, its folder of domains, or the folder of one domain.
///
/// Every split of a domain's `split_tasks.json` is one, named `DOMAIN_SPLIT`; `DOMAIN_all` has all tasks. Beside a split with tasks
/// that a model has to judge in part stands `SPLIT_rules`, in which that part is left out of the reward; in the others the
/// grader `tau2` asks the judge that is named. `SPLIT_solo` has the tasks with a ticket, for an agent that works alone,
/// judged by rules.
#[derive(Debug)]
pub struct Tau2Suite {
    domains: BTreeMap<DomainName, (PathBuf, Vec<Tau2Task>)>,
    splits: BTreeMap<String, Split>,
    manifest: SuiteManifest,
}

#[derive(Debug)]
struct Split {
    domain: DomainName,
    /// Places of tasks in the domain's file.
    tasks: Vec<usize>,
    form: Form,
}

/// How the tasks of a split are played and judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Rules,
    Solo,
}

impl Tau2Suite {
    /// Reads the tasks of a release; its databases are read when a task is played.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when there is no release, or a file of it cannot be read or has another form.
    pub fn open(path: &Path) -> Result<Self, SuiteError> {
        let release = Release::find(path)
            .ok_or_else(|| read_error(Tau2Error::NoRelease { path: path.to_owned() }))?;
        let (mut domains, mut splits) = (BTreeMap::new(), BTreeMap::new());
        let mut hasher = blake3::Hasher::new();
        for (domain, folder) in release.domains() {
            let tasks = Domain::read_tasks(folder).map_err(read_error)?;
            let named = Domain::read_splits(folder).map_err(read_error)?;
            let written = serde_json::to_vec(&tasks).unwrap_or_default();
            hasher.update(domain.as_str().as_bytes()).update(&written);
            for file in domain.database_files() {
                let path = folder.join(file);
                let text = std::fs::read(&path)
                    .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
                hasher.update(&text);
            }
            let all = (0..tasks.len()).collect();
            let mut listed: BTreeMap<String, Vec<usize>> = [("all".to_owned(), all)].into();
            for (name, ids) in named {
                // Ids without a task belong to other parts of the release's data.
                let place = |id: &String| tasks.iter().position(|task| task.id == *id);
                let places: Vec<_> = ids.iter().filter_map(place).collect();
                if !places.is_empty() {
                    listed.insert(name, places);
                }
            }
            for (name, places) in listed {
                let name = format!("{domain}_{name}");
                let alone: Vec<_> = match domain.has_solo_mode() {
                    true => {
                        places.iter().copied().filter(|at| tasks[*at].ticket.is_some()).collect()
                    }
                    false => Vec::new(),
                };
                if places.iter().any(|at| sentences(&tasks[*at]).is_some()) {
                    let (domain, tasks) = (*domain, places.clone());
                    splits.insert(
                        format!("{name}_rules"),
                        Split { domain, tasks, form: Form::Rules },
                    );
                }
                if !alone.is_empty() {
                    let split = Split { domain: *domain, tasks: alone, form: Form::Solo };
                    splits.insert(format!("{name}_solo"), split);
                }
                splits.insert(name, Split { domain: *domain, tasks: places, form: Form::Whole });
            }
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            domains.insert(*domain, (folder, tasks));
        }
        let sizes = splits.iter().map(|(name, split)| (name.clone(), split.tasks.len()));
        let manifest = SuiteManifest {
            name: "tau2".to_owned(),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: sizes.collect(),
        };
        Ok(Self { domains, splits, manifest })
    }
}

fn read_error(error: Tau2Error) -> SuiteError {
    SuiteError::Tau2(Box::new(error))
}

/// The sentences that a model has to judge for the reward of a task; absent where it has to judge nothing.
fn sentences(task: &Tau2Task) -> Option<&Vec<String>> {
    let criteria = task.evaluation_criteria.as_ref()?;
    let counts = criteria.reward_basis.contains(&RewardType::NlAssertion);
    criteria.nl_assertions.as_ref().filter(|sentences| counts && !sentences.is_empty())
}

impl Suite for Tau2Suite {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        "tau2-bench's customer service, from the user's own copy of its release."
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let Split { domain, tasks, form } = &self.splits[split];
        let (folder, all) = &self.domains[domain];
        let task = &all[tasks[index]];
        let mut parameters =
            json!({ "folder": folder, "domain": domain.as_str(), "task": task.id });
        let mut graders = Vec::new();
        match (form, sentences(task)) {
            (Form::Whole, Some(sentences)) => {
                let mut grader = GraderConfig::new("tau2");
                grader.options.insert("nl_assertions".to_owned(), json!(sentences));
                graders.push(grader);
            }
            (Form::Whole, None) => {}
            (Form::Rules | Form::Solo, _) => parameters["nl_assertions"] = "leave_out".into(),
        }
        if *form == Form::Solo {
            parameters["solo"] = true.into();
        }
        Ok(Task {
            id: format!("tau2/{split}/{}", task.id),
            environment: "tau2".to_owned(),
            parameters,
            instruction: INSTRUCTION.to_owned(),
            max_turns: MAX_TURNS,
            tags: Vec::new(),
            graders,
        })
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let place = id.strip_prefix("tau2/").and_then(|rest| {
            let (name, key) = rest.split_once('/')?;
            let split = self.splits.get(name)?;
            let tasks = &self.domains[&split.domain].1;
            Some((name, split.tasks.iter().position(|at| tasks[*at].id == key)?))
        });
        let unknown =
            || SuiteError::UnknownTask { suite: self.manifest.name.clone(), id: id.to_owned() };
        let (split, index) = place.ok_or_else(unknown)?;
        self.task(split, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_its_splits_and_what_a_judge_is_needed_for() {
        let folder = tempfile::tempdir().unwrap();
        let mock = folder.path().join("data/tau2/domains/mock");
        std::fs::create_dir_all(&mock).unwrap();
        let tasks = r#"[
            {"id": "a", "user_scenario": {"instructions": "i"}, "ticket": "t", "evaluation_criteria":
                {"actions": [], "nl_assertions": ["The agent was kind."], "reward_basis": ["DB", "NL_ASSERTION"]}},
            {"id": "b", "user_scenario": {"instructions": "i"}}
        ]"#;
        for (file, text) in [
            ("db.json", "{}"),
            ("user_db.json", "{}"),
            ("tasks.json", tasks),
            ("split_tasks.json", r#"{"train": ["b", "elsewhere"], "base": ["b", "a"]}"#),
        ] {
            std::fs::write(mock.join(file), text).unwrap();
        }
        let suite = Tau2Suite::open(folder.path()).unwrap();
        let splits: Vec<_> =
            suite.manifest().splits.iter().map(|(name, len)| (&**name, *len)).collect();
        assert_eq!(
            splits,
            [
                ("mock_all", 2),
                ("mock_all_rules", 2),
                ("mock_all_solo", 1),
                ("mock_base", 2),
                ("mock_base_rules", 2),
                ("mock_base_solo", 1),
                ("mock_train", 1),
            ]
        );
        let judged = suite.task("mock_base", 1).unwrap();
        assert_eq!((judged.parameters["task"].as_str(), judged.graders.len()), (Some("a"), 1));
        crate::graders::open_grader(&judged.graders[0]).unwrap();
        let by_rules = suite.task("mock_base_rules", 1).unwrap();
        assert_eq!(by_rules.parameters["nl_assertions"], "leave_out");
        assert!(by_rules.graders.is_empty());
        assert_eq!(suite.task("mock_base_solo", 0).unwrap().parameters["solo"], true);
        assert_eq!(suite.task_by_id("tau2/mock_base/a").unwrap(), judged);
        let told = suite.task_by_id("tau2/mock_base/1");
        assert!(matches!(told, Err(SuiteError::UnknownTask { .. })));
        std::fs::write(mock.join("tasks.json"), "[{}]").unwrap();
        let told = Tau2Suite::open(folder.path()).unwrap_err();
        assert!(
            std::error::Error::source(&told).is_some() || told.to_string().contains("task 0"),
            "{told}"
        );
    }
}
