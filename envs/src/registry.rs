//! The environments that have a name.

use spar_core::registry::{Axis, OptionSet, Row, Table};
use spar_core::{SeatSpec, Seed};
use spar_tasks::graders::Graders;
use spar_tasks::{ShuffledTasks, Suite, SuiteError, SuiteOptions, Task, WrapperConfig, open_suite};

use crate::apps::Apps;
use crate::bfcl::Bfcl;
use crate::code::Code;
use crate::dialogue::Dialogue;
use crate::errand::Errand;
use crate::frozen_lake::FrozenLake;
use crate::graph_problems::GraphProblems;
use crate::grids::{Maze, MiniGrid, Sokoban, Survival};
use crate::household::Household;
use crate::ledger::Ledger;
use crate::micro_repair::MicroRepair;
use crate::offline::Offline;
use crate::ors::Ors;
use crate::panel::Panel;
use crate::process::Process;
use crate::question::Question;
use crate::reasoning_gym::ReasoningGym;
use crate::red_team::RedTeam;
use crate::replay::Replay;
use crate::search::Search;
use crate::shop::Shop;
use crate::sql::Sql;
use crate::swe::Swe;
use crate::tau2::Tau2;
use crate::terminal::Terminal;
use crate::text_craft::TextCraft;
use crate::text_world::TextWorld;
use crate::tic_tac_toe::TicTacToe;
use crate::tools::{ToolChoice, ToolUse};
use crate::web::{MiniWob, Site, WebShop};
use crate::{Environment, EnvironmentError, Graded, Resources, text_game, wrappers};

/// What makes tasks of an environment interactive, and what is known of it before.
#[derive(Debug, Clone, Copy)]
pub struct NamedEnvironment {
    /// The suite of it that ships, which the conformance tests play; absent where none can, since its tasks are somebody
    /// else's servers.
    pub suite: Option<&'static str>,
    /// Whether its episodes need sandboxes whatever the task; others may where the [task](needs_sandbox) has it so.
    pub needs_sandbox: bool,
    /// How it can be played.
    pub actions: Actions,
    /// Makes a task interactive.
    pub open: OpenTask,
    /// What family a task is of, as far as its parameters tell without making it: strata of the order
    /// in which tasks are met, and of samples. It need not be exact.
    pub stratum: fn(&Task) -> Option<String>,
}

/// In what an environment can be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actions {
    /// In words alone.
    Words,
    /// By calls of tools alone.
    Calls,
    /// In either.
    Both,
}

impl Actions {
    /// Whether it can be played in words.
    pub fn has_words(self) -> bool {
        self != Self::Calls
    }

    /// Whether it can be played by calls of tools.
    pub fn has_calls(self) -> bool {
        self != Self::Words
    }
}

/// In what an environment can be played; absent where there is none of this name.
pub fn actions_of(environment: &str) -> Option<Actions> {
    let entry = environment_registry().iter().find(|entry| entry.name == environment);
    entry.map(|entry| entry.open.actions)
}

/// In what a task can be played, where its environment leaves that to the task; absent where its environment has no row.
pub fn actions_of_task(task: &Task) -> Option<Actions> {
    match task.environment == Process::NAME {
        true => Process::actions(task),
        false => actions_of(&task.environment),
    }
}

/// Whether episodes of a task ask the judge in their course, beside what graders ask of it.
pub fn asks_judge(task: &Task) -> bool {
    RedTeam::asks_judge(task)
}

/// The seats of an environment that has a name, as a task of its own suite has them; absent where there is no such
/// environment, or that takes a sandbox to tell.
pub fn seats_of(environment: &str) -> Option<Vec<SeatSpec>> {
    let row = environment_registry().iter().find(|entry| entry.name == environment)?;
    if row.needs_sandbox {
        return None;
    }
    if needs_browser(environment) {
        return Some(SeatSpec::ONE.to_vec());
    }
    let suite = open_suite(row.suite?, &SuiteOptions::default()).ok()?;
    let (split, _) = suite.manifest().splits.first()?.clone();
    let task = suite.task(&split, 0).ok()?;
    let resources = Resources::default().without_graders();
    Some(open_environment(&task, &resources).ok()?.seats().to_vec())
}

/// An environment that has a name.
pub type EnvironmentRow = Row<NamedEnvironment>;

/// Makes a task interactive with what it needs of the machine.
pub type OpenTask = fn(&Task, &Resources) -> Result<Box<dyn Environment>, EnvironmentError>;

const AXIS: Axis =
    Axis { name: "environments", what: "environment", about: "What tasks are played in." };

const OTHERS: &[EnvironmentRow] = &[
    Row {
        name: "household",
        about: "Household chores in text, equal to ALFWorld's text engine.",
        source: "ALFWorld, arXiv 2010.03768, its PDDL and TextWorld grammar",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("household"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Household::open(task)?)),
            stratum: Household::likely_family,
        },
    },
    Row {
        name: "frozen-lake",
        about: "Cross a frozen lake drawn in text, slippery or not.",
        source: "Gymnasium's FrozenLake, in text",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("frozen-lake"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(FrozenLake::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "minigrid",
        about: "Levels of MiniGrid and BabyAI in sentences, equal to the package: go, pick up, open, put.",
        source: "MiniGrid and BabyAI, arXiv 2306.13831 and 1810.08272, package minigrid 3.2; sentences of BabyAI-Text, arXiv 2302.02662",
        formula: "success = 1 - 0.9 * steps / max_steps",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("minigrid"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(MiniGrid::open(task)?)),
            stratum: MiniGrid::level,
        },
    },
    Row {
        name: "sokoban",
        about: "Push boxes onto targets, in rooms equal to those of gym-sokoban or TextArena.",
        source: "gym-sokoban 0.0.6 and TextArena 0.7, as RAGEN, arXiv 2504.20073, plays it",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("sokoban"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Sokoban::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "maze",
        about: "Find the way through a maze, past locked doors whose keys lie before them.",
        source: "own, after Procgen's maze and heist, arXiv 1912.01588",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("maze"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Maze::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "survival",
        about: "Survive in a world of grass, caves and zombies: Crafter in words, equal to the package, by goals or as a whole.",
        source: "Crafter, arXiv 2109.06780, package crafter 1.8.3",
        formula: "a goal earns 1; in the game each of 22 achievements earns 1, and where asked a point of health 0.1",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("survival"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Survival::open(task)?)),
            stratum: Survival::stratum,
        },
    },
    Row {
        name: "question",
        about: "A question, answered in one turn and held against what is right.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("sums"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Question::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "reasoning-gym",
        about: "Puzzles of many kinds from seeds, equal to reasoning-gym's, scored as there.",
        source: "reasoning-gym 0.1.25, arXiv 2505.24760",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("reasoning-gym"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(ReasoningGym::open(task)?)),
            stratum: ReasoningGym::dataset,
        },
    },
    Row {
        name: "graph-problems",
        about: "Problems about graphs from seeds, answered by numbers, sets, paths and orders, and checked on the graph.",
        source: "own, after Erdős of G1, arXiv 2505.18499, and Guru's puzzles of graphs, arXiv 2506.14965",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("graph-problems"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(GraphProblems::open(task)?)),
            stratum: GraphProblems::family,
        },
    },
    Row {
        name: "bfcl",
        about: "Requests that calls of functions answer: the Berkeley Function-Calling Leaderboard, its own tasks or generated ones.",
        source: "BFCL v4, github.com/ShishirPatil/gorilla",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("bfcl"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, _| Ok(Box::new(Bfcl::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "ledger",
        about: "A book of accounts that is kept by calls of tools, which change with the book.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("ledger"),
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, _| Ok(Box::new(Ledger::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "toolbox",
        about: "A question, answered with the help of the tools that the task names.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("toolbox"),
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, resources| Ok(Box::new(ToolUse::open(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "apps",
        about: "Contacts, mail, calendar, files and payments behind tools, judged by what has changed.",
        source: "own, after AppWorld, arXiv 2407.18901, and ToolSandbox, arXiv 2408.04682",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("apps"),
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, _| Ok(Box::new(Apps::open(task)?)),
            stratum: Apps::family,
        },
    },
    Row {
        name: "mcp",
        about: "A question or an errand, with the tools of servers that speak the Model Context Protocol.",
        source: "Model Context Protocol, 2025-06-18, modelcontextprotocol.io",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("mcp"),
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, resources| Ok(Box::new(ToolUse::open_with_servers(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "ors",
        about: "A task of a server of the Open Reward Standard: its prompt, its tools, its rewards.",
        source: "Open Reward Standard, openrewardstandard.io",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: None,
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, resources| Ok(Box::new(Ors::open(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "code",
        about: "A question with an interpreter of Python or JavaScript at hand, answered by a value or a program.",
        source: "own, after ReTool, arXiv 2504.11536",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("code"),
            needs_sandbox: true,
            actions: Actions::Calls,
            open: |task, resources| Ok(Box::new(Code::open(task, resources)?)),
            stratum: Code::drawn_family,
        },
    },
    Row {
        name: MicroRepair::NAME,
        about: "A tiny program in Python or JavaScript with a bug, mended line by line and judged by hidden tests.",
        source: "own, after mutation testing",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("micro-repair"),
            needs_sandbox: true,
            actions: Actions::Calls,
            open: |task, resources| Ok(Box::new(MicroRepair::open(task, resources)?)),
            stratum: MicroRepair::level,
        },
    },
    Row {
        name: "process",
        about: "A program in any language, asked and answering in lines of JSON.",
        source: "own, docs/process-environments.md",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("dial"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(Process::open(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "tic-tac-toe",
        about: "Tic-tac-toe in text: two seats, three in a row win.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("tic-tac-toe"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(TicTacToe::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "panel",
        about: "Several agents who answer a question one after the other, and earn what all answers are worth, or what peers find of them.",
        source: "own, after CORY, arXiv 2410.06101, and CoMAS, arXiv 2510.08529, reconstructed from their abstracts",
        formula: "shared: R(i) = sum_j 1[j is right]; peers: R(answer of i) = (score - 1) / 2, R(evaluation of it) = 1 - that",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("panel"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Panel::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "red-team",
        about: "One who attacks a desk by a request and one who defends its secret by an answer: two seats, zero-sum.",
        source: "own, after Self-RedTeam, arXiv 2506.07468, reconstructed from its abstract: facts of a desk in the place of collections about safety",
        formula: "R(defender) = 1 where the secret is kept, or the harmless is told and nothing else, else -1; R(attacker) = -R(defender)",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("red-team"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, resources| Ok(Box::new(RedTeam::open(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "errand",
        about: "A customer who wants something, and an agent who has to ask for it: two seats that talk.",
        source: "own, after simulated users as in tau-bench, arXiv 2406.12045",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("errand"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, _| Ok(Box::new(Errand::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "dialogue",
        about: "A user with a hidden goal and a persona, and an agent who finds it out: two seats that talk.",
        source: "own, after simulated users as in tau-bench, arXiv 2406.12045",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("dialogue"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, _| Ok(Box::new(Dialogue::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "search",
        about: "A question that is answered from a corpus, by searches and one answer.",
        source: "Search-R1, arXiv 2503.09516, its tags; SQuAD, arXiv 1606.05250, its exact match",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("search"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(Search::open(task, resources)?)),
            stratum: Search::stratum,
        },
    },
    Row {
        name: "shop",
        about: "A shop of 100,000 products: search, look, choose options and buy what an instruction describes.",
        source: "WebShop, arXiv 2207.01206, its pages and rewards; own products",
        formula: "purchase = r_type (attributes + options + price) / (|attributes| + |options| + 1)",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("shop"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Shop::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "text-world",
        about: "A house of rooms, doors, keys and chests in words, with a quest of a given length.",
        source: "own, after TextWorld, arXiv 1806.11532",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("text-world"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(TextWorld::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "textcraft",
        about: "Craft an item by recipes, out of what can be fetched.",
        source: "TextCraft, arXiv 2311.05772, its texts as AgentGym has them; own recipes",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("textcraft"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(TextCraft::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "replay",
        about: "A recorded episode, replayed while a policy acts; where it differs, the history goes on as recorded.",
        source: "UI-S1, arXiv 2509.11543, its semi-online rollouts with thought-free patches",
        formula: "match = 1[action = recorded] / steps; sop = (progress + success) / 2",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("replay"),
            needs_sandbox: false,
            actions: Actions::Words,
            open: |task, _| Ok(Box::new(Replay::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "offline",
        about: "An episode that somebody played, done again: what differs from it ends it.",
        source: "own, after D4RL, arXiv 2004.07219",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: None,
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, _| Ok(Box::new(Offline::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "sql",
        about: "A question about a database, answered by a query in SQL.",
        source: "own, after Spider, arXiv 1809.08887, and BIRD, arXiv 2305.03111",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("sql"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, _| Ok(Box::new(Sql::open(task)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "tau2",
        about: "Customer service by tools and a policy, equal to tau2-bench: an agent and a user, or an agent alone.",
        source: "tau2-bench, arXiv 2506.07982, version 1.0.1",
        formula: "task = the product of what the task's reward is made of: DB, ENV_ASSERTION, ACTION, COMMUNICATE, NL_ASSERTION",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("tau2"),
            needs_sandbox: false,
            actions: Actions::Calls,
            open: |task, resources| {
                Ok(Box::new(match resources.is_ungraded {
                    true => Tau2::open_ungraded(task)?,
                    false => Tau2::open(task)?,
                }))
            },
            stratum: |task| task.parameters.get("domain")?.as_str().map(str::to_owned),
        },
    },
    Row {
        name: "miniwob",
        about: "A task of MiniWoB++ in a real browser, with BrowserGym's observations, actions and rewards.",
        source: "MiniWoB++, arXiv 1802.08802; BrowserGym 0.14.3, arXiv 2412.05467",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("miniwob"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(MiniWob::open(task, resources)?)),
            stratum: MiniWob::drawn,
        },
    },
    Row {
        name: "site",
        about: "Something to do or to find out on small sites in a real browser: a forum, a shop, a map.",
        source: "own sites and tasks; judges of WebArena, arXiv 2307.13854",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("site"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(Site::open(task, resources)?)),
            stratum: Site::kind,
        },
    },
    Row {
        name: "web-shop",
        about: "The shop of `shop` as pages in a real browser: search, look, choose and buy.",
        source: "pages and rewards after WebShop, arXiv 2207.01206",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("web-shop"),
            needs_sandbox: false,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(WebShop::open(task, resources)?)),
            stratum: |_| None,
        },
    },
    Row {
        name: "terminal",
        about: "Work at a shell in a sandbox, judged by a script when it is done.",
        source: "own, after Terminal-Bench",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: Some("terminal"),
            needs_sandbox: true,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(Terminal::open(task, resources)?)),
            stratum: Terminal::drawn_kind,
        },
    },
    Row {
        name: "swe",
        about: "An issue of a repository, resolved at a shell and judged by hidden tests in a sandbox of their own.",
        source: "SWE-bench, arXiv 2310.06770, and its relatives (docs/swe.md)",
        formula: "",
        options: OptionSet::NONE,
        open: NamedEnvironment {
            suite: None,
            needs_sandbox: true,
            actions: Actions::Both,
            open: |task, resources| Ok(Box::new(Swe::open(task, resources)?)),
            stratum: Swe::repository,
        },
    },
];

/// The others, and behind them the games.
const ROWS: &[EnvironmentRow] = &{
    let mut rows = [OTHERS[0]; OTHERS.len() + spar_games::GAMES.len()];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = match at < OTHERS.len() {
            true => OTHERS[at],
            false => text_game::row(&spar_games::GAMES[at - OTHERS.len()]),
        };
        at += 1;
    }
    rows
};

static TABLE: Table<NamedEnvironment> = Table::new(AXIS, ROWS);

/// All environments that have a name; a new one is one file and one row here.
pub fn environment_registry() -> &'static Table<NamedEnvironment> {
    &TABLE
}

/// Whether the episodes of a task need sandboxes: because of its environment, of the tools that it names, or of the application that
/// its pages are of; `false` where there is no such environment.
pub fn needs_sandbox(task: &Task) -> bool {
    let mut rows = environment_registry().iter();
    rows.any(|entry| entry.name == task.environment && entry.needs_sandbox)
        || ToolUse::sandboxed(task).next().is_some()
        || Site::is_served(task)
}

/// Whether tasks of an environment can be worked on with the tools of a published scaffold.
pub fn takes_toolsets(environment: &str) -> bool {
    [Terminal::NAME, Swe::NAME].contains(&environment)
}

/// Whether episodes of an environment need a browser, which machines may not have.
pub fn needs_browser(environment: &str) -> bool {
    [MiniWob::NAME, Site::NAME, WebShop::NAME].contains(&environment)
}

/// The backend of the sandboxes of a task's episodes, where nobody names one; absent where they need none.
pub fn usual_backend(task: &Task) -> Option<&'static str> {
    if [Code::NAME, MicroRepair::NAME].contains(&&*task.environment) {
        // Their interpreters are guests, and need no engine.
        return Some("wasm");
    }
    let mut sandboxed = ToolUse::sandboxed(task).peekable();
    if sandboxed.peek().is_some() {
        // Interpreters are guests here as well, unless a package or an image of theirs needs an engine.
        let needs_engine = |tool: &ToolChoice| {
            ["packages", "image"].iter().any(|option| tool.options.contains_key(*option))
        };
        return Some(if sandboxed.any(|tool| needs_engine(&tool)) { "docker" } else { "wasm" });
    }
    needs_sandbox(task).then_some("docker")
}

/// The tasks of a split in the order that follows from `seed`, stratified by what the suite knows of
/// them or their environment tells.
///
/// # Errors
///
/// [`SuiteError::UnknownSplit`] where there is no such split.
pub fn shuffled_tasks<'a>(
    suite: &'a dyn Suite,
    split: &'a str,
    seed: Seed,
) -> Result<ShuffledTasks<'a>, SuiteError> {
    Ok(ShuffledTasks::new(suite, split, seed)?.with_strata(stratum_of))
}

/// What a task has in common with others, as its environment can tell from its parameters.
pub(crate) fn stratum_of(task: &Task) -> Option<String> {
    let entry = environment_registry().iter().find(|entry| entry.name == task.environment)?;
    (entry.stratum)(task)
}

/// Makes a task interactive, judged by the graders that it and `resources` name, or else by the environment itself.
///
/// # Errors
///
/// [`EnvironmentError`] when no environment has the task's name for it, it refuses the task, or it or a grader
/// needs what `resources` lack.
pub fn open_environment(
    task: &Task,
    resources: &Resources,
) -> Result<Box<dyn Environment>, EnvironmentError> {
    if let Some((wrappers, inner)) = taken(task)? {
        return wrappers::open_wrapped(&wrappers, &inner, resources);
    }
    let row = environment_registry().find(&task.environment)?;
    if resources.is_ungraded {
        let task = Task { graders: Vec::new(), ..task.clone() };
        return (row.open.open)(&task, resources);
    }
    if task.graders.is_empty() && resources.graders.is_empty() {
        return (row.open.open)(task, resources);
    }
    // The environment sees all graders, so that its sandboxes live for their scripts.
    let graders = Graders::merged(&task.graders, &resources.graders);
    let task = Task { graders, ..task.clone() };
    let graders = Graders::open(&task.graders)?;
    let inner = (row.open.open)(&task, resources)?;
    Ok(Box::new(Graded::new(inner, task, graders, resources.models.clone())?))
}

/// The wrappers of a task, and the task without them.
fn taken(task: &Task) -> Result<Option<(Vec<WrapperConfig>, Task)>, EnvironmentError> {
    WrapperConfig::take(task).map_err(|error| EnvironmentError::Parameters {
        task: task.id.clone(),
        environment: "wrapped",
        detail: format!("`{}`: {error}", WrapperConfig::PARAMETER),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use spar_sandbox::backends::fake::FakeBackend;
    use spar_sandbox::pool::{PoolConfig, SandboxPool};

    use super::*;
    use crate::Sandboxes;

    #[tokio::test]
    async fn the_families_that_parameters_tell_are_those_of_the_tasks() {
        let pool = SandboxPool::new(Arc::new(FakeBackend::new()), PoolConfig::default()).unwrap();
        let resources = Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)));
        for (name, least) in [("household", 55), ("terminal", 60)] {
            let suite = open_suite(name, &SuiteOptions::default()).unwrap();
            let entry = environment_registry().iter().find(|entry| entry.name == name).unwrap();
            let is_told = |index| {
                let task = suite.task("train", index).unwrap();
                let told = (entry.stratum)(&task).unwrap();
                open_environment(&task, &resources).unwrap().tags().contains(&told)
            };
            let right = (0..60).filter(|index| is_told(*index)).count();
            assert!(right >= least, "{name}: {right}");
        }
    }

    #[test]
    fn seats_have_their_instructions_beside_a_grader_as_well() {
        let suite = open_suite("errand", &SuiteOptions::default()).unwrap();
        let mut task = suite.task("test", 0).unwrap();
        let grader = serde_json::json!({ "kind": "environment" });
        task.graders.push(serde_json::from_value(grader).unwrap());
        let env = open_environment(&task, &Resources::default()).unwrap();
        assert!(env.instructs_seats() && env.seats().len() == 2);
    }

    #[test]
    fn whether_a_task_needs_a_sandbox_is_for_its_tools_to_say() {
        let task = |environment: &str, tools: serde_json::Value| {
            let parameters = serde_json::json!({ "prompt": "?", "tools": tools });
            crate::test_task(environment, parameters)
        };
        let plain = task("toolbox", serde_json::json!(["calculator", { "tool": "notes" }]));
        assert!(!needs_sandbox(&plain) && usual_backend(&plain).is_none());
        for (environment, tools, backend) in [
            ("toolbox", serde_json::json!(["calculator", "python"]), "wasm"),
            ("mcp", serde_json::json!([{ "tool": "javascript", "prefix": "js" }]), "wasm"),
            ("toolbox", serde_json::json!([{ "tool": "python", "packages": ["numpy"] }]), "docker"),
        ] {
            let task = task(environment, tools);
            assert!(needs_sandbox(&task), "{environment}");
            assert_eq!(usual_backend(&task), Some(backend));
        }
        let other = task("ledger", serde_json::json!(["python"]));
        assert!(!needs_sandbox(&other), "its parameters are its own");
    }

    #[test]
    fn generated_tasks_are_met_with_every_family_in_its_share() {
        let suite = open_suite("household", &SuiteOptions::default()).unwrap();
        let tasks = shuffled_tasks(suite.as_ref(), "train", Seed::from_u64(1)).unwrap();
        let family = |task: &Task| Household::likely_family(task).unwrap();
        let mut counts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for batch in 0..8 {
            for task in tasks.take(500_000 + 32 * batch, 32).unwrap() {
                counts.entry(family(&task)).or_insert_with(|| vec![0; 8])[batch as usize] += 1;
            }
        }
        assert_eq!(counts.len(), 6);
        for (family, counts) in counts {
            let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            assert!(spread <= 3, "{family}: {counts:?}");
        }
    }
}
