//! Writes one generated household game per family, as ALFWorld lays its games out.
//!
//! ```text
//! cargo run -p spar-envs --example export_games -- FOLDER SPLIT MAX_RECEPTACLES SEED
//! ```

use std::path::Path;

use spar_core::Seed;
use spar_envs::household::TaskFamily;
use spar_envs::household::generator::{GameOptions, RoomSize, SceneSet, generate, write_game};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, split, max, seed] = &arguments[..] else {
        return Err("usage: export_games FOLDER SPLIT MAX_RECEPTACLES SEED".into());
    };
    let seed: u64 = seed.parse()?;
    let size = RoomSize::AtMost(max.parse()?);
    for family in TaskFamily::ALL {
        let options = GameOptions { scenes: SceneSet::Dev, size, family: Some(family) };
        let game = generate(&options, Seed::from_u64(seed))?;
        let path = write_game(&game, Path::new(folder), split, &format!("trial_{seed:08}"))?;
        println!("{}", path.display());
    }
    Ok(())
}
