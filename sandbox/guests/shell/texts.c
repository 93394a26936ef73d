/* Commands that write text, and that pass it on. */
#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int for_inputs(const char *command, int count, char **names, Each each, void *state, Io *io) {
    static char *standard[] = {"-"};
    int status = 0;
    if (count == 0)
        count = 1, names = standard;
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], "-") == 0) {
            status |= each("-", io->in, state, io);
            continue;
        }
        int fd = open(names[i], O_RDONLY);
        char probe;
        if (fd < 0 || (read(fd, &probe, 0) < 0 && errno == EISDIR)) {
            status = complain(io, command, names[i]);
            continue;
        }
        In in = {.fd = fd};
        status |= each(names[i], &in, state, io);
        free(in.own);
        close(fd);
    }
    return status;
}

void escape(Text *text, const char **p) {
    const char *q = *p + 1;
    char c = *q++;
    switch (c) {
    case 'n': c = '\n'; break;
    case 't': c = '\t'; break;
    case 'r': c = '\r'; break;
    case 'a': c = '\a'; break;
    case 'e': c = 27; break;
    case '\\': break;
    case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': {
        int value = c - '0';
        for (int i = 0; i < 3 && *q >= '0' && *q <= '7'; i++)
            value = value * 8 + *q++ - '0';
        c = value;
        break;
    }
    case 'x': {
        int value = 0;
        for (int i = 0; i < 2 && isxdigit((unsigned char)*q); i++, q++)
            value = value * 16 + (isdigit((unsigned char)*q) ? *q - '0' : tolower((unsigned char)*q) - 'a' + 10);
        c = value;
        break;
    }
    default:
        text_char(text, '\\');
        if (!c)
            q--;
        else
            text_char(text, c);
        *p = q;
        return;
    }
    text_char(text, c);
    *p = q;
}

static int c_echo(int argc, char **argv, Io *io) {
    bool newline = true, escapes = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1] && strspn(argv[i] + 1, "neE") == strlen(argv[i] + 1); i++)
        for (char *p = argv[i] + 1; *p; p++) {
            newline &= *p != 'n';
            escapes = *p == 'e' ? true : *p == 'E' ? false : escapes;
        }
    for (int first = i; i < argc; i++) {
        if (i > first)
            out_str(io->out, " ");
        Text text = {0};
        for (const char *p = argv[i]; *p;)
            if (escapes && *p == '\\')
                escape(&text, &p);
            else
                text_char(&text, *p++);
        if (text.len)
            out_add(io->out, text.data, text.len);
        text_free(&text);
    }
    if (newline)
        out_str(io->out, "\n");
    return 0;
}

static int c_printf(int argc, char **argv, Io *io) {
    if (argc < 2)
        return 2;
    int next = 2, status = 0;
    do {
        for (const char *p = argv[1]; *p;) {
            Text text = {0};
            if (*p == '\\') {
                escape(&text, &p);
            } else if (p[0] == '%' && p[1] == '%') {
                text_char(&text, '%');
                p += 2;
            } else if (*p == '%') {
                size_t n = 1 + strspn(p + 1, "-+ #0123456789.");
                char kind = p[n], *spec = scratch_str(p, n + 4), *end;
                const char *value = next < argc ? argv[next] : NULL;
                if (kind && value)
                    next++;
                Out out = {.fd = -1, .text = &text};
                if (kind && strchr("dixXouc", kind) && kind != 'c') {
                    long long number = value ? (*value == '\'' || *value == '"') ? value[1] : strtoll(value, &end, 0) : 0;
                    strcpy(spec + n, "lld");
                    spec[n + 2] = kind;
                    out_fmt(&out, spec, number);
                } else if (kind && strchr("eEfFgG", kind)) {
                    spec[n] = kind;
                    spec[n + 1] = 0;
                    out_fmt(&out, spec, value ? strtod(value, NULL) : 0.0);
                } else if (kind == 'b') {
                    for (const char *q = value ? value : ""; *q;)
                        if (*q == '\\')
                            escape(&text, &q);
                        else
                            text_char(&text, *q++);
                } else if (kind == 's' || kind == 'c') {
                    spec[n] = kind == 's' ? 's' : '.';
                    strcpy(spec + n + 1, kind == 's' ? "" : "1s");
                    out_fmt(&out, spec, value ? value : "");
                } else {
                    out_fmt(io->err, "printf: %%%c is not known\n", kind ? kind : ' ');
                    text_free(&text);
                    return 1;
                }
                p += n + 1;
            } else {
                text_char(&text, *p++);
            }
            if (text.len)
                out_add(io->out, text.data, text.len);
            text_free(&text);
        }
    } while (next < argc && next > 2 && strchr(argv[1], '%'));
    return status;
}

static int cat(const char *name, In *in, void *state, Io *io) {
    (void)name;
    long *line = state;
    for (char *text; (text = in_line(in));) {
        out_fmt(io->out, "%6ld\t%s\n", ++*line, text);
    }
    return 0;
}

static int cat_plain(const char *name, In *in, void *state, Io *io) {
    (void)name, (void)state;
    size_t len;
    char *text = in_all(in, &len);
    out_add(io->out, text, len);
    return 0;
}

static int c_cat(int argc, char **argv, Io *io) {
    long line = 0;
    bool dash = argc > 1 && strcmp(argv[1], "-n") == 0;
    if (dash || argv[0][0] == 'n')
        return for_inputs(argv[0], argc - 1 - dash, argv + 1 + dash, cat, &line, io);
    return for_inputs("cat", argc - 1, argv + 1, cat_plain, NULL, io);
}

typedef struct {
    long long count;
    bool bytes, from, tail;
} Ends;

static int ends(const char *name, In *in, void *state, Io *io) {
    (void)name;
    Ends *options = state;
    if (!options->tail && !options->bytes) {
        for (long long i = 0; i < options->count; i++) {
            char *line = in_line(in);
            if (!line)
                break;
            out_fmt(io->out, "%s\n", line);
        }
        return 0;
    }
    size_t len, at;
    long long count = options->count;
    bool first = options->bytes && !options->tail;
    char *text = first ? in_some(in, count < 0 ? 0 : count, &len) : in_all(in, &len);
    if (options->bytes) {
        count = count > (long long)len ? (long long)len : count;
        if (options->tail)
            out_add(io->out, text + (options->from ? (size_t)(count ? count - 1 : 0) : len - count), options->from ? len - (count ? count - 1 : 0) : (size_t)count);
        else
            out_add(io->out, text, count);
        return 0;
    }
    if (options->from) {
        for (at = 0; count > 1 && at < len; at++)
            if (text[at] == '\n')
                count--;
    } else {
        for (at = len; at > 0; at--)
            if (text[at - 1] == '\n' && at != len && --count == 0)
                break;
        if (options->count == 0)
            at = len;
    }
    out_add(io->out, text + at, len - at);
    return 0;
}

static int c_ends(int argc, char **argv, Io *io) {
    Ends options = {.count = 10, .tail = argv[0][0] == 't'};
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        const char *value = argv[i] + 1;
        if (*value == 'n' || *value == 'c') {
            options.bytes = *value == 'c';
            value = value[1] ? value + 1 : i + 1 < argc ? argv[++i] : "10";
        } else if (!isdigit((unsigned char)*value)) {
            out_fmt(io->err, "%s: %s is not known\n", argv[0], argv[i]);
            return 2;
        }
        options.from = *value == '+';
        options.count = llabs(strtoll(value, NULL, 10));
    }
    return for_inputs(argv[0], argc - i, argv + i, ends, &options, io);
}

typedef struct {
    long long lines, words, bytes;
    bool l, w, c;
    int files;
} Counts;

static void show_counts(Counts *counts, long long lines, long long words, long long bytes, const char *name, Io *io) {
    const char *space = "";
    if (counts->l)
        out_fmt(io->out, "%lld", lines), space = " ";
    if (counts->w)
        out_fmt(io->out, "%s%lld", space, words), space = " ";
    if (counts->c)
        out_fmt(io->out, "%s%lld", space, bytes);
    out_fmt(io->out, strcmp(name, "-") ? " %s\n" : "\n", name);
}

static int wc(const char *name, In *in, void *state, Io *io) {
    Counts *counts = state;
    size_t len;
    char *text = in_all(in, &len);
    long long lines = 0, words = 0;
    bool inside = false;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
        bool space = isspace((unsigned char)text[i]);
        words += !space && !inside;
        inside = !space;
    }
    show_counts(counts, lines, words, len, name, io);
    counts->lines += lines, counts->words += words, counts->bytes += len, counts->files++;
    return 0;
}

static int c_wc(int argc, char **argv, Io *io) {
    Counts counts = {0};
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++)
        for (char *p = argv[i] + 1; *p; p++)
            counts.l |= *p == 'l', counts.w |= *p == 'w', counts.c |= *p == 'c' || *p == 'm';
    if (!counts.l && !counts.w && !counts.c)
        counts.l = counts.w = counts.c = true;
    int status = for_inputs("wc", argc - i, argv + i, wc, &counts, io);
    if (counts.files > 1)
        show_counts(&counts, counts.lines, counts.words, counts.bytes, "total", io);
    return status;
}

static int c_seq(int argc, char **argv, Io *io) {
    long long from = 1, step = 1, to;
    if (argc < 2)
        return 2;
    to = strtoll(argv[argc - 1], NULL, 10);
    if (argc > 2)
        from = strtoll(argv[1], NULL, 10);
    if (argc > 3)
        step = strtoll(argv[2], NULL, 10);
    if (step == 0)
        return 1;
    for (long long i = from; (step > 0 ? i <= to : i >= to) && !io->out->failed; i += step)
        out_fmt(io->out, "%lld\n", i);
    return 0;
}

static int c_yes(int argc, char **argv, Io *io) {
    Text line = {0};
    for (int i = 1; i < argc; i++) {
        text_str(&line, i > 1 ? " " : "");
        text_str(&line, argv[i]);
    }
    text_str(&line, argc > 1 ? "\n" : "y\n");
    while (!io->out->failed)
        out_add(io->out, line.data, line.len);
    text_free(&line);
    return 1;
}

static int c_tee(int argc, char **argv, Io *io) {
    bool append = argc > 1 && strcmp(argv[1], "-a") == 0;
    size_t len;
    char *text = in_all(io->in, &len);
    int status = 0;
    out_add(io->out, text, len);
    for (int i = 1 + append; i < argc; i++) {
        int fd = open(argv[i], O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), 0644);
        if (fd < 0) {
            status = complain(io, "tee", argv[i]);
            continue;
        }
        Out out = {.fd = fd};
        out_add(&out, text, len);
        out_close(&out);
        if (out.failed)
            status = complain(io, "tee", argv[i]);
    }
    return status;
}

static int c_date(int argc, char **argv, Io *io) {
    time_t now = time(NULL);
    char text[256] = "";
    const char *format = "%a %b %e %H:%M:%S UTC %Y";
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '+')
            format = argv[i] + 1;
    if (strcmp(format, "%s") == 0)
        snprintf(text, sizeof text, "%lld", (long long)now);
    else
        strftime(text, sizeof text, format, gmtime(&now));
    out_fmt(io->out, "%s\n", text);
    return 0;
}

static int c_sleep(int argc, char **argv, Io *io) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;
    out_flush(io->out);
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
    return 0;
}

static const struct { const char *name; Command command; } commands[] = {
    {"echo", c_echo}, {"printf", c_printf}, {"cat", c_cat}, {"nl", c_cat}, {"head", c_ends}, {"tail", c_ends},
    {"wc", c_wc}, 
    {"seq", c_seq}, {"yes", c_yes}, {"tee", c_tee},
    {"date", c_date}, {"sleep", c_sleep},
};

Command find_text_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    Command found = find_line_command(name);
    return found ? found : find_sed(name);
}
