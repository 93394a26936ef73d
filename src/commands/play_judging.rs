//! Who judges what a person plays.

use spar::agent::OpenEnvironment;
use spar::envs::{Environment, EnvironmentError};
use spar::sandboxes::OpenSandboxes;
use spar::tasks::Task;
use spar::tasks::graders::Graders;

/// A task with those of its graders that can judge here, where nobody has named a model for them.
pub(super) struct Judged {
    pub(super) task: Task,
    pub(super) open: OpenEnvironment,
    /// The graders that are left out, each with the reason.
    pub(super) left_out: Vec<String>,
}

impl Judged {
    /// A task as it is judged without a model, and its environment.
    ///
    /// # Errors
    ///
    /// When the environment cannot be opened, whoever judges.
    pub(super) fn open(
        task: &Task,
        sandboxes: &OpenSandboxes,
    ) -> Result<(Self, Box<dyn Environment>), EnvironmentError> {
        let without = |left_out: Vec<String>| {
            let open = sandboxes.ungraded_opener();
            let env = open(task)?;
            Ok((Self { task: task.clone(), open, left_out }, env))
        };
        let graders = match Graders::open(&task.graders) {
            Ok(graders) => graders,
            Err(error) => return without(vec![error.to_string()]),
        };
        let asking: Vec<_> = graders.models().collect();
        let mut left_out: Vec<String> = asking
            .iter()
            .map(|(grader, model)| format!("`{grader}` needs the {}", model.name()))
            .collect();
        let mut rest = task.graders.clone();
        rest.retain(|grader| asking.iter().all(|(asking, _)| *asking != grader.label()));
        if rest.is_empty() && !asking.is_empty() {
            return without(left_out);
        }
        // One of several has to decide.
        if !rest.iter().any(|grader| grader.decides)
            && let [first, ..] = &mut rest[..]
        {
            first.decides = true;
        }
        let judged = Task { graders: rest, ..task.clone() };
        let open = sandboxes.opener(None);
        match open(&judged) {
            Ok(env) => Ok((Self { task: judged, open, left_out }, env)),
            // What it lacks keeps nobody from playing.
            Err(EnvironmentError::Grader(error)) => {
                left_out.push(error.to_string());
                without(left_out)
            }
            Err(error) => Err(error),
        }
    }

    /// What a person is told of those that are left out; empty where nobody is.
    pub(super) fn told(&self) -> String {
        match self.left_out.is_empty() {
            true => String::new(),
            false => format!("Left out of the judging: {}.\n", self.left_out.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar::agent::EpisodeConfig;
    use spar::sandboxes::SandboxConfig;
    use spar::tasks::{SuiteOptions, open_suite};

    use super::*;

    async fn judged(graders: serde_json::Value) -> Judged {
        let suite = open_suite("maths", &SuiteOptions::default()).unwrap();
        let (config, episode) = (SandboxConfig::default(), EpisodeConfig::default());
        let sandboxes =
            OpenSandboxes::open(&config, suite.as_ref(), "test", &episode).await.unwrap();
        let mut task = suite.task("test", 0).unwrap();
        task.graders = serde_json::from_value(graders).unwrap();
        Judged::open(&task, &sandboxes).unwrap().0
    }

    #[tokio::test]
    async fn graders_judge_that_ask_no_model() {
        let alone = judged(json!([{ "kind": "math" }])).await;
        assert_eq!((alone.task.graders.len(), &*alone.told()), (1, ""));
        let mixed =
            json!([{ "kind": "judge", "decides": true }, { "kind": "math" }, { "kind": "exact" }]);
        let mixed = judged(mixed).await;
        let kinds: Vec<_> =
            mixed.task.graders.iter().map(|it| (it.kind.as_str(), it.decides)).collect();
        assert_eq!(kinds, [("math", true), ("exact", false)]);
        assert_eq!(mixed.told(), "Left out of the judging: `judge` needs the judge.\n");
        let judge = judged(json!([{ "kind": "judge", "name": "style" }])).await;
        assert!(judge.told().contains("`style` needs the judge"));
        let lacking = judged(json!([{ "kind": "script" }])).await;
        assert!(lacking.told().contains("`script` needs a sandbox"), "{}", lacking.told());
    }
}
