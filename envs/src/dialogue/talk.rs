//! A conversation as it stands, and the rules by which it goes on. Who says what it is judged by is no part of it: only what the
//! agent submits, and which doubts it met, count.

use spar_core::Seat;

use super::scenario::{DOUBTS, Kind, Persona, Scenario};
use super::{AGENT, USER};
use crate::SeatAccounts;

/// Characters of what one says to the other; what is beyond is not heard.
const MOST_SAID: usize = 600;
/// Things that a user tells in answer to one message.
const MOST_ANSWERED: usize = 2;
/// Offers against doubts that a user does not have, behind which the user leaves.
const MOST_BESIDE: u32 = 1;

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// What was submitted is what the user wants.
    Right,
    /// It is not.
    Wrong,
    /// The user had enough.
    Left,
}

/// What the agent submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proposal {
    /// A value for every slot.
    Values(Vec<usize>),
    /// An article by its place.
    Article(usize),
    /// A price.
    Price(i64),
    /// That the user is convinced.
    Deal,
}

/// A conversation as it stands.
#[derive(Debug, Clone)]
pub(super) struct Talk {
    pub(super) to_move: Option<Seat>,
    /// What each seat heard last.
    pub(super) heard: [Option<String>; 2],
    /// Slots that the agent's last message asks for, at most so many as are answered, with the values that it names.
    pub(super) asked: Vec<(usize, Vec<usize>)>,
    /// Whether the agent's last message asks for more than is answered.
    pub(super) asks_too_much: bool,
    /// How often each slot was asked for.
    pub(super) times_asked: Vec<u32>,
    /// Values of slots that the agent has heard, the last of each.
    pub(super) known: Vec<Option<usize>>,
    /// Whether each doubt was met.
    pub(super) met: Vec<bool>,
    /// Offers that met nothing.
    pub(super) beside: u32,
    /// Doubts that the agent has heard of.
    pub(super) voiced: Vec<bool>,
    /// The last price that was named.
    pub(super) price: Option<i64>,
    /// Prices that were named.
    pub(super) prices: u32,
    /// Messages of either seat.
    pub(super) said: [u32; 2],
    pub(super) outcome: Option<Outcome>,
    pub(super) accounts: SeatAccounts,
    pub(super) has_seen: [bool; 2],
}

impl Talk {
    pub(super) fn begin(scenario: &Scenario) -> Self {
        let slots = scenario.goal.len();
        Self {
            to_move: Some(USER),
            heard: [None, None],
            asked: Vec::new(),
            asks_too_much: false,
            times_asked: vec![0; slots],
            known: vec![None; slots],
            met: vec![false; scenario.doubts.len()],
            beside: 0,
            voiced: vec![false; DOUBTS.len()],
            price: None,
            prices: 0,
            said: [0; 2],
            outcome: None,
            accounts: SeatAccounts::new(2),
            has_seen: [false; 2],
        }
    }

    /// What the user wants now.
    pub(super) fn goal(&self, scenario: &Scenario) -> Vec<usize> {
        let mut goal = scenario.goal.clone();
        if let Some((slot, place)) = scenario.revised
            && self.said[USER.index()] >= 3
        {
            goal[slot] = place;
        }
        goal
    }

    /// A seat says something to the other, whose move it is then; or the user has had enough.
    pub(super) fn say(&mut self, scenario: &Scenario, seat: Seat, text: &str) {
        let said: String = text.chars().take(MOST_SAID).collect();
        self.said[seat.index()] += 1;
        match seat == AGENT {
            true => self.hear_agent(scenario, &said),
            false => self.hear_user(scenario, &said),
        }
        let other = if seat == AGENT { USER } else { AGENT };
        self.heard[other.index()] = Some(said);
        self.to_move = Some(other);
        if seat == AGENT
            && (self.said[AGENT.index()] > scenario.patience() || self.beside > MOST_BESIDE)
        {
            (self.to_move, self.outcome) = (None, Some(Outcome::Left));
        }
    }

    /// What of the agent's message the user heeds: slots that it asks for, and offers.
    fn hear_agent(&mut self, scenario: &Scenario, said: &str) {
        let words = words(said);
        let mut asked: Vec<(usize, Vec<usize>)> = Vec::new();
        for word in &words {
            for (slot, it) in scenario.domain.slots.iter().enumerate() {
                let value = it.values.iter().position(|value| value == word);
                if value.is_none() && it.name != word && !it.also.contains(&word.as_str()) {
                    continue;
                }
                let place =
                    asked.iter().position(|(known, _)| *known == slot).unwrap_or_else(|| {
                        asked.push((slot, Vec::new()));
                        asked.len() - 1
                    });
                asked[place].1.extend(value);
            }
        }
        let most = if scenario.persona == Persona::Literal { 1 } else { MOST_ANSWERED };
        self.asks_too_much = asked.len() > most;
        asked.truncate(most);
        asked.iter().for_each(|(slot, _)| self.times_asked[*slot] += 1);
        self.asked = asked;
        if scenario.kind == Kind::Persuade {
            self.hear_offer(scenario, &words);
        }
    }

    /// One offer at a time is heard; it meets the doubt that is next, or none.
    fn hear_offer(&mut self, scenario: &Scenario, words: &[String]) {
        let is_made = |doubt: usize| words.iter().any(|word| word == DOUBTS[doubt].answer);
        let made: Vec<usize> = (0..DOUBTS.len()).filter(|doubt| is_made(*doubt)).collect();
        match made[..] {
            [] => {}
            [one] => match scenario.doubts.iter().position(|doubt| *doubt == one) {
                Some(place) if self.met[..place].iter().all(|met| *met) => self.met[place] = true,
                _ => self.beside += 1,
            },
            _ => self.beside += 1,
        }
    }

    /// What of the user's message the agent can know.
    fn hear_user(&mut self, scenario: &Scenario, said: &str) {
        for word in words(said) {
            for (slot, it) in scenario.domain.slots.iter().enumerate() {
                let found = it.values.iter().position(|value| *value == word);
                self.known[slot] = found.or(self.known[slot]);
            }
        }
        let said = said.to_lowercase();
        for (voiced, doubt) in self.voiced.iter_mut().zip(&DOUBTS) {
            *voiced |= said.contains(&doubt.voiced.to_lowercase());
        }
    }

    /// What the agent submits ends the conversation, but for a price that is not taken. What the agent is told.
    pub(super) fn submit(
        &mut self,
        scenario: &Scenario,
        proposal: &Proposal,
        turn_cost: f64,
    ) -> &'static str {
        let (is_right, share) = match proposal {
            Proposal::Values(values) => (*values == self.goal(scenario), 1.0),
            Proposal::Article(place) => (scenario.articles[*place] == scenario.goal, 1.0),
            Proposal::Deal => (self.met.iter().all(|met| *met), 1.0),
            Proposal::Price(price) => {
                self.prices += 1;
                if *price > scenario.limit {
                    self.price = Some(*price);
                    self.say(scenario, AGENT, &format!("I offer it for {price}."));
                    return "The customer does not take it.";
                }
                let gain = (*price - scenario.cost) as f64;
                (gain > 0.0, gain / (scenario.limit - scenario.cost) as f64)
            }
        };
        self.to_move = None;
        self.outcome = Some(if is_right { Outcome::Right } else { Outcome::Wrong });
        if !is_right {
            return "That is not what the customer wanted.";
        }
        self.accounts.pay(AGENT, "goal", share);
        self.accounts.pay(USER, "goal", 1.0);
        let turns = f64::from(self.said[AGENT.index()]) * turn_cost;
        if turns > 0.0 {
            // Whoever reaches the goal earns something.
            self.accounts.pay(AGENT, "turns", -turns.min(share / 2.0));
        }
        "The customer is content."
    }
}

/// The words of a text, in small letters.
pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}
