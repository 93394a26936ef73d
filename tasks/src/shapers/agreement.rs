//! Answers that are like those to other paraphrases.

use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Seed, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::add_at_end;
use crate::ShaperError;
use crate::graders::Bleu;

/// Options of [`Agreement`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgreementOptions {
    /// What the similarity counts, above 0. Default 1.
    pub weight: f64,
    /// Answers to other paraphrases that each is compared with, drawn evenly, at least 1; absent: all of them. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<usize>,
    /// Whether it takes the place of all other parts, so that nothing else is learned from. Default false.
    pub alone: bool,
}

impl Default for AgreementOptions {
    fn default() -> Self {
        Self { weight: 1.0, compared: None, alone: false }
    }
}

impl NamedOptions for AgreementOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(self.weight.is_finite() && self.weight > 0.0) {
            problems.push(format!("weight is {}, must be above 0", self.weight));
        }
        if self.compared == Some(0) {
            problems.push("compared is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

/// The mean similarity of an answer to those that other episodes of the group gave to other paraphrases of the task, without knowing what is right: the group similarity reward of PS-GRPO (Con-RAG, arXiv 2510.04392).
///
/// ```text
/// r_i += weight mean_{j : paraphrase(j) != paraphrase(i)} sim(a_i, a_j)
/// ```
///
/// over all such `j`, or `compared` of them that are drawn evenly, which is the same in expectation. `sim` is BLEU, `a` the last action, and a paraphrase what was said to the policy before its first turn. Where nobody had another paraphrase nothing is added.
///
/// Reconstructed from the abstract; assumed: BLEU as the similarity.
#[derive(Debug, Clone)]
pub struct Agreement {
    options: AgreementOptions,
    bleu: Bleu,
}

impl Agreement {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &AgreementOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "agreement", options.problems())?;
        Ok(Self { options: options.clone(), bleu: Bleu::default() })
    }

    /// How like an episode is to those with other paraphrases; absent where there are none.
    fn similarity(&self, own: &Trajectory, group: &[&Trajectory]) -> Option<f64> {
        let mut others: Vec<&Trajectory> =
            group.iter().copied().filter(|other| paraphrase(other) != paraphrase(own)).collect();
        if let Some(most) = self.options.compared.filter(|most| *most < others.len()) {
            let seed = own.seed.derive("compared with", others.len());
            others.shuffle(&mut Seed::rng(&seed));
            others.truncate(most);
        }
        let answer = answer(own);
        let likeness =
            |other: &&Trajectory| self.bleu.score(answer, &[self::answer(other).to_owned()]);
        let sum: f64 = others.iter().map(likeness).sum();
        (!others.is_empty()).then(|| sum / others.len() as f64)
    }
}

/// What was said to the policy before its first turn.
fn paraphrase(trajectory: &Trajectory) -> String {
    let injected = trajectory.turns.first().map(|turn| &turn.injected[..]).unwrap_or_default();
    injected.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n")
}

/// What an episode came to.
fn answer(trajectory: &Trajectory) -> &str {
    let action = trajectory.last_acting().and_then(|turn| turn.parsed.action());
    action.map_or("", |action| action.said())
}

impl RewardShaper for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        // Alone it has nobody to be like.
        if self.options.alone {
            rewards.iter_mut().for_each(Vec::clear);
        }
    }

    fn shape_group(&self, trajectories: &[&Trajectory], rewards: &mut [Vec<Vec<RewardPart>>]) {
        for (trajectory, rewards) in trajectories.iter().zip(rewards) {
            if self.options.alone {
                rewards.iter_mut().for_each(Vec::clear);
            }
            if let Some(likeness) = self.similarity(trajectory, trajectories) {
                add_at_end(trajectory, rewards, "agreement", self.options.weight * likeness);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{Message, ParsedAction, Role};

    use super::super::tests::episode;
    use super::*;

    /// An episode with this paraphrase and this answer.
    fn answered(paraphrase: &str, answer: &str, number: u64) -> Trajectory {
        let mut played = episode(&[&[], &[("success", 1.0)]]);
        played.seed = Seed::from_u64(number);
        if !paraphrase.is_empty() {
            played.turns[0].injected = vec![Message::new(Role::User, paraphrase)];
        }
        played.turns[1].parsed = ParsedAction::of(answer);
        played
    }

    fn added(options: AgreementOptions, group: &[Trajectory]) -> Vec<f64> {
        let agreement = Agreement::new(&options).unwrap();
        let group: Vec<&Trajectory> = group.iter().collect();
        let mut rewards: Vec<Vec<Vec<RewardPart>>> = group
            .iter()
            .map(|it| it.turns.iter().map(|turn| turn.step.rewards.clone()).collect())
            .collect();
        agreement.shape_group(&group, &mut rewards);
        let sum = |parts: &Vec<Vec<RewardPart>>| -> f64 {
            parts.iter().flatten().map(|part| part.value).sum()
        };
        rewards.iter().map(|parts| sum(parts) - if options.alone { 0.0 } else { 1.0 }).collect()
    }

    #[test]
    fn answers_are_compared_across_paraphrases_alone_and_some_of_them_say_as_much() {
        let same = "the capital is the city of Paris";
        let group = [
            answered("", same, 0),
            answered("", "nobody knows", 1),
            answered("p", same, 2),
            answered("p", same, 3),
            answered("q", "it is a town in the south", 4),
        ];
        let all = added(AgreementOptions::default(), &group);
        // Who says the same to the same words earns nothing by that.
        assert!((all[0] - 2.0 / 3.0).abs() < 0.1 && all[1] < 0.1, "{all:?}");
        assert!(all[2] == all[3] && all[2] > 0.3 && all[2] < 0.5, "{all:?}");
        let alone = added(AgreementOptions { alone: true, weight: 2.0, compared: None }, &group);
        assert!((alone[0] - 2.0 * all[0]).abs() < 1e-12, "nothing else is left");

        // Drawn again and again, the mean is that of all.
        let mut means = vec![0.0; group.len()];
        let rounds = 400;
        for round in 0..rounds {
            let mut group = group.clone();
            for (number, episode) in group.iter_mut().enumerate() {
                episode.seed = Seed::from_u64(1_000 * round + number as u64);
            }
            let options = AgreementOptions { compared: Some(1), ..AgreementOptions::default() };
            for (mean, value) in means.iter_mut().zip(added(options, &group)) {
                *mean += value / rounds as f64;
            }
        }
        for (mean, value) in means.iter().zip(&all) {
            assert!((mean - value).abs() < 0.08, "{means:?} of {all:?}");
        }
        let apart = [answered("", same, 0), answered("", same, 1)];
        assert_eq!(added(AgreementOptions::default(), &apart), [0.0; 2]);
        let wrong = AgreementOptions { weight: 0.0, compared: Some(0), alone: true };
        assert_eq!(wrong.problems().len(), 2);
    }
}
