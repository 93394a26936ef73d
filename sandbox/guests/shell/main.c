/* Where the shell begins: as a command and as a session. */
#include "shell.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void start(void) {
    for (char **entry = environ; entry && *entry; entry++) {
        char *equals = strchr(*entry, '=');
        if (!equals)
            continue;
        char *name = strndup(*entry, equals - *entry);
        set_variable(name, equals + 1);
        export_variable(name);
        free(name);
    }
    const char *pwd = get_variable("PWD");
    if (!pwd || chdir(pwd) != 0)
        chdir("/");
    shell.name = "sh";
}

static int finish(int status, Io *io) {
    out_flush(io->out);
    out_flush(io->err);
    return (shell.flow == FLOW_EXIT ? shell.status : status) & 0xff;
}

int main(int argc, char **argv) {
    static In in = {.fd = 0};
    static Out out = {.fd = 1}, err = {.fd = 2};
    Io io = {&in, &out, &err};
    start();
    if (argc > 1 && strcmp(argv[1], "-c") != 0 && find_command(argv[1]))
        return finish(run_command(argc - 1, argv + 1, &io), &io);
    char **list = scratch(sizeof(char *) * (argc + 1));
    list[0] = "sh";
    for (int i = 1; i < argc; i++)
        list[i] = argv[i];
    return finish(find_command("sh")(argc > 0 ? argc : 1, list, &io), &io);
}

static char *buffer;
extern void __wasm_call_ctors(void);

void session_open(void) {
    __wasm_call_ctors();
    start();
}

char *session_buffer(int len) {
    free(buffer);
    return buffer = malloc((size_t)len + 1);
}

int session_run(int len) {
    static Out out = {.fd = 1}, err = {.fd = 2};
    In in = {.fd = -1};
    Io io = {&in, &out, &err};
    buffer[len] = 0;
    shell.flow = FLOW_NONE;
    shell.depth = 0;
    shell.by_error = false;
    Mark mark = scratch_mark();
    int status = run_script(buffer, &io);
    /* A mistake in a command ends that command; only `exit` and `set -e` end the session. */
    bool ended = shell.flow == FLOW_EXIT && !shell.by_error;
    status = finish(status, &io);
    scratch_reset(mark);
    return ended ? status | SESSION_ENDED : status;
}

const char *session_cwd(void) {
    static char cwd[4097];
    return getcwd(cwd, sizeof cwd) ? cwd : "/";
}
