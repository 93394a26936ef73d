//! Entries of our own, from seeds.

use serde_json::{Value as Json, json};
use spar_core::Seed;
use spar_python::Random;

use crate::Class;
use crate::entry::{EntryMessage, MultiTurnEntry};

/// The most turns of an entry.
pub const MAX_TURNS: usize = 4;

const PEOPLE: [&str; 8] = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"];
const WORDS: [&str; 16] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper",
    "kelp", "larch", "maple", "nectar", "otter", "poppy",
];
const STOCKS: [(&str, f64); 6] = [
    ("AAPL", 227.16),
    ("TSLA", 667.92),
    ("MSFT", 310.23),
    ("OMEG", 457.23),
    ("QUAS", 725.89),
    ("SYNX", 345.67),
];
const CITIES: [&str; 5] = ["Rivermist", "Maplecrest", "Oakendale", "Silverpine", "Stonebrook"];

/// An entry with so many turns over one class or two, drawn from a seed: the user says in plain words what is wanted, and
/// gold calls do it.
///
/// # Panics
///
/// When it is to have no turn, or more than [`MAX_TURNS`].
pub fn generated_entry(seed: u64, turns: usize) -> MultiTurnEntry {
    assert!((1..=MAX_TURNS).contains(&turns), "an entry has 1 to {MAX_TURNS} turns");
    let mut draw = Draw(Random::from_u64(Seed::from_u64(seed).derive("bfcl", turns).as_u64()));
    let mut classes = Class::ALL.to_vec();
    draw.0.shuffle(&mut classes);
    classes.truncate(if turns == 1 { 1 } else { 2 });
    let mut worlds: Vec<Story> =
        classes.iter().map(|class| Story::new(*class, &mut draw)).collect();
    let (mut question, mut ground_truth) = (Vec::new(), Vec::new());
    for turn in 0..turns {
        let at = turn % worlds.len();
        let (text, calls) = worlds[at].turn(&mut draw);
        question.push(vec![EntryMessage { role: "user".to_owned(), content: text }]);
        ground_truth.push(calls);
    }
    let initial_config = worlds
        .into_iter()
        .map(|story| (story.class.name().to_owned(), story.config))
        .collect::<serde_json::Map<String, Json>>();
    MultiTurnEntry {
        id: format!("generated_{turns}_{seed}"),
        question,
        initial_config: Json::Object(initial_config),
        involved_classes: classes.iter().map(|class| class.name().to_owned()).collect(),
        ground_truth,
        missed_function: Default::default(),
        documents: None,
        long_context: None,
    }
}

struct Draw(Random);

impl Draw {
    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        *self.0.choice(items).expect("there are some")
    }

    fn number(&mut self, first: i64, last: i64) -> i64 {
        self.0.int(first, last).expect("the range holds something")
    }

    fn is_heads(&mut self) -> bool {
        self.number(0, 1) == 0
    }

    /// Two different words.
    fn two_words(&mut self) -> (&'static str, &'static str) {
        let drawn = self.0.sample(&WORDS, 2).expect("there are more");
        (drawn[0], drawn[1])
    }
}

/// What happens in one class.
struct Story {
    class: Class,
    config: Json,
    /// Names that are taken: files, users.
    names: Vec<String>,
    /// Turns so far.
    turns: usize,
}

impl Story {
    fn new(class: Class, draw: &mut Draw) -> Self {
        let mut names = Vec::new();
        let config = match class {
            Class::GorillaFileSystem => {
                let (one, other) = draw.two_words();
                names = vec![format!("{one}.txt"), format!("{other}.txt")];
                let mut contents = serde_json::Map::new();
                for name in &names {
                    let lines: Vec<String> = (0..draw.number(2, 5))
                        .map(|_| {
                            let (one, other) = draw.two_words();
                            format!("{one} {other}")
                        })
                        .collect();
                    let file = json!({"type": "file", "content": lines.join("\n")});
                    contents.insert(name.clone(), file);
                }
                contents.insert("box".into(), json!({"type": "directory", "contents": {}}));
                json!({"root": {"desk": {"type": "directory", "contents": contents}}})
            }
            Class::MessageApi => {
                names = draw
                    .0
                    .sample(&PEOPLE, 4)
                    .expect("there are more")
                    .iter()
                    .map(|name| (*name).to_owned())
                    .collect();
                let users: serde_json::Map<String, Json> = names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| (name.clone(), json!(format!("USR{:03}", at + 1))))
                    .collect();
                json!({
                    "user_count": 4, "user_map": users, "inbox": [], "message_count": 0,
                    "current_user": "USR001",
                })
            }
            Class::TwitterApi => json!({
                "username": "writer", "password": "quill", "authenticated": true,
                "tweets": {}, "following_list": ["reader"], "tweet_counter": 1,
            }),
            Class::TicketApi => {
                json!({"ticket_queue": [], "ticket_counter": 1, "current_user": "writer"})
            }
            Class::TradingBot => json!({
                "authenticated": true, "market_status": "Open",
                "account_info": {"account_id": 1, "balance": 50000.0, "binding_card": 1},
            }),
            Class::VehicleControlApi => json!({"fuelLevel": draw.number(1, 9) as f64}),
            Class::MathApi | Class::TravelApi => json!({}),
        };
        Self { class, config, names, turns: 0 }
    }

    /// What the user says, and the calls that do it.
    fn turn(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        self.turns += 1;
        let (text, calls) = match self.class {
            Class::GorillaFileSystem => self.files(draw),
            Class::MathApi => numbers(draw),
            Class::MessageApi => self.messages(draw),
            Class::TwitterApi => self.tweets(draw),
            Class::TicketApi => self.tickets(draw),
            Class::TradingBot => trades(draw),
            Class::TravelApi => travels(draw),
            Class::VehicleControlApi => self.drives(draw),
        };
        (text, calls)
    }

    fn files(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        let name = self.names[draw.number(0, self.names.len() as i64 - 1) as usize].clone();
        let (one, other) = draw.two_words();
        match draw.number(0, 5) {
            0 => {
                let new = format!("{one}-{}.md", self.turns);
                let calls = vec![
                    format!("touch(file_name='{new}')"),
                    format!("echo(content='{other} {one}', file_name='{new}')"),
                ];
                self.names.push(new.clone());
                (format!("Make a file `{new}` and write `{other} {one}` into it."), calls)
            }
            1 => (
                format!("How many words has `{name}`?"),
                vec![format!("wc(file_name='{name}', mode='w')")],
            ),
            2 => (
                format!("Show me the lines of `{name}` in order."),
                vec![format!("sort(file_name='{name}')")],
            ),
            3 => {
                let new = format!("{one}-{}.old", self.turns);
                self.names.push(new.clone());
                (
                    format!("Copy `{name}` to `{new}`."),
                    vec![format!("cp(source='{name}', destination='{new}')")],
                )
            }
            4 => {
                let new = format!("{other}-{}.txt", self.turns);
                let place = self.names.iter().position(|known| *known == name);
                self.names[place.expect("it was drawn from them")] = new.clone();
                (
                    format!("Rename `{name}` to `{new}`."),
                    vec![format!("mv(source='{name}', destination='{new}')")],
                )
            }
            _ => {
                let count = draw.number(1, 3);
                (
                    format!("Show me the last {count} lines of `{name}`."),
                    vec![format!("tail(file_name='{name}', lines={count})")],
                )
            }
        }
    }

    fn messages(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        let at = draw.number(1, 3) as usize;
        let (name, (one, other)) = (self.names[at].clone(), draw.two_words());
        if draw.is_heads() {
            let calls = vec![
                format!("get_user_id(user='{name}')"),
                format!("send_message(receiver_id='USR{:03}', message='{one} {other}')", at + 1),
            ];
            return (format!("Find out {name}'s id and write to them: `{one} {other}`."), calls);
        }
        let new = format!("{one}{}", self.turns);
        (format!("Add a contact called `{new}`."), vec![format!("add_contact(user_name='{new}')")])
    }

    fn tweets(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        let (one, other) = draw.two_words();
        if draw.is_heads() {
            return (
                format!("Follow the user `{one}{}`.", self.turns),
                vec![format!("follow_user(username_to_follow='{one}{}')", self.turns)],
            );
        }
        (
            format!("Post the tweet `{one} {other}` with the tag `#{other}`."),
            vec![format!("post_tweet(content='{one} {other}', tags=['#{other}'])")],
        )
    }

    fn tickets(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        let ((one, other), priority) = (draw.two_words(), draw.number(1, 5));
        let create = format!(
            "create_ticket(title='{one}', description='{other} is broken', priority={priority})"
        );
        (
            format!(
                "Open a ticket with the title `{one}`, the description `{other} is broken` and priority {priority}."
            ),
            vec![create],
        )
    }

    fn drives(&mut self, draw: &mut Draw) -> (String, Vec<String>) {
        match draw.number(0, 3) {
            0 => {
                let amount = draw.number(1, 8);
                (
                    format!("Put {amount} gallons into the tank."),
                    vec![format!("fillFuelTank(fuelAmount={amount})")],
                )
            }
            1 => {
                let mode = draw.of(&["on", "off"]);
                (
                    format!("Turn the headlights {mode}."),
                    vec![format!("setHeadlights(mode='{mode}')")],
                )
            }
            2 => (
                "Lock all doors, press the brake fully and start the engine.".to_owned(),
                vec![
                    "lockDoors(unlock=False, door=['driver', 'passenger', 'rear_left', 'rear_right'])".to_owned(),
                    "pressBrakePedal(pedalPosition=1.0)".to_owned(),
                    "startEngine(ignitionMode='START')".to_owned(),
                ],
            ),
            _ => {
                let city = draw.of(&CITIES);
                (
                    format!("What is the zip code of {city}? And set the navigation to `1 Main Street, {city}`."),
                    vec![
                        format!("get_zipcode_based_on_city(city='{city}')"),
                        format!("set_navigation(destination='1 Main Street, {city}')"),
                    ],
                )
            }
        }
    }
}

fn numbers(draw: &mut Draw) -> (String, Vec<String>) {
    let list: Vec<String> =
        (0..draw.number(3, 6)).map(|_| draw.number(1, 99).to_string()).collect();
    let (shown, a, b) = (list.join(", "), draw.number(2, 60), draw.number(2, 9));
    match draw.number(0, 4) {
        0 => (format!("What is the mean of {shown}?"), vec![format!("mean(numbers=[{shown}])")]),
        1 => (
            format!("What is the standard deviation of {shown}?"),
            vec![format!("standard_deviation(numbers=[{shown}])")],
        ),
        2 => {
            (format!("Raise {a} to the power {b}."), vec![format!("power(base={a}, exponent={b})")])
        }
        3 => (
            format!("Convert {a} km to miles."),
            vec![format!("imperial_si_conversion(value={a}, unit_in='km', unit_out='miles')")],
        ),
        _ => (
            format!("Give me the logarithm of {a} to base {b}, with 10 digits."),
            vec![format!("logarithm(value={a}, base={b}, precision=10)")],
        ),
    }
}

fn trades(draw: &mut Draw) -> (String, Vec<String>) {
    let ((symbol, price), amount) = (draw.of(&STOCKS), draw.number(1, 9));
    match draw.number(0, 2) {
        0 => (
            format!("Buy {amount} shares of {symbol} at {price} each."),
            vec![format!(
                "place_order(order_type='Buy', symbol='{symbol}', price={price}, amount={amount})"
            )],
        ),
        1 => (
            format!("Watch the stock {symbol} for me."),
            vec![format!("add_to_watchlist(stock='{symbol}')")],
        ),
        _ => {
            let amount = amount * 100;
            (
                format!("Put {amount} dollars into the account."),
                vec![format!("fund_account(amount={amount})")],
            )
        }
    }
}

fn travels(draw: &mut Draw) -> (String, Vec<String>) {
    let amount = draw.number(10, 900);
    match draw.number(0, 2) {
        0 => {
            let currency = draw.of(&["EUR", "GBP", "JPY", "CAD", "MXN"]);
            (
                format!("How much is {amount} USD in {currency}?"),
                vec![format!(
                    "compute_exchange_rate(base_currency='USD', target_currency='{currency}', value={amount})"
                )],
            )
        }
        1 => {
            let city = draw.of(&CITIES);
            (
                format!("Which airport is next to {city}?"),
                vec![format!("get_nearest_airport_by_city(location='{city}')")],
            )
        }
        _ => {
            let (to, class) =
                (draw.of(&["LAX", "JFK", "ORD", "BOS"]), draw.of(&["economy", "business"]));
            let day = draw.number(10, 28);
            (
                format!(
                    "What does a flight from SFO to {to} on 2026-05-{day} cost in {class} class?"
                ),
                vec![format!(
                    "get_flight_cost(travel_from='SFO', travel_to='{to}', travel_date='2026-05-{day}', travel_class='{class}')"
                )],
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use std::sync::Arc;

    #[test]
    fn gold_calls_do_what_is_wanted_and_nothing_does_not() {
        let mut classes = std::collections::BTreeSet::new();
        for seed in 0..150 {
            let turns = 1 + (seed as usize) % MAX_TURNS;
            let entry = generated_entry(seed, turns);
            assert_eq!(entry, generated_entry(seed, turns), "equal seeds give equal entries");
            classes.extend(entry.involved_classes.clone());
            let world = World {
                id: entry.id.clone(),
                classes: entry.classes().unwrap(),
                scenario: Arc::new(entry.initial_config.clone()),
                long_context: None,
            };
            let mut process = world.process();
            let mut instances = world.instances("m", &process).unwrap();
            for call in entry.ground_truth.iter().flatten() {
                let result = instances.execute(call, &mut process);
                assert!(!result.contains("rror"), "{call}: {result}");
            }
            let gold: Vec<Vec<Vec<String>>> =
                entry.ground_truth.iter().map(|calls| vec![calls.clone()]).collect();
            assert!(world.check(&gold, &entry.ground_truth).unwrap().is_valid());
            let nothing = vec![Vec::new(); turns];
            assert!(!world.check(&nothing, &entry.ground_truth).unwrap().is_valid());
        }
        assert_eq!(classes.len(), Class::ALL.len());
    }
}
