//! From trajectories to training samples.

use serde::{Deserialize, Serialize};
use spar_core::{Group, Sample, Trajectory, Turn};

use crate::credit::Ownership;
use crate::{ConfigError, SamplesError};

/// How demonstrations weigh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DemonstrationConfig {
    /// Cross-entropy weight of observation tokens; 0 or more. Default 0.1.
    pub observation_weight: f32,
    /// Cross-entropy weight of action tokens that were the only ones allowed; 0 or more.
    /// Default 0.
    pub forced_weight: f32,
}

impl Default for DemonstrationConfig {
    fn default() -> Self {
        Self { observation_weight: 0.1, forced_weight: 0.0 }
    }
}

impl DemonstrationConfig {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] lists all settings that are outside their range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let weights = [
            ("observation_weight", self.observation_weight),
            ("forced_weight", self.forced_weight),
        ];
        let bad = |weight: f32| !(weight.is_finite() && weight >= 0.0);
        let tell = |(name, weight)| format!("{name} is {weight}, must be 0 or more");
        ConfigError::refuse(weights.into_iter().filter(|(_, w)| bad(*w)).map(tell).collect())
    }
}

/// Which turns of a group carry weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnMask {
    /// All of them.
    #[default]
    None,
    /// Those whose completion the policy ended itself: one that was cut off is no choice of its own.
    CutOff,
}

impl TurnMask {
    fn hides(self, turn: &Turn) -> bool {
        match self {
            Self::None => false,
            Self::CutOff => turn.is_cut_off(),
        }
    }
}

/// The samples of a group for the policy-gradient term, and for imitating the best of them.
///
/// `advantages[i][t]` belongs to turn `t` of trajectory `i`. Turns join one sample while the next
/// prompt begins with exactly the tokens so far; otherwise a new sample begins under the same
/// episode. Every sampled token that had an alternative weighs 1 and carries its turn's
/// advantage; forced and observed tokens weigh 0, as do those of turns that `mask` hides.
/// What trajectories that were forked off from each other share is trained once, as [`Ownership`] says.
/// Trajectories without tokens, and those that were guided by a demonstrator, whose tokens no policy
/// sampled, leave no sample. Rows without an advantage are there as well: what counts in a loss is for
/// its objective to say.
///
/// The same tokens weigh 1 in the cross-entropy term where their advantage is positive, so that an
/// objective that imitates learns from the best of each group: behaviour cloning with the binary
/// filter `1[A > 0]` of CRR (arXiv 2006.15134). Where all of a group did equally well, nothing is
/// imitated.
///
/// # Errors
///
/// [`SamplesError`] when the advantages do not fit the group, or a trajectory contradicts itself.
pub fn group_samples(
    group: &Group,
    advantages: &[Vec<f64>],
    mask: TurnMask,
) -> Result<Vec<Sample>, SamplesError> {
    let check = |what, found, expected| match found == expected {
        true => Ok(()),
        false => Err(SamplesError::Advantages { task: group.task.clone(), found, expected, what }),
    };
    check("trajectories", advantages.len(), group.trajectories.len())?;
    let mut samples = Vec::new();
    for (trajectory, advantages) in group.trajectories.iter().zip(advantages) {
        check("turns", advantages.len(), trajectory.turns.len())?;
    }
    let ownership = Ownership::of(group);
    for (index, trajectory) in group.trajectories.iter().enumerate() {
        if trajectory.lineage.guided {
            continue;
        }
        cut(trajectory, &mut samples, |turn, token, is_forced| {
            let is_owned = ownership.owns(index, turn, token);
            let weighs = is_owned && !is_forced && !mask.hides(&trajectory.turns[turn]);
            let advantage = match is_owned {
                true => ownership.advantage(advantages, index, turn, token),
                false => 0.0,
            };
            Weights {
                policy: if weighs { 1.0 } else { 0.0 },
                advantage: advantage as f32,
                cross_entropy: if weighs && advantage > 0.0 { 1.0 } else { 0.0 },
                observation: 0.0,
            }
        })?;
    }
    Ok(samples)
}

/// The samples of a demonstration for the cross-entropy term.
///
/// Turns join samples as in [`group_samples`]. Action tokens weigh 1, observation tokens and forced
/// tokens as `config` says. Where a new sample begins, what it repeats from the one before weighs
/// nothing. Nor do turns that a policy [led](crate::RollIn) to the demonstration with: where
/// nobody took over from it, there is no sample.
///
/// # Errors
///
/// [`SamplesError`] when the trajectory contradicts itself.
pub fn demonstration_samples(
    trajectory: &Trajectory,
    config: &DemonstrationConfig,
) -> Result<Vec<Sample>, SamplesError> {
    let mut samples = Vec::new();
    // What a guided episode is recorded under is the demonstrator's name.
    let leads = |turn: usize| {
        trajectory.lineage.guided && trajectory.turns[turn].author != trajectory.policy
    };
    cut(trajectory, &mut samples, |turn, _, is_forced| Weights {
        policy: 0.0,
        advantage: 0.0,
        cross_entropy: match (leads(turn), is_forced) {
            (true, _) => 0.0,
            (false, true) => config.forced_weight,
            (false, false) => 1.0,
        },
        observation: if leads(turn) { 0.0 } else { config.observation_weight },
    })?;
    Ok(samples)
}

/// What the tokens of a turn weigh.
struct Weights {
    policy: f32,
    advantage: f32,
    cross_entropy: f32,
    /// Cross-entropy weight of the observation tokens that come before the turn.
    observation: f32,
}

/// Cuts a trajectory into samples; `weigh(turn, token, is_forced)` tells what its tokens weigh.
fn cut(
    trajectory: &Trajectory,
    samples: &mut Vec<Sample>,
    weigh: impl Fn(usize, usize, bool) -> Weights,
) -> Result<(), SamplesError> {
    trajectory.validate()?;
    let new_sample = || Sample { episode: trajectory.episode, ..Sample::default() };
    let mut sample = new_sample();
    for (index, turn) in trajectory.turns.iter().enumerate() {
        if turn.prompt.kept < sample.len() {
            let mut next = new_sample();
            sample.tokens[..turn.prompt.kept]
                .iter()
                .for_each(|token| next.push_observed(*token, 0.0));
            finish(std::mem::replace(&mut sample, next), samples);
        }
        let observation_weight = weigh(index, 0, false).observation;
        for &token in &turn.prompt.appended {
            // Nothing stands before the first token that could predict it.
            let weight = if sample.is_empty() { 0.0 } else { observation_weight };
            sample.push_observed(token, weight);
        }
        let sampled = &turn.sampled;
        for (t, &token) in sampled.ids.iter().enumerate() {
            let allowed = sampled.allowed.get(t).map_or(&[][..], Vec::as_slice);
            let (logprob, version) = (sampled.logprobs[t], sampled.versions[t]);
            if sample.is_empty() {
                sample.push(token, 0.0, 0.0, 0.0, logprob, version, allowed);
                continue;
            }
            let weights = weigh(index, t, allowed.len() == 1);
            sample.push(
                token,
                weights.policy,
                weights.advantage,
                weights.cross_entropy,
                logprob,
                version,
                allowed,
            );
        }
    }
    finish(sample, samples);
    Ok(())
}

/// Keeps a sample in which something carries weight.
fn finish(sample: Sample, samples: &mut Vec<Sample>) {
    let weighs = |weights: &[f32]| weights.iter().any(|weight| *weight != 0.0);
    if weighs(&sample.policy_weights) || weighs(&sample.cross_entropy_weights) {
        samples.push(sample);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use spar_core::{
        EndReason, Lineage, Observation, ParsedAction, PolicyVersion, PromptTokens, SampledTokens,
        Seed, Source, Step, StopCause, TRAJECTORY_VERSION,
    };

    use super::*;

    pub(crate) fn turn(kept: usize, appended: &[u32], sampled: SampledTokens) -> Turn {
        Turn {
            prompt: PromptTokens { kept, appended: appended.to_vec() },
            injected: Vec::new(),
            source: Source::Sampled,
            author: "a".to_owned(),
            text: String::new(),
            sampled,
            stop: Some(StopCause::EndOfTurn),
            parsed: ParsedAction::Action { text: String::new() },
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
        }
    }

    pub(crate) fn sampled(ids: &[u32], allowed: &[&[u32]]) -> SampledTokens {
        SampledTokens {
            ids: ids.to_vec(),
            logprobs: vec![-0.5; ids.len()],
            versions: vec![PolicyVersion(3); ids.len()],
            allowed: allowed.iter().map(|list| list.to_vec()).collect(),
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
            policy: "p".to_owned(),
            first_observation: Observation::default(),
            turns,
            end: EndReason::Terminated,
            success: true,
            lineage: Lineage::default(),
            seat: 0,
            refills: 0,
            wall_time: Duration::ZERO,
        }
    }

    fn group(turns: Vec<Turn>) -> Group {
        Group { task: "t".to_owned(), trajectories: vec![trajectory(turns)] }
    }

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
        let samples =
            demonstration_samples(&trajectory(turns), &DemonstrationConfig::default()).unwrap();
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.1, 1.0, 0.0, 0.1, 1.0]);
        assert_eq!(samples[1].cross_entropy_weights, [0.0, 0.0, 0.1, 1.0]);
        assert!(samples.iter().all(|sample| sample.policy_weights.iter().all(|w| *w == 0.0)));
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
        let group = self::group(vec![only]);
        assert!(group_samples(&group, &[vec![1.0]], TurnMask::CutOff).unwrap().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let group = group(vec![turn(0, &[1], sampled(&[2], &[]))]);
        let error = group_samples(&group, &[], TurnMask::None).unwrap_err().to_string();
        assert_eq!(error, "make samples of task `t`: 0 advantages for 1 trajectories");
        let error = group_samples(&group, &[vec![]], TurnMask::None).unwrap_err().to_string();
        assert_eq!(error, "make samples of task `t`: 0 advantages for 1 turns");
        let broken = self::group(vec![turn(5, &[1], sampled(&[2], &[]))]);
        assert!(matches!(
            group_samples(&broken, &[vec![1.0]], TurnMask::None),
            Err(SamplesError::Trajectory(_))
        ));
        let config = DemonstrationConfig { observation_weight: -1.0, ..Default::default() };
        assert!(config.validate().is_err());
    }

    #[test]
    fn demonstrators_and_text_leave_no_policy_samples() {
        let mut guided = group(vec![turn(0, &[1], sampled(&[2], &[]))]);
        guided.trajectories[0].lineage.guided = true;
        assert!(group_samples(&guided, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
        let text = group(vec![turn(0, &[], sampled(&[], &[]))]);
        assert!(group_samples(&text, &[vec![1.0]], TurnMask::None).unwrap().is_empty());
    }

    #[test]
    fn what_a_policy_led_with_is_not_imitated() {
        let mut turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[])),
            turn(4, &[3], sampled(&[12], &[])),
            turn(6, &[4], sampled(&[13], &[])),
        ];
        turns[0].author = "local".to_owned();
        turns[1].author = "expert".to_owned();
        turns[2].author = "expert".to_owned();
        let mut led = Trajectory { policy: "expert".to_owned(), ..trajectory(turns) };
        led.lineage.guided = true;
        let config = DemonstrationConfig::default();
        let samples = demonstration_samples(&led, &config).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].tokens, [1, 2, 10, 11, 3, 12, 4, 13]);
        assert_eq!(samples[0].cross_entropy_weights, [0.0, 0.0, 0.0, 0.0, 0.1, 1.0, 0.1, 1.0]);
        led.turns.truncate(1);
        assert!(demonstration_samples(&led, &config).unwrap().is_empty());
    }

    proptest! {
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
