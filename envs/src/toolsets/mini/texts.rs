//! Texts of mini-swe-agent, with their licence in `NOTICE` of the folder above.

/// The system's message, where the policy calls a tool.
pub const CALLS_SYSTEM: &str = include_str!("texts/calls_system.jinja");
/// What is said where no call could be read.
pub const CALLS_FORMAT_ERROR: &str = include_str!("texts/calls_format_error.jinja");
/// The system's message, where a command stands in a fenced block.
pub const BACKTICKS_SYSTEM: &str = include_str!("texts/backticks_system.jinja");
/// What is said where there is not exactly one such block.
pub const BACKTICKS_FORMAT_ERROR: &str = include_str!("texts/backticks_format_error.jinja");
/// The system's message, where a command stands in a tag.
pub const XML_SYSTEM: &str = include_str!("texts/xml_system.jinja");
/// What is said where there is not exactly one such tag.
pub const XML_FORMAT_ERROR: &str = include_str!("texts/xml_format_error.jinja");
/// The system's message of version 1.
pub const V1_SYSTEM: &str = include_str!("texts/v1_system.jinja");
/// What is said where there is not exactly one block, in version 1.
pub const V1_FORMAT_ERROR: &str = include_str!("texts/v1_format_error.jinja");
/// What is said where an answer calls no tool.
pub const NO_CALL: &str =
    "No tool calls found in the response. Every response MUST include at least one tool call.";

pub(super) const CALLS_REPOSITORY: &str = include_str!("texts/calls_repository.jinja");
pub(super) const CALLS_GENERAL: &str = include_str!("texts/calls_general.jinja");
pub(super) const BACKTICKS_REPOSITORY: &str = include_str!("texts/backticks_repository.jinja");
pub(super) const BACKTICKS_GENERAL: &str = include_str!("texts/backticks_general.jinja");
pub(super) const XML_REPOSITORY: &str = include_str!("texts/xml_repository.jinja");
pub(super) const V1_REPOSITORY: &str = include_str!("texts/v1_repository.jinja");
pub(super) const OBSERVATION: &str = include_str!("texts/observation.jinja");
pub(super) const V1_OBSERVATION: &str = include_str!("texts/v1_observation.jinja");
pub(super) const V1_TIMEOUT: &str = include_str!("texts/v1_timeout.jinja");
