//! What is said to a policy so that it does better, and records without it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::{Message, PromptTokens, Role, Trajectory};

use crate::GroupInProgress;

/// Characters of a piece of feedback at the most.
const MAX_CHARS: usize = 2_000;

/// What guides a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guidance {
    /// What came of the try before: what its judging says in words, or else what it was shown last.
    #[default]
    Feedback,
    /// The beginning of a solution: what the task says, or the actions of the environment's player who sees all.
    Solution,
}

/// In which context a policy is trained that was guided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuidedContext {
    /// As it was played: behind what guided it.
    #[default]
    Guided,
    /// As if nobody had said anything: what was sampled behind guidance is trained without it, its probabilities being those that it was drawn with.
    Plain,
}

/// The first share of a solution as a message; absent where there is none, or none of it.
pub(super) fn hint(solution: &[String], ratio: f64) -> Option<Message> {
    let text = match solution {
        [] => return None,
        // A text by itself is cut by its characters.
        [text] => {
            let count = text.chars().count();
            let take = (count as f64 * ratio).ceil() as usize;
            text.chars().take(take.min(count)).collect::<String>()
        }
        steps => {
            let take = (steps.len() as f64 * ratio).ceil() as usize;
            steps[..take.min(steps.len())].join("\n")
        }
    };
    (!text.is_empty()).then(|| Message::new(Role::User, format!("Hint: {text}")))
}

/// What guides another try behind this one; absent where there is nothing to say.
pub(super) async fn guide(
    group: &GroupInProgress<'_>,
    guidance: Guidance,
    ratio: f64,
    failed: &Trajectory,
) -> Option<Message> {
    match guidance {
        Guidance::Solution => hint(&group.solution().await, ratio),
        Guidance::Feedback => feedback(failed),
    }
}

fn feedback(failed: &Trajectory) -> Option<Message> {
    let told = failed.verdict.as_ref().map(|verdict| verdict.details.as_str());
    let shown = || {
        let last = failed.last_acting()?;
        Some(last.step.observation.text.as_str())
    };
    let text = told.filter(|text| !text.is_empty()).or_else(shown)?.trim();
    let text: String = text.chars().take(MAX_CHARS).collect();
    let message = || Message::new(Role::User, format!("An earlier try failed: {text}"));
    (!text.is_empty()).then(message)
}

/// Takes what was said before a turn out of the prompts of a trajectory, whose prompt there becomes `plain`, that of a trajectory in which nothing was said. `None` where a later prompt was laid out
/// anew from what stands before the end of that one, so that it may have the guidance too.
pub(super) fn without_guidance(
    mut trajectory: Trajectory,
    at: usize,
    plain: &PromptTokens,
) -> Option<Trajectory> {
    let turn = trajectory.turns.get(at)?;
    // Both go on from the same tokens.
    if turn.prompt.kept != plain.kept && at > 0 {
        return None;
    }
    let (guided, own) =
        (turn.prompt.appended.len() + turn.prompt.kept, plain.appended.len() + plain.kept);
    for later in &mut trajectory.turns[at + 1..] {
        let behind = later.prompt.kept.checked_sub(guided)?;
        later.prompt.kept = own + behind;
    }
    let turn = &mut trajectory.turns[at];
    turn.prompt.clone_from(plain);
    turn.injected.clear();
    Some(trajectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_the_first_share_of_a_solution() {
        let steps = ["a", "b", "c", "d"].map(str::to_owned);
        let text =
            |solution: &[String], ratio| hint(solution, ratio).map(|it| it.text().into_owned());
        assert_eq!(text(&steps, 0.25).as_deref(), Some("Hint: a"));
        assert_eq!(text(&steps, 0.6).as_deref(), Some("Hint: a\nb\nc"));
        assert_eq!(text(&["fünf".to_owned()], 0.5).as_deref(), Some("Hint: fü"));
        assert_eq!(text(&[], 1.0), None);
    }
}
