//! The player's part of a turn.

use std::collections::HashSet;
use std::time::Duration;

use spar_core::{
    Action, Boundary, Completion, CompletionRequest, EndReason, ParsedAction, Policy, PolicyError,
    SampledTokens, Source, StopCause, ToolCall, ToolSpec,
};
use spar_envs::Environment;
use tokio::time::{Instant, sleep, timeout_at};

use super::ends::{Limit, failed, late, policy_end, truncated};
use crate::back_off::BackOff;
use crate::contexts::{ReasoningRule, split_thoughts};
use crate::{EpisodeConfig, ParserChoice, Player};

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
    let parser = config.parser_in(environment);
    let (action, encoder) = match player {
        Player::Policy(policy) => {
            let source = source_of(&request);
            let mut completion = ask_in_time(policy, request, config, task_end).await?;
            close_call(config, &mut completion, tools);
            let parsed = read(config, parser, &completion, tools, turn);
            if parsed.is_invalid() {
                keep_unread(&mut completion);
            }
            return Ok(Answer { completion, parsed, source });
        }
        Player::Oracle { encoder } => (environment.oracle_action(), encoder),
        Player::Expert { encoder } => (environment.expert_action(), encoder),
        Player::RollIn { .. } | Player::Noisy { .. } => {
            unreachable!("it is one of the others at every turn")
        }
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
    // An answer that goes on behind its call does not end there.
    let goes_on = config.in_turn().is_some() && !action_calls(&parsed).is_empty();
    let tokens = match (encoder, request.grammar) {
        (None, _) => SampledTokens::default(),
        (Some(encoder), _) if goes_on => SampledTokens::unrestricted(encoder.encode_text(&written)),
        // In the tokens that would be sampled: what a grammar forces has others than the same text elsewhere.
        (Some(encoder), Some(grammar)) => {
            let encoded = encoder.encode_answer_in(&written, grammar).await;
            encoded.map_err(|error| failed(Boundary::Policy, &error.to_string()))?
        }
        (Some(encoder), None) => SampledTokens::unrestricted(encoder.encode_answer(&written)),
    };
    let stop = if goes_on { StopCause::StopSequence } else { StopCause::EndOfTurn };
    let completion = Completion::new(name, written, stop);
    let completion = Completion { tokens, ..completion };
    Ok(Answer { completion, parsed, source: Source::Demonstrated })
}

/// Asks the policy to sum up what came before; what it writes is no action, whatever it is.
pub(super) async fn summary(
    policy: &dyn Policy,
    config: &EpisodeConfig,
    request: CompletionRequest,
    task_end: Option<Instant>,
) -> Result<Answer, EndReason> {
    let source = source_of(&request);
    let mut completion = ask_in_time(policy, request, config, task_end).await?;
    keep_unread(&mut completion);
    let parsed = ParsedAction::Invalid { reason: "it is a summary".to_owned() };
    Ok(Answer { completion, parsed, source })
}

/// Puts the string that ended a call back behind it, where a scaffold has answers go on there: what is read is all of the
/// call. An endpoint does not tell whether a string or the policy ended its answer, so that is seen by what can be read.
fn close_call(config: &EpisodeConfig, completion: &mut Completion, tools: &[ToolSpec]) {
    let Some(stop) = config.in_turn() else { return };
    let is_unclosed = || {
        let reads = |text: &str| {
            config
                .parser()
                .parse(text, tools)
                .action()
                .is_some_and(|it| !it.tool_calls().is_empty())
        };
        !reads(&completion.text) && reads(&format!("{}{stop}", completion.text))
    };
    let was_closed = match completion.stop {
        StopCause::StopSequence => !completion.text.ends_with(stop),
        StopCause::EndOfTurn | StopCause::Unknown => {
            completion.tokens.ids.is_empty() && is_unclosed()
        }
        StopCause::ToolCalls | StopCause::Length | StopCause::Filtered => false,
    };
    if was_closed {
        completion.text.push_str(stop);
    }
}

/// The calls of an answer; none where no action could be read.
fn action_calls(parsed: &ParsedAction) -> &[ToolCall] {
    parsed.action().map(Action::tool_calls).unwrap_or_default()
}

/// How the answer to a request comes about.
fn source_of(request: &CompletionRequest) -> Source {
    if request.partial.ids.is_empty() { Source::Sampled } else { Source::Regenerated }
}

/// Reads what a policy answered.
fn read(
    config: &EpisodeConfig,
    parser: &ParserChoice,
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
        None if config.context.reasoning == ReasoningRule::Inline => parser.parse(text, tools),
        None => {
            let (thoughts, said) = split_thoughts(text);
            let mut parsed = parser.parse(said, tools);
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

/// Puts calls that are no action into the text of their answer: there people and judges read them, and the policy itself
/// in the turns after.
fn keep_unread(completion: &mut Completion) {
    let written = match &completion.calls {
        None => return,
        Some(Err(malformed)) => malformed.written.clone(),
        Some(Ok(calls)) => serde_json::to_string(calls).expect("calls are JSON"),
    };
    if !completion.text.is_empty() && !written.is_empty() {
        completion.text.push('\n');
    }
    completion.text.push_str(&written);
}

/// Gives calls that have none, or that of another, ids of their own: nine letters and digits, which every chat template
/// takes.
fn number_calls(parsed: &mut ParsedAction, turn: u32) {
    let ParsedAction::Action { action: Action::Calls { calls, .. }, .. } = parsed else { return };
    let mut taken: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut seen = HashSet::new();
    let mut place = 0;
    for call in calls {
        if !call.id.is_empty() && seen.insert(call.id.clone()) {
            place += 1;
            continue;
        }
        loop {
            let id = format!("c{turn:05}{place:03}");
            place += 1;
            if taken.insert(id.clone()) {
                call.id = id;
                break;
            }
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

#[cfg(test)]
mod tests {
    use spar_core::MalformedCall;

    use super::*;

    #[test]
    fn every_call_of_a_turn_has_an_id_of_its_own() {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            ..ToolCall::new("look", serde_json::Map::new())
        };
        let ids = |given: &[&str]| -> Vec<String> {
            let calls = given.iter().map(|id| call(id)).collect();
            let mut parsed = ParsedAction::of(Action::calls(calls));
            number_calls(&mut parsed, 7);
            parsed.action().unwrap().tool_calls().iter().map(|call| call.id.clone()).collect()
        };
        assert_eq!(ids(&["", "a", ""]), ["c00007000", "a", "c00007002"]);
        assert_eq!(ids(&["a", "a", "a"]), ["a", "c00007001", "c00007002"]);
        assert_eq!(ids(&["", "c00007000"]), ["c00007001", "c00007000"]);
    }

    #[test]
    fn calls_that_are_no_action_stay_in_the_text() {
        let malformed = MalformedCall {
            name: "look".to_owned(),
            detail: "no object".to_owned(),
            written: "look({".to_owned(),
        };
        let answer = |text: &str, calls| {
            let mut completion = Completion::new("endpoint", text, StopCause::ToolCalls);
            completion.calls = calls;
            let config = EpisodeConfig::default();
            let parsed = read(&config, config.parser(), &completion, &[], 0);
            assert!(parsed.is_invalid());
            keep_unread(&mut completion);
            completion.text
        };
        assert_eq!(answer("", Some(Err(malformed.clone()))), "look({");
        assert_eq!(answer("so:", Some(Err(malformed))), "so:\nlook({");
        // There are no tools.
        let calls = vec![ToolCall::new("look", serde_json::Map::new())];
        assert!(answer("", Some(Ok(calls))).contains("\"name\":\"look\""));
    }
}
