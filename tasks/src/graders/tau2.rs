//! tau2-bench's reward where a model has to judge a part of it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use spar_core::Verdict;
use spar_core::registry::{NamedOptions, RowError};

use super::judge::{Criterion, JudgeMode, JudgeOptions, Shown};
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace, Judge};
use crate::GraderError;

/// Options of the grader `tau2`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tau2Options {
    /// Sentences that have to be true of the conversation; at least one.
    pub nl_assertions: Vec<String>,
}

impl NamedOptions for Tau2Options {
    fn problems(&self) -> Vec<String> {
        // What has to be given cannot be among the defaults: making the grader asks for it.
        Vec::new()
    }
}

/// What the environment finds by rules, times whether a model finds all sentences true.
///
/// `reward = reward_rules * prod_k 1[sentence k is true of the conversation]`. Source: tau2-bench's reward basis `NL_ASSERTION`
/// (arXiv 2506.07982), asked as the grader `judge` asks: between marks that what is judged cannot know, one score for each
/// sentence. The model is not asked where the rules find nothing, nor about seats other than the first.
#[derive(Debug, Clone)]
pub struct Tau2Reward {
    judge: Judge,
}

impl Tau2Reward {
    /// The reward with these sentences.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when there are none.
    pub fn new(options: Tau2Options) -> Result<Self, GraderError> {
        let given = options.nl_assertions.into_iter();
        let sentences: Vec<String> = given.filter(|text| !text.trim().is_empty()).collect();
        if sentences.is_empty() {
            let problem = "`nl_assertions` names no sentence".to_owned();
            RowError::refuse(super::registry::AXIS.what, "tau2", vec![problem])?;
        }
        let criteria = sentences.into_iter().enumerate().map(|(at, text)| Criterion {
            name: format!("sentence{at}"),
            text,
            weight: 1.0,
        });
        let judge = Judge::new(JudgeOptions {
            mode: JudgeMode::Criteria,
            sees: vec![Shown::Transcript],
            range: [0.0, 1.0],
            criteria: criteria.collect(),
            // All of them: a mean of whole scores below that has one that is not.
            success_at: 1.0 - 1e-9,
            instructions: "A customer talked to an agent. Each criterion is a sentence about what the agent did: score 1 where it \
                           is true of the conversation, and 0 where it is not."
                .to_owned(),
            ..JudgeOptions::default()
        })?;
        Ok(Self { judge })
    }
}

#[async_trait]
impl Grader for Tau2Reward {
    fn name(&self) -> &'static str {
        "tau2"
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    fn needs(&self) -> GraderNeeds {
        self.judge.needs()
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let mut own = place.own_verdict().await?.unwrap_or_default();
        if own.reward() == 0.0 || !episode.trajectory.seat.is_first() {
            return Ok(own);
        }
        let found = self.judge.grade(episode, place).await?;
        let met = if found.success { 1.0 } else { 0.0 };
        own.artifacts.insert("NL_ASSERTION".to_owned(), json!(met));
        own.artifacts.extend(found.artifacts);
        own.details = format!("{}, NL_ASSERTION {met}: {}", own.details, found.details);
        if !found.success {
            own.success = false;
            own.parts.clear();
        }
        Ok(own)
    }
}
