use std::collections::BTreeSet;
use std::sync::Arc;

use spar_core::Seed;

use super::FAMILIES;
use crate::{AppTask, Families, Offer, Session, specs, tools};

/// Families whose amounts follow from others.
const COMPUTED: [&str; 5] =
    ["total-sent", "total-to-file", "split-bill", "split-file-bill", "count-mails"];

fn each_task(seeds: u64, mut look: impl FnMut(AppTask)) {
    for family in FAMILIES {
        for seed in 0..seeds {
            look(AppTask::of(family.name, Seed::from_u64(seed)).unwrap());
        }
    }
}

#[test]
fn every_demonstration_reaches_its_goal_and_fewer_calls_do_not() {
    each_task(12, |task| {
        let task = Arc::new(task);
        let mut session = Session::new(Arc::clone(&task));
        let mut shown = Vec::new();
        for gold in task.demonstration() {
            let text = session.call(gold.tool, &gold.arguments);
            shown.push(
                text.unwrap_or_else(|error| panic!("{} {}: {error}", task.family, gold.tool)),
            );
        }
        let judgement = session.judgement().unwrap();
        assert!(
            judgement.success && (judgement.progress == 1.0 || task.goal.required.is_empty()),
            "{}: {}\n{judgement:?}\n{shown:#?}",
            task.family,
            task.instruction
        );
        // Without its last change, or without its answer, it is none.
        let calls = task.demonstration().len();
        let mut session = Session::new(Arc::clone(&task));
        for gold in &task.demonstration()[..calls - 2] {
            session.call(gold.tool, &gold.arguments).unwrap();
        }
        session.call("finish", &serde_json::Map::new()).unwrap();
        assert!(!session.judgement().unwrap().success, "{}", task.family);
    });
}

#[test]
fn what_a_demonstration_says_was_shown_before() {
    each_task(6, |task| {
        let mut session = Session::new(Arc::new(task));
        let mut shown = session.task().instruction.clone();
        while let Some(gold) = session.next_gold().cloned() {
            let family = session.task().family;
            for value in gold.arguments.values() {
                let values: Vec<&serde_json::Value> = match value.as_array() {
                    Some(list) => list.iter().collect(),
                    None => vec![value],
                };
                for value in values {
                    let known = match value {
                        serde_json::Value::String(text) => text
                            .split_whitespace()
                            .all(|word| shown.contains(word.trim_end_matches(','))),
                        serde_json::Value::Number(number) => {
                            let number = number.as_f64().unwrap();
                            shown.contains(&format!("{number:.2}"))
                                || shown.contains(&number.to_string())
                        }
                        _ => true,
                    };
                    let is_own = ["It is at", "Here it is"]
                        .iter()
                        .any(|own| value.to_string().contains(own));
                    let is_hour = value == "09:00" || value == "17:00";
                    assert!(
                        known || is_own || is_hour || COMPUTED.contains(&family),
                        "{family}: {value} is nowhere in {shown}"
                    );
                }
            }
            shown += "\n";
            shown += &session.call(gold.tool, &gold.arguments).unwrap();
        }
    });
}

#[test]
fn tasks_of_a_family_differ_and_are_told_by_their_seed() {
    for family in FAMILIES {
        let words = |seed: u64| AppTask::of(family.name, Seed::from_u64(seed)).unwrap().instruction;
        assert_eq!(words(1), words(1));
        let several: BTreeSet<String> = (0..8).map(words).collect();
        // Some say the same in every world.
        let least = if ["ask-balance", "cancel-requests"].contains(&family.name) { 1 } else { 3 };
        assert!(several.len() >= least, "{}: {several:?}", family.name);
        assert!(several.iter().all(|text| text.is_ascii() && text.len() < 400), "{several:?}");
    }
    let names: BTreeSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), FAMILIES.len());
}

#[test]
fn families_are_drawn_by_level_and_kept_apart() {
    let drawn = |families, levels: &[u8]| -> BTreeSet<&'static str> {
        let task = |seed| AppTask::draw(Seed::from_u64(seed), families, levels).unwrap().family;
        (0..150).map(task).collect()
    };
    let (seen, unseen) =
        (drawn(Families::Seen, &[1, 2, 3, 4]), drawn(Families::Unseen, &[1, 2, 3, 4]));
    assert!(
        seen.is_disjoint(&unseen) && seen.len() > 30 && unseen.len() > 8,
        "{seen:?} {unseen:?}"
    );
    let easy = drawn(Families::Seen, &[1]);
    assert_eq!(easy.len(), FAMILIES.iter().filter(|family| family.level == 1).count());
    assert!(AppTask::draw(Seed::from_u64(0), Families::Unseen, &[1]).is_none());
}

#[test]
fn what_is_offered_has_what_is_needed() {
    let mut used = BTreeSet::new();
    each_task(2, |task| {
        for offer in [Offer::Needed, Offer::Apps, Offer::All] {
            let offered: Vec<&str> =
                task.offered(offer).into_iter().map(|place| specs()[place].name.as_str()).collect();
            let calls = task.demonstration();
            assert!(calls.iter().all(|call| offered.contains(&call.tool)), "{}", task.family);
            if offer == Offer::Needed {
                assert!(offered.len() <= 12, "{}: {offered:?}", task.family);
            }
        }
        used.extend(task.demonstration().iter().map(|call| call.tool));
        assert_eq!(task.offered(Offer::All).len(), tools().len());
        if task.level == 1 {
            assert!(task.demonstration().len() <= 2, "{}", task.family);
        }
    });
    assert!(used.len() >= 30, "{used:?}");
}
