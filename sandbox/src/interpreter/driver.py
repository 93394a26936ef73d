"""Keeps a Python session: a line with a name and a number of bytes on standard input, then so many bytes of code.

Behind the output of each piece, both streams get a mark with the name: E and the exit code, or X where the code ended
the session. The value of a last expression is printed unless it is None.
"""

import ast
import linecache
import os
import sys
import traceback
import types

control = os.fdopen(os.dup(0), "rb")
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
sys.argv = [""]
sys.path.insert(0, "")
module = types.ModuleType("__main__")
sys.modules["__main__"] = module
session = module.__dict__
OWN = "<session>"
# What this program itself is called in tracebacks.
HERE = sys._getframe().f_code.co_filename


def run(text):
    tree = compile(text, OWN, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    linecache.cache[OWN] = (len(text), None, text.splitlines(True), OWN)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Interactive([tree.body.pop()])
    exec(compile(tree, OWN, "exec", dont_inherit=True), session)
    if last is not None:
        exec(compile(last, OWN, "single", dont_inherit=True), session)


def tell(error):
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == HERE:
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


def code_of(end):
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


while True:
    head = control.readline().split()
    if len(head) != 2:
        break
    kind, code = "E", 0
    text = control.read(int(head[1])).decode("utf-8", "replace")
    try:
        run(text)
    except SystemExit as end:
        kind, code = "X", code_of(end)
    except BaseException as error:
        code = 1
        try:
            tell(error)
        except BaseException:
            pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            code = code or 120
    mark = b"\x1e" + kind.encode() + head[0] + b" " + str(code).encode() + b"\x1e"
    for number in (1, 2):
        os.write(number, mark)
    if kind == "X":
        os._exit(code)
