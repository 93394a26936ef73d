//! Where one episode parts from another.

use spar_core::Trajectory;

use super::episode_in_progress::UNFINISHED;

/// Where one episode parts from another: what comes before it is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BranchPoint {
    /// The turns that are taken over; the first turn of its own has this index.
    pub turn: usize,
    /// The tokens of the origin's answer in that turn that are taken over as well; 0 samples it anew.
    pub token: usize,
}

impl BranchPoint {
    /// Before a turn.
    pub fn before(turn: usize) -> Self {
        Self { turn, token: 0 }
    }

    /// Where an episode goes on that was paused: behind its last turn, or behind the tokens of the answer that was still being written.
    pub(crate) fn of_pause(paused: &Trajectory) -> Self {
        match paused.turns.last() {
            Some(last) if last.parsed.invalid_reason() == Some(UNFINISHED) => {
                Self { turn: paused.turns.len() - 1, token: last.sampled.ids.len() }
            }
            _ => Self::before(paused.turns.len()),
        }
    }

    /// Checks that `trajectory` has what is to be taken over.
    pub(super) fn check(self, trajectory: &Trajectory) -> Result<(), BranchError> {
        let Self { turn, token } = self;
        if trajectory.redacted {
            return Err(BranchError::Redacted);
        }
        let turns = trajectory.turns.len();
        // Behind a turn that ended the task nothing comes.
        let last = trajectory.turns.iter().position(|turn| turn.step.terminated).unwrap_or(turns);
        if turn > last || (turn == turns && token > 0) {
            return Err(BranchError::NoSuchTurn { turn, turns: last });
        }
        let tokens = trajectory.turns.get(turn).map_or(0, |turn| turn.sampled.ids.len());
        let is_unfinished = trajectory
            .turns
            .get(turn)
            .is_some_and(|turn| turn.parsed.invalid_reason() == Some(UNFINISHED));
        // Behind its last token an answer has nothing left to sample, unless it was paused there.
        if token > 0 && (token > tokens || (token == tokens && !is_unfinished)) {
            return Err(BranchError::NoSuchToken { turn, token, tokens });
        }
        Ok(())
    }
}

/// An episode could not be forked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BranchError {
    /// The origin does not go on from there.
    #[error("fork an episode at turn {turn}: it goes on from turns up to {turns}")]
    NoSuchTurn {
        /// The turn that was asked for, from 0.
        turn: usize,
        /// The last turn that there is something to do in.
        turns: usize,
    },
    /// The origin's answer is shorter.
    #[error("fork an episode in turn {turn} behind token {token}: the answer has {tokens}")]
    NoSuchToken {
        /// The turn, from 0.
        turn: usize,
        /// Tokens to be taken over.
        token: usize,
        /// Tokens that the answer has.
        tokens: usize,
    },
    /// The origin's tokens are gone.
    #[error("fork an episode in which a secret stood: its tokens are not kept")]
    Redacted,
    /// A second environment could not be had.
    #[error("fork the environment of an episode at turn {turn}")]
    Environment {
        /// The turn, from 0.
        turn: usize,
        /// What was wrong.
        #[source]
        source: spar_envs::EnvironmentError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::tests::run;
    use crate::policies::ScriptedPolicy;
    use crate::{EpisodeConfig, Player};

    #[tokio::test]
    async fn only_what_is_there_can_be_taken_over() {
        let policy = ScriptedPolicy::new(["right", "left", "right", "right", "right"]);
        let trajectory = run(Player::Policy(&policy), &EpisodeConfig::default()).await;
        assert_eq!(trajectory.turns.len(), 5);
        let check = |turn, token| BranchPoint { turn, token }.check(&trajectory);
        for (turn, token) in [(0, 0), (0, 1), (4, 0), (4, "right".len())] {
            check(turn, token).unwrap();
        }
        let past_the_end = check(5, 0).unwrap_err().to_string();
        assert_eq!(past_the_end, "fork an episode at turn 5: it goes on from turns up to 4");
        assert!(matches!(check(6, 0), Err(BranchError::NoSuchTurn { turns: 4, .. })));
        let redacted = Trajectory { redacted: true, ..trajectory.clone() };
        let refused = BranchPoint::before(1).check(&redacted);
        assert!(matches!(refused, Err(BranchError::Redacted)));
        // One more token ends the turn.
        let whole = check(1, "left".len() + 1).unwrap_err().to_string();
        assert_eq!(whole, "fork an episode in turn 1 behind token 5: the answer has 5");
    }
}
