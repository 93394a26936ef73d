//! Whole games: a small one written here, and the real ones where they are present.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::generator::{DOMAIN, grammar_for};
use super::{
    Engine, Game, GameFile, HouseholdError, TaskFamily, find_games, oracle, replay_traces,
};

/// A sink, a shelf and a fridge beside it; a cup is in the sink and, as real data has it, also on
/// the shelf; a mug is in the fridge.
const PROBLEM: &str = "
(define (problem small) (:domain alfred)
 (:objects agent1 - agent
   loc_bar_1 - location loc_bar_2 - location loc_bar_3 - location
   Sink_bar_1_bar_SinkBasin - receptacle Shelf_bar_1 - receptacle Fridge_bar_1 - receptacle
   Cup_bar_1 - object Mug_bar_1 - object Mug_bar_2 - object Unseen_bar_1 - object
   SinkBasinType - rtype ShelfType - rtype FridgeType - rtype CupType - otype MugType - otype
   KnifeType - otype ButterKnifeType - otype MicrowaveType - rtype)
 (:init (= (total-cost) 0)
   (atLocation agent1 loc_bar_1)
   (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_2)
   (receptacleAtLocation Shelf_bar_1 loc_bar_3) (receptacleAtLocation Fridge_bar_1 loc_bar_3)
   (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType) (receptacleType Shelf_bar_1 ShelfType)
   (receptacleType Fridge_bar_1 FridgeType) (openable Fridge_bar_1)
   (objectType Cup_bar_1 CupType) (objectType Mug_bar_1 MugType) (objectType Mug_bar_2 MugType)
   (pickupable Cup_bar_1) (pickupable Mug_bar_1) (pickupable Mug_bar_2)
   (cleanable Mug_bar_1) (cleanable Mug_bar_2)
   (inReceptacle Cup_bar_1 Sink_bar_1_bar_SinkBasin) (inReceptacle Cup_bar_1 Shelf_bar_1)
   (inReceptacle Mug_bar_1 Fridge_bar_1) (inReceptacle Mug_bar_2 Sink_bar_1_bar_SinkBasin)
   (objectAtLocation Cup_bar_1 loc_bar_2) (objectAtLocation Mug_bar_2 loc_bar_2)
   (objectAtLocation Mug_bar_1 loc_bar_3)
   (canContain ShelfType MugType) (canContain ShelfType CupType) (canContain FridgeType CupType)
   (canContain SinkBasinType MugType))
 (:goal (and (exists (?r - receptacle) (exists (?o - object) (and (cleanable ?o)
   (objectType ?o MugType) (receptacleType ?r ShelfType) (isClean ?o) (inReceptacle ?o ?r)))))))";

fn file() -> GameFile {
    GameFile {
        pddl_domain: DOMAIN.to_owned(),
        grammar: grammar_for("put a clean mug in shelf"),
        pddl_problem: PROBLEM.to_owned(),
        solvable: Some(true),
        walkthrough: None,
    }
}

fn start(file: &GameFile) -> Engine {
    Engine::new(Game::from_parts("small", file).unwrap())
}

fn commands(engine: &Engine) -> Vec<String> {
    engine.admissible().iter().map(str::to_owned).collect()
}

#[test]
fn a_small_game_is_played_to_its_goal() {
    let mut engine = start(&file());
    assert!(engine.observation().ends_with("Your task is to: put a clean mug in shelf."));
    assert_eq!(engine.game().task_family(), Some(TaskFamily::PickCleanThenPlaceInRecep));
    assert_eq!(
        commands(&engine),
        ["go to fridge 1", "go to shelf 1", "go to sinkbasin 1", "help", "inventory", "look"]
    );
    for (command, answer) in [
        ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a cup 1."),
        ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a mug 2."),
        ("look", "You are facing the fridge 1, and shelf 1. Next to it, you see nothing."),
        ("take mug 2 from fridge 1", "You pick up the mug 2 from the fridge 1."),
        ("move mug 2 to shelf 1", "You move the mug 2 to the shelf 1."),
        ("look", "You are facing the fridge 1, and shelf 1. Next to it, you see a mug 2."),
        ("take mug 2 from shelf 1", "You pick up the mug 2 from the shelf 1."),
        ("go to fridge 1", "Nothing happens."),
        (" inventory\n", "You are carrying: a mug 2."),
        (
            "go to sinkbasin 1",
            "You arrive at sinkbasin 1. On the sinkbasin 1, you see a cup 1, and a mug 1.",
        ),
        ("clean mug 2 with sinkbasin 1", "You clean the mug 2 using the sinkbasin 1."),
        ("examine mug 2", "This is a clean mug 2."),
        ("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a cup 1."),
    ] {
        engine.step(command);
        assert_eq!(engine.observation(), answer, "after {command:?}");
        assert!(!engine.won());
    }
    assert_eq!(engine.location(), ["fridge 1", "shelf 1"]);
    assert_eq!(engine.held(), Some("mug 2"));
    assert!(engine.step("move mug 2 to shelf 1").won);
}

#[test]
fn an_impossible_command_changes_nothing() {
    let mut engine = start(&file());
    let (key, before) = (engine.full_state_key(), commands(&engine));
    let outcome = engine.step("Look");
    assert!(!outcome.executable);
    assert_eq!((engine.full_state_key(), commands(&engine)), (key, before));
}

#[test]
fn an_object_in_two_receptacles_stays_in_the_other() {
    let mut engine = start(&file());
    for command in ["go to sinkbasin 1", "take cup 1 from sinkbasin 1", "go to shelf 1"] {
        assert!(engine.step(command).executable);
    }
    assert_eq!(engine.observation(), "You arrive at shelf 1. On the shelf 1, you see a cup 1.");
}

#[test]
fn hidden_things_are_in_the_full_key_only() {
    let mut away = start(&file());
    let at_start = (away.state_key(), away.full_state_key());
    for command in ["go to fridge 1", "open fridge 1", "go to sinkbasin 1"] {
        away.step(command);
    }
    let mut direct = start(&file());
    direct.step("go to sinkbasin 1");
    assert_eq!(away.state_key(), direct.state_key());
    assert_ne!(away.full_state_key(), direct.full_state_key());
    assert_ne!(at_start, (direct.state_key(), direct.full_state_key()));
}

#[test]
fn altered_texts_and_rules_are_honoured() {
    let mut altered = file();
    altered.grammar = altered.grammar.replace("You open the {r.name}.", "Creak, says {r.id}!");
    altered.pddl_domain = altered.pddl_domain.replacen("(holds ?a ?o)", "(pickupable ?o)", 1);
    let mut engine = start(&altered);
    assert!(engine.admissible().contains("examine mug 1"), "{:?}", commands(&engine));
    engine.step("go to fridge 1");
    engine.step("open fridge 1");
    assert_eq!(
        engine.observation(),
        "Creak, says fridge_bar_1! The fridge 1 is open. In it, you see a mug 2."
    );
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    type Alteration = fn(&mut GameFile);
    let cases: [(Alteration, &str); 16] = [
        (
            |file| file.pddl_domain = replace(&file.pddl_domain, ":adl", ":fluents"),
            "requirement `:fluents`",
        ),
        (
            |file| file.pddl_domain = replace(&file.pddl_domain, "(exists (?l", "(forall (?l"),
            "`forall`",
        ),
        (
            |file| file.pddl_domain = replace(&file.pddl_domain, "(holds ?a ?o)", "(grips ?a ?o)"),
            "predicate `grips`",
        ),
        (
            |file| file.pddl_domain = replace(&file.pddl_domain, "(holds ?a ?o)", "(holds ?x ?o)"),
            "variable `?x`",
        ),
        (
            |file| file.pddl_domain = replace(&file.pddl_domain, "?a - agent ?r", "?a - robot ?r"),
            "type `robot`",
        ),
        (
            |file| {
                file.pddl_domain =
                    replace(&file.pddl_domain, "(:action look", "(:durative-action look")
            },
            "section `:durative-action`",
        ),
        (|file| file.pddl_domain.truncate(900), "cut off"),
        (|file| file.pddl_problem.truncate(900), "cut off"),
        (
            |file| file.pddl_problem = replace(&file.pddl_problem, "(:goal", "(:constraints"),
            "section `:constraints`",
        ),
        (
            |file| {
                file.pddl_problem =
                    replace(&file.pddl_problem, "(pickupable Cup_bar_1)", "(pickupable Cup_bar_9)")
            },
            "`cup_bar_9`",
        ),
        (
            |file| {
                file.pddl_problem =
                    replace(&file.pddl_problem, "(pickupable Cup_bar_1)", "(edible Cup_bar_1)")
            },
            "fact `edible`",
        ),
        (
            |file| file.grammar = replace(&file.grammar, "action help", "action halp"),
            "action `help`",
        ),
        (
            |file| file.grammar = replace(&file.grammar, "opened(r:receptacle)", "opened(r:door)"),
            "type `door`",
        ),
        (
            |file| file.grammar = replace(&file.grammar, "opened(r:receptacle)", "opened r"),
            "query `",
        ),
        (
            |file| file.grammar = replace(&file.grammar, "#look-variations#", "#gaze#"),
            "symbol `#gaze#`",
        ),
        (|file| file.grammar.truncate(1500), "cut off"),
    ];
    for (index, (alter, named)) in cases.iter().enumerate() {
        let mut altered = file();
        alter(&mut altered);
        let error = Game::from_parts("small", &altered).map(|game| game.intro.clone());
        let message = error.expect_err(named).to_string();
        let is_cut_off = *named == "cut off" && message.contains("never closed");
        assert!(message.contains(named) || is_cut_off, "case {index}: {message}");
        assert!(message.contains("game `small`"), "case {index}: {message}");
    }
}

/// Replaces the first occurrence, which has to be there.
fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "`{from}` is not in the text");
    text.replacen(from, to, 1)
}

#[test]
fn a_truncated_file_is_an_error_with_its_name() {
    let bytes = serde_json::to_vec(&file()).unwrap();
    for end in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = Game::parse("some/game", &bytes[..end]).unwrap_err();
        assert!(matches!(error, HouseholdError::Json { .. }));
        assert!(error.to_string().contains("some/game"));
    }
}

#[test]
fn a_problem_survives_writing_and_reading() {
    let problem = super::pddl::Problem::parse(PROBLEM).unwrap();
    let written = problem.to_string();
    assert_eq!(super::pddl::Problem::parse(&written).unwrap(), problem);
}

#[test]
fn the_oracle_reaches_the_goal_from_anywhere() {
    let mut engine = start(&file());
    for command in
        ["go to sinkbasin 1", "take cup 1 from sinkbasin 1", "go to shelf 1", "open fridge 1"]
    {
        let plan = oracle::solve(&engine).unwrap();
        let mut fork = engine.clone();
        assert!(plan.iter().all(|command| fork.step(command).executable));
        assert!(fork.won());
        assert!(engine.step(command).executable);
    }
    assert_eq!(oracle::solve(&start(&file())).unwrap().len(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_fork_goes_on_like_a_replay(picks in prop::collection::vec(0_usize..100, 0..40), at in 0_usize..40) {
        let mut engine = start(&file());
        let mut played = Vec::new();
        let mut fork = None;
        for (index, pick) in picks.iter().enumerate() {
            if index == at {
                fork = Some(engine.clone());
            }
            let list = commands(&engine);
            prop_assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
            let command = list[pick % list.len()].clone();
            prop_assert!(engine.step(&command).executable);
            played.push(command);
        }
        let mut replay = start(&file());
        played.iter().for_each(|command| { replay.step(command); });
        let mut others = vec![replay];
        if let Some(mut fork) = fork {
            played[at..].iter().for_each(|command| { fork.step(command); });
            others.push(fork);
        }
        for other in others {
            prop_assert_eq!(other.full_state_key(), engine.full_state_key());
            prop_assert_eq!(other.state_key(), engine.state_key());
            prop_assert_eq!(other.observation(), engine.observation());
            prop_assert_eq!(commands(&other), commands(&engine));
        }
    }

    #[test]
    fn a_damaged_game_never_panics(
        part in 0..3,
        at in 0.0..1.0_f64,
        removed in 0_usize..12,
        added in "[(){}\\[\\]\"#|?:a-z \n-]{0,6}",
    ) {
        let mut damaged = file();
        let text = match part {
            0 => &mut damaged.pddl_domain,
            1 => &mut damaged.pddl_problem,
            _ => &mut damaged.grammar,
        };
        let from = (at * text.len() as f64) as usize;
        let to = (from + removed).min(text.len());
        if text.is_char_boundary(from) && text.is_char_boundary(to) {
            text.replace_range(from..to, &added);
        }
        if let Ok(game) = Game::from_parts("damaged", &damaged) {
            let mut engine = Engine::new(game);
            for pick in 0..8 {
                let list = commands(&engine);
                let Some(command) = list.get(pick * 7 % list.len().max(1)) else { break };
                engine.step(command);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Game::parse("noise", &bytes).is_err());
    }
}

/// The folder of real games; they are not part of this repository.
fn real_data() -> Option<PathBuf> {
    let named = ["SPAR_ALFWORLD_DATA", "ALFWORLD_DATA"].iter().find_map(std::env::var_os);
    let path = named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/alfworld"),
        PathBuf::from,
    );
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no real games at {}; SPAR_ALFWORLD_DATA names their folder", path.display());
    None
}

#[test]
fn the_reference_gives_the_same_answers_on_real_games() {
    let Some(data) = real_data().filter(|data| data.join("traces").is_dir()) else { return };
    let report = replay_traces(&data, &data.join("traces")).unwrap();
    assert!(report.records > 0);
    assert_eq!(report.mismatches, 0, "{report}");
}

#[test]
fn the_oracle_solves_real_games() {
    let Some(data) = real_data() else { return };
    // Every seventh game; all of them take a while without optimisation.
    for path in find_games(&data).unwrap().iter().step_by(7) {
        let mut engine = Engine::new(Arc::clone(&Game::load(path).unwrap()));
        let plan = oracle::solve(&engine).unwrap_or_else(|| panic!("no plan for {path:?}"));
        assert!(plan.len() <= 50);
        assert!(plan.iter().all(|command| engine.step(command).executable));
        assert!(engine.won());
    }
}
