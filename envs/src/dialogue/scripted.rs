//! What users and agents by rules say.

use super::USER;
use super::scenario::{DOUBTS, Kind, Persona, Scenario};
use super::talk::{Proposal, Talk};

/// What an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    Say(String),
    Submit(Proposal),
}

/// What the user says behind what it heard. It follows from the goal, the persona and what it was asked for: no other
/// words of the agent have any part in it.
pub(super) fn user(scenario: &Scenario, talk: &Talk) -> String {
    let thing = scenario.domain.thing;
    let Some(_) = talk.heard[USER.index()] else { return opening(scenario) };
    match scenario.kind {
        Kind::Booking | Kind::Clarify => {
            let mut text = answer(scenario, talk);
            // This is the third message, with which the wish is another one.
            if let Some((slot, place)) = scenario.revised
                && talk.said[USER.index()] == 2
            {
                let name = scenario.domain.slots[slot].name;
                text += &format!(
                    " No, wait: as {name} I want {} after all.",
                    scenario.value(slot, place)
                );
            }
            text
        }
        Kind::Bargain => match talk.price {
            Some(price) if price > scenario.limit => {
                // What is offered in return comes closer to the limit with every price.
                let percent =
                    (scenario.return_percent + 4 * i64::from(talk.prices.min(5) - 1)).min(95);
                let counter = scenario.limit * percent / 100;
                dressed(
                    scenario.persona,
                    &format!("That is too much for me, I thought of {counter}."),
                )
            }
            _ => dressed(scenario.persona, &format!("What does the {thing} cost?")),
        },
        Kind::Persuade => match talk.met.iter().position(|met| !met) {
            None => "I have no more doubts.".to_owned(),
            Some(place) => dressed(scenario.persona, DOUBTS[scenario.doubts[place]].voiced),
        },
    }
}

fn opening(scenario: &Scenario) -> String {
    let thing = scenario.domain.thing;
    let wish = format!("I want a {thing}.");
    match (scenario.kind, scenario.offered) {
        (Kind::Booking | Kind::Clarify, Some(slot)) => {
            let name = scenario.domain.slots[slot].name;
            format!("{wish} As {name} I want {}.", scenario.value(slot, scenario.goal[slot]))
        }
        (Kind::Booking | Kind::Clarify, None) => wish,
        (Kind::Bargain, _) => format!("I like the {thing}. What does it cost?"),
        (Kind::Persuade, _) => format!("I am not sure that I want the {thing}."),
    }
}

/// A sentence as a persona says it, where there is nothing to leave out or to put off.
fn dressed(persona: Persona, sentence: &str) -> String {
    match persona {
        Persona::Chatty => format!("You know, I have thought about it all week. {sentence}"),
        Persona::Impatient => format!("{sentence} Be quick."),
        Persona::Hesitant => format!("Hm. {sentence}"),
        _ => sentence.to_owned(),
    }
}

/// What is told of the slots that were asked for.
fn answer(scenario: &Scenario, talk: &Talk) -> String {
    let goal = &scenario.goal;
    if talk.asked.is_empty() {
        let slots: Vec<&str> = scenario.domain.slots.iter().map(|slot| slot.name).collect();
        return dressed(
            scenario.persona,
            &format!("Ask me for one of these: {}.", slots.join(", ")),
        );
    }
    let one = |(slot, named): &(usize, Vec<usize>)| {
        // What was changed stays so.
        let revised =
            scenario.revised.filter(|(changed, _)| changed == slot && talk.said[USER.index()] >= 3);
        let place = revised.map_or(goal[*slot], |(_, place)| place);
        let (name, value) = (scenario.domain.slots[*slot].name, scenario.value(*slot, place));
        match scenario.persona {
            Persona::Terse => format!("{value}."),
            Persona::Chatty => {
                let values = scenario.domain.slots[*slot].values;
                let other = values[(place + 1) % values.len()];
                format!("My sister would take {other} as {name}, but for me it is {value}.")
            }
            Persona::Impatient => format!("{value}, and be quick."),
            Persona::Fickle => format!("As {name} I want {value}."),
            Persona::Literal if named.len() == 1 => {
                if named[0] == place {
                    "Yes.".to_owned()
                } else {
                    "No.".to_owned()
                }
            }
            Persona::Literal => format!("The {name} is {value}."),
            Persona::Hesitant if talk.times_asked[*slot] < 2 => {
                format!("Hm, I have to think about the {name}. Ask me once more.")
            }
            Persona::Hesitant => format!("I think the {name} is {value}."),
        }
    };
    let mut text = talk.asked.iter().map(one).collect::<Vec<_>>().join(" ");
    if talk.asks_too_much {
        text += " One thing after the other, please.";
    }
    text
}

/// What an agent does who knows only what it was told and has heard.
pub(super) fn agent(scenario: &Scenario, talk: &Talk) -> Move {
    let ask = |slot: usize| Move::Say(format!("Which {}?", scenario.domain.slots[slot].name));
    match scenario.kind {
        Kind::Booking => match talk.known.iter().position(Option::is_none) {
            Some(slot) => ask(slot),
            None => Move::Submit(Proposal::Values(talk.known.iter().flatten().copied().collect())),
        },
        Kind::Clarify => {
            let fits = |values: &&Vec<usize>| {
                values
                    .iter()
                    .zip(&talk.known)
                    .all(|(value, known)| known.is_none_or(|it| it == *value))
            };
            let left: Vec<&Vec<usize>> = scenario.articles.iter().filter(fits).collect();
            let differs = |slot: &usize| left.iter().any(|values| values[*slot] != left[0][*slot]);
            let open = |slot: &usize| talk.known[*slot].is_none() && differs(slot);
            match (0..talk.known.len()).find(open) {
                Some(slot) => ask(slot),
                None => {
                    let place = scenario.articles.iter().position(|values| fits(&values));
                    Move::Submit(Proposal::Article(place.unwrap_or_default()))
                }
            }
        }
        Kind::Bargain => {
            let step = ((scenario.list_price - scenario.cost) / 6).max(1);
            let price = scenario.list_price - step * i64::from(talk.prices);
            Move::Submit(Proposal::Price(price.max(scenario.cost + 1)))
        }
        Kind::Persuade => {
            let heard = talk.heard[super::AGENT.index()].as_deref().unwrap_or_default();
            if heard.contains("no more doubts") {
                return Move::Submit(Proposal::Deal);
            }
            let said = heard.to_lowercase();
            let doubt = DOUBTS.iter().find(|doubt| said.contains(&doubt.voiced.to_lowercase()));
            Move::Say(match doubt {
                Some(doubt) => format!("I can offer {}.", doubt.answer),
                None => "What holds you back?".to_owned(),
            })
        }
    }
}

/// What an agent does who sees the user's goal: as [`agent`], but for the price that is the most the user pays.
pub(super) fn oracle(scenario: &Scenario, talk: &Talk) -> Move {
    match scenario.kind {
        Kind::Bargain => Move::Submit(Proposal::Price(scenario.limit)),
        _ => agent(scenario, talk),
    }
}
