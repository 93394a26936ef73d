//! The player's part of a turn.

use std::time::Duration;

use spar_core::{
    Action, Boundary, Completion, CompletionRequest, EndReason, Message, ParsedAction, Policy,
    PolicyError, PolicyVersion, Role, SampledTokens, Source, StopCause,
};
use spar_envs::Environment;
use tokio::time::{Instant, sleep, timeout_at};

use super::ends::{Limit, failed, late, policy_end, truncated};
use crate::back_off::BackOff;
use crate::{EpisodeConfig, Player};

/// The longest wait before a policy is asked again.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// What a player did in its turn.
pub(super) struct Answer {
    pub(super) completion: Completion,
    pub(super) parsed: ParsedAction,
    pub(super) source: Source,
}

/// Asks the player of a turn, and reads the answer; `task_end` is when the task's own time is over.
pub(super) async fn answer(
    player: Player<'_>,
    environment: &mut dyn Environment,
    config: &EpisodeConfig,
    request: CompletionRequest,
    task_end: Option<Instant>,
) -> Result<Answer, EndReason> {
    let parser = &config.parser;
    let (action, encoder) = match player {
        Player::Policy(policy) => {
            let is_partial = !request.partial.ids.is_empty();
            let has_tools = !request.tools.is_empty();
            let completion = ask_in_time(policy, request, config, task_end).await?;
            let parsed = match &completion.calls {
                None => parser.parse(&completion.text),
                Some(Ok(calls)) if has_tools => ParsedAction::Action {
                    action: Action::Calls { text: completion.text.clone(), calls: calls.clone() },
                    spans: Vec::new(),
                    reasoning: completion.reasoning.clone(),
                },
                Some(Ok(_)) => ParsedAction::Invalid {
                    reason: "a tool was called, and there are none".to_owned(),
                },
                Some(Err(malformed)) => ParsedAction::Invalid { reason: malformed.to_string() },
            };
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
        .write(&action)
        .map_err(|error| failed(Boundary::Policy, &format!("the {name} has no words: {error}")))?;
    let message = Message::new(Role::Assistant, written.as_str());
    let parsed = ParsedAction::of(action);
    let asked = request.messages.last().map(AsRef::as_ref);
    let ids = encoder.map(|encoder| encoder.encode(asked, &message)).unwrap_or_default();
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
