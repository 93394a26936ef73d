//! `spar tasks show`.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use spar::swe::Instance;
use spar::tasks::{Suite, Task};

use super::super::suites::open_suite;
use super::super::{print, print_json};
use super::description::{Description, asked, solution, swe_task};
use crate::cli::TasksShowArguments;

/// Tests of a kind that are named.
const MAX_NAMED: usize = 20;

/// What is shown as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    description: Description,
    /// What is asked, in full.
    problem: String,
    /// Whether a result can be judged here; absent for tasks that are no instances of software engineering.
    gradable: Option<bool>,
    tests: Tests<'a>,
    patches: Patches,
    task: &'a Task,
}

/// The tests by name.
#[derive(Serialize, Default)]
struct Tests<'a> {
    fail_to_pass: &'a [String],
    pass_to_pass: &'a [String],
}

/// Sizes of patches in bytes, absent where there is none.
#[derive(Serialize, Default)]
struct Patches {
    solution: Option<usize>,
    tests: Option<usize>,
}

/// Shows one task.
pub(super) async fn show(arguments: &TasksShowArguments) -> anyhow::Result<ExitCode> {
    let suite = open_suite(&arguments.suite, arguments.data.as_deref())?;
    let (task, split, index) =
        find(suite.as_ref(), arguments.split.as_deref(), arguments.task.as_deref())?;
    let swe = swe_task(&task);
    let instance = swe.as_ref().map(|swe| &swe.instance);
    let problem = asked(&task, instance).await;
    let description = Description::of(&task, &problem, &split, index);
    if arguments.json {
        let expected = instance.and_then(|it| it.verification.as_ref()?.expected());
        let tests = expected.map(|tests| Tests {
            fail_to_pass: &tests.fail_to_pass,
            pass_to_pass: &tests.pass_to_pass,
        });
        let shown = Shown {
            problem,
            gradable: instance.map(Instance::is_gradable),
            tests: tests.unwrap_or_default(),
            patches: instance.map(patches).unwrap_or_default(),
            description,
            task: &task,
        };
        print_json(&shown)?;
    } else {
        print(&text(&task, &description, &problem, instance)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The task that is meant, with its split and its number there.
fn find(
    suite: &dyn Suite,
    split: Option<&str>,
    named: Option<&str>,
) -> anyhow::Result<(Task, String, usize)> {
    let manifest = suite.manifest();
    let first = manifest
        .splits
        .first()
        .map(|(split, _)| split.as_str())
        .context("find a split: there is none")?;
    let by_number = split.unwrap_or(first);
    let Some(name) = named else {
        return Ok((suite.task(by_number, 0)?, by_number.to_owned(), 0));
    };
    if let Ok(index) = name.parse::<usize>()
        && index < suite.len(by_number)?
    {
        return Ok((suite.task(by_number, index)?, by_number.to_owned(), index));
    }
    let splits: Vec<&str> = match split {
        Some(split) => vec![split],
        None => manifest.splits.iter().map(|(split, _)| split.as_str()).collect(),
    };
    let ids = std::iter::once(name.to_owned())
        .chain(splits.iter().map(|split| format!("{}/{split}/{name}", manifest.name)));
    for id in ids {
        let Ok(task) = suite.task_by_id(&id) else { continue };
        let place =
            splits.iter().find(|split| id.starts_with(&format!("{}/{split}/", manifest.name)));
        let split = place.copied().unwrap_or(by_number);
        // Suites tell a task by its id, and not its number.
        let len = suite.len(split)?;
        let index =
            (0..len).find(|index| suite.task(split, *index).is_ok_and(|it| it.id == task.id));
        return Ok((task, split.to_owned(), index.unwrap_or_default()));
    }
    if let Ok(index) = name.parse::<usize>() {
        // It knows what to say.
        suite.task(by_number, index)?;
    }
    Err(suite
        .task_by_id(name)
        .err()
        .map_or_else(|| anyhow::anyhow!("find task `{name}`"), Into::into))
}

fn patches(instance: &Instance) -> Patches {
    use spar::swe::Gold;
    Patches {
        solution: match &instance.gold {
            Some(Gold::Patch(patch) | Gold::ReversePatch(patch)) => Some(patch.len()),
            _ => None,
        },
        tests: instance.test_patch.as_ref().map(String::len),
    }
}

fn text(
    task: &Task,
    description: &Description,
    problem: &str,
    instance: Option<&Instance>,
) -> anyhow::Result<String> {
    let mut text = format!("{}\n", task.id);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<14} {value}");
    };
    line("environment", &task.environment);
    line("turns", &format!("at most {}", task.max_turns));
    if let Some(instance) = instance {
        line("format", &instance.format);
        for (name, value) in [
            ("repository", &instance.repo),
            ("base commit", &instance.base_commit),
            ("language", &instance.language),
            ("image", &description.image),
            ("difficulty", &instance.difficulty),
        ] {
            line(name, value.as_deref().unwrap_or("-"));
        }
        if let Some(spec) = &instance.source.build {
            line("python", spec.python.as_deref().unwrap_or("-"));
        }
        line("solution", &instance.gold.as_ref().map_or_else(|| "none".to_owned(), solution));
        let tests = instance.test_patch.as_ref().map_or(0, String::len);
        line("test patch", &format!("{tests} bytes"));
        let judged =
            if instance.is_gradable() { "yes" } else { "no: nothing here can judge its result" };
        line("judged here", judged);
        for why in &instance.unsupported {
            line("unsupported", why);
        }
    } else {
        line("tags", &task.tags.join(", "));
        line(
            "parameters",
            &serde_json::to_string(&task.parameters).context("write the parameters")?,
        );
    }
    let _ = write!(text, "\n{}\n", problem.trim_end());
    if let Some(tests) = instance.and_then(|it| it.verification.as_ref()?.expected()) {
        for (what, names) in [("pass", &tests.fail_to_pass), ("go on passing", &tests.pass_to_pass)]
        {
            let counted = if names.len() == 1 { "test has" } else { "tests have" };
            let _ = writeln!(text, "\n{} {counted} to {what}", names.len());
            for name in names.iter().take(MAX_NAMED) {
                let _ = writeln!(text, "  {name}");
            }
            if names.len() > MAX_NAMED {
                let _ = writeln!(text, "  and {} more", names.len() - MAX_NAMED);
            }
        }
    }
    // What rows say goes to a terminal.
    Ok(text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect())
}
