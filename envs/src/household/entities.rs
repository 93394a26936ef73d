//! The things of a game: their kinds, ids and the names players see.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::error::Fault;

/// What a thing is. The names are those of the planning domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The player.
    Agent,
    /// A place to stand.
    Location,
    /// Something that holds objects.
    Receptacle,
    /// Something that can be handled or is part of the decor.
    Object,
    /// A type of receptacles.
    ReceptacleType,
    /// A type of objects.
    ObjectType,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Agent,
        Self::Location,
        Self::Receptacle,
        Self::Object,
        Self::ReceptacleType,
        Self::ObjectType,
    ];

    /// The name in planning files and grammars.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Location => "location",
            Self::Receptacle => "receptacle",
            Self::Object => "object",
            Self::ReceptacleType => "rtype",
            Self::ObjectType => "otype",
        }
    }

    /// The kind of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Like `from_name`, with a fault about `place` for an unknown name.
    pub(crate) fn read(name: &str, place: impl FnOnce() -> String) -> Result<Self, Fault> {
        Self::from_name(name).ok_or_else(|| {
            Fault::unsupported(
                format!("type `{name}` {}", place()),
                format!("known types are {}", Self::ALL.map(Self::name).join(", ")),
            )
        })
    }
}

/// Largest number of things of one kind.
const MAX_OF_A_KIND: usize = 4096;

/// The things that the facts of a problem mention.
///
/// Things of a kind are numbered from 0 in the order of their ids, which is the order in which
/// the reference answers queries.
#[derive(Debug, Clone)]
pub(crate) struct Entities {
    /// Ids and names, one after the other.
    text: Box<str>,
    /// Per kind and number: start of the id, start of the name, end of the name in `text`.
    spans: [Box<[[u32; 3]]>; 6],
}

impl Entities {
    /// Gives numbers and names to things; also returns the number of each, in the order given.
    pub(crate) fn new(things: &[(&str, Kind)]) -> Result<(Self, Vec<u16>), Fault> {
        let mut sorted: Vec<usize> = (0..things.len()).collect();
        sorted.sort_unstable_by_key(|&index| things[index].0);
        let bases: Vec<Option<Cow<'_, str>>> =
            sorted.iter().map(|&index| base_name(things[index].0)).collect();
        // The first id of a name gets the highest number.
        let mut left: FxHashMap<&str, u32> = FxHashMap::default();
        for base in bases.iter().flatten() {
            *left.entry(base).or_default() += 1;
        }
        let mut text = String::with_capacity(things.len() * 80);
        let mut spans: [Vec<[u32; 3]>; 6] = Default::default();
        let mut numbers = vec![0; things.len()];
        for (&index, base) in sorted.iter().zip(&bases) {
            let (id, kind) = things[index];
            let start = text.len() as u32;
            text.push_str(id);
            let name_start = text.len() as u32;
            match base {
                Some(base) => {
                    let number = left.get_mut(&**base).map_or(0, |left| {
                        *left -= 1;
                        *left + 1
                    });
                    text.push_str(base);
                    text.push(' ');
                    push_number(&mut text, number);
                }
                None => {
                    text.push_str(&readable(id));
                    text.push(' ');
                }
            }
            let of_kind = &mut spans[kind as usize];
            if of_kind.len() == MAX_OF_A_KIND {
                return Err(Fault::unsupported(
                    format!("type `{}`", kind.name()),
                    format!("more than {MAX_OF_A_KIND} things of it"),
                ));
            }
            numbers[index] = of_kind.len() as u16;
            of_kind.push([start, name_start, text.len() as u32]);
        }
        let spans = spans.map(Vec::into_boxed_slice);
        Ok((Self { text: text.into_boxed_str(), spans }, numbers))
    }

    /// How many things of a kind there are.
    pub(crate) fn num(&self, kind: Kind) -> usize {
        self.spans[kind as usize].len()
    }

    /// The id of a thing, in lower case.
    pub(crate) fn id(&self, kind: Kind, number: u16) -> &str {
        let [start, end, _] = self.spans[kind as usize][usize::from(number)];
        &self.text[start as usize..end as usize]
    }

    /// The name of a thing as players see it.
    pub(crate) fn name(&self, kind: Kind, number: u16) -> &str {
        let [_, start, end] = self.spans[kind as usize][usize::from(number)];
        &self.text[start as usize..end as usize]
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.len() + self.spans.iter().map(|spans| spans.len() * 12).sum::<usize>()
    }
}

/// What stands before the number in a name; `None` for ids without coordinates.
fn base_name(id: &str) -> Option<Cow<'_, str>> {
    let (base, rest) = id.split_once("_bar_")?;
    let base = readable(base);
    if base.contains("basin") || rest.contains("basin") {
        return Some(Cow::Owned(format!("{base}basin")));
    }
    Some(base)
}

fn readable(id: &str) -> Cow<'_, str> {
    if !id.contains('_') {
        return Cow::Borrowed(id);
    }
    let marks = [("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ",")];
    Cow::Owned(marks.iter().fold(id.to_owned(), |id, (mark, sign)| id.replace(mark, sign)))
}

fn push_number(text: &mut String, number: u32) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_with_the_order_of_ids() {
        let ids = ["mug_bar_1", "mug_bar_2", "sink_bar_1_bar_sinkbasin", "agent1"];
        let (entities, numbers) = Entities::new(&ids.map(|id| (id, Kind::Object))).unwrap();
        let names: Vec<&str> =
            numbers.iter().map(|&number| entities.name(Kind::Object, number)).collect();
        assert_eq!(names, ["mug 2", "mug 1", "sinkbasin 1", "agent1 "]);
        assert_eq!(numbers, [1, 2, 3, 0]);
    }
}
