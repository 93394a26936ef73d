//! Steps, searches, resets and forks per second, over a catalogue of 100,000 products, on one thread.
//!
//! A step is an action with the page that comes of it as text; episodes are the oracle's and a random player's. Searches are made anew where they are
//! timed by themselves; in episodes over the same goals their results are kept, as in groups.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spar_core::Seed;
use spar_shop::{Catalogue, Goal, Part, Session, ShopAction, Showing, oracle, reader};

const LASTING: Duration = Duration::from_secs(2);

fn rate(what: &str, mut run: impl FnMut() -> usize) {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < LASTING {
        count += run();
    }
    let each = start.elapsed() / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    println!(
        "{what}: {:.0} per second, {each:?} each",
        count as f64 / start.elapsed().as_secs_f64()
    );
}

fn main() {
    let start = Instant::now();
    let catalogue = Catalogue::generated(0, 100_000).expect("the size is allowed");
    println!("catalogue of 100,000 products: {:?}", start.elapsed());
    let goals: Vec<Arc<Goal>> = (0..256)
        .filter_map(|seed| catalogue.draw_goal(Seed::from_u64(seed), Part::Any).map(Arc::new))
        .collect();
    let open = |number: usize| {
        let goal = Arc::clone(&goals[number % goals.len()]);
        Session::new(Arc::clone(&catalogue), goal, Showing::default())
    };
    let mut number = 0;
    rate("searches for a title", || {
        number += 1;
        black_box(catalogue.search_anew(&goals[number % goals.len()].name));
        1
    });
    rate("searches for an instruction", || {
        number += 1;
        black_box(catalogue.search_anew(&goals[number % goals.len()].instruction));
        1
    });
    for (what, player) in [("oracle", oracle as fn(&Session) -> Option<String>), ("reader", reader)]
    {
        rate(&format!("steps of the {what}"), || {
            number += 1;
            let (mut session, mut steps) = (open(number), 0);
            while let Some(action) = player(&session) {
                session.act(ShopAction::read(&action).expect("players say actions"));
                black_box(session.text());
                steps += 1;
            }
            steps
        });
    }
    let mut rng = 1_u64;
    rate("random steps", || {
        number += 1;
        let (mut session, mut steps) = (open(number), 0);
        session.act(ShopAction::Search(&goals[number % goals.len()].query));
        while session.bought().is_none() && steps < 15 {
            let mut listed = Vec::new();
            session.each_clickable(|what| listed.push(what.to_owned()));
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match listed.get((rng >> 33) as usize % listed.len().max(1)) {
                Some(what) => session.act(ShopAction::Click(what)),
                None => session.act(ShopAction::Search(&goals[number % goals.len()].query)),
            };
            black_box(session.text());
            steps += 1;
        }
        steps
    });
    rate("goals and resets", || {
        number += 1;
        let goal = catalogue.draw_goal(Seed::from_u64(number as u64), Part::Any).map(Arc::new);
        let goal = goal.expect("it is generated");
        black_box(Session::new(Arc::clone(&catalogue), goal, Showing::default()).text());
        1
    });
    let mut session = open(3);
    for _ in 0..3 {
        let action = oracle(&session).expect("it has not bought yet");
        session.act(ShopAction::read(&action).expect("players say actions"));
    }
    rate("forks", || {
        black_box(session.clone());
        1
    });
}
