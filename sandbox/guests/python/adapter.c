/* WASI preview 2, as far as the interpreter's C library uses it, by means of preview 1.
 *
 * componentize-py's libraries speak preview 2, whose handles live outside of the memory. Linked with this
 * adapter they speak preview 1, and everything an instance is lies in its memory, its globals and its
 * descriptors, which is what sessions copy. A preview-2 descriptor is a preview-1 descriptor of the same
 * number; streams, pollables and folder listings are places in a table here.
 *
 * Results are laid out as the canonical ABI says: the discriminant first (0 is well, 1 is an error), then
 * the payload where its alignment allows. Lists and strings are allocated with the guest's own `malloc`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name))) extern
#define P1(name) IMPORT("wasi_snapshot_preview1", #name)
#define EXPORT(name) __attribute__((export_name(name)))

typedef struct {
    const void *at;
    u32 len;
} Slice;

typedef struct {
    u64 device, node;
    u8 type;
    u64 links, size, accessed, modified, changed;
} Stat;

typedef struct {
    u8 type;
    u16 flags;
    u64 rights, inheriting;
} FdStat;

P1(args_get) u32 args_get(char **list, char *text);
P1(args_sizes_get) u32 args_sizes_get(u32 *count, u32 *size);
P1(environ_get) u32 environ_get(char **list, char *text);
P1(environ_sizes_get) u32 environ_sizes_get(u32 *count, u32 *size);
P1(clock_time_get) u32 clock_time_get(u32 clock, u64 precision, u64 *time);
P1(fd_close) u32 fd_close(u32 fd);
P1(fd_fdstat_get) u32 fd_fdstat_get(u32 fd, FdStat *stat);
P1(fd_fdstat_set_flags) u32 fd_fdstat_set_flags(u32 fd, u32 flags);
P1(fd_filestat_get) u32 fd_filestat_get(u32 fd, Stat *stat);
P1(fd_filestat_set_size) u32 fd_filestat_set_size(u32 fd, u64 size);
P1(fd_filestat_set_times) u32 fd_filestat_set_times(u32 fd, u64 accessed, u64 modified, u32 flags);
P1(fd_pread) u32 fd_pread(u32 fd, Slice *list, u32 count, u64 offset, u32 *num);
P1(fd_prestat_get) u32 fd_prestat_get(u32 fd, u32 *prestat);
P1(fd_prestat_dir_name) u32 fd_prestat_dir_name(u32 fd, char *path, u32 len);
P1(fd_pwrite) u32 fd_pwrite(u32 fd, Slice *list, u32 count, u64 offset, u32 *num);
P1(fd_read) u32 fd_read(u32 fd, Slice *list, u32 count, u32 *num);
P1(fd_readdir) u32 fd_readdir(u32 fd, void *buffer, u32 len, u64 cookie, u32 *used);
P1(fd_sync) u32 fd_sync(u32 fd);
P1(fd_write) u32 fd_write(u32 fd, Slice *list, u32 count, u32 *num);
P1(path_create_directory) u32 path_create_directory(u32 fd, const char *path, u32 len);
P1(path_filestat_get) u32 path_filestat_get(u32 fd, u32 lookup, const char *path, u32 len, Stat *stat);
P1(path_filestat_set_times) u32 path_filestat_set_times(
    u32 fd, u32 lookup, const char *path, u32 len, u64 accessed, u64 modified, u32 flags);
P1(path_link) u32 path_link(
    u32 fd, u32 lookup, const char *path, u32 len, u32 to, const char *to_path, u32 to_len);
P1(path_open) u32 path_open(
    u32 fd, u32 lookup, const char *path, u32 len, u32 flags, u64 rights, u64 inheriting, u32 fd_flags, u32 *opened);
P1(path_readlink) u32 path_readlink(u32 fd, const char *path, u32 len, char *target, u32 size, u32 *used);
P1(path_remove_directory) u32 path_remove_directory(u32 fd, const char *path, u32 len);
P1(path_rename) u32 path_rename(u32 fd, const char *path, u32 len, u32 to, const char *to_path, u32 to_len);
P1(path_symlink) u32 path_symlink(const char *target, u32 target_len, u32 fd, const char *path, u32 len);
P1(path_unlink_file) u32 path_unlink_file(u32 fd, const char *path, u32 len);
P1(poll_oneoff) u32 poll_oneoff(const void *subscriptions, void *events, u32 count, u32 *num);
P1(proc_exit) _Noreturn void proc_exit(u32 code);
P1(random_get) u32 random_get(void *buffer, u32 len);

IMPORT("component", "malloc") void *allocate(size_t size);
IMPORT("component", "free") void release(void *at);
IMPORT("component", "write") long guest_write(int fd, const void *bytes, size_t len);
IMPORT("component", "pwrite") long guest_pwrite(int fd, const void *bytes, size_t len, s64 offset);
IMPORT("component", "getcwd") char *guest_getcwd(char *buffer, size_t len);
IMPORT("component", "main") int python_main(Slice *arguments, u32 num_arguments, Slice *environment, u32 num_variables);
IMPORT("component", "session-open") void python_session_open(Slice *environment, u32 num_variables);
IMPORT("component", "session-run") int python_session_run(void *command, u32 len);

/* ---- results ---- */

enum { STREAM_FAILED = 0, STREAM_CLOSED = 1 };
enum { ERROR_INVALID = 12, ERROR_IO = 13, ERROR_NO_MEMORY = 22, ACCESS_DENIED = 1 };

static void put8(u8 *at, u8 value) { *at = value; }
static void put32(u8 *at, u32 value) { __builtin_memcpy(at, &value, sizeof value); }
static void put64(u8 *at, u64 value) { __builtin_memcpy(at, &value, sizeof value); }
static u32 get32(const u8 *at) {
    u32 value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}
static u64 get64(const u8 *at) {
    u64 value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

/* An error of preview 1 as the `error-code` of `wasi:filesystem/types`. */
static u8 error_code(u32 errno_) {
    switch (errno_) {
    case 2: return 0;                /* acces */
    case 8: return 3;                /* badf */
    case 10: return 4;               /* busy */
    case 20: return 7;               /* exist */
    case 21: return ERROR_INVALID;   /* fault */
    case 22: return 8;               /* fbig */
    case 25: return 9;               /* ilseq */
    case 28: return ERROR_INVALID;   /* inval */
    case 31: return 14;              /* isdir */
    case 32: return 15;              /* loop */
    case 33: return ERROR_NO_MEMORY; /* mfile */
    case 37: return 18;              /* nametoolong */
    case 44: return 20;              /* noent */
    case 48: return ERROR_NO_MEMORY; /* nomem */
    case 51: return 23;              /* nospc */
    case 54: return 24;              /* notdir */
    case 55: return 25;              /* notempty */
    case 58: return 27;              /* notsup */
    case 63: return 31;              /* perm */
    case 69: return 33;              /* rofs */
    case 70: return 34;              /* spipe */
    case 75: return 36;              /* xdev */
    default: return ERROR_IO;
    }
}

/* `result<_, error-code>`, and any other result over `error-code` whose payload lies at `at`. */
static bool finish(u8 *result, u32 at, u32 errno_) {
    put8(result, errno_ != 0);
    if (errno_ != 0)
        put8(result + at, error_code(errno_));
    return errno_ == 0;
}

/* ---- the table ---- */

typedef enum { FREE, STDIN, STDOUT, STDERR, READER, WRITER, APPENDER, READY, MOMENT, LISTING } Kind;

typedef struct {
    Kind kind;
    u32 fd;
    /* Of a reader or writer its position, of a moment when it comes, of a listing its cookie. */
    u64 at;
    /* Of a listing what was read and not yet told. */
    u8 *buffer;
    u32 begin, end;
} Thing;

#define NUM_THINGS 4096
#define LISTING_BYTES 8192
static Thing things[NUM_THINGS];
static u32 first_free;
/* What the last failed write on a stream failed with: streams do not tell. */
static u32 write_error;

/* A handle that stands for a new thing; 0 if there are too many. */
static u32 add(Kind kind, u32 fd, u64 at) {
    for (u32 number = first_free; number < NUM_THINGS; number++) {
        if (things[number].kind == FREE) {
            things[number] = (Thing){.kind = kind, .fd = fd, .at = at};
            first_free = number + 1;
            return number + 1;
        }
    }
    return 0;
}

static Thing *thing(u32 handle) {
    if (handle == 0 || handle > NUM_THINGS || things[handle - 1].kind == FREE)
        __builtin_trap();
    return &things[handle - 1];
}

static void drop(u32 handle) {
    Thing *dropped = thing(handle);
    if (dropped->kind == LISTING)
        release(dropped->buffer);
    dropped->kind = FREE;
    if (handle - 1 < first_free)
        first_free = handle - 1;
}

/* `result<own<...>, error-code>` */
static void finish_added(u8 *result, u32 handle) {
    if (handle == 0) {
        put8(result, 1);
        put8(result + 4, ERROR_NO_MEMORY);
    } else {
        put8(result, 0);
        put32(result + 4, handle);
    }
}

static u32 must_add(Kind kind, u32 fd, u64 at) {
    u32 handle = add(kind, fd, at);
    if (handle == 0)
        __builtin_trap();
    return handle;
}

EXPORT("wasi:io/error#[resource-drop]error") void drop_error(u32 handle) { (void)handle; }
EXPORT("wasi:io/poll#[resource-drop]pollable") void drop_pollable(u32 handle) { drop(handle); }
EXPORT("wasi:io/streams#[resource-drop]input-stream") void drop_input(u32 handle) { drop(handle); }
EXPORT("wasi:io/streams#[resource-drop]output-stream") void drop_output(u32 handle) { drop(handle); }
EXPORT("wasi:filesystem/types#[resource-drop]directory-entry-stream") void drop_listing(u32 handle) { drop(handle); }
EXPORT("wasi:filesystem/types#[resource-drop]descriptor") void drop_descriptor(u32 fd) { fd_close(fd); }
EXPORT("wasi:cli/terminal-input#[resource-drop]terminal-input") void drop_terminal_in(u32 handle) { (void)handle; }
EXPORT("wasi:cli/terminal-output#[resource-drop]terminal-output") void drop_terminal_out(u32 handle) { (void)handle; }

/* ---- arguments, environment, end ---- */

static u32 length(const char *text) {
    u32 len = 0;
    while (text[len])
        len++;
    return len;
}

typedef u32 Sizes(u32 *count, u32 *size);
typedef u32 Texts(char **list, char *text);

/* The texts one after the other in memory of the guest; `*count` of them. */
static char **texts(Sizes *sizes, Texts *get, u32 *count) {
    u32 size = 0;
    *count = 0;
    if (sizes(count, &size) != 0)
        return NULL;
    char **list = allocate(*count * sizeof(char *) + 1);
    char *text = allocate(size + 1);
    if (!list || !text || (*count > 0 && get(list, text) != 0))
        __builtin_trap();
    return list;
}

/* Bytes of the guest's own, since whoever is given a list frees it. */
static Slice copy(const char *text, u32 len) {
    char *bytes = allocate(len + 1);
    if (!bytes)
        __builtin_trap();
    __builtin_memcpy(bytes, text, len);
    return (Slice){bytes, len};
}

static Slice *copies(Sizes *sizes, Texts *get, u32 *count) {
    char **list = texts(sizes, get, count);
    Slice *slices = allocate(*count * sizeof(Slice) + 1);
    if (!slices)
        __builtin_trap();
    for (u32 i = 0; i < *count; i++)
        slices[i] = copy(list[i], length(list[i]));
    if (list) {
        if (*count)
            release(list[0]);
        release(list);
    }
    return slices;
}

EXPORT("wasi:cli/environment#get-arguments") void get_arguments(u8 *result) {
    u32 count;
    Slice *slices = copies(args_sizes_get, args_get, &count);
    put32(result, (u32)slices);
    put32(result + 4, count);
}

EXPORT("wasi:cli/environment#get-environment") void get_environment(u8 *result) {
    u32 count, num = 0;
    char **list = texts(environ_sizes_get, environ_get, &count);
    Slice *pairs = allocate(count * 2 * sizeof(Slice) + 1);
    if (!pairs)
        __builtin_trap();
    for (u32 i = 0; i < count; i++) {
        u32 len = length(list[i]), name = 0;
        while (name < len && list[i][name] != '=')
            name++;
        if (name == len)
            continue;
        pairs[num * 2] = copy(list[i], name);
        pairs[num * 2 + 1] = copy(list[i] + name + 1, len - name - 1);
        num++;
    }
    put32(result, (u32)pairs);
    put32(result + 4, num);
}

EXPORT("wasi:cli/exit#exit") void exit_(u32 is_error) { proc_exit(is_error != 0); }

/* ---- clocks, waiting, chance ---- */

static u64 now(u32 clock) {
    u64 time = 0;
    clock_time_get(clock, 1, &time);
    return time;
}

EXPORT("wasi:clocks/monotonic-clock#now") u64 monotonic_now(void) { return now(1); }
EXPORT("wasi:clocks/monotonic-clock#resolution") u64 monotonic_resolution(void) { return 1000; }
EXPORT("wasi:clocks/monotonic-clock#subscribe-instant") u32 subscribe_instant(u64 when) {
    return must_add(MOMENT, 0, when);
}
EXPORT("wasi:clocks/monotonic-clock#subscribe-duration") u32 subscribe_duration(u64 nanos) {
    u64 when = now(1) + nanos;
    return must_add(MOMENT, 0, when < nanos ? UINT64_MAX : when);
}

EXPORT("wasi:clocks/wall-clock#now") void wall_now(u8 *result) {
    u64 time = now(0);
    put64(result, time / 1000000000);
    put32(result + 8, time % 1000000000);
}

EXPORT("wasi:clocks/wall-clock#resolution") void wall_resolution(u8 *result) {
    put64(result, 0);
    put32(result + 8, 1000);
}

/* Nanoseconds until the first of these; 0 if one is there. */
static u64 until_first(const u32 *handles, u32 count, u64 time) {
    u64 least = UINT64_MAX;
    for (u32 i = 0; i < count; i++) {
        Thing *pollable = thing(handles[i]);
        u64 left = pollable->kind == MOMENT && pollable->at > time ? pollable->at - time : 0;
        least = left < least ? left : least;
    }
    return least;
}

static void wait_for(const u32 *handles, u32 count) {
    struct {
        u64 userdata;
        u8 tag;
        _Alignas(8) u32 clock;
        u64 timeout, precision;
        u16 flags;
    } subscription = {.clock = 1};
    u8 event[32];
    u32 num;
    bool timed = false;
    for (u32 i = 0; i < count; i++)
        timed |= thing(handles[i])->kind == MOMENT;
    subscription.timeout = timed ? until_first(handles, count, now(1)) : 0;
    poll_oneoff(&subscription, event, 1, &num);
}

EXPORT("wasi:io/poll#[method]pollable.block") void pollable_block(u32 handle) {
    if (thing(handle)->kind == MOMENT)
        wait_for(&handle, 1);
}

EXPORT("wasi:io/poll#poll") void poll(const u32 *handles, u32 count, u8 *result) {
    wait_for(handles, count);
    u64 time = now(1);
    /* A moment that was waited for is over, however the clock rounds. */
    u64 least = until_first(handles, count, time);
    u32 *ready = allocate(count * sizeof(u32) + 1);
    if (!ready)
        __builtin_trap();
    u32 num = 0;
    for (u32 i = 0; i < count; i++)
        if (until_first(&handles[i], 1, time) <= least)
            ready[num++] = i;
    put32(result, (u32)ready);
    put32(result + 4, num);
}

EXPORT("wasi:random/random#get-random-bytes") void get_random_bytes(u64 len, u8 *result) {
    u8 *bytes = allocate((u32)len + 1);
    if (!bytes || random_get(bytes, (u32)len) != 0)
        __builtin_trap();
    put32(result, (u32)bytes);
    put32(result + 4, (u32)len);
}

/* ---- streams ---- */

/* The most that one call moves. */
#define CHUNK (256 << 10)

EXPORT("wasi:cli/stdin#get-stdin") u32 get_stdin(void) { return must_add(STDIN, 0, 0); }
EXPORT("wasi:cli/stdout#get-stdout") u32 get_stdout(void) { return must_add(STDOUT, 1, 0); }
EXPORT("wasi:cli/stderr#get-stderr") u32 get_stderr(void) { return must_add(STDERR, 2, 0); }
EXPORT("wasi:cli/terminal-stdin#get-terminal-stdin") void terminal_stdin(u8 *result) { put8(result, 0); }
EXPORT("wasi:cli/terminal-stdout#get-terminal-stdout") void terminal_stdout(u8 *result) { put8(result, 0); }
EXPORT("wasi:cli/terminal-stderr#get-terminal-stderr") void terminal_stderr(u8 *result) { put8(result, 0); }

EXPORT("wasi:io/streams#[method]input-stream.subscribe") u32 subscribe_input(u32 handle) {
    (void)handle;
    return must_add(READY, 0, 0);
}
EXPORT("wasi:io/streams#[method]output-stream.subscribe") u32 subscribe_output(u32 handle) {
    (void)handle;
    return must_add(READY, 0, 0);
}

/* `result<T, stream-error>` with the payload at `at` */
static void stream_error(u8 *result, u32 at, u8 error) {
    put8(result, 1);
    put8(result + at, error);
    put32(result + at + 4, 1);
}

/* Reads into new memory of the guest. */
static u32 read_bytes(u32 fd, bool whole, u64 offset, u64 len, void **bytes, u32 *num) {
    u32 size = len < CHUNK ? (u32)len : CHUNK;
    *bytes = allocate(size + 1);
    *num = 0;
    if (!*bytes)
        return 48;
    Slice slice = {*bytes, size};
    u32 errno_ = whole ? fd_read(fd, &slice, 1, num) : fd_pread(fd, &slice, 1, offset, num);
    if (errno_ != 0 || *num == 0) {
        release(*bytes);
        *bytes = (void *)1;
    }
    return errno_;
}

EXPORT("wasi:io/streams#[method]input-stream.read") void input_read(u32 handle, u64 len, u8 *result) {
    Thing *stream = thing(handle);
    void *bytes;
    u32 num;
    if (read_bytes(stream->fd, stream->kind == STDIN, stream->at, len, &bytes, &num) != 0) {
        stream_error(result, 4, STREAM_FAILED);
    } else if (num == 0 && len > 0) {
        stream_error(result, 4, STREAM_CLOSED);
    } else {
        stream->at += num;
        put8(result, 0);
        put32(result + 4, (u32)bytes);
        put32(result + 8, num);
    }
}

EXPORT("wasi:io/streams#[method]output-stream.check-write") void check_write(u32 handle, u8 *result) {
    thing(handle);
    put8(result, 0);
    put64(result + 8, CHUNK);
}

/* `result<_, stream-error>` */
EXPORT("wasi:io/streams#[method]output-stream.write")
void output_write(u32 handle, const u8 *bytes, u32 len, u8 *result) {
    Thing *stream = thing(handle);
    put8(result, 0);
    while (len > 0) {
        Slice slice = {bytes, len};
        u32 num = 0;
        u32 errno_ = stream->kind == WRITER ? fd_pwrite(stream->fd, &slice, 1, stream->at, &num)
                                            : fd_write(stream->fd, &slice, 1, &num);
        if (errno_ != 0 || num == 0) {
            write_error = errno_ != 0 ? errno_ : 51;
            stream_error(result, 4, STREAM_FAILED);
            return;
        }
        stream->at += num;
        bytes += num;
        len -= num;
    }
}

EXPORT("wasi:io/streams#[method]output-stream.blocking-write-and-flush")
void output_write_flush(u32 handle, const u8 *bytes, u32 len, u8 *result) {
    output_write(handle, bytes, len, result);
}

EXPORT("wasi:io/streams#[method]output-stream.blocking-flush") void output_flush(u32 handle, u8 *result) {
    thing(handle);
    put8(result, 0);
}

/* The C library calls every failure of a stream an input/output error. Where a write failed for
 * another reason, a `pwrite` fails for the same and sets `errno` to what it was. */
EXPORT("env#write") long write_telling(int fd, const void *bytes, size_t len) {
    write_error = 0;
    long written = guest_write(fd, bytes, len);
    if (written < 0 && write_error != 0)
        guest_pwrite(fd, bytes, len, 0);
    write_error = 0;
    return written;
}

/* ---- files ---- */

#define READ_RIGHT (1ull << 1)
#define WRITE_RIGHT (1ull << 6)
enum { FLAG_READ = 1, FLAG_WRITE = 2, FLAG_MUTATE_FOLDER = 32 };

EXPORT("wasi:filesystem/preopens#get-directories") void get_directories(u8 *result) {
    struct {
        u32 fd;
        Slice path;
    } *list = allocate(16 * sizeof *list);
    if (!list)
        __builtin_trap();
    u32 num = 0, prestat[2];
    for (u32 fd = 3; num < 16 && fd_prestat_get(fd, prestat) == 0; fd++) {
        char *path = allocate(prestat[1] + 1);
        if (!path || fd_prestat_dir_name(fd, path, prestat[1]) != 0)
            __builtin_trap();
        list[num].fd = fd;
        list[num++].path = (Slice){path, prestat[1]};
    }
    put32(result, (u32)list);
    put32(result + 4, num);
}

EXPORT("wasi:filesystem/types#[method]descriptor.read-via-stream")
void read_via_stream(u32 fd, u64 offset, u8 *result) { finish_added(result, add(READER, fd, offset)); }

EXPORT("wasi:filesystem/types#[method]descriptor.write-via-stream")
void write_via_stream(u32 fd, u64 offset, u8 *result) { finish_added(result, add(WRITER, fd, offset)); }

EXPORT("wasi:filesystem/types#[method]descriptor.append-via-stream") void append_via_stream(u32 fd, u8 *result) {
    if (finish(result, 4, fd_fdstat_set_flags(fd, 1)))
        finish_added(result, add(APPENDER, fd, 0));
}

EXPORT("wasi:filesystem/types#[method]descriptor.advise")
void advise(u32 fd, u64 offset, u64 len, u32 advice, u8 *result) {
    (void)fd, (void)offset, (void)len, (void)advice;
    finish(result, 1, 0);
}

EXPORT("wasi:filesystem/types#[method]descriptor.sync") void sync_(u32 fd, u8 *result) {
    finish(result, 1, fd_sync(fd));
}
EXPORT("wasi:filesystem/types#[method]descriptor.sync-data") void sync_data(u32 fd, u8 *result) {
    finish(result, 1, fd_sync(fd));
}

EXPORT("wasi:filesystem/types#[method]descriptor.get-flags") void get_flags(u32 fd, u8 *result) {
    FdStat stat;
    if (!finish(result, 1, fd_fdstat_get(fd, &stat)))
        return;
    u8 flags = stat.rights & READ_RIGHT ? FLAG_READ : 0;
    if (stat.type == 3)
        flags = FLAG_READ | FLAG_MUTATE_FOLDER;
    else if (stat.rights & WRITE_RIGHT)
        flags |= FLAG_WRITE;
    put8(result + 1, flags);
}

EXPORT("wasi:filesystem/types#[method]descriptor.set-size") void set_size(u32 fd, u64 size, u8 *result) {
    finish(result, 1, fd_filestat_set_size(fd, size));
}

/* The flags of preview 1 for two `new-timestamp`s: no change, now, a given time. */
static u32 time_flags(u32 accessed, u32 modified) {
    static const u8 flags[] = {0, 2, 1};
    return flags[accessed % 3] | flags[modified % 3] << 2;
}

static u64 nanos_of(u64 seconds, u32 nanos) { return seconds * 1000000000 + nanos; }

EXPORT("wasi:filesystem/types#[method]descriptor.set-times")
void set_times(u32 fd, u32 a, u64 a_seconds, u32 a_nanos, u32 m, u64 m_seconds, u32 m_nanos, u8 *result) {
    finish(result, 1, fd_filestat_set_times(fd, nanos_of(a_seconds, a_nanos), nanos_of(m_seconds, m_nanos), time_flags(a, m)));
}

EXPORT("wasi:filesystem/types#[method]descriptor.set-times-at")
void set_times_at(u32 fd, u32 lookup, const char *path, u32 len, u32 a, u64 a_seconds, u32 a_nanos, u32 m,
                  u64 m_seconds, u32 m_nanos, u8 *result) {
    u64 accessed = nanos_of(a_seconds, a_nanos), modified = nanos_of(m_seconds, m_nanos);
    finish(result, 1, path_filestat_set_times(fd, lookup, path, len, accessed, modified, time_flags(a, m)));
}

/* `result<tuple<list<u8>, bool>, error-code>` */
EXPORT("wasi:filesystem/types#[method]descriptor.read") void descriptor_read(u32 fd, u64 len, u64 offset, u8 *result) {
    void *bytes;
    u32 num;
    if (!finish(result, 4, read_bytes(fd, false, offset, len, &bytes, &num)))
        return;
    put32(result + 4, (u32)bytes);
    put32(result + 8, num);
    put8(result + 12, num == 0 && len > 0);
}

/* `result<u64, error-code>` */
EXPORT("wasi:filesystem/types#[method]descriptor.write")
void descriptor_write(u32 fd, const u8 *bytes, u32 len, u64 offset, u8 *result) {
    Slice slice = {bytes, len};
    u32 num = 0;
    u32 errno_ = write_error != 0 ? write_error : fd_pwrite(fd, &slice, 1, offset, &num);
    if (finish(result, 8, errno_))
        put64(result + 8, num);
}

EXPORT("wasi:filesystem/types#[method]descriptor.create-directory-at")
void create_directory_at(u32 fd, const char *path, u32 len, u8 *result) {
    finish(result, 1, path_create_directory(fd, path, len));
}
EXPORT("wasi:filesystem/types#[method]descriptor.remove-directory-at")
void remove_directory_at(u32 fd, const char *path, u32 len, u8 *result) {
    finish(result, 1, path_remove_directory(fd, path, len));
}
EXPORT("wasi:filesystem/types#[method]descriptor.unlink-file-at")
void unlink_file_at(u32 fd, const char *path, u32 len, u8 *result) {
    finish(result, 1, path_unlink_file(fd, path, len));
}
EXPORT("wasi:filesystem/types#[method]descriptor.rename-at")
void rename_at(u32 fd, const char *path, u32 len, u32 to, const char *to_path, u32 to_len, u8 *result) {
    finish(result, 1, path_rename(fd, path, len, to, to_path, to_len));
}
EXPORT("wasi:filesystem/types#[method]descriptor.symlink-at")
void symlink_at(u32 fd, const char *target, u32 target_len, const char *path, u32 len, u8 *result) {
    finish(result, 1, path_symlink(target, target_len, fd, path, len));
}
EXPORT("wasi:filesystem/types#[method]descriptor.link-at")
void link_at(u32 fd, u32 lookup, const char *path, u32 len, u32 to, const char *to_path, u32 to_len, u8 *result) {
    finish(result, 1, path_link(fd, lookup, path, len, to, to_path, to_len));
}

/* `result<string, error-code>` */
EXPORT("wasi:filesystem/types#[method]descriptor.readlink-at")
void readlink_at(u32 fd, const char *path, u32 len, u8 *result) {
    char *target = allocate(4096);
    u32 used = 0;
    u32 errno_ = target ? path_readlink(fd, path, len, target, 4096, &used) : 48;
    if (!finish(result, 4, errno_)) {
        release(target);
        return;
    }
    put32(result + 4, (u32)target);
    put32(result + 8, used);
}

/* `result<own<descriptor>, error-code>` */
EXPORT("wasi:filesystem/types#[method]descriptor.open-at")
void open_at(u32 fd, u32 lookup, const char *path, u32 len, u32 open_flags, u32 flags, u8 *result) {
    u64 rights = (flags & FLAG_READ ? READ_RIGHT : 0) | (flags & FLAG_WRITE ? WRITE_RIGHT : 0);
    u32 opened = 0;
    if (finish(result, 4, path_open(fd, lookup, path, len, open_flags, rights, rights, 0, &opened)))
        put32(result + 4, opened);
}

/* A type of file of preview 1 as a `descriptor-type`. */
static u8 descriptor_type(u8 type) {
    switch (type) {
    case 3: return 3;
    case 4: return 6;
    case 7: return 5;
    default: return 0;
    }
}

static void put_time(u8 *at, u64 time) {
    put8(at, 1);
    put64(at + 8, time / 1000000000);
    put32(at + 16, time % 1000000000);
}

/* `result<descriptor-stat, error-code>` */
static void put_stat(u8 *result, u32 errno_, const Stat *stat) {
    if (!finish(result, 8, errno_))
        return;
    put8(result + 8, descriptor_type(stat->type));
    put64(result + 16, stat->links);
    put64(result + 24, stat->size);
    put_time(result + 32, stat->accessed);
    put_time(result + 56, stat->modified);
    put_time(result + 80, stat->changed);
}

EXPORT("wasi:filesystem/types#[method]descriptor.stat") void descriptor_stat(u32 fd, u8 *result) {
    Stat stat;
    put_stat(result, fd_filestat_get(fd, &stat), &stat);
}
EXPORT("wasi:filesystem/types#[method]descriptor.stat-at")
void stat_at(u32 fd, u32 lookup, const char *path, u32 len, u8 *result) {
    Stat stat;
    put_stat(result, path_filestat_get(fd, lookup, path, len, &stat), &stat);
}

/* `result<metadata-hash-value, error-code>` */
static void put_hash(u8 *result, u32 errno_, const Stat *stat) {
    if (!finish(result, 8, errno_))
        return;
    put64(result + 8, stat->node);
    put64(result + 16, stat->device);
}

EXPORT("wasi:filesystem/types#[method]descriptor.metadata-hash") void metadata_hash(u32 fd, u8 *result) {
    Stat stat;
    put_hash(result, fd_filestat_get(fd, &stat), &stat);
}
EXPORT("wasi:filesystem/types#[method]descriptor.metadata-hash-at")
void metadata_hash_at(u32 fd, u32 lookup, const char *path, u32 len, u8 *result) {
    Stat stat;
    put_hash(result, path_filestat_get(fd, lookup, path, len, &stat), &stat);
}

EXPORT("wasi:filesystem/types#[method]descriptor.read-directory") void read_directory(u32 fd, u8 *result) {
    Stat stat;
    u32 errno_ = fd_filestat_get(fd, &stat);
    if (!finish(result, 4, errno_ == 0 && stat.type != 3 ? 54 : errno_))
        return;
    u8 *buffer = allocate(LISTING_BYTES);
    u32 handle = buffer ? add(LISTING, fd, 0) : 0;
    if (handle)
        things[handle - 1].buffer = buffer;
    else
        release(buffer);
    finish_added(result, handle);
}

/* `result<option<directory-entry>, error-code>` */
EXPORT("wasi:filesystem/types#[method]directory-entry-stream.read-directory-entry")
void read_directory_entry(u32 handle, u8 *result) {
    enum { HEAD = 24 };
    Thing *listing = thing(handle);
    for (;;) {
        u8 *entry = listing->buffer + listing->begin;
        u32 left = listing->end - listing->begin;
        u32 len = left >= HEAD ? get32(entry + 16) : 0;
        if (left < HEAD || left < HEAD + len) {
            /* The last entry of a full buffer may be cut off: on from its cookie. */
            bool was_full = listing->end == LISTING_BYTES;
            if (listing->end != 0 && !was_full) {
                finish(result, 4, 0);
                put8(result + 4, 0);
                return;
            }
            listing->begin = listing->end = 0;
            if (!finish(result, 4, fd_readdir(listing->fd, listing->buffer, LISTING_BYTES, listing->at, &listing->end)))
                return;
            if (listing->end == 0) {
                put8(result + 4, 0);
                return;
            }
            continue;
        }
        listing->at = get64(entry);
        listing->begin += HEAD + len;
        const char *name = (const char *)entry + HEAD;
        bool is_self = len == 1 && name[0] == '.';
        if (is_self || (len == 2 && name[0] == '.' && name[1] == '.'))
            continue;
        Slice kept = copy(name, len);
        finish(result, 4, 0);
        put8(result + 4, 1);
        put8(result + 8, descriptor_type(entry[20]));
        put32(result + 12, (u32)kept.at);
        put32(result + 16, kept.len);
        return;
    }
}

/* ---- sockets: there are none ---- */

EXPORT("wasi:sockets/instance-network#instance-network") u32 instance_network(void) { return 1; }
static void denied(u8 *result) {
    put8(result, 1);
    put8(result + 4, ACCESS_DENIED);
}
EXPORT("wasi:sockets/tcp-create-socket#create-tcp-socket") void create_tcp_socket(u32 family, u8 *result) {
    (void)family;
    denied(result);
}
EXPORT("wasi:sockets/udp-create-socket#create-udp-socket") void create_udp_socket(u32 family, u8 *result) {
    (void)family;
    denied(result);
}
EXPORT("wasi:sockets/ip-name-lookup#resolve-addresses")
void resolve_addresses(u32 network, const char *name, u32 len, u8 *result) {
    (void)network, (void)name, (void)len;
    denied(result);
}

/* ---- what the host calls ---- */

EXPORT("_start") void start(void) {
    u32 num_arguments, num_variables;
    Slice *arguments = copies(args_sizes_get, args_get, &num_arguments);
    Slice *environment = copies(environ_sizes_get, environ_get, &num_variables);
    int code = python_main(arguments, num_arguments, environment, num_variables);
    if (code != 0)
        proc_exit(code);
}

static char *command;

EXPORT("session_open") void session_open(void) {
    u32 num_variables;
    Slice *environment = copies(environ_sizes_get, environ_get, &num_variables);
    python_session_open(environment, num_variables);
}

EXPORT("session_buffer") char *session_buffer(int len) {
    command = allocate((size_t)len + 1);
    if (!command)
        __builtin_trap();
    return command;
}

EXPORT("session_run") int session_run(int len) { return python_session_run(command, len); }

EXPORT("session_cwd") const char *session_cwd(void) {
    static char cwd[4097];
    return guest_getcwd(cwd, sizeof cwd) ? cwd : "/";
}
