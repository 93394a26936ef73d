//! `spar redact`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use spar::agent::redact_shard;
use spar::core::redaction::{self, Redactor};
use spar::recipe::Recipe;
use spar::trainer::{RunFolder, write_atomically};

use super::{print, print_json};
use crate::cli::RedactArguments;

/// Folders within each other that are looked through.
const MAX_DEPTH: usize = 8;
/// Bytes of a file that is looked through.
const MAX_BYTES: u64 = 4 << 30;

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Finding {
    file: PathBuf,
    /// Records, lines or texts with secrets; 0 where it was not looked through.
    places: usize,
    /// Why it was left as it is, or not looked through.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<&'static str>,
}

/// Takes secrets out of files, or tells which have some.
pub(crate) fn redact(arguments: &RedactArguments) -> anyhow::Result<ExitCode> {
    arguments.secrets.config().keep()?;
    let path = &arguments.path;
    if let Ok(run) = RunFolder::open(path) {
        keep_those_of_run(&run, path)?;
        // Whoever writes it would write on behind what takes the place of its files.
        let _lock = if arguments.check { None } else { Some(run.lock()?) };
        return carry_out(arguments);
    }
    carry_out(arguments)
}

fn carry_out(arguments: &RedactArguments) -> anyhow::Result<ExitCode> {
    let Some(redactor) = redaction::current() else {
        bail!(
            "look for secrets: none is known, name them by --secret-env, --secret-file or --secret-rule"
        );
    };
    let mut findings = Vec::new();
    let path = &arguments.path;
    let root = fs::canonicalize(path).with_context(|| format!("read `{}`", path.display()))?;
    let search = Search { root, redactor: &redactor, is_check: arguments.check };
    search.look(path, 0, &mut findings)?;
    if arguments.json {
        print_json(&findings)?;
    } else {
        print(&told(&findings, arguments.check))?;
    }
    let is_left = |finding: &Finding| arguments.check || finding.left.is_some();
    Ok(if findings.iter().any(is_left) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a run itself was told to keep, as far as that is known here.
fn keep_those_of_run(run: &RunFolder, path: &Path) -> anyhow::Result<()> {
    let recipe = Recipe::of_run(&path.display().to_string(), &run.config()?)?;
    if let Err(error) = recipe.secrets.keep() {
        eprintln!("warning: could not {error:#}");
    }
    let endpoint = recipe.judge.as_ref().and_then(|judge| judge.endpoint.as_ref());
    if let Some(name) = endpoint.and_then(|endpoint| endpoint.api_key_env.as_ref())
        && let Ok(key) = std::env::var(name)
        && let Err(error) = redaction::keep(name, &key)
    {
        eprintln!("warning: could not {error}");
    }
    Ok(())
}

fn told(findings: &[Finding], is_check: bool) -> String {
    if findings.is_empty() {
        return "no secrets that are known\n".to_owned();
    }
    let mut text = String::new();
    for Finding { file, places, left } in findings {
        let done = match (left, is_check) {
            (Some(why), _) => format!("left as it is: {why}"),
            (None, true) => "found".to_owned(),
            (None, false) => "redacted".to_owned(),
        };
        text += &format!("{:<48} {places:>6} places {done}\n", file.display().to_string());
    }
    text
}

/// What is looked through, and for what.
struct Search<'a> {
    /// Where it began.
    root: PathBuf,
    redactor: &'a Redactor,
    is_check: bool,
}

impl Search<'_> {
    /// Looks through a file or a folder, weights too. What is not looked through is told.
    fn look(&self, path: &Path, depth: usize, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
        let reading = || format!("read `{}`", path.display());
        let mut skip = |why| {
            findings.push(Finding { file: path.to_owned(), places: 0, left: Some(why) });
            Ok(())
        };
        let kind = fs::symlink_metadata(path).with_context(reading)?;
        if kind.is_symlink() {
            // What it leads to is looked through in its own place, if that is inside.
            let is_inside = fs::canonicalize(path).is_ok_and(|to| to.starts_with(&self.root));
            return if is_inside && depth > 0 { Ok(()) } else { skip("it is a link") };
        }
        if kind.is_dir() {
            if depth > MAX_DEPTH {
                return skip("it is too deep among folders: look through it by itself");
            }
            let entries: Result<Vec<_>, _> = fs::read_dir(path).with_context(reading)?.collect();
            let mut paths: Vec<_> =
                entries.with_context(reading)?.into_iter().map(|entry| entry.path()).collect();
            paths.sort();
            return paths.iter().try_for_each(|path| self.look(path, depth + 1, findings));
        }
        if !kind.is_file() {
            return skip("it is neither a file nor a folder");
        }
        if kind.len() > MAX_BYTES {
            return skip("it has more than 4 GiB");
        }
        let (places, left) = in_file(path, self.redactor, self.is_check)?;
        if places > 0 {
            findings.push(Finding { file: path.to_owned(), places, left });
        }
        Ok(())
    }
}

/// The places with secrets in a file, which are replaced where nothing speaks against it.
fn in_file(
    path: &Path,
    redactor: &Redactor,
    is_check: bool,
) -> anyhow::Result<(usize, Option<&'static str>)> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with(".jsonl.zst") {
        let places = redact_shard(path, redactor, !is_check);
        return Ok((places.with_context(|| format!("redact `{}`", path.display()))?, None));
    }
    let bytes = fs::read(path).with_context(|| format!("read `{}`", path.display()))?;
    if !redactor.is_match(&bytes) {
        return Ok((0, None));
    }
    if name == "config.toml" {
        return Ok((
            1,
            Some("it is what `spar resume` goes by; take the secret out of the recipe"),
        ));
    }
    let lines: Option<Vec<&[u8]>> = match Path::new(name).extension().and_then(|it| it.to_str()) {
        Some("jsonl") => Some(bytes.split_inclusive(|byte| *byte == b'\n').collect()),
        Some("json") => Some(vec![&bytes]),
        Some("toml" | "txt" | "md" | "log" | "svg" | "csv") => None,
        _ => return Ok((1, Some("it is not known to be text"))),
    };
    let (mut places, mut written) = (0, Vec::with_capacity(bytes.len()));
    for line in lines.unwrap_or_else(|| vec![&bytes]) {
        let is_json = name.ends_with("json") || name.ends_with("jsonl");
        match serde_json::from_slice::<serde_json::Value>(line) {
            Ok(mut value) if is_json => {
                if redactor.value(&mut value) {
                    places += 1;
                    written.extend(serde_json::to_vec(&value)?);
                    written.push(b'\n');
                } else {
                    written.extend_from_slice(line);
                }
            }
            _ => {
                let cleaned = redactor.bytes(line);
                places += usize::from(*cleaned != *line);
                written.extend_from_slice(&cleaned);
            }
        }
    }
    if places > 0 && !is_check {
        write_atomically(path, &written)?;
    }
    Ok((places, None))
}
