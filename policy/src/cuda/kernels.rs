//! The sources of the kernels.

/// A file of kernels with what it includes.
pub(super) struct KernelFile {
    pub(super) name: &'static str,
    /// Whether it is compiled for one width of a head, as `HEAD_DIM`, and one type of numbers.
    pub(super) is_by_heads: bool,
    parts: &'static [&'static str],
}

const PRELUDE: &str = include_str!("kernels/prelude.cuh");
const MATRIX: &str = include_str!("kernels/matrix.cuh");
const ATTENTION: &str = include_str!("kernels/attention.cuh");

macro_rules! file {
    ($name:literal) => {
        KernelFile {
            name: $name,
            is_by_heads: false,
            parts: &[PRELUDE, include_str!(concat!("kernels/", $name, ".cu"))],
        }
    };
    ($name:literal, by heads) => {
        KernelFile {
            name: $name,
            is_by_heads: true,
            parts: &[PRELUDE, MATRIX, ATTENTION, include_str!(concat!("kernels/", $name, ".cu"))],
        }
    };
}

/// All files of kernels.
pub(super) const FILES: &[KernelFile] = &[
    file!("adamw"),
    file!("attention_backward", by heads),
    file!("attention_forward", by heads),
    file!("elementwise"),
    file!("embedding"),
    file!("head"),
    file!("heads"),
    file!("rms_norm"),
];

impl KernelFile {
    /// The file called `name`.
    pub(super) fn find(name: &str) -> &'static Self {
        FILES.iter().find(|file| file.name == name).expect("kernels stand in files of the table")
    }

    /// The source for a device.
    #[cfg(feature = "cuda")]
    pub(super) fn source(&self) -> String {
        self.parts.concat()
    }

    /// The source for the host.
    #[cfg(any(test, feature = "emulator"))]
    pub(super) fn emulated_source(&self) -> String {
        let mut parts = vec![include_str!("kernels/emulation.hpp")];
        for part in self.parts {
            if *part == MATRIX {
                parts.push(include_str!("kernels/emulated_matrix.hpp"));
            }
            parts.push(part);
        }
        parts.concat()
    }
}
