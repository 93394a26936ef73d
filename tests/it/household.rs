//! The household engine on ALFWorld's own games, which are not part of this repository.

use std::path::{Path, PathBuf};

use crate::support::succeed;

/// `SPAR_ALFWORLD_DATA`, by default `../shared/alfworld`; `None` is printed as skipped.
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("SPAR_ALFWORLD_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/alfworld"),
        PathBuf::from,
    );
    let data = data.canonicalize().ok().filter(|data| data.join("json_2.1.1").is_dir());
    if data.is_none() {
        println!("skipped: needs ALFWorld's games; set SPAR_ALFWORLD_DATA");
    }
    data
}

#[test]
fn recordings_of_the_reference_are_met_letter_by_letter() {
    let Some(data) = data() else { return };
    let traces = data.join("traces");
    if !traces.is_dir() {
        println!("skipped: needs recordings in {}", traces.display());
        return;
    }
    let here = Path::new(".");
    let (data, traces) = (data.to_str().unwrap(), traces.to_str().unwrap());
    let arguments = ["conformance", "household", "--data", data, "--traces", traces, "--json"];
    let report: serde_json::Value = serde_json::from_str(&succeed(here, &arguments).out).unwrap();
    assert_eq!(report["mismatches"], 0, "{report:#}");
    assert!(report["records"].as_u64() > Some(200), "{report}");
}

#[test]
fn real_games_are_evaluated_and_validated() {
    let Some(data) = data() else { return };
    let here = Path::new(".");
    for format in ["json_2.1.1", "json_2.1.3_style"] {
        let folder = data.join(format);
        let suite = ["--data", folder.to_str().unwrap(), "--limit", "12"];
        let eval = ["eval", "--suite", "alfworld", "--policy", "expert", "--json"];
        let report = succeed(here, &[&eval[..], &suite].concat()).out;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["evaluations"][0]["split"], "valid_unseen");
        assert_eq!(report["evaluations"][0]["overall"]["successes"], 12);
        let valid = succeed(here, &[&["validate", "alfworld"][..], &suite].concat());
        assert!(valid.out.contains("nothing is wrong"), "{}", valid.out);
    }
}
