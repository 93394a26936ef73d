//! Games that were recorded in TextArena, played again.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::{Game, GameError};

/// Mismatches that are described.
const MAX_DESCRIBED: usize = 20;

/// What replaying recorded games came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceReport {
    /// Files that were read.
    pub files: usize,
    /// Games in them.
    pub traces: usize,
    /// Steps in them.
    pub steps: usize,
    /// Games of which something differs.
    pub mismatches: usize,
    /// The first of these, in words.
    pub described: Vec<String>,
}

/// A game as `scripts/record_textarena.py` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    game: String,
    settings: Value,
    seed: u64,
    /// What each player sees at first.
    begin: Vec<Seen>,
    steps: Vec<RecordedStep>,
    #[serde(default)]
    rewards: Option<Vec<Option<f64>>>,
    #[serde(default)]
    reason: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedStep {
    player: usize,
    action: String,
    /// Where the package broke, nothing is compared any more.
    #[serde(default)]
    raises: Option<String>,
    #[serde(default)]
    seen: Vec<Seen>,
}

/// Messages, or their hash: FNV-1a, 64 bits.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Seen {
    Full(Vec<(i64, String, String)>),
    Hash(String),
}

/// Plays the games of a file of recordings, or of all `.jsonl` files of a folder, again and compares what all players
/// see, who is to move, rewards and reasons.
///
/// # Errors
///
/// [`GameError`] when a file cannot be read.
pub fn replay_traces(path: &Path) -> Result<TraceReport, GameError> {
    let refuse = |path: &Path, detail: String| GameError::Traces {
        path: path.display().to_string(),
        detail,
    };
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| refuse(path, error.to_string()))?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
    }
    let mut report = TraceReport::default();
    for file in files {
        let text =
            std::fs::read_to_string(&file).map_err(|error| refuse(&file, error.to_string()))?;
        report.files += 1;
        for (number, line) in text.lines().enumerate() {
            let trace: Trace = serde_json::from_str(line)
                .map_err(|error| refuse(&file, format!("line {}: {error}", number + 1)))?;
            report.traces += 1;
            report.steps += trace.steps.len();
            if let Err(difference) = replay(&trace) {
                report.mismatches += 1;
                if report.described.len() < MAX_DESCRIBED {
                    let Trace { game, seed, settings, .. } = &trace;
                    report.described.push(format!("{game} {settings}, seed {seed}: {difference}"));
                }
            }
        }
    }
    Ok(report)
}

fn replay(trace: &Trace) -> Result<(), String> {
    let mut game = Game::open(&trace.game, &trace.settings)
        .map_err(|error| format!("it cannot be opened: {error}"))?;
    game.begin(trace.seed);
    compare(&mut game, &trace.begin).map_err(|told| format!("at the start: {told}"))?;
    for (number, step) in trace.steps.iter().enumerate() {
        let place = |told: String| format!("step {number}, {:?}: {told}", step.action);
        if game.to_move() != Some(step.player) {
            let found = game.to_move();
            return Err(place(format!("to move is {found:?}, recorded was {}", step.player)));
        }
        game.act(&step.action).map_err(|error| place(error.to_string()))?;
        if step.raises.is_some() {
            return Ok(());
        }
        compare(&mut game, &step.seen).map_err(place)?;
    }
    let Some(rewards) = &trace.rewards else {
        return match game.is_over() {
            true => Err(format!("it is over ({:?}), and was not", game.reason())),
            false => Ok(()),
        };
    };
    let found = game.rewards().ok_or("it is not over, and was")?;
    let is_equal = |(found, recorded): (&f64, &Option<f64>)| {
        // A reward that is no number is a fault of the package.
        recorded.is_none_or(|recorded| recorded == *found)
    };
    if found.len() != rewards.len() || !found.iter().zip(rewards).all(is_equal) {
        return Err(format!("rewards are {found:?}, recorded were {rewards:?}"));
    }
    match (&trace.reason, game.reason()) {
        (Some(Value::String(recorded)), found) if found != Some(recorded.as_str()) => {
            Err(format!("the reason is {found:?}, recorded was {recorded:?}"))
        }
        _ => Ok(()),
    }
}

/// Compares what all players have not read yet, and marks it as read.
fn compare(game: &mut Game, recorded: &[Seen]) -> Result<(), String> {
    if recorded.len() != game.num_players() {
        let (found, recorded) = (game.num_players(), recorded.len());
        return Err(format!("{found} play, recorded were {recorded}"));
    }
    for (player, recorded) in recorded.iter().enumerate() {
        let found: Vec<(i64, String, String)> = game
            .unread(player)
            .map(|message| {
                let from = message.from.map_or(-1, |player| player as i64);
                (from, message.kind.name().to_owned(), message.text.to_owned())
            })
            .collect();
        game.mark_read(player);
        let is_equal = match recorded {
            Seen::Full(messages) => *messages == found,
            Seen::Hash(hash) => *hash == hash_of(&found),
        };
        if !is_equal {
            return Err(format!("player {player} sees {found:?}, recorded was {recorded:?}"));
        }
    }
    Ok(())
}

fn hash_of(messages: &[(i64, String, String)]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (from, kind, text) in messages {
        add(&from.to_string());
        add(kind);
        add(text);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_games_go_as_they_went() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let report = replay_traces(&folder).unwrap();
        assert!(report.traces > 100 && report.steps > 1000, "{report:?}");
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
    }

    #[test]
    #[ignore = "needs recordings of TextArena, named by SPAR_TEXTARENA_TRACES"]
    fn fresh_recordings_go_as_they_went() {
        let path =
            std::env::var("SPAR_TEXTARENA_TRACES").expect("SPAR_TEXTARENA_TRACES names a file");
        let report = replay_traces(Path::new(&path)).unwrap();
        println!("{} games, {} steps", report.traces, report.steps);
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
    }

    #[test]
    fn what_differs_is_told() {
        let line = |begin: &str| {
            format!(
                r#"{{"game":"guess-the-number","settings":{{}},"seed":1,"begin":[{begin}],"steps":[]}}"#
            )
        };
        let folder = std::env::temp_dir().join(format!("spar-games-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.jsonl"), line("\"y\"")).unwrap();
        let report = replay_traces(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let report = report.unwrap();
        assert_eq!((report.traces, report.mismatches), (1, 1));
        assert!(report.described[0].contains("at the start"), "{report:?}");
        assert!(replay_traces(&folder).is_err());
    }
}
