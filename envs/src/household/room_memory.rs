//! What an episode has shown of its room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What an episode has shown of its room, kept from texts and lists of admissible commands.
#[derive(Debug, Clone, Default)]
pub(super) struct RoomMemory {
    /// All receptacles, in the order of their names.
    pub(super) receptacles: Vec<String>,
    /// Receptacles whose contents have been seen.
    pub(super) explored: BTreeSet<String>,
    /// Receptacles found closed and not opened since.
    pub(super) closed: BTreeSet<String>,
    /// Receptacles in which an object was seen last; an object may be in two at once.
    pub(super) places: BTreeMap<String, Vec<String>>,
    /// The object in hand.
    pub(super) held: Option<String>,
    /// Objects that are clean, hot or cool by what was done here.
    pub(super) clean: BTreeSet<String>,
    pub(super) hot: BTreeSet<String>,
    pub(super) cool: BTreeSet<String>,
    /// Lamps that were used.
    pub(super) used: BTreeSet<String>,
}

/// The type of a thing: its name without the number.
pub(super) fn kind(name: &str) -> &str {
    name.rsplit_once(' ').map_or(name, |(kind, _)| kind)
}

impl RoomMemory {
    /// Remembers the room from the first list of admissible commands.
    pub(super) fn new(admissible: &[Arc<str>]) -> Self {
        let receptacles = admissible.iter().filter_map(|command| command.strip_prefix("go to "));
        Self { receptacles: receptacles.map(str::to_owned).collect(), ..Self::default() }
    }

    /// Takes in what followed `command`.
    pub(super) fn observe(&mut self, command: &str, text: &str, admissible: &[Arc<str>]) {
        if text == "Nothing happens." {
            return;
        }
        self.follow(command);
        self.read_contents(text);
        for command in admissible {
            if let Some((object, receptacle)) = parse_pair(command, "take ", " from ") {
                self.add_place(object, receptacle);
                self.explored.insert(receptacle.to_owned());
            }
        }
        if self.held.is_none() {
            self.note_reached(admissible);
        }
    }

    /// Objects of a type that were seen, with a receptacle each is in.
    pub(super) fn seen_of<'a>(
        &'a self,
        wanted: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let seen = self.places.iter().filter(move |(object, _)| kind(object) == wanted);
        seen.filter_map(|(object, places)| Some((object.as_str(), places.first()?.as_str())))
    }

    /// Whether `object` was last seen in `receptacle`.
    pub(super) fn is_in(&self, object: &str, receptacle: &str) -> bool {
        self.places.get(object).is_some_and(|places| places.iter().any(|place| place == receptacle))
    }

    /// What a command that succeeded has changed.
    fn follow(&mut self, command: &str) {
        if let Some((object, receptacle)) = parse_pair(command, "take ", " from ") {
            self.held = Some(object.to_owned());
            if let Some(places) = self.places.get_mut(object) {
                places.retain(|place| place != receptacle);
            }
        } else if let Some((object, receptacle)) = parse_put(command) {
            self.held = None;
            self.add_place(object, receptacle);
        } else if let Some(receptacle) = command.strip_prefix("open ") {
            self.closed.remove(receptacle);
        } else if let Some(receptacle) = command.strip_prefix("close ") {
            self.closed.insert(receptacle.to_owned());
        } else if let Some((object, _)) = parse_pair(command, "clean ", " with ") {
            self.clean.insert(object.to_owned());
        } else if let Some((object, _)) = parse_pair(command, "heat ", " with ") {
            self.hot.insert(object.to_owned());
            self.cool.remove(object);
        } else if let Some((object, _)) = parse_pair(command, "cool ", " with ") {
            self.cool.insert(object.to_owned());
            self.hot.remove(object);
        } else if let Some(lamp) = command.strip_prefix("use ") {
            self.used.insert(lamp.to_owned());
        }
    }

    /// Reads `On the desk 1, you see a mug 1, and a pen 2.` and its like.
    fn read_contents(&mut self, text: &str) {
        for sentence in text.split_inclusive('.') {
            let closed = sentence.trim().strip_prefix("The ");
            if let Some(name) = closed.and_then(|rest| rest.strip_suffix(" is closed.")) {
                self.closed.insert(name.to_owned());
            }
        }
        let listed = if let Some(at) = text.find("On the ") {
            text[at + "On the ".len()..].split_once(", you see ")
        } else if let Some(at) = text.find(" is open. In it, you see ") {
            let name = text[..at].rfind("The ").map(|start| &text[start + "The ".len()..at]);
            name.map(|name| (name, &text[at + " is open. In it, you see ".len()..]))
        } else {
            None
        };
        let Some((receptacle, list)) = listed else { return };
        self.explored.insert(receptacle.to_owned());
        self.closed.remove(receptacle);
        for places in self.places.values_mut() {
            places.retain(|place| place != receptacle);
        }
        for item in list.trim_end_matches('.').split(", ") {
            let item = item.strip_prefix("and ").unwrap_or(item);
            if let Some(object) = item.strip_prefix("a ") {
                self.add_place(object, receptacle);
            }
        }
    }

    /// With empty hands the admissible commands show all that is within reach.
    fn note_reached(&mut self, admissible: &[Arc<str>]) {
        for command in admissible {
            let Some(name) = command.strip_prefix("examine ") else { continue };
            let known = self.receptacles.iter().any(|receptacle| receptacle == name);
            let opens = admissible.iter().any(|other| other.strip_prefix("open ") == Some(name));
            if opens {
                self.closed.insert(name.to_owned());
            } else if known {
                self.explored.insert(name.to_owned());
            }
        }
    }

    fn add_place(&mut self, object: &str, receptacle: &str) {
        let places = self.places.entry(object.to_owned()).or_default();
        if !places.iter().any(|place| place == receptacle) {
            places.push(receptacle.to_owned());
        }
    }
}

fn parse_pair<'a>(command: &'a str, verb: &str, between: &str) -> Option<(&'a str, &'a str)> {
    command.strip_prefix(verb)?.split_once(between)
}

/// Both wordings there are of putting something down.
pub(super) fn parse_put(command: &str) -> Option<(&str, &str)> {
    parse_pair(command, "move ", " to ").or_else(|| parse_pair(command, "put ", " in/on "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(commands: &[&str]) -> Vec<Arc<str>> {
        commands.iter().map(|command| Arc::from(*command)).collect()
    }

    #[test]
    fn contents_are_remembered_until_seen_otherwise() {
        let mut memory = RoomMemory::new(&list(&["go to desk 1", "go to drawer 1", "look"]));
        let text = "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.";
        memory.observe("go to desk 1", text, &list(&["examine desk 1", "go to drawer 1"]));
        assert!(memory.is_in("pen 2", "desk 1") && memory.explored.contains("desk 1"));
        memory.observe("take pen 2 from desk 1", "You pick up the pen 2 from the desk 1.", &[]);
        assert!(!memory.is_in("pen 2", "desk 1"));
        assert_eq!(memory.held.as_deref(), Some("pen 2"));
        memory.observe("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.", &[]);
        assert!(memory.closed.contains("drawer 1") && !memory.explored.contains("drawer 1"));
        let text = "You open the drawer 1. The drawer 1 is open. In it, you see nothing.";
        memory.observe("open drawer 1", text, &[]);
        assert!(!memory.closed.contains("drawer 1") && memory.explored.contains("drawer 1"));
    }
}
