use serde::{Deserialize, Serialize};

/// How tasks are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MakeOptions {
    /// Seed of all random choices. Default 0.
    pub seed: u64,
    /// Tasks of a package, after which it is done; at least 1. Default absent: as many as there are.
    pub count: Option<usize>,
    /// Part of the tasks that have two to four bugs, 0 to 0.9. Default 0.2.
    pub stacked: f64,
    /// How many bugs these tasks have, where they are to be mended one after the other, each of them a stage of the task with
    /// its own issue and tests; 2 to 8. Default absent: two to four at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<usize>,
    /// Mutations that are tried for one function and operator until one makes a task; at least 1. Default 2.
    pub tries: usize,
    /// The largest part of the tests that a bug may make fail, above 0 and at most 1. Default 0.3.
    pub max_failing: f64,
    /// How many times as long as the whole suite a run may take; at least 2. Default 6.
    pub timeout_factor: f64,
    /// Seconds that the suite of the package itself may take; at least 1. Default 600.
    pub baseline_secs: u64,
    /// Memory of a process of the tests, in MiB; at least 64. Default 2048.
    pub memory_mb: u64,
    /// Packages' suites that run at one time, each in a place of its own; at least 1. Default 1. Results do not depend on it.
    pub workers: usize,
    /// Names of operators that are used. Default absent: all.
    pub operators: Option<Vec<String>>,
    /// Arguments of pytest beside those that are always there. Default none.
    pub pytest_args: Vec<String>,
}

impl Default for MakeOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            count: None,
            stacked: 0.2,
            stages: None,
            tries: 2,
            max_failing: 0.3,
            timeout_factor: 6.0,
            baseline_secs: 600,
            memory_mb: 2048,
            workers: 1,
            operators: None,
            pytest_args: Vec::new(),
        }
    }
}

impl MakeOptions {
    /// All that is out of its range.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                problems.push(what);
            }
        };
        check(self.count != Some(0), "count is 0, must be at least 1".to_owned());
        check(
            (0.0..=0.9).contains(&self.stacked),
            format!("stacked is {}, must be 0 to 0.9", self.stacked),
        );
        if let Some(stages) = self.stages {
            check((2..=8).contains(&stages), format!("stages is {stages}, must be 2 to 8"));
            check(self.stacked > 0.0, "stacked is 0, so that no task has stages".to_owned());
        }
        check(self.tries > 0, "tries is 0, must be at least 1".to_owned());
        let failing = self.max_failing > 0.0 && self.max_failing <= 1.0;
        check(
            failing,
            format!("max_failing is {}, must be above 0 and at most 1", self.max_failing),
        );
        let factor = (2.0..=1000.0).contains(&self.timeout_factor);
        check(factor, format!("timeout_factor is {}, must be 2 to 1000", self.timeout_factor));
        let secs = (1..=86_400).contains(&self.baseline_secs);
        check(secs, format!("baseline_secs is {}, must be 1 to 86400", self.baseline_secs));
        let memory = (64..=1 << 20).contains(&self.memory_mb);
        check(memory, format!("memory_mb is {}, must be 64 to 1048576", self.memory_mb));
        check(
            (1..=256).contains(&self.workers),
            format!("workers is {}, must be 1 to 256", self.workers),
        );
        for name in self.operators.iter().flatten() {
            if crate::mutation::Operator::find(name).is_none() {
                let known: Vec<&str> =
                    crate::mutation::OPERATORS.iter().map(|operator| operator.name).collect();
                problems
                    .push(format!("there is no operator `{name}`; there are {}", known.join(", ")));
            }
        }
        problems
    }

    /// What results depend on, as text; results of other options are not gone on with.
    pub(crate) fn key(&self) -> String {
        let Self { count: _, workers: _, .. } = self;
        serde_json::to_string(&Self { count: None, workers: 1, ..self.clone() })
            .expect("it is plain")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_told_at_once() {
        assert!(MakeOptions::default().problems().is_empty());
        let wrong = MakeOptions {
            count: Some(0),
            stacked: f64::NAN,
            tries: 0,
            max_failing: 0.0,
            timeout_factor: 1.0,
            baseline_secs: 0,
            memory_mb: 1,
            workers: 0,
            operators: Some(vec!["none".into()]),
            ..MakeOptions::default()
        };
        let problems = wrong.problems();
        assert_eq!(problems.len(), 9, "{problems:?}");
        assert!(problems[8].contains("compare_changed"));
        let staged = MakeOptions { stages: Some(9), stacked: 0.0, ..MakeOptions::default() };
        assert_eq!(staged.problems().len(), 2, "{:?}", staged.problems());
        // What was made before there were stages goes on.
        assert!(!MakeOptions::default().key().contains("stages"));
        assert!(MakeOptions { stages: Some(2), ..MakeOptions::default() }.key().contains("stages"));
    }
}
