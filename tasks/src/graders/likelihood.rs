//! How likely a model finds what is right.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{Message, Policy, RewardPart, Role, ScoringRequest, Turn, Verdict};
use tokio::time::timeout;

use super::grader::{shown_text, written};
use super::registry::AXIS;
use super::{GradedEpisode, Grader, GraderNeeds, GradingModel, GradingPlace};
use crate::GraderError;

/// Options of the grader `likelihood`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LikelihoodOptions {
    /// Whose likelihood it is: `policy`, `reference` or `judge`. Default `policy`.
    pub model: GradingModel,
    /// What stands before the answer proper in what the policy wrote last, such as `Answer:` or `</think>`. All up to its last
    /// occurrence is the reasoning behind which the reference answer is scored; without it the value is 0. Default
    /// `Answer:`.
    pub after: String,
    /// What the value is of the tokens' log-probabilities. Default `geometric_mean`.
    pub measure: LikelihoodMeasure,
    /// Whether the value behind `after` alone, without the reasoning, is subtracted, and what is below 0 is 0. Default false.
    pub debias: bool,
    /// The task counts as solved from this value on, which is from 0 to 1. Default 0.5.
    pub success_at: f64,
    /// Seconds that the scoring of an answer may take; at least 1. Default 300.
    pub timeout_secs: u64,
}

/// What becomes of the log-probabilities of an answer's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LikelihoodMeasure {
    /// `exp(mean_t log p_t)`: length-normalised.
    #[default]
    GeometricMean,
    /// `mean_t p_t`.
    ArithmeticMean,
    /// `prod_t p_t`: the probability of the whole answer.
    Product,
}

impl LikelihoodMeasure {
    /// From 0 to 1; 0 of no tokens.
    fn of(self, logprobs: &[f32]) -> f64 {
        let count = logprobs.len().max(1) as f64;
        let log_sum: f64 = logprobs.iter().map(|logprob| f64::from(*logprob)).sum();
        let value = match self {
            _ if logprobs.is_empty() => 0.0,
            Self::GeometricMean => (log_sum / count).exp(),
            Self::ArithmeticMean => {
                logprobs.iter().map(|logprob| f64::from(*logprob).exp()).sum::<f64>() / count
            }
            Self::Product => log_sum.exp(),
        };
        value.clamp(0.0, 1.0)
    }
}

impl Default for LikelihoodOptions {
    fn default() -> Self {
        Self {
            model: GradingModel::Policy,
            after: "Answer:".to_owned(),
            measure: LikelihoodMeasure::default(),
            debias: false,
            success_at: 0.5,
            timeout_secs: 300,
        }
    }
}

impl NamedOptions for LikelihoodOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.after.trim().is_empty() {
            problems.push("`after` is empty".to_owned());
        }
        if !(0.0..=1.0).contains(&self.success_at) {
            problems.push(format!("`success_at` is {}, must be from 0 to 1", self.success_at));
        }
        if self.timeout_secs == 0 {
            problems.push("`timeout_secs` is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// The likelihood of the reference answer `y*` behind the conversation `x` and the policy's own reasoning `z`, which takes the
/// place of its answer:
///
/// `value = m(log p(y*_1 | x, z), ..., log p(y*_n | x, z, y*_<n))`, with the measure `m`; with `debias`,
/// `max(0, value - m(log p(y*_t | x, y*_<t)))`.
///
/// The reward part is `likelihood`. Of several answers that are right, the likeliest counts. Where the policy's tokens were
/// kept and it is scored by itself, the conversation is the prompt as it was read; else it is laid out from the task's
/// instruction, what was observed and what was answered.
///
/// A model that is out of reach or late is an error; a conversation that its context cannot hold has value 0.
///
/// Sources: the product is the reward of VeriFree (arXiv 2505.21493, equation 3); the arithmetic mean, debiased and clipped, that
/// of RLPR (arXiv 2506.18254, section 2.3), without its filter by deviation; the geometric mean is the inverse of the
/// perplexity that NOVER ranks by (arXiv 2505.16022).
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihood {
    options: LikelihoodOptions,
}

impl Likelihood {
    /// The grader with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when they are out of range.
    pub fn new(options: LikelihoodOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "likelihood", options.problems())?;
        Ok(Self { options })
    }

    async fn value(
        &self,
        model: &dyn Policy,
        prompt_ids: &Arc<[u32]>,
        reasoning: &str,
        answers: &[String],
    ) -> Result<f64, GraderError> {
        let mut prompt = prompt_ids.to_vec();
        prompt.extend(model.encode_text(reasoning));
        let prompt: Arc<[u32]> = prompt.into();
        let mut best = 0.0_f64;
        for answer in answers {
            // As it would stand there: behind a space, as words do.
            let target_ids = model.encode_text(&format!(" {}", answer.trim()));
            let request = ScoringRequest { prompt_ids: prompt.clone(), target_ids };
            let (name, seconds) = (|| model.name().to_owned(), self.options.timeout_secs);
            let logprobs = timeout(Duration::from_secs(seconds), model.score(request))
                .await
                .map_err(|_| GraderError::Late { model: name(), seconds })?
                .map_err(|source| GraderError::Model { model: name(), source })?;
            best = best.max(self.options.measure.of(&logprobs));
        }
        Ok(best)
    }
}

#[async_trait]
impl Grader for Likelihood {
    fn name(&self) -> &'static str {
        "likelihood"
    }

    fn needs(&self) -> GraderNeeds {
        let model = Some(self.options.model);
        GraderNeeds { model, reference: true, can_score: true, ..GraderNeeds::default() }
    }

    fn version(&self) -> u32 {
        2
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let judged_by = |model: &str| format!("likelihood under {model}");
        super::or_worth_nothing(self.judged(episode).await, judged_by)
    }
}

impl Likelihood {
    async fn judged(&self, episode: &GradedEpisode<'_>) -> Result<Verdict, GraderError> {
        let options = &self.options;
        let model = episode.models.expect(options.model, "likelihood")?;
        let answers = super::expect_reference(episode, "likelihood")?.texts();
        let last = episode.trajectory.last_acting();
        let reasoning = last.and_then(|turn| {
            let at = turn.text.rfind(&options.after)?;
            Some(&turn.text[..at + options.after.len()])
        });
        let author = format!("likelihood under {}", model.name());
        let Some(reasoning) = reasoning else {
            let details = format!("there is no `{}` in what was answered last", options.after);
            return Ok(Verdict { details, graders: vec![author], ..Verdict::default() });
        };
        let prompt_ids: Arc<[u32]> =
            match recorded_prompt(up_to_last_acting(&episode.trajectory.turns)) {
                Some(ids) if options.model == GradingModel::Policy => ids.into(),
                _ => super::encoded(model.as_ref(), &conversation(episode))?.into(),
            };
        let own = self.value(model.as_ref(), &prompt_ids, reasoning, &answers).await?;
        let base = match options.debias {
            true => Some(self.value(model.as_ref(), &prompt_ids, &options.after, &answers).await?),
            false => None,
        };
        let value = base.map_or(own, |base| (own - base).max(0.0));
        let part = RewardPart { name: "likelihood".to_owned(), value };
        let mut verdict = Verdict {
            parts: if value > 0.0 { vec![part] } else { Vec::new() },
            success: value >= options.success_at,
            details: format!("likelihood of what is right: {value:.3}"),
            graders: vec![author],
            ..Verdict::default()
        };
        verdict.artifacts.insert("likelihood".to_owned(), own.into());
        verdict.artifacts.extend(base.map(|base| ("without_reasoning".to_owned(), base.into())));
        Ok(verdict)
    }
}

/// The turns without summaries at their end.
fn up_to_last_acting(turns: &[Turn]) -> &[Turn] {
    let end = turns.iter().rposition(|turn| !turn.is_summary()).map_or(0, |last| last + 1);
    &turns[..end]
}

/// The tokens that the policy read before its last turn; absent where they were not kept.
fn recorded_prompt(turns: &[Turn]) -> Option<Vec<u32>> {
    let (mut ids, mut sampled): (Vec<u32>, &[u32]) = (Vec::new(), &[]);
    for turn in turns {
        ids.extend_from_slice(sampled);
        ids.truncate(turn.prompt.kept);
        ids.extend_from_slice(&turn.prompt.appended);
        sampled = &turn.sampled.ids;
    }
    Some(ids).filter(|ids| !ids.is_empty() && !sampled.is_empty())
}

/// What was said before the last turn.
fn conversation(episode: &GradedEpisode<'_>) -> Vec<Arc<Message>> {
    let trajectory = episode.trajectory;
    let mut messages = Vec::new();
    let mut say = |role: Role, text: &str| messages.push(Arc::new(Message::new(role, text)));
    if !episode.task.instruction.trim().is_empty() {
        say(Role::System, &episode.task.instruction);
    }
    say(Role::User, &shown_text(&trajectory.first_observation));
    let before = trajectory.acting().count().saturating_sub(1);
    for turn in trajectory.acting().take(before) {
        say(Role::Assistant, &written(turn));
        say(Role::User, &shown_text(&turn.step.observation));
    }
    messages
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use spar_core::{Completion, CompletionRequest, PolicyError, Trajectory};

    use super::super::GradingModels;
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::*;
    use crate::ReferenceAnswer;

    /// Tokens are bytes; a token of the target is the likelier the longer the prompt is.
    #[derive(Default)]
    struct Bytes {
        asked: Mutex<Vec<(String, String)>>,
    }

    #[async_trait]
    impl Policy for Bytes {
        fn name(&self) -> &'static str {
            "bytes"
        }

        fn encode(&self, _: Option<&Message>, message: &Message) -> Vec<u32> {
            self.encode_text(&format!("<{}>", message.text()))
        }

        fn encode_text(&self, text: &str) -> Vec<u32> {
            text.bytes().map(u32::from).collect()
        }

        async fn complete(&self, _: CompletionRequest) -> Result<Completion, PolicyError> {
            Err(PolicyError::Closed { name: "bytes".to_owned() })
        }

        fn can_score(&self) -> bool {
            true
        }

        async fn score(&self, request: ScoringRequest) -> Result<Vec<f32>, PolicyError> {
            if request.prompt_ids.len() > 1000 {
                return Err(PolicyError::ContextFull { tokens: None, limit: Some(1000) });
            }
            let text = |ids: &[u32]| ids.iter().map(|id| *id as u8 as char).collect::<String>();
            let asked = (text(&request.prompt_ids), text(&request.target_ids));
            if asked.0.contains("hang") {
                std::future::pending::<()>().await;
            }
            self.asked.lock().unwrap().push(asked);
            let likely = 1.0 - 1.0 / request.prompt_ids.len() as f32;
            let logprob = |number| if number % 2 == 0 { likely.ln() } else { 0.0 };
            Ok((0..request.target_ids.len()).map(logprob).collect())
        }
    }

    async fn grade(options: &str, trajectory: &Trajectory) -> (Verdict, Vec<(String, String)>) {
        let (verdict, asked) = graded(options, trajectory).await;
        (verdict.unwrap(), asked)
    }

    async fn graded(
        options: &str,
        trajectory: &Trajectory,
    ) -> (Result<Verdict, GraderError>, Vec<(String, String)>) {
        let model = Arc::new(Bytes::default());
        let models = GradingModels { policy: Some(model.clone()), ..GradingModels::default() };
        let right: ReferenceAnswer = serde_json::from_str(r#"["no", "never"]"#).unwrap();
        let grader = Likelihood::new(toml::from_str(options).unwrap()).unwrap();
        let verdict = grader
            .grade(
                &GradedEpisode {
                    task: &task(),
                    trajectory,
                    reference: Some(&right),
                    earlier: &[],
                    models: &models,
                    seed: trajectory.seed,
                },
                &mut NoPlace,
            )
            .await;
        let asked = model.asked.lock().unwrap().clone();
        (verdict, asked)
    }

    #[tokio::test]
    async fn what_is_right_takes_the_place_of_what_was_answered() {
        let said = episode(&["first", "Hm. Answer: 1? Answer: yes"]);
        let (verdict, asked) = grade("", &said).await;
        let prompt = "<Answer in a word.><Is it so?><first><seen 0>Hm. Answer: 1? Answer:";
        assert_eq!(asked[0], (prompt.to_owned(), " no".to_owned()));
        assert_eq!(asked[1].1, " never");
        // Of " no" two of three tokens are not certain, of " never" three of six.
        let likely = 1.0 - 1.0 / prompt.len() as f64;
        assert!((verdict.reward() - likely.powf(0.5)).abs() < 1e-6, "{}", verdict.reward());
        assert!(verdict.success && verdict.graders == ["likelihood under bytes"]);
        let (product, _) = grade("measure = 'product'", &said).await;
        assert!((product.reward() - likely.powi(2)).abs() < 1e-6);
        let (mean, _) = grade("measure = 'arithmetic_mean'", &said).await;
        assert!((mean.reward() - f64::midpoint(likely, 1.0)).abs() < 1e-6);
    }

    #[tokio::test]
    async fn what_reasoning_adds_can_be_told_apart() {
        let said = episode(&["Because of this and that. Answer: yes"]);
        let (verdict, asked) = grade("debias = true", &said).await;
        assert_eq!(asked[2].0, "<Answer in a word.><Is it so?>Answer:");
        let number = |name: &str| verdict.artifacts[name].as_f64().unwrap();
        let gained = number("likelihood") - number("without_reasoning");
        assert!(gained > 0.0 && (verdict.reward() - gained).abs() < 1e-12);
        let (without, asked) = grade("", &episode(&["yes"])).await;
        assert!(without.reward() == 0.0 && !without.success && asked.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_fills_the_context_is_worth_nothing_and_what_takes_too_long_is_a_failure() {
        let said = format!("{} Answer: yes", "on ".repeat(500));
        let (full, _) = grade("", &episode(&[&said])).await;
        assert!(full.reward() == 0.0 && !full.success, "{full:?}");
        assert!(full.details.contains("context of 1000 tokens"), "{}", full.details);
        let (late, _) = graded("timeout_secs = 9", &episode(&["hang Answer: yes"])).await;
        assert!(matches!(late, Err(GraderError::Late { seconds: 9, .. })), "{late:?}");
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let options = LikelihoodOptions {
            after: " ".to_owned(),
            success_at: -1.0,
            timeout_secs: 0,
            ..Default::default()
        };
        let told = Likelihood::new(options).unwrap_err().to_string();
        assert!(
            told.contains("`after` is empty")
                && told.contains("`timeout_secs` is 0")
                && told.contains("`success_at` is -1"),
            "{told}"
        );
    }
}
