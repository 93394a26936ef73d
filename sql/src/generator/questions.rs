//! Questions on drawn tables, each with the query that answers it.

use rand::{Rng, RngExt};

use super::Level;
use super::tables::{DrawnTable, quoted};

/// A form of question.
pub(super) struct Form {
    pub(super) name: &'static str,
    /// Draws a question and its query; `None` where the tables do not lend themselves to it.
    pub(super) draw: Draw,
}

type Draw = fn(&DrawnTable, &DrawnTable, &mut dyn Rng) -> Option<(String, String)>;

/// The forms of a level.
pub(super) fn forms(level: Level) -> &'static [Form] {
    match level {
        Level::Easy => EASY,
        Level::Medium => MEDIUM,
        Level::Hard | Level::Mixed => HARD,
    }
}

const EASY: &[Form] = &[
    Form { name: "count", draw: |parent, child, rng| count(either(parent, child, rng)) },
    Form { name: "lookup", draw: |parent, child, rng| lookup(either(parent, child, rng), rng) },
    Form { name: "filter", draw: |_, child, rng| filter(child, rng) },
    Form { name: "filter-count", draw: |_, child, rng| filter_count(child, rng) },
];

const MEDIUM: &[Form] = &[
    Form { name: "aggregate", draw: |_, child, rng| aggregate(child, rng) },
    Form { name: "extreme", draw: |parent, child, rng| extreme(either(parent, child, rng), rng) },
    Form { name: "top", draw: |_, child, rng| top(child, rng) },
    Form { name: "group-count", draw: |_, child, rng| group_count(child, rng) },
    Form { name: "two-conditions", draw: |_, child, rng| two_conditions(child, rng) },
];

const HARD: &[Form] = &[
    Form { name: "join-filter", draw: join_filter },
    Form { name: "join-count", draw: |parent, child, _| join_count(parent, child) },
    Form { name: "having", draw: having },
    Form { name: "above-average", draw: |_, child, rng| above_average(child, rng) },
    Form { name: "lacking", draw: |parent, child, _| lacking(parent, child) },
    Form { name: "join-aggregate", draw: join_aggregate },
];

fn either<'a>(parent: &'a DrawnTable, child: &'a DrawnTable, rng: &mut dyn Rng) -> &'a DrawnTable {
    if rng.random_range(0..3) == 0 { parent } else { child }
}

fn drawn<'a, T>(all: &'a [T], rng: &mut dyn Rng) -> &'a T {
    &all[rng.random_range(0..all.len())]
}

/// A column of groups with one of its values, which some rows have and some do not.
fn drawn_group(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(&'static str, &'static str)> {
    let (column, values) = drawn(&table.groups, rng);
    let value = *drawn(values, rng);
    let count = values.iter().filter(|it| **it == value).count();
    (count < values.len()).then_some((column, value))
}

/// A column of numbers with a bound that no row has, above which some rows are and some are not.
fn drawn_bound(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(&'static str, i64)> {
    let (column, values) = drawn(&table.numbers, rng);
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let place = rng.random_range(1..sorted.len());
    let bound = sorted[place - 1] + (sorted[place] - sorted[place - 1]) / 2;
    (bound > sorted[place - 1]).then_some((column, bound))
}

fn count(table: &DrawnTable) -> Option<(String, String)> {
    let name = table.name;
    Some((format!("How many {name} are there?"), format!("SELECT COUNT(*) FROM {name}")))
}

fn lookup(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let (label, labels) = &table.label;
    let place = rng.random_range(0..table.groups.len() + table.numbers.len());
    let column = match table.groups.get(place) {
        Some((column, _)) => column,
        None => table.numbers[place - table.groups.len()].0,
    };
    let wanted = drawn(labels, rng);
    Some((
        format!("What is the {column} of the {} whose {label} is {}?", table.one, quoted(wanted)),
        format!("SELECT {column} FROM {} WHERE {label} = {}", table.name, quoted(wanted)),
    ))
}

fn filter(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = table.label.0;
    let (column, value) = drawn_group(table, rng)?;
    Some((
        format!("List the {label} of every {} whose {column} is {}.", table.one, quoted(value)),
        format!("SELECT {label} FROM {} WHERE {column} = {}", table.name, quoted(value)),
    ))
}

fn filter_count(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let (column, bound) = drawn_bound(table, rng)?;
    let (words, sign) = *drawn(&[("greater", ">"), ("less", "<")], rng);
    let name = table.name;
    Some((
        format!("How many {name} have a {column} {words} than {bound}?"),
        format!("SELECT COUNT(*) FROM {name} WHERE {column} {sign} {bound}"),
    ))
}

const AGGREGATES: [(&str, &str); 4] =
    [("average", "AVG"), ("total", "SUM"), ("highest", "MAX"), ("lowest", "MIN")];

fn aggregate(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let (number, _) = drawn(&table.numbers, rng);
    let (column, value) = drawn_group(table, rng)?;
    let (words, function) = *drawn(&AGGREGATES, rng);
    let name = table.name;
    Some((
        format!("What is the {words} {number} of the {name} whose {column} is {}?", quoted(value)),
        format!("SELECT {function}({number}) FROM {name} WHERE {column} = {}", quoted(value)),
    ))
}

const ENDS: [(&str, &str); 2] = [("highest", "DESC"), ("lowest", "ASC")];

fn extreme(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = table.label.0;
    let (number, _) = drawn(&table.numbers, rng);
    let (words, order) = *drawn(&ENDS, rng);
    Some((
        format!("What is the {label} of the {} with the {words} {number}?", table.one),
        format!("SELECT {label} FROM {} ORDER BY {number} {order} LIMIT 1", table.name),
    ))
}

fn top(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = table.label.0;
    let (number, _) = drawn(&table.numbers, rng);
    let (words, order) = *drawn(&ENDS, rng);
    let many = rng.random_range(2..=5);
    Some((
        format!(
            "List the {label} of the {many} {} with the {words} {number}, beginning with the {words}.",
            table.name
        ),
        format!("SELECT {label} FROM {} ORDER BY {number} {order} LIMIT {many}", table.name),
    ))
}

fn group_count(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let (column, _) = drawn(&table.groups, rng);
    let name = table.name;
    Some((
        format!("How many {name} are there of each {column}? Give the {column} and the number."),
        format!("SELECT {column}, COUNT(*) FROM {name} GROUP BY {column}"),
    ))
}

fn two_conditions(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = table.label.0;
    let (column, value) = drawn_group(table, rng)?;
    let (number, bound) = drawn_bound(table, rng)?;
    let (joined, operator) = *drawn(&[("and", "AND"), ("or", "OR")], rng);
    let (words, sign) = *drawn(&[("greater", ">"), ("less", "<")], rng);
    Some((
        format!(
            "List the {label} of every {} whose {column} is {} {joined} whose {number} is {words} than {bound}.",
            table.one,
            quoted(value)
        ),
        format!(
            "SELECT {label} FROM {} WHERE {column} = {} {operator} {number} {sign} {bound}",
            table.name,
            quoted(value)
        ),
    ))
}

/// How the two tables are joined.
fn joined(parent: &DrawnTable, child: &DrawnTable) -> Option<String> {
    let (key, _) = child.parent.as_ref()?;
    let (parent, child) = (parent.name, child.name);
    Some(format!("{child} JOIN {parent} ON {child}.{key} = {parent}.id"))
}

fn join_filter(
    parent: &DrawnTable,
    child: &DrawnTable,
    rng: &mut dyn Rng,
) -> Option<(String, String)> {
    let (column, value) = drawn_group(parent, rng)?;
    let label = child.label.0;
    Some((
        format!(
            "List the {label} of every {} that belongs to {} {} whose {column} is {}.",
            child.one,
            article(parent.one),
            parent.one,
            quoted(value)
        ),
        format!(
            "SELECT {}.{label} FROM {} WHERE {}.{column} = {}",
            child.name,
            joined(parent, child)?,
            parent.name,
            quoted(value)
        ),
    ))
}

fn join_count(parent: &DrawnTable, child: &DrawnTable) -> Option<(String, String)> {
    let label = parent.label.0;
    Some((
        format!(
            "How many {} does each {} have? Give the {label} of the {} and the number, and leave out every {} that has none.",
            child.name, parent.one, parent.one, parent.one
        ),
        format!(
            "SELECT {}.{label}, COUNT(*) FROM {} GROUP BY {}.id",
            parent.name,
            joined(parent, child)?,
            parent.name
        ),
    ))
}

fn having(parent: &DrawnTable, child: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = parent.label.0;
    let least = rng.random_range(1..=4);
    Some((
        format!(
            "List the {label} of every {} that has more than {least} {}.",
            parent.one,
            if least == 1 { child.one } else { child.name }
        ),
        format!(
            "SELECT {}.{label} FROM {} GROUP BY {}.id HAVING COUNT(*) > {least}",
            parent.name,
            joined(parent, child)?,
            parent.name
        ),
    ))
}

fn above_average(table: &DrawnTable, rng: &mut dyn Rng) -> Option<(String, String)> {
    let label = table.label.0;
    let (number, _) = drawn(&table.numbers, rng);
    let (words, sign) = *drawn(&[("greater", ">"), ("less", "<")], rng);
    let name = table.name;
    Some((
        format!(
            "List the {label} of every {} whose {number} is {words} than the average {number} of all {name}.",
            table.one
        ),
        format!(
            "SELECT {label} FROM {name} WHERE {number} {sign} (SELECT AVG({number}) FROM {name})"
        ),
    ))
}

fn lacking(parent: &DrawnTable, child: &DrawnTable) -> Option<(String, String)> {
    let label = parent.label.0;
    let (key, _) = child.parent.as_ref()?;
    Some((
        format!("List the {label} of every {} that has no {}.", parent.one, child.one),
        format!(
            "SELECT {label} FROM {} WHERE id NOT IN (SELECT {key} FROM {})",
            parent.name, child.name
        ),
    ))
}

fn join_aggregate(
    parent: &DrawnTable,
    child: &DrawnTable,
    rng: &mut dyn Rng,
) -> Option<(String, String)> {
    let (number, _) = drawn(&child.numbers, rng);
    let (words, function) = *drawn(&AGGREGATES, rng);
    let (_, places) = child.parent.as_ref()?;
    let (label, labels) = &parent.label;
    let wanted = &labels[*drawn(places, rng) - 1];
    Some((
        format!(
            "What is the {words} {number} of the {} that belong to the {} whose {label} is {}?",
            child.name,
            parent.one,
            quoted(wanted)
        ),
        format!(
            "SELECT {function}({}.{number}) FROM {} WHERE {}.{label} = {}",
            child.name,
            joined(parent, child)?,
            parent.name,
            quoted(wanted)
        ),
    ))
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::super::{DomainSet, generate, generate_database};
    use super::*;
    use crate::{Cell, QueryLimits, Rule, judge};

    #[test]
    fn every_form_is_drawn_and_its_query_answers_it_alone() {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut domains = HashSet::new();
        let (mut told_numbers, mut guessed) = (0, 0);
        for seed in 0..400 {
            let drawn = generate(seed, Level::Mixed, DomainSet::Seen).unwrap();
            *seen.entry(drawn.form).or_default() += 1;
            domains.insert(drawn.database.domain);
            let again = generate(seed, Level::Mixed, DomainSet::Seen).unwrap();
            assert_eq!((drawn.question, &drawn.gold), (again.question, &again.gold));
            let databases = drawn.database.all();
            let limits = QueryLimits::default();
            let right =
                judge(Rule::default(), &databases, &drawn.gold, &drawn.gold, &limits).unwrap();
            assert!(right.is_match && right.soft_f1 == 1.0, "{}", drawn.gold);
            let table = drawn.database.child.name;
            let dump = format!("SELECT * FROM {table}");
            assert!(
                !judge(Rule::default(), &databases, &dump, &drawn.gold, &limits).unwrap().is_match
            );
            // One number, told as it stands, from a table that is named for show.
            let found = databases[0].query(&drawn.gold, &limits).unwrap();
            if let [row] = &found.rows[..]
                && let [Cell::Integer(number)] = row[..]
            {
                let told = format!("SELECT {number} FROM {table} LIMIT 1");
                let told = judge(Rule::default(), &databases, &told, &drawn.gold, &limits).unwrap();
                told_numbers += 1;
                guessed += usize::from(told.is_match);
            }
        }
        // Small numbers may well be the same everywhere.
        assert!(told_numbers > 50 && guessed * 20 < told_numbers, "{guessed} of {told_numbers}");
        assert_eq!(seen.len(), EASY.len() + MEDIUM.len() + HARD.len(), "{seen:?}");
        assert_eq!(domains.len(), 8);
    }

    #[test]
    fn no_two_rows_tie_where_one_is_asked_for() {
        for number in 0..20 {
            let made = generate_database(number, DomainSet::Unseen).unwrap();
            for table in [&made.parent, &made.child] {
                assert_eq!(table.label.1.iter().collect::<HashSet<_>>().len(), table.num_rows());
                for (column, values) in &table.numbers {
                    let distinct = values.iter().collect::<HashSet<_>>().len();
                    assert_eq!(distinct, values.len(), "{column}");
                }
            }
        }
    }

    #[test]
    fn questions_are_whole_sentences_of_what_the_tables_are_called() {
        let drawn = generate(3, Level::Easy, DomainSet::Seen).unwrap();
        assert!(drawn.question.ends_with(['?', '.']));
        for level in [Level::Easy, Level::Medium, Level::Hard] {
            for seed in 0..60 {
                let drawn = generate(seed, level, DomainSet::Unseen).unwrap();
                assert_eq!(drawn.level, level);
                let named = [drawn.database.parent.one, drawn.database.child.one];
                assert!(named.iter().any(|it| drawn.question.contains(it)), "{}", drawn.question);
            }
        }
    }
}
