//! Compiled actions, shared by all games that have the same rules and texts.
//!
//! Real games come in thousands with one domain and one grammar, which differ only in the words
//! of the task. Compiling the actions would be a third of the time to load each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::entities::Kind;
use super::error::Fault;
use super::facts::FactBase;
use super::game::KnownRelations;
use super::pddl::{Domain, Formula};
use super::relations::Signature;
use super::rules::Action;
use super::twl2::{ActionText, Grammar, Production};

/// Programs that are kept for further games.
const MAX_KEPT: usize = 32;

/// The symbol of the grammar that differs from game to game.
const TASK: &str = "task";

/// The actions of a game, with all that they were compiled from.
#[derive(Debug)]
pub(crate) struct Program {
    /// The actions, in the order of the domain.
    pub(crate) actions: Vec<Action>,
    domain: Arc<Domain>,
    texts: Vec<ActionText>,
    /// Symbols without the task.
    symbols: HashMap<String, Vec<Production>>,
    /// Which predicates have facts at the start.
    initial: Vec<(String, (Kind, Option<Kind>))>,
    /// The things that the domain names, with their numbers.
    constants: Vec<Option<(Kind, u16)>>,
    /// The relations that were made, in order.
    relations: Vec<Signature>,
}

impl Program {
    /// The actions for these rules, texts and facts: kept ones, or newly compiled.
    ///
    /// Either way `facts` has the same relations afterwards. Nothing but the known relations may
    /// have been read from it before. A fault comes with the part of the game it is in.
    pub(crate) fn shared(
        domain: &Arc<Domain>,
        grammar: &Grammar,
        facts: &mut FactBase<'_>,
        known: &KnownRelations,
    ) -> Result<Arc<Self>, (&'static str, Fault)> {
        static KEPT: Mutex<Vec<Arc<Program>>> = Mutex::new(Vec::new());
        let lock = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let constants: Vec<Option<(Kind, u16)>> =
            constants(domain).into_iter().map(|name| facts.number(name)).collect();
        let initial = facts.initial_keys();
        let kept = lock()
            .iter()
            .find(|program| program.fits(domain, grammar, &initial, &constants))
            .map(Arc::clone);
        if let Some(program) = kept {
            for signature in &program.relations {
                facts.relation(&signature.predicate, signature.kinds, signature.layer);
            }
            return Ok(program);
        }
        let actions = domain
            .schemas
            .iter()
            .map(|schema| Action::new(schema, grammar, facts, known.at))
            .collect::<Result<_, _>>()?;
        let mut symbols = grammar.symbols.clone();
        symbols.remove(TASK);
        let program = Arc::new(Self {
            actions,
            domain: Arc::clone(domain),
            texts: grammar.actions.clone(),
            symbols,
            initial: initial.into_iter().map(|(name, kinds)| (name.to_owned(), kinds)).collect(),
            constants,
            relations: facts.relations.list.iter().map(|found| found.signature.clone()).collect(),
        });
        // Texts of actions that contain the task cannot serve another task.
        if !grammar.mentions_symbol(TASK) {
            let mut kept = lock();
            if kept.len() == MAX_KEPT {
                kept.remove(0);
            }
            kept.push(Arc::clone(&program));
        }
        Ok(program)
    }

    fn fits(
        &self,
        domain: &Arc<Domain>,
        grammar: &Grammar,
        initial: &[(&str, (Kind, Option<Kind>))],
        constants: &[Option<(Kind, u16)>],
    ) -> bool {
        let num_symbols = grammar.symbols.len() - usize::from(grammar.symbols.contains_key(TASK));
        Arc::ptr_eq(&self.domain, domain)
            && self.constants == constants
            && self.initial.len() == initial.len()
            && self
                .initial
                .iter()
                .zip(initial)
                .all(|(left, right)| left.0 == right.0 && left.1 == right.1)
            && self.texts == grammar.actions
            && self.symbols.len() == num_symbols
            && self
                .symbols
                .iter()
                .all(|(name, productions)| grammar.symbols.get(name) == Some(productions))
    }

    /// Bytes on the heap that playing needs.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.actions.capacity() * size_of::<Action>()
            + self.actions.iter().map(Action::heap_bytes).sum::<usize>()
    }
}

/// Names of things in the rules, in the order of the text.
fn constants(domain: &Domain) -> Vec<&str> {
    let mut names = Vec::new();
    for schema in &domain.schemas {
        collect_constants(&schema.precondition, &mut names);
        for effect in &schema.effects {
            effect.condition.iter().for_each(|condition| collect_constants(condition, &mut names));
            names.extend(effect.arguments.iter().map(String::as_str));
        }
    }
    names.retain(|name| !name.starts_with('?'));
    names
}

fn collect_constants<'a>(formula: &'a Formula, names: &mut Vec<&'a str>) {
    match formula {
        Formula::Atom { arguments, .. } => names.extend(arguments.iter().map(String::as_str)),
        Formula::Equal(left, right) => names.extend([left.as_str(), right.as_str()]),
        Formula::Not(inner) | Formula::Exists { body: inner, .. } => {
            collect_constants(inner, names);
        }
        Formula::And(parts) | Formula::Or(parts) => {
            parts.iter().for_each(|part| collect_constants(part, names));
        }
    }
}
