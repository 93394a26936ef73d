//! Golden numbers for tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) struct Case {
    pub(crate) params: Value,
    pub(crate) inputs: Value,
    pub(crate) outputs: Value,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"))
}

/// The file of this name in the folder of vectors, which need not be there.
fn vectors(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("SPAR_VECTORS")
        .map_or_else(|| own.join("../../shared/vectors"), PathBuf::from);
    folder.join(format!("{name}.json"))
}

fn read(path: &Path) -> Option<Value> {
    match std::fs::read_to_string(path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(error) => {
            println!("skipped: {}: {error}", path.display());
            None
        }
    }
}

/// The cases of the fixture `name`, and of the folder of vectors where it exists.
pub(crate) fn all_cases(name: &str) -> Vec<Value> {
    let own = read(&fixture(name)).expect("the fixture is there");
    let files = [Some(own), read(&vectors(name))];
    let cases =
        |mut file: Value| -> Vec<Value> { serde_json::from_value(file["cases"].take()).unwrap() };
    files.into_iter().flatten().flat_map(cases).collect()
}

/// Runs `check` on every case of the fixture `name`, and of the folder of vectors where it exists.
pub(crate) fn cases(name: &str, check: impl Fn(&Case, &dyn Fn(f64, f64))) {
    run(read(&fixture(name)).expect("the fixture is there"), &check);
    only_vectors(name, check);
}

/// The same of the folder of vectors alone.
pub(crate) fn only_vectors(name: &str, check: impl Fn(&Case, &dyn Fn(f64, f64))) {
    if let Some(file) = read(&vectors(name)) {
        run(file, &check);
    }
}

fn run(mut file: Value, check: &impl Fn(&Case, &dyn Fn(f64, f64))) {
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

/// A list of numbers.
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

/// A number by its name.
pub(crate) fn number(values: &Value, name: &str) -> f64 {
    float(&values[name])
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
