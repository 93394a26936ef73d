//! The record of an episode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    GrammarHash, GrammarSource, Media, Message, ParsedAction, Part, SampledTokens, Seat, Seed,
    Spend, Step, StopCause, ToolSpec, TurnKind, Verdict,
};

/// Version of the trajectory format that this code writes; older ones stay readable.
pub const TRAJECTORY_VERSION: u32 = 5;

/// The first version that says `success` and `valid` where `won` and `executable` stood before.
const FIRST_WITH_SUCCESS: u64 = 3;

/// A budget of the task, or of the agent in it, that ended an episode. What a policy server, an
/// environment or a sandbox missed is none: such an episode [failed](EndReason::Failed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Turns.
    Turns,
    /// Tokens that the policy may sample.
    Tokens,
    /// The policy's context.
    Context,
    /// The wall-clock time that the task's own rules give.
    TaskTime,
    /// The time that the agent's own commands may take in all.
    CommandTime,
    /// What requests to models may cost in an episode.
    Cost,
    /// Wall-clock time, whoever had used it up. Only in records of version 1: it did not tell a slow
    /// agent from a slow server.
    Time,
}

impl Limit {
    /// All limits that are written today, in the order of reports.
    pub const ALL: [Self; 6] =
        [Self::Turns, Self::Tokens, Self::Context, Self::TaskTime, Self::CommandTime, Self::Cost];

    /// Its name in records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Context => "context",
            Self::TaskTime => "task_time",
            Self::CommandTime => "command_time",
            Self::Cost => "cost",
            Self::Time => "time",
        }
    }
}

/// The seam at which an episode broke for reasons that are not the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// The policy or its endpoint.
    Policy,
    /// The environment.
    Environment,
    /// The sandbox below the environment.
    Sandbox,
    /// A grader, such as a judge out of reach.
    Grader,
    /// The run was told to stop.
    Cancelled,
}

/// How an episode ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EndReason {
    /// The task ended: won or lost.
    Terminated,
    /// A budget was used up.
    Truncated {
        /// Which limit.
        limit: Limit,
    },
    /// It broke; such an episode carries no reward and is refilled.
    Failed {
        /// Where it broke.
        boundary: Boundary,
        /// What was reported.
        detail: String,
    },
}

/// The prompt of a turn, as the difference to what stood before it.
///
/// The prompt is the first `kept` tokens of the previous turn's prompt and sampled tokens, then
/// `appended`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptTokens {
    /// Tokens kept from the previous turn; 0 in the first turn.
    pub kept: usize,
    /// Tokens that come behind them.
    pub appended: Vec<u32>,
}

/// How many tokens a turn has, as far as the policy shows or tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenCounts {
    /// Tokens of the whole prompt. Absent where nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<usize>,
    /// Tokens of the answer. Absent where nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<usize>,
    /// Whether an endpoint answered: what its requests took is in the [`spend`](Trajectory::spend) of the episode.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub endpoint: bool,
}

impl TokenCounts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a turn came into its trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The policy sampled it here.
    #[default]
    Sampled,
    /// It was sampled in the trajectory that this one was forked from, and played again.
    Inherited,
    /// A demonstrator wrote it.
    Demonstrated,
    /// The policy sampled it behind a hint.
    Hinted,
    /// The policy sampled its end anew, behind the tokens that it was forked with.
    Regenerated,
}

/// One assistant message with the observation that answers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What it is for; an action in records up to version 4.
    #[serde(default, skip_serializing_if = "TurnKind::is_action")]
    pub kind: TurnKind,
    /// What the policy saw.
    pub prompt: PromptTokens,
    /// What was said to the policy before it that no environment showed, such as hints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<Message>,
    /// How it came here; sampled, in older records too.
    #[serde(default)]
    pub source: Source,
    /// Whose completion it is.
    pub author: String,
    /// What it wrote.
    pub text: String,
    /// What it sampled.
    pub sampled: SampledTokens,
    /// How many tokens prompt and answer have; unknown in records up to version 3, save by `prompt` and `sampled`.
    #[serde(default, skip_serializing_if = "TokenCounts::is_empty")]
    pub counts: TokenCounts,
    /// Who acted; 0 where there is one seat.
    #[serde(default, skip_serializing_if = "Seat::is_first")]
    pub seat: Seat,
    /// Why the completion ended; absent in records of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopCause>,
    /// How that was read.
    pub parsed: ParsedAction,
    /// Canonical name of the situation in which the action was chosen; that of a [summary](Turn::summary_key) is its own.
    pub state_key: String,
    /// The step that answered, with the penalty of an invalid action among its rewards.
    pub step: Step,
    /// Wall time the policy took.
    pub policy_time: Duration,
    /// Wall time the environment took, as whoever asked it has waited; 0 in records up to version 3, whose steps tell
    /// how long the environment itself was at work.
    #[serde(default)]
    pub environment_time: Duration,
}

impl Turn {
    /// How many tokens were sampled, as far as the policy showed them or told their number.
    pub fn num_tokens(&self) -> usize {
        match self.sampled.ids.len() {
            0 => self.counts.sampled.unwrap_or(0),
            shown => shown,
        }
    }

    /// Whether it sums up what came before, and the environment was not asked.
    pub fn is_summary(&self) -> bool {
        self.kind == TurnKind::Summary
    }

    /// The name of the situation in which a summary is written while the environment is in the situation of this name:
    /// summaries are compared with each other, and never with actions.
    pub fn summary_key(state_key: &str) -> String {
        format!("\u{1f}summary\u{1f}{state_key}")
    }

    /// Whether the completion was broken off before the policy had ended it, as far as is known.
    pub fn is_cut_off(&self) -> bool {
        self.stop.is_some_and(StopCause::is_cut_off)
    }
}

/// Where a trajectory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lineage {
    /// The episode this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Turns taken over from the parent.
    #[serde(default)]
    pub fork_turn: u32,
    /// Tokens of the parent's answer in the turn behind those that were taken over too; absent where that
    /// answer was sampled anew from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_token: Option<u32>,
    /// Whether hints or demonstrations guided it.
    #[serde(default)]
    pub guided: bool,
    /// Whether every token was the most probable one, so that it tells what the others of its group are worth and is not
    /// trained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub greedy: bool,
}

/// By which versions of what defines it a task was played and judged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Versions {
    /// The version of the environment. Absent in files up to version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<u32>,
    /// The scaffold's name and version, such as `plain 1`. Absent in files up to version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaffold: Option<String>,
    /// The versions of the graders that judged, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub graders: BTreeMap<String, u32>,
}

impl Versions {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Tools that were offered from a turn on, to the next entry or the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedTools {
    /// The first turn in which they were, from 0.
    pub turn: usize,
    /// The tools; empty where none were any more.
    pub tools: Arc<[ToolSpec]>,
}

/// The record of one episode; self-describing and versioned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// Format version, [`TRAJECTORY_VERSION`] when written by this code.
    pub version: u32,
    /// The episode's id within its run.
    pub episode: u64,
    /// The task's id.
    pub task: String,
    /// The environment's name.
    pub environment: String,
    /// The versions of environment, scaffold and graders.
    #[serde(default, skip_serializing_if = "Versions::is_empty")]
    pub versions: Versions,
    /// The seed that the episode's random choices derive from.
    pub seed: Seed,
    /// The seed its environment was reset with, so that the episode can be played again; absent
    /// in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_seed: Option<Seed>,
    /// The policy's name.
    pub policy: String,
    /// What the environment showed on reset.
    pub first_observation: crate::Observation,
    /// The tools that were offered, where any were: an entry for each change, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<OfferedTools>,
    /// The turns, oldest first.
    pub turns: Vec<Turn>,
    /// The grammars that answers were held to, by their hash; each once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grammars: BTreeMap<GrammarHash, Arc<GrammarSource>>,
    /// How it ended.
    pub end: EndReason,
    /// Whether the environment judged the task solved.
    #[serde(alias = "won")]
    pub success: bool,
    /// What it was judged to be when it was over; absent where the steps have said it all, and in older files, which
    /// show it in the last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Where it comes from.
    #[serde(default)]
    pub lineage: Lineage,
    /// Whose record of the episode it is; 0 where there is one seat.
    #[serde(default)]
    pub seat: Seat,
    /// Tries at this episode before it that broke for reasons that are not the policy's, so that it
    /// was played anew; 0 in older files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refills: u32,
    /// What its requests to models took, those of its graders and of the tries before it among them; absent where nobody
    /// counted, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// Whether a secret stood in it where tokens tell it too: all tokens are 0 then, and nothing is trained on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Wall time of the whole episode.
    pub wall_time: Duration,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A stored trajectory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrajectoryError {
    /// It was written by newer code.
    #[error("read trajectory format {found}: this build reads up to {TRAJECTORY_VERSION}")]
    Version {
        /// The version in the file.
        found: u64,
    },
    /// It is not a trajectory.
    #[error("read a trajectory")]
    Malformed(#[source] serde_json::Error),
    /// Its token lists contradict each other.
    #[error("use turn {turn} of episode {episode}: {detail}")]
    Inconsistent {
        /// The episode.
        episode: u64,
        /// The turn, from 0.
        turn: usize,
        /// What contradicts what.
        detail: String,
    },
}

impl Trajectory {
    /// The sum of all rewards. Where a seat earned something without a turn, its verdict has it.
    pub fn total_reward(&self) -> f64 {
        match (&self.turns[..], &self.verdict) {
            ([], Some(verdict)) => verdict.reward(),
            (turns, _) => turns.iter().fold(0.0, |sum, turn| sum + turn.step.reward()),
        }
    }

    /// Whether the episode broke for reasons that are not the policy's.
    pub fn is_failed(&self) -> bool {
        matches!(self.end, EndReason::Failed { .. })
    }

    /// The turns in which the policy acted: all but summaries.
    pub fn acting(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.turns.iter().filter(|turn| !turn.is_summary())
    }

    /// The last turn in which the policy acted, which carries what the whole is judged to be.
    pub fn last_acting(&self) -> Option<&Turn> {
        self.acting().next_back()
    }

    /// The same, to be changed.
    pub fn last_acting_mut(&mut self) -> Option<&mut Turn> {
        self.turns.iter_mut().rfind(|turn| !turn.is_summary())
    }

    /// The tools that were offered in a turn; none beyond the last.
    pub fn tools_at(&self, turn: usize) -> Arc<[ToolSpec]> {
        let last = self.tools.iter().rfind(|offered| offered.turn <= turn);
        last.map(|offered| Arc::clone(&offered.tools)).unwrap_or_default()
    }

    /// All media that it names, in the order in which they were shown.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        fn of_turn(turn: &Turn) -> impl Iterator<Item = &Media> {
            let injected = turn.injected.iter().flat_map(Message::media);
            injected.chain(turn.step.observation.all_media())
        }
        self.first_observation.all_media().chain(self.turns.iter().flat_map(of_turn))
    }

    /// The same, to be loaded.
    pub fn media_mut(&mut self) -> impl Iterator<Item = &mut Media> {
        fn injected(message: &mut Message) -> impl Iterator<Item = &mut Media> {
            message.parts.iter_mut().filter_map(|part| match part {
                Part::Media(media) => Some(media),
                Part::Text(_) | Part::Reasoning(_) => None,
            })
        }
        fn of_turn(turn: &mut Turn) -> impl Iterator<Item = &mut Media> {
            let injected = turn.injected.iter_mut().flat_map(injected);
            injected.chain(turn.step.observation.all_media_mut())
        }
        self.first_observation.all_media_mut().chain(self.turns.iter_mut().flat_map(of_turn))
    }

    /// Reads one JSON record.
    ///
    /// # Errors
    ///
    /// [`TrajectoryError`] when the bytes are no trajectory, a newer one, or contradict
    /// themselves.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TrajectoryError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(TrajectoryError::Malformed)?;
        if head.version > u64::from(TRAJECTORY_VERSION) {
            return Err(TrajectoryError::Version { found: head.version });
        }
        let mut trajectory: Self =
            serde_json::from_slice(bytes).map_err(TrajectoryError::Malformed)?;
        if head.version < FIRST_WITH_SUCCESS {
            trajectory.rename_won();
        }
        trajectory.validate()?;
        Ok(trajectory)
    }

    /// The part of the reward for a solved task was called `won` up to version 2.
    fn rename_won(&mut self) {
        let parts = self.turns.iter_mut().flat_map(|turn| &mut turn.step.rewards);
        for part in parts.filter(|part| part.name == "won") {
            part.name = "success".to_owned();
        }
    }

    /// Checks that the token lists of every turn fit together, that actions stand within what was written, and that
    /// summaries are none.
    ///
    /// # Errors
    ///
    /// [`TrajectoryError::Inconsistent`] names the first turn that does not.
    pub fn validate(&self) -> Result<(), TrajectoryError> {
        let mut length = 0;
        let mut checked = None;
        for (index, turn) in self.turns.iter().enumerate() {
            let fail = |detail: String| TrajectoryError::Inconsistent {
                episode: self.episode,
                turn: index,
                detail,
            };
            if turn.prompt.kept > length {
                return Err(fail(format!("keeps {} of {length} tokens", turn.prompt.kept)));
            }
            let tokens = &turn.sampled;
            let count = tokens.ids.len();
            let lists = [
                ("log-probabilities", tokens.logprobs.len()),
                ("versions", tokens.versions.len()),
                (
                    "allowed lists",
                    if tokens.allowed.is_empty() { count } else { tokens.allowed.len() },
                ),
            ];
            for (name, found) in lists {
                if found != count {
                    return Err(fail(format!("{count} sampled tokens with {found} {name}")));
                }
            }
            for (id, allowed) in tokens.ids.iter().zip(&tokens.allowed) {
                if !allowed.is_empty() && !allowed.contains(id) {
                    return Err(fail(format!("token {id} was not allowed where it was sampled")));
                }
            }
            if let Some(hash) = tokens.grammar
                && checked != Some(hash)
            {
                match self.grammars.get(&hash) {
                    None => return Err(fail(format!("its grammar {hash} is not there"))),
                    Some(source) if source.hash() != hash => {
                        return Err(fail(format!("grammar {hash} has another content")));
                    }
                    Some(_) => checked = Some(hash),
                }
            }
            if turn.is_summary() && (turn.parsed.action().is_some() || turn.step.terminated) {
                return Err(fail("is a summary, and acts or ends the task".to_owned()));
            }
            length = turn.prompt.kept + turn.prompt.appended.len() + count;
            if let ParsedAction::Action { spans, .. } = &turn.parsed
                && let Some(span) =
                    spans.iter().find(|span| turn.text.get((*span).clone()).is_none())
            {
                return Err(fail(format!("has no text at bytes {} to {}", span.start, span.end)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::{Observation, PolicyVersion, RewardPart, Role, ToolResult};

    fn observation() -> impl Strategy<Value = Observation> {
        let admissible = proptest::option::of(vec(".{0,6}", 0..4));
        (".{0,20}", proptest::option::of(".{0,9}"), admissible, ".{0,9}").prop_map(
            |(text, instruction, admissible, state_key)| Observation {
                media: vec![Media::new("image/png", text.as_bytes())],
                results: vec![ToolResult {
                    call: state_key.clone(),
                    text: text.clone(),
                    media: Vec::new(),
                    is_error: text.len() > 9,
                }],
                carried_out: instruction.as_deref().map(crate::Action::from),
                text,
                instruction: instruction.map(Arc::from),
                admissible: admissible.map(|listed| listed.into_iter().map(Arc::from).collect()),
                state_key,
            },
        )
    }

    fn finite() -> impl Strategy<Value = f64> {
        any::<f64>().prop_filter("JSON has no other numbers", |value| value.is_finite())
    }

    fn step() -> impl Strategy<Value = Step> {
        let rewards = vec((".{0,5}", finite()), 0..3);
        let time = (0..u64::MAX, 0..1_000_000_000_u32).prop_map(|(s, ns)| Duration::new(s, ns));
        (observation(), rewards, any::<[bool; 3]>(), time).prop_map(
            |(observation, rewards, [terminated, success, valid], wall_time)| Step {
                observation,
                rewards: rewards
                    .into_iter()
                    .map(|(name, value)| RewardPart { name, value })
                    .collect(),
                terminated,
                success,
                valid,
                wall_time,
            },
        )
    }

    fn sampled() -> impl Strategy<Value = SampledTokens> {
        let logprob = any::<f32>().prop_filter("sampled tokens were possible", |l| l.is_finite());
        let token = (any::<u32>(), logprob, any::<u32>(), vec(any::<u32>(), 0..3));
        (vec(token, 0..5), any::<bool>()).prop_map(|(tokens, restricted)| {
            let mut sampled = SampledTokens::default();
            for (id, logprob, version, mut allowed) in tokens {
                sampled.ids.push(id);
                sampled.logprobs.push(logprob);
                sampled.versions.push(PolicyVersion(version));
                if restricted {
                    if !allowed.is_empty() {
                        allowed.push(id);
                    }
                    sampled.allowed.push(allowed);
                }
            }
            sampled
        })
    }

    fn turn() -> impl Strategy<Value = Turn> {
        let appended = vec(any::<u32>(), 0..4);
        let valid = any::<bool>();
        let stop = prop_oneof![
            Just(None),
            Just(Some(StopCause::EndOfTurn)),
            Just(Some(StopCause::Length)),
            Just(Some(StopCause::Unknown)),
        ];
        (appended, ".{0,9}", ".{0,9}", sampled(), stop, valid, ".{0,9}", step()).prop_map(
            |(appended, author, text, sampled, stop, valid, state_key, step)| Turn {
                kind: match valid || step.terminated {
                    true => TurnKind::Action,
                    false => TurnKind::Summary,
                },
                stop,
                source: if valid { Source::Sampled } else { Source::Regenerated },
                injected: vec![Message::new(Role::User, author.as_str())],
                counts: TokenCounts {
                    prompt: Some(appended.len()),
                    sampled: valid.then_some(sampled.ids.len()),
                    endpoint: valid,
                },
                seat: Seat(u32::from(valid)),
                prompt: PromptTokens { kept: 0, appended },
                author,
                parsed: if valid {
                    ParsedAction::Action {
                        action: text.as_str().into(),
                        spans: std::iter::once(0..text.len()).collect(),
                        reasoning: stop.map(|_| text.clone()),
                    }
                } else {
                    ParsedAction::Invalid { reason: text.clone() }
                },
                text,
                sampled,
                state_key,
                policy_time: step.wall_time,
                environment_time: step.wall_time,
                step,
            },
        )
    }

    fn end() -> impl Strategy<Value = EndReason> {
        prop_oneof![
            Just(EndReason::Terminated),
            prop::sample::select([&Limit::ALL[..], &[Limit::Time]].concat())
                .prop_map(|limit| EndReason::Truncated { limit }),
            (
                prop_oneof![
                    Just(Boundary::Policy),
                    Just(Boundary::Environment),
                    Just(Boundary::Sandbox),
                    Just(Boundary::Grader),
                    Just(Boundary::Cancelled)
                ],
                ".{0,9}"
            )
                .prop_map(|(boundary, detail)| EndReason::Failed { boundary, detail }),
        ]
    }

    /// Any trajectory that does not contradict itself.
    fn trajectory() -> impl Strategy<Value = Trajectory> {
        let kept = vec(any::<prop::sample::Index>(), 5);
        let fork_token = proptest::option::of(any::<u32>());
        let lineage = (proptest::option::of(any::<u64>()), any::<u32>(), fork_token, any::<bool>());
        (vec(turn(), 0..5), kept, any::<[u64; 2]>(), end(), lineage, observation()).prop_map(
            |(mut turns, kept, [episode, seed], end, lineage, first_observation)| {
                let mut length = 0;
                for (turn, kept) in turns.iter_mut().zip(kept) {
                    turn.prompt.kept = kept.index(length + 1);
                    length = turn.prompt.kept + turn.prompt.appended.len() + turn.sampled.ids.len();
                }
                let seed = Seed::from_u64(seed);
                let (parent, fork_turn, fork_token, guided) = lineage;
                let mut grammars = BTreeMap::new();
                for (index, turn) in turns.iter_mut().enumerate().filter(|(index, _)| index % 2 > 0)
                {
                    let expression = ".".repeat(index / 3);
                    let grammar = GrammarSource::Regex { expression };
                    turn.sampled.grammar = Some(grammar.hash());
                    grammars.insert(grammar.hash(), Arc::new(grammar));
                }
                Trajectory {
                    grammars,
                    version: TRAJECTORY_VERSION,
                    episode,
                    task: "suite/split/7".to_owned(),
                    environment: "environment".to_owned(),
                    versions: Versions {
                        environment: guided.then_some(fork_turn),
                        ..Versions::default()
                    },
                    seed,
                    environment_seed: guided.then(|| seed.derive("environment", 0)),
                    policy: "policy".to_owned(),
                    first_observation,
                    tools: Vec::new(),
                    success: turns.last().is_some_and(|turn| turn.step.success),
                    verdict: guided
                        .then(|| Verdict { details: "judged".to_owned(), ..Verdict::default() }),
                    turns,
                    end,
                    lineage: Lineage {
                        parent,
                        fork_turn,
                        fork_token,
                        guided,
                        greedy: fork_turn % 5 == 1,
                    },
                    seat: Seat(fork_turn % 3),
                    refills: fork_turn % 2,
                    spend: guided.then(|| Spend { requests: 3, cost: 0.5, ..Spend::default() }),
                    redacted: guided,
                    wall_time: Duration::from_millis(episode),
                }
            },
        )
    }

    fn example() -> serde_json::Value {
        serde_json::json!({
            "version": 1,
            "episode": 3,
            "task": "suite/train/3",
            "environment": "environment",
            "seed": Seed::from_u64(1),
            "policy": "local",
            "first_observation": { "text": "a room", "state_key": "start" },
            "turns": [{
                "prompt": { "kept": 0, "appended": [1, 2] },
                "author": "local",
                "text": "go",
                "sampled": { "ids": [5, 6], "logprobs": [-0.5, 0.0], "versions": [4, 4] },
                "parsed": { "kind": "action", "text": "go" },
                "state_key": "start",
                "step": {
                    "observation": { "text": "a hall", "state_key": "hall" },
                    "rewards": [{ "name": "won", "value": 1.0 }],
                    "terminated": true,
                    "won": true,
                    "executable": true,
                    "wall_time": { "secs": 0, "nanos": 1000 },
                },
                "policy_time": { "secs": 0, "nanos": 5000 },
            }],
            "end": { "kind": "terminated" },
            "won": true,
            "wall_time": { "secs": 1, "nanos": 0 },
        })
    }

    fn read(value: &serde_json::Value) -> Result<Trajectory, TrajectoryError> {
        Trajectory::from_json(value.to_string().as_bytes())
    }

    proptest! {
        #[test]
        fn a_trajectory_survives_its_file(trajectory in trajectory()) {
            let bytes = serde_json::to_vec(&trajectory).unwrap();
            prop_assert_eq!(Trajectory::from_json(&bytes).unwrap(), trajectory);
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert!(Trajectory::from_json(&bytes).is_err());
        }

        /// What damage leaves readable is still consistent.
        #[test]
        fn damage_is_refused_or_harmless(
            trajectory in trajectory(),
            damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..5),
        ) {
            let mut bytes = serde_json::to_vec(&trajectory).unwrap();
            for (place, byte, kind) in damage {
                let place = place.index(bytes.len());
                match kind {
                    0 => bytes[place] = byte,
                    1 => bytes.truncate(place + 1),
                    _ => bytes.insert(place, byte),
                }
            }
            if let Ok(read) = Trajectory::from_json(&bytes) {
                prop_assert!(read.validate().is_ok());
                prop_assert!(read.version <= TRAJECTORY_VERSION);
            }
        }
    }

    #[test]
    fn fields_that_came_later_may_be_absent() {
        let trajectory = read(&example()).unwrap();
        assert_eq!(trajectory.lineage, Lineage::default());
        assert_eq!((trajectory.environment_seed, trajectory.seat), (None, Seat::FIRST));
        assert_eq!(trajectory.versions, Versions::default());
        let turn = &trajectory.turns[0];
        assert_eq!((turn.seat, turn.counts), (Seat::FIRST, TokenCounts::default()));
        assert_eq!(turn.parsed, ParsedAction::of("go"));
        assert_eq!((trajectory.turns[0].stop, trajectory.refills), (None, 0));
        assert!(!trajectory.turns[0].is_cut_off());
        assert_eq!((trajectory.total_reward(), trajectory.is_failed()), (1.0, false));
        let step = &trajectory.turns[0].step;
        assert!(trajectory.success && step.success && step.valid, "under their older names");
        assert_eq!(step.rewards[0].name, "success");
    }

    #[test]
    fn files_of_older_versions_are_read_as_they_were_written() {
        let files = [
            include_str!("../tests/fixtures/trajectories/version_1.json"),
            include_str!("../tests/fixtures/trajectories/version_2.json"),
            include_str!("../tests/fixtures/trajectories/version_3.json"),
            include_str!("../tests/fixtures/trajectories/version_4.json"),
        ];
        for (version, file) in (1..).zip(files) {
            let read = Trajectory::from_json(file.as_bytes()).unwrap();
            assert_eq!(
                (read.version, read.episode, read.seat, read.success),
                (version, 3, Seat(1), true)
            );
            assert_eq!(read.refills, if version == 1 { 0 } else { 2 });
            let [first, last] = &read.turns[..] else { panic!("{} turns", read.turns.len()) };
            assert!(first.parsed.is_invalid() && !first.step.valid && !first.step.success);
            assert_eq!(last.parsed, ParsedAction::of("go north"));
            assert_eq!((last.step.reward(), &*last.step.rewards[0].name), (1.0, "success"));
            assert!(last.step.valid && last.step.success);
            assert_eq!((last.prompt.kept, &last.prompt.appended[..]), (4, &[3][..]));
            assert_eq!(last.sampled.allowed, [[5, 6, 7]]);
            assert_eq!(last.stop, (version > 1).then_some(StopCause::EndOfTurn));
            assert_eq!(last.step.observation.admissible.as_ref().unwrap().len(), 2);
            let end = match version {
                1 => EndReason::Truncated { limit: Limit::Time },
                _ => EndReason::Terminated,
            };
            assert_eq!(read.end, end);
            assert!(read.turns.iter().all(|turn| turn.kind == TurnKind::Action));
            if version == 4 {
                assert_eq!(last.counts.prompt, Some(5));
                assert_eq!(read.versions.scaffold.as_deref(), Some("plain 1"));
            }
            if version >= 3 {
                assert_eq!(last.injected, [Message::new(Role::User, "Hint: north.")]);
                assert_eq!(last.source, Source::Hinted);
                assert_eq!(read.lineage.fork_token, Some(2));
                assert_eq!(read.verdict.as_ref().unwrap().reward(), 0.5);
            }
            // What was read is written in the form of this version, and says the same.
            let written = serde_json::to_vec(&read).unwrap();
            let mut head: serde_json::Value = serde_json::from_slice(&written).unwrap();
            head["version"] = TRAJECTORY_VERSION.into();
            let again = Trajectory::from_json(head.to_string().as_bytes()).unwrap();
            assert_eq!(Trajectory { version, ..again }, read);
        }
    }

    #[test]
    fn limits_are_written_by_name_and_the_one_of_version_1_is_read() {
        let mut value = example();
        for limit in [&Limit::ALL[..], &[Limit::Time]].concat() {
            value["end"] = serde_json::json!({ "kind": "truncated", "limit": limit.name() });
            assert_eq!(read(&value).unwrap().end, EndReason::Truncated { limit });
        }
        value["end"] = serde_json::json!({ "kind": "truncated", "limit": "patience" });
        assert!(read(&value).is_err());
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_refused() {
        let mut value = example();
        value["version"] = 0.into();
        assert_eq!(read(&value).unwrap().version, 0);
        for newer in [u64::from(TRAJECTORY_VERSION) + 1, u64::MAX] {
            // The version alone decides: the rest may have any form.
            let value = serde_json::json!({ "version": newer, "turns": "in another form" });
            let error = read(&value).unwrap_err();
            assert!(matches!(error, TrajectoryError::Version { found } if found == newer));
        }
        for version in [serde_json::json!(-1), serde_json::json!("1"), serde_json::json!(null)] {
            let mut value = example();
            value["version"] = version;
            assert!(matches!(read(&value).unwrap_err(), TrajectoryError::Malformed(_)));
        }
    }

    #[test]
    fn grammars_are_there_and_those_that_are_named() {
        let grammar = GrammarSource::Regex { expression: "go|stay".to_owned() };
        let (hash, other) = (grammar.hash(), GrammarSource::Regex { expression: "go".to_owned() });
        let mut value = example();
        value["turns"][0]["sampled"]["grammar"] = serde_json::json!(hash);
        let error = read(&value).unwrap_err().to_string();
        assert!(error.ends_with(&format!("its grammar {hash} is not there")), "{error}");
        value["grammars"] = serde_json::json!({ hash.to_string(): other });
        let error = read(&value).unwrap_err().to_string();
        assert!(error.ends_with("has another content"), "{error}");
        value["grammars"] = serde_json::json!({ hash.to_string(): grammar });
        assert_eq!(*read(&value).unwrap().grammars[&hash], grammar);
    }

    #[test]
    fn contradictions_are_named() {
        let contradict = |path: &str, new: serde_json::Value| {
            let mut value = example();
            *value.pointer_mut(path).unwrap() = new;
            read(&value).unwrap_err().to_string()
        };
        assert_eq!(
            contradict("/turns/0/prompt/kept", 1.into()),
            "use turn 0 of episode 3: keeps 1 of 0 tokens"
        );
        assert!(
            contradict("/turns/0/sampled/logprobs", serde_json::json!([0.0]))
                .ends_with("2 sampled tokens with 1 log-probabilities")
        );
        assert!(
            contradict("/turns/0/sampled/versions", serde_json::json!([]))
                .ends_with("2 sampled tokens with 0 versions")
        );
        let mut value = example();
        let action = serde_json::json!({ "kind": "text", "text": "go" });
        let spans = serde_json::json!([{ "start": 0, "end": 3 }]);
        value["turns"][0]["parsed"] =
            serde_json::json!({ "kind": "action", "action": action, "spans": spans });
        assert!(read(&value).unwrap_err().to_string().ends_with("has no text at bytes 0 to 3"));
        let mut value = example();
        value["turns"][0]["kind"] = "summary".into();
        assert!(read(&value).unwrap_err().to_string().ends_with("acts or ends the task"));
        let mut value = example();
        value["turns"][0]["sampled"]["allowed"] = serde_json::json!([[5, 9], [7]]);
        let error = read(&value).unwrap_err().to_string();
        assert!(error.ends_with("token 6 was not allowed where it was sampled"), "{error}");
        value["turns"][0]["sampled"]["allowed"] = serde_json::json!([[5, 9]]);
        let error = read(&value).unwrap_err().to_string();
        assert!(error.ends_with("2 sampled tokens with 1 allowed lists"), "{error}");
    }
}
