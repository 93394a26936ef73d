use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spar_core::Seed;

use crate::{AppTask, FAMILIES, Session, changes, specs, tools};

fn session(family: &str, seed: u64) -> Session {
    Session::new(Arc::new(AppTask::of(family, Seed::from_u64(seed)).unwrap()))
}

fn call(session: &mut Session, name: &str, arguments: Value) -> Result<String, String> {
    session.call(name, arguments.as_object().unwrap())
}

/// Makes the calls of the demonstration but its last.
fn all_but_the_end(session: &mut Session) {
    while let Some(gold) = session.next_gold().cloned() {
        if gold.tool == "finish" {
            return;
        }
        session.call(gold.tool, &gold.arguments).unwrap();
    }
    panic!("the demonstration has an end");
}

fn nothing(session: &mut Session, why: &str) {
    if session.judgement().is_none() {
        call(session, "finish", json!({})).unwrap();
    }
    let judgement = session.judgement().unwrap();
    assert!(!judgement.success && judgement.progress == 0.0, "{why}: {judgement:?}");
}

#[test]
fn doing_nothing_earns_nothing_in_any_family() {
    for family in FAMILIES {
        nothing(&mut session(family.name, 1), family.name);
    }
}

#[test]
fn what_was_undone_earns_nothing() {
    let mut session = session("star-mail", 1);
    let star = session.next_gold().unwrap().arguments.clone();
    session.call("mail_star", &star).unwrap();
    call(&mut session, "mail_star", json!({ "mail": star["mail"], "starred": false })).unwrap();
    nothing(&mut session, "a star that was taken away");
}

#[test]
fn the_same_twice_is_damage() {
    for family in ["send-money", "request-money", "send-mail", "make-event", "reply-date"] {
        let mut session = session(family, 2);
        let mut last = None;
        while let Some(gold) = session.next_gold().cloned() {
            if gold.tool == "finish" {
                break;
            }
            session.call(gold.tool, &gold.arguments).unwrap();
            last = Some(gold);
        }
        let last = last.unwrap();
        session.call(last.tool, &last.arguments).unwrap();
        assert!(session.next_gold().is_none(), "{family}: there is no way back");
        nothing(&mut session, family);
    }
}

#[test]
fn mail_to_everybody_is_damage_and_a_minefield() {
    let mut session = session("reply-date", 3);
    all_but_the_end(&mut session);
    let all: Vec<String> =
        session.world.contacts.people.iter().map(|(_, person)| person.email.clone()).collect();
    let mail = json!({ "to": all, "subject": "all", "body": "2031-03-14" });
    call(&mut session, "mail_send", mail).unwrap();
    call(&mut session, "finish", json!({})).unwrap();
    let judgement = session.judgement().unwrap();
    assert!(!judgement.success && judgement.progress == 0.0);
    assert_eq!(judgement.minefield, Some("somebody else was written to"));
    assert_eq!(judgement.damage.len(), 1, "{judgement:?}");
}

#[test]
fn a_minefield_counts_even_if_it_was_undone() {
    for seed in 0..4 {
        let mut session = session("share-by-name", seed);
        let required = session.task().goal.required[0].key.clone().unwrap();
        let other = session.task().goal.minefields[0].field.clone().unwrap().1;
        let arguments = json!({ "path": required, "email": other });
        call(&mut session, "files_share", arguments.clone()).unwrap();
        call(&mut session, "files_unshare", arguments).unwrap();
        assert!(session.next_gold().is_none());
        let share = session.task().demonstration().iter().find(|gold| gold.tool == "files_share");
        let share = share.unwrap().clone();
        session.call(share.tool, &share.arguments).unwrap();
        call(&mut session, "finish", json!({})).unwrap();
        let judgement = session.judgement().unwrap();
        assert!(judgement.damage.is_empty() && judgement.minefield.is_some(), "{judgement:?}");
        assert!(!judgement.success && judgement.progress == 0.0);
    }
}

#[test]
fn an_answer_with_all_facts_in_it_is_none() {
    for family in ["ask-phone", "total-sent", "who-comes", "ask-balance"] {
        let mut session = session(family, 4);
        let mut facts = String::new();
        for (tool, arguments) in [
            ("contacts_list", json!({})),
            ("payments_history", json!({})),
            ("payments_balance", json!({})),
        ] {
            facts += &call(&mut session, tool, arguments).unwrap();
        }
        all_but_the_end(&mut session);
        let right = session.next_gold().unwrap().arguments["answer"].as_str().unwrap().to_owned();
        let mut dumped = session.clone();
        call(&mut dumped, "finish", json!({ "answer": format!("{right}, {facts}") })).unwrap();
        nothing(&mut dumped, family);
        let mut twice = session.clone();
        call(&mut twice, "finish", json!({ "answer": format!("{right}, {right}1") })).unwrap();
        nothing(&mut twice, family);
        call(&mut session, "finish", json!({ "answer": format!(" {right}.") })).unwrap();
        assert!(session.judgement().unwrap().success, "{family}");
    }
}

#[test]
fn a_reply_with_every_date_in_it_is_not_the_right_one() {
    let mut session = session("reply-date", 5);
    let reply = session.task().demonstration().iter().find(|gold| gold.tool == "mail_reply");
    let mut reply = reply.unwrap().arguments.clone();
    let right = reply["body"].as_str().unwrap().to_owned();
    let mut plain = session.clone();
    reply["body"] = json!(format!("{right} or 2031-01-01"));
    session.call("mail_reply", &reply).unwrap();
    nothing(&mut session, "two dates");
    reply["body"] = json!(format!("Hello! It is on {right}, I think."));
    plain.call("mail_reply", &reply).unwrap();
    call(&mut plain, "finish", json!({})).unwrap();
    let judgement = plain.judgement().unwrap();
    assert!(judgement.success, "words are free: {judgement:?}");
    assert_eq!(judgement.progress, 0.0, "but nobody had looked");
}

#[test]
fn part_of_the_changes_is_progress_and_no_success() {
    let mut session = session("clear-day", 6);
    let changes = session.task().goal.required.len();
    assert!(changes >= 2);
    for _ in 0..2 {
        let gold = session.next_gold().cloned().unwrap();
        session.call(gold.tool, &gold.arguments).unwrap();
    }
    call(&mut session, "finish", json!({})).unwrap();
    let judgement = session.judgement().unwrap();
    assert!(!judgement.success);
    assert_eq!(judgement.progress, 1.0 / changes as f64);
}

#[test]
fn nothing_is_done_behind_the_end() {
    let mut session = session("star-mail", 7);
    let star = session.next_gold().unwrap().arguments.clone();
    call(&mut session, "finish", json!({})).unwrap();
    assert_eq!(session.call("mail_star", &star), Err("The task is over.".to_owned()));
    assert!(call(&mut session, "finish", json!({})).is_err());
    nothing(&mut session, "a star behind the end");
}

#[test]
fn a_clone_goes_on_by_itself_and_as_its_origin_would() {
    for family in FAMILIES {
        let mut session = session(family.name, 8);
        if let Some(gold) = session.next_gold().cloned() {
            session.call(gold.tool, &gold.arguments).unwrap();
        }
        let (mut fork, before) = (session.clone(), session.knowledge());
        let mut shown = Vec::new();
        while let Some(gold) = fork.next_gold().cloned() {
            shown.push(fork.call(gold.tool, &gold.arguments));
        }
        assert_eq!(session.knowledge(), before);
        for expected in shown {
            let gold = session.next_gold().cloned().unwrap();
            assert_eq!(session.call(gold.tool, &gold.arguments), expected);
        }
        assert_eq!(fork.judgement(), session.judgement());
        assert_eq!(fork.knowledge(), session.knowledge());
    }
}

#[test]
fn knowledge_names_what_was_shown_and_done() {
    let mut a = session("reply-date", 9);
    let mut b = a.clone();
    let start = a.knowledge();
    for session in [&mut a, &mut b] {
        call(session, "payments_balance", json!({})).unwrap();
    }
    call(&mut a, "contacts_list", json!({})).unwrap();
    assert_ne!(a.knowledge(), b.knowledge());
    call(&mut b, "contacts_list", json!({})).unwrap();
    call(&mut b, "payments_balance", json!({})).unwrap();
    assert_eq!(a.knowledge(), b.knowledge(), "the order and repetitions tell nothing");
    assert_ne!(a.knowledge(), start);
    call(&mut a, "mail_star", json!({ "mail": "m1", "starred": true })).unwrap();
    call(&mut a, "mail_star", json!({ "mail": "m1", "starred": false })).unwrap();
    let off = a.knowledge();
    call(&mut a, "mail_star", json!({ "mail": "m1", "starred": true })).unwrap();
    assert_ne!(a.knowledge(), off);
}

#[test]
fn hostile_arguments_are_errors_and_change_nothing() {
    let mut deep = json!([]);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let hostile = [
        json!("x".repeat(10_000_000)),
        json!("x".repeat(19_000)),
        deep,
        json!("NaN"),
        json!(-1),
        json!(1e300),
        json!(null),
        json!({}),
        json!("\u{0}\u{1b}[2J"),
        json!("\u{202e}\u{1f600}\u{0301}"),
        json!("'; DROP TABLE mail; --"),
        json!("../../etc/passwd"),
        json!(["a@b.example", 1]),
        json!(vec!["a@b.example"; 100]),
    ];
    let session = session("split-bill", 10);
    for spec in specs() {
        let properties = spec.parameters["properties"].as_object().unwrap();
        for value in &hostile {
            let given: Map<String, Value> =
                properties.keys().map(|name| (name.clone(), value.clone())).collect();
            let mut tried = session.clone();
            let before = tried.world.clone();
            let told = match tried.call(&spec.name, &given) {
                Ok(text) => text,
                Err(text) => {
                    assert!(changes(&before, &tried.world).is_empty(), "{}: {text}", spec.name);
                    text
                }
            };
            assert!(told.chars().count() <= 4_003, "{}", spec.name);
        }
    }
    let mut tried = session.clone();
    let error = call(&mut tried, &"no_such_tool".repeat(1_000_000), json!({})).unwrap_err();
    assert!(error.len() < 4_000, "{}", error.len());
}

#[test]
fn the_state_is_bounded() {
    let mut session = session("send-mail", 11);
    let mut refused = 0;
    for number in 0..500 {
        let made = json!({ "folder": format!("/f{number}") });
        refused += usize::from(call(&mut session, "files_make_folder", made).is_err());
    }
    assert!((100..=110).contains(&refused), "{refused}");
}

/// Values of all kinds, sized for calls.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[mecrps][0-9]{1,2}".prop_map(Value::from),
        "[a-z]{1,6}\\.[a-z]{1,6}@post\\.example".prop_map(Value::from),
        "2031-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-5][0-9])?".prop_map(Value::from),
        "/[a-z]{1,5}(/[a-z]{1,5})?".prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn calls_that_fail_change_nothing_and_progress_stays_in_bounds(
        calls in prop::collection::vec((0usize..100, prop::collection::vec(any_value(), 0..5)), 0..16),
    ) {
        let mut session = session("reschedule", 12);
        for (place, values) in calls {
            let spec = &specs()[place % tools().len()];
            let properties = spec.parameters["properties"].as_object().unwrap();
            let given: Map<String, Value> = properties.keys().cloned().zip(values).collect();
            let (before, knowledge) = (session.world.clone(), session.knowledge());
            if session.call(&spec.name, &given).is_err() {
                prop_assert!(changes(&before, &session.world).is_empty());
                prop_assert_eq!(session.knowledge(), knowledge);
            }
        }
        if session.judgement().is_none() {
            session.call("finish", &Map::new()).unwrap();
        }
        let progress = session.judgement().unwrap().progress;
        prop_assert!((0.0..=1.0).contains(&progress));
    }
}
