//! Golden numbers and small groups for the tests of estimators.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{GroupView, StepView};

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
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
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
