//! How a backend does simple things.

use crate::{ExecRequest, Image};

/// A command, and the image it is in where that is not [`Options::image`](super::Options::image).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The image; absent for that of the options.
    pub image: Option<Image>,
    /// The command as [`ExecRequest::command`] takes it.
    pub command: Vec<String>,
}

impl Program {
    /// A command in the image of the options.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self { image: None, command: command.into_iter().map(Into::into).collect() }
    }

    /// The same in another image.
    #[must_use]
    pub fn with_image(mut self, image: Image) -> Self {
        self.image = Some(image);
        self
    }

    /// The request that runs it.
    pub fn request(&self) -> ExecRequest {
        ExecRequest::new(self.command.clone())
    }
}

/// One program for each simple thing; absent ones leave checks out.
///
/// Backends that are [`posix`](crate::Capabilities::posix) have [`Programs::posix`]; others say how
/// theirs do it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Programs {
    /// Writes `hello` and a newline.
    pub echo: Option<Program>,
    /// Exits with 3.
    pub fail: Option<Program>,
    /// Does not exist, where programs are found by name.
    pub missing: Option<Program>,
    /// Writes `oops` and a newline to standard error.
    pub complain: Option<Program>,
    /// Writes its standard input to standard output.
    pub cat: Option<Program>,
    /// Writes its environment, a line `NAME=VALUE` for each variable.
    pub environment: Option<Program>,
    /// Writes its working directory and a newline.
    pub workdir: Option<Program>,
    /// Writes as many zero bytes as its last argument, which is added, says.
    pub zeros: Option<Program>,
    /// Writes the bytes 0, 255, 30, 128, 10.
    pub garbage: Option<Program>,
    /// Runs without end, using the processor or not.
    pub forever: Option<Program>,
    /// Takes memory until it gets none, and does not exit with 0 then.
    pub allocate: Option<Program>,
    /// Reads beyond its memory, or the like: ends by a signal or a trap.
    pub crash: Option<Program>,
    /// Writes `made` into the file `/tmp/made` (without a newline).
    pub write_file: Option<Program>,
    /// Writes what is in the file `/tmp/given`.
    pub read_file: Option<Program>,
    /// Listens on the port that its last argument, which is added, names, sends back what each connection
    /// sends, and ends one whose client has ended. The program itself ends at once and leaves that behind;
    /// where programs are of POSIX, it adds a line to `/tmp/served`
    /// for each connection that ended.
    pub echo_server: Option<Program>,
    /// Whether scripts of `sh` run in the image of the options, with the usual commands in them:
    /// hostile ones are tried then, as far as they need no processes.
    pub scripts: bool,
}

impl Programs {
    /// Those of a system with `sh` and the usual tools.
    pub fn posix() -> Self {
        let sh = |script: &str| Some(Program::new(["sh", "-c", script]));
        Self {
            echo: sh("echo hello"),
            fail: sh("exit 3"),
            missing: Some(Program::new(["no-such-program"])),
            complain: sh("echo oops >&2"),
            cat: Some(Program::new(["cat"])),
            environment: Some(Program::new(["env"])),
            workdir: sh("pwd"),
            zeros: Some(Program::new(["sh", "-c", "head -c \"$0\" /dev/zero"])),
            garbage: sh("printf '\\000\\377\\036\\200\\n'"),
            forever: sh("while :; do :; done"),
            allocate: sh("x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done"),
            crash: sh("kill -SEGV $$"),
            write_file: sh("printf made >/tmp/made"),
            read_file: sh("cat /tmp/given"),
            echo_server: sh(&echo_server()),
            scripts: true,
        }
    }

    /// Those built into [`FakeBackend`](crate::backends::fake::FakeBackend).
    pub fn fake() -> Self {
        let words = |words: &str| Some(Program::new(words.split(' ')));
        Self {
            echo: words("echo hello"),
            fail: words("exit 3"),
            missing: words("no-such-program"),
            complain: words("complain oops"),
            cat: words("cat"),
            environment: words("env"),
            workdir: words("pwd"),
            zeros: words("repeat"),
            forever: words("sleep 1000000"),
            write_file: words("write /tmp/made made"),
            read_file: words("cat /tmp/given"),
            echo_server: words("listen"),
            ..Self::default()
        }
    }
}

/// With Perl, which distributions have by default, or with the `nc` of busybox.
fn echo_server() -> String {
    const PERL: &str = "use IO::Socket::INET; $SIG{CHLD} = \"IGNORE\"; \
                        my $s = IO::Socket::INET->new(Listen => 256, LocalAddr => \"127.0.0.1\", \
                        LocalPort => $ARGV[0], ReuseAddr => 1) or exit 1; \
                        while (my $c = $s->accept) { my $p = fork; next if $p or !defined $p; \
                        open(STDIN, \"<&\", $c); open(STDOUT, \">&\", $c); close $c; close $s; \
                        exec \"sh\", \"-c\", $ARGV[1]; }";
    // It counts how often it is told to listen: so many connections may wait.
    let listen = "l".repeat(128);
    format!(
        "serve='cat; echo over >>/tmp/served'; \
         if command -v perl; then set -- perl -e '{PERL}' \"$0\" \"$serve\"; \
         else set -- nc -{listen} -p \"$0\" -e sh -c \"$serve\"; fi >/dev/null; \
         setsid \"$@\" </dev/null >/dev/null 2>&1 &"
    )
}
