//! What programs do that they should not.

use spar_sandbox::output::LastWords;

/// A program did something that it should not, or not what it should.
#[derive(Debug, thiserror::Error)]
#[error("program `{name}` ({command}): {fault}{last_words}")]
#[non_exhaustive]
pub struct ProgramError {
    /// What its environment is called.
    pub name: String,
    /// How it was started, shortened.
    pub command: String,
    /// What it did.
    pub fault: ProgramFault,
    /// What it last wrote, with what no line may hold left out.
    pub last_words: LastWords,
}

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramFault {
    /// It could not be started.
    #[error("it could not be started: {detail}")]
    Start {
        /// What the system said.
        detail: String,
    },
    /// It ended, though nobody had told it to.
    #[error("it {how}")]
    Ended {
        /// How, such as `exited with code 1`.
        how: String,
    },
    /// It closed its output, and goes on running.
    #[error("it closed its standard output")]
    ClosedOutput,
    /// It closed its input, and goes on running.
    #[error("it closed its standard input")]
    ClosedInput,
    /// It did not answer in time.
    #[error("it did not answer `{call}` within {seconds} s")]
    Late {
        /// What it was asked.
        call: &'static str,
        /// The time it had.
        seconds: u64,
    },
    /// It wrote a line beyond the limit.
    #[error("it wrote a line of more than {limit_bytes} bytes (`limits.line_bytes`)")]
    LineTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// It wrote something that is no answer to what it was asked.
    #[error("it wrote what is no answer: {detail}")]
    NotUnderstood {
        /// What is wrong with it.
        detail: String,
    },
    /// It answered something that it was not asked.
    #[error("it answered request {id}, which it was not asked, or had answered")]
    NotAsked {
        /// The number that it named.
        id: u64,
    },
    /// It said itself that it could not do what it was asked. It goes on running.
    #[error("it could not carry out `{call}`: {message}")]
    Refused {
        /// What it was asked.
        call: &'static str,
        /// What it said, shortened.
        message: String,
    },
    /// A request to it was given up when it was half sent, or while it plays one session at a time.
    #[error("what it was asked was given up before it had answered")]
    GivenUp,
    /// Its input had ended, and it did not end: it was ended.
    #[error("it did not end when its standard input had ended")]
    Lingered,
    /// It was told to end, since nothing is played any more.
    #[error("it was told to end")]
    ToldToEnd,
}
