//! How much may be in use at the same time.

use serde::{Deserialize, Serialize};

/// Environments per core; most of them wait for the policy.
const ENVIRONMENTS_PER_CORE: usize = 128;
/// Sandboxes per core; what runs in them computes.
const SANDBOXES_PER_CORE: usize = 8;

/// How much may be in use at the same time, one limit for each resource. Results do not depend on it.
///
/// Requests to a policy are limited by the policy: one in this process answers all in batches, an endpoint has
/// [`concurrent_requests`](crate::policies::HttpPolicyConfig::concurrent_requests).
///
/// A single number, as older files have it, limits environments and sandboxes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Concurrency {
    /// Environments with an episode in progress; at least 1. Default 128 per core.
    pub environments: usize,
    /// Those of them whose environment needs a sandbox; at least 1. Default 8 per core.
    pub sandboxes: usize,
}

/// What stands in files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(usize),
    Limits(Limits),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    environments: usize,
    sandboxes: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { environments: ENVIRONMENTS_PER_CORE * cores, sandboxes: SANDBOXES_PER_CORE * cores }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let Concurrency { environments, sandboxes } = Concurrency::default();
        Self { environments, sandboxes }
    }
}

impl From<Written> for Concurrency {
    fn from(written: Written) -> Self {
        match written {
            Written::Number(number) => number.into(),
            Written::Limits(Limits { environments, sandboxes }) => Self { environments, sandboxes },
        }
    }
}

impl From<usize> for Concurrency {
    fn from(number: usize) -> Self {
        Self { environments: number, sandboxes: number }
    }
}

impl Concurrency {
    /// What is wrong with it.
    pub(crate) fn problems(self) -> Vec<String> {
        let limits = [("environments", self.environments), ("sandboxes", self.sandboxes)];
        let wrong = limits.into_iter().filter(|(_, limit)| *limit == 0);
        wrong.map(|(name, _)| format!("concurrency.{name} is 0, must be at least 1")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_limits_all_and_a_table_what_it_names() {
        let read = |text: &str| serde_json::from_str::<Concurrency>(text).unwrap();
        assert_eq!(read("7"), Concurrency::from(7));
        let some = read(r#"{ "sandboxes": 3 }"#);
        let expected = Concurrency { sandboxes: 3, ..Concurrency::default() };
        assert_eq!(some, expected);
        assert_eq!(read(&serde_json::to_string(&some).unwrap()), some);
        assert!(serde_json::from_str::<Concurrency>(r#"{ "sandbox": 3 }"#).is_err());
        assert!(Concurrency::default().environments >= 128);
        let none = Concurrency { environments: 0, sandboxes: 1 };
        assert_eq!(none.problems(), ["concurrency.environments is 0, must be at least 1"]);
    }
}
