/* Commands on files and folders. */
#include "shell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Takes single letters among `known` off the arguments: which of them were there. */
static unsigned long flags(int *argc, char ***argv, const char *known, Io *io) {
    unsigned long found = 0;
    int i = 1;
    for (; i < *argc && (*argv)[i][0] == '-' && (*argv)[i][1]; i++) {
        if (strcmp((*argv)[i], "--") == 0) {
            i++;
            break;
        }
        for (char *p = (*argv)[i] + 1; *p; p++) {
            const char *at = strchr(known, *p);
            if (!at) {
                out_fmt(io->err, "%s: -%c is not known\n", (*argv)[0], *p);
                return ~0UL;
            }
            found |= 1UL << (at - known);
        }
    }
    (*argv)[i - 1] = (*argv)[0];
    *argv += i - 1;
    *argc -= i - 1;
    return found;
}

static char *join(const char *folder, const char *name) {
    size_t n = strlen(folder);
    char *path = scratch(n + strlen(name) + 2);
    sprintf(path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

static const char *base_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *copy = scratch_str(path, n), *slash = strrchr(copy, '/');
    return slash && slash[1] ? slash + 1 : copy;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names in a folder, sorted; NULL if it cannot be read. */
static char **names_in(const char *folder, int *count) {
    DIR *open = opendir(folder);
    if (!open)
        return NULL;
    int room = 16;
    char **names = malloc(sizeof(char *) * room);
    *count = 0;
    for (struct dirent *entry; (entry = readdir(open));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == room)
            names = realloc(names, sizeof(char *) * (room *= 2));
        names[(*count)++] = scratch_str(entry->d_name, strlen(entry->d_name));
    }
    closedir(open);
    qsort(names, *count, sizeof(char *), by_name);
    char **copy = scratch(sizeof(char *) * (*count + 1));
    memcpy(copy, names, sizeof(char *) * *count);
    free(names);
    return copy;
}

enum { LS_LONG = 1, LS_ALL = 2, LS_ONE = 4, LS_FOLDER = 8, LS_RECURSE = 16, LS_MARK = 128 };

static void show(const char *path, const char *name, unsigned long options, Io *io) {
    struct stat info;
    bool known = lstat(path, &info) == 0;
    char mark = !known ? 0 : S_ISDIR(info.st_mode) ? '/' : S_ISLNK(info.st_mode) ? '@' : 0;
    if (options & LS_LONG && known) {
        char kind = S_ISDIR(info.st_mode) ? 'd' : S_ISLNK(info.st_mode) ? 'l' : '-', when[32];
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", gmtime(&info.st_mtime));
        out_fmt(io->out, "%c %3lu %10lld %s ", kind, (unsigned long)info.st_nlink, (long long)info.st_size, when);
    }
    out_str(io->out, name);
    if (options & LS_MARK && mark)
        out_add(io->out, &mark, 1);
    if (options & LS_LONG && known && S_ISLNK(info.st_mode)) {
        char target[4097];
        ssize_t n = readlink(path, target, sizeof target);
        out_fmt(io->out, " -> %.*s", (int)(n < 0 ? 0 : n), target);
    }
    out_str(io->out, "\n");
}

static int list_folder(const char *path, unsigned long options, bool title, Io *io) {
    int count, status = 0;
    char **names = names_in(path, &count);
    if (!names)
        return complain(io, "ls", path);
    if (title)
        out_fmt(io->out, "%s:\n", path);
    for (int i = 0; i < count; i++)
        if (names[i][0] != '.' || options & LS_ALL)
            show(join(path, names[i]), names[i], options, io);
    for (int i = 0; options & LS_RECURSE && i < count; i++) {
        struct stat info;
        char *inner = join(path, names[i]);
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
            out_str(io->out, "\n");
            status |= list_folder(inner, options, true, io);
        }
    }
    return status;
}

static int c_ls(int argc, char **argv, Io *io) {
    unsigned long options = flags(&argc, &argv, "la1dRhrFtA", io);
    if (options == ~0UL)
        return 2;
    if (options & 512)
        options |= LS_ALL;
    static char *here[] = {"ls", "."};
    if (argc < 2)
        argc = 2, argv = here;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) != 0 && lstat(argv[i], &info) != 0)
            status = complain(io, "ls", argv[i]);
        else if (S_ISDIR(info.st_mode) && !(options & LS_FOLDER)) {
            if (i > 1)
                out_str(io->out, "\n");
            status |= list_folder(argv[i], options, argc > 2 || options & LS_RECURSE, io);
        } else
            show(argv[i], argv[i], options, io);
    }
    return status;
}

static int make_folder(const char *path, bool parents, Io *io) {
    struct stat info;
    if (parents && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return 0;
    if (mkdir(path, 0755) == 0)
        return 0;
    const char *slash = strrchr(path, '/');
    if (parents && errno == ENOENT && slash && slash > path) {
        int status = make_folder(scratch_str(path, slash - path), true, io);
        return status ? status : make_folder(path, false, io);
    }
    return complain(io, "mkdir", path);
}

static int c_mkdir(int argc, char **argv, Io *io) {
    unsigned long options = flags(&argc, &argv, "pv", io);
    if (options == ~0UL)
        return 2;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        char *path = argv[i];
        for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
            path[n - 1] = 0;
        status |= make_folder(path, options & 1, io);
    }
    return status;
}

static int c_rmdir(int argc, char **argv, Io *io) {
    int status = 0;
    for (int i = 1; i < argc; i++)
        if (rmdir(argv[i]) != 0)
            status = complain(io, "rmdir", argv[i]);
    return status;
}

static int remove_all(const char *path, bool recurse, bool force, Io *io) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return force && errno == ENOENT ? 0 : complain(io, "rm", path);
    if (!S_ISDIR(info.st_mode))
        return unlink(path) == 0 ? 0 : complain(io, "rm", path);
    if (!recurse) {
        errno = EISDIR;
        return complain(io, "rm", path);
    }
    int count, status = 0;
    char **names = names_in(path, &count);
    for (int i = 0; names && i < count; i++)
        status |= remove_all(join(path, names[i]), true, force, io);
    return rmdir(path) == 0 ? status : complain(io, "rm", path);
}

static int c_rm(int argc, char **argv, Io *io) {
    unsigned long options = flags(&argc, &argv, "rRfv", io);
    if (options == ~0UL)
        return 2;
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= remove_all(argv[i], options & 3, options & 4, io);
    return status;
}

static int copy_file(const char *from, const char *to, Io *io) {
    int source = open(from, O_RDONLY);
    if (source < 0)
        return complain(io, "cp", from);
    int target = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644), status = 0;
    if (target < 0) {
        close(source);
        return complain(io, "cp", to);
    }
    static char buffer[65536];
    for (ssize_t n; !status && (n = read(source, buffer, sizeof buffer)) > 0;)
        for (ssize_t done = 0, m; done < n && !status; done += m)
            if ((m = write(target, buffer + done, n - done)) <= 0)
                status = complain(io, "cp", to);
    close(source);
    close(target);
    return status;
}

static int copy_all(const char *from, const char *to, bool recurse, Io *io) {
    struct stat info;
    if (stat(from, &info) != 0)
        return complain(io, "cp", from);
    if (!S_ISDIR(info.st_mode))
        return copy_file(from, to, io);
    if (!recurse) {
        errno = EISDIR;
        return complain(io, "cp", from);
    }
    size_t n = strlen(from);
    if (strncmp(from, to, n) == 0 && (to[n] == '/' || !to[n])) {
        errno = EINVAL;
        return complain(io, "cp", to);
    }
    int status = make_folder(to, true, io), count;
    char **names = names_in(from, &count);
    for (int i = 0; names && i < count; i++)
        status |= copy_all(join(from, names[i]), join(to, names[i]), true, io);
    return status;
}

/* cp, mv and ln: several sources into a folder, or one to a name. */
static int c_copy(int argc, char **argv, Io *io) {
    char kind = argv[0][0] == 'c' ? 'c' : argv[0][0] == 'm' ? 'm' : 'l';
    const char *name = argv[0];
    unsigned long options = flags(&argc, &argv, "rRasfvpTn", io);
    if (options == ~0UL)
        return 2;
    if (argc < 3) {
        out_fmt(io->err, "%s: a source and a target are needed\n", name);
        return 2;
    }
    struct stat info;
    const char *last = argv[argc - 1];
    bool folder = stat(last, &info) == 0 && S_ISDIR(info.st_mode);
    int status = 0;
    if (argc > 3 && !folder) {
        errno = ENOTDIR;
        return complain(io, name, last);
    }
    for (int i = 1; i < argc - 1; i++) {
        char *to = folder ? join(last, base_of(argv[i])) : scratch_str(last, strlen(last));
        if (kind == 'c')
            status |= copy_all(argv[i], to, options & 7, io);
        else if (kind == 'm')
            status |= rename(argv[i], to) == 0 ? 0 : complain(io, "mv", argv[i]);
        else {
            if (options & 16)
                unlink(to);
            int made = options & 8 ? symlink(argv[i], to) : link(argv[i], to);
            status |= made == 0 ? 0 : complain(io, "ln", to);
        }
    }
    return status;
}

static int c_touch(int argc, char **argv, Io *io) {
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        int fd = open(argv[i], O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            status = complain(io, "touch", argv[i]);
        else {
            futimens(fd, NULL);
            close(fd);
        }
    }
    return status;
}

static int c_readlink(int argc, char **argv, Io *io) {
    char target[4097];
    int status = 0;
    bool real = strcmp(argv[0], "realpath") == 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            real |= argv[i][1] == 'f';
            continue;
        }
        if (real) {
            struct stat info;
            if (stat(argv[i], &info) != 0 || !realpath(argv[i], target)) {
                status = complain(io, argv[0], argv[i]);
                continue;
            }
        } else {
            ssize_t n = readlink(argv[i], target, sizeof target - 1);
            if (n < 0) {
                status = 1;
                continue;
            }
            target[n] = 0;
        }
        out_fmt(io->out, "%s\n", target);
    }
    return status;
}

static int c_stat(int argc, char **argv, Io *io) {
    int status = 0;
    const char *format = NULL;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (strcmp(argv[i], "-c") == 0 && i + 1 < argc) {
            format = argv[++i];
        } else if (lstat(argv[i], &info) != 0) {
            status = complain(io, "stat", argv[i]);
        } else if (!format) {
            out_fmt(io->out, "%s %lld bytes, %lu links\n", argv[i], (long long)info.st_size, (unsigned long)info.st_nlink);
        } else {
            for (const char *p = format; *p; p++) {
                if (*p != '%' || !p[1])
                    out_add(io->out, p, 1);
                else if (*++p == 's')
                    out_fmt(io->out, "%lld", (long long)info.st_size);
                else if (*p == 'n')
                    out_str(io->out, argv[i]);
                else if (*p == 'Y')
                    out_fmt(io->out, "%lld", (long long)info.st_mtime);
                else if (*p == 'F')
                    out_str(io->out, S_ISDIR(info.st_mode) ? "directory" : S_ISLNK(info.st_mode) ? "symbolic link" : "regular file");
            }
            out_str(io->out, "\n");
        }
    }
    return status;
}

static int find_in(const char *path, int depth, int max, const char *pattern, char kind, Io *io) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return complain(io, "find", path);
    char own = S_ISDIR(info.st_mode) ? 'd' : S_ISLNK(info.st_mode) ? 'l' : 'f';
    if ((!pattern || fnmatch(pattern, base_of(path), 0) == 0) && (!kind || kind == own))
        out_fmt(io->out, "%s\n", path);
    int count, status = 0;
    if (own == 'd' && depth < max) {
        char **names = names_in(path, &count);
        for (int i = 0; names && i < count; i++)
            status |= find_in(join(path, names[i]), depth + 1, max, pattern, kind, io);
    }
    return status;
}

static int c_find(int argc, char **argv, Io *io) {
    const char *pattern = NULL;
    char kind = 0;
    int max = 1000, first = 1, status = 0;
    while (first < argc && argv[first][0] != '-')
        first++;
    for (int i = first; i < argc; i++) {
        if (strcmp(argv[i], "-print") == 0)
            continue;
        if (i + 1 >= argc) {
            out_fmt(io->err, "find: %s is not known\n", argv[i]);
            return 1;
        }
        if (strcmp(argv[i], "-name") == 0)
            pattern = argv[++i];
        else if (strcmp(argv[i], "-type") == 0)
            kind = argv[++i][0];
        else if (strcmp(argv[i], "-maxdepth") == 0)
            max = atoi(argv[++i]);
        else {
            out_fmt(io->err, "find: %s is not known\n", argv[i]);
            return 1;
        }
    }
    if (first == 1)
        return find_in(".", 0, max, pattern, kind, io);
    for (int i = 1; i < first; i++)
        status |= find_in(argv[i], 0, max, pattern, kind, io);
    return status;
}

static int c_basename(int argc, char **argv, Io *io) {
    if (argc < 2)
        return 2;
    if (argv[0][0] == 'b') {
        const char *name = base_of(argv[1]);
        size_t n = strlen(name), m = argc > 2 ? strlen(argv[2]) : 0;
        if (m && m < n && strcmp(name + n - m, argv[2]) == 0)
            n -= m;
        out_fmt(io->out, "%.*s\n", (int)n, name);
        return 0;
    }
    const char *slash = strrchr(argv[1], '/');
    size_t n = slash ? (size_t)(slash - argv[1]) : 0;
    out_fmt(io->out, "%s\n", !slash ? "." : n == 0 ? "/" : scratch_str(argv[1], n));
    return 0;
}

static int c_mktemp(int argc, char **argv, Io *io) {
    bool folder = argc > 1 && strcmp(argv[1], "-d") == 0;
    for (int i = 0; i < 1000; i++) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/tmp.%08x", arc4random());
        int made = folder ? mkdir(path, 0700) : open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (made >= 0) {
            if (!folder)
                close(made);
            out_fmt(io->out, "%s\n", path);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return complain(io, "mktemp", "/tmp");
}

static const struct { const char *name; Command command; } commands[] = {
    {"ls", c_ls}, {"mkdir", c_mkdir}, {"rmdir", c_rmdir}, {"rm", c_rm}, {"cp", c_copy}, {"mv", c_copy},
    {"ln", c_copy}, {"touch", c_touch}, {"readlink", c_readlink}, {"realpath", c_readlink}, {"stat", c_stat},
    {"find", c_find}, {"basename", c_basename}, {"dirname", c_basename}, {"mktemp", c_mktemp},
};

Command find_file_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].command;
    return NULL;
}
