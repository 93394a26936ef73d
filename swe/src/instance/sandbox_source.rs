use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::RepoSpec;

/// What a sandbox is made of. Where it can be had in several ways, the first of them that works is taken, in the order of
/// the fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSource {
    /// A published image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A Dockerfile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<Dockerfile>,
    /// What a file of Docker Compose says of the one service that the agent works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compose: Option<Compose>,
    /// What it takes to build one from the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<RepoSpec>,
}

/// A Dockerfile, with the files that it may copy from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dockerfile {
    /// Its text.
    pub text: String,
    /// The folder of the host that it is built in. Absent: an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<PathBuf>,
}

/// What is taken from a file of Docker Compose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compose {
    /// The name of the service.
    pub service: String,
    /// Its command instead of the image's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl SandboxSource {
    /// Whether nothing is said at all.
    pub fn is_empty(&self) -> bool {
        self.image.is_none() && self.dockerfile.is_none() && self.build.is_none()
    }

    /// Where commands start by its Dockerfile; absent where that leaves it to another image.
    pub(crate) fn workdir(&self) -> Option<String> {
        let text = self.image.is_none().then_some(&self.dockerfile.as_ref()?.text)?;
        let mut found: Option<String> = None;
        for line in text.lines() {
            let Some((word, rest)) = line.trim().split_once(char::is_whitespace) else { continue };
            let rest = rest.trim();
            if word.eq_ignore_ascii_case("FROM") {
                found = None;
            } else if word.eq_ignore_ascii_case("WORKDIR") {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
                let below = found.take();
                found = match rest.chars().all(is_plain) && rest.split('/').all(|it| it != "..") {
                    true if rest.starts_with('/') => Some(rest.to_owned()),
                    true => below.map(|above| format!("{}/{rest}", above.trim_end_matches('/'))),
                    false => None,
                };
            }
        }
        found
    }

    pub(crate) fn check(&self, what: &str, problems: &mut Vec<String>) {
        if self.is_empty() {
            problems.push(format!("{what}: neither an image nor anything to build one from"));
        }
        if let Some(image) = &self.image
            && !is_image(image)
        {
            problems.push(format!(
                "{what}: `{}` is no name of an image",
                crate::error::shortened(image)
            ));
        }
        if let Some(dockerfile) = &self.dockerfile
            && dockerfile.text.len() > super::MAX_TEXT_BYTES
        {
            problems.push(format!(
                "{what}: the Dockerfile has {} bytes, and at most {} are read",
                dockerfile.text.len(),
                super::MAX_TEXT_BYTES
            ));
        }
    }
}

/// Whether a text can be the reference of an image, as engines take them: `[HOST/]PATH[:TAG][@DIGEST]`.
fn is_image(image: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
    !image.is_empty()
        && image.len() <= 512
        && image.bytes().all(is_char)
        && image.as_bytes()[0].is_ascii_alphanumeric()
        && image.split('/').all(|part| !part.is_empty() && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dockerfiles_tell_where_commands_start() {
        let workdir = |text: &str| {
            let dockerfile = Some(Dockerfile { text: text.to_owned(), context: None });
            SandboxSource { dockerfile, ..SandboxSource::default() }.workdir()
        };
        for (text, expected) in [
            ("FROM a\nWORKDIR /app\nRUN x\n", Some("/app")),
            ("FROM a\nworkdir /app/\nWORKDIR sub\n", Some("/app/sub")),
            ("FROM a AS b\nWORKDIR /app\nFROM c\n", None),
            ("FROM a\nWORKDIR $HOME\n", None),
            ("FROM a\nWORKDIR /a/../b\n", None),
            ("FROM a\nWORKDIR sub\n", None),
            ("FROM a\n", None),
        ] {
            assert_eq!(workdir(text).as_deref(), expected, "{text}");
        }
        let pulled = SandboxSource { image: Some("a".to_owned()), ..SandboxSource::default() };
        assert_eq!(pulled.workdir(), None);
    }
}
