//! `spar show`: trajectories to read; runs are in `show_run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use spar::agent::{MediaStore, StoredTrajectory};
use spar::core::registry::known_names;
use spar::core::{EndReason, Media, Observation, ParsedAction, SeatSpec, Trajectory, Turn};
use spar::envs::seats_of;
use spar::registry::tables;
use spar::trainer::RunFolder;

use super::readable::Readable;
use super::replay::store_of;
use super::show_row::show_row;
use super::show_run::show_run;
use super::train::{named_run, newest_run};
use super::whole_file::write_whole;
use super::{print, print_json};
use crate::cli::ShowArguments;

/// Shows a run, trajectories, or what has a name; writes nothing but media, where these are asked for.
pub(crate) fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    if let (Some(axis), Some(name)) = (&arguments.path, &arguments.name) {
        return show_row(&axis.to_string_lossy(), name, arguments.json);
    }
    let path = match &arguments.path {
        Some(path) => named_run(path, &arguments.runs),
        None => newest_run(&arguments.runs)?,
    };
    let wants_trajectories = arguments.trajectories
        || arguments.failed
        || arguments.success
        || arguments.media.is_some()
        || arguments.episode.is_some();
    if let (Ok(run), false) = (RunFolder::open(&path), wants_trajectories) {
        return show_run(&run, arguments.json);
    }
    if let Some(table) = tables().into_iter().find(|it| path.as_os_str() == it.axis().name)
        && !path.exists()
    {
        let (axis, rows) = (table.axis().name, table.describe());
        let names = known_names("", rows.iter().map(|row| row.name.as_str()));
        bail!("show {axis} without a name: `spar show {axis} NAME`, which may be {names}");
    }
    ensure!(path.exists(), "find a run or trajectories at `{}`: nothing is there", path.display());
    let (folder, _) = store_of(&path)?;
    let is_wanted = |number: usize, trajectory: &Trajectory| match arguments.episode {
        Some(wanted) => wanted == number,
        None => {
            !(arguments.success && !trajectory.success || arguments.failed && trajectory.success)
        }
    };
    let (mut total, mut matching, mut shown) = (0, 0, Vec::new());
    let mut stored = Readable::open(&folder)?;
    for stored in stored.by_ref() {
        let stored = stored?;
        total += 1;
        if is_wanted(total, &stored.trajectory) {
            matching += 1;
            if shown.len() < arguments.limit.max(usize::from(arguments.episode.is_some())) {
                shown.push((total, stored));
            }
        }
    }
    if let Some(wanted) = arguments.episode {
        ensure!(matching == 1, "find trajectory {wanted}: there are {total}, numbered from 1");
    }
    let files =
        arguments.media.as_deref().map(|into| MediaFiles::new(&folder, into)).transpose()?;
    for (_, stored) in &shown {
        files
            .iter()
            .try_for_each(|files| stored.trajectory.media().try_for_each(|it| files.write(it)))?;
    }
    if arguments.json {
        let list: Vec<_> = shown
            .iter()
            .map(|(number, StoredTrajectory { iteration, group, trajectory })| {
                json!({ "number": number, "iteration": iteration, "group": group, "trajectory": trajectory })
            })
            .collect();
        let counts = json!({
            "trajectories": total,
            "matching": matching,
            "unreadable": stored.num_unreadable(),
            "shown": list,
        });
        print_json(&counts)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, stored) in &shown {
        print(&transcript(*number, stored, files.as_ref()))?;
    }
    let more = match matching - shown.len() {
        0 => "",
        _ => "; --limit shows more, --episode one of them",
    };
    print(&format!("{} of {matching} shown, {total} in all{more}\n", shown.len()))?;
    Ok(ExitCode::SUCCESS)
}

/// A trajectory to read.
fn transcript(number: usize, stored: &StoredTrajectory, files: Option<&MediaFiles>) -> String {
    let StoredTrajectory { iteration, group, trajectory } = stored;
    let end = match &trajectory.end {
        EndReason::Terminated if trajectory.success => "solved".to_owned(),
        EndReason::Terminated => "lost".to_owned(),
        EndReason::Truncated { limit } => format!("cut off ({})", limit.name().replace('_', " ")),
        EndReason::Failed { boundary, detail } => format!("failed at {boundary:?}: {detail}"),
    };
    let acting = trajectory.acting().count();
    let summaries = match trajectory.turns.len() - acting {
        0 => String::new(),
        1 => " and 1 summary".to_owned(),
        count => format!(" and {count} summaries"),
    };
    let mut text = format!(
        "━━ episode {number}{} · {} · {} · {end} in {} turns{summaries} · reward {:.2} · iteration {iteration}, \
         group {group}\n",
        seat_of(trajectory),
        trajectory.task,
        trajectory.policy,
        acting,
        trajectory.total_reward(),
    );
    text += &media_text(&trajectory.first_observation, files, "");
    text += &indented(&trajectory.first_observation.text, "");
    for (index, turn) in trajectory.turns.iter().enumerate() {
        text += &turn_text(index + 1, turn, files);
    }
    if let Some(verdict) = &trajectory.verdict
        && !verdict.details.is_empty()
    {
        text += &indented(&format!("[{}]", verdict.details), "      ");
    }
    text + "\n"
}

/// Which seat it is of, where several act: by its name, where the environment is known.
fn seat_of(trajectory: &Trajectory) -> String {
    let name =
        |seats: &[SeatSpec]| seats.get(trajectory.seat.index()).map(|it| it.name.to_string());
    let seats = seats_of(&trajectory.environment).filter(|seats| seats.len() > 1);
    match seats {
        Some(seats) => {
            let name = name(&seats).unwrap_or_else(|| trajectory.seat.to_string());
            format!(" · seat {name}, game {}", trajectory.episode)
        }
        None if trajectory.seat.is_first() => String::new(),
        None => format!(" · seat {}, game {}", trajectory.seat, trajectory.episode),
    }
}

fn turn_text(number: usize, turn: &Turn, files: Option<&MediaFiles>) -> String {
    let mut notes = match turn.is_summary() {
        true => vec!["summary".to_owned()],
        false => vec![format!("state {}", short(&turn.state_key))],
    };
    if turn.step.reward() != 0.0 {
        notes.push(format!("reward {:+.2}", turn.step.reward()));
    }
    match &turn.parsed {
        ParsedAction::Invalid { .. } if turn.is_summary() => {}
        ParsedAction::Invalid { reason } => notes.push(format!("not an action: {reason}")),
        ParsedAction::Action { .. } if !turn.step.valid => {
            notes.push("not executable".to_owned());
        }
        ParsedAction::Action { .. } => {}
    }
    if turn.is_cut_off() {
        notes.push("answer cut off".to_owned());
    }
    let logprob: f32 = turn.sampled.logprobs.iter().sum();
    if logprob != 0.0 {
        notes.push(format!("probability {:.3}", logprob.exp()));
    }
    let said = turn.text.trim();
    if turn.is_summary() {
        return format!("{number:3} ~ [{}]\n{}", notes.join(", "), indented(said, "    ~ "));
    }
    let mut text =
        if let (ParsedAction::Action { action, .. }, true) = (&turn.parsed, said.contains('\n')) {
            format!("{}{number:3} > {}", indented(said, "    | "), action.key())
        } else {
            format!("{number:3} > {said}")
        };
    text += &format!("   [{}]\n", notes.join(", "));
    let observation = &turn.step.observation;
    for result in &observation.results {
        let mark = if result.is_error { "error: " } else { "" };
        text += &indented(&format!("{mark}{}", result.text), "    = ");
    }
    text += &media_text(observation, files, "      ");
    text + &indented(&observation.text, "      ")
}

/// What an observation shows beside its text: the files where these are written, else the hashes.
fn media_text(observation: &Observation, files: Option<&MediaFiles>, indent: &str) -> String {
    let line = |media: &Media| match files {
        Some(files) => format!("{indent}[{} {}]\n", media.media_type, files.path(media).display()),
        None => format!("{indent}[{} {}]\n", media.media_type, media.hash),
    };
    observation.all_media().map(line).collect()
}

/// The media of shown trajectories as files.
struct MediaFiles {
    kept: MediaStore,
    folder: PathBuf,
}

impl MediaFiles {
    /// Those that are kept beside the trajectories of a store, or of a file of one, put into a folder, which is made.
    fn new(trajectories: &Path, into: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(into).with_context(|| format!("make folder `{}`", into.display()))?;
        let store = match trajectories.is_file() {
            true => trajectories.parent().unwrap_or(trajectories),
            false => trajectories,
        };
        Ok(Self { kept: MediaStore::beside(store), folder: into.to_owned() })
    }

    /// Where a medium lies: its hash, with the ending that its type has.
    fn path(&self, media: &Media) -> PathBuf {
        let kind = media.media_type.rsplit('/').next().unwrap_or_default();
        let known = ["png", "jpeg", "webp", "gif", "svg+xml", "wav", "mp4", "pdf"];
        let ending =
            known.iter().find(|it| **it == kind).map_or("bin", |it| it.trim_end_matches("+xml"));
        self.folder.join(format!("{}.{ending}", media.hash))
    }

    /// Writes a medium, unless it is there already.
    fn write(&self, media: &Media) -> anyhow::Result<()> {
        let path = self.path(media);
        if path.is_file() {
            return Ok(());
        }
        let mut media = media.clone();
        self.kept.load_one(&mut media)?;
        write_whole(&path, media.bytes()?)
    }
}

/// The beginning of a state's name, which mostly is a long number.
fn short(key: &str) -> String {
    let line: String = key.chars().take(12).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if key.chars().count() > 12 { line + "…" } else { line }
}

fn indented(text: &str, indent: &str) -> String {
    text.trim().lines().map(|line| format!("{indent}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_put_into_files_of_their_type() {
        let folder = tempfile::tempdir().unwrap();
        let (store, into) = (folder.path().join("store"), folder.path().join("a/b"));
        let picture = Media::new("image/png", *b"a picture");
        MediaStore::beside(&store).keep(&picture).unwrap();
        let files = MediaFiles::new(&store, &into).unwrap();
        // As it stands in a record, without its bytes.
        let named = json_of(&picture);
        files.write(&named).unwrap();
        assert_eq!(fs::read(into.join(format!("{}.png", picture.hash))).unwrap(), b"a picture");
        let observation = Observation { media: vec![named], ..Observation::new("x") };
        let shown = media_text(&observation, Some(&files), "  ");
        assert_eq!(shown, format!("  [image/png {}/{}.png]\n", into.display(), picture.hash));
        assert_eq!(media_text(&observation, None, ""), format!("[image/png {}]\n", picture.hash));

        let lost = Media::new("../../etc/x", *b"nobody kept it");
        assert_eq!(files.path(&lost), into.join(format!("{}.bin", lost.hash)));
        assert!(files.write(&lost).is_ok() && files.write(&json_of(&lost)).is_ok(), "it is there");
        let lost = json_of(&Media::new("image/gif", *b"nor that"));
        assert!(files.write(&lost).unwrap_err().to_string().contains(&lost.hash.to_string()));
    }

    fn json_of(media: &Media) -> Media {
        serde_json::from_value(json!(media)).unwrap()
    }
}
