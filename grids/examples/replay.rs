//! Replays recordings of the packages `minigrid` and `crafter`, and of those that make
//! Sokoban's rooms, as `spar conformance` does, without building all of spar.
//!
//! ```sh
//! cargo run -p spar-grids --example replay -- minigrid|crafter|sokoban FILE_OR_FOLDER
//! ```

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let report = match &arguments[..] {
        [of, path] if of == "minigrid" => spar_grids::minigrid::replay(Path::new(path))?,
        [of, path] if of == "crafter" => spar_grids::survival::replay(Path::new(path))?,
        [of, path] if of == "sokoban" => spar_grids::sokoban::replay(Path::new(path))?,
        _ => {
            let told =
                "give `minigrid`, `crafter` or `sokoban`, and a file or a folder of recordings";
            return Err(told.into());
        }
    };
    println!(
        "{} episodes with {} states in {} files: {} mismatches",
        report.traces, report.records, report.files, report.mismatches
    );
    report.described.iter().for_each(|line| println!("{line}"));
    if report.mismatches > 0 { Err("they differ".into()) } else { Ok(()) }
}
