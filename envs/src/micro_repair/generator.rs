//! Tasks from seeds.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::Seed;
use spar_sandbox::interpreter::Language;

use super::evaluate::{Fault, evaluate};
use super::families::{Drawn, Family, Input, Level};
use super::mutate::{Bug, mutants};
use super::program::Program;
use super::render;

/// Inputs that a bug is looked for with.
const TRIES: usize = 24;
/// Of them, how many at least have to show it, so that hidden tests do.
const LEAST_FAILING: usize = 3;
/// Tests that are shown, and those that are not.
pub(super) const SHOWN: usize = 3;
const HIDDEN: usize = 9;
/// Programs that are drawn for a task; a few are usually enough.
const MOST_PROGRAMS: usize = 20_000;

/// Where a program may occur: each, right or wrong and whatever its names, is in one part alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    #[default]
    Train,
    Dev,
    Test,
}

/// What a task is drawn from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// What it follows from.
    pub(super) seed: u64,
    /// Which programs; default those of training.
    #[serde(default)]
    pub(super) programs: Part,
    /// Default any, by the seed.
    #[serde(default)]
    pub(super) level: Option<Level>,
    /// Default Python.
    #[serde(default)]
    pub(super) language: Tongue,
}

/// The language of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tongue {
    #[default]
    Python,
    Javascript,
    /// Either, by the seed.
    Mixed,
}

/// A program that is wrong, and what it should do.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    pub(super) language: Language,
    pub(super) level: Level,
    pub(super) family: Family,
    pub(super) bug: Bug,
    /// What is wrong, a paragraph.
    pub(super) issue: String,
    /// The function that tests call.
    pub(super) entry: String,
    /// The program as it is found.
    pub(super) lines: Vec<String>,
    /// The program as it should be.
    pub(super) right: Vec<String>,
    /// Those that are shown first; of these at least one passes and one fails.
    pub(super) tests: Vec<Test>,
    /// What tells the right and the wrong program apart from others, whatever their names.
    #[cfg(test)]
    pub(super) contents: [[u8; 32]; 2],
    /// What the wrong program gives, or the exception that it raises, for each test.
    #[cfg(test)]
    pub(super) gots: Vec<Result<Value, &'static str>>,
}

/// A call, and what it should give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    pub(super) arguments: Vec<Value>,
    pub(super) want: Value,
}

impl Parameters {
    /// Level and language, which follow from the parameters alone.
    pub(super) fn kind(&self) -> (Level, Language) {
        let mut rng = Seed::from_u64(self.seed).derive("micro-repair kind", 0).rng();
        let drawn = Level::ALL[rng.random_range(0..Level::ALL.len())];
        let language = match self.language {
            Tongue::Python => Language::Python,
            Tongue::Javascript => Language::Javascript,
            Tongue::Mixed => Language::ALL[rng.random_range(0..Language::ALL.len())],
        };
        (self.level.unwrap_or(drawn), language)
    }
}

/// The task of parameters; absent where no program was found, which a handful of seeds in a billion may have.
pub(super) fn generate(parameters: &Parameters) -> Option<Problem> {
    let (level, language) = parameters.kind();
    let mut rng = Seed::from_u64(parameters.seed).derive("micro-repair", 0).rng();
    (0..MOST_PROGRAMS).find_map(|_| {
        let families = level.families();
        let family = families[rng.random_range(0..families.len())];
        let drawn = family.draw(&mut rng, language);
        if part_of(&drawn.program) != parameters.programs {
            return None;
        }
        let inputs = inputs(&drawn.inputs, &mut rng);
        let wants: Option<Vec<Value>> =
            inputs.iter().map(|given| evaluate(&drawn.program, language, given).ok()).collect();
        let tests: Vec<Test> = inputs
            .into_iter()
            .zip(wants?)
            .map(|(arguments, want)| Test { arguments, want })
            .collect();
        let of_program = OfProgram { drawn: &drawn, tests, language };
        let (bug, mutant, gots) = of_program.bug(parameters.programs, &mut rng)?;
        let tests = of_program.chosen(&gots, &mut rng);
        let issue = of_program.issue(&tests, &mut rng);
        #[cfg(test)]
        let gots = tests.iter().map(|(_, got)| {
            got.clone().map_err(|fault| match fault {
                Fault::Raises(name) => name,
                Fault::Unfit => "unfit",
            })
        });
        Some(Problem {
            language,
            level,
            family,
            bug,
            issue,
            entry: drawn.program.entry().name.to_owned(),
            lines: render::lines(&mutant, language),
            right: render::lines(&drawn.program, language),
            tests: tests.iter().map(|(test, _)| test.clone()).collect(),
            #[cfg(test)]
            contents: [content(&drawn.program), content(&mutant)],
            #[cfg(test)]
            gots: gots.collect(),
        })
    })
}

/// Different inputs, the smallest first.
fn inputs(kinds: &[Input], rng: &mut dyn Rng) -> Vec<Vec<Value>> {
    let mut found: Vec<Vec<Value>> = Vec::new();
    for number in 0..2 * TRIES {
        let values: Vec<Value> = kinds.iter().map(|kind| kind.draw(rng, number == 0)).collect();
        if found.len() < TRIES && !found.contains(&values) {
            found.push(values);
        }
    }
    found
}

struct OfProgram<'a> {
    drawn: &'a Drawn,
    tests: Vec<Test>,
    language: Language,
}

type Got = Result<Value, Fault>;

impl OfProgram<'_> {
    /// A bug that some tests show and some do not, with what the wrong program gives for each.
    fn bug(&self, part: Part, rng: &mut dyn Rng) -> Option<(Bug, Program, Vec<Got>)> {
        let all = mutants(&self.drawn.program);
        let mut kinds = Bug::ALL;
        kinds.shuffle(rng);
        if rng.random_bool(0.3) {
            // Few programs have room for these.
            let rare = [Bug::Logic, Bug::Removed, Bug::Bound, Bug::Swapped];
            kinds.sort_by_key(|kind| !rare.contains(kind));
        }
        for kind in kinds {
            let mut of_kind: Vec<&Program> =
                all.iter().filter(|(bug, _)| *bug == kind).map(|(_, mutant)| mutant).collect();
            of_kind.shuffle(rng);
            for mutant in of_kind {
                if part_of(mutant) != part {
                    continue;
                }
                let gots = self.tests.iter();
                let gots: Vec<Got> =
                    gots.map(|test| evaluate(mutant, self.language, &test.arguments)).collect();
                let is_fit = !gots.contains(&Err(Fault::Unfit));
                let failing = self.tests.iter().zip(&gots);
                let failing = failing.filter(|(test, got)| Ok(&test.want) != got.as_ref()).count();
                if is_fit && (LEAST_FAILING..self.tests.len()).contains(&failing) {
                    return Some((kind, mutant.clone(), gots));
                }
            }
        }
        None
    }

    /// The tests of the task: shown are one that fails, one that passes, and one more, in any order.
    fn chosen(&self, gots: &[Got], rng: &mut dyn Rng) -> Vec<(Test, Got)> {
        let mut left: Vec<(Test, Got)> =
            self.tests.iter().cloned().zip(gots.iter().cloned()).collect();
        left.shuffle(rng);
        let mut take = |is_wanted: fn(&(Test, Got)) -> bool| {
            let place = left.iter().position(is_wanted);
            place.map(|place| left.remove(place))
        };
        let passes = |(test, got): &(Test, Got)| Ok(&test.want) == got.as_ref();
        let fails = |(test, got): &(Test, Got)| Ok(&test.want) != got.as_ref();
        let mut chosen: Vec<(Test, Got)> =
            [take(fails), take(passes), take(|_| true)].into_iter().flatten().collect();
        chosen.shuffle(rng);
        // A hidden one fails too, whatever the others do.
        chosen.extend(take(fails));
        chosen.extend(left.into_iter().take(HIDDEN - 1));
        chosen
    }

    fn issue(&self, tests: &[(Test, Got)], rng: &mut dyn Rng) -> String {
        let failing = tests.iter().take(SHOWN).find(|(test, got)| Ok(&test.want) != got.as_ref());
        let (test, got) = failing.expect("one that fails is shown");
        let name = self.drawn.program.entry().name;
        let call = render::call(name, &test.arguments, self.language);
        let want = render::literal(&test.want, self.language);
        let gives = match got {
            Ok(value) => format!("gives {}", render::literal(value, self.language)),
            Err(Fault::Raises(error)) => format!("raises {error}"),
            Err(Fault::Unfit) => unreachable!("no task is made of it"),
        };
        let about = &self.drawn.about;
        match rng.random_range(0..3) {
            0 => format!("{about} But {call} {gives} and not {want}."),
            1 => format!("{about} Now {call} {gives}, and should give {want}."),
            _ => format!("{call} {gives}, expected {want}. {about}"),
        }
    }
}

/// A hash of what a program is: its text in Python with the names of functions and variables replaced by numbers.
fn content(program: &Program) -> [u8; 32] {
    const WORDS: [&str; 19] = [
        "def", "return", "if", "else", "for", "in", "while", "range", "len", "min", "max", "abs",
        "and", "or", "not", "append", "get", "break", "continue",
    ];
    let text = render::lines(program, Language::Python).join("\n");
    let mut names: Vec<&str> = Vec::new();
    let mut hasher = blake3::Hasher::new();
    let is_letter = |letter: char| letter.is_ascii_alphabetic();
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            // A constant.
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            _ if is_letter(first) => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(len);
        rest = behind;
        if !is_letter(first) || WORDS.contains(&word) {
            hasher.update(word.as_bytes());
            continue;
        }
        let number = names.iter().position(|name| *name == word).unwrap_or(names.len());
        if number == names.len() {
            names.push(word);
        }
        hasher.update(format!("name {number}").as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The part that a program belongs to: half are for training, a quarter each for the others.
fn part_of(program: &Program) -> Part {
    match content(program)[0] % 4 {
        0 | 1 => Part::Train,
        2 => Part::Dev,
        _ => Part::Test,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};

    use super::*;

    fn drawn(seed: u64, programs: Part, level: Option<Level>, language: Tongue) -> Problem {
        let parameters = Parameters { seed, programs, level, language };
        let found = generate(&parameters).unwrap();
        assert_eq!(generate(&parameters).as_ref(), Some(&found), "equal seeds, equal tasks");
        found
    }

    #[test]
    fn every_kind_of_bug_and_program_occurs_and_is_shown_by_a_test() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in 0..600 {
            let problem = drawn(seed, Part::Train, None, Tongue::Mixed);
            for name in [problem.bug.name(), problem.family.name(), problem.language.name()] {
                *counts.entry(name).or_default() += 1;
            }
            assert!(problem.level.families().contains(&problem.family));
            assert_ne!(problem.lines, problem.right);
            assert!(problem.lines.len() <= 20 && problem.issue.len() < 400, "{}", problem.issue);
            assert_eq!(problem.tests.len(), SHOWN + HIDDEN);
            let inputs: HashSet<String> =
                problem.tests.iter().map(|test| format!("{:?}", test.arguments)).collect();
            assert_eq!(inputs.len(), problem.tests.len(), "no test stands twice");
        }
        assert_eq!(counts.len(), 11 + 15 + 2, "{counts:?}");
        assert!(counts.values().all(|count| *count >= 10), "{counts:?}");
    }

    #[test]
    fn no_program_is_in_two_parts() {
        let mut parts: HashMap<[u8; 32], Part> = HashMap::new();
        let mut num_programs = [0, 0];
        for (programs, count) in [(Part::Train, 2_000), (Part::Dev, 300), (Part::Test, 300)] {
            for seed in 0..count {
                let parameters =
                    Parameters { seed, programs, level: None, language: Tongue::Mixed };
                let problem = generate(&parameters).unwrap();
                for (kind, content) in problem.contents.into_iter().enumerate() {
                    let known = parts.insert(content, programs);
                    assert!(known.is_none_or(|known| known == programs), "seed {seed}");
                    num_programs[kind] += usize::from(known.is_none());
                }
            }
        }
        // Few are met twice.
        assert!(num_programs[0] > 2_000 && num_programs[1] > 2_000, "{num_programs:?}");
    }

    #[test]
    fn what_a_program_is_does_not_hang_on_names() {
        let renamed = |name: &'static str, number| {
            use super::super::program::{Function, Statement, Type, add, int, name as of};
            let body = vec![Statement::Return(add(of(name), int(number)))];
            let parameters = vec![(name, Type::Int)];
            let name = "solve";
            Program { functions: vec![Function { name, parameters, returns: Type::Int, body }] }
        };
        assert_eq!(content(&renamed("a", 1)), content(&renamed("limit", 1)));
        assert_ne!(content(&renamed("a", 1)), content(&renamed("a", 2)));
    }
}
