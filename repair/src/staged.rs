//! Several bugs that are mended one after the other, each with an issue and tests of its own.
//!
//! ```text
//!   all bugs ─ first mended ─▶ the others ─ second mended ─▶ ... ─▶ the package
//!      │                          │                                   │
//!   whole suite                whole suite                    what passes every time
//! ```
//!
//! A stage's tests are those that fail before it is mended and pass afterwards, with the later bugs still there; what passes
//! before and afterwards has to go on doing so.

use std::collections::BTreeSet;

use crate::baseline::{file_of, log_name};
use crate::candidates::Candidate;
use crate::issue::{Failure, issue};
use crate::make::{Work, begun};
use crate::mutation::Edits;
use crate::rows::{StageDraft, TaskDraft, instance_id};
use crate::runner::TestRun;
use crate::task_log::{Attempt, Outcome};
use crate::validate::{Judgement, failing, judge, passing, whole_run};
use crate::{MakeError, diff};

/// Tests by name.
type Names = BTreeSet<String>;

/// What a stage comes to.
struct Tests {
    fail_to_pass: Names,
    pass_to_pass: Names,
}

impl Work<'_> {
    /// Tries a candidate whose bugs are mended one after the other.
    pub(crate) async fn staged(&self, candidate: &Candidate) -> Result<Attempt, MakeError> {
        let (options, baseline) = (&self.maker.options, self.baseline);
        let mut attempt = begun(candidate);
        // 1. The suite as it is before each stage.
        let mut runs: Vec<TestRun> = Vec::new();
        for number in 0..candidate.parts.len() {
            let rest = candidate.behind(number);
            let request = whole_run(self.package, baseline, &rest, options);
            let Some(run) = self.pool.run(&request).await? else { return Ok(attempt) };
            attempt.cpu_seconds += run.cpu.as_secs_f64();
            attempt.seconds += run.wall.as_secs_f64();
            if let Judgement::Ends(outcome, failing) =
                judge(&run, &baseline.passing, baseline, options)
            {
                (attempt.outcome, attempt.failing) = (outcome, failing);
                return Ok(attempt);
            }
            runs.push(run);
        }
        // 2. What each of them changes.
        let stages = self.tests_of_stages(candidate, &runs);
        let failing: Names = stages.iter().flat_map(|stage| stage.fail_to_pass.clone()).collect();
        attempt.failing = failing.len();
        attempt.outcome = if stages.iter().any(|stage| stage.fail_to_pass.is_empty()) {
            Outcome::Survived
        } else if stages.iter().any(|stage| stage.pass_to_pass.is_empty()) {
            Outcome::NothingPasses
        } else {
            self.task_of_stages(candidate, &runs, &stages, &mut attempt)?
        };
        Ok(attempt)
    }

    /// The tests of each stage, of those that go steadily.
    fn tests_of_stages(&self, candidate: &Candidate, runs: &[TestRun]) -> Vec<Tests> {
        let all = &self.baseline.passing;
        let failed: Vec<Names> = runs
            .iter()
            .map(|run| failing(run, all).into_iter().collect())
            .chain([Names::new()])
            .collect();
        let covering: Vec<Names> = candidate
            .parts
            .iter()
            .map(|part| {
                let numbers = self.baseline.tests_of(&part.file, &part.mutation.lines);
                numbers.into_iter().map(|number| self.baseline.names[number].clone()).collect()
            })
            .collect();
        // What changes without coming to a line that was changed does so for another reason.
        let mut unsteady = Names::new();
        for (number, covering) in covering.iter().enumerate() {
            let changed = failed[number].symmetric_difference(&failed[number + 1]);
            unsteady.extend(changed.filter(|test| !covering.contains(*test)).cloned());
        }
        let counted: Names = all.difference(&unsteady).cloned().collect();
        let passed: Vec<Names> = runs
            .iter()
            .map(|run| passing(run, &counted).into_iter().collect())
            .chain([counted.clone()])
            .collect();
        (0..runs.len())
            .map(|number| Tests {
                fail_to_pass: failed[number]
                    .difference(&failed[number + 1])
                    .filter(|test| counted.contains(*test))
                    .cloned()
                    .collect(),
                pass_to_pass: passed[number].intersection(&passed[number + 1]).cloned().collect(),
            })
            .collect()
    }

    /// Makes the rows: what came of it.
    fn task_of_stages(
        &self,
        candidate: &Candidate,
        runs: &[TestRun],
        stages: &[Tests],
        attempt: &mut Attempt,
    ) -> Result<Outcome, MakeError> {
        let (package, baseline) = (self.package, self.baseline);
        let named = |tests: &Names| -> Vec<String> {
            tests.iter().map(|test| log_name(package.language, test).to_owned()).collect()
        };
        let mut drafts = Vec::new();
        for (number, (run, tests)) in runs.iter().zip(stages).enumerate() {
            let shown =
                tests.fail_to_pass.iter().find_map(|test| Some((test, run.tests.get(test)?)));
            // Tests that are not there any more tell nothing of what is wrong.
            let Some((test, result)) = shown else { return Ok(Outcome::Uncollectable) };
            let failure = Failure {
                package: &package.name,
                version: &package.version,
                test,
                result,
                count: tests.fail_to_pass.len(),
            };
            let seed = self.seed.derive("issue", &candidate.id).derive("stage", number);
            let part = &candidate.parts[number];
            let text = package.text(&part.file).expect("it was read when the candidate was made");
            let rest = candidate.behind(number);
            let edits: Edits = rest.edits().remove(part.file.as_str()).unwrap_or_default();
            let mended = edits.inverse_of(&part.mutation.edits, text);
            drafts.push(StageDraft {
                problem: issue(&failure, seed),
                fix_patch: diff::patch(&part.file, &edits.apply(text), &mended),
                fail_to_pass: named(&tests.fail_to_pass),
                pass_to_pass: named(&tests.pass_to_pass),
            });
        }
        // Whoever takes the row without its stages has all of it at once.
        let fail_to_pass: Names = stages.iter().flat_map(|it| it.fail_to_pass.clone()).collect();
        let mut pass_to_pass = stages[0].pass_to_pass.clone();
        pass_to_pass.retain(|test| stages.iter().all(|stage| stage.pass_to_pass.contains(test)));
        let files: Names = fail_to_pass.iter().map(|test| file_of(test).to_owned()).collect();
        let hidden: Vec<String> = files.into_iter().collect();
        let (bug_patch, fix_patch, changed) = self.patches(candidate);
        let instance = instance_id(package, &candidate.id);
        let commits = self.repository.add(&instance, &changed, &hidden)?;
        let problems: Vec<&str> = drafts.iter().map(|stage| stage.problem.as_str()).collect();
        let draft = TaskDraft {
            package,
            id: &candidate.id,
            kind: &candidate.kind,
            bug_patch,
            fix_patch,
            fail_to_pass: named(&fail_to_pass),
            pass_to_pass: named(&pass_to_pass),
            problem: problems.join("\n---\n\n"),
            base_commit: &commits.head,
            hidden: &hidden,
            targets: &baseline.targets,
            arguments: &self.maker.options.pytest_args,
            stages: drafts,
        };
        attempt.rows = Some(draft.rows());
        Ok(Outcome::Valid)
    }
}
