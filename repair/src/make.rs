use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use spar_core::Seed;
use spar_sandbox::SandboxBackend;
use tokio::sync::Mutex;

use crate::baseline::{Baseline, file_of, log_name};
use crate::candidates::{Candidate, STAGED, Singles, stacked};
use crate::git::TaskRepository;
use crate::issue::{Failure, issue};
use crate::mutation::Language;
use crate::report::PackageReport;
use crate::rows::{TaskDraft, instance_id};
use crate::runner::{
    Cargo, CargoRunner, Loading, Place, PlaceOptions, PytestServer, Python, RunRequest, TestRun,
};
use crate::task_log::{Attempt, Outcome, TaskLog};
use crate::validate::{Judgement, covering_run, failing, judge, passing, whole_run};
use crate::{MakeError, MakeOptions, RunnerError, SourcePackage, diff};

/// Follows what is made.
pub trait Observer: Send + Sync {
    /// The tests of the package itself have run; so many candidates of one bug will be tried at most.
    fn baseline(&self, report: &PackageReport, candidates: usize);
    /// A candidate was tried, now or before.
    fn attempt(&self, attempt: &Attempt, report: &PackageReport);
    /// Whether nothing more is to be begun.
    fn is_cancelled(&self) -> bool;
}

/// What runs the tests of packages, by their language.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// An interpreter with pytest. Absent: no packages of Python.
    pub python: Option<Python>,
    /// A toolchain of Rust. Absent: no crates.
    pub cargo: Option<Cargo>,
}

impl From<Python> for Tools {
    fn from(python: Python) -> Self {
        Self { python: Some(python), cargo: None }
    }
}

impl From<Cargo> for Tools {
    fn from(cargo: Cargo) -> Self {
        Self { python: None, cargo: Some(cargo) }
    }
}

/// Makes tasks of packages.
pub struct Maker {
    pub(crate) options: MakeOptions,
    tools: Tools,
    /// Absent: on this machine.
    backend: Option<Arc<dyn SandboxBackend>>,
}

impl Maker {
    /// Runs tests with these tools, such as an interpreter, in sandboxes of `backend`, or, without one, on this machine with the
    /// rights of this process.
    ///
    /// # Errors
    ///
    /// [`MakeError::Options`] with all problems.
    pub fn new(
        options: MakeOptions,
        tools: impl Into<Tools>,
        backend: Option<Arc<dyn SandboxBackend>>,
    ) -> Result<Self, MakeError> {
        let problems = options.problems();
        match problems.is_empty() {
            true => Ok(Self { options, tools: tools.into(), backend }),
            false => Err(MakeError::Options { problems }),
        }
    }

    /// Makes tasks of a package in `out/KEY`: `swe_smith.jsonl`, `swe_bench.jsonl`, the record `attempts.jsonl`, and the
    /// repository `repository.git` with a branch for each task. What the record has is not done again.
    ///
    /// # Errors
    ///
    /// [`MakeError`]; what was made until then stays.
    pub async fn make(
        &self,
        package: Arc<SourcePackage>,
        out: &Path,
        observer: &dyn Observer,
    ) -> Result<PackageReport, MakeError> {
        if !self.has_tools_for(package.language) {
            let (package, language) = (package.name.clone(), package.language.name());
            return Err(MakeError::Language { package, language });
        }
        let folder = out.join(package.key());
        let mut log = TaskLog::open(&folder, &package.name, &package.sha256, self.options.key())?;
        let repository = TaskRepository::open(&folder.join("repository.git"), &package)?;
        let mut report = PackageReport {
            package: package.name.clone(),
            version: package.version.clone(),
            sha256: package.sha256.clone(),
            licence: package.licence.clone(),
            ..PackageReport::default()
        };
        let seed = Seed::from_u64(self.options.seed).derive("repair", &package.sha256);
        let (baseline, loading) = self.baseline(&package, &mut report).await?;
        let singles = Singles::of(&package, &baseline, &self.options, seed);
        report.num_tests = baseline.passing.len();
        report.flaky = baseline.flaky.iter().cloned().collect();
        report.num_covered = singles.keys.iter().map(Vec::len).sum();
        report.num_uncovered = singles.num_uncovered;
        report.unread.clone_from(&singles.unread);
        observer.baseline(&report, report.num_covered);
        let pool = Pool {
            maker: self,
            package: &package,
            loading: &loading,
            idle: Mutex::new(Vec::new()),
        };
        let work = Work {
            maker: self,
            package: &package,
            baseline: &baseline,
            repository: &repository,
            seed,
            pool: &pool,
        };
        let made = work.all(singles, &mut log, &mut report, observer).await;
        pool.close().await;
        made?;
        Ok(report)
    }

    fn has_tools_for(&self, language: Language) -> bool {
        match language {
            Language::Python => self.tools.python.is_some(),
            Language::Rust => self.tools.cargo.is_some(),
        }
    }

    /// What runs the tests of a package in a place of its own.
    async fn server(
        &self,
        package: &SourcePackage,
        place: &Place,
        loading: &Loading,
    ) -> Result<Server, RunnerError> {
        Ok(match (package.language, &self.tools) {
            (Language::Rust, Tools { cargo: Some(cargo), .. }) => {
                Server::Cargo(Box::new(CargoRunner::new(cargo, package)))
            }
            (_, Tools { python: Some(python), .. }) => {
                Server::Pytest(Box::new(PytestServer::start(place, python, loading).await?))
            }
            (language, _) => {
                let what = "there is none".to_owned();
                return Err(RunnerError::Tool { program: language.name(), what });
            }
        })
    }

    async fn place(&self, package: &SourcePackage) -> Result<Place, RunnerError> {
        match &self.backend {
            None => Place::host(package),
            Some(backend) => {
                // The suite's processes share the memory, and the server has its own.
                let memory_bytes = (self.options.memory_mb << 20) + (1 << 30);
                let options = PlaceOptions { memory_bytes };
                let folders = match package.language {
                    Language::Python => self.tools.python.as_ref().map(|it| it.folders.clone()),
                    Language::Rust => self.tools.cargo.as_ref().map(|it| vec![it.folder.clone()]),
                };
                Place::sandbox(&**backend, package, &folders.unwrap_or_default(), &options).await
            }
        }
    }

    /// Runs the suite twice: once told which lines each test runs, once as candidates are.
    async fn baseline(
        &self,
        package: &SourcePackage,
        report: &mut PackageReport,
    ) -> Result<(Baseline, Loading), MakeError> {
        let mut arguments = vec!["--continue-on-collection-errors".to_owned()];
        arguments.extend(self.options.pytest_args.iter().cloned());
        let mut loading =
            Loading { paths: package.import_paths(), arguments, ..Loading::default() };
        let request = RunRequest {
            with_coverage: true,
            timeout: std::time::Duration::from_secs(self.options.baseline_secs),
            memory_bytes: self.options.memory_mb << 20,
            ..RunRequest::default()
        };
        let first = self.once(package, &loading, &request).await?;
        loading.modules.clone_from(&first.modules);
        let files: BTreeSet<String> =
            first.tests.keys().map(|test| file_of(test).to_owned()).collect();
        loading.tests = files.into_iter().collect();
        let broken = |file: &String| first.collect_errors.iter().any(|(name, _)| name == file);
        let targets: Vec<String> =
            loading.tests.iter().filter(|file| !broken(file)).cloned().collect();
        // Where no test was found, the first run tells why.
        let second = match targets.is_empty() {
            true => TestRun { is_whole: true, ..TestRun::default() },
            false => {
                let request = RunRequest { targets, with_coverage: false, ..request };
                self.once(package, &loading, &request).await?
            }
        };
        report.baseline_cpu_seconds = (first.cpu + second.cpu).as_secs_f64();
        report.suite_seconds = second.wall.as_secs_f64();
        Ok((Baseline::of(package, &first, &second)?, loading))
    }

    async fn once(
        &self,
        package: &SourcePackage,
        loading: &Loading,
        request: &RunRequest,
    ) -> Result<TestRun, RunnerError> {
        let place = self.place(package).await?;
        let run = async {
            let mut server = self.server(package, &place, loading).await?;
            let run = server.run(&place, request).await;
            server.close().await;
            run
        };
        let run = run.await;
        let closed = place.close().await;
        let run = run?;
        closed.map(|()| run)
    }
}

/// What runs tests.
enum Server {
    Pytest(Box<PytestServer>),
    Cargo(Box<CargoRunner>),
}

impl Server {
    async fn run(&mut self, place: &Place, request: &RunRequest) -> Result<TestRun, RunnerError> {
        match self {
            Self::Pytest(server) => server.run(request).await,
            Self::Cargo(runner) => runner.run(place, request).await,
        }
    }

    async fn close(self) {
        match self {
            Self::Pytest(server) => server.close().await,
            // Nothing of it runs between runs.
            Self::Cargo(_) => {}
        }
    }
}

/// A place with its server.
struct Worker {
    place: Place,
    server: Server,
}

/// Workers that wait for a candidate.
pub(crate) struct Pool<'a> {
    maker: &'a Maker,
    package: &'a SourcePackage,
    loading: &'a Loading,
    idle: Mutex<Vec<Worker>>,
}

impl Pool<'_> {
    async fn take(&self) -> Result<Worker, RunnerError> {
        if let Some(worker) = self.idle.lock().await.pop() {
            return Ok(worker);
        }
        let place = self.maker.place(self.package).await?;
        match self.maker.server(self.package, &place, self.loading).await {
            Ok(server) => Ok(Worker { place, server }),
            Err(error) => {
                // The error that is told is the first one.
                let _ = place.close().await;
                Err(error)
            }
        }
    }

    /// Runs tests; absent where they took the server along. The place goes with it, since nobody put its files back.
    pub(crate) async fn run(&self, request: &RunRequest) -> Result<Option<TestRun>, RunnerError> {
        let mut worker = self.take().await?;
        match worker.server.run(&worker.place, request).await {
            Ok(run) => {
                self.idle.lock().await.push(worker);
                Ok(Some(run))
            }
            Err(RunnerError::Server { .. }) => {
                worker.server.close().await;
                worker.place.close().await?;
                Ok(None)
            }
            Err(error) => {
                let _ = worker.place.close().await;
                Err(error)
            }
        }
    }

    async fn close(&self) {
        for worker in self.idle.lock().await.drain(..) {
            worker.server.close().await;
            // What remains is cleared away by the sandboxes' own net.
            let _ = worker.place.close().await;
        }
    }
}

/// What all candidates of a package share.
pub(crate) struct Work<'a> {
    pub(crate) maker: &'a Maker,
    pub(crate) package: &'a SourcePackage,
    pub(crate) baseline: &'a Baseline,
    pub(crate) repository: &'a TaskRepository,
    pub(crate) seed: Seed,
    pub(crate) pool: &'a Pool<'a>,
}

impl Work<'_> {
    async fn all(
        &self,
        singles: Singles,
        log: &mut TaskLog,
        report: &mut PackageReport,
        observer: &dyn Observer,
    ) -> Result<(), MakeError> {
        let options = &self.maker.options;
        let wanted = options.count.unwrap_or(usize::MAX);
        // Of a count, those with several bugs come last, as they are made of the others.
        let stacks = match options.count {
            Some(count) => (count as f64 * options.stacked).round() as usize,
            None => 0,
        };
        let mut tasks: Vec<Candidate> = Vec::new();
        let mut keys = singles.keys;
        // The first candidate of each function and operator, then the second of those that have no task yet.
        while !keys.is_empty() {
            let round: Vec<Candidate> = keys.iter_mut().filter_map(Vec::pop).collect();
            let limit = (wanted - stacks).saturating_sub(tasks.len());
            if limit == 0 {
                break;
            }
            let valid = self.round(round, limit, log, report, observer).await?;
            let solved: BTreeSet<(String, String, String)> = valid.iter().map(key_of).collect();
            keys.retain(|key| key.first().is_some_and(|next| !solved.contains(&key_of(next))));
            tasks.extend(valid);
            if observer.is_cancelled() {
                report.is_done = false;
                return Ok(());
            }
        }
        let part = options.stacked / (1.0 - options.stacked);
        let stacks = match options.count {
            Some(_) => wanted - tasks.len().min(wanted),
            None => (tasks.len() as f64 * part).round() as usize,
        };
        if options.stacked > 0.0 && stacks > 0 {
            // Some come to nothing.
            let candidates =
                stacked(&tasks, stacks.saturating_mul(3).min(100_000), options.stages, self.seed);
            self.round(candidates, stacks, log, report, observer).await?;
        }
        report.is_done = !observer.is_cancelled();
        Ok(())
    }

    /// Tries candidates until so many are tasks; those that are. They are judged at the same time
    /// and counted in their order, so that the result does not depend on how many workers there are.
    async fn round(
        &self,
        candidates: Vec<Candidate>,
        limit: usize,
        log: &mut TaskLog,
        report: &mut PackageReport,
        observer: &dyn Observer,
    ) -> Result<Vec<Candidate>, MakeError> {
        let mut valid = Vec::new();
        let known: Vec<Option<Attempt>> =
            candidates.iter().map(|candidate| log.known(&candidate.id).cloned()).collect();
        let tried = futures::stream::iter(candidates.into_iter().zip(known))
            .map(|(candidate, known)| async move {
                if known.is_none() && observer.is_cancelled() {
                    return Ok(None);
                }
                let is_new = known.is_none();
                let attempt = match known {
                    Some(known) => known,
                    None => self.attempt(&candidate).await?,
                };
                Ok::<_, MakeError>(Some((candidate, attempt, is_new)))
            })
            .buffered(self.maker.options.workers);
        let mut tried = std::pin::pin!(tried);
        while valid.len() < limit {
            let Some(next) = tried.next().await else { return Ok(valid) };
            let Some((candidate, attempt, is_new)) = next? else { return Ok(valid) };
            if is_new {
                log.append(&attempt)?;
            }
            report.add(&attempt);
            observer.attempt(&attempt, report);
            if attempt.outcome == Outcome::Valid {
                valid.push(candidate);
            }
        }
        Ok(valid)
    }

    /// Tries a candidate.
    async fn attempt(&self, candidate: &Candidate) -> Result<Attempt, MakeError> {
        let (options, baseline) = (&self.maker.options, self.baseline);
        if candidate.kind == STAGED {
            return self.staged(candidate).await;
        }
        let mut attempt = begun(candidate);
        let first = covering_run(self.package, baseline, candidate, options);
        // What fails without coming to a line that was changed does so for another reason.
        let covering: BTreeSet<String> =
            candidate.covering.iter().map(|number| baseline.names[*number].clone()).collect();
        let mut unsteady = BTreeSet::new();
        let mut failed_before: Option<BTreeSet<String>> = None;
        for request in
            first.into_iter().chain([whole_run(self.package, baseline, candidate, options)])
        {
            let asked = match &request.only {
                Some(only) => only.iter().cloned().collect(),
                None => baseline.passing.clone(),
            };
            let Some(run) = self.pool.run(&request).await? else {
                return Ok(attempt);
            };
            attempt.cpu_seconds += run.cpu.as_secs_f64();
            attempt.seconds += run.wall.as_secs_f64();
            let failed: BTreeSet<String> = failing(&run, &asked).into_iter().collect();
            unsteady.extend(failed.difference(&covering).cloned());
            if let Some(before) = &failed_before {
                unsteady.extend(before.difference(&failed).cloned());
                let since = failed.difference(before).filter(|test| covering.contains(*test));
                unsteady.extend(since.cloned());
            }
            let judged: BTreeSet<String> = asked.difference(&unsteady).cloned().collect();
            match judge(&run, &judged, baseline, options) {
                Judgement::Ends(outcome, failing) => {
                    (attempt.outcome, attempt.failing) = (outcome, failing);
                    return Ok(attempt);
                }
                Judgement::Fails if request.only.is_some() => failed_before = Some(failed),
                Judgement::Fails => self.task(candidate, &run, &judged, &mut attempt)?,
            }
        }
        Ok(attempt)
    }

    /// What makes the bugs of a candidate and what mends them, and the files with them, whether they can be executed.
    pub(crate) fn patches(
        &self,
        candidate: &Candidate,
    ) -> (String, String, Vec<(String, String, bool)>) {
        let (mut bug_patch, mut fix_patch, mut changed) =
            (String::new(), String::new(), Vec::new());
        for (file, edits) in candidate.edits() {
            let text = self.package.text(file).expect("it was read when the candidate was made");
            let bug = edits.apply(text);
            bug_patch.push_str(&diff::patch(file, text, &edits));
            fix_patch.push_str(&diff::patch(file, &bug, &edits.inverse(text)));
            changed.push((file.to_owned(), bug, self.package.files[file].is_executable));
        }
        (bug_patch, fix_patch, changed)
    }

    /// Makes the rows of a candidate by a run of the whole suite, of which these tests count.
    fn task(
        &self,
        candidate: &Candidate,
        run: &TestRun,
        judged: &BTreeSet<String>,
        attempt: &mut Attempt,
    ) -> Result<(), MakeError> {
        let (package, baseline) = (self.package, self.baseline);
        let fail_to_pass = failing(run, judged);
        let pass_to_pass = passing(run, judged);
        attempt.failing = fail_to_pass.len();
        // The test that is shown is one that says something, where there is one.
        let shown = fail_to_pass.iter().find_map(|test| Some((test, run.tests.get(test)?)));
        let (Some((test, result)), false) = (shown, pass_to_pass.is_empty()) else {
            attempt.outcome = match pass_to_pass.is_empty() {
                true => Outcome::NothingPasses,
                false => Outcome::Uncollectable,
            };
            return Ok(());
        };
        let failure = Failure {
            package: &package.name,
            version: &package.version,
            test,
            result,
            count: fail_to_pass.len(),
        };
        let problem = issue(&failure, self.seed.derive("issue", &candidate.id));
        let files: BTreeSet<String> =
            fail_to_pass.iter().map(|test| file_of(test).to_owned()).collect();
        let hidden: Vec<String> = files.into_iter().collect();
        let (bug_patch, fix_patch, changed) = self.patches(candidate);
        let instance = instance_id(package, &candidate.id);
        let commits = self.repository.add(&instance, &changed, &hidden)?;
        let named = |tests: Vec<String>| -> Vec<String> {
            tests.iter().map(|test| log_name(package.language, test).to_owned()).collect()
        };
        let (fail_to_pass, pass_to_pass) = (named(fail_to_pass), named(pass_to_pass));
        let draft = TaskDraft {
            package,
            id: &candidate.id,
            kind: &candidate.kind,
            bug_patch,
            fix_patch,
            fail_to_pass,
            pass_to_pass,
            problem,
            base_commit: &commits.head,
            hidden: &hidden,
            targets: &baseline.targets,
            arguments: &self.maker.options.pytest_args,
            stages: Vec::new(),
        };
        attempt.rows = Some(draft.rows());
        attempt.outcome = Outcome::Valid;
        Ok(())
    }
}

/// What is known of a candidate before it was run.
pub(crate) fn begun(candidate: &Candidate) -> Attempt {
    let places =
        candidate.parts.iter().map(|part| format!("{} {}", part.file, part.mutation.function));
    Attempt {
        id: candidate.id.clone(),
        kind: candidate.kind.clone(),
        places: places.collect(),
        outcome: Outcome::Crashed,
        failing: 0,
        cpu_seconds: 0.0,
        seconds: 0.0,
        rows: None,
    }
}

fn key_of(candidate: &Candidate) -> (String, String, String) {
    let part = &candidate.parts[0];
    (part.file.clone(), part.mutation.function.clone(), candidate.kind.clone())
}
