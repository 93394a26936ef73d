"""The Python guest: `python -c CODE ARGS`, `python -m MODULE ARGS`, `python FILE ARGS`, or a program on stdin.

This module is run once when the guest is built, which imports the standard library; its state is part of
the guest. `Run.run` is what every instance does.
"""

import atexit
import builtins
import gc
import importlib
import io
import linecache
import os
import pkgutil
import random
import runpy
import sys
import traceback
import types

from wit_world import exports
from wit_world.imports import environment, exit as wasi_exit

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


def set_up():
    variables = environment.get_environment()
    os.environ.clear()
    for name, value in variables:
        os.environ[name] = value
    for folder in (os.environ.get("PWD"), "/"):
        try:
            os.chdir(folder)
            break
        except (OSError, TypeError):
            continue
    # The state from build time would be the same in every instance.
    random.seed()
    importlib.invalidate_caches()
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = True


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


class Run(exports.Run):
    def run(self):
        set_up()
        arguments = environment.get_arguments()[1:]
        code = guarded(lambda: run_program(arguments))
        code = max(code, guarded(atexit._run_exitfuncs))
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                code = code or 120
        if code != 0:
            wasi_exit.exit_with_code(code)


# What is alive now lives for ever: the collector need not look at it, which would touch its pages.
gc.collect()
gc.freeze()
