//! A game under way.

use std::fmt::{Debug, Formatter};

use serde::de::DeserializeOwned;
use serde_json::Value;
use spar_python::Random;

use crate::table::{Message, Seating, Table};
use crate::{GameError, GameRow, game_registry};

/// The rules of a game with its situation, beside what all games share.
pub(crate) trait Rules: Send + Sync {
    /// How players take turns.
    fn seating(&self) -> Seating {
        Seating::Alone
    }

    /// How many play.
    fn num_players(&self) -> usize {
        1
    }

    /// Valid moves behind which the game is over, where there is such a limit.
    fn max_turns(&self) -> Option<u32> {
        None
    }

    /// What is drawn before a generator is asked for the game itself; the games whose classes draw when they are made.
    fn begin(&mut self, table: &mut Table);

    /// Carries out the action of who is to move.
    fn act(&mut self, table: &mut Table, action: &str);

    /// The moves that can be made, where they are few enough to be listed.
    fn legal(&self, table: &Table) -> Option<Vec<String>>;

    /// The move of a good player who knows only what this player was shown; `luck`, from 0 to below 1, is drawn anew for
    /// every move, for players who mix.
    fn expert(&mut self, table: &Table, luck: f64) -> Option<String>;

    /// The move of a player who sees all.
    fn oracle(&mut self, table: &Table) -> Option<String> {
        self.expert(table, 0.5)
    }

    /// A player leaves the game. By default it is over: in a duel the other one has won.
    fn forfeit(&mut self, table: &mut Table, player: usize) {
        match self.seating() {
            Seating::Duel => {
                table.set_winners(|other| other != player, format!("Player {player} has left."));
            }
            _ => table.set_draw(format!("Player {player} has left.")),
        }
    }

    /// What the player to move cannot see is drawn anew, in keeping with all that it has seen; nothing where all is in
    /// view.
    fn determinize(&mut self, table: &mut Table, player: usize, rng: &mut dyn FnMut(u64) -> u64) {
        let _ = (table, player, rng);
    }

    /// The worth of a situation for a player, from -1 to 1, where play is cut off before its end. Default 0.
    fn judge(&self, table: &Table, player: usize) -> f64 {
        let _ = (table, player);
        0.0
    }

    /// A key of all that decides how the game goes on, where it can be searched exactly; default none.
    fn key(&self, table: &Table) -> Option<u128> {
        let _ = table;
        None
    }

    /// How many moves ahead an exact search looks, where nobody says otherwise. Default 6.
    fn search_depth(&self) -> u32 {
        6
    }

    fn copy(&self) -> Box<dyn Rules>;
}

/// A game under way: TextArena's environment with its state.
///
/// Equal names, settings, seeds and actions give equal messages, rewards and reasons. A clone goes on as its origin would.
///
/// ```
/// use spar_games::Game;
///
/// let mut game = Game::open("guess-the-number", &serde_json::json!({}))?;
/// game.begin(4);
/// game.act("[10]")?;
/// let told = game.unread(0).last().unwrap();
/// assert_eq!(told.text, "The target number is lower.");
/// # Ok::<(), spar_games::GameError>(())
/// ```
pub struct Game {
    row: &'static GameRow,
    rules: Box<dyn Rules>,
    table: Option<Table>,
}

impl Clone for Game {
    fn clone(&self) -> Self {
        Self { row: self.row, rules: self.rules.copy(), table: self.table.clone() }
    }
}

impl Debug for Game {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let turn = self.table.as_ref().map(|table| table.turn);
        formatter.debug_struct("Game").field("name", &self.row.name).field("turn", &turn).finish()
    }
}

impl Game {
    /// A game of this name with these settings, an object; what is left out has its default.
    ///
    /// # Errors
    ///
    /// [`GameError`] when there is no such game, or it has no such settings.
    pub fn open(name: &str, settings: &Value) -> Result<Self, GameError> {
        let row = game_registry().find(name)?;
        let rules = (row.open.open)(settings)?;
        Ok(Self { row, rules, table: None })
    }

    /// The row that names it.
    pub fn row(&self) -> &'static GameRow {
        self.row
    }

    /// How many play.
    pub fn num_players(&self) -> usize {
        self.rules.num_players()
    }

    /// Whether what all earn adds up to zero.
    pub fn is_zero_sum(&self) -> bool {
        self.rules.seating() == Seating::Duel
    }

    /// Begins anew, with CPython's generator of this seed.
    pub fn begin(&mut self, seed: u64) {
        let rules = &mut self.rules;
        let (players, most) = (rules.num_players(), rules.max_turns());
        let mut table = Table::new(rules.seating(), players, most, Random::from_u64(seed));
        rules.begin(&mut table);
        self.table = Some(table);
    }

    fn table(&self) -> Result<&Table, GameError> {
        self.table.as_ref().ok_or(GameError::Misused { when: "before the start" })
    }

    /// Carries out the action of the player to move; whether it was a valid move.
    ///
    /// # Errors
    ///
    /// [`GameError::Misused`] before the start and behind the end.
    pub fn act(&mut self, action: &str) -> Result<bool, GameError> {
        if self.table()?.is_over() {
            return Err(GameError::Misused { when: "behind the end" });
        }
        let table = self.table.as_mut().expect("looked at above");
        table.begin_move();
        self.rules.act(table, action);
        Ok(!table.last_was_invalid())
    }

    /// A player leaves; nothing behind the end.
    pub fn forfeit(&mut self, player: usize) {
        if let Some(table) = &mut self.table
            && !table.is_over()
        {
            table.begin_move();
            self.rules.forfeit(table, player);
        }
    }

    /// Who is to move; `None` before the start and behind the end.
    pub fn to_move(&self) -> Option<usize> {
        let table = self.table.as_ref()?;
        (!table.is_over()).then_some(table.current)
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.table.as_ref().is_some_and(Table::is_over)
    }

    /// Whether a game of one was solved, or one of several was won by somebody.
    pub fn is_solved(&self) -> bool {
        self.table.as_ref().is_some_and(Table::is_solved)
    }

    /// What all players get in the end, as the package has it.
    pub fn rewards(&self) -> Option<&[f64]> {
        self.table.as_ref()?.rewards()
    }

    /// Why it ended.
    pub fn reason(&self) -> Option<&str> {
        self.table.as_ref()?.reason()
    }

    /// Valid moves that were made.
    pub fn turn(&self) -> u32 {
        self.table.as_ref().map_or(0, |table| table.turn)
    }

    /// What a player has not read yet, without what it said itself.
    pub fn unread(&self, player: usize) -> impl Iterator<Item = Message<'_>> {
        self.table.iter().flat_map(move |table| table.unread(player))
    }

    /// Marks all as read by a player.
    pub fn mark_read(&mut self, player: usize) {
        if let Some(table) = &mut self.table {
            table.mark_read(player);
        }
    }

    /// Drops what nobody has read, for players who think ahead on copies.
    pub fn silence(&mut self) {
        if let Some(table) = &mut self.table {
            table.silence();
        }
    }

    /// The moves that can be made now, where the game lists them.
    pub fn legal(&self) -> Option<Vec<String>> {
        let table = self.table.as_ref().filter(|table| !table.is_over())?;
        self.rules.legal(table)
    }

    /// The move of the game's good player, who knows only what who is to move was shown. Players who mix choose by
    /// `luck`, from 0 to below 1, which is to be drawn for every move.
    pub fn expert_with(&mut self, luck: f64) -> Option<String> {
        let table = self.table.as_ref().filter(|table| !table.is_over())?;
        self.rules.expert(table, luck)
    }

    /// As [`Game::expert_with`] with luck in the middle, for games in which nobody mixes.
    pub fn expert(&mut self) -> Option<String> {
        self.expert_with(0.5)
    }

    /// The move of the game's player who sees all.
    pub fn oracle(&mut self) -> Option<String> {
        let table = self.table.as_ref().filter(|table| !table.is_over())?;
        self.rules.oracle(table)
    }

    /// Draws what a player cannot see anew, in keeping with what it has seen; `below(n)` draws a number below `n`.
    pub fn determinize(&mut self, player: usize, below: &mut dyn FnMut(u64) -> u64) {
        if let Some(table) = &mut self.table {
            self.rules.determinize(table, player, below);
        }
    }

    /// The worth of the situation for a player, from -1 to 1: what was earned where it is over, else a guess.
    pub fn judge(&self, player: usize) -> f64 {
        match &self.table {
            Some(table) => match table.rewards() {
                Some(rewards) => rewards[player],
                None => self.rules.judge(table, player),
            },
            None => 0.0,
        }
    }

    /// How many moves ahead an exact search looks, where nobody says otherwise.
    pub fn search_depth(&self) -> u32 {
        self.rules.search_depth()
    }

    /// A key of all that decides how it goes on, where the game can be searched exactly.
    pub fn key(&self) -> Option<u128> {
        self.rules.key(self.table.as_ref()?)
    }
}

/// The settings of a game, read from an object.
pub(crate) fn read_settings<S: DeserializeOwned>(
    game: &'static str,
    settings: &Value,
) -> Result<S, GameError> {
    if !settings.is_object() {
        return Err(GameError::Settings { game, detail: "they are no object".to_owned() });
    }
    S::deserialize(settings)
        .map_err(|error| GameError::Settings { game, detail: error.to_string() })
}

/// Refuses a setting that is out of range.
pub(crate) fn check_range<T: PartialOrd + std::fmt::Display>(
    game: &'static str,
    (name, value): (&str, T),
    range: std::ops::RangeInclusive<T>,
) -> Result<(), GameError> {
    if range.contains(&value) {
        return Ok(());
    }
    let detail = format!("`{name}` is {value}, allowed are {} to {}", range.start(), range.end());
    Err(GameError::Settings { game, detail })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::Seed;

    use super::*;
    use crate::{GAMES, RulePlayer};

    const HOSTILE: [&str; 8] = [
        "",
        "[",
        "]]]][[[[",
        "[[[[1]]]]",
        "\u{0}[\u{fffd}]",
        "🎲[💥]",
        "[9999999999999999999999999999]",
        "[-1 -1 -1]",
    ];

    /// The words that everybody has not read yet.
    fn heard(game: &mut Game) -> Vec<String> {
        let mut heard = Vec::new();
        for player in 0..game.num_players() {
            heard.extend(game.unread(player).map(|message| message.text.to_owned()));
            game.mark_read(player);
        }
        heard
    }

    #[test]
    fn equal_seeds_and_actions_give_equal_games_and_clones_go_on_alike() {
        for row in GAMES {
            let mut games = [(); 2].map(|()| Game::open(row.name, &json!({})).unwrap());
            games.iter_mut().for_each(|game| game.begin(11));
            let [one, two] = &mut games;
            let mut fork: Option<Game> = None;
            for turn in 0..40 {
                assert_eq!(heard(one), heard(two), "{}", row.name);
                if let Some(fork) = &mut fork {
                    heard(fork);
                }
                if turn == 3 {
                    fork = Some(one.clone());
                }
                let Some(action) = one.expert_with(0.3) else { break };
                let found = one.act(&action).unwrap();
                assert_eq!(two.act(&action).unwrap(), found);
                if let Some(fork) = &mut fork {
                    assert_eq!(fork.act(&action).unwrap(), found, "{}", row.name);
                    assert_eq!(fork.rewards(), one.rewards());
                    assert_eq!(fork.legal(), one.legal());
                }
                if one.is_over() {
                    break;
                }
            }
        }
    }

    #[test]
    fn hostile_answers_end_games_and_nothing_else() {
        let long = ["[1] ".repeat(20_000), "[".repeat(80_000), "[9".repeat(40_000)];
        for row in GAMES {
            for answer in HOSTILE.into_iter().chain(long.iter().map(String::as_str)) {
                let mut game = Game::open(row.name, &json!({})).unwrap();
                game.begin(5);
                for _ in 0..6 {
                    if game.is_over() {
                        break;
                    }
                    game.act(answer).unwrap();
                    heard(&mut game);
                }
                if game.num_players() == 1 {
                    assert!(!game.is_solved(), "{}: {answer:.40}", row.name);
                }
            }
        }
    }

    #[test]
    fn listed_moves_are_moves_and_behind_the_end_there_are_none() {
        for row in GAMES {
            for seed in 0..6 {
                let mut game = Game::open(row.name, &json!({})).unwrap();
                assert!(game.act("[1]").is_err() && game.legal().is_none(), "before the start");
                game.begin(seed);
                for turn in 0..60_u32 {
                    let Some(action) =
                        RulePlayer::Random.choose(&game, Seed::from_u64(seed).derive("move", turn))
                    else {
                        break;
                    };
                    assert!(game.act(&action).unwrap(), "{}: {action}", row.name);
                    game.silence();
                }
                if game.is_over() {
                    assert!(game.act("[1]").is_err() && game.legal().is_none());
                    assert!(game.expert().is_none() && game.oracle().is_none());
                    assert_eq!(game.to_move(), None);
                }
            }
        }
    }

    #[test]
    fn games_of_one_are_solved_by_who_sees_all() {
        for row in GAMES.iter().filter(|row| !row.open.has_seats && !row.open.has_chance) {
            let settings = match row.name {
                "fifteen-puzzle" => json!({ "scramble": 15 }),
                "countdown" => json!({ "solvable": true }),
                _ => json!({}),
            };
            for seed in 0..6 {
                let mut game = Game::open(row.name, &settings).unwrap();
                game.begin(seed);
                while let Some(action) = game.oracle() {
                    assert!(game.act(&action).unwrap(), "{}: {action}", row.name);
                    game.silence();
                }
                assert!(game.is_solved(), "{} of seed {seed}: {:?}", row.name, game.reason());
            }
        }
    }

    /// A target may be at hand, and few pairs reach one.
    #[test]
    fn pairs_that_can_be_solved_are() {
        let settings =
            json!({ "big": 0, "small": 2, "min_target": 2, "max_target": 100, "solvable": true });
        for seed in 0..300 {
            let mut game = Game::open("countdown", &settings).unwrap();
            game.begin(seed);
            let action = game.oracle().unwrap();
            assert!(game.act(&action).unwrap() && game.is_solved(), "seed {seed}: {action}");
        }
    }

    #[test]
    fn settings_that_are_wrong_are_refused_with_what_is_allowed() {
        for (game, settings, told) in [
            ("wordle", json!({ "word_length": 3 }), "allowed are 4 to 8"),
            ("wordle", json!({ "length": 3 }), "unknown field"),
            ("sudoku", json!({ "clues": 5 }), "allowed are 20 to 80"),
            ("game-2048", json!({ "target_tile": 48 }), "powers of two"),
            ("bandit", json!({ "buttons": ["a", "a"] }), "button `a`"),
            ("minesweeper", json!({ "num_mines": 60 }), "allowed are 1 to 55"),
            ("secret-mafia", json!({ "num_players": 5 }), "allowed are 6 to 15"),
            ("mastermind", json!({ "code_length": 7 }), "no number comes twice"),
            ("nim", json!([]), "no object"),
        ] {
            let error = Game::open(game, &settings).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(Game::open("worlde", &json!({})).unwrap_err().to_string().contains("`wordle`"));
    }

    #[test]
    fn who_leaves_a_game_of_several_has_lost_it() {
        for row in GAMES.iter().filter(|row| row.open.has_seats) {
            let mut game = Game::open(row.name, &json!({})).unwrap();
            game.begin(2);
            game.forfeit(1);
            if game.num_players() == 2 {
                assert_eq!(game.rewards(), Some(&[1.0, -1.0][..]), "{}", row.name);
            } else {
                assert!(game.to_move().is_none_or(|player| player != 1));
            }
        }
    }
}
