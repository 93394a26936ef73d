//! A map: places, roads between them, and the shortest way.

use super::pages::{Numbers, escape, page, parameter};
use crate::Response;

const SITE: &str = "Map";
const LINKS: &[(&str, &str)] =
    &[("/", "Search"), ("/places", "All places"), ("/route", "Directions")];
const NAMES: [&str; 12] = [
    "Old Harbour",
    "City Library",
    "Museum of Glass",
    "Central Station",
    "Botanic Garden",
    "River Theatre",
    "North Hospital",
    "Market Hall",
    "Stone Bridge",
    "Town Baths",
    "West Stadium",
    "Hill Observatory",
];
const STREETS: [&str; 6] =
    ["Mill Lane", "Castle Road", "Quay Street", "Elm Row", "Abbey Walk", "Forge Street"];

#[derive(Debug, Clone)]
pub(crate) struct Map {
    pub(crate) places: Vec<Place>,
    /// Roads with their length in tenths of a kilometre.
    roads: Vec<(usize, usize, u32)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    address: String,
    pub(crate) phone: String,
}

impl Map {
    pub(crate) fn new(numbers: Numbers) -> Self {
        let names = numbers.shuffled("names", &NAMES);
        let places: Vec<Place> = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| {
                let at = at as u64;
                Place {
                    name,
                    address: format!(
                        "{} {}",
                        numbers.below("house", at, 120) + 1,
                        numbers.choose("street", at, &STREETS)
                    ),
                    phone: format!("555-{:04}", numbers.below("phone", at, 10_000)),
                }
            })
            .collect();
        let count = places.len();
        // A ring, so that every place can be reached, and roads across it.
        let mut roads: Vec<(usize, usize, u32)> = (0..count)
            .map(|at| (at, (at + 1) % count, numbers.below("ring", at as u64, 60) as u32 + 5))
            .collect();
        for at in 0..8_u64 {
            let (from, to) = (numbers.below("from", at, count), numbers.below("to", at, count));
            if from != to {
                roads.push((from, to, numbers.below("across", at, 80) as u32 + 10));
            }
        }
        Self { places, roads }
    }

    /// The length of the shortest way in tenths of a kilometre, and the places on it.
    pub(crate) fn way(&self, from: usize, to: usize) -> (u32, Vec<usize>) {
        let count = self.places.len();
        let (mut lengths, mut before) = (vec![u32::MAX; count], vec![from; count]);
        lengths[from] = 0;
        for _ in 0..count {
            for (one, other, length) in &self.roads {
                for (a, b) in [(*one, *other), (*other, *one)] {
                    let through = lengths[a].saturating_add(*length);
                    if through < lengths[b] {
                        lengths[b] = through;
                        before[b] = a;
                    }
                }
            }
        }
        let mut way = vec![to];
        while let Some(last) = way.last().copied().filter(|last| *last != from) {
            way.push(before[last]);
        }
        way.reverse();
        (lengths[to], way)
    }

    pub(crate) fn get(&self, parts: &[&str], query: &str) -> Option<Response> {
        let list = |places: Vec<(usize, &Place)>| -> String {
            let items = places
                .iter()
                .map(|(id, place)| format!("<li><a href=\"/place/{id}\">{}</a></li>", place.name));
            format!("<ul>{}</ul>", items.collect::<String>())
        };
        match parts {
            [] => {
                let body = "<form action=\"/search\"><label>Place <input name=\"q\"></label> <button>Search</button></form>";
                Some(page(SITE, "Search", LINKS, body))
            }
            ["places"] => Some(page(
                SITE,
                "All places",
                LINKS,
                &list(self.places.iter().enumerate().collect()),
            )),
            ["search"] => {
                let asked = parameter(query, "q").unwrap_or_default().to_lowercase();
                let found: Vec<(usize, &Place)> = self
                    .places
                    .iter()
                    .enumerate()
                    .filter(|(_, place)| place.name.to_lowercase().contains(asked.trim()))
                    .collect();
                let title = format!("{} found", found.len());
                Some(page(SITE, &title, LINKS, &list(found)))
            }
            ["place", id] => {
                let place = self.places.get(id.parse::<usize>().ok()?)?;
                let body = format!(
                    "<p>Address: <span id=\"address\">{}</span></p><p>Phone: <span id=\"phone\">{}</span></p>",
                    escape(&place.address),
                    place.phone
                );
                Some(page(SITE, place.name, LINKS, &body))
            }
            ["route"] => {
                let end = |name: &str| -> Option<usize> {
                    let asked = parameter(query, name)?;
                    self.places.iter().position(|place| place.name == asked)
                };
                let (from, to) = (end("from"), end("to"));
                let options = |chosen: Option<usize>| -> String {
                    let option = |(id, place): (usize, &Place)| {
                        let selected = if chosen == Some(id) { " selected" } else { "" };
                        format!("<option{selected}>{}</option>", place.name)
                    };
                    self.places.iter().enumerate().map(option).collect()
                };
                let mut body = format!(
                    "<form><label>From <select name=\"from\">{}</select></label> <label>To <select name=\"to\">{}</select></label> \
                     <button>Go</button></form>",
                    options(from),
                    options(to)
                );
                if let (Some(from), Some(to)) = (from, to) {
                    let (length, way) = self.way(from, to);
                    let stops: String = way
                        .iter()
                        .map(|id| format!("<li>{}</li>", self.places[*id].name))
                        .collect();
                    body += &format!(
                        "<p>Distance: <span id=\"distance\">{}</span></p><ol>{stops}</ol>",
                        kilometres(length)
                    );
                }
                Some(page(SITE, "Directions", LINKS, &body))
            }
            _ => None,
        }
    }
}

pub(crate) fn kilometres(tenths: u32) -> String {
    format!("{}.{} km", tenths / 10, tenths % 10)
}
