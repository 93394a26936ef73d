//! The backends by name.

use std::sync::Arc;

use spar_core::registry::{Axis, OptionSet, Row, Table, closest_first};

use crate::backends::fake::FakeBackend;
use crate::conformance::Pins;
use crate::{SandboxBackend, SandboxError};

/// What opens a backend, and what it is held to.
#[derive(Debug, Clone, Copy)]
pub struct NamedBackend {
    /// Whether it is for tests alone, so that nothing offers it by itself.
    pub is_for_tests: bool,
    /// Which checks of [`conformance`](crate::conformance) it has to pass: all but these.
    pub pins: Pins,
    /// Makes it; whether it works here is looked at later, by its `probe`.
    pub open: fn() -> Result<Arc<dyn SandboxBackend>, SandboxError>,
}

/// A backend that has a name.
pub type BackendRow = Row<NamedBackend>;

const AXIS: Axis =
    Axis { name: "backends", what: "sandbox backend", about: "What sandboxes are made of." };

const ROWS: &[BackendRow] = &[
    Row {
        name: "docker",
        about: "Containers through the API of Docker or Podman.",
        source: "Docker's Engine API",
        formula: "",
        options: OptionSet::NONE,
        open: NamedBackend {
            is_for_tests: false,
            pins: Pins { never: DOCKER_NEVER, depends: DOCKER_DEPENDS },
            open: docker,
        },
    },
    Row {
        name: "wasm",
        about: "WebAssembly guests in this process.",
        source: "WASI previews 1 and 2, on Wasmtime",
        formula: "",
        options: OptionSet::NONE,
        open: NamedBackend {
            is_for_tests: false,
            pins: Pins { never: WASM_NEVER, depends: WASM_DEPENDS },
            open: wasm,
        },
    },
    Row {
        name: "local",
        about: "Linux namespaces without a daemon, for trusted use.",
        source: "namespaces(7), cgroups(7)",
        formula: "",
        options: OptionSet::NONE,
        open: NamedBackend {
            is_for_tests: false,
            pins: Pins { never: LOCAL_NEVER, depends: LOCAL_DEPENDS },
            open: local,
        },
    },
    Row {
        name: "fake",
        about: "Scripted, no isolation at all; for tests.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: NamedBackend {
            is_for_tests: true,
            pins: Pins { never: FAKE_NEVER, depends: &[] },
            open: || Ok(Arc::new(FakeBackend::new())),
        },
    },
];

static TABLE: Table<NamedBackend> = Table::new(AXIS, ROWS);

/// All backends, those that were left out of this build included.
pub fn backend_registry() -> &'static Table<NamedBackend> {
    &TABLE
}

// Backends that build or unpack images are not asked to refuse that; their own tests do it.

const DOCKER_NEVER: &[&str] = &[
    "a limit of the fuel that is not kept is refused",
    "determinism that is not kept is refused",
    "images that cannot be built are refused",
    "archives that cannot be images are refused",
];

/// Storage without quotas, and a host that has no name.
const DOCKER_DEPENDS: &[&str] = &[
    "a limit of the disk that is not kept is refused",
    "a full disk is told to the command inside",
    "the host's name is not told",
];

const LOCAL_NEVER: &[&str] = &[
    "a limit of the fuel that is not kept is refused",
    "determinism that is not kept is refused",
    "images that cannot be built are refused",
    "archives that cannot be images are refused",
];

/// Control groups, Linux before 6.6, being root, and a host that has no name.
const LOCAL_DEPENDS: &[&str] = &[
    "capabilities for packages give files away and change users",
    "capabilities for packages lead nowhere out",
    "ending all makes room where all processes are used up",
    "a limit of the disk that is not kept is refused",
    "a full disk is told to the command inside",
    "a memory bomb is ended and told as such",
    "a fork bomb stays in its sandbox",
    "hostile clients do an allow-list's proxy no harm",
    "a network that cannot be had is refused",
    "the host's name is not told",
];

/// It has neither processes nor a network, and its guests are no programs of POSIX.
const WASM_NEVER: &[&str] = &[
    "a limit of shared memory is kept",
    "a limit of open files is kept",
    "commands have no capabilities that nobody asked for",
    "capabilities for packages give files away and change users",
    "capabilities for packages lead nowhere out",
    "changes are told of everything that a file can be",
    "a link to nowhere that is replaced is told as modified",
    "a process answers line by line until its input ends",
    "a process that cannot be had is refused",
    "a process's streams are told apart, and its end is told",
    "much passes a process unchanged in both directions",
    "several processes run at one time and do not disturb each other",
    "a process that is killed or dropped ends with all that it started",
    "a process whose output nobody reads waits, and so does who writes what it does not read",
    "a process meets its deadline where it has one",
    "a process ends with its sandbox",
    "a terminal shows what is typed and what is written, in its size",
    "a terminal that is resized tells the process so",
    "keys reach the foreground of a terminal, and its shell goes on",
    "a terminal that is hung up tells the process so",
    "a process on a terminal that is killed or dropped ends with all that it started",
    "what a process on a terminal leaves behind does not hold it open",
    "a terminal that nobody looks at holds up its process",
    "a terminal whose keys nobody takes is resized, hung up and killed",
    "a process on a terminal meets its deadline, and ends with its sandbox",
    "a port that listens is reached without a network, and each side's end is seen",
    "a port where nobody listens is told, and one that listens late is waited for",
    "much passes a connection unchanged in both directions",
    "a hundred connections at one time do not disturb each other",
    "a connection that nobody reads holds up its sender, and no other",
    "a connection that is dropped ends what serves it",
    "connections end with all that runs in the sandbox, and come again",
    "connections end with the sandbox",
    "a connection leads to its own sandbox, and never to the host",
    "what runs inside cannot speak in a connection that is not its own",
    "ending all leaves nothing of shells and commands, whatever was killed",
    "ending all ends what kills everything that is started",
    "ending all makes room where all processes are used up",
    "output is handed over whole, in order, while the command runs",
    "a shell keeps variables and survives what its commands do",
    "a command that ends the shell is an observation",
    "a command in a shell meets its deadline, and the next runs",
    "background output is not mixed up with later commands",
    "set-up commands run in turn before the sandbox is handed out",
    "a network that cannot be had is refused",
    "an allow-list that is not kept is refused",
    "images that cannot be built are refused",
    "archives that cannot be images are refused",
    "a fork bomb stays in its sandbox",
    "a process that ignores signals ends at the deadline",
    "nothing a command started outlives its deadline",
    "a process that double-forks and keeps the pipe open holds nothing up",
    "the clock cannot be set",
    "an allow-list lets its hosts through, and programs are told how",
    "what passes an allow-list arrives unchanged, however much of it",
    "an allow-list lets nobody else through",
    "an allow-list opens no way beside its proxy",
    "a name on an allow-list does not lead to this machine",
    "each sandbox has an allow-list of its own",
    "hostile clients do an allow-list's proxy no harm",
    "a client of an allow-list that does not read holds up no other",
    "forks and snapshots have their allow-list",
    "closing ends what passes an allow-list",
    "another network ends what passed by the one before, and nothing else",
];

/// A host that has no name.
const WASM_DEPENDS: &[&str] = &["the host's name is not told"];

/// It runs no programs at all.
const FAKE_NEVER: &[&str] = &[
    "a limit of shared memory is kept",
    "a limit of open files is kept",
    "commands have no capabilities that nobody asked for",
    "capabilities for packages give files away and change users",
    "capabilities for packages lead nowhere out",
    "changes are told of everything that a file can be",
    "a link to nowhere that is replaced is told as modified",
    "a process answers line by line until its input ends",
    "a process that cannot be had is refused",
    "a process's streams are told apart, and its end is told",
    "much passes a process unchanged in both directions",
    "several processes run at one time and do not disturb each other",
    "a process that is killed or dropped ends with all that it started",
    "a process whose output nobody reads waits, and so does who writes what it does not read",
    "a process meets its deadline where it has one",
    "a process ends with its sandbox",
    "a terminal shows what is typed and what is written, in its size",
    "a terminal that is resized tells the process so",
    "keys reach the foreground of a terminal, and its shell goes on",
    "a terminal that is hung up tells the process so",
    "a process on a terminal that is killed or dropped ends with all that it started",
    "what a process on a terminal leaves behind does not hold it open",
    "a terminal that nobody looks at holds up its process",
    "a terminal whose keys nobody takes is resized, hung up and killed",
    "a process on a terminal meets its deadline, and ends with its sandbox",
    "a connection that is dropped ends what serves it",
    "what runs inside cannot speak in a connection that is not its own",
    "ending all leaves nothing of shells and commands, whatever was killed",
    "ending all ends what kills everything that is started",
    "ending all makes room where all processes are used up",
    "an image that is absent is told",
    "bytes that are no text come as they are",
    "a command that ends by a signal or a trap says so",
    "a memory bomb is ended and told as such",
    "a limit of the disk that is not kept is refused",
    "a limit of the fuel that is not kept is refused",
    "determinism that is not kept is refused",
    "output is handed over whole, in order, while the command runs",
    "links made inside do not lead files out",
    "links made inside do not lead archives out",
    "a shell keeps variables and survives what its commands do",
    "a command that ends the shell is an observation",
    "a command in a shell meets its deadline, and the next runs",
    "background output is not mixed up with later commands",
    "set-up commands run in turn before the sandbox is handed out",
    "a network that cannot be had is refused",
    "an allow-list that is not kept is refused",
    "images that cannot be built are refused",
    "archives that cannot be images are refused",
    "a fork bomb stays in its sandbox",
    "a full disk is told to the command inside",
    "a process that ignores signals ends at the deadline",
    "nothing a command started outlives its deadline",
    "a process that double-forks and keeps the pipe open holds nothing up",
    "a flood of output that nobody waits for ends at the deadline",
    "files of the host cannot be reached",
    "processes of the host cannot be seen",
    "devices cannot be used or made",
    "nothing can be mounted",
    "settings of the kernel cannot be changed",
    "no other process of the machine can be traced",
    "nothing can be reached over the network",
    "the clock cannot be set",
    "the host's name is not told",
    "an allow-list lets its hosts through, and programs are told how",
    "what passes an allow-list arrives unchanged, however much of it",
    "an allow-list lets nobody else through",
    "an allow-list opens no way beside its proxy",
    "a name on an allow-list does not lead to this machine",
    "each sandbox has an allow-list of its own",
    "hostile clients do an allow-list's proxy no harm",
    "a client of an allow-list that does not read holds up no other",
    "forks and snapshots have their allow-list",
    "closing ends what passes an allow-list",
    "another network ends what passed by the one before, and nothing else",
];

/// The backend of a name. Whether it works here, [`SandboxBackend::probe`] tells.
///
/// # Errors
///
/// [`SandboxError::UnknownBackend`]; [`SandboxError::Unavailable`] where it is not part of this
/// build, or cannot even be set up.
pub fn open(name: &str) -> Result<Arc<dyn SandboxBackend>, SandboxError> {
    let Ok(row) = backend_registry().find(name) else {
        let offered = backend_registry().iter().filter(|row| !row.is_for_tests);
        let known = closest_first(name, offered.map(|row| row.name));
        return Err(SandboxError::UnknownBackend { name: name.to_owned(), known });
    };
    (row.open.open)()
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
