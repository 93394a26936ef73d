//! What a player is told.

use crate::game::{Direction, Goal, Kind};
use crate::play::{Play, Status, Where};

impl Play {
    pub(crate) fn state_word(&self, thing: usize) -> &'static str {
        match self.status(thing) {
            Status::Open => "open",
            Status::Closed => "closed",
            Status::Locked => "locked",
        }
    }

    /// Things at a place, as a list in words; nothing where there are none.
    fn list(&self, place: Where, is_fixed: bool) -> Option<String> {
        let things = &self.game().things;
        let found = (0..things.len()).filter(|thing| {
            self.place(*thing) == place
                && things[*thing].kind != Kind::Door
                && things[*thing].kind.is_portable() != is_fixed
        });
        let names: Vec<String> = found.map(|thing| with_article(&things[thing].name)).collect();
        match &names[..] {
            [] => None,
            [one] => Some(one.clone()),
            [rest @ .., last] => Some(format!("{} and {last}", rest.join(", "))),
        }
    }

    /// What lies in a container that was opened, with a blank before it.
    pub(crate) fn inside(&self, thing: usize) -> String {
        if self.game().things[thing].kind != Kind::Container {
            return String::new();
        }
        match self.list(Where::In(thing), false) {
            Some(list) => format!(" There is {list} inside."),
            None => " It is empty.".to_owned(),
        }
    }

    /// The room in words, with what is in sight.
    pub fn look(&self) -> String {
        let game = self.game();
        let room = &game.rooms[self.room()];
        let mut text =
            format!("-= {} =-\nYou are in the {}. {}", titled(&room.name), room.name, room.mood);
        for (number, thing) in game.things.iter().enumerate() {
            if self.place(number) != Where::Room(self.room()) {
                continue;
            }
            let name = with_article(&thing.name);
            match thing.kind {
                Kind::Supporter => {
                    let list = self.list(Where::On(number), false);
                    let on = list.map_or("nothing".to_owned(), |list| list);
                    text.push_str(&format!(" There is {name}; on it is {on}."));
                }
                Kind::Container if self.status(number) == Status::Open => {
                    let list = self.list(Where::In(number), false);
                    let inside = list.map_or("is nothing".to_owned(), |list| format!("is {list}"));
                    text.push_str(&format!(" There is {name}, open; in it {inside}."));
                }
                Kind::Container => {
                    text.push_str(&format!(" There is {name}, {}.", self.state_word(number)));
                }
                _ => {}
            }
        }
        if let Some(list) = self.list(Where::Room(self.room()), false) {
            text.push_str(&format!(" On the floor lies {list}."));
        }
        for direction in Direction::ALL {
            let way = direction.name();
            match self.exit(direction) {
                None => {}
                Some((_, None)) => text.push_str(&format!(" A passage leads {way}.")),
                Some((_, Some(door))) => {
                    let name = with_article(self.name(door));
                    let state = self.state_word(door);
                    text.push_str(&format!(" To the {way} is {name}, {state}."));
                }
            }
        }
        text
    }

    /// What is carried, in words.
    pub fn inventory(&self) -> String {
        match self.list(Where::Held, false) {
            Some(list) => format!("You carry {list}."),
            None => "You carry nothing.".to_owned(),
        }
    }

    pub(crate) fn examine(&self, thing: usize) -> String {
        let name = self.name(thing);
        match self.game().things[thing].kind {
            Kind::Item => format!("The {name} is nothing special."),
            Kind::Food => format!("The {name} looks good to eat."),
            Kind::Key { .. } => format!("The {name} has a bit that fits one lock."),
            Kind::Supporter => match self.list(Where::On(thing), false) {
                Some(list) => format!("On the {name} is {list}."),
                None => format!("There is nothing on the {name}."),
            },
            Kind::Container if self.status(thing) == Status::Open => {
                format!("The {name} is open.{}", self.inside(thing))
            }
            Kind::Container | Kind::Door => {
                let lock = if self.game().keys[thing].is_some() { " It has a lock." } else { "" };
                format!("The {name} is {}.{lock}", self.state_word(thing))
            }
        }
    }
}

/// A sentence about what has to be true.
pub(crate) fn demand(
    names: impl Fn(usize) -> String,
    rooms: impl Fn(usize) -> String,
    goal: Goal,
    is_in: bool,
) -> String {
    match goal {
        Goal::Hold(thing) => format!("take the {}", names(thing)),
        Goal::Put(thing, other) if is_in => {
            format!("put the {} into the {}", names(thing), names(other))
        }
        Goal::Put(thing, other) => format!("put the {} on the {}", names(thing), names(other)),
        Goal::Eat(thing) => format!("eat the {}", names(thing)),
        Goal::Open(thing) => format!("open the {}", names(thing)),
        Goal::Reach(room) => format!("go to the {}", rooms(room)),
    }
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {name}")
}

fn titled(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
