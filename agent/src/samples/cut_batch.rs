//! The samples of a batch, from cutting to weighing.

use spar_core::{Credit, Group, Sample, SampleOrigin, Signal, Signals, Trajectory};

use super::cut::{carries_weight, cut_samples};
use super::turn_mask::TurnMask;
use crate::SamplesError;

/// The samples of all groups of an iteration: cut, and not yet weighed.
///
/// ```
/// use spar_agent::CutBatch;
/// use spar_core::{Credit, Group};
///
/// let groups: Vec<Group> = Vec::new();
/// let batch = CutBatch::new(&groups)?;
/// let credit = Credit::of_turns(Vec::new());
/// assert!(batch.weigh(&credit, &[])?.is_empty());
/// # Ok::<(), spar_agent::SamplesError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CutBatch<'a> {
    trajectories: Vec<&'a Trajectory>,
    samples: Vec<Sample>,
    /// Where each trajectory ends in `samples`.
    ends: Vec<usize>,
}

/// The samples of one group, which can be cut as soon as it is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CutGroup {
    samples: Vec<Sample>,
    /// Where each trajectory ends in `samples`.
    ends: Vec<usize>,
}

impl CutGroup {
    /// Cuts the trajectories of a group, as [`cut_samples`] does.
    ///
    /// # Errors
    ///
    /// [`SamplesError::Trajectory`] when a trajectory contradicts itself.
    pub fn new(group: &Group) -> Result<Self, SamplesError> {
        let mut cut = Self::default();
        for trajectory in &group.trajectories {
            cut.samples.extend(cut_samples(trajectory)?);
            cut.ends.push(cut.samples.len());
        }
        Ok(cut)
    }
}

impl<'a> CutBatch<'a> {
    /// Cuts the trajectories of `groups`, as [`cut_samples`] does.
    ///
    /// # Errors
    ///
    /// [`SamplesError::Trajectory`] when a trajectory contradicts itself.
    pub fn new(groups: &'a [Group]) -> Result<Self, SamplesError> {
        let cut: Result<Vec<_>, _> = groups.iter().map(CutGroup::new).collect();
        Ok(Self::join(groups, cut?))
    }

    /// The samples of `groups` that were cut before, group by group in this order.
    ///
    /// # Panics
    ///
    /// When they are not as many as there are trajectories.
    pub fn join(groups: &'a [Group], cut: Vec<CutGroup>) -> Self {
        let trajectories: Vec<_> = groups.iter().flat_map(|group| &group.trajectories).collect();
        let (mut samples, mut ends) = (Vec::new(), Vec::with_capacity(trajectories.len()));
        for group in cut {
            ends.extend(group.ends.iter().map(|end| samples.len() + end));
            samples.extend(group.samples);
        }
        assert_eq!(ends.len(), trajectories.len(), "every group was cut");
        Self { trajectories, samples, ends }
    }

    /// The samples of all trajectories, for stages that fill their streams.
    pub fn samples_mut(&mut self) -> &mut [Sample] {
        &mut self.samples
    }

    /// The samples of each trajectory, in the order of the batch.
    pub fn by_trajectory(&self) -> impl Iterator<Item = &[Sample]> {
        (0..self.ends.len()).map(|index| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] };
            &self.samples[start..self.ends[index]]
        })
    }

    /// The signals that have been filled in the streams of all samples.
    pub fn signals(&self) -> Signals {
        let mut signals = Signals::default();
        type Stream = fn(&Sample) -> &[f32];
        let streams: [(Signal, Stream); 5] = [
            (Signal::Reference, |sample| &sample.reference_logprobs),
            (Signal::Old, |sample| &sample.old_logprobs),
            (Signal::Values, |sample| &sample.values),
            (Signal::Entropies, |sample| &sample.entropies),
            (Signal::SumSquares, |sample| &sample.sum_squares),
        ];
        for (signal, stream) in streams {
            if self.samples.iter().any(|sample| stream(sample).len() != sample.len()) {
                continue;
            }
            let of_sample = |sample: &Sample| {
                let sampled = sample.turns.iter().zip(stream(sample));
                sampled
                    .filter(|(turn, _)| **turn != Sample::OBSERVED)
                    .map(|(_, value)| f64::from(*value))
                    .collect::<Vec<_>>()
            };
            let lists = self.by_trajectory().map(|samples| samples.iter().flat_map(of_sample));
            signals.insert(signal, lists.map(Iterator::collect).collect());
        }
        signals
    }

    /// Weighs the samples with the credit of the batch, for the policy-gradient term and for imitating the
    /// best of every group.
    ///
    /// Every sampled token that had an alternative weighs what the credit says, 1 where it says nothing, and
    /// carries its advantage, and its return where there are any; forced and observed tokens weigh 0. Trajectories without tokens leave no sample, nor do those that were
    /// guided by a demonstrator, whose tokens no policy sampled, those whose tokens are gone because a secret
    /// [stood](Trajectory::redacted) in them, and those that are not `kept`, by their
    /// place in the batch: these count in nothing, also not in what a loss is divided by. Rows without an
    /// advantage are there: what counts in a loss is for its objective to say.
    ///
    /// The same tokens weigh as much in the cross-entropy term where their advantage is positive, so that an
    /// objective that imitates learns from the best of each group: behaviour cloning with the binary
    /// filter `1[A > 0]` of CRR (arXiv 2006.15134). Where all of a group did equally well, nothing is
    /// imitated.
    ///
    /// # Errors
    ///
    /// [`SamplesError::Credit`] when the credit is that of another batch, [`SamplesError::Kept`] when `kept`
    /// is, [`SamplesError::NotFinite`] when it has an advantage or weight that is no finite number.
    pub fn weigh(self, credit: &Credit, kept: &[bool]) -> Result<Vec<Sample>, SamplesError> {
        self.weigh_of(credit, kept, false)
    }

    /// As [`weigh`](Self::weigh), and what a demonstrator wrote is trained like what the policy sampled: such samples are
    /// [from outside](SampleOrigin::Outside). Their log-probabilities are nobody's until somebody fills them in.
    ///
    /// # Errors
    ///
    /// As [`weigh`](Self::weigh).
    pub fn weigh_with_demonstrations(
        self,
        credit: &Credit,
        kept: &[bool],
    ) -> Result<Vec<Sample>, SamplesError> {
        self.weigh_of(credit, kept, true)
    }

    fn weigh_of(
        mut self,
        credit: &Credit,
        kept: &[bool],
        with_demonstrations: bool,
    ) -> Result<Vec<Sample>, SamplesError> {
        let (found, expected) = (kept.len(), self.trajectories.len());
        if found != expected {
            return Err(SamplesError::Kept { found, expected });
        }
        let of_trajectory = |trajectory: &&Trajectory| {
            trajectory.turns.iter().map(|turn| turn.sampled.ids.len()).collect()
        };
        credit.check(&self.trajectories.iter().map(of_trajectory).collect::<Vec<_>>())?;
        let mut start = 0;
        let mut weighed = Vec::with_capacity(self.samples.len());
        for (index, (trajectory, &end)) in self.trajectories.iter().zip(&self.ends).enumerate() {
            let samples = &mut self.samples[start..end];
            start = end;
            let is_masked = trajectory.verdict.as_ref().is_some_and(|verdict| verdict.masked);
            let is_guided = trajectory.lineage.guided;
            let is_nobodys = (is_guided && !with_demonstrations) || trajectory.lineage.greedy;
            if is_nobodys || trajectory.redacted || is_masked || !kept[index] {
                continue;
            }
            let mut token = 0;
            for sample in samples {
                if is_guided {
                    sample.origin = SampleOrigin::Outside;
                }
                token = weigh_sample(sample, credit, (index, token))?;
                if carries_weight(sample) {
                    weighed.push(std::mem::take(sample));
                }
            }
        }
        Ok(weighed)
    }
}

/// Weighs a sample that begins with sampled token `token` of a trajectory, and returns the one behind it.
///
/// # Errors
///
/// [`SamplesError::NotFinite`] when a token that weighs something has an advantage, or it a weight, that is not finite as a number of 32 bits.
fn weigh_sample(
    sample: &mut Sample,
    credit: &Credit,
    (trajectory, mut token): (usize, usize),
) -> Result<usize, SamplesError> {
    if credit.returns.is_some() {
        sample.returns = vec![0.0; sample.len()];
    }
    for t in 0..sample.len() {
        if sample.turns[t] == Sample::OBSERVED {
            continue;
        }
        let turn = sample.turns[t] as usize;
        let place = token;
        token += 1;
        // Nothing stands before the first token that could have drawn it.
        if t == 0 {
            continue;
        }
        let advantage = credit.advantages.at(trajectory, turn, place);
        let weight = match sample.allowed.get(t).len() == 1 {
            true => 0.0,
            false => {
                credit.weights.as_ref().map_or(1.0, |weights| weights.at(trajectory, turn, place))
            }
        };
        for (name, value) in [("weight", weight), ("advantage", advantage)] {
            if weight != 0.0 && !(value as f32).is_finite() {
                return Err(SamplesError::NotFinite { name, trajectory, turn, value });
            }
        }
        sample.policy_weights[t] = weight as f32;
        sample.advantages[t] = advantage as f32;
        sample.cross_entropy_weights[t] = if advantage > 0.0 { weight as f32 } else { 0.0 };
        if let Some(returns) = &credit.returns {
            sample.returns[t] = returns.at(trajectory, turn, place) as f32;
        }
    }
    Ok(token)
}

/// The samples of one group, `advantages[i][t]` being that of turn `t` of trajectory `i`: cut and weighed as
/// [`CutBatch::weigh`] says.
///
/// # Errors
///
/// [`SamplesError`] when the advantages do not fit the group, or a trajectory contradicts itself.
pub fn group_samples(
    group: &Group,
    advantages: &[Vec<f64>],
    mask: TurnMask,
) -> Result<Vec<Sample>, SamplesError> {
    let groups = std::slice::from_ref(group);
    let batch = CutBatch::new(groups)?;
    let kept = vec![true; group.trajectories.len()];
    batch.weigh(&mask.hide(groups, Credit::of_turns(advantages.to_vec())), &kept)
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use proptest::prelude::*;
    use spar_core::{PerTurnOrToken, PolicyVersion, RewardPart, StopCause};
    use spar_tasks::RewardShapers;

    use super::super::test_trajectories::{group, sampled, turn};
    use super::*;
    use crate::credit::{BatchView, open_estimator};

    #[test]
    fn turns_join_while_the_prompt_grows() {
        let turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[&[10, 12], &[11]])),
            turn(4, &[3], sampled(&[13], &[])),
            turn(2, &[4], sampled(&[14], &[])),
        ];
        let samples =
            group_samples(&group(turns.clone()), &[vec![0.5, -1.0, 2.0]], TurnMask::None).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| sample.validate().is_ok() && sample.episode == 9));
        assert_eq!(samples[0].tokens, [1, 2, 10, 11, 3, 13]);
        assert_eq!(samples[0].policy_weights, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        assert_eq!(samples[0].advantages, [0.0, 0.0, 0.5, 0.5, 0.0, -1.0]);
        // Forced tokens and turns that were no better than the others' are not imitated.
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(samples[1].cross_entropy_weights, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(samples[0].allowed.get(2), [10, 12]);
        assert_eq!(samples[1].tokens, [1, 2, 4, 14]);
        assert_eq!(samples[1].policy_weights, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(samples[0].versions[2], PolicyVersion(3));
    }

    #[test]
    fn what_is_not_finite_is_refused_where_it_would_weigh() {
        let turns = vec![turn(0, &[1, 2], sampled(&[10], &[&[10, 12]]))];
        for value in [f64::NAN, f64::NEG_INFINITY, 1e39] {
            let refused = group_samples(&group(turns.clone()), &[vec![value]], TurnMask::None);
            let Err(SamplesError::NotFinite { name, trajectory, turn, .. }) = refused else {
                panic!("{value} is taken");
            };
            assert_eq!((name, trajectory, turn), ("advantage", 0, 0));
        }
        // Of a token that nothing else could have been, nothing is learned.
        let forced = vec![turn(0, &[1, 2], sampled(&[11], &[&[11]]))];
        assert!(group_samples(&group(forced), &[vec![f64::NAN]], TurnMask::None).is_ok());
    }

    #[test]
    fn turns_that_were_cut_off_weigh_nothing_where_that_is_asked_for() {
        let mut turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[])),
            turn(4, &[3], sampled(&[12, 13], &[])),
            turn(7, &[4], sampled(&[14], &[])),
        ];
        turns[1].stop = Some(StopCause::Length);
        // Of older files nothing is known.
        turns[2].stop = None;
        let group = group(turns);
        let weights = |mask| {
            let samples = group_samples(&group, &[vec![1.0; 3]], mask).unwrap();
            assert_eq!(samples.len(), 1);
            assert_eq!(samples[0].tokens, [1, 2, 10, 11, 3, 12, 13, 4, 14]);
            samples[0].policy_weights.clone()
        };
        assert_eq!(weights(TurnMask::None), [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
        assert_eq!(weights(TurnMask::CutOff), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        // Where nothing is left, there is no sample.
        let mut only = turn(0, &[1], sampled(&[2], &[]));
        only.stop = Some(StopCause::Length);
        let group = super::super::test_trajectories::group(vec![only]);
        assert!(group_samples(&group, &[vec![1.0]], TurnMask::CutOff).unwrap().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let group = group(vec![turn(0, &[1], sampled(&[2], &[]))]);
        let error = |advantages: &[Vec<f64>]| {
            let error = group_samples(&group, advantages, TurnMask::None).unwrap_err();
            format!("{error}: {}", error.source().unwrap())
        };
        assert_eq!(
            error(&[]),
            "weigh the samples of a batch: use the credit of a batch: 0 advantages for 1 trajectories"
        );
        assert!(error(&[vec![]]).ends_with("0 advantages for 1 turns of trajectory 0"));
        let groups = [group.clone()];
        let credit = Credit::of_turns(vec![vec![1.0]]);
        let error = CutBatch::new(&groups).unwrap().weigh(&credit, &[]);
        assert_eq!(
            error.unwrap_err().to_string(),
            "weigh the samples of a batch: told of 0 trajectories whether they are kept, of 1"
        );
        let broken =
            super::super::test_trajectories::group(vec![turn(5, &[1], sampled(&[2], &[]))]);
        assert!(matches!(
            group_samples(&broken, &[vec![1.0]], TurnMask::None),
            Err(SamplesError::Trajectory(_))
        ));
    }

    #[test]
    fn demonstrators_and_text_leave_no_policy_samples() {
        let mut guided = group(vec![turn(0, &[1], sampled(&[2], &[]))]);
        guided.trajectories[0].lineage.guided = true;
        assert!(group_samples(&guided, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
        let groups = [guided.clone()];
        let credit = Credit::of_turns(vec![vec![1.0]]);
        let outside = CutBatch::new(&groups).unwrap().weigh_with_demonstrations(&credit, &[true]);
        let outside = outside.unwrap();
        assert_eq!((outside[0].origin, outside[0].num_weighed()), (SampleOrigin::Outside, 1));
        guided.trajectories[0].lineage.guided = false;
        assert!(!group_samples(&guided, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
        guided.trajectories[0].redacted = true;
        assert!(group_samples(&guided, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
        let text = group(vec![turn(0, &[], sampled(&[], &[]))]);
        assert!(group_samples(&text, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
    }

    #[test]
    fn weights_come_from_credit_and_what_is_not_kept_leaves_nothing() {
        let turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[&[10, 12], &[11]])),
            turn(4, &[3], sampled(&[13], &[])),
        ];
        let groups = [group(turns.clone()), group(turns)];
        let credit = Credit {
            advantages: PerTurnOrToken::Turns(vec![vec![1.0, -1.0]; 2]),
            weights: Some(PerTurnOrToken::Tokens(vec![vec![0.5, 0.5, 0.25]; 2])),
            returns: None,
        };
        let batch = CutBatch::new(&groups).unwrap();
        let samples = batch.weigh(&credit, &[false, true]).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].policy_weights, [0.0, 0.0, 0.5, 0.0, 0.0, 0.25]);
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.0, 0.5, 0.0, 0.0, 0.0]);
        assert!(samples[0].returns.is_empty());
    }

    #[test]
    fn what_the_machinery_kept_from_being_judged_is_not_trained() {
        let turns = || vec![turn(0, &[1], sampled(&[10, 11], &[]))];
        let mut groups = [group(turns()), group(turns())];
        let masked = spar_core::Verdict { masked: true, ..Default::default() };
        groups[1].trajectories[0].verdict = Some(masked);
        let credit = Credit::of_turns(vec![vec![1.0]; 2]);
        let batch = CutBatch::new(&groups).unwrap();
        assert_eq!(batch.weigh(&credit, &[true, true]).unwrap().len(), 1);
        groups[1].trajectories[0].verdict = None;
        let batch = CutBatch::new(&groups).unwrap();
        assert_eq!(batch.weigh(&credit, &[true, true]).unwrap().len(), 2);
    }

    #[test]
    fn a_stream_that_is_not_in_all_samples_is_no_signal() {
        let groups =
            [group(vec![turn(0, &[1], sampled(&[10], &[])), turn(0, &[2], sampled(&[11], &[]))])];
        let mut batch = CutBatch::new(&groups).unwrap();
        assert_eq!(batch.signals(), Signals::default());
        batch.samples_mut()[0].values = vec![0.0, 0.5];
        assert_eq!(batch.signals(), Signals::default());
        batch.samples_mut()[1].values = vec![0.0, 0.25];
        let signals = batch.signals();
        assert_eq!(signals.filled().collect::<Vec<_>>(), [Signal::Values]);
        assert_eq!(signals.get(Signal::Values, &[2]).unwrap(), [[0.5, 0.25]]);
    }

    /// From values in the streams of samples to the advantages and returns that a learner reads there.
    #[test]
    fn values_reach_gae_and_its_returns_reach_the_samples() {
        let mut rewarded = turn(0, &[1], sampled(&[10, 11], &[]));
        rewarded.step.rewards.push(RewardPart { name: "success".to_owned(), value: 1.0 });
        let groups = [group(vec![rewarded.clone()]), group(vec![rewarded])];
        let mut cut = CutBatch::new(&groups).unwrap();
        cut.samples_mut()[0].values = vec![0.0, 0.25, 0.5];
        cut.samples_mut()[1].values = vec![0.0, 1.0, 1.0];
        let config = serde_json::from_str(r#"{ "kind": "gae", "normalize": false }"#).unwrap();
        let view = BatchView::shaped(&groups, &RewardShapers::default());
        let credit = open_estimator(&config).unwrap().estimate(&view, &cut.signals()).unwrap();
        let samples = cut.weigh(&credit, &[true, true]).unwrap();
        assert_eq!(samples[0].advantages, [0.0, 0.75, 0.5]);
        assert_eq!(samples[1].advantages, [0.0, 0.0, 0.0]);
        assert!(samples.iter().all(|sample| sample.returns == [0.0, 1.0, 1.0]));
    }

    proptest! {
        /// What a stage writes into samples comes back as a signal, and by way of credit into the samples.
        #[test]
        fn streams_survive_the_way_through_signals_and_credit(
            plans in prop::collection::vec(
                prop::collection::vec((0_usize..100, 0_usize..3, 0_usize..4), 0..6),
                0..4,
            ),
        ) {
            let mut groups = Vec::new();
            let mut num_tokens = Vec::new();
            for plan in plans {
                let (mut turns, mut length) = (Vec::new(), 0);
                for &(kept, appended, count) in &plan {
                    let kept = if kept < 60 { length } else { kept % (length + 1) };
                    turns.push(turn(kept, &vec![1; appended], sampled(&vec![2; count], &[])));
                    length = kept + appended + count;
                }
                num_tokens.push(plan.iter().map(|(_, _, count)| count).sum::<usize>());
                groups.push(group(turns));
            }
            let mut batch = CutBatch::new(&groups).unwrap();
            let mut number = 0.0;
            for sample in batch.samples_mut() {
                for t in 0..sample.len() {
                    let is_sampled = sample.turns[t] != Sample::OBSERVED;
                    number += f32::from(u8::from(is_sampled));
                    sample.values.push(if is_sampled { number } else { -1.0 });
                    sample.old_logprobs.push(0.0);
                }
            }
            let signals = batch.signals();
            let values = signals.get(Signal::Values, &num_tokens).unwrap().to_vec();
            let counted: Vec<f64> = values.iter().flatten().copied().collect();
            let expected: Vec<f64> = (1..=counted.len()).map(|number| number as f64).collect();
            prop_assert_eq!(counted, expected, "every sampled token once, in order");
            if !groups.iter().all(|group| group.trajectories[0].turns.iter().all(|turn| turn.sampled.ids.is_empty())) {
                prop_assert!(signals.get(Signal::Reference, &num_tokens).is_err());
            }
            let tokens = PerTurnOrToken::Tokens(values);
            let credit = Credit { advantages: tokens.clone(), weights: None, returns: Some(tokens) };
            let kept = vec![true; groups.len()];
            for sample in batch.weigh(&credit, &kept).unwrap() {
                for t in 1..sample.len() {
                    let is_sampled = sample.turns[t] != Sample::OBSERVED;
                    let expected = if is_sampled { sample.values[t] } else { 0.0 };
                    prop_assert_eq!(sample.returns[t], expected);
                    prop_assert_eq!(sample.advantages[t], expected);
                }
            }
        }

        #[test]
        fn masks_cover_sampled_tokens_only_and_rows_repeat_the_prompts(
            plan in prop::collection::vec(
                (0_usize..100, prop::collection::vec(0_u32..9, 0..4), prop::collection::vec(any::<bool>(), 0..4)),
                0..8,
            ),
        ) {
            let mut turns = Vec::new();
            // (tokens of prompt and answer, whether each was sampled in this turn and free)
            let mut expected: Vec<(Vec<u32>, Vec<bool>)> = Vec::new();
            let mut tokens: Vec<u32> = Vec::new();
            for (kept, appended, free) in plan {
                // Most turns keep everything.
                let kept = if kept < 70 { tokens.len() } else { kept % (tokens.len() + 1) };
                let ids: Vec<u32> = (0..free.len() as u32).map(|t| 100 + t).collect();
                let allowed: Vec<Vec<u32>> = ids.iter().zip(&free)
                    .map(|(id, free)| if *free { vec![*id, 999] } else { vec![*id] }).collect();
                let allowed: Vec<&[u32]> = allowed.iter().map(Vec::as_slice).collect();
                turns.push(turn(kept, &appended, sampled(&ids, &allowed)));
                tokens.truncate(kept);
                tokens.extend(&appended);
                let mut mask = vec![false; tokens.len()];
                tokens.extend(&ids);
                mask.extend(&free);
                if let Some(first) = mask.first_mut() {
                    *first = false;
                }
                expected.push((tokens.clone(), mask));
            }
            let advantages = vec![vec![1.0; turns.len()]];
            let samples = group_samples(&group(turns), &advantages, TurnMask::None).unwrap();
            let mut weights = 0;
            for sample in &samples {
                prop_assert!(sample.validate().is_ok());
                for t in 0..sample.len() {
                    prop_assert!(sample.policy_weights[t] == 0.0 || sample.tokens[t] >= 100);
                    prop_assert!(sample.policy_weights[t] == 0.0 || sample.allowed.get(t).len() != 1);
                    weights += usize::from(sample.policy_weights[t] != 0.0);
                }
            }
            let free: usize = expected.iter().map(|(_, mask)| mask.iter().filter(|m| **m).count()).sum();
            prop_assert_eq!(weights, free, "every free sampled token weighs once");
            for (tokens, mask) in &expected {
                let found = !mask.contains(&true) || samples.iter().any(|sample| {
                    sample.tokens.starts_with(tokens)
                        && mask.iter().zip(&sample.policy_weights).all(|(m, w)| !m || *w == 1.0)
                });
                prop_assert!(found, "a turn's prompt and answer stand at the start of a sample");
            }
        }
    }
}
