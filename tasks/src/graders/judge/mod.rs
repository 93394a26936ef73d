//! A model as the judge.
//!
//! ```text
//!  episode ──the parts named in `sees`, between marks──▶ model ──▶ one line with the mark ──▶ Verdict
//!                                  ▲  asked again, told what could not be read │
//!                                  └───────────────────────────────────────────┘
//! ```

mod answer;
mod options;
mod prompt;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{CompletionRequest, Message, Policy, RewardPart, Role, Sampling, Seed, Verdict};
use tokio::time::timeout;

use self::answer::{Found, read};
pub use self::options::{Criterion, JudgeMode, JudgeOptions, Shown};
pub use self::prompt::PROMPT_VERSION;
use self::prompt::{Piece, SYSTEM, mark, pieces, question, shown};
use super::registry::AXIS;
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer};

/// The end of an answer that is told where no answer could be read.
const EXCERPT_CHARS: usize = 200;

/// A model judges the episode.
///
/// It sees the parts that [`sees`](JudgeOptions::sees) names and nothing else. They stand between marks that derive from a hash
/// of the episode and its seed, so that what is judged cannot end a part; and its verdict is the one line that carries the
/// mark, so that what it repeats of the episode is no verdict. An answer that cannot be read is asked for again, with what
/// was wrong with it. A judge that is out of reach or late is an error. Where none of its answers can be read, or it refuses the
/// episode, or its context cannot hold it, the episode is not solved and has value 0, with the reason in the details.
///
/// The value of an episode is from 0 to 1, in the reward part `judge` (mode `criteria`: `judge.NAME` for each):
///
/// - `pointwise`: `(score - low) / (high - low)`. Source: single-answer grading (LLM-as-a-judge, arXiv 2306.05685, section 3.1).
/// - `pairwise`: the mean over both orders of 1 where the episode is found better than the reference, 1/2 where neither is, else 0; so a
///   judge that prefers a place gives 1/2. Source: the same, section 3.4, where inconsistent answers are ties.
/// - `criteria`: `sum_k w_k (score_k - low) / (high - low) / sum_k w_k`.
/// - `steps`: the share of the turns before the first error; 1 where there is none. The artifact `first_error` is its turn from 0.
///   Source: ProcessBench (arXiv 2412.06559), which asks for the index of the first error.
#[derive(Debug, Clone, PartialEq)]
pub struct Judge {
    options: JudgeOptions,
}

/// Which of two episodes a judge prefers.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// From 0 to 1: 1 where the first one is better in both orders, 1/2 where neither is or the orders contradict each other.
    pub first: f64,
    /// What the judge answered, as it stands.
    pub answers: Vec<String>,
}

/// What came of asking.
struct Asked {
    found: Found,
    /// All answers, the unreadable ones too.
    answers: Vec<String>,
    /// Who answered.
    author: String,
}

impl Judge {
    /// A judge with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when they are out of range, or one has no effect.
    pub fn new(options: JudgeOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "judge", options.problems())?;
        Ok(Self { options })
    }

    /// Compares two episodes of one task, in both orders, by what the options have the judge see of each.
    ///
    /// # Errors
    ///
    /// [`GraderError`] when the judge could not be asked or read, or its mode is another one.
    pub async fn prefer(
        &self,
        first: &GradedEpisode<'_>,
        second: &GradedEpisode<'_>,
    ) -> Result<Comparison, GraderError> {
        if self.options.mode != JudgeMode::Pairwise {
            let problems = vec!["`judge`: two episodes are compared in mode `pairwise`".to_owned()];
            return Err(GraderError::Problems { problems });
        }
        let candidates = [self.candidate(first), self.candidate(second)];
        let (value, asked) = self.both_orders(first, candidates).await?;
        let answers = asked.into_iter().flat_map(|asked| asked.answers).collect();
        Ok(Comparison { first: value, answers })
    }

    /// What is shown of an episode that is one of two, without the task, which they share.
    fn candidate(&self, episode: &GradedEpisode<'_>) -> Vec<Piece> {
        let sees = self.options.sees.iter().copied().filter(|shown| !is_of_task(*shown)).collect();
        pieces(episode, &JudgeOptions { sees, ..self.options.clone() })
    }

    /// Asks which of two candidates is better, in both orders; the value is that of the first.
    async fn both_orders(
        &self,
        episode: &GradedEpisode<'_>,
        candidates: [Vec<Piece>; 2],
    ) -> Result<(f64, [Asked; 2]), GraderError> {
        let sees = self.options.sees.iter().copied().filter(|shown| is_of_task(*shown)).collect();
        let common = JudgeOptions { sees, ..self.options.clone() };
        let [one, other] = candidates;
        let ask = async |order: [&[Piece]; 2], number: u64| {
            let mut all = pieces(episode, &common);
            for (name, candidate) in ["first", "second"].into_iter().zip(order) {
                all.extend(candidate.iter().map(|piece| piece.named(name)));
            }
            self.ask(episode, &all, episode.seed.derive("order", number)).await
        };
        let asked = [ask([&one, &other], 0).await?, ask([&other, &one], 1).await?];
        let value = |asked: &Asked, own: u8| match asked.found {
            Found::Better(better) if better == own => 1.0,
            Found::Better(0) => 0.5,
            _ => 0.0,
        };
        let mean = f64::midpoint(value(&asked[0], 1), value(&asked[1], 2));
        Ok((mean, asked))
    }

    /// Asks until an answer can be read.
    async fn ask(
        &self,
        episode: &GradedEpisode<'_>,
        shown_pieces: &[Piece],
        seed: Seed,
    ) -> Result<Asked, GraderError> {
        let options = &self.options;
        let model = episode.models.expect(options.model, "judge")?;
        let num_turns = episode.trajectory.turns.len();
        let mark = mark(seed, shown_pieces);
        let material = shown(shown_pieces, &mark, options);
        let mut messages = vec![
            Arc::new(Message::new(Role::System, SYSTEM)),
            Arc::new(Message::new(Role::User, material + &question(options, &mark, num_turns))),
        ];
        let (mut answers, mut wrong) = (Vec::new(), String::new());
        for number in 0..options.asks {
            let (text, author) =
                self.complete(model, &messages, seed.derive("ask", number)).await?;
            answers.push(text.clone());
            match read(&text, &mark, options, num_turns) {
                Ok(found) => return Ok(Asked { found, answers, author }),
                Err(problem) => {
                    let again = format!(
                        "That could not be read: {problem}. Answer again, and end with exactly one line that begins with \
                         `verdict {mark}:`."
                    );
                    messages.push(Arc::new(Message::new(Role::Assistant, text)));
                    messages.push(Arc::new(Message::new(Role::User, again)));
                    wrong = problem;
                }
            }
        }
        let last: Vec<char> = answers.last().map(|text| text.chars().collect()).unwrap_or_default();
        Err(GraderError::Unreadable {
            model: model.name().to_owned(),
            asks: options.asks,
            detail: wrong,
            answer: last[last.len().saturating_sub(EXCERPT_CHARS)..].iter().collect(),
        })
    }

    /// One answer, and who gave it.
    async fn complete(
        &self,
        model: &Arc<dyn Policy>,
        messages: &[Arc<Message>],
        seed: Seed,
    ) -> Result<(String, String), GraderError> {
        let options = &self.options;
        let sampling = Sampling {
            temperature: options.temperature,
            max_tokens: options.max_tokens,
            ..Sampling::default()
        };
        // Exact also in readers that know numbers only as doubles.
        let episode = seed.as_u64() >> 11;
        let request = CompletionRequest {
            messages: messages.to_vec().into(),
            prompt_ids: super::encoded(model.as_ref(), messages)?.into(),
            sampling,
            ..CompletionRequest::new(episode, seed)
        };
        let limit = Duration::from_secs(options.timeout_secs);
        let answer = timeout(limit, model.complete(request)).await;
        model.forget(episode);
        let name = || model.name().to_owned();
        let late = |_| GraderError::Late { model: name(), seconds: options.timeout_secs };
        let completion =
            answer.map_err(late)?.map_err(|source| GraderError::Model { model: name(), source })?;
        Ok((completion.text, completion.author))
    }

    fn verdict(&self, parts: Vec<RewardPart>, details: String, asked: Vec<Asked>) -> Verdict {
        let value: f64 = parts.iter().fold(0.0, |sum, part| sum + part.value);
        let author = asked.first().map(|asked| asked.author.clone()).unwrap_or_default();
        let answers: Vec<String> = asked.into_iter().flat_map(|asked| asked.answers).collect();
        let artifacts = [
            ("judge", serde_json::json!(author)),
            ("prompt_version", PROMPT_VERSION.into()),
            ("mode", serde_json::json!(self.options.mode)),
            ("answers", answers.into()),
            ("value", value.into()),
        ];
        Verdict {
            parts: parts.into_iter().filter(|part| part.value > 0.0).collect(),
            // What is a whole share in figures may be less in floats.
            success: value >= self.options.success_at - 1e-9,
            details,
            artifacts: artifacts.into_iter().map(|(name, it)| (name.to_owned(), it)).collect(),
            graders: vec![format!("judge (prompt {PROMPT_VERSION}) by {author}")],
            masked: false,
            duration: Duration::ZERO,
        }
    }
}

/// Whether a part is the task's, the same for all that was done in it.
fn is_of_task(shown: Shown) -> bool {
    matches!(shown, Shown::Task | Shown::Reference | Shown::Metadata)
}

fn part(value: f64) -> Vec<RewardPart> {
    vec![RewardPart { name: "judge".to_owned(), value }]
}

#[async_trait]
impl Grader for Judge {
    fn name(&self) -> &'static str {
        "judge"
    }

    fn version(&self) -> u32 {
        PROMPT_VERSION
    }

    fn has_named_parts(&self) -> bool {
        self.options.mode == JudgeMode::Criteria
    }

    fn needs(&self) -> GraderNeeds {
        let is_shown = self.options.sees.contains(&Shown::Reference);
        GraderNeeds {
            model: Some(self.options.model),
            reference: is_shown || self.options.mode == JudgeMode::Pairwise,
            ..GraderNeeds::default()
        }
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let judged_by = |model: &str| format!("judge (prompt {PROMPT_VERSION}) by {model}");
        super::or_worth_nothing(self.judged(episode).await, judged_by)
    }
}

impl Judge {
    async fn judged(&self, episode: &GradedEpisode<'_>) -> Result<Verdict, GraderError> {
        let options = &self.options;
        let [low, high] = options.range;
        let share = |score: f64| (score - low) / (high - low);
        if options.mode == JudgeMode::Pairwise {
            let right = super::expect_reference(episode, "judge")?;
            let reference = vec![Piece::final_answer(ReferenceAnswer::texts(right).join("\nor\n"))];
            let (value, asked) =
                self.both_orders(episode, [self.candidate(episode), reference]).await?;
            let details = format!("{value} against the reference");
            return Ok(self.verdict(part(value), details, asked.into()));
        }
        let asked = self.ask(episode, &pieces(episode, options), episode.seed).await?;
        match asked.found.clone() {
            Found::Score(score) => {
                let details = format!("{score} of {low} to {high}");
                Ok(self.verdict(part(share(score)), details, vec![asked]))
            }
            Found::Scores(scores) => {
                let total: f64 = options.criteria.iter().map(|criterion| criterion.weight).sum();
                let of = |criterion: &Criterion| RewardPart {
                    name: format!("judge.{}", criterion.name),
                    value: criterion.weight / total * share(scores[&criterion.name]),
                };
                let parts = options.criteria.iter().map(of).collect();
                let told: Vec<_> =
                    scores.iter().map(|(name, score)| format!("{name} {score}")).collect();
                let mut verdict = self.verdict(parts, told.join(", "), vec![asked]);
                verdict.artifacts.insert("scores".to_owned(), serde_json::json!(scores));
                Ok(verdict)
            }
            Found::FirstError(turn) => {
                let turns = episode.trajectory.turns.len().max(1) as f64;
                let value = turn.map_or(1.0, |turn| (turn - 1) as f64 / turns);
                let details = match turn {
                    Some(turn) => format!("the first error is in turn {turn}"),
                    None => "no error".to_owned(),
                };
                let mut verdict = self.verdict(part(value), details, vec![asked]);
                verdict.success = turn.is_none();
                let from_0 = turn.map(|turn| turn - 1);
                verdict.artifacts.insert("first_error".to_owned(), serde_json::json!(from_0));
                Ok(verdict)
            }
            Found::Better(_) => unreachable!("pairs were judged above"),
        }
    }
}

#[cfg(test)]
mod tests;
