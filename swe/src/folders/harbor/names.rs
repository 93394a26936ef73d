//! What names may be, by Harbor's rules.

use crate::instance::Artifact;

/// Whether a text is `ORG/NAME`.
pub(super) fn is_package(name: &str) -> bool {
    let is_part = |part: &str| {
        part.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    !name.contains("..")
        && name.split_once('/').is_some_and(|(org, name)| is_part(org) && is_part(name))
}

/// Whether a text names a service of Docker Compose.
pub(super) fn is_service(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// What makes two names of steps one: their letters, whatever their case.
pub(super) fn key(name: &str) -> String {
    name.to_lowercase()
}

/// Why a step cannot have a name, as a part of a sentence: it is the name of a folder on every system.
pub(super) fn step_problem(name: &str) -> Option<&'static str> {
    let is_control = |c: char| c <= '\u{1f}' || c == '\u{7f}' || r#"<>:"/\|?*"#.contains(c);
    if name.trim().is_empty() {
        return Some("is empty");
    }
    if matches!(name, "." | "..") || name.ends_with(['.', ' ']) {
        return Some("ends with a dot or a space");
    }
    if name.contains(is_control) {
        return Some("has a character that not every system has in names");
    }
    if name.len() > 255 {
        return Some("is longer than 255 bytes");
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_uppercase();
    let is_device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || ["COM", "LPT"].iter().any(|port| {
            stem.strip_prefix(port).is_some_and(|rest| {
                let mut chars = rest.chars();
                chars.next().is_some_and(|c| ('1'..='9').contains(&c) || "¹²³".contains(c))
                    && chars.next().is_none()
            })
        });
    is_device.then_some("is the name of a device on some systems")
}

/// What is wrong with an artifact, and in which of its fields.
pub(super) fn artifact_problem(
    artifact: &Artifact,
    service: Option<&str>,
) -> Option<(&'static str, &'static str)> {
    let is_up = |path: &str| path.split('/').any(|part| part == "..");
    if is_up(&artifact.source) {
        return Some(("source", "expected a path without `..`"));
    }
    let is_drive = |path: &str| {
        let bytes = path.as_bytes();
        bytes.len() > 2
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'/' | b'\\')
    };
    if service.is_some_and(|service| service != super::MAIN)
        && !(artifact.source.starts_with('/') || is_drive(&artifact.source))
    {
        return Some(("source", "expected an absolute path for a service other than `main`"));
    }
    let destination = artifact.destination.as_deref()?;
    if destination.contains('\\') {
        return Some(("destination", "expected `/` between parts"));
    }
    if destination.starts_with('/') {
        return Some(("destination", "expected a relative path"));
    }
    if destination.split('/').all(|part| matches!(part, "" | ".")) {
        return Some(("destination", "expected the name of a file or a folder"));
    }
    if is_up(destination) {
        return Some(("destination", "expected a path without `..`"));
    }
    (destination.trim_end_matches('/') == "manifest.json")
        .then_some(("destination", "`manifest.json` is taken"))
}
