//! Generated games as files that this engine and ALFWorld's own can load.

use std::path::{Path, PathBuf};

use serde_json::json;
use spar_core::Seed;

use super::{DOMAIN, GameOptions, NewGame, generate, grammar_for, grammar_with_task};
use crate::household::{Engine, Game, GameFile, HouseholdError, oracle};

/// A generated game as the parts of a game file.
pub fn game_file(game: &NewGame<'_>) -> GameFile {
    GameFile {
        pddl_domain: DOMAIN.to_owned(),
        grammar: grammar_for(&game.task),
        pddl_problem: game.problem.to_string(),
        solvable: Some(true),
        walkthrough: None,
    }
}

/// A generated game under the rules and in the words of another one's file, such as one of an older release.
///
/// Types of things that those rules name are declared where the room has nothing of the kind.
pub fn game_file_under(rules: &GameFile, mut game: NewGame<'_>) -> GameFile {
    for (predicate, kind) in [("receptacleType", "rtype"), ("objectType", "otype")] {
        for name in types_named(&rules.pddl_domain, predicate) {
            if !game.problem.objects.iter().any(|(declared, _)| *declared == name) {
                game.problem.objects.push((name.into(), kind.into()));
            }
        }
    }
    GameFile {
        pddl_domain: rules.pddl_domain.clone(),
        grammar: grammar_with_task(&rules.grammar, &game.task).into_owned(),
        pddl_problem: game.problem.to_string(),
        solvable: Some(true),
        walkthrough: None,
    }
}

/// The constants that a domain asks for with `(predicate ?thing Constant)`, comments left out.
fn types_named(domain: &str, predicate: &str) -> Vec<String> {
    let lines = domain.lines().map(|line| line.split(';').next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join(" ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut names: Vec<String> = Vec::new();
    for term in words.windows(5) {
        if let ["(", found, variable, name, ")"] = *term
            && found == predicate
            && variable.starts_with('?')
            && !name.starts_with('?')
            && !names.iter().any(|other| other == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Writes a game as `<root>/<split>/<problem>/<trial>/game.tw-pddl` with a `traj_data.json` beside
/// it, and returns the path of the game.
///
/// # Errors
///
/// [`HouseholdError::Write`] when a folder or file cannot be written.
pub fn write_game(
    game: &NewGame<'_>,
    root: &Path,
    split: &str,
    trial: &str,
) -> Result<PathBuf, HouseholdError> {
    let problem = format!("{}-{}", game.family, game.problem.name);
    let folder = root.join(split).join(problem).join(trial);
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| HouseholdError::Write { path, source }
    };
    std::fs::create_dir_all(&folder).map_err(fail(&folder))?;
    let description = json!({
        "task_type": game.family.name(),
        "task_id": trial,
        "turk_annotations": { "anns": [{ "task_desc": game.task, "high_descs": [] }] },
    });
    let notes = folder.join("traj_data.json");
    std::fs::write(&notes, description.to_string()).map_err(fail(&notes))?;
    let path = folder.join("game.tw-pddl");
    let mut file = game_file(game);
    let loaded = Game::from_parts(&path.display().to_string(), &file)?;
    file.walkthrough = oracle::solve(&Engine::new(loaded));
    let text = serde_json::to_string(&file)
        .map_err(|source| HouseholdError::Json { game: path.display().to_string(), source })?;
    // Renamed when all of it is there, so that no game is ever half a game.
    let unfinished = path.with_extension("unfinished");
    let written =
        std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &path));
    if written.is_err() {
        // Best effort: the name says that it may be removed.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map_err(fail(&path))?;
    Ok(path)
}

/// Generates the games of `seeds` and writes them below `root`; returns their paths.
///
/// # Errors
///
/// [`HouseholdError::Write`] when a folder or file cannot be written, [`HouseholdError::NoGame`] where
/// the options allow none.
pub fn export_games(
    options: &GameOptions,
    seeds: std::ops::Range<u64>,
    root: &Path,
    split: &str,
) -> Result<Vec<PathBuf>, HouseholdError> {
    seeds
        .map(|seed| {
            let game = generate(options, Seed::from_u64(seed))?;
            write_game(&game, root, split, &format!("trial_{seed:08}"))
        })
        .collect()
}
