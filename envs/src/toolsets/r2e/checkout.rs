//! What is read of a checkout of R2E-Gym: nothing of it is part of this program.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Where the agents of a checkout lie.
const HUB: &str = "src/r2egym/agenthub";
/// Bytes of a file of it.
const MAX_BYTES: u64 = 1 << 20;
/// Tools of a configuration.
const MAX_TOOLS: usize = 32;
/// The tool by which a task is submitted.
pub(super) const FINISH: &str = "finish";
/// The tool that runs a command of a shell.
pub(super) const BASH: &str = "execute_bash";

/// What is read of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The message of the system.
    pub system: String,
    /// The first message, with `{problem_statement}` in it as Python's `str.format` has it.
    pub(super) instance: String,
    /// What is said to an answer without a call.
    pub(super) reminder: String,
    /// The tools by their names, each a program.
    pub(super) tools: Vec<(String, String)>,
}

/// The part of a configuration that is kept to. What is about the model and its server means nothing here.
#[derive(Deserialize)]
struct Configuration {
    system_prompt: String,
    instance_prompt: String,
    command_files: Vec<PathBuf>,
}

impl Checkout {
    /// Reads a checkout: its configuration for models whose calls are text, the programs that this names, and what is said to
    /// answers without a call.
    ///
    /// # Errors
    ///
    /// What is not there, is too large, or cannot be kept to.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let hub = folder.join(HUB);
        if !hub.is_dir() {
            return Err(format!(
                "`{}` is no checkout of R2E-Gym: it has no folder `{HUB}`",
                folder.display()
            ));
        }
        let path = hub.join("config/edit_non_fn_calling.yaml");
        let found: Configuration = yaml_serde::from_str(&text(&path)?)
            .map_err(|error| format!("`{}`: {error}", path.display()))?;
        if found.command_files.is_empty() || found.command_files.len() > MAX_TOOLS {
            let count = found.command_files.len();
            return Err(format!("`command_files` has {count} entries, must have 1 to {MAX_TOOLS}"));
        }
        let mut tools = Vec::new();
        for file in &found.command_files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            let is_program = file.extension().is_some_and(|end| end == "py");
            if name.is_empty() || !name.chars().all(is_word) || !is_program {
                return Err(format!("`command_files`: `{}` is no program", file.display()));
            }
            // Wherever the configuration says that they lie, they are those of this checkout.
            tools.push((name.clone(), text(&hub.join("tools").join(format!("{name}.py")))?));
        }
        if !tools.iter().any(|(name, _)| name == BASH) {
            return Err(format!("`command_files` has no `{BASH}`"));
        }
        let constants = hub.join("__init__.py");
        let reminder = constant(&text(&constants)?, "CONTINUE_MSG")
            .ok_or_else(|| format!("`{}` has no `CONTINUE_MSG`", constants.display()))?;
        filled(&found.instance_prompt, "")?;
        Ok(Self { system: found.system_prompt, instance: found.instance_prompt, reminder, tools })
    }

    /// A hash of all that is read.
    pub fn hash(&self) -> String {
        let Self { system, instance, reminder, tools } = self;
        let mut hasher = blake3::Hasher::new();
        let tools = tools.iter().flat_map(|(name, program)| [name, program]);
        for part in [system, instance, reminder].into_iter().chain(tools) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// What a tool is given a command of a shell by: later versions have renamed it.
    pub(super) fn command_name(&self) -> &'static str {
        let program = self.tools.iter().find(|(name, _)| name == BASH);
        match program.is_some_and(|(_, program)| program.contains("\"--cmd\"")) {
            true => "cmd",
            false => "command",
        }
    }
}

fn text(path: &Path) -> Result<String, String> {
    let problem = |problem: String| format!("`{}`: {problem}", path.display());
    let size = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(problem(format!("it has more than {MAX_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))
}

/// A text of three quotes that a module of Python gives a name to.
fn constant(module: &str, name: &str) -> Option<String> {
    let start = format!("{name} = \"\"\"");
    // Not one that is commented out.
    let at = module.match_indices(&start).map(|(at, _)| at);
    let at = at.into_iter().find(|at| *at == 0 || module[..*at].ends_with('\n'))?;
    let (text, _) = module[at + start.len()..].split_once("\"\"\"")?;
    Some(text.to_owned())
}

/// A text of Python's `str.format` with the task in it. What else the original fills in is nothing here, but for what shows
/// the hidden tests.
pub(super) fn filled(text: &str, task: &str) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        filled += &rest[..at];
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            filled.push_str(&rest[..1]);
            rest = behind;
            continue;
        }
        let (name, behind) = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .ok_or("`instance_prompt` has a brace that stands alone")?;
        match name {
            "problem_statement" => filled += task,
            "test_patch_hint" | "candidate_patch" => {}
            "candidate_patch_correctness" => filled += "incorrect",
            other => {
                return Err(format!("`instance_prompt` asks for `{other}`, which nobody is shown"));
            }
        }
        rest = behind;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_as_python_does() {
        let text = "a {{b}} {problem_statement}{test_patch_hint} c";
        assert_eq!(filled(text, "{x}").unwrap(), "a {b} {x} c");
        assert!(filled("{gt_patch}", "").unwrap_err().contains("`gt_patch`"));
        assert!(filled("{a", "").is_err() && filled("a}", "").is_err());
    }

    #[test]
    fn constants_that_are_commented_out_are_none() {
        let module = "# MSG = \"\"\"old\n# \"\"\"\nMSG = \"\"\"\nnew\n\"\"\"\n";
        assert_eq!(constant(module, "MSG").unwrap(), "\nnew\n");
        assert_eq!(constant(module, "OTHER"), None);
    }
}
