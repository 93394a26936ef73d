//! What looks like a secret.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::SecretError;

/// The most bytes that a token is followed for.
const MAX_TOKEN_BYTES: usize = 1024;
/// The most bytes that a block with a private key is followed for.
const MAX_BLOCK_BYTES: usize = 16 << 10;

/// A rule of what looks like a secret, for those whose values nobody named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretRule {
    /// Keys of the kind `sk-...`, as OpenAI, Anthropic and others give them.
    ApiKey,
    /// Tokens of GitHub: `ghp_...`, `gho_...`, `ghu_...`, `ghs_...`, `ghr_...`, `github_pat_...`.
    Github,
    /// Tokens of GitLab: `glpat-...`.
    Gitlab,
    /// Tokens of Hugging Face: `hf_...`.
    HuggingFace,
    /// Tokens of Slack: `xoxb-...` and the like.
    Slack,
    /// Identifiers of keys of AWS: `AKIA...` and `ASIA...`.
    Aws,
    /// Keys of Google: `AIza...`.
    Google,
    /// What stands behind `Bearer ` and `Basic ` in headers.
    Bearer,
    /// Blocks with a private key, `-----BEGIN ... PRIVATE KEY-----` to `-----END`.
    PrivateKey,
}

/// How far what begins like a secret goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// It is one, from and to these bytes behind its beginning.
    Secret { from: usize, to: usize },
    /// It is none.
    Other,
    /// What comes next decides.
    Open,
}

impl SecretRule {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ApiKey,
        Self::Github,
        Self::Gitlab,
        Self::HuggingFace,
        Self::Slack,
        Self::Aws,
        Self::Google,
        Self::Bearer,
        Self::PrivateKey,
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::HuggingFace => "hugging_face",
            Self::Slack => "slack",
            Self::Aws => "aws",
            Self::Google => "google",
            Self::Bearer => "bearer",
            Self::PrivateKey => "private_key",
        }
    }

    /// What such secrets begin with.
    pub(super) fn prefixes(self) -> &'static [&'static str] {
        match self {
            Self::ApiKey => &["sk-"],
            Self::Github => &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
            Self::Gitlab => &["glpat-"],
            Self::HuggingFace => &["hf_"],
            Self::Slack => &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"],
            Self::Aws => &["AKIA", "ASIA"],
            Self::Google => &["AIza"],
            Self::Bearer => &["Bearer ", "bearer ", "Basic ", "basic "],
            Self::PrivateKey => &["-----BEGIN "],
        }
    }

    /// The fewest characters behind the prefix that make a secret of it.
    fn min_chars(self) -> usize {
        match self {
            Self::ApiKey | Self::Gitlab | Self::HuggingFace | Self::Bearer => 20,
            Self::Github => 30,
            Self::Slack => 10,
            Self::Aws => 16,
            Self::Google => 35,
            Self::PrivateKey => 0,
        }
    }

    fn is_part(self, byte: u8) -> bool {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_';
        match self {
            Self::Aws => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Github | Self::HuggingFace => is_word,
            Self::Bearer => is_word || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'='),
            _ => is_word || byte == b'-',
        }
    }

    /// What becomes of `bytes`, which begin with the prefix of this length; `is_end` where nothing comes behind them.
    pub(super) fn extent(self, bytes: &[u8], prefix: usize, is_end: bool) -> Extent {
        if self == Self::PrivateKey {
            return block(bytes, is_end);
        }
        let rest = &bytes[prefix..bytes.len().min(MAX_TOKEN_BYTES)];
        let count = rest.iter().take_while(|byte| self.is_part(**byte)).count();
        let to = prefix + count;
        if to == bytes.len() && !is_end && to < MAX_TOKEN_BYTES {
            return Extent::Open;
        }
        // Of a header the scheme stays.
        let from = if self == Self::Bearer { prefix } else { 0 };
        if count >= self.min_chars() { Extent::Secret { from, to } } else { Extent::Other }
    }
}

/// A block from its beginning line to its end line, both included; where that does not come, what there is of it.
fn block(bytes: &[u8], is_end: bool) -> Extent {
    const TITLE: &[u8] = b"PRIVATE KEY-----";
    const MAX_TITLE_BYTES: usize = 64;
    let find = |part: &[u8], within: &[u8]| within.windows(part.len()).position(|it| it == part);
    let head = &bytes[..bytes.len().min(MAX_TITLE_BYTES)];
    let Some(title) = find(TITLE, head) else {
        let is_open = !is_end && bytes.len() < MAX_TITLE_BYTES;
        return if is_open { Extent::Open } else { Extent::Other };
    };
    let most = &bytes[..bytes.len().min(MAX_BLOCK_BYTES)];
    let body = title + TITLE.len();
    if let Some(end) = find(b"-----END ", &most[body..])
        && let Some(closing) = find(TITLE, &most[body + end..])
    {
        return Extent::Secret { from: 0, to: body + end + closing + TITLE.len() };
    }
    match is_end || bytes.len() >= MAX_BLOCK_BYTES {
        true => Extent::Secret { from: 0, to: most.len() },
        false => Extent::Open,
    }
}

impl fmt::Display for SecretRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SecretRule {
    type Err = SecretError;

    fn from_str(name: &str) -> Result<Self, SecretError> {
        Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.map(|rule| format!("`{rule}`")).into();
            SecretError::UnknownRule { name: name.to_owned(), known: known.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_their_names_in_settings() {
        for rule in SecretRule::ALL {
            assert_eq!(rule.name().parse::<SecretRule>().unwrap(), rule);
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
        let error = "gihub".parse::<SecretRule>().unwrap_err().to_string();
        assert!(error.contains("`gihub`") && error.contains("`github`"), "{error}");
    }
}
