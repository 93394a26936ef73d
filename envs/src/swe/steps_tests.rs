//! Tasks of several steps over real backends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use spar_core::{Seed, Step, Verdict};
use spar_swe::grade::Outcome;
use spar_swe::{FolderSuite, NetworkPolicy, RewardStrategy, Stage};
use spar_tasks::{SweTask, Task};
use tempfile::TempDir;

use super::fixture::{task, write_steps};
use super::tests::{fake, one, sandboxes};
use super::{Swe, SweVerdict};
use crate::toolsets::ToolsetChoice;
use crate::{Environment, EnvironmentError, Resources, validate_suite};

const FIX: &str = "sed -i 's/a - b/a + b/' calc/__init__.py";
const EXTEND: &str = "printf '\\n\\ndef sub(a, b):\\n    return a - b\\n' >>calc/__init__.py";

/// The repository, and its task with changed steps.
fn repository(change: impl Fn(&mut SweTask)) -> (TempDir, Task) {
    let folder = tempfile::tempdir().unwrap();
    let mut task = task(write_steps(folder.path()), folder.path());
    let mut parameters: SweTask = serde_json::from_value(task.parameters).unwrap();
    change(&mut parameters);
    task.parameters = serde_json::to_value(parameters).unwrap();
    (folder, task)
}

/// Plays commands, and leaves the rest to the verdict.
pub(super) async fn play(backend: &str, task: &Task, commands: &[&str]) -> (Vec<Step>, Verdict) {
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let mut env = Swe::open(task, &resources).unwrap();
    env.reset(Seed::from_u64(0)).await.unwrap();
    let mut steps = Vec::new();
    for command in commands {
        steps.push(env.step(&(*command).into()).await.unwrap());
    }
    let verdict = env.verify().await.unwrap().unwrap();
    env.close().await.unwrap();
    (steps, verdict)
}

fn shown(step: &Step) -> &str {
    &step.observation.text
}

/// The solution of each step resolves it, nothing and what breaks earn nothing, and twice is the same.
async fn validates(backend: &str, task: &Task, turns: u64) {
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let go_on = |_, _| ControlFlow::Continue(());
    let report =
        validate_suite(&one(task.clone()), &["test"], None, &resources, go_on).await.unwrap();
    assert!(report.is_valid(), "{:#?}", report.failures);
    assert_eq!((report.num_solved, report.num_oracle_turns), (1, turns));
}

/// A step is judged when it is submitted; the next is shown then, and nothing of it before.
async fn goes_on_in_a_repository(backend: &str) {
    let (_folder, task) = repository(|_| {});
    validates(backend, &task, 4).await;
    let look = "grep -rl 'test_add_negative\\|calc\\.sub(5' /testbed /tmp /opt --include=*.py 2>/dev/null; ls /tmp/.spar* 2>/dev/null; git log --all --oneline | wc -l";
    let commands =
        [FIX, "cd tests && export A=b", "submit", look, "pwd; echo $A", "cd ..", EXTEND, "submit"];
    let (steps, verdict) = play(backend, &task, &commands).await;
    let second = &steps[2];
    assert_eq!(
        shown(second),
        "The task was submitted.\n\n`calc.sub` is missing.\n\nThe repository is in /testbed. A command may take 20 s; submit ends the task."
    );
    assert_eq!((second.terminated, second.reward(), second.rewards.len()), (false, 0.5, 1));
    assert_eq!(second.rewards[0].name, "steps");
    assert!(steps[..2].iter().all(|step| !shown(step).contains("sub`")));
    // The tests of the first step left nothing, and the shell is the same.
    assert_eq!(
        (shown(&steps[3]), shown(&steps[4])),
        ("1\n[exit code 0]", "/testbed/tests\nb\n[exit code 0]")
    );
    assert!(steps[7].terminated && steps[7].rewards.is_empty());
    assert_eq!((verdict.success, verdict.reward()), (true, 0.5));
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((found.outcome, found.reward, found.submitted), (Outcome::Resolved, 1.0, true));
    let names: Vec<_> = found.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["add", "sub"]);
    assert!(found.patch.unwrap().contains("+def sub"));
    assert!(found.steps.iter().all(|step| step.verdict.run.is_some()));
}

/// A step that came to nothing earns nothing, and ends the task where it had to come to something.
async fn pays_step_by_step(backend: &str) {
    let (_folder, task) = repository(|_| {});
    let (steps, verdict) = play(backend, &task, &["submit", FIX, EXTEND, "submit"]).await;
    assert_eq!((steps[0].reward(), steps[0].terminated), (0.0, false));
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((verdict.success, verdict.reward(), found.outcome), (false, 0.5, Outcome::Partial));
    assert_eq!(found.reason, "1 of 2 steps are resolved, 2 were reached");
    // A limit that ends the episode has the step judged as it is.
    let (_, verdict) = play(backend, &task, &[FIX, "submit", EXTEND]).await;
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((verdict.success, found.reward, found.submitted), (true, 1.0, false));
    let least = |task: &mut SweTask| {
        task.instance.stages[0].min_reward = BTreeMap::from([("reward".to_owned(), 1.0)]);
        task.instance.stage_reward = Some(RewardStrategy::Final);
    };
    let (_folder, strict) = repository(least);
    let (steps, verdict) = play(backend, &strict, &["submit"]).await;
    assert!(steps[0].terminated && shown(&steps[0]) == "The task was submitted.");
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((verdict.reward(), found.outcome, found.steps.len()), (0.0, Outcome::Failed, 1));
    assert!(
        found.reason.starts_with(
            "0 of 2 steps are resolved, 1 were reached; `add`: its `reward` is 0, at least 1 is asked for; `add`: 0 of 2"
        ),
        "{}",
        found.reason
    );
    // Only the last one counts.
    let (steps, verdict) = play(backend, &strict, &[FIX, "submit", EXTEND, "submit"]).await;
    assert_eq!((steps[1].reward(), verdict.reward(), verdict.success), (0.0, 1.0, true));
}

pub(super) fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A folder of Harbor with two steps: a letter is written, and then answered.
fn harbor(folder: &Path, more: &str) -> Task {
    let task = folder.join("letters");
    write(
        &task,
        "task.toml",
        &format!(
            "schema_version = \"1.1\"\n[environment]\nworkdir = \"/app\"\nallow_internet = false\n[[steps]]\nname = \"write\"\nmin_reward = {{ found = 0.5 }}\n{more}[[steps]]\nname = \"answer\"\n"
        ),
    );
    write(&task, "environment/Dockerfile", "FROM scratch\n");
    write(&task, "steps/write/instruction.md", "Write `hello` into /app/letter.");
    write(&task, "steps/answer/instruction.md", "Answer what the letter asks, in /app/answer.");
    write(&task, "steps/answer/workdir/question", "the second secret\n");
    write(&task, "steps/answer/workdir/setup.sh", "echo ready >made-ready\n");
    write(
        &task,
        "steps/write/tests/test.sh",
        "echo 'the first secret' >/app/left-by-tests\n[ \"$(cat /app/letter)\" = hello ] && found=1 || found=0\necho \"{\\\"found\\\": $found, \\\"style\\\": 1}\" >/logs/verifier/reward.json\n",
    );
    write(
        &task,
        "steps/answer/tests/test.sh",
        "[ -f /app/left-by-tests ] && exit 1\n[ \"$(cat /app/answer)\" = yes ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n",
    );
    write(&task, "steps/write/solution/solve.sh", "printf hello >/app/letter\n");
    write(&task, "steps/answer/solution/solve.sh", "printf yes >/app/answer\n");
    task_of(&task)
}

/// The task of a folder. The image is that of the tests, which has what scripts need.
pub(super) fn task_of(folder: &Path) -> Task {
    let instance = FolderSuite::open(folder).unwrap().instances().next().unwrap().unwrap();
    let mut parameters = SweTask::new(instance);
    parameters.command_secs = 20;
    Task {
        id: "own/test/folder".to_owned(),
        environment: "swe".to_owned(),
        parameters: serde_json::to_value(parameters).unwrap(),
        instruction: String::new(),
        max_turns: 8,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}

/// Steps of a folder are judged in a copy of the sandbox: neither the tests nor what they did are there afterwards.
async fn goes_on_in_a_folder(backend: &str) {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(folder.path(), "");
    let look = "ls -a /app; ls /tests /logs/verifier /solution 2>/dev/null; true";
    let commands = [
        look,
        "(sleep 600 &) ; printf hello >letter",
        "submit",
        look,
        "cat question made-ready; grep -qsx sleep /proc/[0-9]*/comm && echo sleeps",
        "printf yes >answer",
        "submit",
    ];
    let (steps, verdict) = play(backend, &task, &commands).await;
    assert_eq!(shown(&steps[0]), ".\n..\n[exit code 0]");
    assert_eq!((steps[2].reward(), steps[2].terminated), (0.5, false), "{}", verdict.details);
    assert!(shown(&steps[2]).contains("Answer what the letter asks"));
    assert_eq!(shown(&steps[3]), ".\n..\nletter\nmade-ready\nquestion\n[exit code 0]");
    // What the agent left running is there as it was.
    assert_eq!(shown(&steps[4]), "the second secret\nready\nsleeps\n[exit code 0]");
    assert_eq!((verdict.success, verdict.reward()), (true, 0.5), "{}", verdict.details);
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!(
        found.steps[0].verdict.rewards,
        [("found".into(), 1.0), ("style".into(), 1.0)].into()
    );
    // A named reward under its least ends the task, and what was earned in part stays.
    let (steps, verdict) = play(backend, &task, &["submit"]).await;
    assert!(steps[0].terminated);
    let found = SweVerdict::of(&verdict).unwrap();
    assert_eq!((found.reward, steps[0].reward(), verdict.reward()), (0.25, 0.25, 0.0));
    assert!(found.reason.contains("its `found` is 0, at least 0.5"), "{}", found.reason);
}

/// The time of a step ends it, and not the task.
async fn ends_a_step_in_time(backend: &str) {
    let folder = tempfile::tempdir().unwrap();
    let task = harbor(folder.path(), "[steps.agent]\ntimeout_sec = 2\n");
    let commands =
        ["printf hello >letter; sleep 30", "echo too late >letter", "printf yes >answer", "submit"];
    let (steps, verdict) = play(backend, &task, &commands).await;
    assert!(shown(&steps[0]).contains("[ended at its limit of 2 s]"), "{}", shown(&steps[0]));
    assert!(
        shown(&steps[1])
            .starts_with("The time for this was over before that, and it was not done.\n\nAnswer"),
        "{}",
        shown(&steps[1])
    );
    assert_eq!((steps[1].reward(), verdict.success), (0.5, true), "{}", verdict.details);
}

/// A published scaffold is told the next step in its own words, with nothing remembered.
async fn puts_steps_in_words_of_a_scaffold(backend: &str) {
    let (_folder, task) = repository(|_| {});
    let resources = Resources::with_sandboxes(sandboxes(backend));
    let mut env = Swe::open(&task, &resources).unwrap();
    env.use_tools();
    assert!(env.use_toolset(&ToolsetChoice::new("mini", Default::default()).unwrap()));
    let first = env.reset(Seed::from_u64(0)).await.unwrap();
    assert!(first.text.contains("`calc.add` subtracts.") && !first.text.contains("calc.sub"));
    let mut rewards = Vec::new();
    while let Some(action) = env.oracle_action() {
        let step = env.step(&action).await.unwrap();
        assert_eq!(step.observation.results.len(), 1);
        rewards.push(step.reward());
        if step.reward() > 0.0 {
            let text = first.text.replace("`calc.add` subtracts.", "`calc.sub` is missing.");
            assert_eq!(step.observation.text, text);
        }
        if step.terminated {
            break;
        }
    }
    let verdict = env.verify().await.unwrap().unwrap();
    assert_eq!((rewards, verdict.success), (vec![0.0, 0.5, 0.0, 0.0], true), "{}", verdict.details);
    env.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_goes_on_from_step_to_step() {
    goes_on_in_a_repository("docker").await;
    goes_on_in_a_folder("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Docker and its image spar-base"]
async fn docker_base_pays_step_by_step() {
    pays_step_by_step("docker").await;
    ends_a_step_in_time("docker").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_go_on_from_step_to_step() {
    goes_on_in_a_repository("local").await;
    goes_on_in_a_folder("local").await;
    puts_steps_in_words_of_a_scaffold("local").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs namespaces"]
async fn namespaces_pay_step_by_step() {
    pays_step_by_step("local").await;
    ends_a_step_in_time("local").await;
}

#[tokio::test]
async fn the_time_of_all_steps_is_the_tasks() {
    let (_folder, task) = repository(|task| {
        task.instance.stages[0].agent_secs = Some(20);
        task.instance.stages[1].agent_secs = Some(40);
    });
    let env = Swe::open(&task, &fake()).unwrap();
    assert_eq!(env.time_rules().task, Some(Duration::from_secs(60)));
    let (_folder, task) = repository(|task| task.instance.stages[0].agent_secs = Some(20));
    assert_eq!(Swe::open(&task, &fake()).unwrap().time_rules().task, None);
    assert_eq!(env.breaking_actions().len(), 3);
}

#[tokio::test]
async fn steps_that_cannot_be_played_are_refused_with_all_reasons() {
    let told = |change: &dyn Fn(&mut Vec<Stage>)| {
        let (_folder, task) = repository(|task| change(&mut task.instance.stages));
        match Swe::open(&task, &fake()) {
            Ok(_) => panic!("it opened"),
            Err(error) => {
                assert!(matches!(error, EnvironmentError::Parameters { .. }));
                error.to_string()
            }
        }
    };
    let several = told(&|stages| {
        stages[0].network = Some(NetworkPolicy::Allowlist(vec!["a/b".to_owned()]));
        stages[1].setup = vec!["true".to_owned()];
    });
    for part in ["step `add`: `network` allows `a/b`", "step `sub`: files and commands of a step"] {
        assert!(several.contains(part), "{several}");
    }
    let mixed = told(&|stages| {
        stages[1].verification = Some(spar_swe::Verification::RewardFile {
            script: "true".to_owned(),
            files: vec!["/r".to_owned()],
        });
    });
    assert!(mixed.contains("step `sub`: some steps are judged by patches"), "{mixed}");
    let unread = told(&|stages| stages[1].verification = None);
    assert!(unread.contains("step `sub`: nothing here can judge its result"), "{unread}");
    let many = told(&|stages| *stages = vec![stages[0].clone(); 101]);
    assert!(many.contains("101 stages, and at most 100"), "{many}");
}
