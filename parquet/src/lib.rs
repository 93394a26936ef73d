//! Rows of Parquet files as JSON, as far as published datasets need it.
//!
//! ```text
//!  file ─▶ footer (thrift) ─▶ Schema, row groups ─▶ pages of each column ─▶ values with levels ─▶ rows
//! ```
//!
//! A reader of our own in place of the crate `parquet`: of what that has, files of datasets take the plain and the dictionary's
//! encoding, and snappy, zstd or no compression. What else a file has is an error that names it. Sizes are bounded before
//! anything is unpacked, and a file that lies about itself is an error.
//!
//! Source: the format's specification, github.com/apache/parquet-format, 2.11.

mod column;
mod file;
mod moments;
mod rows;
mod schema;
mod snappy;
#[cfg(test)]
mod tests;
mod thrift;

pub use file::ParquetFile;

/// What is wrong with a file, in words behind its path.
pub type Wrong = String;

/// Bytes of a file's description of itself.
const MAX_FOOTER_BYTES: u64 = 64 << 20;
/// Bytes of a page when it is unpacked.
const MAX_PAGE_BYTES: usize = 1 << 30;
/// Bytes of all values of a row group, a repeated one counting each time.
const MAX_GROUP_BYTES: usize = 1 << 30;
/// The same of all row groups: pages that are packed well could fill whatever holds the rows.
const MAX_FILE_BYTES: u64 = 64 << 30;
/// Columns within columns.
const MAX_DEPTH: usize = 32;
/// Bytes of a column's name, which stands in every row.
const MAX_NAME_BYTES: usize = 1024;
/// Bytes of the names of all columns, each with the names of those that it is in.
const MAX_PATHS_BYTES: usize = 64 << 20;
