/* The shell guest: a small POSIX-like shell whose commands are all built in.
 *
 *   shell -c SCRIPT [NAME ARGS]   shell FILE [ARGS]   shell COMMAND ARGS   shell < SCRIPT
 *
 * There are no processes: the parts of a pipeline run one after the other, each on what the one
 * before it wrote, which ends when it has written PIPE_BYTES; a subshell is the same shell whose variables and folder are put back afterwards.
 */
#ifndef SPAR_SHELL_H
#define SPAR_SHELL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char *data;
    size_t len, room;
} Text; /* growing bytes, always followed by a NUL */

void text_add(Text *text, const char *data, size_t len);
void text_char(Text *text, char c);
void text_str(Text *text, const char *data);
void text_free(Text *text);

/* Memory until the end of the command that it was needed for. */
void *scratch(size_t size);
char *scratch_str(const char *data, size_t len);
typedef struct Mark { void *chunk; size_t used; } Mark;
Mark scratch_mark(void);
void scratch_reset(Mark mark);

typedef struct {
    int fd;          /* -1: `data` is all there is */
    const char *data;
    size_t len, at;
    char *own;       /* what was read from `fd` and not taken yet */
    bool cut;        /* more would have followed `data` */
    bool starved;    /* and was asked for */
} In;

/* What a pipe holds: enough for what is piped in practice, and soon full when it is written without end. */
#define PIPE_BYTES ((size_t)16 << 20)
/* The status of what is ended by its full pipe. */
#define BROKEN_PIPE 141

typedef struct {
    int fd;          /* -1: everything goes into `text` */
    Text *text;
    size_t limit;    /* the most that `text` takes, 0 for any amount */
    char *held;      /* written when it is full, and at the end */
    size_t held_len;
    bool failed;
} Out;

typedef struct {
    In *in;
    Out *out, *err;
} Io;

/* The next line without its newline; NULL at the end. */
char *in_line(In *in);
/* Everything that is left. */
char *in_all(In *in, size_t *len);
/* The next `most` bytes, or what is left. */
char *in_some(In *in, size_t most, size_t *len);
void out_add(Out *out, const char *data, size_t len);
void out_str(Out *out, const char *data);
void out_fmt(Out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_flush(Out *out);
void out_close(Out *out);

/* Says `NAME: WHAT: errno` on standard error; 1. */
int complain(Io *io, const char *name, const char *what);

typedef int (*Command)(int argc, char **argv, Io *io);
Command find_file_command(const char *name);
Command find_text_command(const char *name);
Command find_line_command(const char *name);
Command find_sed(const char *name);
Command find_shell_command(const char *name);
Command find_command(const char *name);

/* Calls `each` on every named file, or standard input where there is none or it is `-`. */
typedef int (*Each)(const char *name, In *in, void *state, Io *io);
int for_inputs(const char *command, int count, char **names, Each each, void *state, Io *io);
/* Adds what the escape sequence at `*p` stands for, and goes past it. */
void escape(Text *text, const char **p);

typedef struct Node Node;
/* NULL with `*error` set for what cannot be parsed. */
Node *parse(const char *script, const char **error);
int run_node(Node *node, Io *io);
int run_script(const char *script, Io *io);
int run_command(int argc, char **argv, Io *io);

enum { FLOW_NONE, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_EXIT };

typedef struct Variable {
    struct Variable *next;
    char *name, *value;
    bool exported;
} Variable;

typedef struct Function {
    struct Function *next;
    char *name, *body;
} Function;

typedef struct {
    Variable *variables;
    Function *functions;
    int status, flow, flow_count, depth;
    bool opt_e, opt_u, opt_x, opt_pipefail;
    char *name;       /* $0 */
    int argc;         /* $# */
    char **argv;      /* $1 is argv[0] */
    bool unset_error; /* an expansion failed */
    bool by_error;    /* and ended the script for that */
} Shell;

extern Shell shell;

const char *get_variable(const char *name);
void set_variable(const char *name, const char *value);
void unset_variable(const char *name);
void export_variable(const char *name);

/* All fields of a word; `*count` is how many. */
char **expand_fields(const char *word, int *count, Io *io);
/* One string, without splitting and globbing. */
char *expand_string(const char *word, Io *io);
/* As a pattern: quoted characters are escaped. */
char *expand_pattern(const char *word, Io *io);
char *expand_here(const char *body, Io *io);
long long arithmetic(const char *text, Io *io);
void state_save(Shell *saved, char **cwd);
void state_restore(Shell *saved, char *cwd);

/* Parsed form. Words are as they were written. */
typedef struct Redirect {
    struct Redirect *next;
    int fd;           /* 0, 1, 2, or 12 for both outputs */
    char kind;        /* '<' '>' 'a'ppend 'd'uplicate 'h'ere 's'tring */
    char *word;
    bool quoted;      /* of a here-document: nothing is expanded */
} Redirect;

enum { N_SIMPLE, N_PIPE, N_AND, N_OR, N_SEQ, N_NOT, N_IF, N_WHILE, N_UNTIL, N_FOR, N_CASE, N_FUNCTION, N_GROUP, N_SUBSHELL };

struct Node {
    int kind;
    Node *a, *b, *c;
    char **words;     /* of a simple command with assignments first; of `for`; patterns of `case` */
    int num_words, num_assignments;
    char *text;       /* variable of `for`, word of `case`, name of a function */
    Redirect *redirects;
    Node *next;       /* arms of `case` */
};

#endif
