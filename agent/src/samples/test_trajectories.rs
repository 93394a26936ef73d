//! Small trajectories for the tests of samples.

use std::time::Duration;

use spar_core::{
    EndReason, Group, Lineage, Observation, ParsedAction, PolicyVersion, PromptTokens,
    SampledTokens, Seat, Seed, Source, Step, StopCause, TRAJECTORY_VERSION, TokenCounts,
    Trajectory, Turn, TurnKind, Versions,
};

pub(crate) fn turn(kept: usize, appended: &[u32], sampled: SampledTokens) -> Turn {
    Turn {
        kind: TurnKind::Action,
        prompt: PromptTokens { kept, appended: appended.to_vec() },
        injected: Vec::new(),
        counts: TokenCounts::default(),
        seat: Seat::FIRST,
        source: Source::Sampled,
        author: "a".to_owned(),
        text: String::new(),
        sampled,
        stop: Some(StopCause::EndOfTurn),
        parsed: ParsedAction::of(""),
        state_key: String::new(),
        step: Step {
            observation: Observation::default(),
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid: true,
            wall_time: Duration::ZERO,
        },
        policy_time: Duration::ZERO,
        environment_time: Duration::ZERO,
    }
}

pub(crate) fn sampled(ids: &[u32], allowed: &[&[u32]]) -> SampledTokens {
    SampledTokens {
        ids: ids.to_vec(),
        logprobs: vec![-0.5; ids.len()],
        versions: vec![PolicyVersion(3); ids.len()],
        allowed: allowed.iter().map(|list| list.to_vec()).collect(),
        grammar: None,
    }
}

pub(crate) fn trajectory(turns: Vec<Turn>) -> Trajectory {
    Trajectory {
        version: TRAJECTORY_VERSION,
        episode: 9,
        task: "t".to_owned(),
        environment: "e".to_owned(),
        seed: Seed::from_u64(0),
        environment_seed: None,
        versions: Versions::default(),
        policy: "p".to_owned(),
        first_observation: Observation::default(),
        tools: Vec::new(),
        turns,
        grammars: Default::default(),
        end: EndReason::Terminated,
        success: true,
        lineage: Lineage::default(),
        seat: Seat::FIRST,
        verdict: None,
        refills: 0,
        spend: None,
        redacted: false,
        wall_time: Duration::ZERO,
    }
}

pub(crate) fn group(turns: Vec<Turn>) -> Group {
    Group { task: "t".to_owned(), trajectories: vec![trajectory(turns)] }
}
