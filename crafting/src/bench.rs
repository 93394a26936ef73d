//! A quest while it is played.

use std::sync::Arc;

use spar_python::repr_str;

use crate::book::{Amount, Book, Item, PREFIX, Recipe, shown};
use crate::quest::Quest;

/// The greatest amount that is understood.
const MOST: u64 = 1_000_000;
/// Characters of an action that are read, and repeated.
const MOST_CHARS: usize = 2_000;
/// Inputs of a command that are read.
const MOST_INPUTS: usize = 64;

/// A quest while it is played. A clone is a fork.
#[derive(Debug, Clone)]
pub struct Bench {
    quest: Arc<Quest>,
    /// What there is, in the order in which it came.
    inventory: Vec<(Arc<str>, u64)>,
    is_done: bool,
}

impl Bench {
    /// An empty bench.
    pub fn new(quest: Arc<Quest>) -> Self {
        Self { quest, inventory: Vec::new(), is_done: false }
    }

    /// The quest.
    pub fn quest(&self) -> &Quest {
        &self.quest
    }

    /// Whether the goal was crafted.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    fn book(&self) -> &Book {
        &self.quest.book
    }

    fn count(&self, id: &str) -> u64 {
        self.inventory.iter().find(|(known, _)| **known == *id).map_or(0, |(_, count)| *count)
    }

    fn add(&mut self, id: &str, count: u64) {
        match self.inventory.iter_mut().find(|(known, _)| **known == *id) {
            Some((_, known)) => *known = known.saturating_add(count),
            None => self.inventory.push((id.into(), count)),
        }
    }

    fn remove(&mut self, id: &str, count: u64) {
        if let Some(place) = self.inventory.iter().position(|(known, _)| **known == *id) {
            let left = self.inventory[place].1.saturating_sub(count);
            self.inventory[place].1 = left;
            if left == 0 {
                self.inventory.remove(place);
            }
        }
    }

    /// Carries out an action: `get 2 bark`, `craft 1 rod using 2 bark`, `inventory`. What is told is TextCraft's, and whether it could be carried out.
    ///
    /// Amounts above 1,000,000, more than 64 inputs and what stands behind 2,000 characters are not understood. Things that are named twice have to be there
    /// in their sum; the original takes them from what is not there.
    pub fn act(&mut self, action: &str) -> (String, bool) {
        let end = action.char_indices().nth(MOST_CHARS).map_or(action.len(), |(place, _)| place);
        let action = &action[..end];
        match self.try_to_act(action) {
            Ok(told) => (told, true),
            Err(told) => (told, false),
        }
    }

    fn try_to_act(&mut self, action: &str) -> Result<String, String> {
        let line = action.split('\n').next().unwrap_or_default();
        let not = || format!("Could not execute {action}");
        if let Some((output, inputs)) =
            line.strip_prefix("craft ").and_then(|rest| rest.rsplit_once(" using "))
        {
            return self.craft(output, inputs);
        }
        if let Some(rest) = line.strip_prefix("get ") {
            let (count, name) = counted(rest).ok_or_else(not)?;
            let item = self.item(name);
            let id = item.id.filter(|id| self.book().is_there(id));
            let Some(id) = id else { return Err(format!("Could not find {name}")) };
            self.add(&id, count);
            return Ok(format!("Got {count} {name}"));
        }
        if line.starts_with("inventory") {
            return Ok(self.inventory_words());
        }
        Err(not())
    }

    fn inventory_words(&self) -> String {
        let mut text = "Inventory: ".to_owned();
        if self.inventory.is_empty() {
            text.push_str("You are not carrying anything.");
        }
        for (id, count) in &self.inventory {
            text.push_str(&format!("[{}] ({count}) ", shown(id)));
        }
        text
    }

    fn item(&self, name: &str) -> Item {
        let name = format!("{PREFIX}{}", name.replace(' ', "_"));
        match self.book().is_tag(&name) {
            true => Item { tag: Some(name), id: None },
            false => Item::of_id(&name),
        }
    }

    fn craft(&mut self, output: &str, inputs: &str) -> Result<String, String> {
        let (count, name) = counted(output).unwrap_or((1, output));
        let output = self.item(name);
        let mut given = Vec::new();
        for (place, text) in inputs.split(',').enumerate() {
            let text = text.trim();
            let amount = counted(text).filter(|_| place < MOST_INPUTS);
            let (count, name) = amount.ok_or_else(|| format!("Wrong item format: {text}"))?;
            given.push(Amount { item: self.item(name), count });
        }
        let needed = |id: &str| -> u64 {
            let same = given.iter().filter(|amount| amount.item.id.as_deref() == Some(id));
            same.map(|amount| amount.count).sum()
        };
        let is_there = |amount: &Amount| {
            amount.item.id.as_ref().is_some_and(|id| {
                let is_known = self.inventory.iter().any(|(known, _)| **known == **id);
                is_known && self.count(id) >= needed(id)
            })
        };
        if !given.iter().all(is_there) {
            let id = output.id.as_deref().unwrap_or("None");
            return Err(format!("Could not find enough items to craft {id}"));
        }
        let recipes = output.id.as_deref().map_or(&[][..], |id| self.book().recipes(id));
        let Some(recipe) = recipes.iter().find(|recipe| self.matches(recipe, &given)) else {
            let text =
                |text: &Option<String>| text.as_ref().map_or("None".to_owned(), |it| repr_str(it));
            let (tag, id) = (text(&output.tag), text(&output.id));
            return Err(format!(
                "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag={tag}, item_id={id}), count={count})"
            ));
        };
        let made = recipe.output.clone();
        for amount in &given {
            self.remove(amount.item.name(), amount.count);
        }
        self.add(made.item.name(), made.count);
        self.is_done |= made.item.name() == self.quest.goal;
        Ok(format!("Crafted {} {}", made.count, made.item.name()))
    }

    /// Whether what is given is what a recipe asks for, no more and no less.
    fn matches(&self, recipe: &Recipe, given: &[Amount]) -> bool {
        let mut left: Vec<&Amount> = given.iter().collect();
        for wanted in &recipe.inputs {
            let fits = |it: &&Amount| self.book().fits(&it.item, &wanted.item);
            let Some(place) = left.iter().position(fits) else { return false };
            if left.remove(place).count != wanted.count {
                return false;
            }
        }
        left.is_empty()
    }

    /// The item that is taken where any of a tag will do: what there is enough of, or else the one that takes the fewest crafts.
    fn choice(&self, wanted: &Amount) -> Option<String> {
        if let Some(id) = &wanted.item.id {
            return Some(id.clone());
        }
        let tagged: Vec<&str> = self.book().tagged(wanted.item.tag.as_deref()?).collect();
        let enough = tagged.iter().find(|id| self.count(id) >= wanted.count);
        let id = enough.or_else(|| tagged.iter().min_by_key(|id| self.book().depth(id)))?;
        Some((*id).to_owned())
    }

    /// A recipe as a command with items for tags.
    fn command(&self, recipe: &Recipe) -> Option<String> {
        let amount = |input: &Amount| {
            Some(Amount { item: Item::of_id(&self.choice(input)?), count: input.count })
        };
        let inputs: Option<Vec<Amount>> = recipe.inputs.iter().map(amount).collect();
        let output =
            Amount { item: Item::of_id(recipe.output.item.name()), count: recipe.output.count };
        Some(Recipe { inputs: inputs?, output }.command())
    }

    /// The next action of a solution; nothing where the quest is done.
    pub fn next_of_solution(&self) -> Option<String> {
        if self.is_done {
            return None;
        }
        self.towards(&self.quest.goal, 1, 64)
    }

    /// What brings `count` of an item nearer: it is fetched, or crafted once all is there, the deepest first.
    fn towards(&self, id: &str, count: u64, deep: usize) -> Option<String> {
        let deep = deep.checked_sub(1)?;
        let book = self.book();
        let deepness = |recipe: &&Recipe| {
            recipe.inputs.iter().map(|input| book.depth(input.item.name())).max().unwrap_or(0)
        };
        let Some(recipe) = book.recipes(id).iter().min_by_key(deepness) else {
            return Some(format!("get {} {}", count.saturating_sub(self.count(id)), shown(id)));
        };
        let mut inputs: Vec<(String, u64)> = Vec::new();
        for input in &recipe.inputs {
            let chosen = self.choice(input)?;
            match inputs.iter_mut().find(|(known, _)| *known == chosen) {
                Some((_, known)) => *known += input.count,
                None => inputs.push((chosen, input.count)),
            }
        }
        inputs.sort_by_key(|(input, _)| std::cmp::Reverse(book.depth(input)));
        for (input, count) in &inputs {
            if self.count(input) < *count {
                return self.towards(input, *count, deep);
            }
        }
        self.command(recipe)
    }

    /// Actions that can be carried out: looking, fetching what a shown recipe asks for, and crafting for which all is there.
    pub fn listed(&self) -> Vec<String> {
        if self.is_done {
            return Vec::new();
        }
        let mut listed = vec!["inventory".to_owned()];
        for recipe in &self.quest.shown {
            let mut is_ready = true;
            for input in &recipe.inputs {
                let Some(id) = self.choice(input) else {
                    is_ready = false;
                    continue;
                };
                is_ready &= self.count(&id) >= input.count;
                if self.book().is_there(&id) {
                    listed.push(format!("get {} {}", input.count, shown(&id)));
                }
            }
            if is_ready
                && let Some(command) = self.command(recipe)
                && self.clone().act(&command).1
            {
                listed.push(command);
            }
        }
        listed.sort_unstable();
        listed.dedup();
        listed
    }

    /// The situation's name: what there is, in the order of names.
    pub fn key(&self) -> String {
        let mut known: Vec<_> = self.inventory.iter().collect();
        known.sort_unstable();
        let known: Vec<_> =
            known.iter().map(|(id, count)| format!("{count} {}", shown(id))).collect();
        format!("{}{}", known.join(", "), if self.is_done { " done" } else { "" })
    }
}

/// A number, a blank and a name, as `([0-9]+) (.*)` finds them.
fn counted(text: &str) -> Option<(u64, &str)> {
    let (number, name) = text.split_once(' ')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count = number.parse().ok().filter(|count| is_number && *count <= MOST)?;
    Some((count, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::Seed;

    use super::*;

    fn bench(quest: Quest) -> Bench {
        Bench::new(quest.into())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn every_generated_goal_can_be_crafted(seed: u64, depth in 1..=4_usize, distractors in 0..12_usize) {
            let quest = Quest::generated(Seed::from_u64(seed), depth, distractors);
            prop_assert_eq!(quest.book.depth(&quest.goal), depth, "{}", quest.words());
            let mut bench = bench(quest);
            for _ in 0..30 {
                let Some(action) = bench.next_of_solution() else { break };
                let (told, valid) = bench.act(&action);
                prop_assert!(valid, "{action}: {told}");
                for listed in bench.listed() {
                    prop_assert!(bench.clone().act(&listed).1, "{}", listed);
                }
            }
            prop_assert!(bench.is_done());
        }
    }

    #[test]
    fn every_written_goal_can_be_crafted() {
        let book = Quest::written_book();
        let depths: Vec<usize> = book.goals().iter().map(|(_, depth)| *depth).collect();
        assert!(depths.len() > 55 && (1..=4).all(|depth| depths.contains(&depth)), "{depths:?}");
        for depth in 1..=4 {
            for seed in 0..25 {
                let quest =
                    Quest::of_book(Arc::clone(&book), Seed::from_u64(seed), depth, 6).unwrap();
                let mut bench = bench(quest);
                let mut num_actions = 0;
                while let Some(action) = bench.next_of_solution() {
                    let (told, valid) = bench.act(&action);
                    num_actions += 1;
                    assert!(valid && num_actions < 40, "{action}: {told}");
                }
            }
        }
    }

    #[test]
    fn texts_are_those_of_textcraft() {
        let book = Quest::written_book();
        let shown: Vec<Recipe> = ["peg", "stool"]
            .iter()
            .flat_map(|name| book.recipes(&format!("{PREFIX}{name}")).to_vec())
            .collect();
        let quest = Quest { book, shown, goal: format!("{PREFIX}stool") };
        assert_eq!(
            quest.words(),
            "Crafting commands:\ncraft 4 peg using 1 board\ncraft 1 stool using 2 board, 3 peg\n\nGoal: craft stool."
        );
        let mut bench = bench(quest);
        for (said, told) in [
            ("inventory", "Inventory: You are not carrying anything."),
            ("get 2 oak trunk", "Got 2 oak trunk"),
            ("get 1 oak board", "Could not find oak board"),
            ("get 1 board", "Could not find board"),
            ("get 1 moon", "Could not find moon"),
            ("get oak trunk", "Could not execute get oak trunk"),
            ("inventory", "Inventory: [oak trunk] (2) "),
            ("craft 3 oak board using 1 oak trunk", "Crafted 3 minecraft:oak_board"),
            (
                "craft 3 oak board using 1 pine trunk",
                "Could not find enough items to craft minecraft:oak_board",
            ),
            (
                "craft 3 peg using 2 oak board",
                "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, item_id='minecraft:peg'), count=3)",
            ),
            ("craft 4 peg using 1 board", "Could not find enough items to craft minecraft:peg"),
            ("craft peg using oak board", "Wrong item format: oak board"),
            ("craft 9 peg using 1 oak board", "Crafted 4 minecraft:peg"),
            (
                "craft 1 stool using 1 oak board, 1 oak board, 3 peg",
                "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag(tag=None, item_id='minecraft:stool'), count=1)",
            ),
            ("craft 1 stool using 2 oak board, 3 peg", "Crafted 1 minecraft:stool"),
            ("inventory now", "Inventory: [oak trunk] (1) [peg] (1) [stool] (1) "),
        ] {
            assert_eq!(bench.act(said).0, told, "{said}");
        }
        assert!(bench.is_done());
    }

    #[test]
    fn nothing_is_taken_from_what_is_not_there() {
        let mut bench = bench(Quest::generated(Seed::from_u64(3), 2, 4));
        let giant = format!("get 1 {}", "bark ".repeat(2_000_000));
        for said in [
            "",
            "get",
            "get ",
            "get 1",
            "get 99999999999999999999 bark",
            "get 2000000 bark",
            "get -1 bark",
            "craft",
            "craft  using ",
            "\u{0}",
            &giant,
            "craft 1 a using 1 a,1 a,1 a",
        ] {
            let (told, valid) = bench.act(said);
            assert!(!valid && told.len() < 10_000, "{told:.80}");
        }
        let many = format!("craft 1 a using {}", "1 a,".repeat(1_000_000));
        assert!(!bench.act(&many).1);
        assert!(bench.inventory.is_empty());
    }

    #[test]
    fn folders_in_minecrafts_form_load() {
        let folder = std::env::temp_dir().join(format!("spar-crafting-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write(
            "a.json",
            r##"{"type": "minecraft:crafting_shaped", "group": "board", "pattern": ["#"], "key": {"#": {"item": "minecraft:elm_trunk"}}, "result": {"item": "minecraft:elm_board", "count": 3}}"##,
        );
        write(
            "b.json",
            r##"{"type": "minecraft:crafting_shaped", "pattern": ["# #", "#X#"], "key": {"#": {"tag": "minecraft:board"}, "X": [{"item": "minecraft:nail"}, {"item": "minecraft:peg"}]}, "result": "minecraft:chair"}"##,
        );
        write(
            "c.json",
            r##"{"type": "crafting_shapeless", "ingredients": ["minecraft:clay", "minecraft:clay", "#minecraft:sand"], "result": {"id": "minecraft:tile", "count": 2}}"##,
        );
        write(
            "d.json",
            r#"{"type": "minecraft:smelting", "ingredient": {}, "result": "minecraft:glass"}"#,
        );
        write(
            "e.json",
            r#"{"type": "minecraft:crafting_shapeless", "ingredients": [{"item": "minecraft:tin_block"}], "result": {"item": "minecraft:tin", "count": 9}}"#,
        );
        write(
            "f.json",
            r#"{"type": "minecraft:crafting_shapeless", "ingredients": [{"item": "minecraft:elm_board"}], "result": "minecraft:elm_trunk"}"#,
        );
        let book = Arc::new(Book::load(&folder).unwrap());
        let goals = book.goals();
        assert_eq!(
            goals,
            [("minecraft:elm_board", 1), ("minecraft:tile", 1), ("minecraft:chair", 2)]
        );
        let quest = Quest::of_book(Arc::clone(&book), Seed::from_u64(0), 2, 0).unwrap();
        assert!(quest.words().contains("craft 1 chair using 4 board, 1 nail"), "{}", quest.words());
        assert!(quest.words().ends_with("Goal: craft chair."));
        assert!(Quest::of_book(Arc::clone(&book), Seed::from_u64(0), 4, 0).is_none());
        let mut bench = bench(quest);
        while let Some(action) = bench.next_of_solution() {
            assert!(bench.act(&action).1, "{action}");
        }
        assert!(bench.is_done());
        for (text, expected) in [
            ("{", "no JSON"),
            ("{}", "`type` is missing"),
            (r#"{"type": "crafting_shaped"}"#, "`pattern`"),
        ] {
            write("g.json", text);
            assert!(Book::load(&folder).unwrap_err().to_string().contains(expected));
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Book::load(&folder).is_err());
    }
}
