//! Golden numbers and small groups for the tests of estimators.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spar_core::{Lineage, PerTurnOrToken, Signals};

use super::{AdvantageEstimator, BatchView, EpisodeView, GroupView, StepView};

pub(crate) struct Case {
    pub(crate) params: Value,
    pub(crate) inputs: Value,
    pub(crate) outputs: Value,
}

/// Runs `check` on every case of the fixture `name`, and of the folder of vectors where it exists.
pub(crate) fn cases(name: &str, check: impl Fn(&Case, &dyn Fn(f64, f64))) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    run(&fixtures.join(format!("{name}.json")), &check);
    let folder = std::env::var_os("SPAR_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
        PathBuf::from,
    );
    let path = folder.join(format!("{name}.json"));
    if path.is_file() {
        run(&path, &check);
    } else {
        println!("skipped: {} is absent", path.display());
    }
}

fn run(path: &Path, check: &impl Fn(&Case, &dyn Fn(f64, f64))) {
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (rtol, atol) = (file["rtol"].as_f64().unwrap(), file["atol"].as_f64().unwrap());
    let cases = file["cases"].as_array_mut().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let mut take = |name: &str| case[name].take();
        let tag = take("tag");
        let case =
            Case { params: take("params"), inputs: take("inputs"), outputs: take("outputs") };
        check(&case, &|found, expected| {
            let near = (found - expected).abs() <= atol + rtol * expected.abs();
            assert!(near, "{tag}: found {found}, expected {expected}");
        });
    }
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(float).collect()
}

/// A number, of which JSON has those that are not finite as text.
fn float(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        value => value.as_f64().unwrap(),
    }
}

/// A table of numbers.
pub(crate) fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(floats).collect()
}

/// The numbers of a table where `mask` has a 1.
pub(crate) fn masked_rows(value: &Value, mask: &Value) -> Vec<Vec<f64>> {
    let of_row = |(row, mask): (Vec<f64>, Vec<f64>)| {
        row.into_iter().zip(mask).filter(|(_, mask)| *mask != 0.0).map(|(value, _)| value).collect()
    };
    rows(value).into_iter().zip(rows(mask)).map(of_row).collect()
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A step that earned `reward` with so many tokens, in a state of no name.
pub(crate) fn step_of(reward: f64, num_tokens: usize) -> StepView<'static> {
    StepView { reward, state: "", action: "".into(), next_state: None, executed: true, num_tokens }
}

/// A group of trajectories of one step each.
pub(crate) fn returns_view(returns: impl IntoIterator<Item = f64>) -> GroupView<'static> {
    let mut view = GroupView::default();
    for reward in returns {
        view.push([step_of(reward, 1)]);
    }
    view
}

/// Trajectories of (state, action, reward); the last next state is the end.
pub(crate) type SmallGroup = Vec<Vec<(String, String, f64)>>;

pub(crate) fn small_group(group: Vec<Vec<(u8, u8, f64)>>) -> SmallGroup {
    let step = |(state, action, reward): (u8, u8, f64)| {
        (format!("s{state}"), format!("a{action}"), reward)
    };
    group.into_iter().map(|steps| steps.into_iter().map(step).collect()).collect()
}

pub(crate) fn to_view(group: &SmallGroup) -> GroupView<'_> {
    let mut view = GroupView::default();
    for steps in group {
        view.push(steps.iter().enumerate().map(|(t, (state, action, reward))| StepView {
            reward: *reward,
            state,
            action: action.as_str().into(),
            next_state: steps.get(t + 1).map(|(state, ..)| state.as_str()),
            executed: true,
            num_tokens: 1,
        }));
    }
    view
}

/// The rows of a table by their group, in the order of the groups' names.
pub(crate) fn by_group(index: &Value) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (row, name) in index.as_array().unwrap().iter().enumerate() {
        groups.entry(name.to_string()).or_default().push(row);
    }
    groups.into_values().collect()
}

/// What rows of a case are as trajectories.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rows {
    /// One step each, which earned all of the row.
    Whole,
    /// A step for each token that the mask has.
    Tokens,
}

/// The rows of a case as a batch, and the row of each trajectory in it.
pub(crate) fn batch_of(case: &Case, rows_as: Rows) -> (BatchView<'static>, Vec<usize>) {
    let mask = &case.inputs["response_mask"];
    let rewards = rows(&case.inputs["token_level_rewards"]);
    let masked = masked_rows(&case.inputs["token_level_rewards"], mask);
    let groups = match &case.inputs["index"] {
        Value::Null => vec![(0..rewards.len()).collect()],
        index => by_group(index),
    };
    let view = |members: &Vec<usize>| {
        let mut view = GroupView::default();
        for &row in members {
            match rows_as {
                Rows::Whole => view.push([step_of(rewards[row].iter().sum(), masked[row].len())]),
                Rows::Tokens => view.push(masked[row].iter().map(|reward| step_of(*reward, 1))),
            }
        }
        view
    };
    (groups.iter().map(view).collect(), groups.concat())
}

/// Checks numbers of a batch against an output of a case, token by token where the mask has one, and that the output has 0
/// everywhere else.
pub(crate) fn check_tokens(
    case: &Case,
    near: &dyn Fn(f64, f64),
    output: &str,
    (batch, of_row): (&BatchView<'_>, &[usize]),
    found: PerTurnOrToken,
) {
    let mask = rows(&case.inputs["response_mask"]);
    let expected = rows(&case.outputs[output]);
    let found = found.into_tokens(&batch.num_tokens());
    assert_eq!(found.len(), expected.len());
    for (found, &row) in found.iter().zip(of_row) {
        let mut found = found.iter();
        for (is_token, expected) in mask[row].iter().zip(&expected[row]) {
            match *is_token != 0.0 {
                true => near(*found.next().unwrap(), *expected),
                false => near(0.0, *expected),
            }
        }
        assert_eq!(found.next(), None);
    }
}

/// Checks the advantages of an estimator that needs no signal on the rows of a case.
pub(crate) fn check_rows(
    case: &Case,
    near: &dyn Fn(f64, f64),
    estimator: &dyn AdvantageEstimator,
    rows_as: Rows,
) {
    let (batch, of_row) = batch_of(case, rows_as);
    let credit = estimator.estimate(&batch, &Signals::default()).unwrap();
    check_tokens(case, near, "advantages", (&batch, &of_row), credit.advantages);
}

/// A number among the parameters of a case.
pub(crate) fn number(params: &Value, name: &str) -> f64 {
    params[name].as_f64().unwrap()
}

/// Rows of steps as groups, with the rows of each trajectory's steps; steps carry `anchor_obs` as their state where it is given,
/// and were executed unless `extract_match` says no.
pub(crate) fn step_rows(case: &Case) -> Vec<(GroupView<'_>, Vec<Vec<usize>>)> {
    let rewards = floats(&case.inputs["step_rewards"]);
    let names = case.inputs["traj"].as_array().unwrap();
    let text = |row: usize| case.inputs["anchor_obs"][row].as_str().unwrap_or_default();
    let mut groups = Vec::new();
    for rows in by_group(&case.inputs["group"]) {
        let mut trajectories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for row in rows {
            trajectories.entry(names[row].as_str().unwrap()).or_default().push(row);
        }
        let members: Vec<Vec<usize>> = trajectories.into_values().collect();
        let mut view = GroupView::default();
        for rows in &members {
            view.push(rows.iter().map(|&row| StepView {
                state: text(row),
                executed: case.inputs["extract_match"][row].as_bool().unwrap_or(true),
                ..step_of(rewards[row], 1)
            }));
        }
        groups.push((view, members));
    }
    groups
}

/// Four trajectories of three turns with returns 1, 0, 0 and 1: the second forked off from the first behind its first turn, the third
/// behind its second, the fourth by itself.
pub(crate) fn forked_group() -> GroupView<'static> {
    let mut group = GroupView::default();
    let forks = [(1.0, None), (0.0, Some(1)), (0.0, Some(2)), (1.0, None)];
    for (index, (reward, fork)) in forks.into_iter().enumerate() {
        let lineage = fork.map_or_else(Lineage::default, |fork_turn| Lineage {
            parent: Some(0),
            fork_turn,
            ..Lineage::default()
        });
        let episode = EpisodeView { lineage, ..EpisodeView::new(index as u64) };
        group.push_episode(episode, [step_of(0.0, 1), step_of(0.0, 1), step_of(reward, 1)]);
    }
    group
}

/// Numbers for every signal that an estimator needs, the same everywhere.
pub(crate) fn signals_of(estimator: &dyn AdvantageEstimator, batch: &BatchView<'_>) -> Signals {
    let mut signals = Signals::default();
    for &signal in estimator.needs() {
        let stream = batch.trajectories().map(|t| vec![0.5; t.num_tokens()]).collect();
        signals.insert(signal, stream);
    }
    signals
}
