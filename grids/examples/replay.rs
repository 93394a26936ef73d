//! Replays recordings of the package `minigrid`, as `spar conformance minigrid` does, without building all of spar.
//!
//! ```sh
//! cargo run -p spar-grids --example replay -- FILE_OR_FOLDER
//! ```

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("give a file or a folder of recordings")?;
    let report = spar_grids::minigrid::replay(Path::new(&path))?;
    println!(
        "{} episodes with {} states in {} files: {} mismatches",
        report.traces, report.records, report.files, report.mismatches
    );
    report.described.iter().for_each(|line| println!("{line}"));
    if report.mismatches > 0 { Err("they differ".into()) } else { Ok(()) }
}
