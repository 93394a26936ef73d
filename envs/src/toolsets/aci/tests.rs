//! What needs no machine.

use super::*;
use crate::ToolsetChoice;

#[test]
fn observations_are_worded_as_by_the_original() {
    assert_eq!(shown("hello\n"), "OBSERVATION:\nhello\n");
    assert_eq!(shown(" \n"), NO_OUTPUT);
    let long = "ä".repeat(100_007);
    let told = shown(&long);
    assert!(told.starts_with(&format!("Observation: {}<response clipped>", "ä".repeat(100_000))));
    assert!(told.contains(" 7 characters were elided."), "{}", &told[200_000..]);
    assert_eq!(through_terminal("a\r\nb\u{1b}[1mc\n"), "a\r\nbc\n");
}

#[test]
fn a_task_is_put_in_words_of_our_own() {
    let aci = ToolsetChoice::new("aci", Map::new()).unwrap();
    let briefing =
        Briefing { task: "It fails.", workdir: "/repo", is_repository: true, command_secs: 30 };
    let text = aci.toolset().opening(&briefing);
    assert!(text.starts_with("The repository in /repo has this issue:"), "{text}");
    assert!(text.contains("<issue>\nIt fails.\n</issue>"), "{text}");
    let other = aci.toolset().opening(&Briefing { is_repository: false, ..briefing });
    assert_eq!(
        other,
        "It fails.\n\nYou work in /repo. When the task is done, run the `submit` command."
    );
    let without = serde_json::json!({ "search": false, "command_secs": 5 });
    let without = ToolsetChoice::new("aci", without.as_object().unwrap().clone()).unwrap();
    assert_eq!(without.toolset().tools().len(), 3);
    assert_eq!(without.toolset().command_limit(), Some(Duration::from_secs(5)));
    let wrong = serde_json::json!({ "max_timeouts": 0, "all_commands_secs": 0 });
    let error = ToolsetChoice::new("aci", wrong.as_object().unwrap().clone()).unwrap_err();
    assert!(error.to_string().contains("max_timeouts is 0"), "{error}");
}
