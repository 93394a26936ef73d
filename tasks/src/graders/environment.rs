//! What the environment itself judges.

use async_trait::async_trait;
use spar_core::Verdict;

use super::{GradedEpisode, Grader, GradingPlace};
use crate::GraderError;

/// The environment's own verdict, as it stands where no graders are named; where its steps have said it all, success is the
/// last step's, and the rewards are theirs.
#[derive(Debug, Clone, Copy)]
pub struct OwnVerdict;

#[async_trait]
impl Grader for OwnVerdict {
    fn name(&self) -> &'static str {
        "environment"
    }

    fn has_named_parts(&self) -> bool {
        true
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let own = place.own_verdict().await?;
        Ok(own.unwrap_or_else(|| Verdict {
            success: episode.trajectory.last_acting().is_some_and(|turn| turn.step.success),
            ..Verdict::default()
        }))
    }
}
