//! The player's part of a turn.

use std::time::Duration;

use spar_core::{
    Action, Boundary, Completion, CompletionRequest, EndReason, ParsedAction, Policy, PolicyError,
    PolicyVersion, SampledTokens, Source, StopCause, ToolSpec,
};
use spar_envs::Environment;
use tokio::time::{Instant, sleep, timeout_at};

use super::ends::{Limit, failed, late, policy_end, truncated};
use crate::back_off::BackOff;
use crate::context::{ReasoningRule, split_thoughts};
use crate::{EpisodeConfig, Player};

/// The longest wait before a policy is asked again.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// What a player did in its turn.
pub(super) struct Answer {
    pub(super) completion: Completion,
    pub(super) parsed: ParsedAction,
    pub(super) source: Source,
}

/// Asks the player of a turn, in which these tools are offered, and reads the answer; `task_end` is when the task's own
/// time is over.
pub(super) async fn answer(
    player: Player<'_>,
    environment: &mut dyn Environment,
    config: &EpisodeConfig,
    request: CompletionRequest,
    task_end: Option<Instant>,
    (turn, tools): (u32, &[ToolSpec]),
) -> Result<Answer, EndReason> {
    let parser = config.parser();
    let (action, encoder) = match player {
        Player::Policy(policy) => {
            let is_partial = !request.partial.ids.is_empty();
            let completion = ask_in_time(policy, request, config, task_end).await?;
            let parsed = read(config, &completion, tools, turn);
            let source = if is_partial { Source::Regenerated } else { Source::Sampled };
            return Ok(Answer { completion, parsed, source });
        }
        Player::Oracle { encoder } => (environment.oracle_action(), encoder),
        Player::Expert { encoder } => (environment.expert_action(), encoder),
        Player::RollIn { .. } => unreachable!("it is one of the others at every turn"),
    };
    let name = player.name();
    let action = action
        .ok_or_else(|| failed(Boundary::Policy, &format!("the {name} has no action here")))?;
    // Written as a policy has to, so that who imitates it is understood.
    let written = parser
        .write(&action, tools)
        .map_err(|error| failed(Boundary::Policy, &format!("the {name} has no words: {error}")))?;
    let mut parsed = ParsedAction::of(action);
    number_calls(&mut parsed, turn);
    let ids = encoder.map(|encoder| encoder.encode_answer(&written)).unwrap_or_default();
    let tokens = SampledTokens {
        logprobs: vec![0.0; ids.len()],
        versions: vec![PolicyVersion(0); ids.len()],
        ids,
        ..SampledTokens::default()
    };
    let completion = Completion::new(name, written, StopCause::EndOfTurn);
    let completion = Completion { tokens, ..completion };
    Ok(Answer { completion, parsed, source: Source::Demonstrated })
}

/// Reads what a policy answered.
fn read(
    config: &EpisodeConfig,
    completion: &Completion,
    tools: &[ToolSpec],
    turn: u32,
) -> ParsedAction {
    let text = &*completion.text;
    let mut parsed = match &completion.calls {
        // An endpoint has read the calls itself.
        Some(Ok(calls)) if !tools.is_empty() => ParsedAction::Action {
            action: Action::Calls { text: text.to_owned(), calls: calls.clone() },
            spans: Vec::new(),
            reasoning: None,
        },
        Some(Ok(_)) => {
            ParsedAction::Invalid { reason: "a tool was called, and there are none".to_owned() }
        }
        Some(Err(malformed)) => ParsedAction::Invalid { reason: malformed.to_string() },
        None if config.context.reasoning == ReasoningRule::Inline => {
            config.parser().parse(text, tools)
        }
        None => {
            let (thoughts, said) = split_thoughts(text);
            let mut parsed = config.parser().parse(said, tools);
            if let ParsedAction::Action { spans, reasoning, .. } = &mut parsed {
                // They are places in the whole.
                let start = text.len() - said.len();
                for span in spans {
                    *span = span.start + start..span.end + start;
                }
                *reasoning = thoughts.map(str::to_owned).or(reasoning.take());
            }
            parsed
        }
    };
    if let (ParsedAction::Action { reasoning, .. }, Some(told)) =
        (&mut parsed, &completion.reasoning)
    {
        *reasoning = Some(told.clone());
    }
    number_calls(&mut parsed, turn);
    parsed
}

/// Gives calls that have none ids of their own: nine letters and digits, which every chat template takes.
fn number_calls(parsed: &mut ParsedAction, turn: u32) {
    if let ParsedAction::Action { action: Action::Calls { calls, .. }, .. } = parsed {
        for (place, call) in calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("c{turn:05}{place:03}");
        }
    }
}

async fn ask_in_time(
    policy: &dyn Policy,
    request: CompletionRequest,
    config: &EpisodeConfig,
    task_end: Option<Instant>,
) -> Result<Completion, EndReason> {
    let limit = config.turn_timeout();
    let due = Instant::now() + limit;
    let deadline = task_end.map_or(due, |end| end.min(due));
    let answer = timeout_at(deadline, ask(policy, request, config)).await.map_err(|_| {
        if deadline < due {
            truncated(Limit::TaskTime)
        } else {
            late(Boundary::Policy, "answer", limit)
        }
    })?;
    answer.map_err(|error| policy_end(&error))
}

/// Asks a policy, and again when it could not be reached.
async fn ask(
    policy: &dyn Policy,
    request: CompletionRequest,
    config: &EpisodeConfig,
) -> Result<Completion, PolicyError> {
    let first = Duration::from_millis(config.retry_delay_ms);
    let mut back_off = BackOff::new(first, MAX_DELAY, request.seed);
    let mut retries = 0;
    loop {
        if retries == config.policy_retries {
            return policy.complete(request).await;
        }
        match policy.complete(request.clone()).await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, episode = request.episode, "asking the policy again");
                sleep(back_off.next()).await;
                retries += 1;
            }
            result => return result,
        }
    }
}
