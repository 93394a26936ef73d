/* `$((...))`: C's integer expressions on 64 bits. */
#include "shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *at;
static Io *where;
static bool bad;

static long long assignment(void);

static void blank(void) {
    while (isspace((unsigned char)*at))
        at++;
}

static bool take(const char *token) {
    blank();
    size_t n = strlen(token);
    if (strncmp(at, token, n) != 0)
        return false;
    at += n;
    return true;
}

static long long number_of(const char *name) {
    const char *value = get_variable(name);
    return value ? strtoll(value, NULL, 0) : 0;
}

static long long primary(void) {
    blank();
    if (take("(")) {
        long long value = assignment();
        if (!take(")"))
            bad = true;
        return value;
    }
    if (take("!"))
        return !primary();
    if (take("~"))
        return ~primary();
    if (at[0] == '-' && at[1] != '-') {
        at++;
        return (long long)(0 - (unsigned long long)primary());
    }
    if (at[0] == '+' && at[1] != '+') {
        at++;
        return primary();
    }
    int step = take("++") ? 1 : take("--") ? -1 : 0;
    blank();
    if (isalpha((unsigned char)*at) || *at == '_') {
        const char *start = at;
        while (isalnum((unsigned char)*at) || *at == '_')
            at++;
        char *name = scratch_str(start, at - start);
        long long value = number_of(name) + step, result = value;
        blank();
        if (!step && strncmp(at, "++", 2) == 0)
            step = 1, at += 2, value += 1;
        else if (!step && strncmp(at, "--", 2) == 0)
            step = -1, at += 2, value -= 1;
        if (step) {
            Text text = {0};
            out_fmt(&(Out){.fd = -1, .text = &text}, "%lld", value);
            set_variable(name, text.data);
            text_free(&text);
        }
        return result;
    }
    char *end;
    long long value = strtoll(at, &end, 0);
    if (end == at)
        bad = true;
    at = end;
    return value;
}

static const char *const operators[] = {"||", "&&", "|", "^", "&", "==", "!=", "<=", ">=", "<<", ">>", "<", ">", "+", "-", "*", "/", "%"};
static const char levels[] = {1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 7, 7, 9, 9, 10, 10, 10};

static long long apply(int operator, long long a, long long b) {
    unsigned long long x = a, y = b;
    switch (operator) {
    case 0: return a || b;
    case 1: return a && b;
    case 2: return a | b;
    case 3: return a ^ b;
    case 4: return a & b;
    case 5: return a == b;
    case 6: return a != b;
    case 7: return a <= b;
    case 8: return a >= b;
    case 9: return x << (y & 63);
    case 10: return a >> (y & 63);
    case 11: return a < b;
    case 12: return a > b;
    case 13: return x + y;
    case 14: return x - y;
    case 15: return x * y;
    }
    if (b == 0) {
        bad = true;
        return 0;
    }
    if (b == -1)
        return operator == 16 ? (long long)(0 - x) : 0;
    return operator == 16 ? a / b : a % b;
}

static long long binary(int level) {
    long long left = primary();
    for (;;) {
        blank();
        int found = -1;
        for (int i = 0; i < 18 && found < 0; i++)
            if (strncmp(at, operators[i], strlen(operators[i])) == 0)
                found = i;
        if (found < 0 || levels[found] < level)
            return left;
        size_t n = strlen(operators[found]);
        if (at[n] == '=' && (found < 5 || found > 8) && at[n + 1] != '=')
            return left;
        at += n;
        left = apply(found, left, binary(levels[found] + 1));
    }
}

static long long conditional(void) {
    long long value = binary(1);
    if (!take("?"))
        return value;
    long long yes = assignment();
    if (!take(":"))
        bad = true;
    long long no = assignment();
    return value ? yes : no;
}

static long long assignment(void) {
    blank();
    const char *start = at;
    if (isalpha((unsigned char)*at) || *at == '_') {
        while (isalnum((unsigned char)*at) || *at == '_')
            at++;
        char *name = scratch_str(start, at - start);
        blank();
        for (int i = -1; i < 18; i++) {
            const char *operator = i < 0 ? "" : operators[i];
            size_t n = strlen(operator);
            if ((i >= 5 && i <= 8) || i == 0 || i == 1 || strncmp(at, operator, n) || at[n] != '=' || at[n + 1] == '=')
                continue;
            if (i == 11 || i == 12)
                continue;
            at += n + 1;
            long long value = assignment();
            if (i >= 0)
                value = apply(i, number_of(name), value);
            Text text = {0};
            out_fmt(&(Out){.fd = -1, .text = &text}, "%lld", value);
            set_variable(name, text.data);
            text_free(&text);
            return value;
        }
        at = start;
    }
    return conditional();
}

long long arithmetic(const char *text, Io *io) {
    const char *outer = at;
    char *plain = expand_here(text, io);
    where = io;
    at = plain;
    bad = false;
    blank();
    long long value = *at ? assignment() : 0;
    blank();
    if (bad || *at) {
        out_fmt(io->err, "arithmetic: cannot read `%s`\n", plain);
        shell.unset_error = true;
    }
    at = outer;
    return value;
}
