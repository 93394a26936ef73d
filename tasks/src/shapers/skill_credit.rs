//! What a skill has earned is told to the turn that saved it.

use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;

/// What an action that saves a skill begins with; behind it stands the skill's name.
pub const SAVE_SKILL: &str = "save skill ";

/// What an action that uses a skill begins with; behind it stands the skill's name.
pub const USE_SKILL: &str = "use skill ";

/// What the reward part of a skill begins with that was of use; behind it stands the skill's name.
pub const SKILL_PART: &str = "skill ";

/// Moves every part `skill NAME`, which a chain of tasks pays where a skill of an earlier task was used in one that was solved, to the turn that
/// saved the skill: `r'_t = r_t + sum of bonuses of the skills saved at t`, the sum over the episode staying what it was.
///
/// SAGE (arXiv 2512.17102), reconstructed from its abstract: "skill-integrated reward" beside the outcome; assumed: the step that created a skill has the
/// bonus. A part whose skill no turn has saved stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkillCredit;

impl SkillCredit {
    /// The turn that saved the skill of this name first.
    fn creator(trajectory: &Trajectory, name: &str) -> Option<usize> {
        trajectory.turns.iter().position(|turn| {
            let action = turn.parsed.action().filter(|_| turn.step.valid);
            let saved = action.and_then(|it| it.said().trim().strip_prefix(SAVE_SKILL));
            saved.is_some_and(|saved| saved.trim() == name)
        })
    }
}

impl RewardShaper for SkillCredit {
    fn name(&self) -> &'static str {
        "skill_credit"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        for turn in 0..rewards.len() {
            let parts = std::mem::take(&mut rewards[turn]);
            for part in parts {
                let name = part.name.strip_prefix(SKILL_PART);
                let creator = name.and_then(|name| Self::creator(trajectory, name));
                rewards[creator.filter(|it| *it < turn).unwrap_or(turn)].push(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::ParsedAction;

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn what_a_skill_earned_is_told_to_the_turn_that_saved_it() {
        let earned: &[(&str, f64)] =
            &[("goal", 1.0), ("skill door", 0.5), ("skill lamp", 0.25), ("skill own", 0.125)];
        let mut played = episode(&[&[], &[], &[("goal", 1.0)], &[], earned]);
        let said =
            ["save skill lamp", "save skill door", "go", "save skill own ", "use skill door"];
        for (turn, said) in played.turns.iter_mut().zip(said) {
            turn.parsed = ParsedAction::of(said);
        }
        // What was refused has saved nothing.
        played.turns[0].step.valid = false;
        let rewards = RewardShapers::new(vec![Box::new(SkillCredit)]).rewards(&played);
        assert_eq!(rewards, [0.0, 0.5, 1.0, 0.125, 1.25]);
        assert_eq!(
            rewards.iter().sum::<f64>(),
            RewardShapers::default().rewards(&played).iter().sum::<f64>()
        );
    }
}
