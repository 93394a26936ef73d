//! Names of models on the hub.

use std::fmt;
use std::str::FromStr;

/// A model on the hub: `organisation/name`, or `organisation/name@revision`.
///
/// ```
/// use spar_text::hub::ModelName;
///
/// let name: ModelName = "HuggingFaceTB/SmolLM2-135M@main".parse()?;
/// assert_eq!((name.repository(), name.revision()), ("HuggingFaceTB/SmolLM2-135M", "main"));
/// assert!("../weights".parse::<ModelName>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    repository: String,
    revision: String,
}

impl ModelName {
    /// The organisation with the name.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Branch, tag or commit; `main` where none is given.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The folder of the model in a cache.
    pub(super) fn folder(&self) -> String {
        format!("models--{}", self.repository.replace('/', "--"))
    }
}

impl FromStr for ModelName {
    /// What is wrong with the name.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            Err(format!("`{text}` is no name of a model: expected `organisation/name[@revision]`"))
        };
        let (repository, revision) = text.split_once('@').unwrap_or((text, "main"));
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !part.is_empty()
                && part.len() <= 96
                && part.bytes().all(is_plain)
                && !part.starts_with(['.', '-'])
                && !part.ends_with(['.', '-'])
                && !part.contains("--")
                && !part.contains("..")
        };
        let Some((organisation, name)) = repository.split_once('/') else { return wrong() };
        // Revisions may hold slashes, as `refs/pr/1` does.
        let is_revision = revision.len() <= 200 && revision.split('/').all(is_part);
        if !is_part(organisation) || !is_part(name) || !is_revision {
            return wrong();
        }
        Ok(Self { repository: repository.to_owned(), revision: revision.to_owned() })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if self.revision != "main" {
            write!(f, "@{}", self.revision)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_organisation_and_may_have_a_revision() {
        for (text, repository, revision) in [
            ("a/b", "a/b", "main"),
            ("Qwen/Qwen2.5-0.5B@v1", "Qwen/Qwen2.5-0.5B", "v1"),
            ("a/b_c@refs/pr/3", "a/b_c", "refs/pr/3"),
        ] {
            let name: ModelName = text.parse().unwrap();
            assert_eq!((name.repository(), name.revision()), (repository, revision));
            assert_eq!(name.to_string(), text);
        }
        for text in [
            "", "a", "a/", "/b", "a/b/c", "a/..", "./b", "../b", "a/b@", "a/b@../c", "a b/c",
            "a--b/c",
        ] {
            assert!(text.parse::<ModelName>().is_err(), "{text}");
        }
    }
}
