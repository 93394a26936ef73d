//! A tiny policy learns.

use crate::support::{succeed, workplace};

#[test]
fn reinforcement_raises_the_success_of_a_tiny_policy() {
    let folder = workplace();
    let settings = [
        "train",
        "frozen-lake",
        "--name",
        "lake",
        "--json",
        // Seeds 0 to 2: 0.53, 0.41 and 0.54 after imitation, 0.77, 0.59 and 0.74 in the end.
        "--set",
        "warm_start.iterations=5",
        "--set",
        "reinforce.iterations=24",
        "--set",
        "evaluation.every=8",
        "--set",
        r#"data.test=["test"]"#,
    ];
    let summary: serde_json::Value =
        serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
    let test = &summary["splits"]["test"];
    let rate = |side: usize| test[side]["success_rate"].as_f64().unwrap();
    assert_eq!(test[1]["episodes"], 200);
    assert!(rate(0) > 0.2, "imitation taught nothing: {test:#}");
    assert!(rate(1) > rate(0) + 0.08, "{} to {}", rate(0), rate(1));
    assert!(rate(1) > 0.5, "{test:#}");
    assert_eq!(summary["max_drift"], 0.0);
}
