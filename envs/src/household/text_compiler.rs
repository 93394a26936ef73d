//! From the templates of a grammar to texts that can be written fast.

use super::entities::Kind;
use super::error::Fault;
use super::facts::FactBase;
use super::narration::{List, Node};
use super::plan::{Atom, MAX_SLOTS, Query, Step, Term};
use super::relations::Layer;
use super::twl2::{Expression, Grammar, Part, Piece, parse_query, parse_template};

/// Symbols inside symbols beyond this are taken for an endless recursion.
const MAX_DEPTH: usize = 24;

/// Texts of more parts than this are refused.
const MAX_NODES: usize = 20_000;

/// The placeholders in sight, by slot: name and kind. Slots of inner queries follow outer ones.
pub(crate) type TextScope<'a> = Vec<(&'a str, Kind)>;

/// Compiles texts against the facts of one game.
pub(crate) struct TextCompiler<'a, 'f, 'p> {
    grammar: &'a Grammar,
    facts: &'f mut FactBase<'p>,
    num_nodes: usize,
}

impl<'a, 'f, 'p> TextCompiler<'a, 'f, 'p> {
    pub(crate) fn new(grammar: &'a Grammar, facts: &'f mut FactBase<'p>) -> Self {
        Self { grammar, facts, num_nodes: 0 }
    }

    /// The text of `template`, with the placeholders of `scope` having values.
    pub(crate) fn compile(
        &mut self,
        template: &'a str,
        scope: &mut TextScope<'a>,
    ) -> Result<Vec<Node>, Fault> {
        self.template(template, scope, 0)
    }

    fn template(
        &mut self,
        template: &'a str,
        scope: &mut TextScope<'a>,
        depth: usize,
    ) -> Result<Vec<Node>, Fault> {
        let mut nodes = Vec::new();
        for part in parse_template(template) {
            match part {
                Part::Literal(text) => push_literal(&mut nodes, text),
                Part::Symbol(symbol) => {
                    let text = self.symbol(symbol, scope, depth + 1)?;
                    append(&mut nodes, text);
                }
                Part::Value { piece, query, is_list } => {
                    self.value(&piece, query, is_list, scope, depth, &mut nodes)?;
                }
            }
        }
        self.num_nodes += nodes.len();
        if self.num_nodes > MAX_NODES {
            return Err(Fault::unsupported(
                format!("template `{template}`"),
                format!("its text has more than {MAX_NODES} parts"),
            ));
        }
        Ok(nodes)
    }

    fn symbol(
        &mut self,
        symbol: &'a str,
        scope: &mut TextScope<'a>,
        depth: usize,
    ) -> Result<Vec<Node>, Fault> {
        let refuse = |reason: &str| Err(Fault::unsupported(format!("symbol `#{symbol}#`"), reason));
        if depth > MAX_DEPTH {
            return refuse("its productions lead back to it");
        }
        let productions = match self.grammar.symbols.get(symbol) {
            Some(productions) if !productions.is_empty() => productions,
            _ => return refuse("the grammar has no production for it"),
        };
        let mut choices = Vec::new();
        for production in productions {
            // Placeholders of a condition are not in sight of its text.
            let condition = match production.condition.as_str() {
                "" => None,
                condition => {
                    let outer = scope.len();
                    let query = self.query(condition, scope);
                    scope.truncate(outer);
                    Some(query?)
                }
            };
            if condition.as_ref().is_some_and(|query| query.is_empty) {
                continue;
            }
            let is_last = condition.is_none();
            let text = self.template(&production.rhs, scope, depth)?;
            if is_last && choices.is_empty() {
                return Ok(text);
            }
            choices.push((condition, text));
            if is_last {
                break;
            }
        }
        Ok(vec![Node::Choice(choices)])
    }

    fn value(
        &mut self,
        piece: &Piece<'a>,
        query: Option<&'a str>,
        is_list: bool,
        scope: &mut TextScope<'a>,
        depth: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Fault> {
        let outer = scope.len();
        let query = match query {
            Some(query) => Some(self.query(query, scope)?),
            None => None,
        };
        let entry = match piece {
            Piece::Symbol(symbol) => self.symbol(symbol, scope, depth + 1)?,
            Piece::Expression(text) => {
                let mut entry = Vec::new();
                self.expression(&Expression::parse(text)?, text, scope, &mut entry)?;
                entry
            }
        };
        scope.truncate(outer);
        match (query, is_list) {
            // A list of one is the thing itself.
            (None, _) => append(nodes, entry),
            (Some(query), false) => nodes.push(Node::Each(query, entry)),
            (Some(query), true) => {
                let mut separator = |symbol| self.symbol(symbol, scope, depth + 1);
                nodes.push(Node::List(Box::new(List {
                    query,
                    entry,
                    empty: separator("list_empty")?,
                    separator: separator("list_separator")?,
                    last_separator: separator("list_last_separator")?,
                })));
            }
        }
        Ok(())
    }

    fn expression(
        &mut self,
        expression: &Expression<'a>,
        text: &str,
        scope: &TextScope<'a>,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Fault> {
        match expression {
            Expression::Literal(literal) => push_literal(nodes, literal),
            Expression::Join(terms) => {
                for term in terms {
                    self.expression(term, text, scope, nodes)?;
                }
            }
            Expression::Either(alternatives) => {
                // Names and ids are never empty, so the choice is known here.
                for alternative in alternatives {
                    let mut chosen = Vec::new();
                    self.expression(alternative, text, scope, &mut chosen)?;
                    if !chosen.is_empty() {
                        append(nodes, chosen);
                        break;
                    }
                }
            }
            Expression::Attribute(name, attribute) => {
                let slot = scope.iter().rposition(|(known, _)| known == name);
                let Some(slot) = slot else {
                    return Err(Fault::unsupported(
                        format!("expression `{text}`"),
                        format!("nothing gives a value to `{name}`"),
                    ));
                };
                let kind = scope[slot].1;
                match *attribute {
                    "name" => nodes.push(Node::Name(kind, slot as u8)),
                    "id" => nodes.push(Node::Id(kind, slot as u8)),
                    "indefinite" => push_literal(nodes, "a"),
                    "definite" => push_literal(nodes, "the"),
                    "type" => push_literal(nodes, kind.name()),
                    _ => {
                        return Err(Fault::unsupported(
                            format!("expression `{text}`"),
                            "known attributes are name, id, indefinite, definite, type",
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Compiles a query; its new placeholders are added to `scope`.
    fn query(&mut self, text: &'a str, scope: &mut TextScope<'a>) -> Result<Query, Fault> {
        let mut query = Query { steps: Vec::new(), distinct: None, is_empty: false };
        for atom in parse_query(text)? {
            let refuse =
                |reason: String| Fault::unsupported(format!("query `{}`", text.trim()), reason);
            let mut terms = [Term::Const(0); 2];
            let mut kinds = Vec::with_capacity(2);
            if !(1..=2).contains(&atom.placeholders.len()) {
                return Err(refuse("facts have one or two arguments".to_owned()));
            }
            for (term, (name, kind)) in terms.iter_mut().zip(&atom.placeholders) {
                let kind = Kind::read(kind, || format!("in query `{}`", text.trim()))?;
                let known = scope.iter().rposition(|entry| *entry == (*name, kind));
                let slot = known.unwrap_or_else(|| {
                    scope.push((name, kind));
                    scope.len() - 1
                });
                if slot >= MAX_SLOTS {
                    return Err(refuse(format!("more than {MAX_SLOTS} placeholders in sight")));
                }
                *term = Term::Slot(slot as u8);
                kinds.push(kind);
            }
            let (predicate, layer) = match atom.predicate.strip_prefix("not_") {
                Some(predicate) => (predicate, Layer::Negated),
                None => (atom.predicate, Layer::Text),
            };
            let kinds = (kinds[0], kinds.get(1).copied());
            match self.facts.relation(predicate, kinds, layer) {
                Some(relation) => query.steps.push(Step::Match(Atom {
                    relation,
                    first: terms[0],
                    second: terms[1],
                })),
                None => query.is_empty = true,
            }
        }
        query.distinct = Some(scope.iter().map(|(_, kind)| *kind).collect());
        Ok(query)
    }
}

fn push_literal(nodes: &mut Vec<Node>, text: &str) {
    if text.is_empty() {
        return;
    }
    match nodes.last_mut() {
        Some(Node::Literal(last)) => last.push_str(text),
        _ => nodes.push(Node::Literal(text.to_owned())),
    }
}

fn append(nodes: &mut Vec<Node>, more: Vec<Node>) {
    if nodes.is_empty() {
        *nodes = more;
        return;
    }
    for node in more {
        match node {
            Node::Literal(text) => push_literal(nodes, &text),
            other => nodes.push(other),
        }
    }
}
