//! Slopes are derivatives.

use spar_core::Seed;

use super::rows::Draws;
use crate::objectives::{
    ObjectiveConfig, PolicyBatch, PolicyLoss, PolicyTokens, Tally, objective_registry,
};
use crate::testing::default_config;

/// Options beside the defaults of each objective, by name.
const OTHERS: &[(&str, &str)] = &[
    ("a_lol", "ratio = 'token'\nclip = 0.4"),
    ("a_lol", "ratio = 'none'"),
    ("awr", "beta = 0.3\nmax_weight = 2.0"),
    ("cispo", "clip_low = 0.2\nclip_high = 0.2\nmasked = true"),
    ("clip", "dual_clip = 1.5\nkl_weight = 0.3\nentropy_weight = 0.2"),
    ("clip", "kl_weight = 0.3\nkl_estimator = 'abs'"),
    ("clip_cov", "share = 0.5\ncov_low = 0.0"),
    ("direct_advantage", "beta = 0.7"),
    ("disco", "score = 'ratio'\ntau = 0.5\nbeta = 2.0"),
    ("disco", "basic = true\ndivergence = 'k1'\ndelta = 0.0"),
    ("dppo", "divergence = 'kl'\nbound_low = 0.05\nbound_high = 0.05\nmax_ratio = 1.2"),
    ("drpo", "lambda = 1.0\nmax_tokens = 9\ntau = 0.5\ndelta = 0.0"),
    ("f_dpg", "divergence = 'jensen_shannon'\nbeta = 0.5"),
    ("f_dpg", "divergence = 'total_variation'\npartition = 'known'"),
    ("gmpo", "clip_low = 0.1\nclip_high = 0.1"),
    ("gspo", "clip_low = 0.5\nclip_high = 0.5\nmean_advantages = true"),
    ("kdrl", "estimator = 'k3'\nweight = 0.5\nonly_failed = true"),
    ("kimi", "by_token = true\ntau = 0.7"),
    ("kl_cov", "share = 0.5\nweight = 0.4"),
    ("minpro", "cumulative = true\nclip_low = 0.6\nclip_high = 0.6"),
    ("nft", "epsilon = 0.1\nquestion_weight = 'failures'"),
    ("nft", "epsilon = 2.0\nquestion_weight = 'even'\nnegative_weight = 0.5"),
    ("pacs", "beta = 0.5\nby_length = true\nbalanced = true"),
    ("rec", "clip = 'one_side'\nweight = 'importance_sampling'"),
    (
        "rec",
        "clip = 'ring'\nring_low = 0.3\nring_high = 0.3\nregularizer = 'k2'\nregularizer_weight = 0.2",
    ),
    ("rec", "weight = 'advantage'\nregularizer = 'forward_kl'\nregularizer_weight = 0.2"),
    ("rl_plus", "uniform = 0.05\nfocus = 2.0"),
    ("sapo_gate", "tau_positive = 2.0\ntau_negative = 4.0"),
    ("topr", "threshold = 0.5\nnegative_weight = 0.3\npositive_weight = 2.0"),
    ("vespo", "k_positive = 1.0\nlambda_negative = 1.0"),
];

/// The loss of an update whose notes were taken before.
fn total(loss: &dyn PolicyLoss, rows: &[PolicyTokens], notes: &[Vec<f64>]) -> f64 {
    let of = |(index, row): (usize, &PolicyTokens)| {
        let notes = notes.get(index).map_or(&[][..], Vec::as_slice);
        loss.loss(row, notes, &mut Tally::default()).loss
    };
    rows.iter().enumerate().map(of).sum()
}

/// Moves one number of the rows, and compares how the loss changes with the slope that was told. Where it changes
/// otherwise on either side, it has no derivative.
fn compare(
    loss: &dyn PolicyLoss,
    (rows, notes): (&mut [PolicyTokens], &[Vec<f64>]),
    number: fn(&mut PolicyTokens) -> &mut Vec<f64>,
    (index, t): (usize, usize),
    slope: f64,
) -> bool {
    const STEP: f64 = 1e-6;
    let middle = number(&mut rows[index])[t];
    let mut at = |shift: f64| {
        number(&mut rows[index])[t] = middle + shift;
        let found = total(loss, rows, notes);
        number(&mut rows[index])[t] = middle;
        found
    };
    let (below, here, above) = (at(-STEP), at(0.0), at(STEP));
    let (left, right) = ((here - below) / STEP, (above - here) / STEP);
    if (left - right).abs() > 1e-4 * (1.0 + left.abs()) {
        return false;
    }
    let wanted = (above - below) / (2.0 * STEP);
    let name = loss.name();
    let is_close = (slope - wanted).abs() <= 1e-5 * (1.0 + wanted.abs());
    assert!(is_close, "{name}: the slope is {slope}, the derivative {wanted}: {loss:?}");
    true
}

#[test]
fn the_slopes_of_every_objective_are_the_derivatives_of_its_loss() {
    let tables = objective_registry().iter().map(|row| (row.name, ""));
    for (name, options) in tables.chain(OTHERS.iter().copied()) {
        let options: toml::Table = options.parse().unwrap();
        let config = ObjectiveConfig { options, ..default_config(name) };
        let Some(loss) = config.build().unwrap().into_policy_loss() else {
            // These are compared by tests of their own.
            assert!(["cpl", "dpo", "supervised"].contains(&name), "{name}");
            continue;
        };
        let mut compared = 0;
        for seed in 0..8 {
            let mut draws = Draws::new(Seed::from_u64(seed));
            // What looks at whole samples takes the weights and advantages of their tokens for equal.
            let mut rows = draws.rows(&[3, 4, 2, 5, 1, 3], loss.takes_mean_advantages());
            // One with positive and one with negative advantages come from outside.
            rows.iter_mut().step_by(3).for_each(|row| row.is_outside = true);
            let groups = [0, 0, 0, 1, 1, 1];
            let batch = PolicyBatch { samples: &rows, groups: &groups, seed: Seed::from_u64(1) };
            let notes = if loss.needs().present { loss.notes(&batch) } else { Vec::new() };
            for index in 0..rows.len() {
                let own = notes.get(index).map_or(&[][..], Vec::as_slice);
                let told = loss.loss(&rows[index], own, &mut Tally::default());
                for t in 0..rows[index].len() {
                    let moved = (&mut rows[..], &notes[..]);
                    compared += usize::from(compare(
                        loss.as_ref(),
                        moved,
                        |row| &mut row.logprobs,
                        (index, t),
                        told.slopes[t],
                    ));
                    if let Some(slope) = told.entropies.get(t) {
                        let moved = (&mut rows[..], &notes[..]);
                        let place = (index, t);
                        assert!(compare(
                            loss.as_ref(),
                            moved,
                            |row| &mut row.entropies,
                            place,
                            *slope
                        ));
                    }
                }
            }
        }
        assert!(compared > 8 * 12, "{name}: only {compared} were compared");
    }
}
