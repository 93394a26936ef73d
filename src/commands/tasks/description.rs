use serde::{Deserialize, Serialize};
use spar::core::Seed;
use spar::envs::{Ors, Process, Resources, needs_browser, needs_sandbox, open_environment};
use spar::swe::{Gold, Instance};
use spar::tasks::{SweTask, Task};

/// Characters of what is asked that stand in a list.
const SHOWN: usize = 60;

/// What a list tells of a task.
#[derive(Debug, Serialize)]
pub(super) struct Description {
    pub(super) id: String,
    pub(super) split: String,
    pub(super) index: usize,
    pub(super) environment: String,
    /// `owner/name`.
    pub(super) repository: Option<String>,
    pub(super) language: Option<String>,
    /// The first line of what is asked.
    pub(super) asked: String,
    /// Tests that fail and have to pass; absent where tests are not named.
    pub(super) fail_to_pass: Option<usize>,
    /// Tests that pass and have to go on passing.
    pub(super) pass_to_pass: Option<usize>,
    pub(super) image: Option<String>,
    /// What the row or folder says that is not honoured.
    pub(super) unsupported: Vec<String>,
    pub(super) tags: Vec<String>,
}

impl Description {
    /// Of a task that asks for this.
    pub(super) fn of(task: &Task, asked: &str, split: &str, index: usize) -> Self {
        let swe = swe_task(task);
        let instance = swe.as_ref().map(|swe| &swe.instance);
        let expected = instance.and_then(|it| it.verification.as_ref()?.expected());
        Self {
            id: task.id.clone(),
            split: split.to_owned(),
            index,
            environment: task.environment.clone(),
            repository: instance.and_then(|it| it.repo.clone()),
            language: instance.and_then(|it| it.language.clone()),
            asked: first_line(asked),
            fail_to_pass: expected.map(|tests| tests.fail_to_pass.len()),
            pass_to_pass: expected.map(|tests| tests.pass_to_pass.len()),
            image: swe
                .as_ref()
                .and_then(|swe| swe.image.clone().or_else(|| swe.instance.source.image.clone())),
            unsupported: instance.map(|it| it.unsupported.clone()).unwrap_or_default(),
            tags: task.tags.clone(),
        }
    }
}

/// The instance of a task of software engineering, and how it is played.
pub(super) fn swe_task(task: &Task) -> Option<SweTask> {
    (task.environment == "swe").then(|| SweTask::deserialize(&task.parameters).ok())?
}

/// What a task asks for, in full: what its parameters say, or else what its episodes begin with, or else how it is played.
pub(super) async fn asked(task: &Task, instance: Option<&Instance>) -> String {
    if let Some(instance) = instance {
        return instance.issue.problem.clone();
    }
    let own = ["question", "prompt", "instruction", "problem", "ticket"]
        .iter()
        .find_map(|name| task.parameters.get(name)?.as_str());
    match own {
        Some(own) => own.to_owned(),
        None => first_words(task).await.unwrap_or_else(|| task.instruction.clone()),
    }
}

/// What an episode of the task begins with; absent where that is nothing, or takes a sandbox, a browser or somebody else's
/// program.
async fn first_words(task: &Task) -> Option<String> {
    let is_elsewhere = [Ors::NAME, Process::NAME].contains(&task.environment.as_str());
    if is_elsewhere || needs_sandbox(task) || needs_browser(&task.environment) {
        return None;
    }
    let resources = Resources::default().without_graders();
    let mut environment = open_environment(task, &resources).ok()?;
    let first = environment.reset(Seed::from_u64(0)).await.ok()?;
    let parts = [first.instruction.as_deref().unwrap_or_default(), &first.text];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    (!said.is_empty()).then(|| said.join("\n"))
}

/// The first line that says something, shortened.
fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain = line.chars().filter(|c| !c.is_control());
    let mut shown: String = plain.clone().take(SHOWN).collect();
    if plain.count() > SHOWN {
        shown.push('…');
    }
    shown
}

/// What is known to solve an instance, in a few words.
pub(super) fn solution(gold: &Gold) -> String {
    match gold {
        Gold::Patch(patch) => format!("a patch of {} bytes", patch.len()),
        Gold::ReversePatch(patch) => {
            format!("a patch of {} bytes, the other way round", patch.len())
        }
        Gold::Files(files) => format!("{} files", files.len()),
        Gold::Commit(commit) => format!("commit {commit}"),
        Gold::Script { .. } => "a script".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_first_line_without_anything_that_a_terminal_would_obey() {
        assert_eq!(first_line("\n  \nfix \u{1b}[31mit\nnow"), "fix [31mit");
        let long = first_line(&"é".repeat(100));
        assert_eq!((long.chars().count(), long.ends_with('…')), (SHOWN + 1, true));
    }
}
