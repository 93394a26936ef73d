use std::path::Path;

use serde_json::{Map, Value};

use super::{
    commit0, multi_swe_bench, nemo_gym, r2e_gym, swe_bench, swe_bench_pro, swe_gym, swe_rebench,
    swe_smith,
};
use crate::columns::Columns;
use crate::error::{LoadError, Place, list};
use crate::instance::Instance;

/// A format of rows.
#[derive(Debug, Clone, Copy)]
pub struct RowFormat {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Columns by which it is recognised: a row of it has them all.
    pub columns: &'static [&'static str],
    /// Columns that a row of it never has.
    without: &'static [&'static str],
    read: fn(Columns, &Companions<'_>) -> Result<Instance, LoadError>,
}

/// What lies beside the file of a row.
pub(super) struct Companions<'a> {
    /// The folder of scripts by instance, if there is one.
    pub(super) scripts: Option<&'a Path>,
}

/// The formats of rows. The first whose columns a row has is its format.
pub const ROW_FORMATS: [RowFormat; 9] = [
    RowFormat {
        name: "nemo-gym",
        about: "rows of the formats below inside of requests, as NeMo Gym has them",
        columns: &["responses_create_params"],
        without: &[],
        read: nemo_gym::read,
    },
    RowFormat {
        name: "multi-swe-bench",
        about: "Multi-SWE-bench and Multi-SWE-RL",
        columns: &["org", "repo", "number", "base", "fix_patch", "test_patch"],
        without: &[],
        read: multi_swe_bench::read,
    },
    RowFormat {
        name: "r2e-gym",
        about: "R2E-Gym",
        columns: &["repo_name", "docker_image", "commit_hash", "expected_output_json"],
        without: &[],
        read: r2e_gym::read,
    },
    RowFormat {
        name: "swe-bench-pro",
        about: "SWE-bench-Pro",
        columns: &[
            "instance_id",
            "repo",
            "base_commit",
            "before_repo_set_cmd",
            "selected_test_files_to_run",
        ],
        without: &[],
        read: swe_bench_pro::read,
    },
    RowFormat {
        name: "commit0",
        about: "Commit0",
        columns: &["repo", "base_commit", "reference_commit", "setup", "test", "src_dir"],
        without: &[],
        read: commit0::read,
    },
    RowFormat {
        name: "swe-rebench",
        about: "SWE-rebench, both versions",
        columns: &[
            "instance_id",
            "repo",
            "base_commit",
            "install_config",
            "test_patch",
            "FAIL_TO_PASS",
        ],
        without: &[],
        read: swe_rebench::read,
    },
    RowFormat {
        name: "swe-smith",
        about: "SWE-smith, whose patches make bugs",
        columns: &["instance_id", "repo", "image_name", "patch", "FAIL_TO_PASS", "PASS_TO_PASS"],
        without: &["test_patch"],
        read: swe_smith::read,
    },
    RowFormat {
        name: "swe-gym",
        about: "SWE-Gym",
        columns: &[
            "instance_id",
            "repo",
            "base_commit",
            "patch",
            "test_patch",
            "version",
            "FAIL_TO_PASS",
        ],
        without: &["environment_setup_commit", "eval_script", "image_assets"],
        read: swe_gym::read,
    },
    RowFormat {
        name: "swe-bench",
        about: "SWE-bench in its versions 1 to 5, with Lite, Verified, Multilingual and Multimodal",
        columns: &[
            "instance_id",
            "repo",
            "base_commit",
            "patch",
            "test_patch",
            "problem_statement",
        ],
        without: &[],
        read: swe_bench::read,
    },
];

impl RowFormat {
    /// The format of a row of these columns.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownFormat`], with the format that it comes closest to.
    pub fn of(row: &Map<String, Value>, place: &Place) -> Result<&'static Self, LoadError> {
        let is_of = |format: &&Self| {
            format.missing(row).is_empty()
                && !format.without.iter().any(|name| row.contains_key(*name))
        };
        ROW_FORMATS.iter().find(is_of).ok_or_else(|| unknown(row, place))
    }

    fn missing(&self, row: &Map<String, Value>) -> Vec<String> {
        let names = self.columns.iter().filter(|name| !row.contains_key(**name));
        names.map(|name| (*name).to_owned()).collect()
    }

    pub(super) fn read(
        &self,
        columns: Columns,
        companions: &Companions<'_>,
    ) -> Result<Instance, LoadError> {
        let place = columns.place().clone();
        let mut instance = super::stages::read(columns, companions, self.read)?;
        if instance.format.is_empty() {
            self.name.clone_into(&mut instance.format);
        }
        let problems = instance.problems();
        match problems.is_empty() {
            true => Ok(instance),
            false => Err(LoadError::Instance { place: Box::new(place), problems }),
        }
    }
}

/// Reads a row of whatever format.
pub(super) fn read_row(
    row: Map<String, Value>,
    place: &Place,
    companions: &Companions<'_>,
) -> Result<(&'static RowFormat, Instance), LoadError> {
    let format = RowFormat::of(&row, place)?;
    let instance = format.read(Columns::new(place.clone(), row), companions)?;
    Ok((format, instance))
}

fn unknown(row: &Map<String, Value>, place: &Place) -> LoadError {
    let closest = ROW_FORMATS
        .iter()
        .max_by_key(|format| {
            let missing = format.missing(row).len();
            // What rows of a format never have tells against it as much as what is missing.
            let odd = format.without.iter().filter(|name| row.contains_key(**name)).count();
            let right = format.columns.len().saturating_sub(missing + odd);
            (right * 100 / format.columns.len(), std::cmp::Reverse(missing))
        })
        .expect("there are formats");
    let missing = closest.missing(row);
    let hint = match missing.len() < closest.columns.len() {
        true if missing.is_empty() => {
            let odd = closest.without.iter().filter(|name| row.contains_key(**name));
            let odd: Vec<String> = odd.map(|name| (*name).to_owned()).collect();
            format!("it comes closest to {}, whose rows never have {}", closest.name, list(&odd))
        }
        true => {
            format!("it comes closest to {}, for which it lacks {}", closest.name, list(&missing))
        }
        false => {
            let names: Vec<String> =
                ROW_FORMATS.iter().map(|format| format.name.to_owned()).collect();
            format!("the formats are {}", list(&names))
        }
    };
    LoadError::UnknownFormat {
        place: Box::new(place.clone()),
        columns: row.keys().cloned().collect(),
        hint,
    }
}
