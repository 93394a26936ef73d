//! Facts as bit matrices: static ones in the game, dynamic ones in the state.

use rustc_hash::FxHashMap;

use super::entities::{Entities, Kind};

/// Number of a relation.
pub(crate) type RelationId = u16;

/// A predicate over kinds; facts of the same predicate over other kinds are another relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    /// Predicate, in lower case.
    pub(crate) predicate: Box<str>,
    /// Kinds of the arguments; the second is `None` for predicates with one argument.
    pub(crate) kinds: (Kind, Option<Kind>),
    /// Which of the three views of a predicate.
    pub(crate) layer: Layer,
}

/// The three views of a predicate.
///
/// The reference keeps facts twice: the planner's state decides what is possible and whether the
/// goal holds, a set of facts feeds the texts. The set also has `not_` facts, but only for what an
/// action made false; and of two conditional effects on a fact it always applies both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Layer {
    /// The planner's state.
    Truth,
    /// Positive facts of the texts, where they can differ from the truth.
    Text,
    /// Facts that were explicitly made false.
    Negated,
}

/// Where the bits of a relation are: bit `column` of row `row`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix {
    offset: u32,
    words_per_row: u16,
    rows: u16,
    columns: u16,
    /// The row is the second argument, not the first.
    is_transposed: bool,
}

impl Matrix {
    fn bit(&self, first: u16, second: u16) -> (usize, u64) {
        let (row, column) = if self.is_transposed { (second, first) } else { (first, second) };
        let word = usize::from(row) * usize::from(self.words_per_row) + usize::from(column) / 64;
        (self.offset as usize + word, 1 << (column % 64))
    }

    fn row<'a>(&self, words: &'a [u64], row: u16) -> &'a [u64] {
        let start = self.offset as usize + usize::from(row) * usize::from(self.words_per_row);
        &words[start..start + usize::from(self.words_per_row)]
    }
}

/// A relation: one matrix, or for static pairs two, so that both arguments can be looked up fast.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) signature: Signature,
    pub(crate) is_dynamic: bool,
    matrix: Matrix,
    transposed: Option<Matrix>,
}

impl Relation {
    /// Whether the fact holds; the second argument is 0 for predicates with one argument.
    pub(crate) fn holds(&self, facts: Facts<'_>, first: u16, second: u16) -> bool {
        let (word, mask) = self.matrix.bit(first, second);
        self.words(facts)[word] & mask != 0
    }

    fn words<'a>(&self, facts: Facts<'a>) -> &'a [u64] {
        if self.is_dynamic { facts.dynamic } else { facts.fixed }
    }

    /// Calls `visit` with every first argument that holds with `second`, in order, until it
    /// returns true.
    pub(crate) fn firsts(
        &self,
        facts: Facts<'_>,
        second: u16,
        visit: &mut impl FnMut(u16) -> bool,
    ) -> bool {
        let by_second = self.transposed.as_ref().unwrap_or(&self.matrix);
        if by_second.is_transposed {
            return each_bit(by_second.row(self.words(facts), second), visit);
        }
        (0..by_second.rows).any(|first| self.holds(facts, first, second) && visit(first))
    }

    /// Calls `visit` with every second argument that holds with `first`, in order, until it
    /// returns true.
    pub(crate) fn seconds(
        &self,
        facts: Facts<'_>,
        first: u16,
        visit: &mut impl FnMut(u16) -> bool,
    ) -> bool {
        if !self.matrix.is_transposed {
            return each_bit(self.matrix.row(self.words(facts), first), visit);
        }
        (0..self.matrix.rows).any(|second| self.holds(facts, first, second) && visit(second))
    }

    /// Number of things that can be the first argument.
    pub(crate) fn num_firsts(&self) -> u16 {
        if self.matrix.is_transposed { self.matrix.columns } else { self.matrix.rows }
    }

    /// Makes the fact true or false in the dynamic words.
    pub(crate) fn set(&self, dynamic: &mut [u64], first: u16, second: u16, value: bool) {
        let (word, mask) = self.matrix.bit(first, second);
        if value {
            dynamic[word] |= mask;
        } else {
            dynamic[word] &= !mask;
        }
    }
}

/// Calls `visit` with the index of every set bit, in order, until it returns true.
fn each_bit(words: &[u64], visit: &mut impl FnMut(u16) -> bool) -> bool {
    for (index, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            if visit(index as u16 * 64 + left.trailing_zeros() as u16) {
                return true;
            }
            left &= left - 1;
        }
    }
    false
}

/// The facts of a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// Facts that no action changes.
    pub(crate) fixed: &'a [u64],
    /// Facts that actions change.
    pub(crate) dynamic: &'a [u64],
}

/// All relations of a game with the facts at the start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Relations {
    pub(crate) list: Vec<Relation>,
    /// Facts that no action changes.
    pub(crate) fixed: Vec<u64>,
    /// The changing facts as they are at the start.
    pub(crate) initial: Vec<u64>,
    ids: FxHashMap<Signature, RelationId>,
}

impl Relations {
    /// The relation of that signature, if it can ever have a fact.
    pub(crate) fn find(&self, signature: &Signature) -> Option<RelationId> {
        self.ids.get(signature).copied()
    }

    /// Adds an empty relation, or finds the one that is there.
    pub(crate) fn add(
        &mut self,
        signature: Signature,
        is_dynamic: bool,
        entities: &Entities,
    ) -> RelationId {
        if let Some(&id) = self.ids.get(&signature) {
            return id;
        }
        let (first, second) = signature.kinds;
        let firsts = entities.num(first) as u16;
        let words = if is_dynamic { &mut self.initial } else { &mut self.fixed };
        let mut place = |rows: u16, columns: u16, is_transposed| {
            let (offset, words_per_row) = (words.len() as u32, columns.div_ceil(64));
            words.resize(words.len() + usize::from(rows) * usize::from(words_per_row), 0);
            Matrix { offset, words_per_row, rows, columns, is_transposed }
        };
        let (matrix, transposed) = match second {
            // One row, so that all things it holds for are found in one word or two.
            None => (place(1, firsts, true), None),
            Some(second) => {
                let seconds = entities.num(second) as u16;
                // Texts and rules ask what is in a receptacle or at a location.
                let by_second = first == Kind::Object && second != Kind::ObjectType;
                match (is_dynamic, by_second) {
                    (true, true) => (place(seconds, firsts, true), None),
                    (true, false) => (place(firsts, seconds, false), None),
                    (false, _) => {
                        (place(firsts, seconds, false), Some(place(seconds, firsts, true)))
                    }
                }
            }
        };
        let id = self.list.len() as RelationId;
        self.list.push(Relation { signature: signature.clone(), is_dynamic, matrix, transposed });
        self.ids.insert(signature, id);
        id
    }

    /// Makes a fact true at the start.
    pub(crate) fn insert(&mut self, id: RelationId, first: u16, second: u16) {
        let relation = &self.list[usize::from(id)];
        let words = if relation.is_dynamic { &mut self.initial } else { &mut self.fixed };
        relation.set(words, first, second, true);
        if let Some(transposed) = &relation.transposed {
            let (word, mask) = transposed.bit(first, second);
            words[word] |= mask;
        }
    }
}
