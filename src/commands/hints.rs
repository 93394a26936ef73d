//! What a user can do about an error.

use std::io::ErrorKind;

use spar::core::{PolicyError, StoreError, TrajectoryError};
use spar::envs::household::HouseholdError;
use spar::envs::web::WebError;
use spar::instance_image::ImageError;
use spar::policy::CheckpointError;
use spar::recipe::RecipeError;
use spar::sandbox::SandboxError;
use spar::swe::LoadError;
use spar::tasks::SuiteError;
use spar::trainer::{RunFolderError, TrainerError};

use super::train::NoRun;

const GET_ALFWORLD: &str = "get ALFWorld's games with `pip install alfworld && alfworld-download`, \
                            then give --data ~/.cache/alfworld, or set ALFWORLD_DATA";

/// What the user can do about an error: that of the first cause which knows.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        None.or_else(|| cause.downcast_ref::<RunFolderError>()?.hint())
            .or_else(|| cause.downcast_ref::<TrainerError>()?.hint())
            .or_else(|| sandbox(cause.downcast_ref()?))
            .or_else(|| Some(cause.downcast_ref::<ImageError>()?.hint()?.to_owned()))
            .or_else(|| Some(cause.downcast_ref::<WebError>()?.hint()?.to_owned()))
            .or_else(|| suite(cause.downcast_ref()?))
            .or_else(|| instance(cause.downcast_ref::<Box<LoadError>>()?))
            .or_else(|| instance(cause.downcast_ref()?))
            .or_else(|| recipe(cause.downcast_ref()?))
            .or_else(|| checkpoint(cause.downcast_ref()?))
            .or_else(|| policy(cause.downcast_ref()?))
            .or_else(|| household(cause.downcast_ref()?))
            .or_else(|| store(cause.downcast_ref()?))
            .or_else(|| cause.downcast_ref::<NoRun>().map(|_| NO_RUN.to_owned()))
            .or_else(|| system(cause.downcast_ref()?))
    })
}

const NO_RUN: &str = "train one with `spar train`, or name a player: --checkpoint, --policy or \
                      --endpoint; runs elsewhere are found with --runs";

fn sandbox(error: &SandboxError) -> Option<String> {
    match error {
        SandboxError::UnknownBackend { .. } => {
            Some("`spar doctor` tells which of them work here".to_owned())
        }
        _ => error.hint().map(str::to_owned),
    }
}

fn suite(error: &SuiteError) -> Option<String> {
    match error {
        SuiteError::Unknown { .. } => Some("`spar list suites` tells what they are".to_owned()),
        SuiteError::UnknownSplit { .. } => {
            Some("name one of them: with --split, or in `[data]` of a recipe".to_owned())
        }
        SuiteError::NoData { .. } => Some(GET_ALFWORLD.to_owned()),
        SuiteError::EmptyData { .. } => Some(format!(
            "--data names the folder whose subfolders are the splits, such as `valid_seen`; {GET_ALFWORLD}"
        )),
        // A folder of data; a file with an ending is one of a suite.
        SuiteError::Io { path, source }
            if source.kind() == ErrorKind::NotFound && path.extension().is_none() =>
        {
            Some(format!("look whether the path is right; {GET_ALFWORLD}"))
        }
        SuiteError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            Some("look whether the path is right".to_owned())
        }
        SuiteError::UnknownTask { .. } => {
            Some(
                "`spar tasks ls SUITE` tells the tasks of one; where another suite is meant, name it with --suite, and the folder of its \
                 data with --data"
                    .to_owned(),
            )
        }
        _ => None,
    }
}

/// A row or task folder that is wrong keeps those beside it from being a suite.
fn instance(error: &LoadError) -> Option<String> {
    let place = match error {
        LoadError::Syntax { place, language: "JSON" | "TOML" | "YAML", .. }
        | LoadError::UnknownFormat { place, .. }
        | LoadError::MixedFormats { place, .. }
        | LoadError::Column { place, .. }
        | LoadError::Instance { place, .. }
        | LoadError::SameId { place } => place,
        _ => return None,
    };
    match (&place.row, error) {
        (Some(_), _) => Some(format!(
            "`spar tasks import auto {} --out FOLDER` makes a suite of the rows that can be taken, and tells the others",
            place.path.display()
        )),
        // An array of rows that is not readable as a whole.
        (None, LoadError::Syntax { language: "JSON", .. }) => None,
        (None, _) => Some(
            "mend the task folder, or leave it out: `spar tasks import auto SUITE --out FOLDER` makes a suite of those that can be \
             taken"
                .to_owned(),
        ),
    }
}

fn recipe(error: &RecipeError) -> Option<String> {
    match error {
        RecipeError::Unknown { .. } => Some("`spar list recipes` tells what they do".to_owned()),
        RecipeError::Malformed { .. } => {
            Some("`spar train --dry-run` prints every setting with its value".to_owned())
        }
        _ => None,
    }
}

fn checkpoint(error: &CheckpointError) -> Option<String> {
    match error {
        CheckpointError::Unsupported { .. } => Some(
            "spar computes dense Llama, Mistral, Qwen2 and Qwen3 models, and those it trained \
             itself; other models can play behind --endpoint"
                .to_owned(),
        ),
        CheckpointError::NoWeights { .. } | CheckpointError::Io { .. } => Some(
            "--checkpoint takes a run, a checkpoint of one, a model's folder, or a model's \
                 name on the hub (`organisation/name`)"
                .to_owned(),
        ),
        _ => None,
    }
}

fn policy(error: &PolicyError) -> Option<String> {
    match error {
        PolicyError::Unreachable { .. } => {
            Some("look whether the server runs, and whether --endpoint is its address".to_owned())
        }
        PolicyError::Nonsense { .. } => Some(
            "--endpoint is the address up to and without `/chat/completions`, such as \
             http://127.0.0.1:8000/v1; --model is a name the server knows"
                .to_owned(),
        ),
        _ => None,
    }
}

fn household(error: &HouseholdError) -> Option<String> {
    match error {
        HouseholdError::Json { .. } | HouseholdError::Syntax { .. } => {
            Some("the file may be cut off or edited; download or generate it again".to_owned())
        }
        HouseholdError::Empty { .. } => Some(GET_ALFWORLD.to_owned()),
        HouseholdError::MissingGame { .. } => {
            Some("--data names the folder of the games the traces were recorded with".to_owned())
        }
        _ => None,
    }
}

fn store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Record { source: TrajectoryError::Version { .. }, .. } => {
            Some("a newer spar wrote it; use that one".to_owned())
        }
        _ => None,
    }
}

fn system(error: &std::io::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("free disk space, then go on (a run: `spar resume`)".to_owned())
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("choose a folder that can be read and written".to_owned())
        }
        _ => None,
    }
}
