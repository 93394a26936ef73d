//! Instances in folders of their own.

mod compose;
mod files;
mod format;
mod harbor;
mod sweb;
mod terminal_bench;

pub(crate) use files::read_text;
pub use format::{FOLDER_FORMATS, FolderFormat, FolderSuite};

#[cfg(test)]
mod tests;
