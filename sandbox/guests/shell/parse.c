/* From text to commands. */
#include "shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pending {
    struct Pending *next;
    Redirect *redirect;
    char *end;
    bool strip;
} Pending; /* a here-document whose body begins on the next line */

static const char *at, *failure;
static Pending *pending;
static int nesting;

static Node *parse_list(void);

static void *fail(const char *why) {
    if (!failure)
        failure = why;
    return NULL;
}

static Node *node(int kind, Node *a, Node *b) {
    Node *made = scratch(sizeof(Node));
    made->kind = kind;
    made->a = a;
    made->b = b;
    return made;
}

static void read_here_documents(void) {
    while (pending) {
        Pending *here = pending;
        pending = here->next;
        Text body = {0};
        text_add(&body, "", 0);
        for (;;) {
            if (!*at)
                break;
            const char *line = at;
            if (here->strip)
                while (*line == '\t')
                    line++;
            const char *end = strchr(line, '\n');
            size_t n = end ? (size_t)(end - line) : strlen(line);
            at = line + n + (end != NULL);
            if (n == strlen(here->end) && memcmp(line, here->end, n) == 0)
                break;
            text_add(&body, line, n);
            text_char(&body, '\n');
        }
        here->redirect->word = scratch_str(body.data, body.len);
        text_free(&body);
    }
}

static void skip_blank(void) {
    for (;;) {
        if (*at == ' ' || *at == '\t' || *at == '\r')
            at++;
        else if (at[0] == '\\' && at[1] == '\n')
            at += 2;
        else if (*at == '#')
            while (*at && *at != '\n')
                at++;
        else
            return;
    }
}

static void skip_lines(void) {
    for (skip_blank(); *at == '\n' || *at == ';'; skip_blank()) {
        if (at[0] == ';' && at[1] == ';')
            return;
        bool newline = *at++ == '\n';
        if (newline)
            read_here_documents();
    }
}

/* Past a quoted or parenthesised part that starts at `p`. */
static const char *skip_part(const char *p) {
    if (*p == '\\')
        return p[1] ? p + 2 : p + 1;
    if (*p == '\'') {
        const char *end = strchr(p + 1, '\'');
        return end ? end + 1 : fail("unterminated '");
    }
    if (*p == '"' || *p == '`') {
        char quote = *p++;
        while (*p && *p != quote) {
            if (*p == '\\' || (quote == '"' && (*p == '$' || *p == '`'))) {
                if (!(p = skip_part(p)))
                    return NULL;
            } else {
                p++;
            }
        }
        return *p ? p + 1 : fail("unterminated quote");
    }
    if (*p == '$' && (p[1] == '(' || p[1] == '{')) {
        char open = p[1], close = open == '(' ? ')' : '}';
        int depth = 0;
        for (p++; *p;) {
            if (*p == open) {
                depth++;
                p++;
            } else if (*p == close) {
                p++;
                if (--depth == 0)
                    return p;
            } else if (strchr("\\'\"`$", *p)) {
                if (!(p = skip_part(p)))
                    return NULL;
            } else {
                p++;
            }
        }
        return fail("unterminated expansion");
    }
    return p + 1;
}

/* The word at hand; NULL where there is none. */
static char *word(void) {
    skip_blank();
    const char *start = at;
    while (*at && !strchr(" \t\r\n;&|<>()", *at)) {
        const char *next = skip_part(at);
        if (!next)
            return NULL;
        at = next;
    }
    return at > start ? scratch_str(start, at - start) : NULL;
}

static bool is_at(const char *token) {
    skip_blank();
    size_t n = strlen(token);
    if (strncmp(at, token, n) != 0)
        return false;
    return !isalpha((unsigned char)token[0]) || !at[n] || strchr(" \t\r\n;&|<>()", at[n]);
}

static bool take(const char *token) {
    if (!is_at(token))
        return false;
    at += strlen(token);
    return true;
}

static bool ends_list(void) {
    static const char *const ends[] = {"then", "else", "elif", "fi", "do", "done", "esac", "}", ")", ";;"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_at(ends[i]))
            return true;
    return !*at;
}

static char *unquote(const char *text, bool *quoted) {
    Text plain = {0};
    text_add(&plain, "", 0);
    for (; *text; text++) {
        if (strchr("'\"\\", *text))
            *quoted = true;
        else
            text_char(&plain, *text);
    }
    char *copy = scratch_str(plain.data, plain.len);
    text_free(&plain);
    return copy;
}

/* A redirection at hand is put at the end of `*list`. */
static bool redirect(Redirect **list) {
    skip_blank();
    const char *p = at;
    int fd = -1;
    if (isdigit((unsigned char)*p) && (p[1] == '<' || p[1] == '>'))
        fd = *p++ - '0';
    else if (p[0] == '&' && p[1] == '>')
        fd = 12, p++;
    if (*p != '<' && *p != '>')
        return false;
    Redirect *made = scratch(sizeof(Redirect));
    made->fd = fd >= 0 ? fd : *p == '>';
    bool strip = false;
    if (strncmp(p, "<<<", 3) == 0)
        made->kind = 's', p += 3;
    else if (strncmp(p, "<<", 2) == 0) {
        made->kind = 'h', p += 2;
        if (*p == '-')
            strip = true, p++;
    } else if (strncmp(p, ">>", 2) == 0)
        made->kind = 'a', p += 2;
    else if (p[1] == '&')
        made->kind = 'd', p += 2;
    else {
        made->kind = *p++;
        if (*p == '|')
            p++;
    }
    at = p;
    made->word = word();
    if (!made->word)
        return fail("a redirection without a target") != NULL;
    if (made->kind == 'h') {
        Pending *here = scratch(sizeof(Pending)), **last = &pending;
        *here = (Pending){NULL, made, unquote(made->word, &made->quoted), strip};
        while (*last)
            last = &(*last)->next;
        *last = here;
    }
    while (*list)
        list = &(*list)->next;
    *list = made;
    return true;
}

static void push(Node *to, char *text) {
    if ((to->num_words & (to->num_words - 1)) == 0) {
        char **grown = scratch(sizeof(char *) * (to->num_words ? to->num_words * 2 : 1));
        if (to->num_words)
            memcpy(grown, to->words, sizeof(char *) * to->num_words);
        to->words = grown;
    }
    to->words[to->num_words++] = text;
}

static bool is_assignment(const char *text) {
    const char *p = text;
    if (!isalpha((unsigned char)*p) && *p != '_')
        return false;
    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    return *p == '=';
}

static Node *expect(Node *made, const char *token) {
    skip_lines();
    return take(token) ? made : fail("a closing word is missing");
}

static Node *parse_if(void) {
    Node *made = node(N_IF, parse_list(), NULL);
    skip_lines();
    if (!take("then"))
        return fail("`if` without `then`");
    made->b = parse_list();
    skip_lines();
    if (take("elif")) {
        made->c = parse_if();
        return made;
    }
    if (take("else"))
        made->c = parse_list();
    return expect(made, "fi");
}

static Node *parse_loop(int kind) {
    Node *made = node(kind, parse_list(), NULL);
    skip_lines();
    if (!take("do"))
        return fail("a loop without `do`");
    made->b = parse_list();
    return expect(made, "done");
}

static Node *parse_for(void) {
    Node *made = node(N_FOR, NULL, NULL);
    made->text = word();
    if (!made->text)
        return fail("`for` without a name");
    skip_lines();
    made->num_assignments = 1; /* means: over "$@" */
    if (take("in")) {
        made->num_assignments = 0;
        for (char *item; (item = word());)
            push(made, item);
    }
    skip_lines();
    if (!take("do"))
        return fail("`for` without `do`");
    made->b = parse_list();
    return expect(made, "done");
}

static Node *parse_case(void) {
    Node *made = node(N_CASE, NULL, NULL), **last = &made->a;
    made->text = word();
    skip_lines();
    if (!made->text || !take("in"))
        return fail("`case` without `in`");
    for (skip_lines(); !is_at("esac"); skip_lines()) {
        if (!*at)
            return fail("`case` without `esac`");
        Node *arm = node(N_CASE, NULL, NULL);
        take("(");
        do {
            char *pattern = word();
            if (!pattern)
                return fail("a pattern of `case` is missing");
            push(arm, pattern);
        } while (take("|"));
        if (!take(")"))
            return fail("a pattern of `case` without `)`");
        skip_lines();
        arm->b = ends_list() ? NULL : parse_list();
        *last = arm;
        last = &arm->next;
        skip_lines();
        if (!take(";;"))
            break;
    }
    return expect(made, "esac");
}

static Node *parse_function(char *name) {
    skip_lines();
    const char *start = at;
    if (*at != '{' && *at != '(')
        return fail("a function without a body");
    Node *made = node(N_FUNCTION, NULL, NULL);
    made->text = name;
    char close = *at == '{' ? '}' : ')';
    at++;
    parse_list();
    skip_lines();
    if (*at != close)
        return fail("a function without an end");
    at++;
    push(made, scratch_str(start, at - start));
    return made;
}

static Node *parse_simple(void) {
    Node *made = node(N_SIMPLE, NULL, NULL);
    for (;;) {
        if (redirect(&made->redirects))
            continue;
        if (failure)
            return NULL;
        char *next = word();
        if (!next)
            break;
        if (made->num_words == 0 && at[0] == '(' ) {
            const char *p = at + 1;
            while (*p == ' ')
                p++;
            if (*p != ')')
                return fail("unexpected `(`");
            at = p + 1;
            return parse_function(next);
        }
        if (made->num_words == made->num_assignments && is_assignment(next))
            made->num_assignments++;
        push(made, next);
    }
    if (failure)
        return NULL;
    if (!made->num_words && !made->redirects)
        return fail("a command is missing");
    return made;
}

static Node *parse_command(void) {
    if (++nesting > 200)
        return fail("too deeply nested");
    skip_blank();
    Node *made;
    if (take("!"))
        made = node(N_NOT, parse_command(), NULL);
    else if (take("if"))
        made = parse_if();
    else if (take("while"))
        made = parse_loop(N_WHILE);
    else if (take("until"))
        made = parse_loop(N_UNTIL);
    else if (take("for"))
        made = parse_for();
    else if (take("case"))
        made = parse_case();
    else if (take("function"))
        made = fail("`function` is not known: write `name() { ...; }`");
    else if (at[0] == '{' && isspace((unsigned char)at[1])) {
        at++;
        made = expect(node(N_GROUP, parse_list(), NULL), "}");
    } else if (take("("))
        made = expect(node(N_SUBSHELL, parse_list(), NULL), ")");
    else {
        nesting--;
        return parse_simple();
    }
    nesting--;
    if (made)
        while (redirect(&made->redirects)) {
        }
    return made;
}

static Node *parse_pipe(void) {
    Node *made = parse_command();
    while (made && !failure && !is_at("||") && take("|")) {
        skip_lines();
        made = node(N_PIPE, made, parse_command());
    }
    return made;
}

static Node *parse_and_or(void) {
    Node *made = parse_pipe();
    while (made && !failure) {
        int kind = take("&&") ? N_AND : take("||") ? N_OR : -1;
        if (kind < 0)
            break;
        skip_lines();
        made = node(kind, made, parse_pipe());
    }
    return made;
}

static Node *parse_list(void) {
    Node *list = NULL;
    for (skip_lines(); !failure && !ends_list(); skip_lines()) {
        Node *next = parse_and_or();
        if (!next)
            return NULL;
        list = list ? node(N_SEQ, list, next) : next;
        skip_blank();
        if (*at == '&' && at[1] != '&')
            return fail("there are no background commands");
        if (*at == ';' && at[1] != ';')
            at++;
        else if (*at != '\n')
            break;
    }
    if (!list)
        return fail("a command is missing");
    return list;
}

Node *parse(const char *script, const char **error) {
    const char *outer_at = at;
    Pending *outer_pending = pending;
    at = script;
    pending = NULL;
    failure = NULL;
    nesting = 0;
    skip_lines();
    Node *made = *at ? parse_list() : node(N_SEQ, NULL, NULL);
    if (!failure && *at)
        fail("unexpected text after a command");
    at = outer_at;
    pending = outer_pending;
    *error = failure;
    return failure ? NULL : made;
}
