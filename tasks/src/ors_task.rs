//! A task that a server of the Open Reward Standard gives and judges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::redaction;
use spar_ors::{OrsAddress, OrsTaskChoice};

/// Parameters of a task that a server gives: the server, and which of its tasks, by `split` and `index` or in its own form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrsTask {
    /// The server.
    pub server: OrsSpec,
    /// The split, as the server calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Which of the split, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The task in the server's own form, in place of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_spec: Option<Map<String, Value>>,
}

/// How a server is reached, and what holds for its episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrsSpec {
    /// What the server is called in messages. Default `ors`.
    pub name: String,
    /// Its URL, `http` or `https`. There is no default.
    pub url: String,
    /// The environment, as the server calls it. Default absent: the first that it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What is sent with every request, by the header's name; nothing secret belongs here. Default none.
    pub headers: BTreeMap<String, String>,
    /// The same, with the name of a variable of spar's own that has the header's value, which is kept out of what is
    /// written: `X-API-Key` is where servers look for a key. Default none.
    pub secret_headers: BTreeMap<String, String>,
    /// What the environment is given as secrets: the name that it knows, with that of a variable of spar's own. Default none.
    pub secrets: BTreeMap<String, String>,
    /// Whether equal calls of a session that was begun anew give equal results, so that an episode can be brought to a point
    /// by its calls; where they do not, forking it in its course is refused. Default true.
    pub repeatable: bool,
    /// What it means that the server raises an error in a call, or does not answer it in time: `fail` (the episode has failed,
    /// and is played anew), or `end` (it ends with what it has earned, as for tools that their callers can break). Default
    /// `fail`.
    pub on_failure: OrsFailure,
    /// What an episode that the server has ended earns at the least to be a success. Default 1.
    pub success_reward: f64,
    /// Seconds of a call, more than 0 and at most 86400. Default 300.
    pub call_secs: f64,
    /// Calls in one turn that are carried out, 1 to 1024. Default 16.
    pub calls_per_turn: usize,
    /// Seconds from asking for a session to knowing its prompt and tools, 1 to 86400. Default 600.
    pub start_secs: u64,
    /// Episodes at one time that are played on this server, 1 to 4096. Default 64.
    pub sessions: usize,
    /// Seconds that an episode waits to be one of them, 1 to 86400. Default 600.
    pub wait_secs: u64,
}

/// What it means that a server fails in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrsFailure {
    /// The episode has failed.
    #[default]
    Fail,
    /// The episode ends, and counts.
    End,
}

impl Default for OrsSpec {
    fn default() -> Self {
        Self {
            name: "ors".to_owned(),
            url: String::new(),
            environment: None,
            headers: BTreeMap::new(),
            secret_headers: BTreeMap::new(),
            secrets: BTreeMap::new(),
            repeatable: true,
            on_failure: OrsFailure::Fail,
            success_reward: 1.0,
            call_secs: 300.0,
            calls_per_turn: 16,
            start_secs: 600,
            sessions: 64,
            wait_secs: 600,
        }
    }
}

impl OrsSpec {
    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_label = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(is_label) {
            let name = &self.name;
            problems.push(format!(
                "name is `{name}`, must be 1 to 40 letters, digits, `_`, `-` or `.`"
            ));
        }
        if !(self.url.starts_with("http://") || self.url.starts_with("https://")) {
            problems.push(format!("url is `{}`, must begin with http:// or https://", self.url));
        }
        if self.environment.as_ref().is_some_and(|name| name.is_empty() || name.contains('/')) {
            problems.push("environment is to be a name without `/`".to_owned());
        }
        for name in self.headers.keys() {
            if self.secret_headers.contains_key(name) {
                problems.push(format!("header `{name}` is in headers and in secret_headers"));
            }
        }
        for (name, value, most) in [
            ("calls_per_turn", self.calls_per_turn as u64, 1024),
            ("start_secs", self.start_secs, 86_400),
            ("sessions", self.sessions as u64, 4096),
            ("wait_secs", self.wait_secs, 86_400),
        ] {
            if !(1..=most).contains(&value) {
                problems.push(format!("{name} is {value}, must lie in 1..={most}"));
            }
        }
        if !(self.call_secs > 0.0 && self.call_secs <= 86_400.0) {
            let found = self.call_secs;
            problems.push(format!("call_secs is {found}, must be above 0, at most 86400"));
        }
        if !self.success_reward.is_finite() {
            problems.push(format!("success_reward is {}, must be finite", self.success_reward));
        }
        problems
    }

    /// Where it is, with the secrets that it is given.
    ///
    /// # Errors
    ///
    /// A sentence that names a variable that is not set.
    pub fn address(&self) -> Result<OrsAddress, String> {
        let read = |what: &str, variable: &str| {
            let value = std::env::var(variable);
            let value = value.map_err(|_| format!("variable `{variable}` of {what} is not set"))?;
            if let Err(error) = redaction::keep(variable, &value) {
                tracing::warn!(%error, "the value of a secret is not looked for");
            }
            Ok::<_, String>(value)
        };
        let mut headers = self.headers.clone();
        for (header, variable) in &self.secret_headers {
            headers.insert(header.clone(), read(&format!("header `{header}`"), variable)?);
        }
        let secrets = self.secrets.iter().map(|(name, variable)| {
            Ok((name.clone(), read(&format!("secret `{name}`"), variable)?))
        });
        let secrets = secrets.collect::<Result<_, String>>()?;
        Ok(OrsAddress { name: self.name.clone(), url: self.url.clone(), headers, secrets })
    }
}

impl OrsTask {
    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.server.problems();
        if self.choice().is_none() {
            problems.push("name a `split` and an `index`, or a `task_spec`".to_owned());
        }
        problems
    }

    /// Which of the server's tasks it is; absent where that is not said in one of the two ways.
    pub fn choice(&self) -> Option<OrsTaskChoice> {
        match (&self.split, self.index, &self.task_spec) {
            (Some(split), Some(index), None) => {
                Some(OrsTaskChoice::Index { split: split.clone(), index })
            }
            (None, None, Some(spec)) => Some(OrsTaskChoice::Spec(spec.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_is_wrong_with_a_task_is_told() {
        let read = |value: Value| serde_json::from_value::<OrsTask>(value).unwrap();
        let good = json!({ "server": { "url": "http://a" }, "split": "train", "index": 0 });
        assert!(read(good).problems().is_empty());
        let told = read(json!({
            "server": { "url": "ftp://a", "name": "é", "environment": "a/b", "sessions": 0, "call_secs": 0,
                        "headers": { "A": "b" }, "secret_headers": { "A": "B" } },
            "split": "train", "task_spec": {},
        }))
        .problems()
        .join("; ");
        for part in ["url is", "name is", "environment", "sessions", "call_secs", "`A`", "`split`"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn secrets_come_from_variables_and_one_that_is_not_set_is_named() {
        // Taken from what cargo sets, so that no test has to set a variable of this process.
        let of = |variable: &str| OrsSpec {
            url: "http://a".to_owned(),
            secrets: [("key".to_owned(), variable.to_owned())].into(),
            ..OrsSpec::default()
        };
        assert_eq!(of("CARGO_PKG_NAME").address().unwrap().secrets["key"], "spar-tasks");
        let told = of("SPAR_NO_SUCH_VARIABLE").address().unwrap_err();
        assert!(told.contains("`SPAR_NO_SUCH_VARIABLE` of secret `key`"), "{told}");
    }
}
