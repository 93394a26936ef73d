//! The backends by name.

use std::sync::Arc;

use crate::backends::fake::FakeBackend;
use crate::{SandboxBackend, SandboxError};

/// A backend that can be asked for.
#[derive(Debug, Clone, Copy)]
pub struct BackendEntry {
    /// What users type.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Whether it is for tests alone, so that nothing offers it by itself.
    pub is_for_tests: bool,
    open: fn() -> Result<Arc<dyn SandboxBackend>, SandboxError>,
}

/// All backends, those that were left out of this build included.
pub fn backend_registry() -> &'static [BackendEntry] {
    const {
        &[
            BackendEntry {
                name: "docker",
                about: "Containers through the API of Docker or Podman.",
                is_for_tests: false,
                open: docker,
            },
            BackendEntry {
                name: "wasm",
                about: "WebAssembly guests in this process.",
                is_for_tests: false,
                open: wasm,
            },
            BackendEntry {
                name: "local",
                about: "Linux namespaces without a daemon, for trusted use.",
                is_for_tests: false,
                open: local,
            },
            BackendEntry {
                name: "fake",
                about: "Scripted, no isolation at all.",
                is_for_tests: true,
                open: || Ok(Arc::new(FakeBackend::new())),
            },
        ]
    }
}

/// The backend of a name. Whether it works here, [`SandboxBackend::probe`] tells.
///
/// # Errors
///
/// [`SandboxError::UnknownBackend`]; [`SandboxError::Unavailable`] where it is not part of this
/// build, or cannot even be set up.
pub fn open(name: &str) -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    let Some(entry) = backend_registry().iter().find(|entry| entry.name == name) else {
        let known = backend_registry()
            .iter()
            .filter(|entry| !entry.is_for_tests)
            .map(|entry| entry.name)
            .collect();
        return Err(SandboxError::UnknownBackend { name: name.to_owned(), known });
    };
    (entry.open)()
}

#[cfg(feature = "docker")]
fn docker() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    Ok(Arc::new(crate::backends::docker::DockerBackend::new()?))
}

#[cfg(not(feature = "docker"))]
fn docker() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    left_out("docker")
}

#[cfg(feature = "wasm")]
fn wasm() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    use crate::backends::wasm::{WasmBackend, WasmSettings};
    Ok(Arc::new(WasmBackend::new(WasmSettings::default())?))
}

#[cfg(not(feature = "wasm"))]
fn wasm() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    left_out("wasm")
}

#[cfg(feature = "local")]
fn local() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    Ok(Arc::new(crate::backends::local::LocalBackend::new()?))
}

#[cfg(not(feature = "local"))]
fn local() -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    left_out("local")
}

#[cfg(not(all(feature = "docker", feature = "wasm", feature = "local")))]
fn left_out(name: &'static str) -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    Err(SandboxError::Unavailable {
        backend: name,
        reason: "it was left out when this program was built".to_owned(),
        hint: format!("build it with `--features {name}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_each_opens_as_itself_or_says_that_it_was_left_out() {
        for (index, entry) in backend_registry().iter().enumerate() {
            assert!(backend_registry()[..index].iter().all(|other| other.name != entry.name));
            match open(entry.name) {
                Ok(backend) => assert_eq!(backend.name(), entry.name),
                Err(SandboxError::Unavailable { backend, hint, .. }) => {
                    assert_eq!(backend, entry.name);
                    assert!(!hint.is_empty());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn an_unknown_backend_lists_those_to_choose_from() {
        let error = open("dokcer").err().unwrap();
        assert_eq!(
            error.to_string(),
            "find a backend `dokcer`: known are `docker`, `wasm`, `local`"
        );
    }
}
