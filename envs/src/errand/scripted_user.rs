//! A customer who knows what is wanted, and tells it as far as asked.

use rand::RngExt;
use rand::seq::IndexedRandom;
use spar_core::Seed;

/// What is asked for, of each kind: items, colours, sizes.
pub(super) const VALUES: [&[&str]; 3] = [
    &["shirt", "coat", "scarf", "hat", "belt", "bag"],
    &["red", "blue", "green", "black", "white", "grey"],
    &["small", "medium", "large"],
];

/// The kinds by name, in the order of [`VALUES`].
pub(super) const KINDS: [&str; 3] = ["item", "colour", "size"];

/// One value of each kind, by its place in [`VALUES`].
pub(super) type Goal = [usize; 3];

/// A customer with a goal, who follows rules: begins with one thing that is wanted, and answers what is asked.
///
/// A question is about a kind where it has its name in it; `what` alone asks for the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptedUser {
    goal: Goal,
    /// What is told unasked.
    offered: usize,
}

impl ScriptedUser {
    /// The customer of a seed.
    pub(super) fn draw(seed: Seed) -> Self {
        let mut rng = seed.rng();
        let goal = VALUES.map(|values| rng.random_range(0..values.len()));
        Self { goal, offered: *[0, 1, 2].choose(&mut rng).expect("there are three") }
    }

    pub(super) fn goal(&self) -> Goal {
        self.goal
    }

    /// What is wanted, in words.
    pub(super) fn wish(&self) -> String {
        let [item, colour, size] = named(self.goal);
        format!("a {size} {colour} {item}")
    }

    /// What the customer says, behind what it heard; nothing was heard yet where that is absent.
    pub(super) fn say(&self, heard: Option<&str>) -> String {
        let words = named(self.goal);
        let Some(heard) = heard else {
            return match self.offered {
                0 => format!("I want a {}.", words[0]),
                kind => format!("I want something {}.", words[kind]),
            };
        };
        let asked = kinds_in(heard);
        if asked.is_empty() {
            return "Ask me for the item, the colour or the size.".to_owned();
        }
        let answers: Vec<&str> = asked.iter().map(|kind| words[*kind]).collect();
        format!("{}.", answers.join(", "))
    }
}

/// The words of a goal.
pub(super) fn named(goal: Goal) -> [&'static str; 3] {
    [0, 1, 2].map(|kind| VALUES[kind][goal[kind]])
}

/// The words of a text, in small letters.
pub(super) fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// The kinds that a question asks for.
fn kinds_in(question: &str) -> Vec<usize> {
    let words = words(question);
    let has = |word: &str| words.iter().any(|found| found == word);
    let kinds: Vec<usize> =
        (0..KINDS.len()).filter(|kind| has(KINDS[*kind]) || (*kind == 1 && has("color"))).collect();
    if kinds.is_empty() && has("what") { vec![0] } else { kinds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_customer_tells_what_is_asked_and_no_more() {
        let user = ScriptedUser { goal: [0, 1, 2], offered: 1 };
        assert_eq!(user.wish(), "a large blue shirt");
        assert_eq!(user.say(None), "I want something blue.");
        assert_eq!(user.say(Some("Which size?")), "large.");
        assert_eq!(user.say(Some("What do you want?")), "shirt.");
        assert_eq!(user.say(Some("What SIZE and what color?")), "blue, large.");
        assert!(user.say(Some("Good morning.")).starts_with("Ask me"));
        let drawn: std::collections::BTreeSet<_> =
            (0..60).map(|seed| ScriptedUser::draw(Seed::from_u64(seed)).wish()).collect();
        assert!(drawn.len() > 25, "{drawn:?}");
    }
}
