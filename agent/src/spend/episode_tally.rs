//! What one episode took.

use std::sync::{Arc, Mutex, PoisonError};

use spar_core::{Source, Spend, Trajectory};

/// Counts what the requests of one episode take, those of its graders among them: they are sent by the task that plays
/// it.
#[derive(Debug, Clone, Default)]
pub(crate) struct EpisodeTally(Arc<Mutex<Spend>>);

tokio::task_local! {
    static TALLY: EpisodeTally;
}

impl EpisodeTally {
    /// Counts what is sent while this goes on.
    pub(crate) async fn counting<T>(&self, doing: impl Future<Output = T>) -> T {
        TALLY.scope(self.clone(), doing).await
    }

    /// What was counted; absent where no request was.
    pub(crate) fn spend(&self) -> Option<Spend> {
        let spend = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (spend.requests > 0).then_some(spend)
    }

    /// What the requests of the episode whose task this is have cost so far, as far as that is known.
    pub(crate) fn cost() -> f64 {
        let cost = |tally: &Self| tally.0.lock().unwrap_or_else(PoisonError::into_inner).cost;
        TALLY.try_with(cost).unwrap_or_default()
    }

    /// Counts a request of the episode whose task this is; where it is none, nobody does.
    pub(crate) fn count(spend: Spend) {
        let _ = TALLY.try_with(|tally| {
            *tally.0.lock().unwrap_or_else(PoisonError::into_inner) += spend;
        });
    }
}

/// What an episode took, as its record tells it: of endpoints what was counted, beside what policies in this process took.
/// Absent where neither is told.
pub fn spend_of(trajectory: &Trajectory) -> Option<Spend> {
    add(trajectory.spend, local_spend_of(trajectory))
}

/// The tokens of the turns that a policy in this process sampled in this episode; absent where there are none.
pub(super) fn local_spend_of(trajectory: &Trajectory) -> Option<Spend> {
    let mut spend = Spend::default();
    for turn in &trajectory.turns {
        let is_own = !matches!(turn.source, Source::Inherited | Source::Demonstrated);
        if let (true, Some(input)) = (is_own && !turn.counts.endpoint, turn.counts.prompt) {
            spend += Spend {
                local_turns: 1,
                input_tokens: input as u64,
                output_tokens: turn.num_tokens() as u64,
                ..Spend::default()
            };
        }
    }
    (!spend.is_empty()).then_some(spend)
}

/// Both together.
pub(crate) fn add(one: Option<Spend>, other: Option<Spend>) -> Option<Spend> {
    match (one, other) {
        (Some(mut sum), Some(other)) => {
            sum += other;
            Some(sum)
        }
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_by_an_episode_is_its_own() {
        let request = Spend { requests: 1, input_tokens: 3, cost: 0.5, ..Spend::default() };
        EpisodeTally::count(request);
        let (one, other) = (EpisodeTally::default(), EpisodeTally::default());
        one.counting(async {
            EpisodeTally::count(request);
            tokio::task::yield_now().await;
            EpisodeTally::count(request);
            assert_eq!(EpisodeTally::cost(), 1.0);
        })
        .await;
        other.counting(async { assert_eq!(EpisodeTally::cost(), 0.0) }).await;
        assert_eq!(EpisodeTally::cost(), 0.0);
        assert_eq!(one.spend().map(|spend| (spend.requests, spend.input_tokens)), Some((2, 6)));
        assert_eq!(other.spend(), None);
        assert_eq!(add(one.spend(), Some(request)).unwrap().requests, 3);
        assert_eq!(add(None, None), None);
    }
}
