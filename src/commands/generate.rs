//! `spar generate`.

use std::process::ExitCode;

use anyhow::ensure;
use spar::core::Seed;
use spar::envs::household::TaskFamily;
use spar::envs::household::generator::{
    GameOptions, RoomSize, SceneSet, generate as make, write_game,
};

use super::{cancel_on_ctrl_c, print, stopped};
use crate::bar::Bar;
use crate::cli::{GenerateArguments, Measured};

const SCENES: [SceneSet; 3] = [SceneSet::Train, SceneSet::Dev, SceneSet::Unseen];

/// Writes generated games as files, laid out as ALFWorld's own.
pub(crate) fn generate(arguments: &GenerateArguments) -> anyhow::Result<ExitCode> {
    let Measured::Household = arguments.environment;
    let split = &arguments.split;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    ensure!(
        !split.is_empty() && !split.starts_with('.') && split.chars().all(is_plain),
        "name a split `{split}`: use letters, digits, `-`, `_` and `.`, not starting with `.`"
    );
    let named = SCENES.into_iter().find(|scenes| scenes.name() == split);
    let options = GameOptions {
        scenes: arguments.scenes.or(named).unwrap_or(SceneSet::Train),
        size: arguments.size,
        family: arguments.family,
    };
    let cancellation = cancel_on_ctrl_c();
    let bar = Bar::new("generate", arguments.count as usize);
    let mut written = 0;
    for number in 0..arguments.count {
        if cancellation.is_cancelled() {
            break;
        }
        let seed = arguments.seed.wrapping_add(number);
        let game = make(&options, Seed::from_u64(seed))?;
        write_game(&game, &arguments.out, split, &format!("trial_{seed:08}"))?;
        written += 1;
        bar.advance();
    }
    drop(bar);
    let out = arguments.out.display();
    print(&format!(
        "{} games in rooms of `{}` in {}\nnext:\n  spar play alfworld --data {out} --split {split}\n",
        written,
        options.scenes.name(),
        arguments.out.join(split).display(),
    ))?;
    let is_whole = written == arguments.count;
    Ok(if is_whole { ExitCode::SUCCESS } else { stopped() })
}

/// Reads the name of a set of rooms.
pub(crate) fn parse_scenes(text: &str) -> Result<SceneSet, String> {
    SCENES
        .into_iter()
        .find(|scenes| scenes.name() == text)
        .ok_or_else(|| "allowed are train, dev and unseen".to_owned())
}

/// Reads the size of a room: a word or a number.
pub(crate) fn parse_size(text: &str) -> Result<RoomSize, String> {
    let value = text.parse::<u32>().map_or_else(|_| text.into(), serde_json::Value::from);
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Reads the name of a family of tasks.
pub(crate) fn parse_family(text: &str) -> Result<TaskFamily, String> {
    TaskFamily::ALL.into_iter().find(|family| family.name() == text).ok_or_else(|| {
        let known: Vec<_> = TaskFamily::ALL.iter().map(|family| family.name()).collect();
        format!("known are {}", known.join(", "))
    })
}
