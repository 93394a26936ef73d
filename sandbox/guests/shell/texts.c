/* Commands on text. */
#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Calls `each` on every named file, or standard input where there is none or it is `-`. */
typedef int (*Each)(const char *name, In *in, void *state, Io *io);

static int for_inputs(const char *command, int count, char **names, Each each, void *state, Io *io) {
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

static void escape(Text *text, const char **p) {
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
                    char held[512];
                    snprintf(held, sizeof held, spec, number);
                    out_str(&out, held);
                } else if (kind && strchr("eEfFgG", kind)) {
                    char held[512];
                    spec[n] = kind;
                    spec[n + 1] = 0;
                    snprintf(held, sizeof held, spec, value ? strtod(value, NULL) : 0.0);
                    out_str(&out, held);
                } else if (kind == 'b') {
                    for (const char *q = value ? value : ""; *q;)
                        if (*q == '\\')
                            escape(&text, &q);
                        else
                            text_char(&text, *q++);
                } else if (kind == 's' || kind == 'c') {
                    spec[n] = kind == 's' ? 's' : '.';
                    strcpy(spec + n + 1, kind == 's' ? "" : "1s");
                    const char *plain = value ? value : "";
                    size_t room = strlen(plain) + 600;
                    char *held = scratch(room);
                    snprintf(held, room, spec, plain);
                    out_str(&out, held);
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
    char *text = in_all(in, &len);
    long long count = options->count;
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

typedef struct {
    regex_t regex;
    const char *fixed;
    bool invert, count, names, only, quiet, number, whole, many, no_names, fold, word;
    bool found;
} Grep;

static bool grep_at(Grep *g, const char *line, const char *from, regmatch_t *match) {
    if (g->fixed) {
        const char *at = g->fold ? strcasestr(from, g->fixed) : strstr(from, g->fixed);
        if (!at)
            return false;
        match->rm_so = at - from;
        match->rm_eo = match->rm_so + strlen(g->fixed);
        return !g->whole || strlen(line) == strlen(g->fixed);
    }
    return regexec(&g->regex, from, 1, match, from > line ? REG_NOTBOL : 0) == 0;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool grep_line(Grep *g, const char *line, const char *from, regmatch_t *match) {
    while (grep_at(g, line, from, match)) {
        const char *start = from + match->rm_so, *end = from + match->rm_eo;
        if (!g->word || ((start == line || !is_word(start[-1])) && !is_word(*end)))
            return true;
        if (!*start)
            return false;
        from = start + 1;
    }
    return false;
}

static int grep(const char *name, In *in, void *state, Io *io) {
    Grep *g = state;
    long number = 0, count = 0;
    bool show_name = g->many && !g->no_names;
    for (;;) {
        Mark mark = scratch_mark();
        char *line = in_line(in);
        if (!line)
            break;
        number++;
        regmatch_t match;
        const char *from = line;
        bool matches = grep_line(g, line, from, &match);
        if (matches != g->invert) {
            g->found = true;
            count++;
            if (g->quiet)
                return 0;
            if (!g->count && !g->names)
                do {
                    if (show_name)
                        out_fmt(io->out, "%s:", name);
                    if (g->number)
                        out_fmt(io->out, "%ld:", number);
                    if (!g->only || g->invert) {
                        out_fmt(io->out, "%s\n", line);
                        break;
                    }
                    out_fmt(io->out, "%.*s\n", (int)(match.rm_eo - match.rm_so), from + match.rm_so);
                    from += match.rm_eo > match.rm_so ? match.rm_eo : match.rm_so + 1;
                } while (from <= line + strlen(line) && *from && grep_line(g, line, from, &match));
        }
        scratch_reset(mark);
    }
    if (g->names && count)
        out_fmt(io->out, "%s\n", name);
    else if (g->count)
        out_fmt(io->out, show_name ? "%s:%ld\n" : "%2$ld\n", name, count);
    return 0;
}

static int c_grep(int argc, char **argv, Io *io) {
    Grep g = {0};
    bool recurse = false, extended = strcmp(argv[0], "egrep") == 0, fixed = strcmp(argv[0], "fgrep") == 0;
    const char *pattern = NULL;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        for (char *p = argv[i] + 1; *p; p++) {
            switch (*p) {
            case 'v': g.invert = true; break;
            case 'c': g.count = true; break;
            case 'l': g.names = true; break;
            case 'o': g.only = true; break;
            case 'q': g.quiet = true; break;
            case 'n': g.number = true; break;
            case 'i': g.fold = true; break;
            case 'x': g.whole = true; break;
            case 'w': g.word = true; break;
            case 'h': g.no_names = true; break;
            case 'H': g.many = true; break;
            case 's': break;
            case 'E': extended = true; break;
            case 'F': fixed = true; break;
            case 'r': case 'R': recurse = g.many = true; break;
            case 'e':
                if (i + 1 < argc)
                    pattern = argv[++i];
                p = "x";
                break;
            default:
                out_fmt(io->err, "grep: -%c is not known\n", *p);
                return 2;
            }
        }
    }
    if (!pattern && i < argc)
        pattern = argv[i++];
    if (!pattern) {
        out_str(io->err, "grep: a pattern is needed\n");
        return 2;
    }
    if (fixed)
        g.fixed = pattern;
    else {
        char *text = scratch(strlen(pattern) + 8);
        sprintf(text, g.whole ? (extended ? "^(%s)$" : "^\\(%s\\)$") : "%s", pattern);
        int error = regcomp(&g.regex, text, (extended ? REG_EXTENDED : 0) | (g.fold ? REG_ICASE : 0));
        if (error) {
            out_fmt(io->err, "grep: `%s` is no pattern\n", pattern);
            return 2;
        }
    }
    char **names = argv + i;
    int count = argc - i;
    g.many |= count > 1;
    if (recurse) {
        static char *find_here[] = {"find", ".", "-type", "f"};
        Text list = {0};
        text_add(&list, "", 0);
        Out out = {.fd = -1, .text = &list};
        Io inner = {io->in, &out, io->err};
        for (int k = 0; k < (count ? count : 1); k++) {
            if (count)
                find_here[1] = names[k];
            find_command("find")(4, find_here, &inner);
        }
        find_here[1] = ".";
        char *text = scratch_str(list.data, list.len);
        names = scratch(sizeof(char *) * (list.len + 1));
        count = 0;
        for (char *name = strtok(text, "\n"); name; name = strtok(NULL, "\n"))
            names[count++] = name;
        text_free(&list);
        if (!count)
            return 1;
    }
    int status = for_inputs("grep", count, names, grep, &g, io);
    if (!fixed)
        regfree(&g.regex);
    return status ? 2 : !g.found;
}

typedef struct {
    char **list;
    size_t count, room;
} Lines;

static int gather(const char *name, In *in, void *state, Io *io) {
    (void)name, (void)io;
    Lines *lines = state;
    for (char *line; (line = in_line(in));) {
        if (lines->count == lines->room)
            lines->list = realloc(lines->list, sizeof(char *) * (lines->room = lines->room ? lines->room * 2 : 64));
        lines->list[lines->count++] = line;
    }
    return 0;
}

static struct { bool numeric, reverse, fold, unique; int key; char separator; } order;

static const char *key_of(const char *line) {
    for (int field = 1; field < order.key && *line; field++) {
        if (order.separator) {
            const char *at = strchr(line, order.separator);
            line = at ? at + 1 : "";
        } else {
            line += strspn(line, " \t");
            line += strcspn(line, " \t");
        }
    }
    return order.key && !order.separator ? line + strspn(line, " \t") : line;
}

static int compare_keys(const char *a, const char *b) {
    a = key_of(a), b = key_of(b);
    if (order.numeric) {
        double x = strtod(a, NULL), y = strtod(b, NULL);
        return x < y ? -1 : x > y;
    }
    return order.fold ? strcasecmp(a, b) : strcmp(a, b);
}

static int compare(const void *x, const void *y) {
    const char *a = *(char *const *)x, *b = *(char *const *)y;
    int result = compare_keys(a, b);
    if (result == 0 && !order.unique)
        result = strcmp(a, b);
    return order.reverse ? -result : result;
}

static int c_sort(int argc, char **argv, Io *io) {
    memset(&order, 0, sizeof order);
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++)
        for (char *p = argv[i] + 1; *p; p++) {
            if (*p == 'k' || *p == 't') {
                const char *value = p[1] ? p + 1 : i + 1 < argc ? argv[++i] : "1";
                if (*p == 'k') {
                    order.key = atoi(value);
                    order.numeric |= strchr(value, 'n') != NULL;
                    order.reverse |= strchr(value, 'r') != NULL;
                } else
                    order.separator = *value;
                break;
            }
            order.numeric |= *p == 'n' || *p == 'g';
            order.reverse |= *p == 'r';
            order.fold |= *p == 'f';
            order.unique |= *p == 'u';
        }
    Lines lines = {0};
    int status = for_inputs("sort", argc - i, argv + i, gather, &lines, io);
    if (lines.count)
        qsort(lines.list, lines.count, sizeof(char *), compare);
    for (size_t k = 0; k < lines.count; k++)
        if (!order.unique || k == 0 || compare_keys(lines.list[k - 1], lines.list[k]) != 0)
            out_fmt(io->out, "%s\n", lines.list[k]);
    free(lines.list);
    return status;
}

static int c_uniq(int argc, char **argv, Io *io) {
    bool count = false, repeated = false, single = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++)
        for (char *p = argv[i] + 1; *p; p++)
            count |= *p == 'c', repeated |= *p == 'd', single |= *p == 'u';
    Lines lines = {0};
    int status = for_inputs("uniq", argc - i, argv + i, gather, &lines, io);
    for (size_t k = 0, n; k < lines.count; k += n) {
        for (n = 1; k + n < lines.count && strcmp(lines.list[k], lines.list[k + n]) == 0; n++) {
        }
        if ((repeated && n == 1) || (single && n > 1))
            continue;
        if (count)
            out_fmt(io->out, "%7zu ", n);
        out_fmt(io->out, "%s\n", lines.list[k]);
    }
    free(lines.list);
    return status;
}

static int c_tac(int argc, char **argv, Io *io) {
    Lines lines = {0};
    int status = for_inputs(argv[0], argc - 1, argv + 1, gather, &lines, io);
    for (size_t k = 0; k < lines.count; k++) {
        char *line = lines.list[argv[0][0] == 't' ? lines.count - 1 - k : k];
        if (argv[0][0] == 'r')
            for (size_t a = 0, b = strlen(line); a + 1 < b; a++, b--) {
                char c = line[a];
                line[a] = line[b - 1];
                line[b - 1] = c;
            }
        out_fmt(io->out, "%s\n", line);
    }
    free(lines.list);
    return status;
}

typedef struct {
    bool bytes, only;
    char separator;
    bool wanted[1025];
    bool rest;
    int rest_from;
} Cut;

static int cut(const char *name, In *in, void *state, Io *io) {
    (void)name;
    Cut *c = state;
    for (char *line; (line = in_line(in));) {
        if (c->bytes) {
            for (int i = 1; line[i - 1]; i++)
                if (c->wanted[i < 1024 ? i : 1024] || (c->rest && i >= c->rest_from))
                    out_add(io->out, line + i - 1, 1);
        } else if (!strchr(line, c->separator)) {
            if (c->only)
                continue;
            out_str(io->out, line);
        } else {
            bool any = false;
            int field = 1;
            for (char *p = line;; field++) {
                char *end = strchr(p, c->separator);
                if (c->wanted[field < 1024 ? field : 1024] || (c->rest && field >= c->rest_from)) {
                    if (any)
                        out_add(io->out, &c->separator, 1);
                    out_add(io->out, p, end ? (size_t)(end - p) : strlen(p));
                    any = true;
                }
                if (!end)
                    break;
                p = end + 1;
            }
        }
        out_str(io->out, "\n");
    }
    return 0;
}

static int c_cut(int argc, char **argv, Io *io) {
    Cut c = {.separator = '\t'};
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        char kind = argv[i][1];
        const char *value = argv[i][2] ? argv[i] + 2 : i + 1 < argc && kind != 's' ? argv[++i] : "";
        c.only |= kind == 's';
        c.bytes |= kind == 'c' || kind == 'b';
        if (kind == 'd')
            c.separator = *value;
        if (strchr("fcb", kind))
            while (*value) {
                char *end;
                int from = strtol(value, &end, 10), to = from;
                from = end == value ? 1 : from;
                if (*end == '-') {
                    value = end + 1;
                    to = strtol(value, &end, 10);
                    if (end == value)
                        c.rest = true, c.rest_from = from, to = 0;
                }
                for (int k = from; k <= to && k < 1025; k++)
                    c.wanted[k] = true;
                value = *end == ',' ? end + 1 : "";
            }
    }
    return for_inputs("cut", argc - i, argv + i, cut, &c, io);
}

static size_t tr_set(const char *text, unsigned char *set) {
    size_t n = 0;
    Text plain = {0};
    for (const char *p = text; *p;)
        if (*p == '\\')
            escape(&plain, &p);
        else
            text_char(&plain, *p++);
    static const struct { const char *name; int (*is)(int); } classes[] = {
        {"[:lower:]", islower}, {"[:upper:]", isupper}, {"[:digit:]", isdigit}, {"[:alpha:]", isalpha},
        {"[:alnum:]", isalnum}, {"[:space:]", isspace}, {"[:punct:]", ispunct},
    };
    for (size_t i = 0; i < plain.len && n < 256;) {
        bool class = false;
        for (size_t k = 0; k < 7 && !class; k++)
            if (strncmp(plain.data + i, classes[k].name, 9) == 0) {
                for (int c = 0; c < 256 && n < 256; c++)
                    if (classes[k].is(c))
                        set[n++] = c;
                i += 9;
                class = true;
            }
        if (class)
            continue;
        unsigned char from = plain.data[i], to = from;
        if (i + 2 < plain.len && plain.data[i + 1] == '-')
            to = plain.data[i + 2], i += 2;
        i++;
        for (int c = from; c <= to && n < 256; c++)
            set[n++] = c;
    }
    text_free(&plain);
    return n;
}

static int c_tr(int argc, char **argv, Io *io) {
    bool delete = false, squeeze = false, complement = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++)
        for (char *p = argv[i] + 1; *p; p++)
            delete |= *p == 'd', squeeze |= *p == 's', complement |= *p == 'c' || *p == 'C';
    if (i >= argc)
        return 2;
    unsigned char one[256], two[256], other[256];
    size_t n = tr_set(argv[i], one), m = i + 1 < argc ? tr_set(argv[i + 1], two) : 0;
    if (complement) {
        bool in[256] = {0};
        size_t k = 0;
        for (size_t j = 0; j < n; j++)
            in[one[j]] = true;
        for (int c = 0; c < 256; c++)
            if (!in[c])
                other[k++] = c;
        memcpy(one, other, n = k);
    }
    int map[256];
    bool in_one[256] = {0}, squeezed[256] = {0};
    for (int c = 0; c < 256; c++)
        map[c] = c;
    for (size_t j = 0; j < n; j++) {
        in_one[one[j]] = true;
        if (m && !delete)
            map[one[j]] = two[j < m ? j : m - 1];
    }
    for (size_t j = 0; j < (m ? m : n) && squeeze; j++)
        squeezed[m ? two[j] : one[j]] = true;
    size_t len;
    char *text = in_all(io->in, &len);
    int last = -1;
    for (size_t j = 0; j < len; j++) {
        unsigned char c = text[j];
        if (delete && in_one[c])
            continue;
        char to = map[c];
        if (squeeze && last == (unsigned char)to && squeezed[(unsigned char)to])
            continue;
        last = (unsigned char)to;
        out_add(io->out, &to, 1);
    }
    return 0;
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
    for (long long i = from; step > 0 ? i <= to : i >= to; i += step)
        out_fmt(io->out, "%lld\n", i);
    return 0;
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

Command find_sed(const char *name);

static const struct { const char *name; Command command; } commands[] = {
    {"echo", c_echo}, {"printf", c_printf}, {"cat", c_cat}, {"nl", c_cat}, {"head", c_ends}, {"tail", c_ends},
    {"wc", c_wc}, {"grep", c_grep}, {"egrep", c_grep}, {"fgrep", c_grep}, {"sort", c_sort}, {"uniq", c_uniq},
    {"tac", c_tac}, {"rev", c_tac}, {"cut", c_cut}, {"tr", c_tr}, {"seq", c_seq}, {"tee", c_tee},
    {"date", c_date}, {"sleep", c_sleep},
};

Command find_text_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return find_sed(name);
}
