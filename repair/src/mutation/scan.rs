use std::cell::RefCell;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tree_sitter::{Node, Parser, Tree};

use super::{Edits, Language, OPERATORS};
use crate::MutationError;

/// Bytes of the largest source that is looked at.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// A change of one source that makes a bug, or is meant to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// The name of its [`Operator`](super::Operator).
    pub operator: String,
    /// The function it lies in, with the classes, modules or functions around: `Cache.pop`.
    pub function: String,
    /// The lines that it touches, from 1.
    pub lines: Vec<usize>,
    /// What it does.
    pub edits: Edits,
}

impl Mutation {
    /// The source with the bug.
    ///
    /// # Panics
    ///
    /// If it is not the source that the mutation was found in.
    pub fn apply(&self, source: &str) -> String {
        self.edits.apply(source)
    }

    /// The way back, for the text that [`Mutation::apply`] makes of `source`.
    ///
    /// # Panics
    ///
    /// As [`Mutation::apply`].
    pub fn inverse(&self, source: &str) -> Edits {
        self.edits.inverse(source)
    }
}

/// All mutations of a source, in its order: inside of functions alone, none in tests, texts that document, or types. What
/// they make can be parsed and differs from the source.
///
/// # Errors
///
/// [`MutationError`] where the source is too large or not of the language.
pub fn mutations(language: Language, source: &str) -> Result<Vec<Mutation>, MutationError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(MutationError::TooLarge { bytes: source.len(), limit: MAX_SOURCE_BYTES });
    }
    let tree = parse(language, source);
    if let Some(line) = first_error(&tree) {
        return Err(MutationError::Syntax { language: language.name(), line });
    }
    let mut scan = Scan { language, source, found: Vec::new(), seen: HashSet::new() };
    scan.walk(&tree);
    Ok(scan.found)
}

/// Whether a text is of the language, as far as its grammar knows.
pub fn parses(language: Language, text: &str) -> bool {
    first_error(&parse(language, text)).is_none()
}

fn parse(language: Language, text: &str) -> Tree {
    thread_local! {
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&language.grammar()).expect("the grammars fit the library");
        parser.parse(text, None).expect("nothing cancels it")
    })
}

/// The first line that cannot be read, from 1.
fn first_error(tree: &Tree) -> Option<usize> {
    if !tree.root_node().has_error() {
        return None;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(node.start_position().row + 1);
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(1);
            }
        }
    }
}

/// What operators see of a source.
pub(super) struct Source<'a>(&'a str);

impl<'a> Source<'a> {
    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        &self.0[node.byte_range()]
    }

    pub(super) fn between(&self, start: usize, end: usize) -> &'a str {
        &self.0[start..end]
    }

    /// Whether the node is the first thing of its line.
    pub(super) fn begins_line(&self, node: Node<'_>) -> bool {
        let line = self.0[..node.start_byte()].rsplit('\n').next().unwrap_or_default();
        line.bytes().all(|byte| byte == b' ' || byte == b'\t')
    }

    /// What stands before the node in its line, where that is nothing but blanks.
    pub(super) fn indentation(&self, node: Node<'_>) -> Option<&'a str> {
        let line = self.0[..node.start_byte()].rsplit('\n').next().unwrap_or_default();
        line.bytes().all(|byte| byte == b' ' || byte == b'\t').then_some(line)
    }
}

struct Scan<'a> {
    language: Language,
    source: &'a str,
    found: Vec<Mutation>,
    seen: HashSet<Edits>,
}

/// What a node is to the walk.
pub(super) enum Kind {
    /// Something that names of functions in it begin with.
    Scope(String),
    /// A function.
    Function(String),
    /// Nothing in it is looked at.
    Passed,
    /// Looked at.
    Plain,
}

impl Scan<'_> {
    /// Visits nodes parents first. No recursion: sources may be nested at will.
    fn walk(&mut self, tree: &Tree) {
        let kind = match self.language {
            Language::Python => super::python::kind,
            Language::Rust => super::rust::kind,
        };
        let source = Source(self.source);
        let mut cursor = tree.walk();
        // Scopes that are open: the end of each, its name, and whether it is a function.
        let mut open: Vec<(usize, String, bool)> = Vec::new();
        loop {
            let node = cursor.node();
            while open.last().is_some_and(|(end, ..)| *end <= node.start_byte()) {
                open.pop();
            }
            let inside = match kind(node, &source) {
                Kind::Passed => false,
                Kind::Plain => {
                    self.visit(node, &source, &open);
                    true
                }
                Kind::Scope(name) => {
                    open.push((node.end_byte(), name, false));
                    true
                }
                Kind::Function(name) => {
                    open.push((node.end_byte(), name, true));
                    self.visit(node, &source, &open);
                    true
                }
            };
            if inside && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn visit(&mut self, node: Node<'_>, source: &Source<'_>, open: &[(usize, String, bool)]) {
        if !open.iter().any(|(.., is_function)| *is_function) {
            return;
        }
        for operator in &OPERATORS {
            let find = match self.language {
                Language::Python => operator.python,
                Language::Rust => operator.rust,
            };
            let Some(find) = find else { continue };
            let mut drafts = Vec::new();
            find(node, source, &mut drafts);
            for draft in drafts {
                self.keep(operator.name, draft, open);
            }
        }
    }

    /// Keeps what differs, is new and can be parsed.
    fn keep(&mut self, operator: &str, draft: Vec<super::Edit>, open: &[(usize, String, bool)]) {
        let Some(edits) = Edits::new(draft) else { return };
        let changes = |edit: &super::Edit| self.source[edit.span.clone()] != edit.replacement;
        if edits.as_slice().is_empty() || !edits.as_slice().iter().all(changes) {
            return;
        }
        if !self.seen.insert(edits.clone()) || !parses(self.language, &edits.apply(self.source)) {
            return;
        }
        let names: Vec<&str> = open.iter().map(|(_, name, _)| name.as_str()).collect();
        let separator = match self.language {
            Language::Python => ".",
            Language::Rust => "::",
        };
        self.found.push(Mutation {
            operator: operator.to_owned(),
            function: names.join(separator),
            lines: edits.lines(self.source),
            edits,
        });
    }
}
