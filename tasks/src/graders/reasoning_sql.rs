//! Queries judged in parts.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};
use spar_sql::{PartialScores, PartialWeights};

use super::{GradedEpisode, Grader, GradingPlace};
use crate::{GraderError, SqlTask};

const NAME: &str = "reasoning_sql";

/// Options of [`ReasoningSql`]: what each part counts, at least 0; one is more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReasoningSqlOptions {
    /// Of a query that finds what the right one finds. Default 3.
    pub execution: f64,
    /// Of one that runs. Default 1.
    pub syntax: f64,
    /// Of how alike the tables and columns are that both read. Default 1.
    pub schema_linking: f64,
    /// Of how alike they are written. Default 1.
    pub ngram: f64,
    /// Of a query that was given in the form that was asked for. Default 0.5.
    pub format: f64,
}

impl Default for ReasoningSqlOptions {
    fn default() -> Self {
        let PartialWeights { execution, syntax, schema_linking, ngram, format } =
            PartialWeights::default();
        Self { execution, syntax, schema_linking, ngram, format }
    }
}

impl ReasoningSqlOptions {
    fn named(&self) -> [(&'static str, f64); 5] {
        [
            ("execution", self.execution),
            ("syntax", self.syntax),
            ("schema_linking", self.schema_linking),
            ("ngram", self.ngram),
            ("format", self.format),
        ]
    }
}

impl NamedOptions for ReasoningSqlOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = |weight: f64| !weight.is_finite() || weight < 0.0;
        let mut problems: Vec<String> = self
            .named()
            .into_iter()
            .filter(|(_, weight)| is_wrong(*weight))
            .map(|(name, weight)| format!("{name} is {weight}, must be at least 0"))
            .collect();
        if problems.is_empty() && self.named().iter().all(|(_, weight)| *weight == 0.0) {
            problems.push("all weights are 0, at least one must be more".to_owned());
        }
        problems
    }
}

/// The query of an episode of the environment `sql`, judged in parts that come to 1 where it is right.
///
/// `r = sum_k w_k s_k / sum_k w_k` over `execution`, `syntax`, `schema_linking`, `ngram` and `format`, as [`PartialScores`] has them; all `s_k` are
/// 1 where the query is right, which is success. The parts have these names in the verdict.
///
/// Source: Reasoning-SQL (Pourreza et al., arXiv 2503.23157); the default weights are those of a public reconstruction of it. Its
/// model as a judge is the grader `judge`, which can be named beside this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReasoningSql {
    weights: PartialWeights,
}

impl ReasoningSql {
    /// The grader with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] tells all that is wrong with them.
    pub fn new(options: ReasoningSqlOptions) -> Result<Self, GraderError> {
        RowError::refuse(super::registry::AXIS.what, NAME, options.problems())?;
        let ReasoningSqlOptions { execution, syntax, schema_linking, ngram, format } = options;
        Ok(Self { weights: PartialWeights { execution, syntax, schema_linking, ngram, format } })
    }
}

#[async_trait]
impl Grader for ReasoningSql {
    fn name(&self) -> &'static str {
        NAME
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        if episode.task.environment != SqlTask::ENVIRONMENT {
            let (task, environment) = (&episode.task.id, &episode.task.environment);
            let problem = format!(
                "`{NAME}` judges queries of environment `sql`, and task `{task}` is of `{environment}`"
            );
            return Err(GraderError::Problems { problems: vec![problem] });
        }
        let own = place.own_verdict().await?.unwrap_or_default();
        let scores = own.artifacts.get(SqlTask::ENVIRONMENT).and_then(|found| found.get("scores"));
        let scores = match scores {
            Some(scores) => PartialScores::deserialize(scores)
                .map_err(|error| GraderError::Place(Box::new(error)))?,
            None => PartialScores::default(),
        };
        let part = |(name, value): (&str, f64)| RewardPart { name: name.to_owned(), value };
        Ok(Verdict { parts: scores.weighted(&self.weights).into_iter().map(part).collect(), ..own })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spar_core::Seed;

    use super::super::test_episodes::{episode, task};
    use super::super::{GradingModels, ScriptFinding};
    use super::*;
    use crate::TerminalVerifier;

    /// An environment that has judged so.
    struct Judged(Verdict);

    #[async_trait]
    impl GradingPlace for Judged {
        async fn own_verdict(&mut self) -> Result<Option<Verdict>, GraderError> {
            Ok(Some(self.0.clone()))
        }

        async fn run_script(&mut self, _: &TerminalVerifier) -> Result<ScriptFinding, GraderError> {
            Err(GraderError::Place("there is no sandbox".into()))
        }
    }

    async fn graded(environment: &str, own: Verdict) -> Result<Verdict, GraderError> {
        let task = crate::Task { environment: environment.to_owned(), ..task() };
        let graded = GradedEpisode {
            task: &task,
            trajectory: &episode(&["SELECT 1"]),
            reference: None,
            earlier: &[],
            models: &GradingModels::default(),
            seed: Seed::from_u64(0),
        };
        ReasoningSql::default().grade(&graded, &mut Judged(own)).await
    }

    #[tokio::test]
    async fn parts_are_weighed_and_come_to_one_where_the_query_is_right() {
        let own = |scores: serde_json::Value, success| Verdict {
            success,
            artifacts: BTreeMap::from([(
                "sql".to_owned(),
                serde_json::json!({ "scores": scores }),
            )]),
            ..Verdict::default()
        };
        let scores = |execution: f64, ngram: f64| serde_json::json!({ "execution": execution, "syntax": 1.0, "schema_linking": 0.5, "ngram": ngram, "format": 1.0 });
        let right = graded("sql", own(scores(1.0, 0.25), true)).await.unwrap();
        assert!(right.success && (right.reward() - 1.0).abs() < 1e-12);
        let wrong = graded("sql", own(scores(0.0, 0.25), false)).await.unwrap();
        assert!(!wrong.success && (wrong.reward() - (1.0 + 0.5 + 0.25 + 0.5) / 6.5).abs() < 1e-12);
        let names: Vec<&str> = wrong.parts.iter().map(|part| &*part.name).collect();
        assert_eq!(names, ["syntax", "schema_linking", "ngram", "format"]);
        assert_eq!(graded("sql", Verdict::default()).await.unwrap().reward(), 0.0);
        let told = graded("question", Verdict::default()).await.unwrap_err().to_string();
        assert!(told.contains("of environment `sql`"), "{told}");
    }

    #[test]
    fn weights_that_are_none_are_told() {
        let told = |options: &str| {
            let options: ReasoningSqlOptions = toml::from_str(options).unwrap();
            ReasoningSql::new(options).unwrap_err().to_string()
        };
        assert!(told("ngram = -1.0").contains("ngram is -1"));
        let none = "execution = 0.0\nsyntax = 0.0\nschema_linking = 0.0\nngram = 0.0\nformat = 0.0";
        assert!(told(none).contains("all weights are 0"));
    }
}
