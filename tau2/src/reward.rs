//! How the end of an episode is judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use spar_python::{Outcome, equal, from_json, is_json_shallow, text};

use crate::domain::Domain;
use crate::task::{Called, EvaluationCriteria, GoldAction, Message, RewardType, Tau2Task};
use crate::world::World;

/// The stream of ids of the world in which the gold calls are made, which differ from those of any episode.
const GOLD_STREAM: u64 = u64::MAX;

/// What was found of an episode, by the parts that a reward can have.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether the databases are as the gold calls leave them; absent where nothing says how they should be.
    pub is_db_match: Option<bool>,
    /// Which assertions hold.
    pub assertions: Vec<bool>,
    /// Which gold calls were made.
    pub actions: Vec<bool>,
    /// What was said of what had to be.
    pub communicated: Vec<bool>,
    /// What counts.
    pub basis: Vec<RewardType>,
}

impl Judgement {
    /// The parts that count and that rules can judge, each 0 or 1; the judge's part is not among them.
    pub fn parts(&self) -> BTreeMap<RewardType, f64> {
        let of = |holds: bool| if holds { 1.0 } else { 0.0 };
        let all = |found: &[bool]| of(found.iter().all(|holds| *holds));
        let parts = self.basis.iter().filter_map(|part| {
            let value = match part {
                RewardType::Db => of(self.is_db_match.unwrap_or(true)),
                RewardType::EnvAssertion => all(&self.assertions),
                RewardType::Action => all(&self.actions),
                RewardType::Communicate => all(&self.communicated),
                RewardType::NlAssertion => return None,
            };
            Some((*part, value))
        });
        parts.collect()
    }

    /// The product of what the world's state alone decides: databases and assertions, as far as they count.
    pub fn env_reward(&self) -> f64 {
        let parts = self.parts();
        let of = |part| parts.get(&part).copied().unwrap_or(1.0);
        of(RewardType::Db) * of(RewardType::EnvAssertion)
    }

    /// The product of all parts that rules can judge.
    pub fn reward(&self) -> f64 {
        self.parts().values().product()
    }
}

/// Judges a conversation, which begins with what the task says was said before.
///
/// # Errors
///
/// What playing it again raises, or what an assertion does.
pub fn judge(
    domain: &Arc<Domain>,
    task: &Tau2Task,
    messages: &[Message],
    is_solo: bool,
    stream: u64,
) -> Outcome<Judgement> {
    let none = EvaluationCriteria {
        actions: None,
        env_assertions: None,
        communicate_info: None,
        nl_assertions: None,
        reward_basis: Vec::new(),
    };
    let criteria = task.evaluation_criteria.as_ref().unwrap_or(&none);
    let mut judgement = Judgement {
        is_db_match: None,
        assertions: Vec::new(),
        actions: made(criteria.actions.as_deref().unwrap_or_default(), messages),
        communicated: said(criteria.communicate_info.as_deref().unwrap_or_default(), messages),
        basis: criteria.reward_basis.clone(),
    };
    if criteria.actions.is_none() && criteria.env_assertions.is_none() {
        // Whatever was done is right, then.
        judgement.basis.retain(|part| !matches!(part, RewardType::Db | RewardType::EnvAssertion));
        return Ok(judgement);
    }
    let mut world = World::new(Arc::clone(domain), is_solo, stream);
    if let Some(state) = &task.initial_state {
        world.prepare(state)?;
    }
    world.replay(messages)?;

    let mut gold = World::new(Arc::clone(domain), false, GOLD_STREAM);
    gold.initialise(task.initial_state.as_ref())?;
    for action in criteria.actions.iter().flatten() {
        gold.call_gold(action.requestor, &action.name, &action.arguments);
    }
    judgement.is_db_match = Some(world.has_same_data(&gold));
    for assertion in criteria.env_assertions.iter().flatten() {
        judgement.assertions.push(world.holds(assertion)?);
    }
    Ok(judgement)
}

/// Which gold calls were made, by whomever.
fn made(actions: &[GoldAction], messages: &[Message]) -> Vec<bool> {
    let calls: Vec<&Called> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(said) | Message::User(said) => Some(said.calls()),
            Message::Tool(_) | Message::System(_) => None,
        })
        .flatten()
        .collect();
    actions.iter().map(|action| calls.iter().any(|call| is_made(action, call))).collect()
}

fn is_made(action: &GoldAction, call: &Called) -> bool {
    if action.name != call.name {
        return false;
    }
    let is_compared = |name: &str| match &action.compare_args {
        Some(names) => names.iter().any(|known| known == name),
        None => call.arguments.contains_key(name),
    };
    let kept = |arguments: &serde_json::Map<String, serde_json::Value>| {
        let kept = arguments.iter().filter(|(name, _)| is_compared(name));
        from_json(&kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    call.arguments.values().all(is_json_shallow)
        && equal(&kept(&action.arguments), &kept(&call.arguments))
}

/// What of some sentences an agent said: in small letters, commas taken out of what was said.
fn said(sentences: &[String], messages: &[Message]) -> Vec<bool> {
    let heard: Vec<String> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(said) => said.content.as_deref(),
            _ => None,
        })
        .filter(|content| !content.trim().is_empty())
        .map(|content| text::lower(content).replace(',', ""))
        .collect();
    let is_said = |sentence: &String| {
        let sentence = text::lower(sentence);
        heard.iter().any(|heard| heard.contains(&sentence))
    };
    sentences.iter().map(is_said).collect()
}
