//! A game that is ready to be played: loaded once, shared by all its engines.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

use super::admissible::Offers;
use super::effects::{Change, compile_effects};
use super::entities::{Entities, Kind};
use super::error::{Fault, HouseholdError};
use super::facts::FactBase;
use super::goal::{Task, TaskFamily};
use super::lowering::{Lowered, Scope};
use super::narration::{Narrator, Node};
use super::pddl::{Domain, Problem};
use super::plan::{Check, UNBOUND, View};
use super::program::Program;
use super::relations::{Facts, Layer, Relation, RelationId};
use super::text_compiler::TextCompiler;
use super::twl2::Grammar;

/// The parts of a game file, as they stand in its JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameFile {
    /// Rules, in the planning language.
    pub pddl_domain: String,
    /// Texts.
    pub grammar: String,
    /// Things, start and goal, in the planning language.
    pub pddl_problem: String,
    /// Whether a plan to the goal is known to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solvable: Option<bool>,
    /// Commands that reach the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walkthrough: Option<Vec<String>>,
}

/// A thing that players see: a receptacle or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thing<'a> {
    /// Id in the planning files, in lower case.
    pub id: &'a str,
    /// Name in texts and commands, like `desk 1`.
    pub name: &'a str,
    /// Type in the planning files, in lower case, like `desktype`; empty if it has none.
    pub kind: &'a str,
}

/// A loaded game.
///
/// A game does not change while it is played; [`Engine`](super::Engine) has the state.
#[derive(Debug)]
pub struct Game {
    name: String,
    pub(crate) entities: Entities,
    pub(crate) relations: Vec<Relation>,
    pub(crate) fixed: Vec<u64>,
    pub(crate) initial: Vec<u64>,
    pub(crate) program: Arc<Program>,
    /// What the actions change, in the order of the program.
    pub(crate) effects: Vec<Vec<Change>>,
    pub(crate) goal: Check,
    pub(crate) intro: String,
    pub(crate) known: KnownRelations,
    /// What is offered at each location whatever else happens; filled when first needed.
    pub(crate) offers: Box<[OnceLock<Offers>]>,
    goal_text: String,
    task: Option<Task>,
    solvable: Option<bool>,
    walkthrough: Option<Vec<String>>,
}

/// Relations that the program itself asks for. All are there only if the game has such facts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownRelations {
    pub(crate) at: Option<RelationId>,
    pub(crate) holds: Option<RelationId>,
    pub(crate) receptacle_at: Option<RelationId>,
    pub(crate) contains: Option<RelationId>,
    pub(crate) openable: Option<RelationId>,
    pub(crate) opened: Option<RelationId>,
    pub(crate) object_type: Option<RelationId>,
    pub(crate) receptacle_type: Option<RelationId>,
    pub(crate) can_contain: Option<RelationId>,
}

impl Game {
    /// Loads a game file.
    ///
    /// # Errors
    /// When the file cannot be read, is malformed, or uses something that is not implemented.
    pub fn load(path: &Path) -> Result<Arc<Self>, HouseholdError> {
        let bytes = std::fs::read(path)
            .map_err(|source| HouseholdError::Read { path: path.to_owned(), source })?;
        Self::parse(&path.display().to_string(), &bytes)
    }

    /// Reads the content of a game file; errors call the game `name`.
    ///
    /// # Errors
    /// When the content is malformed or uses something that is not implemented.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Arc<Self>, HouseholdError> {
        let file: GameFile = serde_json::from_slice(bytes)
            .map_err(|source| HouseholdError::Json { game: name.to_owned(), source })?;
        Self::from_parts(name, &file)
    }

    /// Makes a game from the parts of a game file; errors call the game `name`.
    ///
    /// # Errors
    /// When a part is malformed or uses something that is not implemented.
    pub fn from_parts(name: &str, file: &GameFile) -> Result<Arc<Self>, HouseholdError> {
        let in_domain = |fault: Fault| fault.of(name, "pddl_domain");
        let in_problem = |fault: Fault| fault.of(name, "pddl_problem");
        let in_grammar = |fault: Fault| fault.of(name, "grammar");

        let domain = shared_domain(&file.pddl_domain).map_err(in_domain)?;
        let grammar = Grammar::parse(&file.grammar).map_err(in_grammar)?;
        let problem_text = file.pddl_problem.to_ascii_lowercase();
        let problem = Problem::read(&problem_text).map_err(in_problem)?;

        let mut facts = FactBase::new(&problem).map_err(in_problem)?;
        facts.learn(&domain).map_err(in_problem)?;
        check_start(&mut facts).map_err(in_problem)?;
        let known = KnownRelations::new(&mut facts);

        let program = Program::shared(&domain, &grammar, &mut facts, &known)
            .map_err(|(part, fault)| fault.of(name, part))?;
        let goal = Lowered::new(&problem.goal, &mut Scope::default(), &mut facts, "the goal")
            .and_then(|goal| Lowered::Exists(0, Box::new(goal)).check(0, "the goal"))
            .map_err(in_problem)?;
        let mut compiler = TextCompiler::new(&grammar, &mut facts);
        let intro = compiler.compile("#intro#", &mut Vec::new()).map_err(in_grammar)?;
        let task_text = if grammar.symbols.contains_key("task") {
            compiler.compile("#task#", &mut Vec::new()).map_err(in_grammar)?
        } else {
            Vec::new()
        };
        let effects = compile_effects(&domain, &mut facts).map_err(in_domain)?;

        let relations = std::mem::take(&mut facts.relations);
        let offers = (0..facts.entities.num(Kind::Location)).map(|_| OnceLock::new()).collect();
        let mut game = Self {
            name: name.to_owned(),
            entities: facts.entities,
            relations: relations.list,
            fixed: relations.fixed,
            initial: relations.initial,
            program,
            effects,
            goal,
            intro: String::new(),
            known,
            offers,
            goal_text: String::new(),
            task: Task::from_goal(&problem.goal),
            solvable: file.solvable,
            walkthrough: file.walkthrough.clone(),
        };
        game.intro = game.write_at_start(&intro);
        let task = game.write_at_start(&task_text);
        game.goal_text = task.strip_prefix("Your task is to: ").unwrap_or(&task).to_owned();
        Ok(Arc::new(game))
    }

    /// Name of the game, normally its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the player is told to do, without "Your task is to: ".
    pub fn goal_text(&self) -> &str {
        &self.goal_text
    }

    /// The family of the goal; `None` if it belongs to none of the six.
    pub fn task_family(&self) -> Option<TaskFamily> {
        self.task.as_ref().map(|task| task.family)
    }

    /// The goal as a task; `None` if it belongs to none of the six families.
    pub fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// Whether the file says that a plan to the goal exists.
    pub fn solvable(&self) -> Option<bool> {
        self.solvable
    }

    /// Commands that reach the goal, where the file has them.
    pub fn walkthrough(&self) -> Option<&[String]> {
        self.walkthrough.as_deref()
    }

    /// All receptacles, in the order of their ids.
    pub fn receptacles(&self) -> impl Iterator<Item = Thing<'_>> {
        self.things(Kind::Receptacle, self.known.receptacle_type, Kind::ReceptacleType)
    }

    /// All objects that the facts mention, in the order of their ids.
    pub fn objects(&self) -> impl Iterator<Item = Thing<'_>> {
        self.things(Kind::Object, self.known.object_type, Kind::ObjectType)
    }

    /// Bytes on the heap, without the actions that all games of the same rules and texts share.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.name.len()
            + self.intro.capacity()
            + self.goal_text.capacity()
            + self.entities.heap_bytes()
            + self.relations.capacity() * size_of::<Relation>()
            + (self.fixed.capacity() + self.initial.capacity()) * 8
            + self.effects.iter().map(|changes| 24 + size_of_val(&changes[..])).sum::<usize>()
            + self.goal.heap_bytes()
            + self.offers.len() * size_of::<OnceLock<Offers>>()
            + self.offers.iter().filter_map(OnceLock::get).map(Offers::heap_bytes).sum::<usize>()
    }

    /// Bytes on the heap of the actions that all games of the same rules and texts share.
    pub fn shared_heap_bytes(&self) -> usize {
        self.program.heap_bytes()
    }

    /// A relation that may be missing, with its facts; nothing holds for a missing one.
    pub(crate) fn relation(&self, id: Option<RelationId>) -> Option<&Relation> {
        id.map(|id| &self.relations[usize::from(id)])
    }

    pub(crate) fn view<'a>(&'a self, dynamic: &'a [u64]) -> View<'a> {
        View { relations: &self.relations, facts: Facts { fixed: &self.fixed, dynamic } }
    }

    pub(crate) fn narrator<'a>(&'a self, dynamic: &'a [u64]) -> Narrator<'a> {
        Narrator { entities: &self.entities, view: self.view(dynamic) }
    }

    fn write_at_start(&self, nodes: &[Node]) -> String {
        let mut text = String::with_capacity(1024);
        let mut bindings = [UNBOUND; super::plan::MAX_SLOTS];
        self.narrator(&self.initial).write(nodes, &mut bindings, &mut text);
        text.shrink_to_fit();
        text
    }

    fn things(
        &self,
        kind: Kind,
        type_of: Option<RelationId>,
        type_kind: Kind,
    ) -> impl Iterator<Item = Thing<'_>> {
        let relation = self.relation(type_of);
        (0..self.entities.num(kind) as u16).map(move |number| {
            let mut type_number = None;
            if let Some(relation) = relation {
                relation.seconds(self.view(&self.initial).facts, number, &mut |found| {
                    type_number = Some(found);
                    true
                });
            }
            Thing {
                id: self.entities.id(kind, number),
                name: self.entities.name(kind, number),
                kind: type_number.map_or("", |number| self.entities.id(type_kind, number)),
            }
        })
    }
}

impl KnownRelations {
    fn new(facts: &mut FactBase<'_>) -> Self {
        let mut pair = |predicate, first, second| {
            facts.relation(predicate, (first, Some(second)), Layer::Truth)
        };
        let at = pair("atlocation", Kind::Agent, Kind::Location);
        let holds = pair("holds", Kind::Agent, Kind::Object);
        let receptacle_at = pair("receptacleatlocation", Kind::Receptacle, Kind::Location);
        let contains = pair("inreceptacle", Kind::Object, Kind::Receptacle);
        let object_type = pair("objecttype", Kind::Object, Kind::ObjectType);
        let receptacle_type = pair("receptacletype", Kind::Receptacle, Kind::ReceptacleType);
        let can_contain = pair("cancontain", Kind::ReceptacleType, Kind::ObjectType);
        let mut single =
            |predicate| facts.relation(predicate, (Kind::Receptacle, None), Layer::Truth);
        let openable = single("openable");
        let opened = single("opened");
        Self {
            at,
            holds,
            receptacle_at,
            contains,
            openable,
            opened,
            object_type,
            receptacle_type,
            can_contain,
        }
    }
}

/// There is one player, at one location, with at most one thing in hand.
fn check_start(facts: &mut FactBase<'_>) -> Result<(), Fault> {
    let players = facts.entities.num(Kind::Agent);
    if players != 1 {
        let reason = format!("{players} players in the facts; exactly one is known");
        return Err(Fault::unsupported("type `agent`", reason));
    }
    let places = facts.num_initial("atlocation", (Kind::Agent, Some(Kind::Location)));
    if places != 1 {
        let reason = format!("the player is at {places} locations; exactly one is known");
        return Err(Fault::unsupported("fact `atlocation`", reason));
    }
    let held = facts.num_initial("holds", (Kind::Agent, Some(Kind::Object)));
    if held > 1 {
        let reason = format!("the player holds {held} objects; at most one is known");
        return Err(Fault::unsupported("fact `holds`", reason));
    }
    Ok(())
}

/// Domains are few and long, games many: a parsed domain is kept for the next game.
fn shared_domain(text: &str) -> Result<Arc<Domain>, Fault> {
    type Parsed = (String, Arc<Domain>);
    /// Real data has one domain per release.
    const MAX_KEPT: usize = 8;
    static KEPT: Mutex<Vec<Parsed>> = Mutex::new(Vec::new());
    let lock = || KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, domain)) = lock().iter().find(|(known, _)| known == text) {
        return Ok(Arc::clone(domain));
    }
    let domain = Arc::new(Domain::parse(&text.to_ascii_lowercase())?);
    let mut kept = lock();
    if kept.len() == MAX_KEPT {
        kept.remove(0);
    }
    kept.push((text.to_owned(), Arc::clone(&domain)));
    Ok(domain)
}
