/* Memory, input and output. */
#include "shell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *need(void *memory) {
    if (!memory) {
        static const char text[] = "shell: out of memory\n";
        write(2, text, sizeof text - 1);
        abort();
    }
    return memory;
}

void text_add(Text *text, const char *data, size_t len) {
    if (text->len + len + 1 > text->room) {
        text->room = (text->len + len + 1) * 2;
        text->data = need(realloc(text->data, text->room));
    }
    memcpy(text->data + text->len, data, len);
    text->data[text->len += len] = 0;
}

void text_char(Text *text, char c) { text_add(text, &c, 1); }
void text_str(Text *text, const char *data) { text_add(text, data, strlen(data)); }

void text_free(Text *text) {
    free(text->data);
    *text = (Text){0};
}

typedef struct Chunk {
    struct Chunk *before;
    size_t used, room;
    char data[];
} Chunk;

static Chunk *newest;

void *scratch(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (!newest || newest->used + size > newest->room) {
        size_t room = size > 16000 ? size : 16000;
        Chunk *chunk = need(malloc(sizeof(Chunk) + room));
        *chunk = (Chunk){newest, 0, room};
        newest = chunk;
    }
    void *memory = newest->data + newest->used;
    newest->used += size;
    memset(memory, 0, size);
    return memory;
}

char *scratch_str(const char *data, size_t len) {
    char *copy = scratch(len + 1);
    memcpy(copy, data, len);
    return copy;
}

Mark scratch_mark(void) { return (Mark){newest, newest ? newest->used : 0}; }

void scratch_reset(Mark mark) {
    while (newest != mark.chunk) {
        Chunk *before = newest->before;
        free(newest);
        newest = before;
    }
    if (newest)
        newest->used = mark.used;
}

enum { HELD = 4096 };

/* Makes sure that data is at hand: false at the end. */
static bool in_fill(In *in) {
    if (in->at < in->len)
        return true;
    if (in->fd < 0) {
        in->starved |= in->cut;
        return false;
    }
    if (!in->own)
        in->own = need(malloc(65536));
    ssize_t n = read(in->fd, in->own, 65536);
    if (n <= 0)
        return false;
    in->data = in->own;
    in->at = 0;
    in->len = n;
    return true;
}

char *in_line(In *in) {
    Text line = {0};
    bool any = false;
    while (in_fill(in)) {
        any = true;
        const char *start = in->data + in->at;
        const char *end = memchr(start, '\n', in->len - in->at);
        size_t n = end ? (size_t)(end - start) : in->len - in->at;
        text_add(&line, start, n);
        in->at += n + (end != NULL);
        if (end)
            break;
    }
    if (!any)
        return NULL;
    char *copy = scratch_str(line.data, line.len);
    text_free(&line);
    return copy;
}

char *in_all(In *in, size_t *len) { return in_some(in, SIZE_MAX, len); }

char *in_some(In *in, size_t most, size_t *len) {
    Text all = {0};
    text_add(&all, "", 0);
    while (all.len < most && in_fill(in)) {
        size_t n = in->len - in->at;
        n = n < most - all.len ? n : most - all.len;
        text_add(&all, in->data + in->at, n);
        in->at += n;
    }
    char *copy = scratch_str(all.data, all.len);
    *len = all.len;
    text_free(&all);
    return copy;
}

void out_flush(Out *out) {
    size_t done = 0;
    while (out->fd >= 0 && done < out->held_len) {
        ssize_t n = write(out->fd, out->held + done, out->held_len - done);
        if (n <= 0) {
            out->failed = true;
            break;
        }
        done += n;
    }
    out->held_len = 0;
}

void out_add(Out *out, const char *data, size_t len) {
    if (out->fd < 0) {
        Text *text = out->text;
        size_t room = out->limit ? out->limit - text->len : len;
        /* What grew by doubling would leave as much behind, and memory is never given back. */
        if (out->limit && text->len > PIPE_BYTES / 64 && text->room <= out->limit) {
            text->room = out->limit + 1;
            text->data = need(realloc(text->data, text->room));
        }
        text_add(text, data, len < room ? len : room);
        if (len > room) {
            /* As a writer ends whose reader is gone. */
            out->failed = true;
            shell.flow = FLOW_EXIT;
            shell.status = BROKEN_PIPE;
        }
        return;
    }
    if (!out->held)
        out->held = need(malloc(HELD));
    while (len > 0) {
        size_t n = HELD - out->held_len;
        n = n < len ? n : len;
        memcpy(out->held + out->held_len, data, n);
        out->held_len += n;
        data += n;
        len -= n;
        if (out->held_len == HELD)
            out_flush(out);
    }
}

void out_close(Out *out) {
    out_flush(out);
    free(out->held);
    out->held = NULL;
    if (out->fd > 2)
        close(out->fd);
}

void out_str(Out *out, const char *data) { out_add(out, data, strlen(data)); }

void out_fmt(Out *out, const char *format, ...) {
    char small[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(small, sizeof small, format, list);
    va_end(list);
    if (n < 0)
        return;
    if (n < (int)sizeof small) {
        out_add(out, small, n);
        return;
    }
    char *large = scratch(n + 1);
    va_start(list, format);
    vsnprintf(large, n + 1, format, list);
    va_end(list);
    out_add(out, large, n);
}

int complain(Io *io, const char *name, const char *what) {
    const char *reason = strerror(errno);
    if (what)
        out_fmt(io->err, "%s: %s: %s\n", name, what, reason);
    else
        out_fmt(io->err, "%s: %s\n", name, reason);
    return 1;
}
