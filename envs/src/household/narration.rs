//! Texts, compiled from the grammar: how they are written from the facts of a moment.

use super::entities::{Entities, Kind};
use super::plan::{Bindings, Query, View};

/// A part of a compiled text.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// Text as it is.
    Literal(String),
    /// The name of the thing in a placeholder.
    Name(Kind, u8),
    /// The id of the thing in a placeholder.
    Id(Kind, u8),
    /// The first production whose condition holds; nothing if none does.
    Choice(Vec<(Option<Query>, Vec<Node>)>),
    /// The text once per answer to the query.
    Each(Query, Vec<Node>),
    /// The text once per answer to the query, as a list.
    List(Box<List>),
}

/// A list of answers.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// What gives the entries.
    pub(crate) query: Query,
    /// One entry.
    pub(crate) entry: Vec<Node>,
    /// Instead of no entries.
    pub(crate) empty: Vec<Node>,
    /// Between entries.
    pub(crate) separator: Vec<Node>,
    /// Before the last entry.
    pub(crate) last_separator: Vec<Node>,
}

/// Writes texts: the names of the things and the facts of the moment.
#[derive(Clone, Copy)]
pub(crate) struct Narrator<'a> {
    pub(crate) entities: &'a Entities,
    pub(crate) view: View<'a>,
}

impl Narrator<'_> {
    /// Appends the text to `out`.
    pub(crate) fn write(&self, nodes: &[Node], bindings: &mut Bindings, out: &mut String) {
        for node in nodes {
            match node {
                Node::Literal(text) => out.push_str(text),
                Node::Name(kind, slot) => {
                    out.push_str(self.entities.name(*kind, bindings[usize::from(*slot)]));
                }
                Node::Id(kind, slot) => {
                    out.push_str(self.entities.id(*kind, bindings[usize::from(*slot)]));
                }
                Node::Choice(productions) => {
                    for (condition, text) in productions {
                        let holds = match condition {
                            None => true,
                            Some(query) => query.has_answer(self.view, bindings),
                        };
                        if holds {
                            self.write(text, bindings, out);
                            break;
                        }
                    }
                }
                Node::Each(query, text) => {
                    query.solve(self.view, bindings, &mut |bindings| {
                        self.write(text, bindings, out);
                        false
                    });
                }
                Node::List(list) => self.write_list(list, bindings, out),
            }
        }
    }

    /// An entry is written when the next answer is known, since the last separator differs.
    fn write_list(&self, list: &List, bindings: &mut Bindings, out: &mut String) {
        let mut waiting: Option<Bindings> = None;
        let mut num_written = 0;
        list.query.solve(self.view, bindings, &mut |answer| {
            if let Some(mut entry) = waiting.replace(*answer) {
                if num_written > 0 {
                    self.write(&list.separator, &mut entry, out);
                }
                self.write(&list.entry, &mut entry, out);
                num_written += 1;
            }
            false
        });
        match waiting {
            None => self.write(&list.empty, bindings, out),
            Some(mut entry) => {
                if num_written > 0 {
                    self.write(&list.last_separator, &mut entry, out);
                }
                self.write(&list.entry, &mut entry, out);
            }
        }
    }
}

/// Calls `visit` with every query of a text.
pub(crate) fn visit_queries(nodes: &[Node], visit: &mut impl FnMut(&Query)) {
    for node in nodes {
        match node {
            Node::Literal(_) | Node::Name(..) | Node::Id(..) => {}
            Node::Choice(productions) => {
                for (condition, text) in productions {
                    condition.iter().for_each(&mut *visit);
                    visit_queries(text, visit);
                }
            }
            Node::Each(query, text) => {
                visit(query);
                visit_queries(text, visit);
            }
            Node::List(list) => {
                visit(&list.query);
                for text in [&list.entry, &list.empty, &list.separator, &list.last_separator] {
                    visit_queries(text, visit);
                }
            }
        }
    }
}

/// Bytes on the heap.
pub(crate) fn heap_bytes(nodes: &[Node]) -> usize {
    let mut bytes = size_of_val(nodes);
    for node in nodes {
        bytes += match node {
            Node::Literal(text) => text.capacity(),
            Node::Name(..) | Node::Id(..) => 0,
            Node::Choice(productions) => {
                let inner = productions.iter().map(|(condition, text)| {
                    condition.as_ref().map_or(0, Query::heap_bytes) + heap_bytes(text)
                });
                productions.capacity() * size_of::<(Option<Query>, Vec<Node>)>()
                    + inner.sum::<usize>()
            }
            Node::Each(query, text) => query.heap_bytes() + heap_bytes(text),
            Node::List(list) => {
                let texts = [&list.entry, &list.empty, &list.separator, &list.last_separator];
                size_of::<List>()
                    + list.query.heap_bytes()
                    + texts.iter().map(|text| heap_bytes(text)).sum::<usize>()
            }
        };
    }
    bytes
}
