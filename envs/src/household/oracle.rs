//! Plans from any moment of a game to its goal, with full sight of the state.
//!
//! For the six families of tasks a plan is a short chain of chores: take this from there, clean it
//! in that basin, put it here. All chains are listed with the number of commands they would need,
//! and played on a fork from the shortest on until one reaches the goal. A goal of another kind is
//! looked for breadth-first.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::admissible::Offer;
use super::engine::Engine;
use super::entities::Kind;
use super::game::Game;
use super::goal::TaskFamily;
use super::relations::{Facts, Relation};

/// Chains that are played before giving up on them.
const MAX_TRIALS: usize = 256;

/// States that the breadth-first search looks at before giving up on a goal of another kind.
const MAX_STATES: usize = 4096;

/// The same for goals of the six families, where a search finds only what chains overlook: that a
/// thing in hand fits nowhere, say, which no search can mend.
const MAX_STATES_OF_A_TASK: usize = 256;

/// The commands that lead from the present state of `engine` to its goal.
///
/// Empty if the goal holds already, `None` if no way was found. The plan is a shortest one among
/// those that do one chore after the other without detours.
///
/// ```no_run
/// use spar_envs::household::{Engine, Game, oracle};
///
/// let mut engine = Engine::new(Game::load("game.tw-pddl".as_ref())?);
/// for command in oracle::solve(&engine).unwrap_or_default() {
///     engine.step(&command);
/// }
/// assert!(engine.won());
/// # Ok::<(), spar_envs::household::HouseholdError>(())
/// ```
pub fn solve(engine: &Engine) -> Option<Vec<String>> {
    if engine.won() {
        return Some(Vec::new());
    }
    let scene = Scene::new(engine);
    let mut chains = scene.chains();
    chains.sort_by_key(|(cost, _)| *cost);
    let mut best: Option<Vec<String>> = None;
    for (cost, chain) in chains.iter().take(MAX_TRIALS) {
        if best.as_ref().is_some_and(|best| best.len() <= *cost) {
            break;
        }
        if let Some(plan) = play(engine, chain)
            && best.as_ref().is_none_or(|best| plan.len() < best.len())
        {
            best = Some(plan);
        }
    }
    best.or_else(|| {
        let is_task = engine.game().task().is_some();
        breadth_first(engine, if is_task { MAX_STATES_OF_A_TASK } else { MAX_STATES })
    })
}

/// One thing to do, in or at a receptacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chore {
    verb: Verb,
    object: u16,
    receptacle: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Take,
    Put,
    Clean,
    Heat,
    Cool,
    Use,
}

impl Verb {
    /// The action in the planning domain.
    fn action(self) -> &'static str {
        match self {
            Self::Take => "pickupobject",
            Self::Put => "putobject",
            Self::Clean => "cleanobject",
            Self::Heat => "heatobject",
            Self::Cool => "coolobject",
            Self::Use => "toggleobject",
        }
    }

    fn needs_open(self) -> bool {
        matches!(self, Self::Take | Self::Put)
    }
}

/// What the oracle knows about the moment it starts from.
struct Scene<'a> {
    game: &'a Game,
    facts: Facts<'a>,
    location: Option<u16>,
    held: Option<u16>,
    location_of: Vec<Option<u16>>,
    is_closed: Vec<bool>,
}

type Chains = Vec<(usize, Vec<Chore>)>;

impl<'a> Scene<'a> {
    fn new(engine: &'a Engine) -> Self {
        let game = &**engine.game();
        let facts = game.view(engine.dynamic()).facts;
        let receptacles = 0..game.entities.num(Kind::Receptacle) as u16;
        let is = |id, thing| game.relation(id).is_some_and(|found| found.holds(facts, thing, 0));
        let location_of = receptacles
            .clone()
            .map(|receptacle| {
                let at = game.relation(game.known.receptacle_at)?;
                seconds(at, facts, receptacle).first().copied()
            })
            .collect();
        let is_closed = receptacles
            .map(|receptacle| {
                is(game.known.openable, receptacle) && !is(game.known.opened, receptacle)
            })
            .collect();
        let (location, held) = (engine.location_number(), engine.held_number());
        Self { game, facts, location, held, location_of, is_closed }
    }

    fn chains(&self) -> Chains {
        let mut chains = Chains::new();
        let Some(task) = self.game.task() else { return chains };
        let objects = self.of_type(Kind::Object, &task.object_type);
        match task.family {
            TaskFamily::LookAtObjInLight => {
                let lamps = self.of_type(Kind::Object, &task.target_type);
                self.light_chains(&objects, &lamps, &mut chains);
            }
            TaskFamily::PickTwoObjAndPlace => {
                let targets = self.of_type(Kind::Receptacle, &task.target_type);
                self.pair_chains(&objects, &targets, &mut chains);
            }
            family => {
                let targets = self.of_type(Kind::Receptacle, &task.target_type);
                self.place_chains(family, &objects, &targets, &mut chains);
            }
        }
        chains
    }

    fn place_chains(
        &self,
        family: TaskFamily,
        objects: &[u16],
        targets: &[u16],
        chains: &mut Chains,
    ) {
        let (verb, state, devices) = match family {
            TaskFamily::PickCleanThenPlaceInRecep => {
                (Verb::Clean, "isclean", ["sinkbasintype", "sinktype"])
            }
            TaskFamily::PickHeatThenPlaceInRecep => {
                (Verb::Heat, "ishot", ["microwavetype", "microwavetype"])
            }
            TaskFamily::PickCoolThenPlaceInRecep => {
                (Verb::Cool, "iscool", ["fridgetype", "fridgetype"])
            }
            _ => (Verb::Use, "", ["", ""]),
        };
        let mut treated_in: Vec<u16> = Vec::new();
        for device in devices {
            treated_in.extend(self.of_type(Kind::Receptacle, device));
        }
        treated_in.dedup();
        for &object in objects {
            for source in self.sources(object) {
                let taken = self.taken(object, source);
                if state.is_empty() || self.is(state, object) {
                    // It may lie in a target elsewhere at the same time; so no receptacle is fine.
                    for &target in targets {
                        self.add(chains, &taken, &[(Verb::Put, object, target)]);
                    }
                    continue;
                }
                for &device in &treated_in {
                    let in_another = self
                        .containers(object)
                        .iter()
                        .any(|place| Some(*place) != source && targets.contains(place));
                    if in_another {
                        self.add(chains, &taken, &[(verb, object, device)]);
                    }
                    for &target in targets {
                        let rest = [(verb, object, device), (Verb::Put, object, target)];
                        self.add(chains, &taken, &rest);
                    }
                }
            }
        }
    }

    fn light_chains(&self, objects: &[u16], lamps: &[u16], chains: &mut Chains) {
        for &object in objects {
            for source in self.sources(object) {
                let taken = self.taken(object, source);
                for &lamp in lamps {
                    for place in self.containers(lamp) {
                        self.add(chains, &taken, &[(Verb::Use, lamp, place)]);
                    }
                }
            }
        }
    }

    fn pair_chains(&self, objects: &[u16], targets: &[u16], chains: &mut Chains) {
        for &target in targets {
            for &first in objects {
                // An object that is there already needs no chore.
                let first_is_there = self.containers(first).contains(&target);
                for first_source in self.sources(first) {
                    if first_is_there && first_source.is_none() {
                        continue;
                    }
                    for &second in objects.iter().filter(|&&second| second != first) {
                        let second_is_there = self.containers(second).contains(&target);
                        if second_is_there {
                            let taken = self.taken(first, first_source);
                            self.add(chains, &taken, &[(Verb::Put, first, target)]);
                            continue;
                        }
                        if first_is_there || self.held == Some(second) {
                            continue;
                        }
                        for second_source in self.containers(second) {
                            let taken = self.taken(first, first_source);
                            let rest = [
                                (Verb::Put, first, target),
                                (Verb::Take, second, second_source),
                                (Verb::Put, second, target),
                            ];
                            self.add(chains, &taken, &rest);
                        }
                    }
                }
            }
        }
    }

    /// Adds a chain with its cost; one that puts something where it cannot go is left out.
    fn add(&self, chains: &mut Chains, taken: &[Chore], rest: &[(Verb, u16, u16)]) {
        let mut chain = taken.to_vec();
        for &(verb, object, receptacle) in rest {
            if verb == Verb::Put && !self.fits(object, receptacle) {
                return;
            }
            chain.push(Chore { verb, object, receptacle });
        }
        chains.push((self.cost(&chain), chain));
    }

    /// Number of commands: ways, doors and the chores themselves.
    fn cost(&self, chain: &[Chore]) -> usize {
        let mut location = self.location;
        let mut opened: Vec<u16> = Vec::new();
        let mut cost = chain.len();
        for chore in chain {
            let place = self.location_of[usize::from(chore.receptacle)];
            if place != location {
                cost += 1;
                location = place;
            }
            if chore.verb.needs_open()
                && self.is_closed[usize::from(chore.receptacle)]
                && !opened.contains(&chore.receptacle)
            {
                cost += 1;
                opened.push(chore.receptacle);
            }
        }
        cost
    }

    /// Where an object can be taken from; `None` is the hand.
    fn sources(&self, object: u16) -> Vec<Option<u16>> {
        if self.held == Some(object) {
            return vec![None];
        }
        self.containers(object).into_iter().map(Some).collect()
    }

    /// The chores until the object is in the hand.
    fn taken(&self, object: u16, source: Option<u16>) -> Vec<Chore> {
        let Some(source) = source else { return Vec::new() };
        let take = Chore { verb: Verb::Take, object, receptacle: source };
        let Some(held) = self.held else { return vec![take] };
        // The hand has to be empty: put the thing where that costs least.
        let receptacles = 0..self.location_of.len() as u16;
        receptacles
            .filter(|&receptacle| self.fits(held, receptacle))
            .map(|receptacle| vec![Chore { verb: Verb::Put, object: held, receptacle }, take])
            .min_by_key(|chain| self.cost(chain))
            .unwrap_or_else(|| vec![take])
    }

    fn containers(&self, object: u16) -> Vec<u16> {
        let contains = self.game.relation(self.game.known.contains);
        contains.map_or_else(Vec::new, |contains| seconds(contains, self.facts, object))
    }

    fn fits(&self, object: u16, receptacle: u16) -> bool {
        let known = &self.game.known;
        let (Some(object_type), Some(receptacle_type), Some(can_contain)) = (
            self.game.relation(known.object_type),
            self.game.relation(known.receptacle_type),
            self.game.relation(known.can_contain),
        ) else {
            return false;
        };
        let object_types = seconds(object_type, self.facts, object);
        seconds(receptacle_type, self.facts, receptacle).iter().any(|&receptacle_type| {
            object_types
                .iter()
                .any(|&object_type| can_contain.holds(self.facts, receptacle_type, object_type))
        })
    }

    fn is(&self, predicate: &str, object: u16) -> bool {
        self.game.relations.iter().any(|relation| {
            &*relation.signature.predicate == predicate
                && relation.signature.kinds == (Kind::Object, None)
                && relation.signature.layer == super::relations::Layer::Truth
                && relation.holds(self.facts, object, 0)
        })
    }

    fn of_type(&self, kind: Kind, type_id: &str) -> Vec<u16> {
        let things: Vec<_> = match kind {
            Kind::Receptacle => self.game.receptacles().map(|thing| thing.kind).collect(),
            _ => self.game.objects().map(|thing| thing.kind).collect(),
        };
        let numbered = things.iter().zip(0..);
        numbered.filter(|(found, _)| **found == type_id).map(|(_, number)| number).collect()
    }
}

fn seconds(relation: &Relation, facts: Facts<'_>, first: u16) -> Vec<u16> {
    let mut found = Vec::new();
    relation.seconds(facts, first, &mut |second| {
        found.push(second);
        false
    });
    found
}

/// Plays a chain on a fork; the commands up to the goal, if it is reached.
fn play(engine: &Engine, chain: &[Chore]) -> Option<Vec<String>> {
    let mut fork = engine.clone();
    let mut plan = Vec::new();
    for chore in chain {
        let (object, receptacle) = (chore.object, chore.receptacle);
        let direct = find_offer(&fork, chore.verb.action(), Some(object), receptacle);
        if direct.is_none() {
            // Not possible yet: go there and open it, whichever of the two is possible.
            for preparation in ["gotolocation", "openobject"] {
                let is_opening = preparation == "openobject";
                if is_opening && !chore.verb.needs_open() {
                    continue;
                }
                if let Some(offer) = find_offer(&fork, preparation, None, receptacle) {
                    do_offer(&mut fork, &offer, &mut plan);
                    if fork.won() {
                        return Some(plan);
                    }
                }
            }
        }
        let offer =
            direct.or_else(|| find_offer(&fork, chore.verb.action(), Some(object), receptacle));
        match offer {
            Some(offer) => do_offer(&mut fork, &offer, &mut plan),
            None => return None,
        }
        if fork.won() {
            return Some(plan);
        }
    }
    None
}

fn do_offer(engine: &mut Engine, offer: &Offer, plan: &mut Vec<String>) {
    plan.push(engine.offers().command(offer).to_owned());
    engine.advance(offer);
}

fn find_offer(
    engine: &Engine,
    action: &str,
    object: Option<u16>,
    receptacle: u16,
) -> Option<Offer> {
    let actions = &engine.game().program.actions;
    let matches = |offer: &&Offer| {
        let found = &actions[usize::from(offer.action)];
        if &*found.name != action {
            return false;
        }
        let value_of = |kind| {
            let parameter = found.parameters.iter().position(|known| *known == kind)?;
            Some(offer.values[parameter])
        };
        value_of(Kind::Receptacle) == Some(receptacle) && value_of(Kind::Object) == object
    };
    engine.offers().list().iter().find(matches).copied()
}

/// Looks for the nearest state in which the goal holds.
fn breadth_first(engine: &Engine, max_states: usize) -> Option<Vec<String>> {
    let mut seen: FxHashSet<u128> = FxHashSet::default();
    seen.insert(engine.full_state_key());
    // The engine, the place of the state it came from, and the command that led here.
    let mut states: Vec<(usize, String)> = vec![(0, String::new())];
    let mut open = VecDeque::from([(engine.clone(), 0)]);
    while let Some((engine, from)) = open.pop_front() {
        for offer in engine.offers().list() {
            let mut next = engine.clone();
            next.advance(offer);
            if !seen.insert(next.full_state_key()) {
                continue;
            }
            let command = engine.offers().command(offer).to_owned();
            states.push((from, command));
            let mut place = states.len() - 1;
            if next.won() {
                let mut plan = Vec::new();
                while place != 0 {
                    plan.push(states[place].1.clone());
                    place = states[place].0;
                }
                plan.reverse();
                return Some(plan);
            }
            if states.len() == max_states {
                return None;
            }
            open.push_back((next, place));
        }
    }
    None
}
