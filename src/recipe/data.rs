//! What a recipe trains on.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_envs::wrappers::WrappedSuite;
use spar_tasks::{
    MixedSuite, Mixture, Suite, SuiteError, SuiteManifest, SuiteOptions, WrapperConfig, open_suite,
};

/// What is trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// Name of a suite, or a folder with a suite.toml. Default `household`.
    pub suite: String,
    /// Folder of third-party data, for suites that need it. Default absent.
    pub folder: Option<PathBuf>,
    /// Suites that are mixed by weight, in place of `suite`. Default empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suites: Vec<MixedSuite>,
    /// What is put around the environments of all tasks, the innermost first, outside of what tasks name themselves. Default
    /// empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<WrapperConfig>,
    /// The split that is trained on. Default `train`.
    pub train: String,
    /// The splits that are demonstrated, task by task in turn. Default empty: the one that is
    /// trained on.
    pub demonstrations: Vec<String>,
    /// The split that chooses among checkpoints. Default `dev`.
    pub dev: String,
    /// The splits that are only reported. Default `seen` and `unseen`.
    pub test: Vec<String>,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            suite: "household".to_owned(),
            folder: None,
            suites: Vec::new(),
            wrappers: Vec::new(),
            train: "train".to_owned(),
            demonstrations: Vec::new(),
            dev: "dev".to_owned(),
            test: vec!["seen".to_owned(), "unseen".to_owned()],
        }
    }
}

impl DataConfig {
    /// Whether tasks come from the same suite, or from the same mixture.
    pub fn is_same_suite(&self, other: &Self) -> bool {
        (&self.suite, &self.folder, &self.suites, &self.wrappers)
            == (&other.suite, &other.folder, &other.suites, &other.wrappers)
    }

    /// What it is called in records and tables: the suite, or all that are mixed, each behind its weight where that is
    /// not 1.
    pub fn label(&self) -> String {
        let weighed = |mixed: &MixedSuite| {
            let name = mixed.name.as_ref().unwrap_or(&mixed.suite);
            if mixed.weight == 1.0 { name.clone() } else { format!("{} {name}", mixed.weight) }
        };
        match &self.suites[..] {
            [] => self.suite.clone(),
            suites => suites.iter().map(weighed).collect::<Vec<_>>().join(" + "),
        }
    }

    /// The suites that tasks come from, one by one.
    pub fn each_suite(&self) -> impl Iterator<Item = (&str, Option<&PathBuf>)> {
        let single = self.suites.is_empty().then_some((self.suite.as_str(), self.folder.as_ref()));
        let mixed = self.suites.iter().map(|mixed| (mixed.suite.as_str(), mixed.folder.as_ref()));
        single.into_iter().chain(mixed)
    }

    /// All that is wrong with it, as far as it shows before suites are opened.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = MixedSuite::problems_of(&self.suites);
        let default = Self::default();
        if !self.suites.is_empty() && (&self.suite, &self.folder) != (&default.suite, &None) {
            let problem =
                "`suite` and `folder` have no effect beside `suites`, which have their own";
            problems.push(problem.to_owned());
        }
        problems.extend(WrappedSuite::check(&self.wrappers).err().map(|error| error.to_string()));
        problems.into_iter().map(|problem| format!("data: {problem}")).collect()
    }

    /// Own splits of mixed suites that are trained on under one name, and under another measure what that led to.
    pub fn trained_and_measured(&self) -> Vec<String> {
        let trained: BTreeSet<&String> = self.demonstrations.iter().chain([&self.train]).collect();
        let measuring: BTreeSet<&String> = self.test.iter().chain([&self.dev]).collect();
        let mut problems = Vec::new();
        for mixed in &self.suites {
            let pairs =
                trained.iter().flat_map(|train| measuring.iter().map(move |it| (train, it)));
            // Where both have one name the recipe says so itself.
            for (train, measure) in pairs.filter(|(train, measure)| train != measure) {
                let own = mixed.own_split(train);
                let Some(own) = own.filter(|own| mixed.own_split(measure) == Some(own)) else {
                    continue;
                };
                let name = mixed.name.as_ref().unwrap_or(&mixed.suite);
                problems.push(format!(
                    "data: `{own}` of `{name}` is trained on as `{train}`, and measures that as `{measure}`: leave it out \
                     there (`without = [\"{measure}\"]`), or name another of its splits (`splits`)"
                ));
            }
        }
        problems
    }

    /// Opens the suite, or all that are mixed, with the wrappers.
    ///
    /// # Errors
    ///
    /// All that is wrong with any of them.
    pub fn open(&self) -> Result<OpenedData, Vec<SuiteError>> {
        let open = |suite: &str, folder: Option<&PathBuf>| {
            open_suite(suite, &SuiteOptions { data: folder.cloned() })
        };
        let (mut opened, mut problems) = (Vec::new(), Vec::new());
        for (suite, folder) in self.each_suite() {
            match open(suite, folder) {
                Ok(suite) => opened.push(suite),
                Err(error) => problems.push(error),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let manifests = opened.iter().map(|suite| suite.manifest().clone()).collect();
        let named = self.each_suite().map(|(name, _)| name).zip(&opened);
        let for_evaluation = named.filter(|(_, suite)| suite.is_for_evaluation());
        let for_evaluation = for_evaluation.map(|(name, _)| name.to_owned()).collect();
        let suite: Box<dyn Suite> = match self.suites.is_empty() {
            true => opened.pop().expect("one suite was opened"),
            false => Box::new(Mixture::new(self.suites.iter().cloned().zip(opened).collect())?),
        };
        let suite = WrappedSuite::wrap(suite, self.wrappers.clone())
            .map_err(|error| vec![SuiteError::Wrappers(error)])?;
        Ok(OpenedData { suite, manifests, for_evaluation })
    }
}

/// What a stage plays, opened.
pub struct OpenedData {
    /// The suite, or the mixture.
    pub suite: Box<dyn Suite>,
    /// What identifies every suite that tasks come from.
    pub manifests: Vec<SuiteManifest>,
    /// Those of these suites that are for evaluation alone, as the recipe names them.
    pub for_evaluation: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DataConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_mixture_is_data_and_a_suite_beside_it_is_refused() {
        let mixed = "suites = [{ suite = 'frozen-lake', weight = 2 }, { suite = 'sums' }]";
        let data = read(mixed);
        assert_eq!((data.label().as_str(), data.problems().len()), ("2 frozen-lake + sums", 0));
        let opened = data.open().unwrap_or_else(|problems| panic!("{problems:?}"));
        let names: Vec<_> = opened.manifests.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["frozen-lake", "sums"]);
        assert!(opened.suite.len("train").unwrap() > 100_000);
        let written = toml::to_string(&data).unwrap();
        assert_eq!(toml::from_str::<DataConfig>(&written).unwrap(), data);
        let beside = read(&format!("suite = 'sums'\n{mixed}"));
        assert!(beside.problems()[0].contains("no effect beside `suites`"));
        let both = read("suites = [{ suite = 'a' }, { suite = 'b', weight = -1 }]");
        assert!(both.problems()[0].contains("weight of `b` is -1"), "{:?}", both.problems());
        assert_eq!(both.open().err().unwrap().len(), 2);
        assert!(!beside.is_same_suite(&data) && data.is_same_suite(&data.clone()));
    }

    #[test]
    fn wrappers_are_data_and_what_is_wrong_with_them_is_told() {
        let data = read("suite = 'maths'\nwrappers = [{ kind = 'unary_feedback', attempts = 3 }]");
        assert_eq!(data.problems(), [""; 0]);
        assert_eq!(toml::from_str::<DataConfig>(&toml::to_string(&data).unwrap()).unwrap(), data);
        let Ok(opened) = data.open() else { panic!("the suite opens") };
        let task = opened.suite.task("train", 0).unwrap();
        assert_eq!((task.max_turns, &task.parameters["wrappers"][0]["attempts"]), (3, &3.into()));
        assert!(!data.is_same_suite(&read("suite = 'maths'")));
        let wrong = read("suite = 'maths'\nwrappers = [{ kind = 'unary_feedback', attempts = 1 }]");
        assert!(wrong.problems()[0].contains("from 2 to 64"), "{:?}", wrong.problems());
        assert!(wrong.open().is_err());
    }

    #[test]
    fn a_split_that_is_trained_on_does_not_measure_under_another_name() {
        let told = |text: &str| read(text).trained_and_measured();
        let both = "suites = [{ suite = 'sums', splits = { train = 'dev', more = 'x' } }, \
                    { suite = 'household', splits = { seen = 'x', more = 'x' } }]\n\
                    demonstrations = ['more']\n";
        let found = told(both);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`dev` of `sums` is trained on as `train`"), "{found:?}");
        assert!(found[0].contains("`without = [\"dev\"]`"), "{found:?}");
        assert!(found[1].contains("`x` of `household` is trained on as `more`"), "{found:?}");
        let apart = both.replace("more = 'x' } }, ", "more = 'x' }, without = ['dev'] }, ");
        assert_eq!(told(&apart.replace("seen = 'x'", "seen = 'y'")), Vec::<String>::new());
        // Who says it himself means it.
        assert!(told("suites = [{ suite = 'sums' }]\ntrain = 'dev'").is_empty());
    }
}
