/* Commands that pick and order lines and columns. */
#include "shell.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    else if (g->count) {
        if (show_name)
            out_fmt(io->out, "%s:", name);
        out_fmt(io->out, "%ld\n", count);
    }
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

static const struct { const char *name; Command command; } commands[] = {
    {"grep", c_grep}, {"egrep", c_grep}, {"fgrep", c_grep}, {"sort", c_sort}, {"uniq", c_uniq},
    {"tac", c_tac}, {"rev", c_tac}, {"cut", c_cut}, {"tr", c_tr},
};

Command find_line_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return NULL;
}
