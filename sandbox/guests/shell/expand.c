/* What `$`, quotes and patterns in a word become. */
#include "shell.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A word while it is expanded: each byte with how it came. */
enum { PLAIN, QUOTED, SPLIT, BREAK };
typedef struct {
    Text bytes, how;
    bool any_quotes;
} Work;

static void put(Work *work, const char *data, size_t len, char how) {
    text_add(&work->bytes, data, len);
    for (size_t i = 0; i < len; i++)
        text_char(&work->how, how);
}

static void expand_into(Work *work, const char *p, const char *end, bool quoted, Io *io);

static const char *part_end(const char *p, char open, char close) {
    int depth = 0;
    for (; *p; p++) {
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == '\'' && open == '(') {
            const char *end = strchr(p + 1, '\'');
            p = end ? end : p;
        } else if (*p == open) {
            depth++;
        } else if (*p == close && --depth == 0) {
            return p;
        }
    }
    return p;
}

static char *capture(const char *script, size_t len, Io *io) {
    Text text = {0};
    text_add(&text, "", 0);
    Out out = {.fd = -1, .text = &text};
    Io inner = {io->in, &out, io->err};
    Shell saved;
    char *cwd;
    state_save(&saved, &cwd);
    int status = run_script(scratch_str(script, len), &inner);
    bool exited = shell.flow == FLOW_EXIT;
    if (exited)
        status = shell.status;
    state_restore(&saved, cwd);
    shell.status = status;
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    char *copy = scratch_str(text.data, text.len);
    text_free(&text);
    return copy;
}

static const char *special(char c) {
    char *text = scratch(24);
    Text joined = {0};
    switch (c) {
    case '?': out_fmt(&(Out){.fd = -1, .text = &joined}, "%d", shell.status); break;
    case '#': out_fmt(&(Out){.fd = -1, .text = &joined}, "%d", shell.argc); break;
    case '$': text_str(&joined, "1"); break;
    case '!': text_str(&joined, "0"); break;
    case '-': text_str(&joined, shell.opt_e ? "e" : ""); break;
    case '@':
    case '*':
        text_add(&joined, "", 0);
        for (int i = 0; i < shell.argc; i++) {
            if (i)
                text_char(&joined, ' ');
            text_str(&joined, shell.argv[i]);
        }
        break;
    case '0': text_str(&joined, shell.name ? shell.name : "sh"); break;
    default: {
        int index = c - '1';
        return index >= 0 && index < shell.argc ? shell.argv[index] : NULL;
    }
    }
    text = scratch_str(joined.data, joined.len);
    text_free(&joined);
    return text;
}

static const char *value_of(const char *name) {
    if (!name[1] && !isalpha((unsigned char)name[0]) && name[0] != '_')
        return special(name[0]);
    if (isdigit((unsigned char)name[0])) {
        int index = atoi(name) - 1;
        return index >= 0 && index < shell.argc ? shell.argv[index] : NULL;
    }
    return get_variable(name);
}

static void put_value(Work *work, const char *name, const char *value, bool quoted, Io *io) {
    if (strcmp(name, "@") == 0 && quoted) {
        for (int i = 0; i < shell.argc; i++) {
            if (i)
                put(work, " ", 1, BREAK);
            put(work, shell.argv[i], strlen(shell.argv[i]), QUOTED);
        }
        return;
    }
    if (!value && shell.opt_u && strcmp(name, "@") && strcmp(name, "*")) {
        out_fmt(io->err, "%s: parameter not set\n", name);
        shell.unset_error = true;
    }
    if (value)
        put(work, value, strlen(value), quoted ? QUOTED : SPLIT);
}

/* `${NAME#pattern}` and its kin: what is left of `value`. */
static const char *cut(const char *value, const char *pattern, char side, bool longest) {
    size_t len = strlen(value);
    for (size_t i = 0; i <= len; i++) {
        size_t n = (side == '#') == !longest ? i : len - i;
        char *piece = side == '#' ? scratch_str(value, n) : scratch_str(value + n, len - n);
        if (fnmatch(pattern, piece, 0) == 0)
            return side == '#' ? value + n : scratch_str(value, n);
    }
    return value;
}

static const char *replace(const char *value, const char *pattern, const char *with, bool all) {
    Text result = {0};
    text_add(&result, "", 0);
    size_t len = strlen(value);
    bool done = false;
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        if (!done)
            for (n = len - i; n > 0; n--)
                if (fnmatch(pattern, scratch_str(value + i, n), 0) == 0)
                    break;
        if (n > 0) {
            text_str(&result, with);
            i += n;
            done = !all;
        } else {
            text_char(&result, value[i++]);
        }
    }
    char *copy = scratch_str(result.data, result.len);
    text_free(&result);
    return copy;
}

static void expand_braces(Work *work, const char *p, const char *end, bool quoted, Io *io) {
    bool length = *p == '#' && p + 1 < end && (isalnum((unsigned char)p[1]) || p[1] == '_' || p[1] == '@' || p[1] == '*');
    if (length)
        p++;
    const char *start = p;
    if (isalpha((unsigned char)*p) || *p == '_')
        while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
            p++;
    else if (isdigit((unsigned char)*p))
        while (p < end && isdigit((unsigned char)*p))
            p++;
    else
        p++;
    char *name = scratch_str(start, p - start);
    const char *value = value_of(name);
    if (length) {
        char text[24];
        Text joined = {0};
        size_t n = *name == '@' || *name == '*' ? (size_t)shell.argc : value ? strlen(value) : 0;
        out_fmt(&(Out){.fd = -1, .text = &joined}, "%zu", n);
        strncpy(text, joined.data, sizeof text - 1);
        text[sizeof text - 1] = 0;
        text_free(&joined);
        put(work, text, strlen(text), quoted ? QUOTED : SPLIT);
        return;
    }
    if (p >= end) {
        put_value(work, name, value, quoted, io);
        return;
    }
    bool colon = *p == ':' && p + 1 < end && strchr("-=+?", p[1]);
    if (colon)
        p++;
    char operator = *p++;
    bool present = value && !(colon && !*value);
    if (operator == '-' || operator == '=' || operator == '+' || operator == '?') {
        if (operator == '+' ? !present : present) {
            if (operator != '+')
                put_value(work, name, value, quoted, io);
            return;
        }
        if (operator == '=') {
            char *text = expand_string(scratch_str(p, end - p), io);
            set_variable(name, text);
            put_value(work, name, text, quoted, io);
        } else if (operator == '?') {
            char *text = expand_string(scratch_str(p, end - p), io);
            out_fmt(io->err, "%s: %s\n", name, *text ? text : "parameter not set");
            shell.unset_error = true;
        } else {
            expand_into(work, p, end, quoted, io);
        }
        return;
    }
    if (!value)
        value = "";
    if (operator == '#' || operator == '%') {
        bool longest = p < end && *p == operator;
        char *pattern = expand_pattern(scratch_str(p + longest, end - p - longest), io);
        value = cut(value, pattern, operator, longest);
    } else if (operator == '/') {
        bool all = p < end && *p == '/';
        p += all;
        const char *slash = p;
        while (slash < end && *slash != '/')
            slash += *slash == '\\' && slash + 1 < end ? 2 : 1;
        char *pattern = expand_pattern(scratch_str(p, slash - p), io);
        const char *with = slash < end ? expand_string(scratch_str(slash + 1, end - slash - 1), io) : "";
        value = replace(value, pattern, with, all);
    } else if (operator == ':') {
        long long len = strlen(value), from, count = len;
        const char *second = memchr(p, ':', end - p);
        from = arithmetic(scratch_str(p, (second ? second : end) - p), io);
        if (second)
            count = arithmetic(scratch_str(second + 1, end - second - 1), io);
        from = from < 0 ? len + from : from;
        from = from < 0 ? 0 : from > len ? len : from;
        count = count < 0 ? len - from + count : count;
        count = count < 0 ? 0 : count > len - from ? len - from : count;
        value = scratch_str(value + from, count);
    } else {
        out_fmt(io->err, "${%s}: bad substitution\n", name);
        shell.unset_error = true;
        return;
    }
    put(work, value, strlen(value), quoted ? QUOTED : SPLIT);
}

/* What stands behind a `$` at `p`: where it ends. */
static const char *expand_dollar(Work *work, const char *p, const char *end, bool quoted, Io *io) {
    char how = quoted ? QUOTED : SPLIT;
    if (p[1] == '(' && p[2] == '(') {
        const char *close = part_end(p + 1, '(', ')');
        if (close[-1] == ')') {
            Text text = {0};
            out_fmt(&(Out){.fd = -1, .text = &text}, "%lld", arithmetic(scratch_str(p + 3, close - 1 - (p + 3)), io));
            put(work, text.data, text.len, how);
            text_free(&text);
            return close + 1;
        }
    }
    if (p[1] == '(') {
        const char *close = part_end(p + 1, '(', ')');
        char *text = capture(p + 2, close - (p + 2), io);
        put(work, text, strlen(text), how);
        return close + 1;
    }
    if (p[1] == '{') {
        const char *close = part_end(p + 1, '{', '}');
        expand_braces(work, p + 2, close, quoted, io);
        return close + 1;
    }
    const char *q = p + 1;
    if (isalpha((unsigned char)*q) || *q == '_')
        while (q < end && (isalnum((unsigned char)*q) || *q == '_'))
            q++;
    else if (q < end && strchr("?#$!-@*0123456789", *q) && *q)
        q++;
    if (q == p + 1) {
        put(work, "$", 1, quoted ? QUOTED : PLAIN);
        return q;
    }
    char *name = scratch_str(p + 1, q - p - 1);
    put_value(work, name, value_of(name), quoted, io);
    return q;
}

static void expand_into(Work *work, const char *p, const char *end, bool quoted, Io *io) {
    while (p < end) {
        if (*p == '\\') {
            if (p + 1 >= end) {
                put(work, p++, 1, QUOTED);
            } else if (p[1] == '\n') {
                p += 2;
            } else {
                if (quoted && !strchr("$`\"\\", p[1]))
                    put(work, p, 1, QUOTED);
                put(work, p + 1, 1, QUOTED);
                p += 2;
            }
        } else if (*p == '\'' && !quoted) {
            const char *close = memchr(p + 1, '\'', end - p - 1);
            close = close ? close : end;
            work->any_quotes = true;
            put(work, p + 1, close - p - 1, QUOTED);
            p = close + 1;
        } else if (*p == '"') {
            /* Inside an expansion that stands in quotes, inner quotes change nothing. */
            work->any_quotes = true;
            if (quoted) {
                p++;
                continue;
            }
            const char *close = p + 1;
            while (close < end && *close != '"') {
                if (*close == '\\')
                    close += 2;
                else if (*close == '$' && (close[1] == '(' || close[1] == '{'))
                    close = part_end(close + 1, close[1], close[1] == '(' ? ')' : '}') + 1;
                else
                    close++;
            }
            close = close < end ? close : end;
            expand_into(work, p + 1, close, true, io);
            p = close + 1;
        } else if (*p == '$') {
            p = expand_dollar(work, p, end, quoted, io);
        } else if (*p == '`') {
            const char *close = memchr(p + 1, '`', end - p - 1);
            close = close ? close : end;
            char *text = capture(p + 1, close - p - 1, io);
            put(work, text, strlen(text), quoted ? QUOTED : SPLIT);
            p = close + 1;
        } else {
            put(work, p++, 1, quoted ? QUOTED : PLAIN);
        }
    }
}

static Work expand(const char *word, Io *io) {
    Work work = {0};
    text_add(&work.bytes, "", 0);
    text_add(&work.how, "", 0);
    const char *rest = word;
    if (*word == '~' && (!word[1] || word[1] == '/')) {
        const char *home = get_variable("HOME");
        put(&work, home ? home : "/", strlen(home ? home : "/"), QUOTED);
        rest = word + 1;
    }
    expand_into(&work, rest, rest + strlen(rest), false, io);
    return work;
}

static void work_free(Work *work) {
    text_free(&work->bytes);
    text_free(&work->how);
}

char *expand_string(const char *word, Io *io) {
    Work work = expand(word, io);
    char *copy = scratch_str(work.bytes.data, work.bytes.len);
    work_free(&work);
    return copy;
}

char *expand_here(const char *body, Io *io) {
    Work work = {0};
    text_add(&work.bytes, "", 0);
    text_add(&work.how, "", 0);
    for (const char *p = body, *end = body + strlen(body); p < end;) {
        const char *quote = strchr(p, '"');
        const char *stop = quote ? quote : end;
        expand_into(&work, p, stop, true, io);
        if (quote)
            put(&work, "\"", 1, QUOTED);
        p = quote ? quote + 1 : end;
    }
    char *copy = scratch_str(work.bytes.data, work.bytes.len);
    work_free(&work);
    return copy;
}

/* Bytes `from`..`to` as a pattern, with a backslash before what was quoted. */
static char *pattern_of(Work *work, size_t from, size_t to, bool *magic) {
    Text pattern = {0};
    text_add(&pattern, "", 0);
    for (size_t i = from; i < to; i++) {
        char c = work->bytes.data[i];
        if (strchr("*?[", c) && c && work->how.data[i] != QUOTED)
            *magic = true;
        else if (work->how.data[i] == QUOTED && strchr("*?[]\\", c) && c)
            text_char(&pattern, '\\');
        text_char(&pattern, c);
    }
    char *copy = scratch_str(pattern.data, pattern.len);
    text_free(&pattern);
    return copy;
}

char *expand_pattern(const char *word, Io *io) {
    Work work = expand(word, io);
    bool magic = false;
    char *pattern = pattern_of(&work, 0, work.bytes.len, &magic);
    work_free(&work);
    return pattern;
}

typedef struct {
    char **list;
    int count, room;
} Fields;

static void add_field(Fields *fields, char *field) {
    if (fields->count + 1 >= fields->room) {
        fields->room = fields->room ? fields->room * 2 : 8;
        fields->list = realloc(fields->list, sizeof(char *) * fields->room);
    }
    fields->list[fields->count++] = field;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds the paths that `prefix` and the pattern `rest` match. */
static void glob_into(Fields *fields, const char *prefix, const char *rest) {
    while (*rest == '/') {
        Text longer = {0};
        text_str(&longer, prefix);
        text_char(&longer, '/');
        prefix = scratch_str(longer.data, longer.len);
        text_free(&longer);
        rest++;
    }
    if (!*rest) {
        add_field(fields, scratch_str(prefix, strlen(prefix)));
        return;
    }
    const char *slash = strchr(rest, '/');
    char *part = scratch_str(rest, slash ? (size_t)(slash - rest) : strlen(rest));
    DIR *folder = opendir(*prefix ? prefix : ".");
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' && part[0] != '.')
            continue;
        if (fnmatch(part, entry->d_name, 0) != 0)
            continue;
        Text longer = {0};
        text_str(&longer, prefix);
        text_str(&longer, entry->d_name);
        char *path = scratch_str(longer.data, longer.len);
        text_free(&longer);
        struct stat info;
        if (!slash)
            add_field(fields, path);
        else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            glob_into(fields, path, slash);
    }
    closedir(folder);
}

static void end_field(Fields *fields, Work *work, size_t from, size_t to) {
    bool magic = false;
    char *pattern = pattern_of(work, from, to, &magic);
    int before = fields->count;
    if (magic)
        glob_into(fields, "", pattern);
    if (fields->count == before)
        add_field(fields, scratch_str(work->bytes.data + from, to - from));
    else
        qsort(fields->list + before, fields->count - before, sizeof(char *), by_name);
}

char **expand_fields(const char *word, int *count, Io *io) {
    Work work = expand(word, io);
    Fields fields = {0};
    const char *separators = get_variable("IFS");
    if (!separators)
        separators = " \t\n";
    size_t start = 0;
    bool inside = work.any_quotes && !strstr(word, "$@");
    for (size_t i = 0; i < work.bytes.len; i++) {
        char how = work.how.data[i];
        bool split = how == SPLIT && strchr(separators, work.bytes.data[i]);
        if (split || how == BREAK) {
            if (inside || how == BREAK)
                end_field(&fields, &work, start, i);
            inside = how == BREAK;
            start = i + 1;
        } else if (!inside) {
            inside = true;
            start = i;
        }
    }
    if (inside)
        end_field(&fields, &work, start, work.bytes.len);
    char **list = scratch(sizeof(char *) * (fields.count + 1));
    if (fields.count)
        memcpy(list, fields.list, sizeof(char *) * fields.count);
    *count = fields.count;
    free(fields.list);
    work_free(&work);
    return list;
}
