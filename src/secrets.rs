//! What must not stand in anything that is written.

use std::path::PathBuf;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use spar_core::redaction::{self, MIN_SECRET_BYTES, SecretRule};

/// Bytes of a file with secrets.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Secrets beside those that are known anyway: keys of endpoints, of the hub and of registries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Environment variables whose values are secret, each of at least 8 bytes. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Files with a line `NAME=value` for each secret, as `.env` has them; values of fewer than 8 bytes are taken for
    /// settings. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
    /// What looks like a secret, whoever it may belong to: `api_key`, `github`, `gitlab`, `hugging_face`, `slack`, `aws`,
    /// `google`, `bearer`, `private_key`. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<SecretRule>,
}

impl SecretsConfig {
    /// Tells them to this process, so that they are kept out of all that it writes from here on.
    ///
    /// # Errors
    ///
    /// Everything that keeps one of them from being looked for; those that can be are, nevertheless.
    pub fn keep(&self) -> anyhow::Result<()> {
        redaction::look_for(&self.rules);
        let mut problems = Vec::new();
        for name in &self.environment {
            match std::env::var(name) {
                Ok(value) => {
                    problems.extend(redaction::keep(name, &value).err().map(|it| it.to_string()))
                }
                Err(error) => problems.push(format!("read secret `{name}`: {error}")),
            }
        }
        for path in &self.files {
            let size = path.metadata().map(|metadata| metadata.len());
            let text = match size {
                Ok(size) if size > MAX_FILE_BYTES => {
                    Err(format!("it has {size} bytes, more than any file of secrets"))
                }
                _ => std::fs::read_to_string(path).map_err(|error| error.to_string()),
            };
            match text {
                Ok(text) => variables(&text).for_each(|(name, value)| {
                    // What is shorter is a setting.
                    let _ = redaction::keep(name, &value);
                }),
                Err(detail) => {
                    problems.push(format!("read secrets in `{}`: {detail}", path.display()))
                }
            }
        }
        ensure!(problems.is_empty(), "keep secrets:\n{}", problems.join("\n"));
        Ok(())
    }
}

/// The variables of a file as `.env` has them: `export` in front of them and quotes around them are left out, and lines
/// that are comments.
fn variables(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => {
                let rest = &value[1..];
                let whole = rest.rfind(quote).map_or(rest, |end| &rest[..end]);
                if quote == '"' {
                    whole.replace("\\n", "\n").replace("\\\"", "\"")
                } else {
                    whole.to_owned()
                }
            }
            None => value.split(" #").next().unwrap_or(value).trim_end().to_owned(),
        };
        (value.len() >= MIN_SECRET_BYTES).then(|| (name.trim(), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_shells_read_them() {
        let text = "# A comment=not this one\nexport A=plain-value # why\nB=\"with \\\"quotes\\\"\\nand lines\"\n\
                    C='single # quoted'\nPORT=8080\nnothing here\n";
        let found: Vec<_> = variables(text).collect();
        let expected =
            [("A", "plain-value"), ("B", "with \"quotes\"\nand lines"), ("C", "single # quoted")];
        assert_eq!(found, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn what_cannot_be_kept_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, "SPAR_TEST_OF_FILE=kept-from-a-file\n").unwrap();
        let config = SecretsConfig {
            environment: vec!["SPAR_TEST_NO_SUCH_VARIABLE".to_owned()],
            files: vec![path, folder.path().join("absent")],
            rules: Vec::new(),
        };
        let error = config.keep().unwrap_err().to_string();
        assert!(
            error.contains("`SPAR_TEST_NO_SUCH_VARIABLE`") && error.contains("absent"),
            "{error}"
        );
        let told = redaction::told("it is kept-from-a-file");
        assert_eq!(told, "it is [redacted SPAR_TEST_OF_FILE]");
        assert!(toml::from_str::<SecretsConfig>("rules = ['gihub']").is_err());
    }
}
