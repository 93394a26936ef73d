/* sed: s, p, d, q, = and y-free scripts, with addresses by number, by pattern and `$`. */
#include "shell.h"

#include <ctype.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int kind; /* 0 none, 1 line, 2 pattern, 3 last */
    long line;
    regex_t regex;
} Address;

typedef struct Step {
    struct Step *next;
    Address from, to;
    bool inside, negate;
    char command;
    regex_t regex;
    char *with;
    bool global, print;
    int nth;
} Step;

static bool extended;

/* What stands between delimiters at `*p`, with `\DELIMITER` taken back. */
static char *part(const char **p, char delimiter) {
    Text text = {0};
    text_add(&text, "", 0);
    while (**p && **p != delimiter) {
        if ((*p)[0] == '\\' && (*p)[1] == delimiter)
            (*p)++;
        else if ((*p)[0] == '\\' && (*p)[1])
            text_char(&text, *(*p)++);
        text_char(&text, *(*p)++);
    }
    if (**p)
        (*p)++;
    char *copy = scratch_str(text.data, text.len);
    text_free(&text);
    return copy;
}

static bool address(const char **p, Address *a) {
    if (isdigit((unsigned char)**p)) {
        char *end;
        a->kind = 1;
        a->line = strtol(*p, &end, 10);
        *p = end;
    } else if (**p == '$') {
        a->kind = 3;
        (*p)++;
    } else if (**p == '/') {
        (*p)++;
        a->kind = 2;
        return regcomp(&a->regex, part(p, '/'), extended ? REG_EXTENDED : 0) == 0;
    }
    return true;
}

static Step *compile(const char *p) {
    Step *first = NULL, **last = &first;
    for (;;) {
        p += strspn(p, " \t\n;");
        if (!*p)
            return first;
        Step *step = scratch(sizeof(Step));
        if (!address(&p, &step->from))
            return NULL;
        if (*p == ',') {
            p++;
            if (!address(&p, &step->to) || !step->to.kind)
                return NULL;
        }
        p += strspn(p, " ");
        if (*p == '!')
            step->negate = true, p++;
        step->command = *p++;
        if (step->command == 's') {
            char delimiter = *p++;
            char *pattern = part(&p, delimiter);
            step->with = part(&p, delimiter);
            int flags = extended ? REG_EXTENDED : 0;
            for (; *p && !strchr(" ;\n}", *p); p++) {
                if (*p == 'g')
                    step->global = true;
                else if (*p == 'p')
                    step->print = true;
                else if (*p == 'i' || *p == 'I')
                    flags |= REG_ICASE;
                else if (isdigit((unsigned char)*p))
                    step->nth = *p - '0';
                else
                    return NULL;
            }
            if (regcomp(&step->regex, pattern, flags) != 0)
                return NULL;
        } else if (!step->command || !strchr("pdq=", step->command)) {
            return NULL;
        }
        *last = step;
        last = &step->next;
    }
}

static bool is_at(Address *a, const char *line, long number, bool last) {
    return a->kind == 1 ? number == a->line : a->kind == 3 ? last : regexec(&a->regex, line, 0, NULL, 0) == 0;
}

static bool applies(Step *step, const char *line, long number, bool last) {
    bool result;
    if (!step->from.kind) {
        result = true;
    } else if (!step->to.kind) {
        result = is_at(&step->from, line, number, last);
    } else if (step->inside) {
        result = true;
        if (step->to.kind == 1 ? number >= step->to.line : is_at(&step->to, line, number, last))
            step->inside = false;
    } else {
        result = is_at(&step->from, line, number, last);
        step->inside = result && !(step->to.kind == 1 && step->to.line <= number);
    }
    return result != step->negate;
}

static char *substitute(Step *step, char *line, bool *changed) {
    Text text = {0};
    text_add(&text, "", 0);
    regmatch_t match[10];
    const char *p = line;
    int seen = 0;
    while (regexec(&step->regex, p, 10, match, p > line ? REG_NOTBOL : 0) == 0) {
        text_add(&text, p, match[0].rm_so);
        bool here = ++seen >= (step->nth ? step->nth : 1);
        if (!here)
            text_add(&text, p + match[0].rm_so, match[0].rm_eo - match[0].rm_so);
        for (const char *w = here ? step->with : ""; *w; w++) {
            int group = *w == '&' ? 0 : w[0] == '\\' && isdigit((unsigned char)w[1]) ? w[1] - '0' : -1;
            if (group >= 0) {
                w += *w == '\\';
                if (match[group].rm_so >= 0)
                    text_add(&text, p + match[group].rm_so, match[group].rm_eo - match[group].rm_so);
            } else if (w[0] == '\\' && w[1]) {
                w++;
                text_char(&text, *w == 'n' ? '\n' : *w == 't' ? '\t' : *w);
            } else {
                text_char(&text, *w);
            }
        }
        *changed |= here;
        bool empty = match[0].rm_eo == match[0].rm_so;
        p += match[0].rm_eo;
        if (empty && *p)
            text_char(&text, *p++);
        else if (empty)
            break;
        if (here && !step->global)
            break;
    }
    text_str(&text, p);
    char *copy = scratch_str(text.data, text.len);
    text_free(&text);
    return copy;
}

static void edit(Step *steps, In *in, Out *out, bool quiet) {
    char *line = in_line(in);
    for (long number = 1; line; number++) {
        char *next = in_line(in);
        bool deleted = false, ended = false;
        for (Step *step = steps; step && !deleted; step = step->next) {
            if (!applies(step, line, number, !next))
                continue;
            bool changed = false;
            switch (step->command) {
            case 's':
                line = substitute(step, line, &changed);
                if (changed && step->print)
                    out_fmt(out, "%s\n", line);
                break;
            case 'p': out_fmt(out, "%s\n", line); break;
            case '=': out_fmt(out, "%ld\n", number); break;
            case 'd': deleted = true; break;
            default: ended = true;
            }
            if (ended)
                break;
        }
        if (!deleted && !quiet)
            out_fmt(out, "%s\n", line);
        line = ended ? NULL : next;
    }
}

static int c_sed(int argc, char **argv, Io *io) {
    bool quiet = false, in_place = false;
    Text script = {0};
    int i = 1;
    extended = false;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "-e") == 0 && i + 1 < argc) {
            text_str(&script, argv[++i]);
            text_char(&script, '\n');
            continue;
        }
        for (char *p = argv[i] + 1; *p; p++) {
            quiet |= *p == 'n', in_place |= *p == 'i', extended |= *p == 'E' || *p == 'r';
            if (!strchr("niEr", *p)) {
                out_fmt(io->err, "sed: -%c is not known\n", *p);
                return 2;
            }
        }
    }
    if (!script.len && i < argc)
        text_str(&script, argv[i++]);
    Step *steps = script.len ? compile(scratch_str(script.data, script.len)) : NULL;
    text_free(&script);
    if (!steps) {
        out_str(io->err, "sed: the script cannot be read; there are s, p, d, q and =\n");
        return 2;
    }
    if (i >= argc)
        edit(steps, io->in, io->out, quiet);
    int status = 0;
    for (; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY);
        if (fd < 0) {
            status = complain(io, "sed", argv[i]);
            continue;
        }
        In in = {.fd = fd};
        Text edited = {0};
        text_add(&edited, "", 0);
        Out out = {.fd = -1, .text = &edited};
        edit(steps, &in, in_place ? &out : io->out, quiet);
        free(in.own);
        close(fd);
        if (in_place) {
            Out file = {.fd = open(argv[i], O_WRONLY | O_TRUNC)};
            if (file.fd < 0)
                status = complain(io, "sed", argv[i]);
            else {
                out_add(&file, edited.data, edited.len);
                out_close(&file);
            }
        }
        text_free(&edited);
    }
    return status;
}

Command find_sed(const char *name) { return strcmp(name, "sed") == 0 ? c_sed : NULL; }
