//! What the in-memory file system refuses, as both versions of WASI spell it.

/// Why an operation on files failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Errno {
    #[error("bad file descriptor")]
    BadDescriptor,
    #[error("file exists")]
    Exists,
    #[error("bad address")]
    Fault,
    #[error("file too large")]
    TooLarge,
    #[error("not a UTF-8 name")]
    NotUtf8,
    #[error("invalid argument")]
    Invalid,
    #[error("is a folder")]
    IsFolder,
    #[error("too many levels of links")]
    Loop,
    #[error("too many open files")]
    TooManyOpen,
    #[error("name too long")]
    NameTooLong,
    #[error("no such file or folder")]
    NotFound,
    #[error("no space left on device")]
    NoSpace,
    #[error("not a folder")]
    NotFolder,
    #[error("folder not empty")]
    NotEmpty,
    #[error("not a socket")]
    NotSocket,
    #[error("not supported")]
    Unsupported,
    #[error("operation not permitted")]
    NotPermitted,
    #[error("read-only file system")]
    ReadOnly,
    #[error("illegal seek")]
    IllegalSeek,
    #[error("cross-device link")]
    CrossDevice,
    #[error("device or resource busy")]
    Busy,
}

impl Errno {
    /// Its number in WASI preview 1.
    pub(crate) fn preview1(self) -> i32 {
        match self {
            Self::BadDescriptor => 8,
            Self::Busy => 10,
            Self::Exists => 20,
            Self::Fault => 21,
            Self::TooLarge => 22,
            Self::NotUtf8 => 25,
            Self::Invalid => 28,
            Self::IsFolder => 31,
            Self::Loop => 32,
            Self::TooManyOpen => 33,
            Self::NameTooLong => 37,
            Self::NotFound => 44,
            Self::NoSpace => 51,
            Self::NotFolder => 54,
            Self::NotEmpty => 55,
            Self::NotSocket => 57,
            Self::Unsupported => 58,
            Self::NotPermitted => 63,
            Self::ReadOnly => 69,
            Self::IllegalSeek => 70,
            Self::CrossDevice => 75,
        }
    }
}
