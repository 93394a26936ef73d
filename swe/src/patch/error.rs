use super::RepoPath;

/// What keeps a patch from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// It is larger than is read.
    #[error("the patch has {bytes} bytes, and at most {limit} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// What is read.
        limit: usize,
    },
    /// It changes more files than are read.
    #[error("the patch changes more than {limit} files")]
    TooManyFiles {
        /// How many are read.
        limit: usize,
    },
    /// A header does not say which file it is about.
    #[error("line {line}: the header of a file does not name one file")]
    NoName {
        /// Its line, from 1.
        line: usize,
    },
    /// A name in quotation marks does not end, or has an escape that is none.
    #[error("line {line}: a quoted name is not written as git writes them")]
    BadQuote {
        /// Its line, from 1.
        line: usize,
    },
    /// A mode is no octal number.
    #[error("line {line}: the mode of a file is no octal number")]
    BadMode {
        /// Its line, from 1.
        line: usize,
    },
    /// Lines of a header contradict each other.
    #[error("line {line}: the header of `{path}` contradicts itself: {detail}")]
    Inconsistent {
        /// Its line, from 1.
        line: usize,
        /// The file.
        path: RepoPath,
        /// How.
        detail: &'static str,
    },
    /// A hunk's header cannot be read.
    #[error("line {line}: the header of a hunk is not `@@ -START,LINES +START,LINES @@`")]
    BadHunk {
        /// Its line, from 1.
        line: usize,
    },
    /// A hunk stands before any file.
    #[error("line {line}: a hunk that belongs to no file")]
    HunkWithoutFile {
        /// Its line, from 1.
        line: usize,
    },
    /// A hunk has other lines than its header promises.
    #[error(
        "line {line}: a hunk has fewer lines than its header promises, or a line that is none of a hunk's"
    )]
    CorruptHunk {
        /// The line at which that shows, from 1.
        line: usize,
    },
    /// A binary file's data is not written as git writes it.
    #[error("line {line}: the data of a binary file is not written as git writes it")]
    CorruptBinary {
        /// Its line, from 1.
        line: usize,
    },
}
