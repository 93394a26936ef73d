//! Laws that every estimator is held to, by one walk over the table.

use proptest::prelude::*;
use spar_core::{PerTurnOrToken, Signals};

use super::registry::{CreditConfig, credit_registry, open_estimator};
use super::test_vectors::{signals_of, step_of};
use super::{AdvantageEstimator, BatchView, CreditError, EpisodeView, GroupView, StepView};

/// What becomes of advantages when all rewards are multiplied by a number above 0.
#[derive(Clone, Copy, PartialEq)]
enum Scaling {
    /// They are multiplied by it.
    Linear,
    /// They stay, but for what epsilon does.
    Invariant,
    /// Something else: the formula knows sizes of rewards, or adds what is no reward.
    Broken,
}

/// Which laws an estimator keeps with its default options; that the order of groups and trajectories changes nothing, that nothing is
/// ever not finite, and that the shape is the batch's, every one keeps.
struct Laws {
    name: &'static str,
    scaling: Scaling,
    /// A number added to every return, at its last step, changes nothing.
    shift: bool,
    /// Without rewards all advantages are 0.
    nothing: bool,
    /// Trajectories of equal returns, earned at the end, have advantages of 0.
    equal: bool,
    /// A trajectory alone in its group, which comes to no situation twice, has advantages of 0.
    alone: bool,
    /// A trajectory whose reward is not known, in a situation of its own, has advantages of 0, and the others what they have without it.
    missing: bool,
}

const KEPT: Laws = Laws {
    name: "",
    scaling: Scaling::Invariant,
    shift: true,
    nothing: true,
    equal: true,
    alone: true,
    missing: true,
};

/// Estimators that look at steps and states: returns that are discounted on the way tell equal ends apart.
const OF_STEPS: Laws = Laws { scaling: Scaling::Linear, shift: false, equal: false, ..KEPT };
/// Those that read signals, which here are the same everywhere, and those that keep none of these laws.
const OF_SIGNALS: Laws = Laws {
    scaling: Scaling::Broken,
    shift: false,
    nothing: false,
    equal: false,
    alone: false,
    ..KEPT
};

const LAWS: &[Laws] = &[
    Laws { name: "grpo", ..KEPT },
    Laws { name: "gigpo", ..OF_STEPS },
    Laws { name: "salt", ..KEPT },
    Laws { name: "gae", ..OF_SIGNALS },
    // Returns are compared over the batch, so that one alone is still compared.
    Laws { name: "reinforce_pp", alone: false, ..KEPT },
    // Rewards are not looked at.
    Laws { name: "spa", missing: false, ..OF_SIGNALS },
    Laws { name: "archer", missing: false, ..OF_SIGNALS },
    // There is no second in a group of one, which is an error.
    Laws { name: "grpo_passk", alone: false, ..KEPT },
    Laws { name: "rloo", scaling: Scaling::Linear, ..KEPT },
    // Where no episode is greedy all are worth 0, as all laws have it.
    Laws { name: "remax", scaling: Scaling::Linear, ..KEPT },
    Laws { name: "opo", scaling: Scaling::Linear, ..KEPT },
    // It counts returns that are not 0.
    Laws { name: "gpg", scaling: Scaling::Linear, shift: false, ..KEPT },
    Laws { name: "gdpo", ..KEPT },
    // Its epsilon is a thousandth.
    Laws { name: "mc_grpo", scaling: Scaling::Broken, ..KEPT },
    Laws { name: "hgpo", ..OF_STEPS },
    // Turns are compared with all turns of their seat.
    Laws { name: "mars", alone: false, ..OF_STEPS },
    // A success is worth 1 whatever it is compared with.
    Laws {
        name: "r3l",
        scaling: Scaling::Broken,
        shift: false,
        equal: false,
        alone: false,
        ..KEPT
    },
    Laws { name: "ui_s1", ..OF_STEPS },
    Laws { name: "psr_nsr", ..OF_SIGNALS },
    Laws { name: "optimal_token_baseline", ..OF_SIGNALS },
    // What an executed action gets is no reward, and a return alone stands for itself.
    Laws { name: "spa_released", missing: false, ..OF_SIGNALS },
    Laws { name: "arpo", ..KEPT },
    Laws { name: "tree_ps", scaling: Scaling::Linear, ..KEPT },
    // A return is a success or none.
    Laws { name: "graph_gpo", scaling: Scaling::Broken, ..OF_STEPS },
    Laws { name: "rtmc", ..OF_STEPS },
    Laws { name: "graft", ..OF_STEPS },
    Laws { name: "ace", ..KEPT },
    Laws { name: "xrpo", ..KEPT },
    Laws { name: "by_hint", ..KEPT },
    // Groups are compared with each other.
    Laws { name: "copo", equal: false, alone: false, ..KEPT },
    Laws { name: "duration", ..KEPT },
    Laws { name: "v0_5", ..OF_SIGNALS },
    // Of equal returns the one that is like no other is worth more.
    Laws { name: "polychromic", scaling: Scaling::Linear, shift: false, equal: false, ..KEPT },
];

/// Groups of trajectories of (state, action, reward).
type Groups = Vec<Vec<Vec<(u8, u8, f64)>>>;

fn groups(rewards: impl Strategy<Value = f64> + Clone + 'static) -> impl Strategy<Value = Groups> {
    let steps = prop::collection::vec((0_u8..4, 0_u8..3, rewards), 1..5);
    prop::collection::vec(prop::collection::vec(steps, 1..5), 0..4)
}

/// Trajectories of (state, action, reward), in words.
type InWords = Vec<Vec<(String, String, f64)>>;

fn view(group: &InWords) -> GroupView<'_> {
    let mut view = GroupView::default();
    for (index, steps) in group.iter().enumerate() {
        let total: f64 = steps.iter().map(|step| step.2).sum();
        let mut episode = EpisodeView::new(index as u64);
        episode.parts.insert("reward".to_owned(), total);
        view.push_episode(
            episode,
            steps.iter().enumerate().map(|(t, (state, action, reward))| StepView {
                reward: *reward,
                state,
                action: action.as_str().into(),
                next_state: steps.get(t + 1).map(|(state, ..)| state.as_str()),
                executed: true,
                num_tokens: 1,
            }),
        );
    }
    view
}

/// Texts of states and actions, which views borrow.
struct Words(Vec<InWords>);

impl Words {
    fn of(groups: &Groups) -> Self {
        let step = |(state, action, reward): &(u8, u8, f64)| {
            (format!("s{state}"), format!("a{action}"), *reward)
        };
        let trajectory = |steps: &Vec<_>| steps.iter().map(step).collect();
        Self(groups.iter().map(|group| group.iter().map(trajectory).collect()).collect())
    }

    fn batch(&self) -> BatchView<'_> {
        // Episodes of different groups are different ones.
        let mut batch: BatchView<'_> = self.0.iter().map(view).collect();
        batch.number_episodes();
        batch
    }
}

/// Advantages token by token, or `None` where a group of one has no second.
fn estimate(estimator: &dyn AdvantageEstimator, groups: &Groups) -> Option<Vec<Vec<f64>>> {
    let words = Words::of(groups);
    let batch = words.batch();
    let signals: Signals = signals_of(estimator, &batch);
    let credit = match estimator.estimate(&batch, &signals) {
        Err(CreditError::GroupSize { .. }) => return None,
        credit => credit.unwrap(),
    };
    credit.check(&batch.num_tokens()).unwrap();
    let advantages = credit.advantages.into_tokens(&batch.num_tokens());
    assert!(advantages.iter().flatten().all(|value| value.is_finite()), "{}", estimator.name());
    Some(advantages)
}

fn estimators() -> impl Iterator<Item = (&'static Laws, Box<dyn AdvantageEstimator>)> {
    LAWS.iter().map(|laws| (laws, open_estimator(&CreditConfig::new(laws.name)).unwrap()))
}

fn near(one: &[Vec<f64>], two: &[Vec<f64>], tolerance: f64) -> bool {
    let pairs = one.iter().flatten().zip(two.iter().flatten());
    pairs.into_iter().all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())))
}

fn each_reward(groups: &Groups, change: impl Fn(usize, usize, f64) -> f64) -> Groups {
    let trajectory = |steps: &Vec<(u8, u8, f64)>| {
        let last = steps.len() - 1;
        steps.iter().enumerate().map(|(t, (s, a, r))| (*s, *a, change(t, last, *r))).collect()
    };
    groups.iter().map(|group| group.iter().map(trajectory).collect()).collect()
}

fn all_zero(advantages: &[Vec<f64>]) -> bool {
    advantages.iter().flatten().all(|value| value.abs() < 1e-9)
}

#[test]
fn every_estimator_declares_its_laws() {
    let mut declared: Vec<&str> = LAWS.iter().map(|laws| laws.name).collect();
    let mut rows: Vec<&str> = credit_registry().iter().map(|row| row.name).collect();
    declared.sort_unstable();
    rows.sort_unstable();
    assert_eq!(declared, rows);
}

#[test]
fn what_is_not_a_number_is_the_neutral_value() {
    let bad: Groups = vec![
        vec![vec![(0, 0, f64::NAN), (1, 0, 1.0)], vec![(0, 0, f64::INFINITY)], vec![(0, 1, 1.0)]],
        vec![vec![(0, 0, f64::NAN)], vec![(0, 0, f64::NEG_INFINITY)]],
    ];
    for (laws, estimator) in estimators() {
        let found = estimate(estimator.as_ref(), &bad).unwrap();
        assert_eq!(found.len(), 5, "{}", laws.name);
    }
}

#[test]
fn turns_without_tokens_and_episodes_without_turns_have_numbers() {
    let mut batch = BatchView::default();
    let groups: [&[&[(f64, usize)]]; 4] = [
        &[&[(1.0, 0)], &[], &[(0.0, 2), (1.0, 0)], &[(f64::NAN, 0)], &[(0.5, 0), (0.0, 1)]],
        &[&[], &[]],
        &[&[(0.0, 0)], &[(1.0, 0)]],
        &[],
    ];
    for group in groups {
        let mut view = GroupView::default();
        for steps in group {
            let mut episode = EpisodeView::new(0);
            let total = steps.iter().map(|step| step.0).sum();
            episode.parts.insert("reward".to_owned(), total);
            let step = |(reward, num_tokens): &(f64, usize)| step_of(*reward, *num_tokens);
            view.push_episode(episode, steps.iter().map(step));
        }
        batch.push(view);
    }
    batch.number_episodes();
    let num_tokens = batch.num_tokens();
    for (laws, estimator) in estimators() {
        let signals = signals_of(estimator.as_ref(), &batch);
        let credit = estimator.estimate(&batch, &signals).unwrap();
        credit.check(&num_tokens).unwrap();
        let parts = [Some(credit.advantages), credit.weights, credit.returns];
        for PerTurnOrToken::Turns(values) | PerTurnOrToken::Tokens(values) in
            parts.into_iter().flatten()
        {
            assert!(values.iter().flatten().all(|it| it.is_finite()), "{}: {values:?}", laws.name);
        }
    }
}

#[test]
fn of_what_is_not_known_nothing_is_learned() {
    let known: Groups = vec![
        vec![vec![(0, 0, 0.0), (1, 0, 1.0)], vec![(0, 1, 0.0)], vec![(0, 0, 0.25)]],
        vec![vec![(2, 0, 1.0)], vec![(2, 1, 0.0)]],
    ];
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut all = known.clone();
        all[0].insert(1, vec![(9, 9, value)]);
        for (laws, estimator) in estimators().filter(|(laws, _)| laws.missing) {
            let mut found = estimate(estimator.as_ref(), &all).unwrap();
            let missing = found.remove(1);
            assert_eq!(missing, [0.0], "{} of {value}", laws.name);
            let expected = estimate(estimator.as_ref(), &known).unwrap();
            assert!(near(&found, &expected, 1e-9), "{}: {found:?} {expected:?}", laws.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn laws_that_are_not_declared_broken_hold(
        groups in groups(-1.0..1.0_f64),
        // Of two, so that sums that are 0 stay 0.
        factor in prop::sample::select(vec![0.5, 2.0, 4.0]),
        // In eighths, as rewards are, so that returns that are equal stay so.
        shift in (-16_i32..16).prop_map(|eighths| f64::from(eighths) / 8.0),
        equal in -0.9..0.9_f64,
    ) {
        // Deviations that epsilon does not drown.
        let apart = each_reward(&groups, |_, _, reward| (reward * 8.0).round() / 8.0);
        for (laws, estimator) in estimators() {
            let of = |groups: &Groups| estimate(estimator.as_ref(), groups);
            let Some(plain) = of(&apart) else { continue };
            let name = laws.name;
            let scaled = of(&each_reward(&apart, |_, _, reward| reward * factor)).unwrap();
            match laws.scaling {
                Scaling::Linear => {
                    let expected: Vec<Vec<f64>> = plain
                        .iter()
                        .map(|row| row.iter().map(|value| value * factor).collect())
                        .collect();
                    prop_assert!(near(&scaled, &expected, 1e-4), "{name}: scaled");
                }
                Scaling::Invariant => prop_assert!(near(&scaled, &plain, 1e-3), "{name}: scaled"),
                Scaling::Broken => {}
            }
            if laws.shift {
                let at_end = |t: usize, last: usize, reward: f64| reward + if t == last { shift } else { 0.0 };
                let shifted = of(&each_reward(&apart, at_end)).unwrap();
                prop_assert!(near(&shifted, &plain, 1e-3), "{name}: shifted");
            }
            if laws.nothing {
                let nothing = of(&each_reward(&groups, |_, _, _| 0.0)).unwrap();
                prop_assert!(all_zero(&nothing), "{name}: nothing was earned");
            }
            if laws.equal {
                let at_end = |t: usize, last: usize, _| if t == last { equal } else { 0.0 };
                let alike = of(&each_reward(&groups, at_end)).unwrap();
                prop_assert!(all_zero(&alike), "{name}: equal returns");
            }
            let mut backward: Groups = apart.clone();
            backward.reverse();
            backward.iter_mut().for_each(|group| group.reverse());
            let mut found = of(&backward).unwrap();
            found.reverse();
            prop_assert!(near(&found, &plain, 1e-6), "{name}: another order");
        }
    }

    #[test]
    fn a_trajectory_alone_is_compared_with_nothing(rewards in prop::collection::vec(-1.0..1.0_f64, 1..5)) {
        let steps = rewards.iter().enumerate().map(|(t, reward)| (t as u8, 0, *reward)).collect();
        let groups: Groups = vec![vec![steps]];
        for (laws, estimator) in estimators().filter(|(laws, _)| laws.alone) {
            let found = estimate(estimator.as_ref(), &groups).unwrap();
            prop_assert!(all_zero(&found), "{}: {found:?}", laws.name);
        }
    }
}
