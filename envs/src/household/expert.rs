//! A good player who knows only what the episode has shown.

use std::sync::Arc;

use super::generator::RoomKind;
use super::room_memory::{RoomMemory, kind, parse_put};
use super::task_words::{Demand, Treatment};

/// A good player who knows only what the episode has shown.
///
/// It reads the task's words, looks where the wanted type lies most often in rooms of this kind,
/// remembers all it saw, and goes the short way once it knows enough. It can join an episode that
/// somebody else has begun, as long as [`Expert::observe`] was told of every step.
///
/// ```
/// use std::sync::Arc;
/// use spar_envs::household::Expert;
///
/// let admissible: Vec<Arc<str>> = vec!["go to bed 1".into(), "go to desk 1".into()];
/// let mut expert = Expert::new("put a pillow in desk", &admissible);
/// assert_eq!(expert.action(&admissible).as_deref(), Some("go to bed 1"));
/// ```
#[derive(Debug, Clone)]
pub struct Expert {
    demand: Option<Demand>,
    memory: RoomMemory,
    room: RoomKind,
    /// Receptacles that did not take the object in hand.
    refused: Vec<String>,
}

impl Expert {
    /// A player for the task in these words, given the first list of admissible commands.
    pub fn new(task: &str, admissible: &[Arc<str>]) -> Self {
        let memory = RoomMemory::new(admissible);
        let room = RoomKind::from_receptacles(memory.receptacles.iter().map(|name| kind(name)));
        Self { demand: Demand::parse(task), memory, room, refused: Vec::new() }
    }

    /// Takes in what followed a command, whoever gave it.
    pub fn observe(&mut self, command: &str, text: &str, admissible: &[Arc<str>]) {
        self.memory.observe(command.trim(), text, admissible);
        if parse_put(command.trim()).is_some() {
            self.refused.clear();
        }
    }

    /// The command to give now, one of `admissible`.
    ///
    /// `None` where the task's words are not understood or nothing is left to do.
    pub fn action(&mut self, admissible: &[Arc<str>]) -> Option<String> {
        let demand = self.demand.clone()?;
        let held = self.memory.held.clone();
        // Every round that yields no command has learned something, so few rounds are needed.
        for _ in 0..=2 * self.memory.receptacles.len() {
            let options = Options(admissible);
            let action = match (&demand, &held) {
                (_, Some(held)) if kind(held) != demand.object() => self.drop(held, &options),
                (Demand::Light { lamp, .. }, Some(_)) => self.light(lamp, &options),
                (Demand::Light { object, .. }, None) => self.fetch(object, None, &options),
                (Demand::Place { destination, treatment, .. }, Some(held)) => match treatment {
                    Some(treatment) if !self.is_treated(held, *treatment) => {
                        self.treat(held, *treatment, &options)
                    }
                    _ => self.place(held, destination, &options),
                },
                (Demand::Place { object, destination, treatment, .. }, None) => {
                    let clear = treatment.is_none().then_some(destination.as_str());
                    self.fetch(object, clear, &options)
                }
            };
            if action.is_some() {
                return action;
            }
        }
        None
    }

    /// Gets an object of a type; where `destination` is named, one that is not there yet.
    fn fetch(
        &mut self,
        object: &str,
        destination: Option<&str>,
        options: &Options<'_>,
    ) -> Option<String> {
        let settled = destination.and_then(|kind| self.preferred(kind, object));
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, place) in self.memory.seen_of(object) {
            let is_settled =
                settled.as_deref().is_some_and(|settled| self.memory.is_in(name, settled));
            if !is_settled {
                found.push((name.to_owned(), place.to_owned()));
            }
        }
        // What is within reach first.
        found.sort_by_key(|(_, place)| !options.is_at(place));
        if let Some((name, place)) = found.into_iter().next() {
            let take = format!("take {name} from {place}");
            if let Some(action) = options.at(&place, &take) {
                return Some(action);
            }
            // It is not where it was.
            if let Some(places) = self.memory.places.get_mut(&name) {
                places.retain(|other| *other != place);
            }
            return None;
        }
        self.search(object, destination, options)
    }

    /// Looks where an object of a type lies most often, `avoid` being the last type to look in.
    fn search(
        &mut self,
        object: &str,
        avoid: Option<&str>,
        options: &Options<'_>,
    ) -> Option<String> {
        let receptacles = &self.memory.receptacles;
        let unexplored = || receptacles.iter().filter(|name| !self.memory.explored.contains(*name));
        let score = |name: &str| {
            let same = receptacles.iter().filter(|other| kind(other) == kind(name)).count();
            let opens = self.memory.closed.contains(name) || usually_closed(kind(name));
            let go = if options.is_at(name) { 0.2 } else { 1.0 };
            let cost = go + if opens { 1.0 } else { 0.0 };
            let factor = if avoid == Some(kind(name)) { 1e-3 } else { 1.0 };
            factor * self.likelihood(object, kind(name)) / (same as f64 * cost)
        };
        // Equals in the order in which rooms are described, by type and the highest number first, so that
        // the next place is the one that the description names next: who imitates can read it there.
        let best = unexplored().min_by(|a, b| {
            let by_score = score(b).total_cmp(&score(a));
            by_score.then_with(|| kind(a).cmp(kind(b))).then_with(|| number(b).cmp(&number(a)))
        });
        let best = best.cloned();
        let Some(best) = best else {
            // All seen and not found: somebody may have moved things, so look again.
            self.memory.explored.clear();
            return None;
        };
        if !options.is_at(&best) {
            return options.find(&format!("go to {best}"));
        }
        let open = options.find(&format!("open {best}"));
        self.memory.explored.insert(best.clone());
        open.or_else(|| options.find(&format!("examine {best}")))
    }

    /// How often an object of a type lies in a receptacle of another, of a hundred.
    fn likelihood(&self, object: &str, receptacle: &str) -> f64 {
        let in_room = |room: RoomKind| {
            let row = room.objects().iter().find(|row| row.name.eq_ignore_ascii_case(object))?;
            let mut places = row.places.iter();
            let place = places.find(|(name, _)| name.eq_ignore_ascii_case(receptacle));
            Some(place.map_or(0.0, |(_, weight)| f64::from(*weight)))
        };
        let elsewhere = || RoomKind::ALL.into_iter().find_map(in_room).unwrap_or_default();
        // Never zero: what is unheard of is still looked at in the end.
        in_room(self.room).unwrap_or_else(elsewhere).max(0.3)
    }

    /// Cleans, heats or cools the object in hand.
    fn treat(&self, held: &str, treatment: Treatment, options: &Options<'_>) -> Option<String> {
        let mut tools = self.memory.receptacles.iter().filter(|r| kind(r) == treatment.tool());
        let near = self
            .memory
            .receptacles
            .iter()
            .find(|name| kind(name) == treatment.tool() && options.is_at(name));
        let tool = near.or_else(|| tools.next())?;
        options
            .find(&format!("{} {held} with {tool}", treatment.verb()))
            .or_else(|| options.find(&format!("go to {tool}")))
    }

    fn is_treated(&self, object: &str, treatment: Treatment) -> bool {
        match treatment {
            Treatment::Clean => self.memory.clean.contains(object),
            Treatment::Heat => self.memory.hot.contains(object),
            Treatment::Cool => self.memory.cool.contains(object),
        }
    }

    /// Puts the object in hand into a receptacle of a type.
    fn place(&mut self, held: &str, destination: &str, options: &Options<'_>) -> Option<String> {
        let settled = self.preferred(destination, kind(held));
        let mut candidates: Vec<&String> = self.memory.receptacles.iter().collect();
        candidates.retain(|name| kind(name) == destination && !self.refused.contains(name));
        candidates.sort_by_key(|name| {
            let is_settled = settled.as_deref() == Some(name.as_str());
            (!is_settled, !options.is_at(name), self.memory.closed.contains(*name))
        });
        let target = candidates.first().map(|name| (*name).clone())?;
        let action = options.put(held, &target);
        if action.is_none() {
            self.refused.push(target);
        }
        action
    }

    /// The receptacle of a type that holds most objects of a type; the one to bring more to.
    fn preferred(&self, destination: &str, object: &str) -> Option<String> {
        let held = self.memory.held.as_deref();
        let count = |name: &str| {
            let seen = self.memory.seen_of(object).filter(|(other, _)| held != Some(*other));
            seen.filter(|(other, _)| self.memory.is_in(other, name)).count()
        };
        let mut best: Option<(usize, &String)> = None;
        for name in self.memory.receptacles.iter().filter(|name| kind(name) == destination) {
            let found = count(name);
            if found > best.map_or(0, |(most, _)| most) {
                best = Some((found, name));
            }
        }
        best.map(|(_, name)| name.clone())
    }

    /// Brings the object in hand to a lamp and switches it on.
    fn light(&mut self, lamp: &str, options: &Options<'_>) -> Option<String> {
        let found = self.memory.seen_of(lamp).next();
        let Some((name, place)) = found.map(|(name, place)| (name.to_owned(), place.to_owned()))
        else {
            return self.search(lamp, None, options);
        };
        if !options.is_at(&place) {
            return options.find(&format!("go to {place}"));
        }
        let action = options.find(&format!("use {name}"));
        if action.is_none() {
            self.memory.places.remove(&name);
        }
        action
    }

    /// Gets rid of an object that is not wanted.
    fn drop(&mut self, held: &str, options: &Options<'_>) -> Option<String> {
        let here = options
            .0
            .iter()
            .find(|command| parse_put(command).is_some_and(|(object, _)| object == held));
        if let Some(here) = here {
            return Some(here.to_string());
        }
        let score = |name: &str| self.likelihood(kind(held), kind(name));
        let candidates = self.memory.receptacles.iter().filter(|r| !self.refused.contains(r));
        let target = candidates.max_by(|a, b| score(a).total_cmp(&score(b)))?.clone();
        let action = options.put(held, &target);
        if action.is_none() {
            self.refused.push(target);
        }
        action
    }
}

/// The admissible commands.
struct Options<'a>(&'a [Arc<str>]);

impl Options<'_> {
    fn find(&self, command: &str) -> Option<String> {
        self.0.iter().any(|other| **other == *command).then(|| command.to_owned())
    }

    /// Whether the player stands at a receptacle: one cannot go where one is.
    fn is_at(&self, receptacle: &str) -> bool {
        !self.0.iter().any(|command| command.strip_prefix("go to ") == Some(receptacle))
    }

    /// A command that needs to be at an open receptacle, or one that leads there.
    fn at(&self, receptacle: &str, command: &str) -> Option<String> {
        self.find(command)
            .or_else(|| self.find(&format!("go to {receptacle}")))
            .or_else(|| self.find(&format!("open {receptacle}")))
    }

    fn put(&self, object: &str, receptacle: &str) -> Option<String> {
        self.find(&format!("move {object} to {receptacle}"))
            .or_else(|| self.at(receptacle, &format!("put {object} in/on {receptacle}")))
    }
}

/// The number of a thing among those of its type.
fn number(name: &str) -> u32 {
    name.rsplit_once(' ').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

fn usually_closed(kind: &str) -> bool {
    matches!(kind, "cabinet" | "drawer" | "fridge" | "microwave" | "safe")
}
