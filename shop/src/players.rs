//! Players: one who knows the goal, and one who reads.

use std::collections::BTreeSet;

use crate::catalogue::{Catalogue, MOST_FOUND};
use crate::goal::{Goal, GoalOptions};
use crate::session::{Place, Session};

/// The search that finds a goal's product, and the page that it is on: its title, or where that does not do its title with its attributes, or
/// its title twice and what it was listed under.
fn way<'g>(catalogue: &Catalogue, goal: &'g Goal) -> Option<&'g (String, usize)> {
    let look = || {
        // Brackets and line ends would end the action.
        let clean = |text: String| text.replace(['[', ']', '\n', '\r'], " ");
        let tries = [
            clean(goal.name.clone()),
            clean(format!("{} {}", goal.name, goal.attributes.join(" "))),
            clean(format!("{0} {0} {1}", goal.name, goal.query)),
        ];
        tries.into_iter().filter(|words| !words.trim().is_empty()).find_map(|words| {
            let found = catalogue.search(&words.to_lowercase());
            let place = found.iter().position(|it| *it as usize == goal.product)?;
            Some((words, place / 10 + 1))
        })
    };
    goal.way.get_or_init(look).as_ref()
}

/// The values of options that make a purchase right: for each of the goal's the value of that name, or that any name has.
fn wanted_options(session: &Session) -> Option<Vec<(&str, &str)>> {
    let product = session.product()?;
    let value_of = |name: Option<&str>, wanted: &str| {
        let mut options =
            product.options.iter().filter(|(known, _)| name.is_none_or(|name| name == known));
        options.find_map(|(name, values)| {
            let value = values.iter().find(|value| *value == wanted)?;
            Some((name.as_str(), value.as_str()))
        })
    };
    match &session.goal().options {
        GoalOptions::Named(pairs) => {
            pairs.iter().map(|(name, value)| value_of(Some(name), value)).collect()
        }
        GoalOptions::Values(values) => values.iter().map(|value| value_of(None, value)).collect(),
    }
}

/// The next action of one who knows the goal: search, turn pages, open, choose, buy. Absent where the product cannot be found by its words,
/// or lacks an option of the goal's as it is written.
pub fn oracle(session: &Session) -> Option<String> {
    let goal = session.goal();
    let (words, page) = way(session.catalogue(), goal)?;
    let search = || Some(format!("search[{words}]"));
    match session.place() {
        Place::Done => None,
        Place::Search => search(),
        Place::Results => {
            if session.words() != words.to_lowercase() || session.page() > *page {
                return search();
            }
            if session.page() < *page {
                return Some("click[Next >]".to_owned());
            }
            let asin = session.catalogue().asin(goal.product);
            Some(format!("click[{}]", asin.to_lowercase()))
        }
        Place::Sub(_) => Some("click[< Prev]".to_owned()),
        Place::Item if session.product_number() != Some(goal.product) => search(),
        Place::Item => {
            let chosen = session.options();
            let missing =
                wanted_options(session)?.into_iter().find(|option| !chosen.contains(option));
            Some(match missing {
                Some((_, value)) => format!("click[{value}]"),
                None => "click[Buy Now]".to_owned(),
            })
        }
    }
}

/// The next action of one who reads: searches for the words of the instruction, opens the product of the first page whose title has most of
/// them within the price, chooses of each option the value that the instruction names, and buys.
pub fn reader(session: &Session) -> Option<String> {
    let instruction = &session.goal().instruction;
    let (asked, limit) = match instruction.split_once(", and price lower than ") {
        Some((asked, rest)) => {
            (asked, rest.split(' ').next().and_then(|number| number.parse::<f64>().ok()))
        }
        None => (instruction.as_str(), None),
    };
    let asked_words = words(asked);
    match session.place() {
        Place::Done => None,
        Place::Search => {
            let clean: String = asked
                .chars()
                .map(|c| if c == '[' || c == ']' || c == '\n' { ' ' } else { c })
                .collect();
            Some(format!("search[{}]", if clean.trim().is_empty() { "gift" } else { &clean }))
        }
        Place::Results => {
            let catalogue = session.catalogue();
            let worth = |number: u32| {
                let (mut title, place) = (String::new(), number as usize);
                catalogue.write_title(place, &mut title);
                let is_cheap = limit.is_none_or(|limit| {
                    let tag = catalogue.price_tag(place);
                    let least = tag.trim_start_matches('$').split(' ').next().unwrap_or_default();
                    least.parse::<f64>().is_ok_and(|price| price <= limit)
                });
                (is_cheap, words(&title).intersection(&asked_words).count())
            };
            let listed = session.listed().iter().enumerate();
            let best = listed.max_by_key(|(place, number)| (worth(**number), MOST_FOUND - place));
            Some(match best {
                Some((_, number)) => {
                    format!("click[{}]", catalogue.asin(*number as usize).to_lowercase())
                }
                // Nothing was found: nothing can be bought that way.
                None => "click[Back to Search]".to_owned(),
            })
        }
        Place::Sub(_) => Some("click[< Prev]".to_owned()),
        Place::Item => {
            let chosen = session.options();
            for (name, values) in &session.product()?.options {
                if chosen.iter().any(|(known, _)| known == name) {
                    continue;
                }
                // The longest of those whose words are all there.
                let named = values.iter().filter(|value| {
                    let value = words(value);
                    !value.is_empty() && value.is_subset(&asked_words)
                });
                if let Some(value) = named.max_by_key(|value| value.len()) {
                    return Some(format!("click[{value}]"));
                }
            }
            Some("click[Buy Now]".to_owned())
        }
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    crate::index::each_word(text, |word| {
        found.insert(word.to_owned());
    });
    found
}
