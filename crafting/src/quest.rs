//! What is to be crafted, and with what recipes.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};
use spar_core::Seed;

use crate::bench::Bench;
use crate::book::{Amount, Book, Item, PREFIX, Recipe, shown};
use crate::words::{ADJECTIVES, MADE, SOURCES, WRITTEN};

/// Actions of a solution, at most, of a generated quest.
const MOST_ACTIONS: usize = 30;

/// What is to be crafted: the book, the commands that are shown, and the goal.
#[derive(Debug, Clone)]
pub struct Quest {
    pub(crate) book: Arc<Book>,
    /// The recipes whose commands are shown, in their order.
    pub(crate) shown: Vec<Recipe>,
    pub(crate) goal: String,
}

impl Quest {
    /// A quest whose recipes are drawn: an item `depth` crafts away from what can be fetched, 1 to 4, beside `distractors` recipes that lead elsewhere.
    pub fn generated(seed: Seed, depth: usize, distractors: usize) -> Self {
        for attempt in 0_u64.. {
            let mut rng = seed.derive("crafting", attempt).rng();
            let quest = draw(&mut rng, depth.clamp(1, 4), distractors);
            let mut bench = Bench::new(Arc::new(quest.clone()));
            let mut num_actions = 0;
            while let Some(action) =
                bench.next_of_solution().filter(|_| num_actions <= MOST_ACTIONS)
            {
                bench.act(&action);
                num_actions += 1;
            }
            if bench.is_done() && num_actions <= MOST_ACTIONS {
                return quest;
            }
        }
        unreachable!("seeds do not run out")
    }

    /// The book that was written by hand.
    pub fn written_book() -> Arc<Book> {
        static BOOK: OnceLock<Arc<Book>> = OnceLock::new();
        Arc::clone(
            BOOK.get_or_init(|| Arc::new(Book::of(WRITTEN.iter().map(|line| written(line))))),
        )
    }

    /// A quest of a book: a goal of this depth, all recipes on the way to it and up to `distractors` others that use the same things; absent where the
    /// book has no goal of the depth.
    pub fn of_book(book: Arc<Book>, seed: Seed, depth: usize, distractors: usize) -> Option<Self> {
        let mut rng = seed.derive("crafting", "goal").rng();
        let goals: Vec<&str> =
            book.goals().into_iter().filter(|(_, it)| *it == depth).map(|(id, _)| id).collect();
        let goal = (*goals.choose(&mut rng)?).to_owned();
        let way = book.way(&goal);
        let used: HashSet<&str> =
            way.iter().flat_map(|recipe| &recipe.inputs).map(|input| input.item.name()).collect();
        let mut others: Vec<&Recipe> = book
            .all()
            .filter(|recipe| !way.contains(recipe))
            .filter(|recipe| recipe.inputs.iter().any(|input| used.contains(input.item.name())))
            .collect();
        others.shuffle(&mut rng);
        others.truncate(distractors);
        let mut all: Vec<Recipe> = way.into_iter().chain(others).cloned().collect();
        all.shuffle(&mut rng);
        Some(Self { shown: all, goal, book })
    }

    /// The commands and the goal in words: what is shown first.
    pub fn words(&self) -> String {
        // Equal commands are shown once, as where two letters of a shape stand for the same.
        let mut known = BTreeSet::new();
        let commands: Vec<String> = self
            .shown
            .iter()
            .map(Recipe::command)
            .filter(|command| known.insert(command.clone()))
            .collect();
        format!("Crafting commands:\n{}\n\nGoal: craft {}.", commands.join("\n"), shown(&self.goal))
    }

    /// What is to be crafted, in words.
    pub fn goal(&self) -> String {
        format!("craft {}", shown(&self.goal))
    }
}

/// A line of the written recipes.
fn written(line: &str) -> Recipe {
    let (line, group) =
        line.split_once(" : ").map_or((line, None), |(line, group)| (line, Some(group)));
    let (output, inputs) = line.split_once(" < ").expect("lines have two sides");
    let amount = |text: &str| {
        let (count, name) = text.trim().split_once(' ').expect("amounts have a number and a name");
        let count = count.parse().expect("numbers are numbers");
        let id = |name: &str| format!("{PREFIX}{}", name.replace(' ', "_"));
        let item = match name.strip_prefix('#') {
            Some(tag) => Item { tag: Some(id(tag)), id: None },
            None => Item::of_id(&id(name)),
        };
        Amount { item, count }
    };
    let mut output = amount(output);
    output.item.tag = group.map(|group| format!("{PREFIX}{group}"));
    Recipe { output, inputs: inputs.split(',').map(amount).collect() }
}

/// Draws names that nothing else has.
struct Names<'r, R> {
    rng: &'r mut R,
    taken: HashSet<String>,
}

impl<R: Rng> Names<'_, R> {
    fn draw(&mut self, pool: &[&str], is_made: bool) -> String {
        loop {
            let noun = pool.choose(self.rng).expect("pools have words");
            let adjective = ADJECTIVES.choose(self.rng).expect("there are adjectives");
            let is_plain = !is_made && self.rng.random_bool(0.5);
            let name = if is_plain { (*noun).to_owned() } else { format!("{adjective}_{noun}") };
            let name = format!("{PREFIX}{name}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn draw(rng: &mut impl Rng, depth: usize, distractors: usize) -> Quest {
    let mut names = Names { rng, taken: HashSet::new() };
    let mut recipes = Vec::new();
    // What there is of every depth, so that things are used more than once.
    let mut known: Vec<Vec<String>> = vec![Vec::new(); depth + 1];
    let goal = make(&mut names, depth, &mut recipes, &mut known);
    let mut shown_recipes: Vec<Recipe> = recipes.clone();
    for _ in 0..distractors {
        let output = names.draw(MADE, true);
        let mut inputs = Vec::new();
        for _ in 0..names.rng.random_range(1..=3) {
            let level = names.rng.random_range(0..depth);
            let pool = &known[level];
            let id = match pool.choose(names.rng) {
                Some(id) if names.rng.random_bool(0.8) => id.clone(),
                _ => names.draw(SOURCES, false),
            };
            put(&mut inputs, &id, names.rng.random_range(1..=4));
        }
        shown_recipes
            .push(Recipe { inputs, output: Amount { item: Item::of_id(&output), count: 1 } });
    }
    let book = Book::of(shown_recipes.iter().cloned());
    shown_recipes.shuffle(names.rng);
    Quest { book: Arc::new(book), shown: shown_recipes, goal }
}

/// Adds to inputs, an item once.
fn put(inputs: &mut Vec<Amount>, id: &str, count: u64) {
    match inputs.iter_mut().find(|input| input.item.name() == id) {
        Some(input) => input.count += count,
        None => inputs.push(Amount { item: Item::of_id(id), count }),
    }
}

/// An item of a depth, with all recipes that it takes.
fn make<R: Rng>(
    names: &mut Names<'_, R>,
    depth: usize,
    recipes: &mut Vec<Recipe>,
    known: &mut [Vec<String>],
) -> String {
    if depth == 0 {
        let name = names.draw(SOURCES, false);
        known[0].push(name.clone());
        return name;
    }
    let mut inputs = Vec::new();
    for place in 0..names.rng.random_range(1..=3) {
        // One input is of the depth before, the others of any.
        let level = if place == 0 { depth - 1 } else { names.rng.random_range(0..depth) };
        let id = match known[level].choose(names.rng).cloned() {
            Some(id) if names.rng.random_bool(0.4) => id,
            _ => make(names, level, recipes, known),
        };
        put(&mut inputs, &id, names.rng.random_range(1..=3));
    }
    let name = names.draw(MADE, true);
    let count = if names.rng.random_bool(0.7) { 1 } else { names.rng.random_range(2..=4) };
    recipes.push(Recipe { inputs, output: Amount { item: Item::of_id(&name), count } });
    known[depth].push(name.clone());
    name
}
