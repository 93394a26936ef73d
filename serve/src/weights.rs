//! Loading other weights while answers are under way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use spar_core::PolicyVersion;
use spar_policy::checkpoint::{KeepAs, open_weights};

use crate::ServedModel;
use crate::api_error::ApiError;

/// The folder that a request names, which has to lie below the root.
pub(crate) fn locate(root: Option<&Path>, path: &str) -> Result<PathBuf, ApiError> {
    let Some(root) = root else {
        let message = "this server loads no other weights; start it with `--weights-root FOLDER`";
        return Err(ApiError::forbidden(message));
    };
    // Links are followed first, so that none leads out of the root.
    let folder = root.join(path).canonicalize().ok();
    let Some(folder) = folder.filter(|folder| folder.starts_with(root)) else {
        // Whether there is something outside is none of the client's business.
        let message = format!("there is no folder `{path}` below the root of weights");
        return Err(ApiError::invalid("path", message));
    };
    Ok(folder)
}

/// Publishes the checkpoint in `folder`; answers under way go on with it. Blocks.
pub(crate) fn load(
    model: &ServedModel,
    folder: &Path,
    version: Option<u32>,
    keep: KeepAs,
) -> Result<Value, ApiError> {
    let refuse = |error: &dyn std::error::Error| {
        let mut message = format!("could not load the checkpoint: {error}");
        let mut source = error.source();
        while let Some(error) = source {
            message += &format!(": {error}");
            source = error.source();
        }
        ApiError::invalid("path", message)
    };
    let loaded = open_weights(folder, keep).map_err(|error| refuse(&error))?;
    let (published, last) = model.generator.published();
    if loaded.config() != published.config() {
        let message = "the checkpoint has another shape than the model that is served";
        return Err(ApiError::invalid("path", message));
    }
    let version = PolicyVersion(version.unwrap_or_else(|| last.0.wrapping_add(1)));
    let weights = Arc::new(published.with_weights_of(&loaded));
    // Where nobody else has the numbers, they are brought into order where they lie.
    drop(loaded);
    model.generator.publish(&weights.for_generation(), version);
    Ok(json!({ "object": "weights", "version": version.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_outside_the_root_are_not_there() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("in")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        assert_eq!(locate(Some(&root), "in").unwrap(), root.join("in"));
        assert_eq!(locate(Some(&root), "in/../in").unwrap(), root.join("in"));
        let absolute = outside.path().display().to_string();
        for path in ["link", "..", "../..", "nothing", &absolute, "a\0b"] {
            let error = locate(Some(&root), path).unwrap_err();
            assert!(error.message.starts_with("there is no folder"), "{}", error.message);
        }
        assert!(locate(None, "in").is_err());
    }
}
