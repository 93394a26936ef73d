//! A tiny policy learns.

use serde_json::Value;

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
    let summary: Value = serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
    let test = &summary["splits"]["test"];
    let rate = |side: usize| test[side]["success_rate"].as_f64().unwrap();
    assert_eq!(test[1]["episodes"], 200);
    assert!(rate(0) > 0.2, "imitation taught nothing: {test:#}");
    assert!(rate(1) > rate(0) + 0.08, "{} to {}", rate(0), rate(1));
    assert!(rate(1) > 0.5, "{test:#}");
    assert_eq!(summary["max_drift"], 0.0);
}

/// PPO at every level of time, and what its value head came to explain.
#[test]
fn ppo_with_a_value_head_raises_the_success_of_a_tiny_policy() {
    let folder = workplace();
    // Seeds 0 to 2: 0.53, 0.41 and 0.54 after imitation; in the end 0.75, 0.58 and 0.78 by token, 0.71, 0.63 and 0.77 by
    // turn, 0.80, 0.60 and 0.77 on two levels.
    for level in ["token", "turn", "bi_level"] {
        let credit = format!("reinforce.credit={{kind='gae',level='{level}',lambda=0.95}}");
        let settings = [
            "train",
            "frozen-lake-ppo",
            "--name",
            level,
            "--json",
            "--set",
            &credit,
            "--set",
            "warm_start.iterations=5",
            "--set",
            "reinforce.iterations=16",
            "--set",
            "evaluation.every=8",
            "--set",
            r#"data.test=["test"]"#,
        ];
        let summary: Value = serde_json::from_str(&succeed(folder.path(), &settings).out).unwrap();
        let test = &summary["splits"]["test"];
        let rate = |side: usize| test[side]["success_rate"].as_f64().unwrap();
        assert!(rate(1) > rate(0) + 0.1, "{level}: {} to {}", rate(0), rate(1));
        assert!(rate(1) > 0.5, "{level}: {test:#}");
        assert_eq!(summary["max_drift"], 0.0);
        let metrics = folder.path().join("runs").join(level).join("metrics.jsonl");
        let metrics = std::fs::read_to_string(metrics).unwrap();
        let records = metrics.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let explained: Vec<f64> =
            records.filter_map(|record| record["explained_variance"].as_f64()).collect();
        assert_eq!(explained[0], 0.0, "all values are 0 to begin with");
        let of_last = explained[explained.len() - 5..].iter().sum::<f64>() / 5.0;
        assert!(of_last > 0.1, "{level}: {explained:?}");
    }
}
