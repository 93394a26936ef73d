//! Generated games as ALFWorld's own engine has played them, letter by letter.
//!
//! The traces were recorded with `scripts/record_traces.py` (TextWorld 1.7.0, alfworld 0.4.2).

use std::path::Path;

use spar_envs::household::replay_traces;

#[test]
fn the_reference_gives_the_same_answers_on_generated_games() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/household");
    let report = replay_traces(&fixtures.join("games"), &fixtures.join("traces")).unwrap();
    assert_eq!(report.files, 8);
    assert_eq!(report.traces, 16);
    assert_eq!(report.mismatches, 0, "{:#?}", report.described);
}
