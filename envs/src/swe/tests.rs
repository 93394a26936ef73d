//! The environment over real backends, on repositories that are made here.

use std::ops::ControlFlow;
use std::sync::Arc;

use spar_core::{Seed, Verdict};
use spar_sandbox::backends::fake::FakeBackend;
use spar_sandbox::pool::{PoolConfig, SandboxPool};
use spar_sandbox::{Image, registry};
use spar_swe::grade::Outcome;
use spar_swe::log::Origin;
use spar_swe::{Instance, Verification, VerifierSandbox};
use spar_tasks::{Suite, SuiteError, SuiteManifest, SweTask, Task};
use tempfile::TempDir;

use super::fixture::{Runner, task, write};
use super::{Swe, SweVerdict};
use crate::{Environment, EnvironmentError, Resources, Sandboxes, validate_suite};

/// Sandboxes of a backend that has git and Python.
pub(super) fn sandboxes(backend: &str) -> Sandboxes {
    let config = PoolConfig { starts_per_second: None, ..PoolConfig::default() };
    let pool = SandboxPool::new(registry::open(backend).unwrap(), config).unwrap();
    let mut sandboxes = Sandboxes::new(Arc::new(pool));
    sandboxes.image = image(backend);
    sandboxes
}

/// The image with git and Python.
pub(super) fn image(backend: &str) -> Image {
    Image::Reference(if backend == "docker" { "spar-base" } else { "host" }.to_owned())
}

/// A repository, and a task in it.
struct Fixture {
    folder: TempDir,
    instance: Instance,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let instance = write(folder.path(), Runner::Unittest);
        Self { folder, instance }
    }

    fn task(&self) -> Task {
        task(self.instance.clone(), self.folder.path())
    }
}

/// Plays commands and submits: what they showed, and the verdict.
async fn play(sandboxes: &Sandboxes, task: &Task, commands: &[&str]) -> (Vec<String>, Verdict) {
    let resources = Resources::with_sandboxes(sandboxes.clone());
    let mut env = Swe::open(task, &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let mut shown = Vec::new();
    for command in commands {
        shown.push(env.step(&(*command).into()).await.unwrap().observation.text);
    }
    let verdict = env.verify().await.unwrap().unwrap();
    env.close().await.unwrap();
    (shown, verdict)
}

/// A suite of one task.
pub(super) struct One(Task, SuiteManifest);

impl Suite for One {
    fn manifest(&self) -> &SuiteManifest {
        &self.1
    }

    fn about(&self) -> &str {
        "one"
    }

    fn make_task(&self, _: &str, _: usize) -> Result<Task, SuiteError> {
        Ok(self.0.clone())
    }
}

pub(super) fn one(task: Task) -> One {
    let manifest = SuiteManifest {
        name: "own".to_owned(),
        version: "1".to_owned(),
        content_hash: String::new(),
        splits: vec![("test".to_owned(), 1)],
    };
    One(task, manifest)
}

/// Gold resolves, nothing and what breaks do not, twice the same.
async fn validates(backend: &str) {
    let fixture = Fixture::new();
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let suite = one(fixture.task());
    let go_on = |_, _| ControlFlow::Continue(());
    let report = validate_suite(&suite, &["test"], None, &resources, go_on).await.unwrap();
    assert!(report.is_valid(), "{:#?}", report.failures);
    assert_eq!(report.num_solved, 1);
    // A row whose tests need no fix is told.
    let mut loose = fixture.instance.clone();
    if let Some(Verification::TestLog { expected, .. }) = &mut loose.verification {
        expected.fail_to_pass = std::mem::take(&mut expected.pass_to_pass);
    }
    let suite = one(task(loose, fixture.folder.path()));
    let report = validate_suite(&suite, &["test"], None, &resources, go_on).await.unwrap();
    let kinds: Vec<_> = report.failures.iter().map(|failure| failure.kind).collect();
    assert_eq!(kinds, [crate::FailureKind::RewardForNothing], "{:#?}", report.failures);
}

/// Nothing of what is to come, nor of the tests, is in the agent's sandbox.
async fn hides(backend: &str) {
    let fixture = Fixture::new();
    let commands = [
        "git log --all --oneline | wc -l",
        "git reflog; git for-each-ref; git stash list; find .git -name '*.pack'; ls .git/logs .git/packed-refs 2>/dev/null; true",
        "git fsck --lost-found; git cat-file --batch-all-objects --batch-check | grep -c commit",
        "grep -rl test_add_negative /testbed /tmp /opt --include=*.py 2>/dev/null; ls /tmp/.spar* 2>/dev/null; git status --short; true",
        "git cat-file -t v2",
    ];
    let (shown, verdict) = play(&sandboxes(backend), &fixture.task(), &commands).await;
    assert_eq!(shown[0], "1\n[exit code 0]");
    assert_eq!(shown[1], "[exit code 0]");
    assert!(shown[2].starts_with("1\n"), "{}", shown[2]);
    assert_eq!(shown[3], "[exit code 0]");
    assert!(shown[4].contains("fatal"), "{}", shown[4]);
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((found.outcome, found.patch.as_deref()), (Outcome::Failed, Some("")));
    assert_eq!(found.reason, "0 of 2 tests that failed pass, 1 of 1 that passed still do");
}

/// Patches of all kinds come over whole.
async fn carries(backend: &str) {
    let fixture = Fixture::new();
    let sandboxes = sandboxes(backend);
    let fix = "sed -i 's/a - b/a + b/' calc/__init__.py";
    let others = "git mv notes.txt 'moved notes.txt' && printf '\\0\\1\\2' >blob.bin && printf 'no end' >last.txt && \
                  printf 'a\\r\\nb\\n' >mixed.txt && chmod +x last.txt && ln -s last.txt link && echo x >new.pyc && \
                  git add -A && git -c user.name=a -c user.email=a@b commit -qm done";
    let (shown, verdict) = play(&sandboxes, &fixture.task(), &[fix, others]).await;
    let found = SweVerdict::of(&verdict).unwrap();
    assert!(verdict.success, "{shown:?} {}", verdict.details);
    let patch = found.patch.unwrap();
    for part in [
        "GIT binary patch",
        "rename to \"moved notes.txt\"",
        "\\ No newline",
        "a\r\n",
        "new file mode 100755",
        "120000",
    ] {
        let part = part.replace('"', "");
        assert!(patch.contains(&part), "{part}\n{patch}");
    }
    assert!(!patch.contains("new.pyc"));
    assert_eq!(found.applied_by.as_deref(), Some("git apply"));
    // A repository within the repository keeps nothing else from being handed in.
    let nested = "mkdir sub && git -C sub init -q && touch sub/a && git -C sub add a && \
                  git -C sub -c user.name=a -c user.email=a@b commit -qm a";
    let (shown, verdict) = play(&sandboxes, &fixture.task(), &[fix, nested]).await;
    assert!(verdict.success, "{shown:?} {}", verdict.details);
    // What cannot be made a patch of has failed, and nothing broke.
    for command in ["rm -rf .git", "head -c 20000000 /dev/urandom >big", "ln -s /etc/passwd out"] {
        let (_, verdict) = play(&sandboxes, &fixture.task(), &[fix, command]).await;
        let found = SweVerdict::of(&verdict).unwrap();
        assert_eq!(
            (found.outcome, verdict.masked),
            (Outcome::Failed, false),
            "{command}: {}",
            found.reason
        );
        assert!(found.reason.contains("patch"), "{}", found.reason);
    }
}

/// Output without end and tests without end do no harm.
async fn bounds(backend: &str) {
    let fixture = Fixture::new();
    let sandboxes = sandboxes(backend);
    let fix = "sed -i 's/a - b/a + b/' calc/__init__.py";
    let bytes: u64 = if std::env::var_os("SPAR_TEST_ALL").is_some() { 1 << 30 } else { 8 << 20 };
    let lines = bytes / 1024;
    let noise = format!(
        "printf '\\nfor _ in range({lines}):\\n    print(\"x\" * 1023)\\n' >>calc/__init__.py"
    );
    let mut quiet = fixture.task();
    quiet.parameters["guarded"] = false.into();
    let (_, verdict) = play(&sandboxes, &quiet, &[fix, &noise]).await;
    let run = SweVerdict::of(&verdict).unwrap().run.unwrap();
    assert!(verdict.success, "{}", verdict.details);
    assert!(run.log_bytes >= bytes && run.log.len() < 100_000);
    let mut slow = fixture.instance.clone();
    slow.limits.test_secs = Some(3);
    let hang = "printf '\\nimport time\\ntime.sleep(1000)\\n' >>calc/__init__.py";
    let (_, verdict) = play(&sandboxes, &task(slow, fixture.folder.path()), &[fix, hang]).await;
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!(
        (found.outcome, verdict.success, verdict.masked),
        (Outcome::Infrastructure, false, true)
    );
}

/// Tests that end what runs them, and tests that the code under test has skipped, resolve nothing.
async fn believes_no_tests_that_did_not_run(backend: &str) {
    let fixture = Fixture::new();
    let sandboxes = sandboxes(backend);
    let fix = "sed -i 's/a - b/a + b/' calc/__init__.py";
    for end in ["os.kill(os.getppid(), 9)", "os.kill(-1, 9)"] {
        let kill = format!("printf '\\nimport os\\n{end}\\n' >>calc/__init__.py");
        let (_, verdict) = play(&sandboxes, &fixture.task(), &[fix, &kill]).await;
        let found = SweVerdict::of(&verdict).unwrap();
        assert_eq!(
            (found.outcome, found.reward, verdict.masked),
            (Outcome::Invalid, 0.0, false),
            "{end}: {}",
            found.reason
        );
    }
    // Old rules do not count skipped tests at all.
    let mut old = fixture.instance.clone();
    let Some(Verification::TestLog { parser, .. }) = &mut old.verification else {
        panic!("it is judged by a log")
    };
    parser.origin = Origin::SweBench4;
    let skip =
        "sed -i 's/return a - b/import unittest; raise unittest.SkipTest(\"x\")/' calc/__init__.py";
    for (guarded, outcome) in [(true, Outcome::Failed), (false, Outcome::Resolved)] {
        let mut task = task(old.clone(), fixture.folder.path());
        task.parameters["guarded"] = guarded.into();
        let (_, verdict) = play(&sandboxes, &task, &[skip]).await;
        let found = SweVerdict::of(&verdict).unwrap();
        assert_eq!(found.outcome, outcome, "{guarded}: {}", found.reason);
    }
    // A file that the hidden tests bring as well keeps them from nothing.
    let own = "printf 'import unittest\n' >tests/test_calc.py";
    let (_, verdict) = play(&sandboxes, &fixture.task(), &[fix, own]).await;
    let found = SweVerdict::of(&verdict).unwrap();
    assert!(verdict.success, "{}", verdict.details);
    assert_eq!(found.left_out, ["tests/test_calc.py"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_validates_an_instance() {
    validates("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_hides_what_is_to_come() {
    hides("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_carries_patches_of_all_kinds() {
    carries("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_bounds_output_and_time() {
    bounds("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_believes_no_tests_that_did_not_run() {
    believes_no_tests_that_did_not_run("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_believe_no_tests_that_did_not_run() {
    believes_no_tests_that_did_not_run("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_validate_an_instance() {
    validates("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_hide_and_carry() {
    hides("local").await;
    carries("local").await;
}

pub(super) fn fake() -> Resources {
    let pool = SandboxPool::new(Arc::new(FakeBackend::new()), PoolConfig::default()).unwrap();
    Resources::with_sandboxes(Sandboxes::new(Arc::new(pool)))
}

#[tokio::test]
async fn what_the_agent_reads_has_the_issue_and_nothing_that_is_hidden() {
    let fixture = Fixture::new();
    let mut env = Swe::open(&fixture.task(), &fake()).unwrap();
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert_eq!(
        first.text,
        "`calc.add` subtracts.\n\nThe repository is in /testbed. A command may take 20 s; submit ends the task."
    );
    assert!(env.oracle_action().unwrap().said().contains("base64"));
    assert_eq!(env.breaking_actions().len(), 2);
    assert!(env.step(&"submit".into()).await.unwrap().terminated);
}

#[tokio::test]
async fn what_is_not_played_is_refused_with_all_reasons() {
    let fixture = Fixture::new();
    let told = |change: &dyn Fn(&mut SweTask)| {
        let mut swe = SweTask::new(fixture.instance.clone());
        change(&mut swe);
        let mut task = fixture.task();
        task.parameters = serde_json::to_value(swe).unwrap();
        match Swe::open(&task, &fake()) {
            Ok(_) => panic!("it opened"),
            Err(error) => {
                assert!(matches!(error, EnvironmentError::Parameters { .. }));
                error.to_string()
            }
        }
    };
    let host = told(&|swe| {
        swe.instance.env.insert("KEY".to_owned(), "${SECRET}".to_owned());
        swe.command_secs = 0;
    });
    assert!(
        host.contains("`SECRET`, which is not handed on") && host.contains("`command_secs` is 0"),
        "{host}"
    );
    let unread = told(&|swe| {
        swe.instance.verification = None;
        swe.instance.unsupported.push("its log: nobody reads it".to_owned());
    });
    assert!(unread.contains("nobody reads it"), "{unread}");
    let elsewhere = told(&|swe| swe.instance.verifier_sandbox = Some(VerifierSandbox::default()));
    assert!(elsewhere.contains("for tasks without a repository"), "{elsewhere}");
    let nowhere = told(&|swe| swe.repository = Some("/no/such/folder".into()));
    assert!(nowhere.contains("/no/such/folder"), "{nowhere}");
    let unknown = told(&|swe| swe.instance.source.image = None);
    assert!(unknown.contains("image"), "{unknown}");
}
