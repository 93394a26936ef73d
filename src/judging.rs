//! Who judges episodes beside their environments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use spar_agent::policies::{HttpPolicy, HttpPolicyConfig};
use spar_agent::spend::Budget;
use spar_core::{Policy, PolicyVersion};
use spar_envs::{Resources, asks_judge, needs_sandbox, open_environment};
use spar_policy::checkpoint::{KeepAs, open_model};
use spar_policy::{LocalPolicy, hub};
use spar_tasks::graders::{GraderConfig, Graders, GradingModel, GradingModels};
use spar_tasks::{Suite, SuiteError, Task};

/// Tasks of a split whose graders are looked at before anything is started; what is wrong with others is told when they are
/// played.
const MAX_CHECKED: usize = 10_000;
/// Problems that are told at the most, of those that differ.
const MAX_TOLD: usize = 20;

/// The model that graders ask which need a judge; either an endpoint or a checkpoint.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeConfig {
    /// An OpenAI-compatible endpoint. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<HttpPolicyConfig>,
    /// A checkpoint folder, or a model's name on the hub, that judges in this process. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PathBuf>,
}

impl JudgeConfig {
    /// All that is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        if let (Some(endpoint), None) = (&self.endpoint, &self.checkpoint)
            && let Err(error) = endpoint.prices()
        {
            return vec![format!("judge.endpoint: could not {error}")];
        }
        match (&self.endpoint, &self.checkpoint) {
            (None, None) => {
                vec!["judge: it names neither an `endpoint` nor a `checkpoint`".to_owned()]
            }
            (Some(_), Some(_)) => {
                vec!["judge: it is either an `endpoint` or a `checkpoint`".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}

/// Who judges episodes: graders beside those that tasks name, and where the models that take part come from.
#[derive(Debug, Clone, Copy, Default)]
pub struct JudgingConfig<'a> {
    /// Graders beside those that tasks name.
    pub graders: &'a [GraderConfig],
    /// The judge, where there is one.
    pub judge: Option<&'a JudgeConfig>,
    /// The checkpoint of the reference model, where there is one.
    pub reference: Option<&'a Path>,
    /// Whether the policy that plays is in this process, so that graders can ask it.
    pub has_policy: bool,
}

/// Judging that is ready.
#[derive(Debug, Clone, Default)]
pub struct Judging {
    /// Graders beside those that tasks name.
    pub graders: Arc<[GraderConfig]>,
    /// The models that take part, but for the policy that plays.
    pub models: GradingModels,
}

impl JudgingConfig<'_> {
    /// Whether a model will be there, and whether it can score given tokens.
    fn available(&self, model: GradingModel) -> Option<bool> {
        match model {
            GradingModel::Judge => self.judge.map(|judge| judge.checkpoint.is_some()),
            GradingModel::Policy => self.has_policy.then_some(true),
            GradingModel::Reference => self.reference.map(|_| true),
        }
    }

    /// All that is wrong with how the tasks of these splits are judged, before anything is started.
    ///
    /// # Errors
    ///
    /// When a task cannot be read.
    pub fn problems(
        &self,
        suite: &dyn Suite,
        splits: &[String],
    ) -> Result<Vec<String>, SuiteError> {
        let mut problems: Vec<String> = Vec::new();
        for split in splits {
            let len = suite.len(split)?;
            // Of more than are looked at, each so-many-th, so that all shares of a mixture are among them.
            let step = len.div_ceil(MAX_CHECKED).max(1);
            for index in (0..len).step_by(step) {
                let task = suite.task(split, index)?;
                for problem in self.problems_of(&task) {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
                if problems.len() >= MAX_TOLD {
                    return Ok(problems);
                }
                if is_generated(suite, split, &task) {
                    break;
                }
            }
        }
        Ok(problems)
    }

    fn problems_of(&self, task: &Task) -> Vec<String> {
        let merged = Graders::merged(&task.graders, self.graders);
        if asks_judge(task) && self.available(GradingModel::Judge).is_none() {
            let problem = format!(
                "environment `{}` needs a judge: name an endpoint or a checkpoint as [judge]",
                task.environment
            );
            return vec![problem];
        }
        if merged.is_empty() {
            return Vec::new();
        }
        let graders = match Graders::open(&merged) {
            Ok(graders) => graders,
            Err(error) => return vec![error.to_string()],
        };
        let has_sandbox = needs_sandbox(task);
        let has_reference = graders.needs_reference() && !has_sandbox && {
            // Only the environment knows what is right in a generated task.
            let bare = Task { graders: Vec::new(), ..task.clone() };
            let opened = open_environment(&bare, &Resources::default());
            opened.is_ok_and(|opened| opened.reference_answer().is_some())
        };
        let lacks = graders.lacks(task, has_reference, has_sandbox, |model| self.available(model));
        lacks.into_iter().map(|problem| format!("graders: {problem}")).collect()
    }

    /// Whether a grader of these splits asks this model, as far as it can be seen before anything is started.
    ///
    /// # Errors
    ///
    /// When a task cannot be read.
    pub fn asks(
        &self,
        model: GradingModel,
        suite: &dyn Suite,
        splits: &[String],
    ) -> Result<bool, SuiteError> {
        let asks = |configs: &[GraderConfig]| {
            Graders::open(configs).is_ok_and(|graders| graders.needs_model(model))
        };
        if asks(&Graders::merged(&[], self.graders)) {
            return Ok(true);
        }
        for split in splits {
            let len = suite.len(split)?;
            for index in (0..len).step_by(len.div_ceil(MAX_CHECKED).max(1)) {
                let task = suite.task(split, index)?;
                if !task.graders.is_empty() && asks(&task.graders) {
                    return Ok(true);
                }
                if model == GradingModel::Judge && asks_judge(&task) {
                    return Ok(true);
                }
                if is_generated(suite, split, &task) {
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Opens the models that take part, those behind endpoints within a budget; the reference model where `asks_reference`, which is whether a grader
    /// [asks](Self::asks) it.
    ///
    /// # Errors
    ///
    /// When one cannot be loaded, or the endpoint's settings are wrong; it is asked nothing yet.
    pub async fn open(&self, asks_reference: bool, budget: &Budget) -> anyhow::Result<Judging> {
        let judge: Option<Arc<dyn Policy>> = match self.judge {
            Some(JudgeConfig { endpoint: Some(endpoint), .. }) => {
                let meter = budget.meter("judge", endpoint.prices()?)?;
                Some(Arc::new(HttpPolicy::open(endpoint.clone())?.metered(meter)))
            }
            Some(JudgeConfig { checkpoint: Some(checkpoint), .. }) => {
                Some(local_model("judge", checkpoint).await?)
            }
            _ => None,
        };
        let reference = match self.reference.filter(|_| asks_reference) {
            Some(checkpoint) => Some(local_model("reference", checkpoint).await?),
            None => None,
        };
        let models = GradingModels { judge, policy: None, reference };
        Ok(Judging { graders: self.graders.into(), models })
    }
}

/// Whether all tasks of the split are made from seeds, so that they are judged alike.
fn is_generated(suite: &dyn Suite, split: &str, task: &Task) -> bool {
    suite.shares(split).is_empty() && task.parameters.get("seed").is_some()
}

/// A model in this process, with weights of its own.
pub(crate) async fn local_model(name: &str, path: &Path) -> anyhow::Result<Arc<dyn Policy>> {
    let path = hub::resolve(path, &mut |_| {})
        .await
        .with_context(|| format!("find the {name} `{}`", path.display()))?;
    let (weights, tokenizer) = open_model(&path, KeepAs::default())
        .with_context(|| format!("load the {name} `{}`", path.display()))?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let policy =
        LocalPolicy::new(name, Arc::new(tokenizer), Arc::new(weights), PolicyVersion(0), threads);
    Ok(Arc::new(policy.with_context(|| format!("start the {name}"))?))
}

#[cfg(test)]
mod tests {
    use spar_tasks::{SuiteOptions, open_suite};

    use super::*;

    fn problems(
        suite: &str,
        graders: &str,
        judge: Option<&JudgeConfig>,
        has_policy: bool,
    ) -> String {
        let graders: Vec<GraderConfig> = serde_json::from_str(graders).unwrap();
        let suite = open_suite(suite, &SuiteOptions::default()).unwrap();
        let config = JudgingConfig { graders: &graders, judge, reference: None, has_policy };
        config.problems(suite.as_ref(), &["test".to_owned()]).unwrap().join("; ")
    }

    #[test]
    fn all_that_judging_lacks_is_told_before_anything_is_started() {
        let judge = r#"[{ "kind": "judge" }]"#;
        let http = JudgeConfig { endpoint: Some(HttpPolicyConfig::default()), checkpoint: None };
        assert!(problems("sums", judge, None, true).contains("--judge URL"));
        assert_eq!(problems("sums", judge, Some(&http), true), "");
        assert_eq!(problems("sums", r#"[{ "kind": "exact", "decides": true }]"#, None, true), "");
        let exact = problems("frozen-lake", r#"[{ "kind": "exact" }]"#, None, true);
        assert!(exact.contains("needs an answer that is right"), "{exact}");
        assert!(problems("sums", r#"[{ "kind": "script" }]"#, None, true).contains("sandbox"));
        let likely = r#"[{ "kind": "likelihood" }]"#;
        assert_eq!(problems("sums", likely, None, true), "");
        assert!(problems("sums", likely, None, false).contains("the policy that plays"));
        let by_judge = r#"[{ "kind": "likelihood", "model": "judge" }]"#;
        let told = problems("sums", by_judge, Some(&http), true);
        assert!(told.contains("needs log-probabilities"), "{told}");
        let reference = r#"[{ "kind": "likelihood", "model": "reference" }]"#;
        assert!(problems("sums", reference, None, true).contains("needs a reference model"));
    }

    #[test]
    fn what_tasks_name_tells_which_models_are_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quiz.jsonl");
        let row = r#"{"prompt": "1 + 1?", "answer": 2, "graders": [{"kind": "likelihood", "model": "reference"}]}"#;
        std::fs::write(&path, row).unwrap();
        let asks = |suite: &str, model| {
            let suite = open_suite(suite, &SuiteOptions::default()).unwrap();
            let splits: Vec<_> =
                suite.manifest().splits.iter().map(|(name, _)| name.clone()).collect();
            JudgingConfig::default().asks(model, suite.as_ref(), &splits).unwrap()
        };
        let quiz = path.to_str().unwrap();
        assert!(asks(quiz, GradingModel::Reference) && !asks(quiz, GradingModel::Judge));
        assert!(!asks("sums", GradingModel::Reference) && !asks("sums", GradingModel::Judge));
    }

    #[test]
    fn a_judge_is_an_endpoint_or_a_checkpoint() {
        assert_eq!(JudgeConfig::default().problems().len(), 1);
        let both = "checkpoint = 'm'\n[endpoint]\nbase_url = 'http://127.0.0.1:1/v1'";
        assert_eq!(toml::from_str::<JudgeConfig>(both).unwrap().problems().len(), 1);
        assert!(toml::from_str::<JudgeConfig>("checkpoint = 'm'").unwrap().problems().is_empty());
    }
}
