//! What is tried, and in which order: by the seed, a function and operator at a time.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};
use spar_core::Seed;

use crate::baseline::{Baseline, is_plain};
use crate::mutation::{Edits, Mutation, mutations};
use crate::package::hexadecimal;
use crate::{MakeOptions, SourcePackage};

/// Kind of a candidate with several bugs.
pub(crate) const STACKED: &str = "stacked";

/// Kind of a candidate whose bugs are mended one after the other.
pub(crate) const STAGED: &str = "staged";

/// Bugs of a package that are tried together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// What it is called: its kind and a hash of what it changes.
    pub(crate) id: String,
    /// The operator, or `stacked`.
    pub(crate) kind: String,
    /// Each file once for each bug.
    pub(crate) parts: Vec<Part>,
    /// Numbers of the tests that come to its lines.
    pub(crate) covering: BTreeSet<usize>,
}

/// One bug of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) mutation: Mutation,
}

impl Candidate {
    fn new(kind: &str, parts: Vec<Part>, covering: BTreeSet<usize>) -> Self {
        let mut hasher = Sha256::new();
        for Part { file, mutation } in &parts {
            hasher.update(format!(
                "{file}\0{}\0",
                serde_json::to_string(&mutation.edits).expect("it is plain")
            ));
        }
        let id = format!("{kind}__{}", &hexadecimal(hasher)[..8]);
        Self { id, kind: kind.to_owned(), parts, covering }
    }

    /// The same without the first `number` bugs.
    pub(crate) fn behind(&self, number: usize) -> Self {
        Self { parts: self.parts[number..].to_vec(), ..self.clone() }
    }

    /// The edits of each file.
    pub(crate) fn edits(&self) -> BTreeMap<&str, Edits> {
        let mut edits: BTreeMap<&str, Edits> = BTreeMap::new();
        for Part { file, mutation } in &self.parts {
            let before = edits.remove(file.as_str()).unwrap_or_default();
            let joined = before.joined(&mutation.edits).expect("stacked bugs are disjoint");
            edits.insert(file, joined);
        }
        edits
    }
}

/// Candidates of one bug.
#[derive(Debug, Default)]
pub(crate) struct Singles {
    /// By function and operator, in the order in which they are tried.
    pub(crate) keys: Vec<Vec<Candidate>>,
    /// Mutations that no test comes to.
    pub(crate) num_uncovered: usize,
    /// Files that could not be read as their language.
    pub(crate) unread: Vec<String>,
}

impl Singles {
    /// All candidates of a package.
    pub(crate) fn of(
        package: &SourcePackage,
        baseline: &Baseline,
        options: &MakeOptions,
        seed: Seed,
    ) -> Self {
        let mut this = Self::default();
        let mut by_operator: BTreeMap<String, BTreeMap<(String, String), Vec<Candidate>>> =
            BTreeMap::new();
        for (file, text) in package.sources().filter(|(file, _)| is_plain(file)) {
            if !baseline.covering.contains_key(file) {
                continue;
            }
            let Ok(found) = mutations(package.language, text) else {
                this.unread.push(file.to_owned());
                continue;
            };
            for mutation in found {
                let wanted = options.operators.as_ref();
                if wanted.is_some_and(|wanted| !wanted.contains(&mutation.operator)) {
                    continue;
                }
                let covering = baseline.tests_of(file, &mutation.lines);
                if covering.is_empty() {
                    this.num_uncovered += 1;
                    continue;
                }
                let key = (file.to_owned(), mutation.function.clone());
                let kind = mutation.operator.clone();
                let part = Part { file: file.to_owned(), mutation };
                let candidate = Candidate::new(&kind, vec![part], covering);
                by_operator.entry(kind).or_default().entry(key).or_default().push(candidate);
            }
        }
        // One key of each operator in turn, so that a few tasks have many kinds of bugs.
        let mut queues: Vec<Vec<Vec<Candidate>>> = by_operator
            .into_iter()
            .map(|(operator, keys)| {
                let mut rng = seed.derive("operator", operator).rng();
                let mut keys: Vec<Vec<Candidate>> = keys.into_values().collect();
                keys.iter_mut().for_each(|candidates| {
                    candidates.shuffle(&mut rng);
                    candidates.truncate(options.tries);
                });
                keys.shuffle(&mut rng);
                keys
            })
            .collect();
        queues.shuffle(&mut seed.derive("operators", 0).rng());
        while queues.iter().any(|queue| !queue.is_empty()) {
            this.keys.extend(queues.iter_mut().filter_map(Vec::pop));
        }
        this
    }
}

/// Candidates of two to four bugs, each of which is a task of its own; half of them in one file. At most `count`, fewer
/// where the tasks do not give more. With `stages` they have so many, to be mended one after the other.
pub(crate) fn stacked(
    tasks: &[Candidate],
    count: usize,
    stages: Option<usize>,
    seed: Seed,
) -> Vec<Candidate> {
    let kind = if stages.is_some() { STAGED } else { STACKED };

    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for number in 0..count.saturating_mul(8) {
        if found.len() == count || tasks.len() < 2 {
            break;
        }
        let mut rng = seed.derive("stacked", number).rng();
        let (size, in_one_file) = (rng.random_range(2..=4), rng.random::<bool>());
        let size = stages.unwrap_or(size);
        let mut order: Vec<&Candidate> = tasks.iter().collect();
        order.shuffle(&mut rng);
        let first = order[0];
        let mut parts: Vec<Part> = Vec::new();
        let mut covering = BTreeSet::new();
        for candidate in order {
            let [part] = &candidate.parts[..] else { continue };
            if parts.len() == size || in_one_file && part.file != first.parts[0].file {
                continue;
            }
            // Bugs of one function would hide each other.
            let fits = parts.iter().all(|other| {
                other.file != part.file
                    || other.mutation.function != part.mutation.function
                        && other.mutation.edits.joined(&part.mutation.edits).is_some()
            });
            let together = parts
                .iter()
                .filter(|other| other.file == part.file)
                .try_fold(part.mutation.edits.clone(), |edits, other| {
                    edits.joined(&other.mutation.edits)
                });
            if fits && together.is_some() {
                parts.push(part.clone());
                covering.extend(candidate.covering.iter().copied());
            }
        }
        parts.sort_by(|one, other| {
            let place = |part: &Part| part.mutation.edits.as_slice()[0].span.start;
            (&one.file, place(one)).cmp(&(&other.file, place(other)))
        });
        let candidate = Candidate::new(kind, parts, covering);
        if candidate.parts.len() >= stages.unwrap_or(2) && seen.insert(candidate.id.clone()) {
            found.push(candidate);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Language;

    fn single(file: &str, function: &str, mutation: Mutation) -> Candidate {
        let mutation = Mutation { function: function.to_owned(), ..mutation };
        let part = Part { file: file.to_owned(), mutation };
        Candidate::new("kind", vec![part], BTreeSet::from([1]))
    }

    #[test]
    fn stacked_bugs_are_of_two_to_four_functions_and_disjoint() {
        let source = "def f(a):\n    return a < 1\n\n\ndef g(a):\n    return a > 2\n\n\ndef h(a):\n    return a + 3\n";
        let found = mutations(Language::Python, source).unwrap();
        let tasks: Vec<Candidate> = found
            .iter()
            .flat_map(|mutation| {
                ["a.py", "b.py"].map(|file| single(file, &mutation.function, mutation.clone()))
            })
            .collect();
        let stacks = stacked(&tasks, 20, None, Seed::from_u64(1));
        assert_eq!(stacks, stacked(&tasks, 20, None, Seed::from_u64(1)));
        let staged = stacked(&tasks, 20, Some(3), Seed::from_u64(1));
        assert!(
            staged.len() > 5 && staged.iter().all(|it| it.kind == STAGED && it.parts.len() == 3)
        );
        assert_eq!(staged[0].behind(1).parts, staged[0].parts[1..]);
        assert!(stacks.len() > 10);
        let ids: BTreeSet<&str> = stacks.iter().map(|stack| stack.id.as_str()).collect();
        assert_eq!(ids.len(), stacks.len());
        for stack in &stacks {
            assert!((2..=4).contains(&stack.parts.len()), "{stack:?}");
            let functions: BTreeSet<_> =
                stack.parts.iter().map(|part| (&part.file, &part.mutation.function)).collect();
            assert_eq!(functions.len(), stack.parts.len());
            for edits in stack.edits().values() {
                assert_ne!(edits.apply(source), source);
            }
        }
        assert!(stacks.iter().any(|stack| stack.edits().len() == 1));
        assert!(stacks.iter().any(|stack| stack.edits().len() == 2));
        assert!(stacked(&tasks[..1], 5, None, Seed::from_u64(1)).is_empty());
    }
}
