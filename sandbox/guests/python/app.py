"""The Python guest: `python -c CODE ARGS`, `python -m MODULE ARGS`, `python FILE ARGS`, or a program on stdin.

This module is run once when the guest is built, which imports the standard library; its state is part of
the guest. `WitWorld.main` is what every instance does; in a session each command is run in one `__main__`,
and the value of its last expression is printed unless it is None.
"""

import ast
import atexit
import builtins
import gc
import importlib
import io
import io
import linecache
import os
import pkgutil
import runpy
import sys
import traceback
import types

import wit_world

# Not imported: they need a terminal, a window, processes, or print when imported.
LEFT_OUT = {
    "antigravity", "this", "idlelib", "tkinter", "turtle", "turtledemo", "test", "lib2to3", "ensurepip",
    "venv", "pip", "curses", "readline", "msvcrt", "winreg", "winsound", "nt", "_pyrepl", "site",
    "sitecustomize", "usercustomize", "pty", "tty", "__main__", "pydoc_data",
}


def import_standard_library():
    """Only what is imported when the guest is built can be imported in it."""
    names = {name for name in sys.stdlib_module_names if name not in LEFT_OUT}
    for name in sorted(names):
        try:
            module = importlib.import_module(name)
        except BaseException:
            continue
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + ".", lambda _: None):
            parts = set(found.name.split("."))
            if parts & {"__main__", "test", "tests", "idlelib"} or found.name.startswith("encodings.") and "mbcs" in found.name:
                continue
            try:
                importlib.import_module(found.name)
            except BaseException:
                pass


import_standard_library()


def cut_own_frames(error):
    """The traceback from the program's first frame on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    # runpy's frames belong to `-m`, not to the program.
    while frame is not None and frame.tb_next is not None and "runpy" in frame.tb_frame.f_code.co_filename:
        frame = frame.tb_next
    return error.with_traceback(frame)


def set_up(environment):
    os.environ.clear()
    for variable in environment:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    for folder in (os.environ.get("PWD"), "/"):
        try:
            os.chdir(folder)
            break
        except (OSError, TypeError):
            continue


def main_module(path):
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=path)
    if path is None:
        del module.__dict__["__file__"]
    sys.modules["__main__"] = module
    return module.__dict__


def run_text(text, name, path):
    if isinstance(text, str):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec", dont_inherit=True), main_module(path))


def run_program(arguments):
    """Runs what the arguments (without the interpreter's name) ask for."""
    while arguments and arguments[0] in ("-B", "-E", "-I", "-s", "-S", "-u", "-q"):
        arguments = arguments[1:]
    if not arguments or arguments[0] == "-":
        sys.argv = [*arguments[:1]] or [""]
        sys.argv += arguments[1:]
        sys.path.insert(0, "")
        run_text(sys.stdin.read(), "<stdin>", None)
    elif arguments[0] == "-c" and len(arguments) > 1:
        sys.argv = ["-c", *arguments[2:]]
        sys.path.insert(0, "")
        run_text(arguments[1], "<string>", None)
    elif arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] in ("-V", "--version"):
        print("Python " + sys.version.split()[0])
    elif arguments[0].startswith("-"):
        print(f"unknown option {arguments[0]}", file=sys.stderr)
        raise SystemExit(2)
    else:
        path = arguments[0]
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            print(f"python: can't open file '{path}': {error}", file=sys.stderr)
            raise SystemExit(2) from None
        run_text(text, path, path)


def code_of(exit):
    """The exit code that a SystemExit asks for."""
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    print(exit.code, file=sys.stderr)
    return 1


def guarded(work):
    """Runs `work` as the interpreter would: the exit code."""
    try:
        work()
        return 0
    except SystemExit as exit:
        return code_of(exit)
    except BaseException as error:
        cut_own_frames(error)
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except BaseException:
            traceback.print_exception(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def flush(code):
    """The exit code after everything was written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            code = code or 120
    return code


def run_command(text):
    """Runs a command of a session; the value of an expression at its end is shown as at a prompt."""
    name = "<session>"
    tree = compile(text, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Interactive([tree.body.pop()])
    exec(compile(tree, name, "exec", dont_inherit=True), session)
    if last is not None:
        exec(compile(last, name, "single", dont_inherit=True), session)


# The namespace of the session.
session = None
# Added to the code of a command that ended its session.
SESSION_ENDED = 256


class WitWorld(wit_world.WitWorld):
    def main(self, arguments, environment):
        set_up(environment)
        code = guarded(lambda: run_program(arguments[1:]))
        code = max(code, guarded(atexit._run_exitfuncs))
        return flush(code)

    def session_open(self, environment):
        global session
        set_up(environment)
        sys.argv = [""]
        sys.path.insert(0, "")
        session = main_module(None)

    def session_run(self, command):
        ended = []

        def work():
            try:
                run_command(command.decode())
            except SystemExit:
                ended.append(True)
                raise

        code = guarded(work)
        if ended:
            code = max(code, guarded(atexit._run_exitfuncs))
        return flush(code) | (SESSION_ENDED if ended else 0)


def line_buffered(number, name, errors):
    """A text stream that writes whole lines: what is lost at a deadline is at most one."""
    raw = io.FileIO(number, "w", closefd=False)
    raw.name = name
    text = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, "\n", line_buffering=True)
    text.mode = "w"
    return text


# componentize-py's write every piece by itself, a line in two.
sys.stdout = sys.__stdout__ = line_buffered(1, "<stdout>", "strict")
sys.stderr = sys.__stderr__ = line_buffered(2, "<stderr>", "backslashreplace")

# Nothing that was looked up while the guest was built is there when it runs. (The state of `random` is set
# anew in every instance, by componentize-py.)
sys.path_importer_cache.clear()
importlib.invalidate_caches()
sys.dont_write_bytecode = True
# What is alive now lives for ever: the collector need not look at it, which would touch its pages.
gc.collect()
gc.freeze()
