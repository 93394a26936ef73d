//! Instances in rows of columns: files of JSON lines, of a JSON array, or of Parquet.

mod commit0;
mod eval_script;
mod file;
mod format;
mod multi_swe_bench;
mod nemo_gym;
mod r2e_gym;
mod spec_table;
mod stages;
mod swe_bench;
mod swe_bench_pro;
mod swe_gym;
mod swe_rebench;
mod swe_smith;

pub use file::{RowFile, RowOptions};
pub use format::{ROW_FORMATS, RowFormat};

/// The instance of columns that SWE-bench's rows have, wherever they come from.
pub(crate) fn read_swe_bench(
    columns: crate::columns::Columns,
) -> Result<crate::Instance, crate::LoadError> {
    swe_bench::read(columns, &format::Companions { scripts: None })
}

#[cfg(test)]
mod tests;
