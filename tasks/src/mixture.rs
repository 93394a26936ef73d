//! Suites that are mixed by weight.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::graders::{GraderConfig, Graders};
use crate::{Share, Suite, SuiteError, SuiteManifest, SuiteOptions, Task, open_suite};

/// The least part of all weights that one suite may have.
const LEAST_PART: f64 = 1e-6;

/// A suite of a [`Mixture`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixedSuite {
    /// Its name, or its path, as wherever a suite is named.
    pub suite: String,
    /// The folder of third-party data, if it needs one. Default absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// What it is called in metrics and tables. Default absent: the suite's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How much of what is drawn comes from it, relative to the weights of the others; above 0. Default 1.
    #[serde(default = "one")]
    pub weight: f64,
    /// How often each of its tasks is drawn at the most, counted for each split; behind that the others take up its share.
    /// At least 1. Default absent: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u32>,
    /// Which of its own splits stands for a split of the mixture, by the latter's name. Default empty: the one of the
    /// same name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub splits: BTreeMap<String, String>,
    /// Splits of the mixture that it takes no part in. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Who judges its tasks beside the graders that these name, or else their environment; the other suites have none of them. Default
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<GraderConfig>,
}

fn one() -> f64 {
    1.0
}

impl MixedSuite {
    /// A suite with all defaults.
    pub fn new(suite: impl Into<String>) -> Self {
        Self {
            suite: suite.into(),
            folder: None,
            name: None,
            weight: one(),
            epochs: None,
            splits: BTreeMap::new(),
            without: Vec::new(),
            graders: Vec::new(),
        }
    }

    /// Its own split that stands for one of the mixture; absent where it takes no part in that.
    pub fn own_split<'a>(&'a self, split: &'a str) -> Option<&'a str> {
        let takes_part = !self.without.iter().any(|without| without == split);
        takes_part.then(|| self.splits.get(split).map_or(split, String::as_str))
    }

    /// All that is wrong with suites that are to be mixed, as far as it shows without opening them.
    pub fn problems_of(mixed: &[Self]) -> Vec<String> {
        let mut problems = Vec::new();
        let is_weight = |weight: f64| weight.is_finite() && weight > 0.0;
        for Self { suite, weight, epochs, splits, without, graders, .. } in mixed {
            if !is_weight(*weight) {
                problems.push(format!("weight of `{suite}` is {weight}, must be above 0"));
            }
            if *epochs == Some(0) {
                let problem = format!("epochs of `{suite}` is 0, must be at least 1, or absent");
                problems.push(problem);
            }
            for split in without.iter().filter(|split| splits.contains_key(*split)) {
                let problem =
                    format!("`{suite}` has `{split}` among its splits, and is without it");
                problems.push(problem);
            }
            if let Err(error) = Graders::open(&Graders::merged(&[], graders)) {
                problems.push(format!("graders of `{suite}`: {error}"));
            }
        }
        let total: f64 = mixed.iter().map(|mixed| mixed.weight).sum();
        let is_small = |mixed: &&Self| is_weight(mixed.weight) && mixed.weight < LEAST_PART * total;
        for Self { suite, weight, .. } in mixed.iter().filter(is_small) {
            problems.push(format!(
                "weight of `{suite}` is {weight}, less than a millionth of {total}, the sum of all"
            ));
        }
        if !mixed.is_empty() && mixed.iter().all(|mixed| mixed.epochs.is_some()) {
            let problem = "all suites have `epochs`: one has to go on when the others are used up";
            problems.push(problem.to_owned());
        }
        problems
    }
}

/// A `suite.toml` that lists suites.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixtureFile {
    name: String,
    version: String,
    about: String,
    suites: Vec<MixedSuite>,
}

/// Several suites as one, of which each has a share by its weight in all that is drawn.
///
/// What comes when follows from the seed and the position, as [`ShuffledTasks`](crate::ShuffledTasks) says: any stretch has
/// of each suite what its weight says, and each has epochs of its own, so that a small suite comes again while a large
/// one goes on; [`MixedSuite::epochs`] bounds that. Whoever plays a split as a whole plays every task of every suite
/// once: weights matter only to draws and samples.
///
/// Its splits are those that all of its suites have, by the names that [`MixedSuite::splits`] gives them, or are
/// [without](MixedSuite::without). Tasks keep their ids, so that suites of one name have to be the same, and every task
/// is of one suite whatever split it is played in.
pub struct Mixture {
    manifest: SuiteManifest,
    about: String,
    members: Vec<Member>,
}

struct Member {
    name: String,
    config: MixedSuite,
    suite: Box<dyn Suite>,
}

impl Member {
    fn own_split<'a>(&'a self, split: &'a str) -> Option<&'a str> {
        self.config.own_split(split)
    }

    fn has(&self, own_split: &str) -> bool {
        self.suite.len(own_split).is_ok()
    }

    /// A task of it as the mixture has it.
    fn judged(&self, mut task: Task) -> Task {
        task.graders = Graders::merged(&task.graders, &self.config.graders);
        task
    }

    /// The mixture's splits that it may take part in.
    fn splits(&self) -> impl Iterator<Item = &str> {
        let own = self.suite.manifest().splits.iter().map(|(split, _)| split.as_str());
        own.chain(self.config.splits.keys().map(String::as_str))
    }
}

impl Mixture {
    /// The mixture of these suites, which were opened.
    ///
    /// # Errors
    ///
    /// All that is wrong with it: weights out of range, two suites of one name, whether given or their own, splits that
    /// are not there, tasks that would come from two of them.
    pub fn new(suites: Vec<(MixedSuite, Box<dyn Suite>)>) -> Result<Self, Vec<SuiteError>> {
        let configs: Vec<_> = suites.iter().map(|(config, _)| config.clone()).collect();
        let mut problems: Vec<SuiteError> = MixedSuite::problems_of(&configs)
            .into_iter()
            .map(|detail| SuiteError::Mixture { detail })
            .collect();
        let mut members: Vec<Member> = Vec::new();
        for (config, suite) in suites {
            let name = config.name.clone().unwrap_or_else(|| suite.manifest().name.clone());
            if members.iter().any(|other| other.name == name) {
                let detail = format!("two suites are called `{name}`: give one a `name`");
                problems.push(SuiteError::Mixture { detail });
            }
            problems.extend(members.iter().find_map(|other| same_ids(other, &config, &*suite)));
            let is_mixed = |split: &str| !suite.shares(split).is_empty();
            if suite.manifest().splits.iter().any(|(split, _)| is_mixed(split)) {
                problems.push(is_mixture(&config.suite));
            }
            let strange = config.splits.values().filter_map(|own| suite.len(own).err());
            problems.extend(strange);
            members.push(Member { name, config, suite });
        }
        let splits = splits_of(&members);
        problems.extend(twice(&members, &splits));
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut hasher = blake3::Hasher::new();
        for Member { name, config, suite } in &members {
            let config = serde_json::to_string(&(&config.splits, &config.without, config.epochs))
                .expect("plain data can be written");
            for part in [name, &suite.manifest().content_hash, &config] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
            hasher.update(&config_weight(&members, name).to_le_bytes());
        }
        // Behind all else, so that mixtures without any keep the hashes that they had.
        for Member { name, config, .. } in members.iter().filter(|it| !it.config.graders.is_empty())
        {
            let graders = serde_json::to_string(&(name, &config.graders));
            hasher.update(graders.expect("plain data can be written").as_bytes());
        }
        let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
        let manifest = SuiteManifest {
            name: names.join("+"),
            version: "1".to_owned(),
            content_hash: hasher.finalize().to_hex().to_string(),
            splits: splits.into_iter().collect(),
        };
        let weighed = |member: &Member| format!("{} {}", member.config.weight, member.name);
        let about = members.iter().map(weighed).collect::<Vec<_>>().join(" to ");
        Ok(Self { manifest, about: format!("Mixed by weight: {about}."), members })
    }

    /// Opens the mixture of a folder whose `suite.toml` lists `suites`; their paths start from the folder.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when the file is not understood, or tells all that is wrong with what is mixed.
    pub fn open(folder: &Path) -> Result<Self, SuiteError> {
        let path = folder.join("suite.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| SuiteError::Io { path: path.clone(), source })?;
        let file: MixtureFile = toml::from_str(&text)
            .map_err(|source| SuiteError::Manifest { path, source: Box::new(source) })?;
        let (mut opened, mut problems) = (Vec::new(), Vec::new());
        for mut config in file.suites {
            let beside = folder.join(&config.suite);
            if beside.exists() {
                config.suite = beside.to_string_lossy().into_owned();
            }
            // Looked at before it is opened: it may be this very one.
            if Self::is_at(Path::new(&config.suite)) {
                problems.push(is_mixture(&config.suite).to_string());
                continue;
            }
            let data = config.folder.as_ref().map(|data| folder.join(data));
            match open_suite(&config.suite, &SuiteOptions { data }) {
                Ok(suite) => opened.push((config, suite)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        let told = |problems: Vec<String>| SuiteError::Mixture { detail: problems.join("; ") };
        if !problems.is_empty() {
            return Err(told(problems));
        }
        let mut mixture = Self::new(opened)
            .map_err(|errors| told(errors.iter().map(ToString::to_string).collect()))?;
        (mixture.manifest.name, mixture.manifest.version) = (file.name, file.version);
        mixture.about = file.about;
        Ok(mixture)
    }

    /// The same under a name, as the suite of a table has it.
    #[must_use]
    pub(crate) fn named(mut self, name: &str, about: &str) -> Self {
        (self.manifest.name, self.about) = (name.to_owned(), about.to_owned());
        self
    }

    /// Whether there is a folder whose `suite.toml` lists `suites`.
    pub(crate) fn is_at(folder: &Path) -> bool {
        let text = std::fs::read_to_string(folder.join("suite.toml")).unwrap_or_default();
        toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("suites"))
    }

    /// The suites by what they are called.
    pub fn members(&self) -> impl Iterator<Item = (&str, &dyn Suite)> {
        self.members.iter().map(|member| (member.name.as_str(), member.suite.as_ref()))
    }

    /// The member that has a task of a split, with its own split and the task's place in it.
    fn place<'a>(&'a self, split: &'a str, index: usize) -> Option<(&'a Member, &'a str, usize)> {
        let mut index = index;
        for member in &self.members {
            let Some(own) = member.own_split(split) else { continue };
            let len = member.suite.len(own).ok()?;
            if index < len {
                return Some((member, own, index));
            }
            index -= len;
        }
        None
    }

    /// The member that the task with this id is of.
    fn member_of(&self, id: &str) -> Option<&Member> {
        let of = |member: &&Member| {
            let name = member.suite.manifest().name.as_str();
            let Some(rest) = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) else {
                return false;
            };
            let own = |split| member.own_split(split).unwrap_or_default();
            let mut splits = self.manifest.splits.iter().map(|(split, _)| own(split));
            splits.any(|own| rest.strip_prefix(own).is_some_and(|rest| rest.starts_with('/')))
        };
        self.members.iter().find(of)
    }
}

/// A suite that is mixed already, so that its own weights would count for nothing.
fn is_mixture(suite: &str) -> SuiteError {
    let detail = format!("`{suite}` is a mixture itself: name its suites");
    SuiteError::Mixture { detail }
}

/// The weight of the first member, in which all others are counted: equal shares are equal hashes.
fn config_weight(members: &[Member], name: &str) -> f64 {
    let unit = members.first().map_or(1.0, |first| first.config.weight);
    let member = members.iter().find(|member| member.name == name);
    member.map_or(0.0, |member| member.config.weight / unit)
}

/// The splits that all members have or do without, with their sizes; at least one has tasks for each.
fn splits_of(members: &[Member]) -> BTreeMap<String, usize> {
    let mut splits = BTreeMap::new();
    for split in members.iter().flat_map(Member::splits) {
        let len = |member: &Member| match member.own_split(split) {
            Some(own) => member.suite.len(own).ok(),
            None => Some(0),
        };
        let has_some = members.iter().any(|member| member.own_split(split).is_some());
        let lens: Option<Vec<usize>> = members.iter().map(len).collect();
        if let Some(lens) = lens.filter(|_| has_some) {
            splits.insert(split.to_owned(), lens.iter().sum());
        }
    }
    splits
}

/// Another suite under the name of a member, whose tasks would have the ids of that member's.
fn same_ids(member: &Member, config: &MixedSuite, suite: &dyn Suite) -> Option<SuiteError> {
    let (one, other) = (member.suite.manifest(), suite.manifest());
    if one.name != other.name || one.content_hash == other.content_hash {
        return None;
    }
    let detail = format!(
        "`{}` and `{}` hold different tasks under the name `{}`, and their ids begin with it: rename one of the files, or \
         give it another `name` in its suite.toml",
        member.config.suite, config.suite, one.name
    );
    Some(SuiteError::Mixture { detail })
}

/// Members that would give tasks which another gives already, be it to another split: whose they are in reports, and
/// whether they were trained on, would not be told by their ids.
fn twice(members: &[Member], splits: &BTreeMap<String, usize>) -> Vec<SuiteError> {
    let mut sources: BTreeMap<(&str, &str), (&Member, &str)> = BTreeMap::new();
    let mut problems = Vec::new();
    for member in members {
        let gives = splits.keys().filter_map(|split| Some((split, member.own_split(split)?)));
        for (split, own) in gives {
            let source = (member.suite.manifest().content_hash.as_str(), own);
            let (first, earlier) = *sources.entry(source).or_insert((member, split));
            if std::ptr::eq(first, member) {
                continue;
            }
            let detail = format!(
                "`{}` gives the tasks of `{own}` to `{split}`, and `{}` gives them to `{earlier}` already: let one of the \
                 two do without (`without`), or name another of its splits (`splits`)",
                member.name, first.name
            );
            problems.push(SuiteError::Mixture { detail });
        }
    }
    problems
}

impl Suite for Mixture {
    fn manifest(&self) -> &SuiteManifest {
        &self.manifest
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn is_for_evaluation(&self) -> bool {
        self.members.iter().any(|member| member.suite.is_for_evaluation())
    }

    fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
        let (member, own, index) =
            self.place(split, index).expect("the task was found to be there");
        member.suite.task(own, index).map(|task| member.judged(task))
    }

    fn stratum(&self, split: &str, index: usize) -> Option<String> {
        let (member, own, index) = self.place(split, index)?;
        member.suite.stratum(own, index)
    }

    fn shares(&self, split: &str) -> Vec<Share> {
        let share = |member: &Member| {
            let len = member.suite.len(member.own_split(split)?).ok()?;
            let MixedSuite { weight, epochs, .. } = member.config;
            Some(Share { name: member.name.clone(), len, weight, epochs })
        };
        self.members.iter().filter_map(share).collect()
    }

    fn firsts(&self, split: &str) -> Vec<usize> {
        let (mut firsts, mut start) = (Vec::new(), 0);
        for member in &self.members {
            let Some(own) = member.own_split(split) else { continue };
            firsts.extend(member.suite.firsts(own).into_iter().map(|index| start + index));
            start += member.suite.len(own).unwrap_or(0);
        }
        firsts
    }

    fn share_of(&self, id: &str) -> Option<&str> {
        self.member_of(id).map(|member| member.name.as_str())
    }

    fn task_by_id(&self, id: &str) -> Result<Task, SuiteError> {
        let unknown =
            || SuiteError::UnknownTask { suite: self.manifest.name.clone(), id: id.to_owned() };
        let member = self.member_of(id).ok_or_else(unknown)?;
        member.suite.task_by_id(id).map(|task| member.judged(task))
    }

    fn len(&self, split: &str) -> Result<usize, SuiteError> {
        if let Some((_, len)) = self.manifest.splits.iter().find(|(name, _)| name == split) {
            return Ok(*len);
        }
        let lacks = |member: &&Member| member.own_split(split).is_some_and(|own| !member.has(own));
        let lacking: Vec<_> =
            self.members.iter().filter(lacks).map(|member| member.name.clone()).collect();
        let known: Vec<_> =
            self.manifest.splits.iter().map(|(split, _)| format!("`{split}`")).collect();
        Err(SuiteError::NotMixed {
            split: split.to_owned(),
            lacking: lacking.join("`, `"),
            known: known.join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::ShuffledTasks;

    fn mixture(text: &str) -> Result<Mixture, Vec<SuiteError>> {
        #[derive(Deserialize)]
        struct Data {
            suites: Vec<MixedSuite>,
        }
        let Data { suites } = toml::from_str(text).unwrap();
        let opened = suites.into_iter().map(|config| {
            let suite = open_suite(&config.suite, &SuiteOptions::default()).unwrap();
            (config, suite)
        });
        Mixture::new(opened.collect())
    }

    fn problems(text: &str) -> String {
        let problems = mixture(text).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    const TWO: &str = "[[suites]]\nsuite = 'household'\nweight = 2\n\
                       [[suites]]\nsuite = 'sums'\nsplits = { seen = 'test' }\nwithout = ['unseen']";

    #[test]
    fn splits_are_those_that_all_have_or_do_without() {
        let mixed = mixture(TWO).unwrap();
        let splits: Vec<_> = mixed.manifest().splits.iter().map(|(name, _)| &**name).collect();
        assert_eq!(splits, ["dev", "seen", "train", "unseen"]);
        assert_eq!(mixed.len("seen").unwrap(), 600);
        assert_eq!(mixed.task("seen", 400).unwrap().id, "sums/test/0");
        assert_eq!(mixed.shares("unseen").len(), 1);
        let told = mixed.len("test").unwrap_err().to_string();
        assert!(told.contains("`household`") && told.contains("without"), "{told}");
        for (id, share) in [("household/train/3", "household"), ("sums/test/0", "sums")] {
            assert_eq!(mixed.share_of(id), Some(share));
            assert_eq!(mixed.task_by_id(id).unwrap().id, id);
        }
        assert_eq!(mixed.share_of("frozen-lake/train/1"), None);
        assert!(mixed.task_by_id("sums").is_err());
        assert_eq!(mixed.manifest().name, "household+sums");
    }

    #[test]
    fn tasks_are_drawn_by_weight_wherever_one_begins() {
        let mixed = mixture(TWO).unwrap();
        let tasks = ShuffledTasks::new(&mixed, "train", Seed::from_u64(4)).unwrap();
        let whole = tasks.take(0, 90).unwrap();
        let household = whole.iter().filter(|task| task.environment == "household").count();
        assert_eq!(household, 60);
        assert_eq!(tasks.take(37, 20).unwrap(), whole[37..57]);
        let distinct: std::collections::BTreeSet<_> = whole.iter().map(|task| &task.id).collect();
        assert_eq!(distinct.len(), 90);
        // A sample has of each what its weight says, as far as it has so many.
        let dev = ShuffledTasks::new(&mixed, "dev", Seed::from_u64(4)).unwrap();
        let count = |limit| {
            let sample = dev.sample(Some(limit)).unwrap();
            sample.iter().filter(|task| task.environment == "household").count()
        };
        assert_eq!((count(30), count(350)), (20, 200));
        assert_eq!(dev.sample(None).unwrap().len(), 400);
    }

    #[test]
    fn graders_of_a_mixed_suite_judge_its_tasks_alone() {
        let text = "[[suites]]\nsuite = 'sql'\nsplits = { dev = 'dev-easy' }\n\
                    graders = [{ kind = 'reasoning_sql', weight = 0.5, ngram = 0 }]\n\
                    [[suites]]\nsuite = 'sums'";
        let mixed = mixture(text).unwrap();
        let kinds =
            |task: &Task| task.graders.iter().map(|grader| grader.kind.clone()).collect::<Vec<_>>();
        let of_sql = mixed.task("dev", 0).unwrap();
        assert_eq!((of_sql.environment.as_str(), kinds(&of_sql).len()), ("sql", 2));
        assert_eq!(kinds(&of_sql), ["environment", "reasoning_sql"]);
        assert!(of_sql.graders[0].decides && !of_sql.graders[1].decides);
        assert_eq!(mixed.task_by_id(&of_sql.id).unwrap(), of_sql);
        let of_sums = mixed.task("dev", mixed.len("dev").unwrap() - 1).unwrap();
        assert!(of_sums.id.starts_with("sums/") && of_sums.graders.is_empty(), "{of_sums:?}");
        let without =
            text.replace("graders = [{ kind = 'reasoning_sql', weight = 0.5, ngram = 0 }]", "");
        let hash = |mixture: &Mixture| mixture.manifest().content_hash.clone();
        assert_ne!(hash(&mixture(&without).unwrap()), hash(&mixed));
        let told = problems(&text.replace("ngram = 0", "n_gram = 0"));
        assert!(told.contains("graders of `sql`") && told.contains("`n_gram`"), "{told}");
    }

    #[test]
    fn a_suite_may_come_in_parts_and_be_used_up() {
        let text = "[[suites]]\nsuite = 'sums'\nname = 'few'\nepochs = 1\nweight = 3\n\
                    splits = { train = 'dev' }\nwithout = ['dev', 'test']\n\
                    [[suites]]\nsuite = 'sums'\nname = 'many'\nsplits = { dev = 'test' }\n\
                    without = ['test']";
        let mixed = mixture(text).unwrap();
        let tasks = ShuffledTasks::new(&mixed, "train", Seed::from_u64(0)).unwrap();
        let drawn = tasks.take(0, 1000).unwrap();
        let few = |task: &Task| mixed.share_of(&task.id) == Some("few");
        assert_eq!(drawn.iter().filter(|task| few(task)).count(), 200);
        assert!(drawn[..200].iter().filter(|task| few(task)).count() >= 149);
        assert!(!drawn[300..].iter().any(few));
    }

    #[test]
    fn a_folder_may_hold_a_mixture() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("suite.toml"), text).unwrap();
        std::fs::write(folder.path().join("quiz.jsonl"), "{\"prompt\": \"Tea?\"}\n").unwrap();
        let head = "name = 'both'\nversion = '3'\nabout = 'Two.'\n";
        let open = || open_suite(folder.path().to_str().unwrap(), &SuiteOptions::default());
        write(&format!(
            "{head}suites = [{{ suite = 'quiz.jsonl' }}, {{ suite = 'sums', weight = 9 }}]"
        ));
        let suite = open().unwrap();
        assert_eq!((suite.manifest().name.as_str(), suite.len("test").unwrap()), ("both", 201));
        assert_eq!(suite.task("test", 0).unwrap().id, "quiz/test/0");
        assert_eq!(suite.share_of("sums/test/7"), Some("sums"));
        let sample = ShuffledTasks::new(suite.as_ref(), "test", Seed::from_u64(0)).unwrap();
        assert_eq!(sample.sample(Some(40)).unwrap().len(), 40);
        write(&format!("{head}suites = [{{ suite = '.' }}, {{ suite = 'none' }}]"));
        let told = open().err().unwrap().to_string();
        assert!(told.contains("is a mixture itself") && told.contains("`none`"), "{told}");
        let nested =
            Mixture::new(vec![(MixedSuite::new("two"), Box::new(mixture(TWO).unwrap()) as _)]);
        assert!(nested.err().unwrap()[0].to_string().contains("is a mixture itself"));
    }

    #[test]
    fn all_that_is_wrong_with_a_mixture_is_told() {
        let told = problems(
            "[[suites]]\nsuite = 'sums'\nweight = 0\nepochs = 0\nsplits = { dev = 'no' }\n\
             without = ['dev']\n[[suites]]\nsuite = 'sums'\nepochs = 2\nweight = 1e-9\n\
             [[suites]]\nsuite = 'frozen-lake'\nepochs = 1",
        );
        for part in [
            "weight of `sums` is 0",
            "epochs of `sums` is 0",
            "is without it",
            "millionth",
            "all suites have `epochs`",
            "two suites are called `sums`",
            "find split `no`",
            "gives the tasks of `train` to `train`, and `sums` gives them to `train` already",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn a_task_is_of_one_suite_whatever_split_it_is_played_in() {
        // The same tasks are trained on as those of one, and measure it as those of the other.
        let told = problems(
            "[[suites]]\nsuite = 'sums'\nname = 'few'\nsplits = { train = 'dev' }\n\
             without = ['dev', 'test']\n[[suites]]\nsuite = 'sums'\nname = 'many'\n\
             splits = { test = 'dev' }",
        );
        for part in [
            "`many` gives the tasks of `dev` to `dev`, and `few` gives them to `train` already",
            "`many` gives the tasks of `dev` to `test`, and `few` gives them to `train` already",
            "`without`",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn suites_of_one_name_and_different_tasks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let quiz = |place: &str, question: &str| {
            std::fs::create_dir(folder.path().join(place)).unwrap();
            let path = folder.path().join(place).join("quiz.jsonl");
            std::fs::write(&path, format!("{{\"prompt\": \"{question}\"}}\n")).unwrap();
            let suite = open_suite(path.to_str().unwrap(), &SuiteOptions::default()).unwrap();
            let config = MixedSuite::new(path.to_str().unwrap());
            (MixedSuite { name: Some(place.to_owned()), ..config }, suite)
        };
        let told = Mixture::new(vec![quiz("a", "Tea?"), quiz("b", "Milk?")]).err().unwrap();
        let told = told.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let parts = [
            "a/quiz.jsonl` and `",
            "under the name `quiz`",
            "rename one of the files",
            "suite.toml",
        ];
        for part in parts {
            assert!(told.contains(part), "{part}: {told}");
        }
        // The same tasks are no others, wherever they are: that they come twice is told.
        let told = Mixture::new(vec![quiz("c", "Tea?"), quiz("d", "Tea?")]).err().unwrap();
        assert!(!told[0].to_string().contains("different tasks"), "{told:?}");
    }
}
