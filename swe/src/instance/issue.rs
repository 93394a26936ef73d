use serde::{Deserialize, Serialize};

/// What is to be done, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issue {
    /// The problem.
    pub problem: String,
    /// What was said about it before it was solved. It is not shown unless a run asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    /// Names and signatures that the tests expect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What the tests expect beside the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirements: Option<String>,
    /// Images that the problem shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageAsset>,
}

/// An image of a problem or of its tests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageAsset {
    /// Where it can be had.
    pub url: String,
    /// Where tests expect it in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}
