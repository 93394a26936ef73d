//! Foreign changes: texts that are held against each other, outputs with SEARCH/REPLACE blocks, files of predictions.

#![no_main]

use std::collections::BTreeMap;

use spar_swe::report::read_predictions;
use spar_swe::similarity::{search_replace_reward, similarity_reward, text_ratio, unified_diff};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\u{0}');
    let [a, b, output] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    if let Ok(ratio) = text_ratio(a, b) {
        assert!((0.0..=1.0).contains(&ratio));
        assert_eq!(ratio == 1.0, a == b);
    }
    if let Ok(diff) = unified_diff(a, b) {
        assert!(diff.len() <= 64 * (a.len() + b.len()) + 64);
    }
    let files = |text: &str| BTreeMap::from([("a".to_owned(), text.to_owned())]);
    if let Ok(reward) = similarity_reward(&files(a), &files(b), &files(output)) {
        assert!((0.0..=1.0).contains(&reward.value));
    }
    if let Ok(reward) = search_replace_reward(&files(a), &files(b), output) {
        assert!(reward.value == -1.0 || (0.0..=1.0).contains(&reward.value));
        assert_eq!(reward.value == -1.0, reward.problem.is_some());
    }
    if let Err(error) = read_predictions(output) {
        assert!(!error.to_string().is_empty());
    }
});
