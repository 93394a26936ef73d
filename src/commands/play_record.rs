//! The record of what a person plays, for those who judge it.

use std::time::Duration;

use spar::core::{
    Action, EndReason, Lineage, Observation, ParsedAction, PromptTokens, SampledTokens, Seat, Seed,
    Source, Step, TRAJECTORY_VERSION, TokenCounts, Trajectory, Turn, TurnKind, Versions,
};
use spar::envs::Environment;
use spar::tasks::Task;

/// Whose record it is.
const PERSON: &str = "human";

/// The record of an episode that was reset with `seed` and has shown `first`.
pub(super) fn begun(
    environment: &dyn Environment,
    task: &Task,
    seed: Seed,
    first: Observation,
) -> Trajectory {
    Trajectory {
        version: TRAJECTORY_VERSION,
        episode: 0,
        task: task.id.clone(),
        environment: environment.name().to_owned(),
        seed,
        versions: Versions {
            environment: Some(environment.version()),
            graders: environment.grader_versions(),
            ..Versions::default()
        },
        environment_seed: Some(seed),
        policy: PERSON.to_owned(),
        first_observation: first,
        tools: Vec::new(),
        turns: Vec::new(),
        grammars: Default::default(),
        end: EndReason::Terminated,
        success: false,
        lineage: Lineage::default(),
        seat: Seat::FIRST,
        verdict: None,
        refills: 0,
        spend: None,
        redacted: false,
        wall_time: Duration::ZERO,
    }
}

/// Adds a turn: an action and the step that answered it.
pub(super) fn add_turn(record: &mut Trajectory, action: &Action, step: Step) {
    let before = record.turns.last().map(|turn| &turn.step.observation);
    let state_key = before.unwrap_or(&record.first_observation).state_key.clone();
    record.success = step.success;
    record.turns.push(Turn {
        kind: TurnKind::Action,
        prompt: PromptTokens::default(),
        injected: Vec::new(),
        source: Source::Sampled,
        author: PERSON.to_owned(),
        text: action.said().to_owned(),
        sampled: SampledTokens::default(),
        counts: TokenCounts::default(),
        seat: Seat::FIRST,
        stop: None,
        parsed: ParsedAction::of(action.clone()),
        state_key,
        step,
        policy_time: Duration::ZERO,
        environment_time: Duration::ZERO,
    });
}
