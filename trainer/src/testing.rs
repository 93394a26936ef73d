//! Golden numbers and toy models for the tests of this crate.

use std::path::PathBuf;

use serde_json::Value;

/// The cases of a golden file, from the folder in `SPAR_VECTORS` where it has the file,
/// else from the fixtures.
pub(crate) fn golden(name: &str) -> Vec<Value> {
    let file = format!("{name}.json");
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(&file);
    let path = std::env::var_os("SPAR_VECTORS")
        .map(|folder| PathBuf::from(folder).join(&file))
        .filter(|path| path.exists())
        .unwrap_or(fixture);
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["cases"].as_array().unwrap().clone()
}

/// A number of a golden file, which may be written as a word.
pub(crate) fn number(value: &Value) -> f64 {
    match value {
        Value::String(word) => word.parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

/// A list of numbers.
pub(crate) fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// A list of lists of numbers.
pub(crate) fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(vector).collect()
}

/// Fails unless the numbers agree to `tolerance`, absolutely or relatively.
#[track_caller]
pub(crate) fn assert_close(found: f64, wanted: f64, tolerance: f64) {
    let bound = tolerance * (1.0 + wanted.abs());
    assert!((found - wanted).abs() <= bound, "found {found}, wanted {wanted}");
}
