/* Commands that change the shell itself, or run other commands. */
#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int c_true(int argc, char **argv, Io *io) { return (void)argc, (void)argv, (void)io, 0; }
static int c_false(int argc, char **argv, Io *io) { return (void)argc, (void)argv, (void)io, 1; }

static int c_cd(int argc, char **argv, Io *io) {
    const char *target = argc > 1 ? argv[1] : get_variable("HOME");
    bool back = target && strcmp(target, "-") == 0;
    if (back)
        target = get_variable("OLDPWD");
    if (!target)
        target = "/";
    char before[4097], after[4097];
    if (!getcwd(before, sizeof before))
        strcpy(before, "/");
    struct stat info;
    if (stat(target, &info) != 0)
        return complain(io, "cd", target);
    if (!S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return complain(io, "cd", target);
    }
    /* `..` is taken back by name, so that the path stays short. */
    char *whole = scratch(strlen(before) + strlen(target) + 3);
    sprintf(whole, "%s/%s", *target == '/' ? "" : before, target);
    size_t len = 0;
    after[0] = 0;
    for (char *part = strtok(whole, "/"); part; part = strtok(NULL, "/")) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            while (len > 0 && after[--len] != '/') {
            }
            after[len] = 0;
        } else if (len + strlen(part) + 2 < sizeof after) {
            after[len++] = '/';
            strcpy(after + len, part);
            len += strlen(part);
        }
    }
    if (chdir(len ? after : "/") != 0)
        return complain(io, "cd", target);
    set_variable("OLDPWD", before);
    set_variable("PWD", len ? after : "/");
    if (back)
        out_fmt(io->out, "%s\n", len ? after : "/");
    return 0;
}

static int c_pwd(int argc, char **argv, Io *io) {
    (void)argc, (void)argv;
    char path[4097];
    out_fmt(io->out, "%s\n", getcwd(path, sizeof path) ? path : "/");
    return 0;
}

static int c_exit(int argc, char **argv, Io *io) {
    (void)io;
    if (argc > 1)
        shell.status = atoi(argv[1]) & 0xff;
    shell.flow = strcmp(argv[0], "return") == 0 ? FLOW_RETURN : FLOW_EXIT;
    return shell.status;
}

static int c_break(int argc, char **argv, Io *io) {
    (void)io;
    shell.flow = strcmp(argv[0], "break") == 0 ? FLOW_BREAK : FLOW_CONTINUE;
    shell.flow_count = argc > 1 ? atoi(argv[1]) : 1;
    return 0;
}

static int c_export(int argc, char **argv, Io *io) {
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        char *name = scratch_str(argv[i], equals ? (size_t)(equals - argv[i]) : strlen(argv[i]));
        if (strcmp(name, "-p") == 0)
            continue;
        if (equals)
            set_variable(name, equals + 1);
        if (argv[0][0] == 'e')
            export_variable(name);
        else if (!equals && !get_variable(name))
            set_variable(name, "");
    }
    if (argc == 1)
        for (Variable *v = shell.variables; v; v = v->next)
            if (v->exported)
                out_fmt(io->out, "export %s='%s'\n", v->name, v->value);
    return 0;
}

static int c_env(int argc, char **argv, Io *io) {
    int i = 1;
    for (; i < argc && strchr(argv[i], '='); i++) {
        char *equals = strchr(argv[i], '=');
        char *name = scratch_str(argv[i], equals - argv[i]);
        set_variable(name, equals + 1);
        export_variable(name);
    }
    if (i < argc && argv[0][0] == 'e')
        return run_command(argc - i, argv + i, io);
    if (i < argc) {
        const char *value = get_variable(argv[i]);
        if (value)
            out_fmt(io->out, "%s\n", value);
        return !value;
    }
    for (Variable *v = shell.variables; v; v = v->next)
        if (v->exported)
            out_fmt(io->out, "%s=%s\n", v->name, v->value);
    return 0;
}

static int c_unset(int argc, char **argv, Io *io) {
    (void)io;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            continue;
        if (strcmp(argv[i], "-f") == 0) {
            for (Function **f = &shell.functions; i + 1 < argc && *f; f = &(*f)->next)
                if (strcmp((*f)->name, argv[i + 1]) == 0) {
                    *f = (*f)->next;
                    break;
                }
            return 0;
        }
        unset_variable(argv[i]);
    }
    return 0;
}

static void set_arguments(int argc, char **argv) {
    /* They live as long as the shell: `set` and `shift` are rare. */
    char **list = malloc(sizeof(char *) * (argc + 1));
    for (int i = 0; i < argc; i++)
        list[i] = strdup(argv[i]);
    list[argc] = NULL;
    shell.argc = argc;
    shell.argv = list;
}

static int c_set(int argc, char **argv, Io *io) {
    int i = 1;
    for (; i < argc && (argv[i][0] == '-' || argv[i][0] == '+') && argv[i][1]; i++) {
        bool on = argv[i][0] == '-';
        if (strcmp(argv[i], "--") == 0) {
            set_arguments(argc - i - 1, argv + i + 1);
            return 0;
        }
        for (char *p = argv[i] + 1; *p; p++) {
            if (*p == 'e')
                shell.opt_e = on;
            else if (*p == 'u')
                shell.opt_u = on;
            else if (*p == 'x')
                shell.opt_x = on;
            else if (*p == 'o' && i + 1 < argc) {
                i++;
                if (strcmp(argv[i], "pipefail") == 0)
                    shell.opt_pipefail = on;
                else if (strcmp(argv[i], "errexit") == 0)
                    shell.opt_e = on;
                else if (strcmp(argv[i], "nounset") == 0)
                    shell.opt_u = on;
                break;
            } else {
                out_fmt(io->err, "set: -%c is not known\n", *p);
                return 2;
            }
        }
    }
    if (i < argc)
        set_arguments(argc - i, argv + i);
    if (argc == 1)
        for (Variable *v = shell.variables; v; v = v->next)
            out_fmt(io->out, "%s='%s'\n", v->name, v->value);
    return 0;
}

static int c_shift(int argc, char **argv, Io *io) {
    (void)io;
    int n = argc > 1 ? atoi(argv[1]) : 1;
    if (n < 0 || n > shell.argc)
        return 1;
    shell.argc -= n;
    shell.argv += n;
    return 0;
}

static int c_read(int argc, char **argv, Io *io) {
    int i = 1;
    while (i < argc && argv[i][0] == '-')
        i++;
    char *line = in_line(io->in);
    const char *ifs = get_variable("IFS");
    if (!ifs)
        ifs = " \t\n";
    char *p = line ? line : "";
    if (i >= argc)
        set_variable("REPLY", p);
    for (; i < argc; i++) {
        while (*p && strchr(ifs, *p) && isspace((unsigned char)*p))
            p++;
        size_t n = i + 1 < argc ? strcspn(p, ifs) : strlen(p);
        while (i + 1 == argc && n > 0 && strchr(ifs, p[n - 1]) && isspace((unsigned char)p[n - 1]))
            n--;
        set_variable(argv[i], scratch_str(p, n));
        p += n;
        if (*p && i + 1 < argc)
            p++;
    }
    return line == NULL;
}

static int c_eval(int argc, char **argv, Io *io) {
    Text text = {0};
    text_add(&text, "", 0);
    for (int i = 1; i < argc; i++) {
        text_str(&text, argv[i]);
        text_char(&text, ' ');
    }
    char *script = scratch_str(text.data, text.len);
    text_free(&text);
    return run_script(script, io);
}

static char *load(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return NULL;
    In in = {.fd = fd};
    size_t len;
    char *script = in_all(&in, &len);
    free(in.own);
    close(fd);
    return script;
}

static int c_source(int argc, char **argv, Io *io) {
    if (argc < 2)
        return 2;
    char *script = load(argv[1]);
    if (!script)
        return complain(io, argv[0], argv[1]);
    int status = run_script(script, io);
    if (shell.flow == FLOW_RETURN) {
        shell.flow = FLOW_NONE;
        status = shell.status;
    }
    return status;
}

static int c_sh(int argc, char **argv, Io *io) {
    Shell saved;
    char *cwd, *script = NULL;
    int i = 1;
    bool text = false;
    state_save(&saved, &cwd);
    shell.argc = 0;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        for (char *p = argv[i] + 1; *p; p++) {
            text |= *p == 'c';
            shell.opt_e |= *p == 'e';
            shell.opt_u |= *p == 'u';
            shell.opt_x |= *p == 'x';
        }
    }
    int status = 0;
    if (text && i >= argc) {
        out_str(io->err, "sh: -c needs a script\n");
        status = 2;
    } else if (text) {
        script = argv[i++];
        if (i < argc)
            shell.name = argv[i++];
    } else if (i < argc) {
        shell.name = argv[i];
        script = load(argv[i++]);
        if (!script)
            status = complain(io, "sh", argv[i - 1]), status = 127;
    } else {
        size_t len;
        script = in_all(io->in, &len);
    }
    if (script) {
        shell.argc = argc - i > 0 ? argc - i : 0;
        shell.argv = argv + i;
        static int nested;
        if (++nested > 20) {
            out_str(io->err, "sh: nested too deeply\n");
            status = 2;
        } else {
            status = run_script(script, io);
        }
        nested--;
    }
    if (shell.flow == FLOW_EXIT || shell.flow == FLOW_RETURN)
        status = shell.status;
    state_restore(&saved, cwd);
    shell.flow = FLOW_NONE;
    return status;
}

static int c_type(int argc, char **argv, Io *io) {
    int status = 0;
    int i = 1;
    bool plain = strcmp(argv[0], "command") == 0;
    if (plain && i < argc && argv[i][0] != '-')
        return run_command(argc - 1, argv + 1, io);
    for (; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        if (find_command(argv[i]))
            out_fmt(io->out, argv[0][0] == 't' ? "%s is a shell builtin\n" : "%s\n", argv[i]);
        else
            status = 1;
    }
    return status;
}

static int c_xargs(int argc, char **argv, Io *io) {
    int i = 1, per = 0;
    const char *with = NULL;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            per = atoi(argv[++i]);
        else if (strcmp(argv[i], "-I") == 0 && i + 1 < argc)
            with = argv[++i];
    }
    size_t len;
    char *text = in_all(io->in, &len);
    char **list = scratch(sizeof(char *) * (len + argc + 2));
    int base = 0, status = 0;
    for (; i < argc; i++)
        list[base++] = argv[i];
    if (!base)
        list[base++] = "echo";
    int n = base;
    In none = {.fd = -1};
    Io inner = {&none, io->out, io->err};
    for (char *p = text; *p;) {
        size_t m = strcspn(p, with ? "\n" : " \t\n");
        char *item = scratch_str(p, m);
        p += m;
        while (*p && strchr(with ? "\n" : " \t\n", *p))
            p++;
        if (!m)
            continue;
        if (with) {
            char **again = scratch(sizeof(char *) * (base + 1));
            for (int k = 0; k < base; k++) {
                char *at = strstr(list[k], with);
                again[k] = list[k];
                if (at) {
                    again[k] = scratch(strlen(list[k]) + m + 1);
                    sprintf(again[k], "%.*s%s%s", (int)(at - list[k]), list[k], item, at + strlen(with));
                }
            }
            status |= run_command(base, again, &inner);
            continue;
        }
        list[n++] = item;
        if (per && n - base >= per) {
            list[n] = NULL;
            status |= run_command(n, list, &inner);
            n = base;
        }
    }
    if (!with && (n > base || (!per && n == base && !len))) {
        list[n] = NULL;
        status |= run_command(n, list, &inner);
    }
    return status ? 123 : 0;
}

static int test_number(const char *operator, long long a, long long b) {
    if (strcmp(operator, "-eq") == 0) return a == b;
    if (strcmp(operator, "-ne") == 0) return a != b;
    if (strcmp(operator, "-lt") == 0) return a < b;
    if (strcmp(operator, "-le") == 0) return a <= b;
    if (strcmp(operator, "-gt") == 0) return a > b;
    if (strcmp(operator, "-ge") == 0) return a >= b;
    return -1;
}

/* 1 holds, 0 does not, -1 cannot be read. */
static int test(char **v, int n) {
    struct stat info;
    for (int i = 0; i < n; i++)
        if (i > 0 && strcmp(v[i], "-o") == 0) {
            int left = test(v, i), right = test(v + i + 1, n - i - 1);
            return left < 0 || right < 0 ? -1 : left || right;
        }
    for (int i = 0; i < n; i++)
        if (i > 0 && strcmp(v[i], "-a") == 0 && n > 3) {
            int left = test(v, i), right = test(v + i + 1, n - i - 1);
            return left < 0 || right < 0 ? -1 : left && right;
        }
    if (n == 0)
        return 0;
    if (n == 3 && (strcmp(v[1], "=") == 0 || strcmp(v[1], "==") == 0))
        return strcmp(v[0], v[2]) == 0;
    if (n == 3 && strcmp(v[1], "!=") == 0)
        return strcmp(v[0], v[2]) != 0;
    if (n == 3 && strcmp(v[1], "<") == 0)
        return strcmp(v[0], v[2]) < 0;
    if (n == 3 && strcmp(v[1], ">") == 0)
        return strcmp(v[0], v[2]) > 0;
    if (n == 3) {
        int result = test_number(v[1], strtoll(v[0], NULL, 10), strtoll(v[2], NULL, 10));
        if (result >= 0)
            return result;
    }
    if (n > 1 && strcmp(v[0], "!") == 0) {
        int result = test(v + 1, n - 1);
        return result < 0 ? -1 : !result;
    }
    if (n == 1)
        return v[0][0] != 0;
    if (n != 2 || v[0][0] != '-')
        return -1;
    switch (v[0][1]) {
    case 'n': return v[1][0] != 0;
    case 'z': return v[1][0] == 0;
    case 'e': case 'r': case 'x': case 'w': return stat(v[1], &info) == 0;
    case 'f': return stat(v[1], &info) == 0 && S_ISREG(info.st_mode);
    case 'd': return stat(v[1], &info) == 0 && S_ISDIR(info.st_mode);
    case 's': return stat(v[1], &info) == 0 && info.st_size > 0;
    case 'L': case 'h': return lstat(v[1], &info) == 0 && S_ISLNK(info.st_mode);
    case 't': return 0;
    }
    return -1;
}

static int c_test(int argc, char **argv, Io *io) {
    if (argv[0][0] == '[') {
        if (strcmp(argv[argc - 1], "]") != 0) {
            out_str(io->err, "[: `]` is missing\n");
            return 2;
        }
        argc--;
    }
    int result = test(argv + 1, argc - 1);
    if (result < 0) {
        out_fmt(io->err, "%s: cannot be read\n", argv[0]);
        return 2;
    }
    return !result;
}

static const struct { const char *name; Command command; } commands[] = {
    {":", c_true}, {"true", c_true}, {"false", c_false}, {"cd", c_cd}, {"pwd", c_pwd}, {"exit", c_exit},
    {"return", c_exit}, {"break", c_break}, {"continue", c_break}, {"export", c_export}, {"local", c_export},
    {"readonly", c_export}, {"env", c_env}, {"printenv", c_env}, {"unset", c_unset}, {"set", c_set},
    {"shift", c_shift}, {"read", c_read}, {"eval", c_eval}, {".", c_source}, {"source", c_source}, {"sh", c_sh},
    {"bash", c_sh}, {"type", c_type}, {"command", c_type}, {"which", c_type}, {"xargs", c_xargs},
    {"test", c_test}, {"[", c_test},
};

Command find_shell_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return NULL;
}

Command find_command(const char *name) {
    Command found = find_shell_command(name);
    if (!found)
        found = find_file_command(name);
    return found ? found : find_text_command(name);
}
