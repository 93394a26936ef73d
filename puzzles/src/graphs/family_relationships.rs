//! Families and how their members are related.

use std::collections::HashSet;

use crate::prelude::*;
use crate::python_set::{PythonSet, tuple_hash};

const MALE_NAMES: [&str; 43] = [
    "James",
    "John",
    "Robert",
    "Michael",
    "William",
    "David",
    "Richard",
    "Joseph",
    "Thomas",
    "Charles",
    "Peter",
    "Daniel",
    "Matthew",
    "Christopher",
    "Andrew",
    "George",
    "Edward",
    "Benjamin",
    "Henry",
    "Samuel",
    "Alexander",
    "Oliver",
    "Jack",
    "Harry",
    "Jacob",
    "Noah",
    "Ethan",
    "Lucas",
    "Mason",
    "Logan",
    "Sebastian",
    "Theodore",
    "Owen",
    "Liam",
    "Aiden",
    "Kai",
    "Jayden",
    "Zion",
    "Phoenix",
    "Atlas",
    "Axel",
    "Ryder",
    "Finn",
];
const FEMALE_NAMES: [&str; 43] = [
    "Mary",
    "Patricia",
    "Jennifer",
    "Linda",
    "Elizabeth",
    "Barbara",
    "Susan",
    "Jessica",
    "Sarah",
    "Karen",
    "Emma",
    "Lisa",
    "Anna",
    "Margaret",
    "Victoria",
    "Charlotte",
    "Sophia",
    "Isabella",
    "Olivia",
    "Ava",
    "Mia",
    "Emily",
    "Abigail",
    "Amelia",
    "Eleanor",
    "Grace",
    "Alice",
    "Lucy",
    "Chloe",
    "Sophie",
    "Lily",
    "Hannah",
    "Zoe",
    "Luna",
    "Nova",
    "Aria",
    "Willow",
    "Aurora",
    "Sage",
    "River",
    "Winter",
    "Sky",
    "Rain",
];

options! {
    /// Options of `family_relationships`.
    FamilyRelationshipsOptions {
        /// Fewest members, at least 3. Default 4.
        min_family_size: i64 = 4,
        /// Most members, up to 200. Default 8.
        max_family_size: i64 = 8,
        /// Names of men, at least one. Default the package's 43.
        male_names: Vec<String> = texts(&MALE_NAMES),
        /// Names of women, at least one. Default the package's 43.
        female_names: Vec<String> = texts(&FEMALE_NAMES),
    }
    |given, problems| {
        problems.span(("min_family_size", "max_family_size"), (given.min_family_size, given.max_family_size), (3, 200));
        for (name, names) in [("male_names", &given.male_names), ("female_names", &given.female_names)] {
            problems.require(!names.is_empty(), || format!("{name} is empty, must have at least one name"));
        }
    }
}

/// Pairs drawn beyond which a family is taken to have no related members.
const MOST_TRIES: u64 = 900;

/// A family told as a story; how one member is related to another is asked.
pub(crate) struct FamilyRelationships;

struct Person {
    name: String,
    is_female: bool,
    spouse: Option<usize>,
    parents: Vec<usize>,
    children: Vec<usize>,
}

/// People by their numbers, which are their hashes as well.
struct Family {
    people: Vec<Person>,
    /// In the order of the package's set.
    members: PythonSet<usize>,
}

impl Generator for FamilyRelationships {
    type Options = FamilyRelationshipsOptions;

    fn item(options: &FamilyRelationshipsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let size = rng.int(options.min_family_size, options.max_family_size)? as usize;
        let family = Family::draw(options, rng, size)?;
        let members: Vec<usize> = family.members.iter().copied().collect();
        for _ in 0..MOST_TRIES {
            let pair = rng.sample(&members, 2)?;
            if let Some(relationship) = family.relationship(pair[0], pair[1]) {
                let (a, b) = (&family.people[pair[0]].name, &family.people[pair[1]].name);
                let question = match rng.below(3) {
                    0 => format!(
                        "What is {a} to {b}? Respond only with the word that describes their relationship."
                    ),
                    1 => {
                        format!("How is {a} related to {b}? Provide the relationship in one word.")
                    }
                    _ => format!("What relation is {a} to {b}? Answer with a single word."),
                };
                return Ok(Item::new(format!("{}\n\n{question}", family.story()), relationship));
            }
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    fn score(_: &FamilyRelationshipsOptions, answer: Option<&str>, item: &Item) -> f64 {
        f64::from(answer.is_some_and(|answer| lower(strip(answer)) == item.gold()))
    }
}

impl Family {
    fn draw(
        options: &FamilyRelationshipsOptions,
        rng: &mut Random,
        size: usize,
    ) -> Result<Self, ItemError> {
        let mut family = Self { people: Vec::new(), members: PythonSet::new() };
        let couple = |family: &mut Self,
                      rng: &mut Random,
                      first_is_female: bool|
         -> Result<(usize, usize), ItemError> {
            let first = family.draw_person(rng, options, first_is_female)?;
            let second = family.draw_person(rng, options, !first_is_female)?;
            family.marry(first, second);
            Ok((first, second))
        };
        let fathers_parents = couple(&mut family, rng, false)?;
        family.join(&[fathers_parents.0, fathers_parents.1]);
        let mut mothers_parents = None;
        if size > 6 {
            let parents = couple(&mut family, rng, false)?;
            family.join(&[parents.0, parents.1]);
            mothers_parents = Some(parents);
        }
        let mut couples = Vec::new();
        if size > 3 {
            let (father, mother) = couple(&mut family, rng, false)?;
            family.adopt(fathers_parents, father);
            family.join(&[father, mother]);
            couples.push((father, mother));
            if let Some(parents) = mothers_parents {
                family.adopt(parents, mother);
            }
        } else {
            let father = family.draw_person(rng, options, false)?;
            family.adopt(fathers_parents, father);
            family.join(&[father]);
        }
        for (least, first_is_female) in [(8, false), (10, true)] {
            if size > least {
                let (own, married) = couple(&mut family, rng, first_is_female)?;
                family.adopt(fathers_parents, own);
                family.join(&[own, married]);
                couples.push((own, married));
            }
        }
        while family.members.len() < size {
            let is_female = !*rng.choice(&[true, false])?;
            let names = if is_female { &options.female_names } else { &options.male_names };
            if !names.iter().any(|name| family.people.iter().all(|person| person.name != *name)) {
                break;
            }
            let child = family.draw_person(rng, options, is_female)?;
            let parents = *rng.choice(&couples)?;
            family.adopt(parents, child);
            family.join(&[child]);
        }
        Ok(family)
    }

    /// Somebody whose name is drawn from those that nobody has; where none is left, Python writes `None`.
    fn draw_person(
        &mut self,
        rng: &mut Random,
        options: &FamilyRelationshipsOptions,
        is_female: bool,
    ) -> Result<usize, ItemError> {
        let names = if is_female { &options.female_names } else { &options.male_names };
        let free: Vec<&String> = names
            .iter()
            .filter(|name| self.people.iter().all(|person| person.name != **name))
            .collect();
        let name = match free.is_empty() {
            true => "None".to_owned(),
            false => (*rng.choice(&free)?).clone(),
        };
        self.people.push(Person {
            name,
            is_female,
            spouse: None,
            parents: Vec::new(),
            children: Vec::new(),
        });
        Ok(self.people.len() - 1)
    }

    fn join(&mut self, people: &[usize]) {
        people.iter().for_each(|person| self.members.insert(*person as u64, *person));
    }

    fn marry(&mut self, a: usize, b: usize) {
        self.people[a].spouse = Some(b);
        self.people[b].spouse = Some(a);
    }

    fn adopt(&mut self, (a, b): (usize, usize), child: usize) {
        for parent in [a, b] {
            self.people[parent].children.push(child);
            self.people[child].parents.push(parent);
        }
    }

    fn grandparents(&self, person: usize) -> impl Iterator<Item = usize> {
        self.people[person]
            .parents
            .iter()
            .flat_map(|parent| self.people[*parent].parents.iter().copied())
    }

    /// What one is to the other, by the package's rules; absent where these know no word.
    fn relationship(&self, a: usize, b: usize) -> Option<&'static str> {
        let (one, other) = (&self.people[a], &self.people[b]);
        let either =
            |person: &Person, female, male| Some(if person.is_female { female } else { male });
        let same = |a: &[usize], b: &[usize]| {
            a.iter().all(|one| b.contains(one)) && b.iter().all(|one| a.contains(one))
        };
        if other.parents.contains(&a) {
            either(one, "mother", "father")
        } else if one.parents.contains(&b) {
            either(one, "daughter", "son")
        } else if one.spouse == Some(b) {
            either(one, "wife", "husband")
        } else if !one.parents.is_empty()
            && !other.parents.is_empty()
            && same(&one.parents, &other.parents)
        {
            either(one, "sister", "brother")
        } else if self.grandparents(b).any(|person| person == a) {
            either(one, "grandmother", "grandfather")
        } else if one
            .parents
            .iter()
            .any(|parent| self.grandparents(b).any(|person| person == *parent))
        {
            either(one, "aunt", "uncle")
        } else if other
            .parents
            .iter()
            .any(|parent| self.grandparents(a).any(|person| person == *parent))
        {
            // The package asks the other one's gender here, and below.
            either(other, "niece", "nephew")
        } else if one.spouse.is_some_and(|spouse| self.people[spouse].parents.contains(&b)) {
            either(other, "mother-in-law", "father-in-law")
        } else {
            None
        }
    }

    fn story(&self) -> String {
        let mut couples = PythonSet::new();
        for &person in self.members.iter() {
            if let Some(spouse) = self.people[person].spouse {
                let hash = |a: usize, b: usize| tuple_hash(&[a as u64, b as u64]);
                if !couples.contains(hash(spouse, person), &(spouse, person)) {
                    couples.insert(hash(person, spouse), (person, spouse));
                }
            }
        }
        let mut told = HashSet::new();
        let mut story = Vec::new();
        for &(a, b) in couples.iter() {
            let name = |person: usize| self.people[person].name.as_str();
            story.push(format!("{} is married to {}.", name(a), name(b)));
            let children: Vec<&str> = self.people[a]
                .children
                .iter()
                .filter(|child| told.insert(**child))
                .map(|child| name(*child))
                .collect();
            match children.split_last() {
                None => {}
                Some((only, [])) => story.push(format!("They have a child called {only}.")),
                Some((last, first)) => {
                    story.push(format!(
                        "They have children called {} and {last}.",
                        joined(first, ", ")
                    ));
                }
            }
        }
        story.join(" ")
    }
}
