//! Visits of WebShop itself, held against ours.
//!
//! `scripts/record_shop.py` recorded them: its server, pages and rewards over made-up products, with a search that finds all of these in
//! their order, and with our rule for nouns in the place of its tagger. `SHOP_RECORDING` names another recording.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::files::{GoalSource, LoadedProducts};
use crate::goal::Goal;
use crate::{Catalogue, PageText, Session, ShopAction, Showing};

#[derive(Deserialize)]
struct Recording {
    items: Value,
    attributes: Value,
    instructions: Value,
    suites: Vec<RecordedSuite>,
}

#[derive(Deserialize)]
struct RecordedSuite {
    human: bool,
    prices: serde_json::Map<String, Value>,
    goals: Vec<RecordedGoal>,
    visits: Vec<RecordedVisit>,
}

#[derive(Deserialize)]
struct RecordedGoal {
    asin: String,
    instruction_text: String,
    attributes: Vec<String>,
    price_upper: f64,
}

#[derive(Deserialize)]
struct RecordedVisit {
    goal: usize,
    mode: PageText,
    attributes: bool,
    steps: Vec<RecordedStep>,
}

#[derive(Deserialize)]
struct RecordedStep {
    action: Option<String>,
    text: String,
    reward: f64,
    done: bool,
    clickables: Option<Vec<String>>,
}

/// What can be said of a goal apart from the limit of its price, which WebShop draws anew in every process.
fn without_limit(instruction: &str) -> &str {
    instruction.split(", and price lower than").next().unwrap()
}

fn replay(
    products: &LoadedProducts,
    catalogue: &Arc<Catalogue>,
    recorded: &RecordedSuite,
) -> usize {
    let goals: Vec<_> = products
        .goals
        .iter()
        .map(|goal| (without_limit(&goal.instruction), &goal.attributes))
        .collect();
    let expected: Vec<_> = recorded
        .goals
        .iter()
        .map(|goal| (without_limit(&goal.instruction_text), &goal.attributes))
        .collect();
    assert_eq!(goals, expected);
    let mut num_steps = 0;
    for visit in &recorded.visits {
        let theirs = &recorded.goals[visit.goal];
        let mut goal = Goal::clone(&products.goals[visit.goal]);
        assert_eq!(products.products[goal.product].asin, theirs.asin);
        goal.price_upper = theirs.price_upper;
        goal.instruction.clone_from(&theirs.instruction_text);
        let showing = Showing { text: visit.mode, attributes: visit.attributes };
        let mut session = Session::new(Arc::clone(catalogue), Arc::new(goal), showing);
        for step in &visit.steps {
            if let Some(action) = &step.action {
                let read = ShopAction::read(action);
                let done = read.is_some_and(|action| session.act(action));
                if done && matches!(read, Some(ShopAction::Search(_))) {
                    session.find_all();
                }
            }
            let told = step.action.as_deref().unwrap_or("the beginning");
            assert_eq!(session.text(), step.text, "{told}");
            let reward = session.bought().map_or(0.0, |reward| reward.total);
            assert_eq!(reward.to_bits(), step.reward.to_bits(), "{told}: {:?}", session.bought());
            assert_eq!(session.bought().is_some(), step.done, "{told}");
            if let Some(clickables) = &step.clickables {
                let mut ours = Vec::new();
                session.each_clickable(|what| ours.push(what.to_owned()));
                let mut theirs: Vec<_> =
                    clickables.iter().filter(|what| *what != "search").cloned().collect();
                for list in [&mut ours, &mut theirs] {
                    list.sort();
                    list.dedup();
                }
                assert_eq!(ours, theirs, "{told}");
            }
            num_steps += 1;
        }
    }
    num_steps
}

#[test]
fn visits_are_as_webshop_has_recorded_them() {
    let text = match std::env::var("SHOP_RECORDING") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../tests/webshop.json").to_owned(),
    };
    let recording: Recording = serde_json::from_str(&text).unwrap();
    let folder = std::env::temp_dir().join(format!("spar-shop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in [
        ("items_shuffle_1000.json", &recording.items),
        ("items_ins_v2_1000.json", &recording.attributes),
        ("items_human_ins.json", &recording.instructions),
    ] {
        std::fs::write(folder.join(name), content.to_string()).unwrap();
    }
    let mut num_steps = 0;
    for suite in &recording.suites {
        let source = if suite.human { GoalSource::Human } else { GoalSource::Synthetic };
        let (mut products, index) = LoadedProducts::load(&folder, Some(source)).unwrap();
        for product in &mut products.products {
            let theirs = suite.prices[&product.asin].as_f64().unwrap();
            // Between two bounds the price is drawn.
            let is_drawn = product.price_tag.contains(" to ");
            assert!(is_drawn || product.price == theirs, "{}", product.price_tag);
            Arc::make_mut(product).price = theirs;
        }
        let copy =
            LoadedProducts { products: products.products.clone(), goals: products.goals.clone() };
        let catalogue = Arc::new(Catalogue::from_loaded(copy, index));
        num_steps += replay(&products, &catalogue, suite);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(num_steps > 100, "{num_steps}");
}

#[test]
fn files_of_another_form_are_told_by_name() {
    let folder = std::env::temp_dir().join(format!("spar-shop-forms-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let told = |goals| {
        let error = LoadedProducts::load(&folder, goals).map(|_| ()).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", cause.unwrap_or_default())
    };
    assert!(told(None).contains("items_shuffle.json"));
    write("items_ins_v2.json", "{}");
    for (items, expected) in [
        ("{", "is not of WebShop's form"),
        (r#"[{"asin": "a"}]"#, "missing field `name`"),
        (
            r#"[{"asin": "a", "name": "n", "pricing": "$x", "category": "c", "query": "q", "product_category": "p"}]"#,
            "product `a`: `$x` is no price",
        ),
        (
            r#"[{"asin": "a", "name": "n", "pricing": "12", "category": "c", "query": "q", "product_category": "p"}]"#,
            "no `$`",
        ),
        (
            r#"[{"asin": "a", "name": "n", "customization_options": {"Color": [1]}, "category": "c", "query": "q", "product_category": "p"}]"#,
            "option `Color`",
        ),
    ] {
        write("items_shuffle.json", items);
        assert!(told(None).contains(expected), "{}", told(None));
    }
    assert!(told(Some(GoalSource::Human)).contains("items_human_ins.json"));
    std::fs::remove_dir_all(&folder).unwrap();
}
