//! The scaffold of a checkout of R2E-Gym.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::json;
use spar_envs::toolsets::R2eCheckout;

use super::Scaffold;
use super::mini_config::Configured;

/// Turns of an episode, by the original's absolute limit.
const MAX_TURNS: u32 = 50;

/// The scaffold of a checkout: its message of the system, and a toolset that reads the rest of it.
pub(super) fn read(folder: &Path) -> Result<Configured, String> {
    // Scaffolds live as long as the program: each is kept once, however often it is named.
    static KNOWN: OnceLock<Mutex<HashMap<String, &'static Scaffold>>> = OnceLock::new();
    let place = folder.canonicalize();
    let place = place.map_err(|error| format!("`{}`: {error}", folder.display()))?;
    let checkout = R2eCheckout::read(&place)?;
    let (hash, place) = (checkout.hash(), place.to_string_lossy().into_owned());
    let mut known =
        KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let scaffold = *known.entry(format!("{hash} {place}")).or_insert_with(|| {
        // A text that is no template, as one.
        let system = format!("{{{{ {} }}}}", json!(checkout.system));
        Box::leak(Box::new(Scaffold {
            system: Some(kept(system)),
            toolset: Some(kept(json!({ "kind": "r2e", "folder": place }).to_string())),
            parser: "whole",
            max_turns: Some(MAX_TURNS),
            ..Scaffold::PLAIN
        }))
    });
    Ok(Configured { scaffold, hash })
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use crate::ScaffoldChoice;

    #[test]
    fn a_checkout_is_a_scaffold() {
        let folder = tempfile::tempdir().unwrap();
        let hub = folder.path().join("src/r2egym/agenthub");
        let put = |path: &str, text: &str| {
            let path = hub.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let named = || ScaffoldChoice::named(&format!("r2e:{}", folder.path().display()));
        assert!(named().unwrap_err().to_string().contains("is no checkout of R2E-Gym"));
        put(
            "config/edit_non_fn_calling.yaml",
            "system_prompt: |-\n  Call {{ \"it\" }} \\n\n  {% as %} told.\ninstance_prompt: 'Do {problem_statement}'\n\
             command_files: ['./a/execute_bash.py']\nllm_name: x\n",
        );
        put("__init__.py", "CONTINUE_MSG = \"\"\"Go on.\"\"\"\n");
        put("tools/execute_bash.py", "#!/usr/bin/python3\n");
        let choice = named().unwrap();
        assert_eq!(choice.system("", &[]).unwrap(), "Call {{ \"it\" }} \\n\n{% as %} told.");
        assert_eq!((choice.scaffold().max_turns, choice.scaffold().parser), (Some(50), "whole"));
        let briefing = spar_envs::toolsets::Briefing {
            task: "it",
            workdir: "/a",
            is_repository: true,
            command_secs: 5,
        };
        let opening = choice.toolset().unwrap().toolset().opening(&briefing);
        assert_eq!(opening, "Do it\nSteps Remaining: 40");
        // What stands in records changes with every file that is read.
        let before = choice.version();
        put("tools/execute_bash.py", "#!/usr/bin/python3\nprint()\n");
        assert_ne!(named().unwrap().version(), before);
        put("__init__.py", "");
        assert!(named().unwrap_err().to_string().contains("CONTINUE_MSG"));
    }
}
