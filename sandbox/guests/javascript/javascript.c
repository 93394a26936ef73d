/* The JavaScript guest: `-e CODE ARGS`, `FILE ARGS`, or a program on standard input.
 *
 * QuickJS-NG with its modules `std` and `os` as globals, as `qjs --std` has them. In a session each
 * command is a script of one global scope; the value of its last expression is printed unless undefined.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quickjs-libc.h"
#include "quickjs.h"
#include "session.h"

static JSRuntime *runtime;
static JSContext *context;

/* The engine's own is seeded with the time; this one depends on the sandbox's random numbers. */
static JSValue random_number(JSContext *own, JSValueConst self, int argc, JSValueConst *argv) {
    (void)self, (void)argc, (void)argv;
    uint64_t bits = (uint64_t)arc4random() << 32 | arc4random();
    return JS_NewFloat64(own, (double)(bits >> 11) * 0x1p-53);
}

static void open_engine(int argc, char **argv) {
    const char *pwd = getenv("PWD");
    if (pwd && chdir(pwd) != 0)
        chdir("/");
    runtime = JS_NewRuntime();
    /* The host's limits are in force; the engine's own on its stack keeps recursion an exception. */
    JS_SetMaxStackSize(runtime, 256 * 1024);
    js_std_init_handlers(runtime);
    JS_SetModuleLoaderFunc2(runtime, NULL, js_module_loader, NULL, NULL);
    context = JS_NewContext(runtime);
    js_init_module_std(context, "std");
    js_init_module_os(context, "os");
    js_std_add_helpers(context, argc, argv);
    JSValue global = JS_GetGlobalObject(context), math = JS_GetPropertyStr(context, global, "Math");
    JS_SetPropertyStr(context, math, "random", JS_NewCFunction(context, random_number, "random", 0));
    JS_FreeValue(context, math);
    JS_FreeValue(context, global);
    static const char globals[] = "import * as std from 'std'; import * as os from 'os';"
                                  "globalThis.std = std; globalThis.os = os;"
                                  "globalThis.console.error ??= (...a) => { std.err.puts(a.join(' ') + '\\n'); };"
                                  "globalThis.console.warn ??= globalThis.console.error;"
                                  "globalThis.console.info ??= globalThis.console.log;"
                                  "globalThis.setTimeout ??= os.setTimeout; globalThis.clearTimeout ??= os.clearTimeout;";
    JSValue value = JS_Eval(context, globals, strlen(globals), "<start>", JS_EVAL_TYPE_MODULE);
    if (JS_IsException(value))
        js_std_dump_error(context);
    JS_FreeValue(context, value);
}

static void print_value(JSValueConst value) {
    const char *text = JS_ToCString(context, value);
    if (text) {
        puts(text);
        JS_FreeCString(context, text);
    }
}

/* Runs `text` and everything it left to be done: 0, or 1 after an exception, which is printed. */
static int evaluate(const char *text, size_t len, const char *name, int module, int print) {
    JSValue value = JS_Eval(context, text, len, name, module ? JS_EVAL_TYPE_MODULE : JS_EVAL_TYPE_GLOBAL);
    int failed = JS_IsException(value);
    if (failed) {
        js_std_dump_error(context);
    } else if (module) {
        value = js_std_await(context, value);
        if ((failed = JS_IsException(value)))
            js_std_dump_error(context);
    } else if (print && !JS_IsUndefined(value)) {
        print_value(value);
    }
    JS_FreeValue(context, value);
    if (!failed && js_std_loop(context) != 0) {
        js_std_dump_error(context);
        failed = 1;
    }
    fflush(NULL);
    return failed;
}

/* Whether a line begins with `import` or `export`: the engine's own test takes every strict program. */
static int is_module(const char *text) {
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n;");
        int import = strncmp(line, "import", 6) == 0, export = strncmp(line, "export", 6) == 0;
        if ((import || export) && strchr(" \t{*'\"", line[6]))
            return 1;
    }
    return 0;
}

static char *read_all(FILE *file, size_t *len) {
    size_t room = 1 << 16;
    char *text = malloc(room + 1);
    *len = 0;
    while (text) {
        size_t n = fread(text + *len, 1, room - *len, file);
        *len += n;
        if (n == 0)
            break;
        if (*len == room)
            text = realloc(text, (room *= 2) + 1);
    }
    if (text)
        text[*len] = 0;
    return text;
}

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

int main(int argc, char **argv) {
    size_t len;
    char *text;
    if (argc > 1 && (strcmp(argv[1], "-e") == 0 || strcmp(argv[1], "--eval") == 0)) {
        if (argc < 3) {
            fprintf(stderr, "javascript: -e needs a program\n");
            return 2;
        }
        open_engine(argc - 3, argv + 3);
        return evaluate(argv[2], strlen(argv[2]), "<cmdline>", is_module(argv[2]), 0);
    }
    if (argc > 1 && strcmp(argv[1], "-") != 0) {
        open_engine(argc - 1, argv + 1);
        FILE *file = fopen(argv[1], "rb");
        text = file ? read_all(file, &len) : NULL;
        if (!text) {
            fprintf(stderr, "javascript: %s: %s\n", argv[1], strerror(errno));
            return 2;
        }
        fclose(file);
        return evaluate(text, len, argv[1], ends_with(argv[1], ".mjs") || is_module(text), 0);
    }
    open_engine(argc > 1 ? argc - 1 : 0, argv + 1);
    text = read_all(stdin, &len);
    return text ? evaluate(text, len, "<stdin>", is_module(text), 0) : 1;
}

static char *buffer;
static char cwd[4097];
extern void __wasm_call_ctors(void);

void session_open(void) {
    __wasm_call_ctors();
    open_engine(0, NULL);
}

char *session_buffer(int len) {
    free(buffer);
    return buffer = malloc((size_t)len + 1);
}

int session_run(int len) {
    buffer[len] = 0;
    int module = is_module(buffer);
    return evaluate(buffer, len, "<session>", module, !module);
}

const char *session_cwd(void) {
    return getcwd(cwd, sizeof cwd) ? cwd : "/";
}
