/* Variables. */
#include "shell.h"

#include <stdlib.h>
#include <string.h>

static Variable *find(const char *name) {
    for (Variable *v = shell.variables; v; v = v->next)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

const char *get_variable(const char *name) {
    Variable *v = find(name);
    return v ? v->value : NULL;
}

static Variable *make(const char *name) {
    Variable *v = find(name);
    if (!v) {
        v = calloc(1, sizeof *v);
        v->name = strdup(name);
        v->next = shell.variables;
        shell.variables = v;
    }
    return v;
}

void set_variable(const char *name, const char *value) {
    Variable *v = make(name);
    char *copy = strdup(value);
    free(v->value);
    v->value = copy;
}

void export_variable(const char *name) {
    Variable *v = make(name);
    if (!v->value)
        v->value = strdup("");
    v->exported = true;
}

void unset_variable(const char *name) {
    for (Variable **p = &shell.variables; *p; p = &(*p)->next)
        if (strcmp((*p)->name, name) == 0) {
            Variable *gone = *p;
            *p = gone->next;
            free(gone->name);
            free(gone->value);
            free(gone);
            return;
        }
}
