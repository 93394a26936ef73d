/* Runs what was parsed. */
#include "shell.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Shell shell;

static Variable *copy_variables(Variable *from) {
    Variable *first = NULL, **last = &first;
    for (; from; from = from->next) {
        Variable *v = calloc(1, sizeof *v);
        *v = (Variable){NULL, strdup(from->name), strdup(from->value ? from->value : ""), from->exported};
        *last = v;
        last = &v->next;
    }
    return first;
}

static Function *copy_functions(Function *from) {
    Function *first = NULL, **last = &first;
    for (; from; from = from->next) {
        Function *f = calloc(1, sizeof *f);
        *f = (Function){NULL, strdup(from->name), strdup(from->body)};
        *last = f;
        last = &f->next;
    }
    return first;
}

void state_save(Shell *saved, char **cwd) {
    *saved = shell;
    shell.variables = copy_variables(saved->variables);
    shell.functions = copy_functions(saved->functions);
    char *path = getcwd(NULL, 0);
    *cwd = path ? path : strdup("/");
}

void state_restore(Shell *saved, char *cwd) {
    while (shell.variables)
        unset_variable(shell.variables->name);
    for (Function *f = shell.functions, *next; f; f = next) {
        next = f->next;
        free(f->name);
        free(f->body);
        free(f);
    }
    bool failed = shell.unset_error;
    shell = *saved;
    shell.unset_error = failed && shell.unset_error;
    if (chdir(cwd) != 0)
        chdir("/");
    free(cwd);
}

static int in_subshell(Node *node, Io *io) {
    Shell saved;
    char *cwd;
    state_save(&saved, &cwd);
    int status = run_node(node, io);
    if (shell.flow == FLOW_EXIT)
        status = shell.status;
    int flow = shell.flow;
    state_restore(&saved, cwd);
    (void)flow;
    return shell.status = status;
}

typedef struct {
    Io io;
    In in;
    Out out, err;
    bool own_in, own_out, own_err;
    Text text;
} Redirected;

static void close_redirected(Redirected *r) {
    if (r->own_out)
        out_close(&r->out);
    if (r->own_err)
        out_close(&r->err);
    if (r->own_in) {
        if (r->in.fd > 2)
            close(r->in.fd);
        free(r->in.own);
    }
}

static bool open_redirects(Redirected *r, Redirect *list, Io *io) {
    r->io = *io;
    for (; list; list = list->next) {
        if (list->kind == 'h' || list->kind == 's') {
            char *body = list->kind == 's' ? expand_string(list->word, io) : list->quoted ? list->word : expand_here(list->word, io);
            size_t n = strlen(body);
            if (list->kind == 's') {
                char *line = scratch(n + 2);
                memcpy(line, body, n);
                line[n++] = '\n';
                body = line;
            }
            r->in = (In){.fd = -1, .data = body, .len = n};
            r->io.in = &r->in;
            continue;
        }
        char *target = expand_string(list->word, io);
        if (list->kind == 'd') {
            Out *out = strcmp(target, "1") == 0 ? r->io.out : strcmp(target, "2") == 0 ? r->io.err : NULL;
            if (strcmp(target, "-") == 0 || list->fd == 0)
                continue;
            if (!out || (list->fd != 1 && list->fd != 2)) {
                out_fmt(io->err, "sh: %s: bad file descriptor\n", target);
                return false;
            }
            *(list->fd == 1 ? &r->io.out : &r->io.err) = out;
            continue;
        }
        if (list->fd > 2 && list->fd != 12) {
            out_fmt(io->err, "sh: %d: descriptors above 2 are not supported\n", list->fd);
            return false;
        }
        bool null = strcmp(target, "/dev/null") == 0;
        int mode = list->kind == '<' ? O_RDONLY : O_WRONLY | O_CREAT | (list->kind == 'a' ? O_APPEND : O_TRUNC);
        if (null && list->kind == '<') {
            r->in = (In){.fd = -1};
            r->io.in = &r->in;
            continue;
        }
        int fd = null ? -1 : open(target, mode, 0644);
        if (fd < 0 && !null) {
            complain(io, "sh", target);
            return false;
        }
        if (list->kind == '<') {
            r->in = (In){.fd = fd};
            r->io.in = &r->in;
            r->own_in = true;
            continue;
        }
        Out *out = list->fd == 2 ? &r->err : &r->out;
        *out = (Out){.fd = fd, .text = &r->text};
        *(list->fd == 2 ? &r->own_err : &r->own_out) = !null;
        if (list->fd != 2)
            r->io.out = out;
        if (list->fd != 1)
            r->io.err = out;
    }
    return true;
}

static Function *find_function(const char *name) {
    for (Function *f = shell.functions; f; f = f->next)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static int call_function(Function *function, int argc, char **argv, Io *io) {
    if (shell.depth >= 100) {
        out_fmt(io->err, "%s: functions are nested too deeply\n", argv[0]);
        return 2;
    }
    int outer_argc = shell.argc;
    char **outer_argv = shell.argv;
    shell.argc = argc - 1;
    shell.argv = argv + 1;
    shell.depth++;
    int status = run_script(scratch_str(function->body, strlen(function->body)), io);
    shell.depth--;
    shell.argc = outer_argc;
    shell.argv = outer_argv;
    if (shell.flow == FLOW_RETURN) {
        shell.flow = FLOW_NONE;
        status = shell.status;
    }
    return status;
}

int run_command(int argc, char **argv, Io *io) {
    Function *function = find_function(argv[0]);
    if (function)
        return call_function(function, argc, argv, io);
    Command command = find_command(argv[0]);
    if (command)
        return command(argc, argv, io);
    if (strchr(argv[0], '/')) {
        const char *base = strrchr(argv[0], '/') + 1;
        bool known_folder = strncmp(argv[0], "/bin/", 5) == 0 || strncmp(argv[0], "/usr/bin/", 9) == 0;
        if (known_folder && (command = find_command(base)))
            return command(argc, argv, io);
        if (access(argv[0], F_OK) == 0) {
            char **script = scratch(sizeof(char *) * (argc + 2));
            script[0] = "sh";
            memcpy(script + 1, argv, sizeof(char *) * argc);
            return find_command("sh")(argc + 1, script, io);
        }
        return complain(io, "sh", argv[0]), 127;
    }
    out_fmt(io->err, "sh: %s: not found\n", argv[0]);
    return 127;
}

static int run_simple(Node *node, Io *io) {
    shell.unset_error = false;
    char **argv = NULL;
    int argc = 0, room = 0, last_status = shell.status;
    for (int i = node->num_assignments; i < node->num_words; i++) {
        int count;
        char **fields = expand_fields(node->words[i], &count, io);
        if (argc + count + 1 > room) {
            room = (argc + count + 1) * 2;
            char **grown = scratch(sizeof(char *) * room);
            if (argc)
                memcpy(grown, argv, sizeof(char *) * argc);
            argv = grown;
        }
        memcpy(argv + argc, fields, sizeof(char *) * count);
        argc += count;
    }
    Redirected r = {0};
    bool ready = open_redirects(&r, node->redirects, io);
    if (shell.unset_error) {
        close_redirected(&r);
        shell.status = 1;
        shell.flow = FLOW_EXIT;
        shell.by_error = true;
        return 1;
    }
    int status = ready ? 0 : 1;
    if (ready) {
        if (argc == 0)
            status = shell.status == last_status ? 0 : shell.status;
        char **old = scratch(sizeof(char *) * (node->num_assignments + 1));
        for (int i = 0; i < node->num_assignments; i++) {
            char *equals = strchr(node->words[i], '=');
            char *name = scratch_str(node->words[i], equals - node->words[i]);
            const char *before = get_variable(name);
            old[i] = before ? scratch_str(before, strlen(before)) : NULL;
            int seen = shell.status;
            set_variable(name, expand_string(equals + 1, io));
            if (argc == 0 && shell.status != seen)
                status = shell.status;
            if (argc > 0)
                export_variable(name);
        }
        if (argc > 0) {
            if (shell.opt_x) {
                out_str(io->err, "+");
                for (int i = 0; i < argc; i++)
                    out_fmt(io->err, " %s", argv[i]);
                out_str(io->err, "\n");
            }
            argv[argc] = NULL;
            status = run_command(argc, argv, &r.io);
            for (int i = 0; i < node->num_assignments; i++) {
                char *name = scratch_str(node->words[i], strchr(node->words[i], '=') - node->words[i]);
                if (old[i])
                    set_variable(name, old[i]);
                else
                    unset_variable(name);
            }
        }
    }
    close_redirected(&r);
    if ((r.own_out && r.out.failed) || (r.own_err && r.err.failed)) {
        errno = ENOSPC;
        status = complain(io, argc ? argv[0] : "sh", "write error");
    }
    text_free(&r.text);
    return status;
}

static int run_pipe(Node *node, Io *io) {
    Text text = {0};
    text_add(&text, "", 0);
    Out out = {.fd = -1, .text = &text, .limit = PIPE_BYTES};
    Io left = {io->in, &out, io->err};
    int first = in_subshell(node->a, &left);
    In in = {.fd = -1, .data = text.data, .len = text.len, .cut = out.failed};
    Io right = {&in, io->out, io->err};
    int status = node->b->kind == N_SIMPLE ? run_node(node->b, &right) : in_subshell(node->b, &right);
    text_free(&text);
    if (in.starved) {
        out_fmt(io->err, "sh: a pipe takes no more than %d MiB\n", (int)(PIPE_BYTES >> 20));
        status = shell.status = BROKEN_PIPE;
    }
    return shell.opt_pipefail && status == 0 ? first : status;
}

/* Whether the loop around goes on. */
static bool loop_goes_on(void) {
    if (shell.flow == FLOW_NONE)
        return true;
    if (shell.flow == FLOW_BREAK || shell.flow == FLOW_CONTINUE) {
        bool again = shell.flow == FLOW_CONTINUE && shell.flow_count <= 1;
        if (--shell.flow_count <= 0)
            shell.flow = FLOW_NONE;
        return again;
    }
    return false;
}

static int run_for(Node *node, Io *io) {
    char **items = shell.argv;
    int count = shell.argc, status = 0;
    if (!node->num_assignments) {
        Node words = {.kind = N_SIMPLE, .words = node->words, .num_words = node->num_words};
        items = NULL;
        count = 0;
        for (int i = 0; i < words.num_words; i++) {
            int n;
            char **fields = expand_fields(words.words[i], &n, io);
            char **grown = scratch(sizeof(char *) * (count + n + 1));
            if (count)
                memcpy(grown, items, sizeof(char *) * count);
            memcpy(grown + count, fields, sizeof(char *) * n);
            items = grown;
            count += n;
        }
    }
    for (int i = 0; i < count; i++) {
        Mark mark = scratch_mark();
        set_variable(node->text, items[i]);
        status = run_node(node->b, io);
        scratch_reset(mark);
        if (!loop_goes_on())
            break;
    }
    return status;
}

static int run_while(Node *node, Io *io) {
    int status = 0;
    for (;;) {
        Mark mark = scratch_mark();
        bool outer_e = shell.opt_e;
        shell.opt_e = false;
        bool holds = run_node(node->a, io) == 0;
        shell.opt_e = outer_e;
        if (shell.flow == FLOW_NONE && holds == (node->kind == N_WHILE))
            status = run_node(node->b, io);
        else if (shell.flow == FLOW_NONE) {
            scratch_reset(mark);
            return status;
        }
        scratch_reset(mark);
        if (!loop_goes_on())
            return status;
    }
}

static int run_case(Node *node, Io *io) {
    char *text = expand_string(node->text, io);
    for (Node *arm = node->a; arm; arm = arm->next)
        for (int i = 0; i < arm->num_words; i++)
            if (fnmatch(expand_pattern(arm->words[i], io), text, 0) == 0)
                return arm->b ? run_node(arm->b, io) : 0;
    return 0;
}

static void define(Node *node) {
    Function *f = find_function(node->text);
    if (!f) {
        f = calloc(1, sizeof *f);
        f->name = strdup(node->text);
        f->next = shell.functions;
        shell.functions = f;
    }
    free(f->body);
    f->body = strdup(node->words[0]);
}

/* With `set -e` off: the condition of something. */
static int run_condition(Node *node, Io *io) {
    bool outer = shell.opt_e;
    shell.opt_e = false;
    int status = run_node(node, io);
    shell.opt_e = outer;
    return status;
}

/* A list leans to the left: without recursion its length does not matter. */
static int run_sequence(Node *node, Io *io) {
    int count = 0, status = shell.status;
    for (Node *p = node; p && p->kind == N_SEQ; p = p->a)
        count++;
    Node **list = scratch(sizeof(Node *) * (count + 1));
    Node *p = node;
    int n = count;
    for (; p && p->kind == N_SEQ; p = p->a)
        list[n--] = p->b;
    list[0] = p;
    for (int i = 0; i <= count && shell.flow == FLOW_NONE; i++)
        if (list[i])
            status = run_node(list[i], io);
    return status;
}

static int run_inner(Node *node, Io *io) {
    int status;
    switch (node->kind) {
    case N_SIMPLE: return run_simple(node, io);
    case N_PIPE: return run_pipe(node, io);
    case N_AND:
        status = run_condition(node->a, io);
        return status == 0 && shell.flow == FLOW_NONE ? run_node(node->b, io) : status;
    case N_OR:
        status = run_condition(node->a, io);
        return status != 0 && shell.flow == FLOW_NONE ? run_node(node->b, io) : status;
    case N_NOT: return !run_condition(node->a, io);
    case N_SEQ: return run_sequence(node, io);
    case N_IF:
        status = run_condition(node->a, io);
        if (shell.flow != FLOW_NONE)
            return status;
        if (status == 0)
            return run_node(node->b, io);
        return node->c ? run_node(node->c, io) : 0;
    case N_WHILE:
    case N_UNTIL: return run_while(node, io);
    case N_FOR: return run_for(node, io);
    case N_CASE: return run_case(node, io);
    case N_FUNCTION: define(node); return 0;
    case N_GROUP: return run_node(node->a, io);
    default: return in_subshell(node->a, io);
    }
}

int run_node(Node *node, Io *io) {
    int status;
    if (node->redirects && node->kind != N_SIMPLE) {
        Redirected *r = scratch(sizeof(Redirected));
        status = open_redirects(r, node->redirects, io) ? run_inner(node, &r->io) : 1;
        close_redirected(r);
        text_free(&r->text);
    } else {
        status = run_inner(node, io);
    }
    if (shell.flow != FLOW_EXIT && shell.flow != FLOW_RETURN)
        shell.status = status;
    bool counts = node->kind == N_SIMPLE || node->kind == N_PIPE || node->kind == N_SUBSHELL;
    if (counts && status != 0 && shell.opt_e && shell.flow == FLOW_NONE) {
        shell.status = status;
        shell.flow = FLOW_EXIT;
    }
    return status;
}

int run_script(const char *script, Io *io) {
    const char *error;
    Node *node = parse(script, &error);
    if (!node) {
        out_fmt(io->err, "sh: %s\n", error);
        return shell.status = 2;
    }
    return run_node(node, io);
}
