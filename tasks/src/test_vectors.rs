//! Golden numbers for tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The cases of the fixture `name`, and of the folder of vectors where it exists.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("SPAR_VECTORS")
        .map_or_else(|| own.join("../../shared/vectors"), PathBuf::from);
    let fixture = std::fs::read_to_string(own.join(format!("tests/fixtures/{name}.json"))).unwrap();
    let mut texts = vec![fixture];
    let path = folder.join(format!("{name}.json"));
    match std::fs::read_to_string(&path) {
        Ok(text) => texts.push(text),
        Err(error) => println!("skipped: {}: {error}", path.display()),
    }
    let cases = |text: &String| -> Vec<Value> {
        let mut file: Value = serde_json::from_str(text).unwrap();
        serde_json::from_value(file["cases"].take()).unwrap()
    };
    texts.iter().flat_map(cases).collect()
}

/// A list of numbers.
pub(crate) fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}
