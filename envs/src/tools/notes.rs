//! Notes that last as long as the episode.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, OptionSet, Row, known_names};

use super::{FunctionTool, NamedTool, ToolOutput, ToolRow, spec_of};

const NAME: &str = "notes";
/// Bytes of all notes with their names.
const MOST_BYTES: usize = 1 << 20;
/// Notes.
const MOST_NOTES: usize = 1000;

pub(super) const ROW: ToolRow = Row {
    name: NAME,
    about: "Keeps notes by name, as long as the episode lasts.",
    source: "own",
    formula: "",
    options: OptionSet::of::<NotesOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        specs: || vec![spec_of::<Note>(NAME)],
        open: |given, _| {
            let NotesOptions { notes } = given.read()?;
            Ok(Box::new(FunctionTool::new(NAME, notes, note)))
        },
    },
};

/// Options of the tool `notes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct NotesOptions {
    /// The notes that there are to begin with, by name. Default none.
    notes: BTreeMap<String, String>,
}

impl NamedOptions for NotesOptions {
    fn problems(&self) -> Vec<String> {
        let is_beyond = self.notes.len() > MOST_NOTES || bytes(&self.notes) > MOST_BYTES;
        let problem = format!("notes are more than {MOST_NOTES}, or than {MOST_BYTES} bytes");
        is_beyond.then_some(problem).into_iter().collect()
    }
}

/// Keeps notes: writes one, reads one, removes one, or lists their names.
#[derive(Debug, Deserialize, JsonSchema)]
struct Note {
    /// What is to be done.
    action: NoteAction,
    /// The note, for all but `list`.
    name: Option<String>,
    /// What it is to say, for `write`; takes the place of what it said.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NoteAction {
    Write,
    Read,
    Remove,
    List,
}

fn note(notes: &mut BTreeMap<String, String>, call: Note) -> Result<ToolOutput, String> {
    let Note { action, name, text } = call;
    if action == NoteAction::List {
        let names: Vec<_> = notes.keys().map(String::as_str).collect();
        return Ok(if names.is_empty() {
            "There are no notes.".into()
        } else {
            names.join("\n").into()
        });
    }
    let name = name.ok_or("Which note? Give its `name`.")?;
    if action == NoteAction::Write {
        let text = text.ok_or("What is the note to say? Give its `text`.")?;
        let before = notes.get(&name).map_or(0, |old| old.len() + name.len());
        let after = bytes(notes) - before + name.len() + text.len();
        let is_new = before == 0 && !notes.contains_key(&name);
        if after > MOST_BYTES || (is_new && notes.len() >= MOST_NOTES) {
            return Err(format!("There is no room: {MOST_NOTES} notes, {MOST_BYTES} bytes."));
        }
        notes.insert(name, text);
        return Ok("Written.".into());
    }
    let unknown = || {
        let name: String = name.chars().take(100).collect();
        match known_names(&name, notes.keys().map(String::as_str)) {
            none if none.is_empty() => format!("There is no note `{name}`, nor any other."),
            known => format!("There is no note `{name}`, only {known}."),
        }
    };
    match action {
        NoteAction::Remove if notes.contains_key(&name) => {
            notes.remove(&name);
            Ok("Removed.".into())
        }
        NoteAction::Read if notes.contains_key(&name) => Ok(notes[&name].as_str().into()),
        _ => Err(unknown()),
    }
}

fn bytes(notes: &BTreeMap<String, String>) -> usize {
    notes.iter().map(|(name, text)| name.len() + text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_written_read_and_removed() {
        let mut notes = BTreeMap::new();
        let mut call = |action, name: &str, text: Option<String>| {
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            note(&mut notes, Note { action, name, text }).map(|output| output.text)
        };
        let told = |text: &str| Err(text.to_owned());
        assert_eq!(call(NoteAction::Read, "a", None), told("There is no note `a`, nor any other."));
        assert_eq!(call(NoteAction::Write, "a", Some("1".into())), Ok("Written.".into()));
        assert_eq!(call(NoteAction::Write, "b", Some(String::new())), Ok("Written.".into()));
        assert_eq!(call(NoteAction::List, "", None), Ok("a\nb".into()));
        assert_eq!(call(NoteAction::Read, "a", None), Ok("1".into()));
        assert_eq!(call(NoteAction::Remove, "a", None), Ok("Removed.".into()));
        assert_eq!(call(NoteAction::Remove, "a", None), told("There is no note `a`, only `b`."));
        assert!(
            call(NoteAction::Write, "", None).is_err()
                && call(NoteAction::Write, "c", None).is_err()
        );
        let long = "x".repeat(MOST_BYTES - 3);
        assert!(call(NoteAction::Write, "c", Some(long.clone())).is_ok(), "it has room");
        assert!(call(NoteAction::Write, "d", Some("more".into())).is_err());
        assert!(call(NoteAction::Write, "c", Some(long)).is_ok(), "it takes its own place");
    }
}
