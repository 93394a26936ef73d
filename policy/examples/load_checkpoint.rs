//! Loads a checkpoint's weights and tells what that took.
//!
//! ```text
//! cargo run --release -p spar-policy --example load_checkpoint -- FOLDER [SAVE_TO]
//! ```
//!
//! Prints the bytes of the weights' files, those of the parameters, and the most memory that the
//! process ever had (`VmHWM`, on Linux). With `SAVE_TO` the weights are written there again.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use spar_policy::checkpoint::{SaveOptions, load_weights, save_model_with};
use spar_policy::{Tokenizer, TokenizerConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().ok_or("the first argument is the folder to load")?;
    let mut file_bytes = 0;
    for entry in std::fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "safetensors") {
            file_bytes += entry.metadata()?.len();
        }
    }
    let start = Instant::now();
    let (config, parameters) = load_weights(&folder)?;
    let bytes = 4 * parameters.data.len() as u64;
    println!(
        "{:?}: files {:.0} MiB, parameters {:.0} MiB, peak {} in {:.1} s",
        config.family,
        mebibytes(file_bytes),
        mebibytes(bytes),
        peak()?,
        start.elapsed().as_secs_f64()
    );
    if let Some(target) = arguments.next() {
        let start = Instant::now();
        let tokenizer = Tokenizer::train([[""; 0]; 0], &TokenizerConfig::default())?;
        let options = SaveOptions { max_shard_bytes: 400_000_000, ..SaveOptions::default() };
        save_model_with(&target, &config, &parameters, &tokenizer, &options)?;
        println!("saved: peak {} in {:.1} s", peak()?, start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The most memory the process ever had.
fn peak() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: u64 =
        line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmHWM")?.parse()?;
    Ok(format!("{:.0} MiB", mebibytes(kibibytes << 10)))
}
