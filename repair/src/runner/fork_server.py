"""Runs the tests of a package again and again, each time in a fork of this process, which has the runner loaded.

Requests and answers are lines of JSON on standard input and output, one answer to each request:

    {"op": "load", "root": PATH, "paths": [PATH...], "modules": [NAME...], "tests": [PATH...], "arguments": [TEXT...]}
        the package, what is put before sys.path, what is imported beforehand, the files of tests, what pytest is given
        beside.
    {"op": "run", "files": {PATH: TEXT}, "targets": [PATH...], "only": [ID...] | null, "max_failing": N | null,
     "coverage": BOOL, "seconds": N, "memory": BYTES}
        writes the files, runs the tests, puts the files back. `only` leaves out all tests but these, behind
        `max_failing` failures the rest is not run.

Nothing of a run outlives its answer: processes that it left are ended, files that it changed are put back.
"""

import ctypes
import importlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import stat
import sys
import tempfile
import time

MAX_ANSWER = 32 << 20
MAX_TEXT = 4000
SHOWN_FAILURES = 3
MAX_FILE = 64 << 20
SKIPPED_FOLDERS = {".git", "__pycache__", ".pytest_cache", ".hypothesis"}


class Plugin:
    """Tells of every test how it went, one line each, on a pipe of its own."""

    def __init__(self, out, only, root, trace):
        self.out, self.root, self.trace = out, root, trace
        self.only = None if only is None else set(only)
        self.told = self.failures = 0
        self.config = None

    def pytest_configure(self, config):
        self.config = config

    def tell(self, record):
        line = (json.dumps(record) + "\n").encode()
        self.told += len(line)
        if self.told < MAX_ANSWER:
            while line:
                line = line[os.write(self.out, line):]

    def pytest_collection_modifyitems(self, config, items):
        if self.only is not None:
            kept = [item for item in items if item.nodeid in self.only]
            left = [item for item in items if item.nodeid not in self.only]
            if left:
                config.hook.pytest_deselected(items=left)
            items[:] = kept
        self.tell({"kind": "collected", "count": len(items)})

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell({"kind": "collect_error", "id": report.nodeid, "text": text_of(report)})

    def pytest_runtest_logstart(self, nodeid, location):
        if self.trace:
            self.trace.begin(nodeid)

    def pytest_runtest_logfinish(self, nodeid, location):
        if self.trace:
            self.trace.begin("")

    def pytest_runtest_logreport(self, report):
        status = None
        if report.failed:
            status = "failed" if report.when == "call" else "error"
        elif report.when == "call" or report.skipped:
            status = report.outcome
            if hasattr(report, "wasxfail"):
                status = "xfailed" if report.skipped else "xpassed"
        if status is None:
            return
        record = {"kind": "test", "id": report.nodeid, "status": status, "seconds": report.duration}
        if status in ("failed", "error"):
            record["text"] = text_of(report)
            crash = getattr(report.longrepr, "reprcrash", None)
            record["message"] = str(getattr(crash, "message", ""))[:MAX_TEXT]
            self.failures += 1
            if self.failures == SHOWN_FAILURES:
                # Writing tracebacks takes longer than most tests; one is shown.
                self.config.option.tbstyle = "value"
        self.tell(record)


def text_of(report):
    return report.longreprtext[-MAX_TEXT:]


class Trace:
    """Which lines of the package's files each test runs; the test "" stands for what runs between them."""

    def __init__(self, root, files):
        self.files = {os.path.join(root, name): name for name in files}
        self.covered = {}
        self.begin("")

    def begin(self, test):
        self.seen = self.covered.setdefault(test, {})
        if hasattr(sys, "monitoring") and getattr(self, "monitoring", False):
            sys.monitoring.restart_events()

    def start(self):
        if hasattr(sys, "monitoring"):
            self.monitoring = True
            tool = sys.monitoring.COVERAGE_ID
            sys.monitoring.use_tool_id(tool, "spar")
            sys.monitoring.register_callback(tool, sys.monitoring.events.LINE, self.line)
            sys.monitoring.set_events(tool, sys.monitoring.events.LINE)
        else:
            import threading

            threading.settrace(self.call)
            sys.settrace(self.call)

    def line(self, code, number):
        name = self.files.get(code.co_filename)
        if name is not None:
            self.seen.setdefault(name, set()).add(number)
        return sys.monitoring.DISABLE

    def call(self, frame, event, argument):
        name = self.files.get(frame.f_code.co_filename)
        if name is None:
            return None
        seen = self.seen.setdefault(name, set())
        seen.add(frame.f_lineno)
        quiet = 0

        def local(frame, event, argument):
            nonlocal quiet
            if event == "line":
                if frame.f_lineno in seen:
                    quiet += 1
                    # A long loop that comes to no new line costs much to follow.
                    if quiet > 20000:
                        frame.f_trace_lines = False
                else:
                    quiet = 0
                    seen.add(frame.f_lineno)
            return local

        return local

    def records(self):
        if not hasattr(sys, "monitoring"):
            sys.settrace(None)
        for test, files in self.covered.items():
            yield {"kind": "covered", "id": test, "files": {name: sorted(lines) for name, lines in files.items()}}


class Server:
    def __init__(self):
        self.root = None
        self.compiled = {}
        self.changed = set()
        self.arguments = []
        self.pristine = {}

    # The package

    def load(self, request):
        self.root = os.path.realpath(request["root"])
        self.arguments = request["arguments"]
        os.chdir(self.root)
        for path in reversed(request["paths"]):
            sys.path.insert(0, os.path.join(self.root, path) if path else self.root)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            [os.path.join(self.root, path) if path else self.root for path in request["paths"]]
        )
        loaded = []
        for name in request["modules"]:
            # What cannot be imported here will be told where a test imports it.
            try:
                importlib.import_module(name)
                loaded.append(name)
            except BaseException:
                pass
        self.keep_compiled(request["tests"])
        self.pristine = {name: self.state(name) for name in self.names()}
        self.contents = {}
        for name, state in self.pristine.items():
            if stat.S_ISREG(state[0]) and state[1] <= MAX_FILE:
                with open(os.path.join(self.root, name), "rb") as file:
                    self.contents[name] = file.read()
        import pytest

        return {"python": sys.version.split()[0], "pytest": pytest.__version__, "loaded": loaded}

    def keep_compiled(self, tests):
        """Code of files that do not change is compiled once, here, and found again in every fork."""
        from importlib.machinery import SourceFileLoader

        server = self
        original = SourceFileLoader.get_code

        def get_code(loader, fullname):
            path = loader.path
            if path in server.changed or not path.startswith(server.root + os.sep):
                return original(loader, fullname)
            code = server.compiled.get(path)
            return original(loader, fullname) if code is None else code

        SourceFileLoader.get_code = get_code
        for name in self.names():
            path = os.path.join(self.root, name)
            if name.endswith(".py") and not os.path.islink(path):
                # Files that are no modules, such as templates, need not be of this Python.
                try:
                    self.compiled[path] = original(SourceFileLoader("module", path), "module")
                except Exception:
                    pass
        try:
            from _pytest.assertion import rewrite
        except ImportError:
            return
        if not hasattr(rewrite, "_rewrite_test"):
            return
        rewritten = rewrite._rewrite_test

        def rewrite_test(path, config):
            name = str(path)
            if name in server.changed:
                return rewritten(path, config)
            known = server.compiled.get(("test", name))
            return rewritten(path, config) if known is None else known

        for name in tests:
            path = os.path.join(self.root, name)
            # What cannot be compiled will be told where it is collected.
            try:
                self.compiled["test", path] = rewritten(pathlib.Path(path), None)
            except Exception:
                pass
        rewrite._rewrite_test = rewrite_test

    def names(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            for name in files:
                yield os.path.relpath(os.path.join(folder, name), self.root)

    def state(self, name):
        found = os.lstat(os.path.join(self.root, name))
        return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino)

    def put_back(self):
        """Puts back what a run changed of the package's files."""
        there = set()
        for name in list(self.names()):
            there.add(name)
            if name not in self.pristine:
                os.unlink(os.path.join(self.root, name))
            elif self.state(name) != self.pristine[name]:
                self.write(name, self.contents.get(name))
        for name in self.pristine.keys() - there:
            self.write(name, self.contents.get(name))

    def write(self, name, content):
        if content is None:
            raise RuntimeError("a run changed `%s`, which cannot be put back" % name)
        path = os.path.join(self.root, name)
        if os.path.islink(path):
            os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, stat.S_IMODE(self.pristine[name][0]))
        self.pristine[name] = self.state(name)

    # Runs

    def run(self, request):
        files = {name: text.encode() for name, text in request["files"].items()}
        for name, content in files.items():
            if name not in self.contents:
                raise RuntimeError("`%s` is no file of the package" % name)
            with open(os.path.join(self.root, name), "wb") as file:
                file.write(content)
            self.changed.add(os.path.join(self.root, name))
        try:
            return self.fork(request)
        finally:
            self.changed.clear()
            self.put_back()

    def fork(self, request):
        scratch = tempfile.mkdtemp(prefix="spar-repair-")
        read, write = os.pipe()
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                self.child(request, write, scratch)
            finally:
                os._exit(70)
        os.close(write)
        parts, size, timed_out = [], 0, False
        deadline = begun + request["seconds"]
        ended, usage = None, None
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            ready, _, _ = select.select([read], [], [], min(left, 0.2))
            if ready:
                part = os.read(read, 1 << 16)
                if not part:
                    break
                size += len(part)
                if size <= MAX_ANSWER + (1 << 20):
                    parts.append(part)
            elif ended is None:
                # What the tests left running may hold the pipe open.
                pid, status, usage = os.wait4(child, os.WNOHANG)
                if pid:
                    ended = status
            elif ended is not None:
                break
        os.close(read)
        if ended is None:
            if not timed_out:
                # It has told all, and may still be ending its threads.
                limit = min(deadline, time.monotonic() + 2)
                while time.monotonic() < limit:
                    pid, status, usage = os.wait4(child, os.WNOHANG)
                    if pid:
                        ended = status
                        break
                    time.sleep(0.002)
            if ended is None:
                kill(-child)
                kill(child)
                _, ended, usage = os.wait4(child, 0)
        kill(-child)
        cpu = usage.ru_utime + usage.ru_stime + end_descendants()
        shutil.rmtree(scratch, ignore_errors=True)
        records = []
        for line in b"".join(parts).split(b"\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                # Only a line that was cut off at the end of a run that was killed.
                pass
        return {
            "records": records,
            "timed_out": timed_out,
            "code": os.WEXITSTATUS(ended) if os.WIFEXITED(ended) else None,
            "signal": os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else None,
            "seconds": time.monotonic() - begun,
            "cpu_seconds": cpu,
        }

    def child(self, request, out, scratch):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        limit(resource.RLIMIT_AS, request["memory"])
        limit(resource.RLIMIT_FSIZE, MAX_FILE)
        limit(resource.RLIMIT_CORE, 0)
        limit(resource.RLIMIT_CPU, int(request["seconds"]) + 2)
        os.environ["TMPDIR"] = os.environ["HOME"] = tempfile.tempdir = scratch
        trace = None
        if request["coverage"]:
            trace = Trace(self.root, [name for name in self.contents if name.endswith(".py")])
        plugin = Plugin(out, request["only"], self.root, trace)
        import pytest

        arguments = [
            "-q", "--no-header", "--tb=short", "-rN", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", "addopts=",
            "--basetemp", os.path.join(scratch, "pytest"), "--rootdir", self.root,
        ]
        if request["max_failing"]:
            arguments.append("--maxfail=%d" % request["max_failing"])
        before = set(sys.modules)
        if trace:
            trace.start()
        code = pytest.main(arguments + self.arguments + request["targets"], plugins=[plugin])
        if trace:
            for record in trace.records():
                plugin.tell(record)
            # What it imported from elsewhere, which need not be imported again and again.
            plugin.tell({"kind": "modules", "names": self.foreign(set(sys.modules) - before)})
        plugin.tell({"kind": "end", "code": int(code)})
        os._exit(0)

    def foreign(self, names):
        found = []
        for name in sorted(names):
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            path = getattr(module, "__path__", None)
            if name.startswith(("_pytest", "pytest", "__main__")) or (file is None and path is not None):
                continue
            if file is None or not os.path.realpath(file).startswith(self.root + os.sep):
                found.append(name)
        return found


def limit(what, value):
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def kill(pid):
    try:
        if pid < 0:
            os.killpg(-pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def end_descendants():
    """Ends what runs left, which became this process's children when their parents ended; its CPU seconds."""
    cpu = 0.0
    for _ in range(1000):
        children = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open("/proc/%s/stat" % name) as file:
                        fields = file.read().rsplit(")", 1)[1].split()
                except (OSError, IndexError):
                    continue
                if int(fields[1]) == os.getpid():
                    children.append(int(name))
        if not children:
            break
        for child in children:
            kill(child)
        for child in children:
            try:
                _, _, usage = os.wait4(child, 0)
                cpu += usage.ru_utime + usage.ru_stime
            except ChildProcessError:
                pass
    return cpu


def main():
    # Answers go where the standard output was; tests must not write there.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.set_inheritable(answers.fileno(), False)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.dont_write_bytecode = True
    # This program stands in no folder, and what is in the present one is not its own.
    sys.path[:] = [path for path in sys.path if path]
    # PR_SET_CHILD_SUBREAPER: whoever loses its parent becomes a child of this process.
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
    server = Server()
    for line in requests:
        request = json.loads(line)
        try:
            answer = server.load(request) if request["op"] == "load" else server.run(request)
            answer["ok"] = True
        except Exception as error:
            answer = {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    try:
        import pytest  # noqa: F401
    except ImportError:
        sys.stdout.write(json.dumps({"ok": False, "error": "there is no pytest"}) + "\n")
        sys.exit(1)
    main()
