//! The text that the shell is given, and the scripts beside it.

use super::posix::Ids;

/// Keeps the shell and its pipes; what it says and hears is told in [`PosixShell`].
///
/// [`PosixShell`]: super::PosixShell
pub(super) const BOOT: &str = include_str!("boot.sh");

const KILL: &str = include_str!("kill.sh");

/// `text` as one word of a shell.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    let mut word = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => word.extend_from_slice(b"'\\''"),
            byte => word.push(*byte),
        }
    }
    word.push(b'\'');
    word
}

/// Begins a new shell: where it stands, and its process number.
pub(super) fn begin(name: &str, workdir: Option<&[u8]>) -> Vec<u8> {
    let mut text = b"__spar_status() { return \"$1\"; }; ".to_vec();
    if let Some(workdir) = workdir {
        text.extend_from_slice(b"cd -- ");
        text.extend(quoted(workdir));
        text.extend_from_slice(b" 2>/dev/null || :; ");
    }
    text.extend(format!("command printf '\\036M%s %s\\036' {name} \"$$\"\n").into_bytes());
    text
}

/// Runs `command` between marks named `nonce`, its `$?` being `status`.
///
/// `command eval` keeps a syntax error from ending the shell. The marks are written by the shell
/// through the command's own pipes, so that they come after all that it wrote; what `set -x` tells
/// about them goes nowhere. `$?` is set without a subshell by a function, and in a list, so that
/// `set -e` does not see it.
pub(super) fn run(folder: &str, nonce: &str, status: i32, command: &[u8]) -> Vec<u8> {
    let folder = String::from_utf8(quoted(folder.as_bytes())).expect("it was a string");
    let set_status =
        if status == 0 { String::new() } else { format!("__spar_status {status} || ") };
    let mut text = format!(
        "if [ -p {folder}/o ] && [ -p {folder}/e ]; then {{ {{ \
         command printf 'c\\n' >{folder}/os; command printf 'c\\n' >{folder}/es; \
         IFS= read -r __spar_up </proc/uptime || :; \
         command printf '\\036S%s %s\\036' {nonce} \"${{__spar_up-}}\" >&8; \
         command printf '\\036S%s\\036' {nonce} >&9; \
         {set_status}command eval "
    )
    .into_bytes();
    text.extend(quoted(command));
    text.extend(
        format!(
            " </dev/null >&8 2>&9 8>&- 9>&-; \
             {{ command printf '\\036E%s %s\\036' {nonce} \"$?\"; \
             command pwd; command printf '\\036Z%s\\036' {nonce}; }} >&8; \
             command printf '\\036E%s\\036' {nonce} >&9; \
             }} 2>/dev/null; }} 8>{folder}/o 9>{folder}/e; \
             else command printf '\\036L%s\\036' {nonce}; fi\n"
        )
        .into_bytes(),
    );
    text
}

/// Tells the pumps how a command ended (`s` its marks were seen, `f` its shell is gone), and has
/// the shell wait until they are ready for the next one.
pub(super) fn settle(folder: &str, how: char) -> Vec<u8> {
    let folder = String::from_utf8(quoted(folder.as_bytes())).expect("it was a string");
    format!(
        "{{ command printf '{how}\\n' >{folder}/os; command printf '{how}\\n' >{folder}/es; \
         until read -r __spar_up <{folder}/or; do :; done; \
         until read -r __spar_up <{folder}/er; do :; done; }} 2>/dev/null\n"
    )
    .into_bytes()
}

/// Ends what the present command started, `since_ticks` being when it began; the shell goes on.
pub(super) fn kill_command(ids: &Ids, since_ticks: u64) -> String {
    format!("{}since={since_ticks}\n{KILL}", settings(ids))
}

/// Ends what the present command started and the shell, which is started anew.
pub(super) fn kill_shell(ids: &Ids, since_ticks: u64) -> String {
    format!(
        "{}since={since_ticks}\nkill -STOP $shell 2>/dev/null\n{KILL}\nkill -KILL $shell\n",
        settings(ids)
    )
}

/// Ends everything, what was left in the background included.
pub(super) fn kill_all(ids: &Ids) -> String {
    format!(
        "{}since=0\nkill -STOP $shell $supervisor 2>/dev/null\n{KILL}\n\
         kill -KILL $supervisor $first $second $shell 2>/dev/null\nrm -rf \"$folder\"\n",
        settings(ids)
    )
}

fn settings(ids: &Ids) -> String {
    let Ids { shell, supervisor, first, second, folder } = ids;
    let folder = String::from_utf8(quoted(folder.as_bytes())).expect("it was a string");
    format!("shell={shell} supervisor={supervisor} first={first} second={second} folder={folder}\n")
}
