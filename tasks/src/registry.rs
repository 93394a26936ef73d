//! The suites that have a name.

use std::path::{Path, PathBuf};

use spar_core::registry::{Axis, OptionSet, Row, Table, known_names};

use crate::formats::{format_of, suite_formats};
use crate::{
    GameFolderSuite, MixedSuite, Mixture, OfflineSuite, ProcessSuite, Suite, SuiteError,
    TemplateSuite,
};

/// What a suite may need from the user.
#[derive(Debug, Clone, Default)]
pub struct SuiteOptions {
    /// The folder of third-party data.
    pub data: Option<PathBuf>,
}

/// What opens a suite that has a name.
#[derive(Debug, Clone, Copy)]
pub struct NamedSuite {
    /// Whether it needs a folder of third-party data.
    pub needs_data: bool,
    /// Opens it.
    pub open: fn(&SuiteOptions) -> Result<Box<dyn Suite>, SuiteError>,
}

/// A suite that has a name.
pub type SuiteRow = Row<NamedSuite>;

const AXIS: Axis = Axis { name: "suites", what: "suite", about: "Named sets of tasks." };

const ROWS: &[SuiteRow] = &[
    Row {
        name: "household",
        about: "Household chores in text, in generated rooms.",
        source: "own, after ALFWorld, arXiv 2010.03768",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("household", include_str!("../suites/household/suite.toml")),
        },
    },
    Row {
        name: "frozen-lake",
        about: "Cross a frozen lake without falling into a hole.",
        source: "Gymnasium's FrozenLake, in text",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("frozen-lake", include_str!("../suites/frozen-lake/suite.toml")),
        },
    },
    Row {
        name: "minigrid",
        about: "Levels of MiniGrid and BabyAI in sentences, from one room to keys, boxes and sequences.",
        source: "MiniGrid and BabyAI, arXiv 2306.13831 and 1810.08272",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("minigrid", include_str!("../suites/minigrid/suite.toml")),
        },
    },
    Row {
        name: "sokoban",
        about: "Push boxes onto targets.",
        source: "gym-sokoban and TextArena",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("sokoban", include_str!("../suites/sokoban/suite.toml")),
        },
    },
    Row {
        name: "maze",
        about: "Find the way through mazes with locked doors.",
        source: "own, after Procgen's maze and heist, arXiv 1912.01588",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("maze", include_str!("../suites/maze/suite.toml")),
        },
    },
    Row {
        name: "survival",
        about: "Collect, build and survive in the worlds of Crafter, a goal at a time or all of it.",
        source: "Crafter, arXiv 2109.06780, package crafter 1.8.3",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("survival", include_str!("../suites/survival/suite.toml")),
        },
    },
    Row {
        name: "ledger",
        about: "Enter payments in a book of accounts, by calls of tools.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("ledger", include_str!("../suites/ledger/suite.toml")),
        },
    },
    Row {
        name: "bfcl",
        about: "Requests that calls of eight stateful programs answer, in the form of BFCL.",
        source: "own, after the Berkeley Function-Calling Leaderboard",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("bfcl", include_str!("../suites/bfcl/suite.toml")),
        },
    },
    Row {
        name: "toolbox",
        about: "Questions that a calculator and notes answer, by calls of tools.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("toolbox", include_str!("../suites/toolbox/suite.toml")),
        },
    },
    Row {
        name: "apps",
        about: "Chores in contacts, mail, calendar, files and payments, by calls of tools.",
        source: "own, after AppWorld, arXiv 2407.18901, and ToolSandbox, arXiv 2408.04682",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("apps", include_str!("../suites/apps/suite.toml")),
        },
    },
    Row {
        name: "mcp",
        about: "Take goods out of a stock that an MCP server keeps, and count what is left.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("mcp", include_str!("../suites/mcp/suite.toml")),
        },
    },
    Row {
        name: "code",
        about: "Questions about numbers and texts with exact answers, with an interpreter at hand.",
        source: "own, after the tool-integrated reasoning of ReTool, arXiv 2504.11536",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("code", include_str!("../suites/code/suite.toml")),
        },
    },
    Row {
        name: "micro-repair",
        about: "Find and mend the bug of a tiny program in Python or JavaScript, by calls of tools.",
        source: "own, after mutation testing",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("micro-repair", include_str!("../suites/micro-repair/suite.toml")),
        },
    },
    Row {
        name: "tic-tac-toe",
        about: "Tic-tac-toe in text, for two seats.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("tic-tac-toe", include_str!("../suites/tic-tac-toe/suite.toml")),
        },
    },
    Row {
        name: "panel",
        about: "Answer a question behind others: two seats that earn alike.",
        source: "own, after CORY, arXiv 2410.06101",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("panel", include_str!("../suites/panel/suite.toml")),
        },
    },
    Row {
        name: "panel-peers",
        about: "Answer a question, evaluate answers and score them: three seats that earn what peers find.",
        source: "own, after CoMAS, arXiv 2510.08529",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("panel-peers", include_str!("../suites/panel-peers/suite.toml")),
        },
    },
    Row {
        name: "red-team",
        about: "Ask a desk for a secret or for something harmless, or answer there: two seats, zero-sum.",
        source: "own, after Self-RedTeam, arXiv 2506.07468",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("red-team", include_str!("../suites/red-team/suite.toml")),
        },
    },
    Row {
        name: "errand",
        about: "Ask a customer what is wanted, and order it: two seats that talk.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("errand", include_str!("../suites/errand/suite.toml")),
        },
    },
    Row {
        name: "dialogue",
        about: "Find out what a customer wants, who has a persona, and act on it: two seats that talk.",
        source: "own, after simulated users as in tau-bench, arXiv 2406.12045",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("dialogue", include_str!("../suites/dialogue/suite.toml")),
        },
    },
    Row {
        name: "sql",
        about: "Answer questions about a database with one SQL query, in generated databases.",
        source: "own, after Spider, arXiv 1809.08887",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("sql", include_str!("../suites/sql/suite.toml")),
        },
    },
    Row {
        name: "tau2",
        about: "Serve a customer by tools and a policy: two seats, the customer scripted by default.",
        source: "own data, in the form of tau2-bench's domain mock, arXiv 2506.07982",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("tau2", include_str!("../suites/tau2/suite.toml")),
        },
    },
    Row {
        name: "terminal",
        about: "Small chores at a shell in a sandbox: count, replace, sort, move, find.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("terminal", include_str!("../suites/terminal/suite.toml")),
        },
    },
    Row {
        name: "dial",
        about: "Turn a dial to a number, played by a program of its own, in a few lines of sh.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| {
                let text = include_str!("../suites/dial/env.toml");
                let script = include_str!("../suites/dial/dial.sh");
                let path = Path::new("dial/env.toml");
                Ok(Box::new(ProcessSuite::shipped(text, path, script)?))
            },
        },
    },
    Row {
        name: "sums",
        about: "Add two numbers from 0 to 9: questions that are answered in one turn.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("sums", include_str!("../suites/sums/suite.toml")),
        },
    },
    Row {
        name: "search",
        about: "Questions over invented corpora, one to four searches away from their answers.",
        source: "own, after HotpotQA, arXiv 1809.09600, and Search-R1, arXiv 2503.09516",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("search", include_str!("../suites/search/suite.toml")),
        },
    },
    Row {
        name: "maths",
        about: "School mathematics: fractions, roots, polynomials and equations, judged as mathematics.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("maths", include_str!("../suites/maths/suite.toml")),
        },
    },
    game(
        "guess-the-number",
        "Guess a number from 1 to 20 by what is said of other numbers.",
        |_| shipped("guess-the-number", include_str!("../suites/guess-the-number/suite.toml")),
    ),
    game("mastermind", "Find a code of four digits by black and white pegs.", |_| {
        shipped("mastermind", include_str!("../suites/mastermind/suite.toml"))
    }),
    game("tower-of-hanoi", "Carry three disks, spread over the towers, to tower C.", |_| {
        shipped("tower-of-hanoi", include_str!("../suites/tower-of-hanoi/suite.toml"))
    }),
    game(
        "fifteen-puzzle",
        "Slide fifteen tiles into their order, a few moves away from it.",
        |_| shipped("fifteen-puzzle", include_str!("../suites/fifteen-puzzle/suite.toml")),
    ),
    game("hangman", "Find a word of four to ten letters, letter by letter.", |_| {
        shipped("hangman", include_str!("../suites/hangman/suite.toml"))
    }),
    game(
        "wordle",
        "Find a word of five letters by which letters of other words are in it.",
        |_| shipped("wordle", include_str!("../suites/wordle/suite.toml")),
    ),
    game("game-2048", "Slide equal tiles together until one is 64.", |_| {
        shipped("game-2048", include_str!("../suites/game-2048/suite.toml"))
    }),
    game("minesweeper", "Clear a board of five by five cells with four mines.", |_| {
        shipped("minesweeper", include_str!("../suites/minesweeper/suite.toml"))
    }),
    game("sudoku", "Fill the last eleven cells of a sudoku at the most.", |_| {
        shipped("sudoku", include_str!("../suites/sudoku/suite.toml"))
    }),
    game("countdown", "Combine four numbers to a target that can be reached.", |_| {
        shipped("countdown", include_str!("../suites/countdown/suite.toml"))
    }),
    game("blackjack", "Win more of five hands than the dealer.", |_| {
        shipped("blackjack", include_str!("../suites/blackjack/suite.toml"))
    }),
    game("bandit", "Find the best of five buttons within twenty presses.", |_| {
        shipped("bandit", include_str!("../suites/bandit/suite.toml"))
    }),
    game("connect-four", "Connect four, for two seats.", |_| {
        shipped("connect-four", include_str!("../suites/connect-four/suite.toml"))
    }),
    game("nim", "Nim with three piles of up to seven, for two seats.", |_| {
        shipped("nim", include_str!("../suites/nim/suite.toml"))
    }),
    game("noughts", "Tic-tac-toe in TextArena's words, for two seats.", |_| {
        shipped("noughts", include_str!("../suites/noughts/suite.toml"))
    }),
    game("kuhn-poker", "Three rounds of Kuhn poker, for two seats.", |_| {
        shipped("kuhn-poker", include_str!("../suites/kuhn-poker/suite.toml"))
    }),
    game("leduc-holdem", "Five hands of Leduc hold'em, for two seats.", |_| {
        shipped("leduc-holdem", include_str!("../suites/leduc-holdem/suite.toml"))
    }),
    game("negotiation", "Trade goods that each values in its own way, for two seats.", |_| {
        shipped("negotiation", include_str!("../suites/negotiation/suite.toml"))
    }),
    game("secret-mafia", "A talk game of hidden roles, for six seats.", |_| {
        shipped("secret-mafia", include_str!("../suites/secret-mafia/suite.toml"))
    }),
    game(
        "games",
        "Twelve games of one player, mixed evenly: numbers, words, tiles, cards.",
        |_| games(),
    ),
    Row {
        name: "shop",
        about: "Find and buy what an instruction describes, in a shop of 100,000 products.",
        source: "own products, pages and rewards of WebShop, arXiv 2207.01206",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("shop", include_str!("../suites/shop/suite.toml")),
        },
    },
    Row {
        name: "text-world",
        about: "Quests in houses of rooms, doors, keys and chests, of given size and length.",
        source: "own, after TextWorld, arXiv 1806.11532",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("text-world", include_str!("../suites/text-world/suite.toml")),
        },
    },
    Row {
        name: "textcraft",
        about: "Craft an item by recipes, one to four crafts deep.",
        source: "own recipes, after TextCraft, arXiv 2311.05772",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("textcraft", include_str!("../suites/textcraft/suite.toml")),
        },
    },
    Row {
        name: "replay",
        about: "Do what a recording did, screen by screen, in the settings of a telephone.",
        source: "own, after UI-S1, arXiv 2509.11543",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("replay", include_str!("../suites/replay/suite.toml")),
        },
    },
    Row {
        name: "reasoning-gym",
        about: "Puzzles of reasoning-gym, from seeds: arithmetic, algorithms, logic, graphs, games.",
        source: "reasoning-gym 0.1.25, arXiv 2505.24760",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("reasoning-gym", include_str!("../suites/reasoning-gym/suite.toml")),
        },
    },
    Row {
        name: "graph-problems",
        about: "Problems about graphs, from degrees to flows and covers, in three sizes.",
        source: "own, after Erdős of G1, arXiv 2505.18499, and Guru's puzzles of graphs, arXiv 2506.14965",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| {
                shipped("graph-problems", include_str!("../suites/graph-problems/suite.toml"))
            },
        },
    },
    Row {
        name: "miniwob",
        about: "The 130 tasks of MiniWoB++ in a real browser. Needs Chromium and the package's pages.",
        source: "MiniWoB++, arXiv 1802.08802, package miniwob 1.1.0",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("miniwob", include_str!("../suites/miniwob/suite.toml")),
        },
    },
    Row {
        name: "site",
        about: "Small tasks on a forum, the administration of a shop, and a map, in a real browser. Needs Chromium.",
        source: "own, after WebArena, arXiv 2307.13854",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("site", include_str!("../suites/site/suite.toml")),
        },
    },
    Row {
        name: "web-shop",
        about: "The tasks of `shop`, on pages in a real browser. Needs Chromium.",
        source: "own, after WebShop, arXiv 2207.01206",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: false,
            open: |_| shipped("web-shop", include_str!("../suites/web-shop/suite.toml")),
        },
    },
    Row {
        name: "offline",
        about: "Episodes that others played, to be done again or learned from. Needs --data, a folder that `spar collect` wrote.",
        source: "own, after D4RL, arXiv 2004.07219",
        formula: "100 (score - random) / (expert - random)",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: true,
            open: |options| {
                let data = options.data.as_deref().ok_or(SuiteError::NoFolder)?;
                Ok(Box::new(OfflineSuite::open(data)?))
            },
        },
    },
    Row {
        name: "alfworld",
        about: "ALFWorld's household games, from the user's own download. Needs --data.",
        source: "ALFWorld, arXiv 2010.03768, its alfworld-download",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite {
            needs_data: true,
            open: |options| {
                let data = options.data.as_deref().ok_or(SuiteError::NoData {
                    suite: "alfworld".to_owned(),
                    variable: "ALFWORLD_DATA",
                })?;
                Ok(Box::new(GameFolderSuite::open(data)?))
            },
        },
    },
];

static TABLE: Table<NamedSuite> = Table::new(AXIS, ROWS);

/// All suites that have a name.
pub fn suite_registry() -> &'static Table<NamedSuite> {
    &TABLE
}

/// Opens a suite by its name, or by a path of one of the [formats](suite_formats).
///
/// # Errors
///
/// [`SuiteError`] when there is no such suite or it cannot be read; unknown names list the known, paths of no format or
/// of several what was looked for.
pub fn open_suite(name: &str, options: &SuiteOptions) -> Result<Box<dyn Suite>, SuiteError> {
    if let Ok(row) = suite_registry().find(name) {
        return (row.open.open)(options);
    }
    let path = Path::new(name);
    if path.exists() {
        return format_of(path)?.open(path);
    }
    let known = known_names(name, suite_registry().iter().map(|row| row.name));
    let formats: Vec<_> = suite_formats().iter().map(|format| format.looks_for()).collect();
    let formats = formats.join(", or ");
    Err(SuiteError::Unknown { name: name.to_owned(), known, formats })
}

/// The row of a suite of games.
const fn game(
    name: &'static str,
    about: &'static str,
    open: fn(&SuiteOptions) -> Result<Box<dyn Suite>, SuiteError>,
) -> SuiteRow {
    Row {
        name,
        about,
        source: "TextArena 0.7.4, its rules and texts",
        formula: "",
        options: OptionSet::NONE,
        open: NamedSuite { needs_data: false, open },
    }
}

/// The games of one player.
const GAMES_OF_ONE: [&str; 12] = [
    "guess-the-number",
    "mastermind",
    "tower-of-hanoi",
    "fifteen-puzzle",
    "hangman",
    "wordle",
    "game-2048",
    "minesweeper",
    "sudoku",
    "countdown",
    "blackjack",
    "bandit",
];

/// All of them, each with as large a share.
fn games() -> Result<Box<dyn Suite>, SuiteError> {
    let open = |name: &str| -> Result<(MixedSuite, Box<dyn Suite>), SuiteError> {
        Ok((MixedSuite::new(name), open_suite(name, &SuiteOptions::default())?))
    };
    let members = GAMES_OF_ONE.map(open).into_iter().collect::<Result<_, SuiteError>>()?;
    let told = |errors: Vec<SuiteError>| SuiteError::Mixture {
        detail: errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    };
    let about = "Twelve games of one player, mixed evenly.";
    Ok(Box::new(Mixture::new(members).map_err(told)?.named("games", about)))
}

fn shipped(name: &str, text: &str) -> Result<Box<dyn Suite>, SuiteError> {
    let path = PathBuf::from(format!("{name}/suite.toml"));
    Ok(Box::new(TemplateSuite::parse(text, &path)?))
}
