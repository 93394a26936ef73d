//! Where a release's files are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::{Domain, DomainName, read_text};
use crate::error::Tau2Error;
use crate::task::Tau2Task;

/// Where the folders of domains may be below a path, in the order in which they are looked for.
const PLACES: [&str; 4] = ["data/tau2/domains", "tau2/domains", "domains", "."];

/// A release's files on disk: the folders of its domains, and the guidelines of its simulated user.
#[derive(Debug, Clone)]
pub struct Release {
    domains: Vec<(DomainName, PathBuf)>,
    guidelines: Option<PathBuf>,
}

impl Release {
    /// Finds a release at a path: a checkout of it, its folder of data, a folder with a folder for each domain, or the
    /// folder of one domain. `None` where there is none.
    pub fn find(path: &Path) -> Option<Self> {
        let is_domain = |name: DomainName, folder: &Path| {
            let (database, _) = name.files();
            folder.join(database).is_file() && folder.join("tasks.json").is_file()
        };
        let found = PLACES.iter().find_map(|place| {
            let root = path.join(place);
            let there = DomainName::ALL.map(|name| (name, root.join(name.as_str())));
            let there: Vec<_> =
                there.into_iter().filter(|(name, folder)| is_domain(*name, folder)).collect();
            (!there.is_empty()).then_some((there, root))
        });
        let (domains, root) = found.or_else(|| {
            let path = path.canonicalize().ok()?;
            let name: DomainName = path.file_name()?.to_str()?.parse().ok()?;
            let root = path.parent()?.to_owned();
            is_domain(name, &path).then(|| (vec![(name, path)], root))
        })?;
        let guidelines = [root.join("user_simulator"), root.join("../user_simulator")];
        let guidelines = guidelines.into_iter().find(|folder| folder.is_dir());
        Some(Self { domains, guidelines })
    }

    /// The domains it has, with their folders.
    pub fn domains(&self) -> &[(DomainName, PathBuf)] {
        &self.domains
    }

    /// The folder of a domain.
    pub fn folder(&self, name: DomainName) -> Option<&Path> {
        self.domains.iter().find(|(domain, _)| *domain == name).map(|(_, folder)| &**folder)
    }

    /// The guidelines that the reference's simulated user is given; absent where the release lacks the file.
    ///
    /// # Errors
    ///
    /// [`Tau2Error::Read`] when the file is there and cannot be read.
    pub fn guidelines(&self, has_tools: bool) -> Result<Option<String>, Tau2Error> {
        let file = match has_tools {
            true => "simulation_guidelines_tools.md",
            false => "simulation_guidelines.md",
        };
        let path = self.guidelines.as_ref().map(|folder| folder.join(file));
        path.filter(|path| path.is_file()).map(|path| read_text(&path)).transpose()
    }
}

impl Domain {
    /// Reads the tasks in a folder of a domain, in the order of the file.
    ///
    /// # Errors
    ///
    /// [`Tau2Error`] when the file cannot be read or has another form.
    pub fn read_tasks(folder: &Path) -> Result<Vec<Tau2Task>, Tau2Error> {
        let path = folder.join("tasks.json");
        let wrong = |detail: String| Tau2Error::Data { path: path.clone(), detail };
        let mut value: serde_json::Value =
            serde_json::from_str(&read_text(&path)?).map_err(|error| wrong(error.to_string()))?;
        if let Some(tasks) = value.get_mut("tasks") {
            value = tasks.take();
        }
        let serde_json::Value::Array(tasks) = value else {
            return Err(wrong("it is no list of tasks".to_owned()));
        };
        let read = tasks.into_iter().enumerate().map(|(at, task)| {
            let id = task.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
            serde_json::from_value(task)
                .map_err(|error| wrong(format!("task {at} (`{id}`): {error}")))
        });
        read.collect()
    }

    /// Reads the splits in a folder of a domain: ids of tasks by the name of the split. Empty where there is no such file.
    ///
    /// # Errors
    ///
    /// [`Tau2Error`] when the file cannot be read or has another form.
    pub fn read_splits(folder: &Path) -> Result<BTreeMap<String, Vec<String>>, Tau2Error> {
        let path = folder.join("split_tasks.json");
        if !path.is_file() {
            return Ok(BTreeMap::new());
        }
        serde_json::from_str(&read_text(&path)?)
            .map_err(|error| Tau2Error::Data { path, detail: error.to_string() })
    }
}
