# Runs tests whose program is elsewhere. A call that was not answered yet ends a run; once it is, the test runs again from
# its start, and is given the answers that it has had.
import sys as _sys
import types as _types

_module = _types.ModuleType("spar_judge")
_sys.modules["spar_judge"] = _module
exec(
    compile(
        r'''
import ast, builtins, importlib, json, random, sys

MAX_DEPTH = 100
tests = None


class Ask(BaseException):
    pass


class Unrepeatable(BaseException):
    pass


class Run:
    """A test that runs: what it was told so far, and where it is."""

    def __init__(self):
        self.answers, self.place, self.asked = [], 0, None
        self.passed = self.failed = 0

    def ask(self, request):
        if self.asked is not None:
            raise Ask
        key = json.dumps(request)
        if self.place == len(self.answers):
            self.asked = request
            raise Ask
        known, told = self.answers[self.place]
        if known != key:
            raise Unrepeatable
        self.place += 1
        if "raised" in told:
            kind = getattr(builtins, told["raised"], None)
            is_error = isinstance(kind, type) and issubclass(kind, Exception)
            try:
                error = kind(told["text"]) if is_error else RuntimeError(told["text"])
            except Exception:
                error = RuntimeError(told["text"])
            # Of the program, whatever it is called: the tests themselves are not to blame.
            error.of_program = True
            raise error
        return told


run = Run()


def encode(value, depth=0):
    if depth > MAX_DEPTH:
        raise ValueError("it is too deep to be carried")
    of = lambda items: [encode(item, depth + 1) for item in items]
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Remote):
        return object.__getattribute__(value, "_target")
    if isinstance(value, int):
        return {"i": format(int(value), "x")}
    if isinstance(value, float):
        return {"f": repr(float(value))}
    if isinstance(value, complex):
        return {"c": [repr(value.real), repr(value.imag)]}
    if isinstance(value, str):
        return {"s": str(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"b" if isinstance(value, bytes) else "B": bytes(value).hex()}
    for kind, mark in ((list, "l"), (tuple, "t"), (frozenset, "F"), (set, "S")):
        if isinstance(value, kind):
            return {mark: of(value)}
    if isinstance(value, dict):
        return {"d": [of(item) for item in value.items()]}
    if isinstance(value, range):
        return {"r": [value.start, value.stop, value.step]}
    if hasattr(type(value), "__next__"):
        return {"I": of(value)}
    raise TypeError(f"a {type(value).__name__} cannot be carried to the program")


def decode(coded, depth=0):
    if depth > MAX_DEPTH:
        raise ValueError("it is too deep to be carried")
    if coded is None or coded is True or coded is False:
        return coded
    (kind, held), = coded.items()
    of = lambda items: [decode(item, depth + 1) for item in items]
    match kind:
        case "i": return int(held, 16)
        case "f": return float(held)
        case "c": return complex(float(held[0]), float(held[1]))
        case "s": return held
        case "b": return bytes.fromhex(held)
        case "B": return bytearray.fromhex(held)
        case "l": return of(held)
        case "t": return tuple(of(held))
        case "F": return frozenset(of(held))
        case "S": return set(of(held))
        case "d": return {decode(key, depth + 1): decode(value, depth + 1) for key, value in held}
        case "r": return range(*held)
        case "I": return iter(of(held))
        case "o": return Remote({"o": held})
    raise ValueError(kind)


def no(what):
    def refuse(self, *_):
        raise TypeError(f"an object of the program cannot {what}")
    return refuse


class Remote:
    """A name or an object of the program. It is equal to itself alone, and neither true nor false: what the program's own
    objects say of themselves decides nothing."""

    __slots__ = ("_target",)

    def __init__(self, target):
        object.__setattr__(self, "_target", target)

    def __call__(self, *arguments, **keywords):
        target = object.__getattribute__(self, "_target")
        request = {"op": "call", "target": target, "arguments": [encode(item) for item in arguments]}
        if keywords:
            request["keywords"] = {key: encode(item) for key, item in keywords.items()}
        told = run.ask(request)
        for item, after in zip(arguments, told.get("after") or []):
            if after is None:
                continue
            after = decode(after)
            if isinstance(item, (list, bytearray)) and type(after) is type(item):
                item[:] = after
            elif isinstance(item, (dict, set)) and isinstance(after, (dict, set)):
                item.clear()
                item.update(after)
        return decode(told["value"])

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        target = object.__getattribute__(self, "_target")
        return decode(run.ask({"op": "get", "target": target, "name": name})["value"])

    def __setattr__(self, name, value):
        target = object.__getattribute__(self, "_target")
        run.ask({"op": "set", "target": target, "name": name, "value": encode(value)})

    def __eq__(self, other):
        mine = object.__getattribute__(self, "_target")
        return isinstance(other, Remote) and object.__getattribute__(other, "_target") == mine

    def __hash__(self):
        return hash(json.dumps(object.__getattribute__(self, "_target")))

    __bool__, __len__, __iter__, __contains__ = no("be true or false"), no("have a length"), no("be gone through"), no("hold things")
    __lt__ = __le__ = __gt__ = __ge__ = no("be compared")


class Counted(ast.NodeTransformer):
    """Has every assert counted, and the code behind one that fails go on."""

    def visit_Assert(self, node):
        call = lambda name: [ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))]
        handler = ast.ExceptHandler(ast.Name("__spar_error__", ast.Load()), None, call("__spar_failed__"))
        counted = ast.Try([node], [handler], call("__spar_passed__"), [])
        return ast.fix_missing_locations(ast.copy_location(counted, node))


def names_of(tree):
    used, own = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            own.update((name.asname or name.name).split(".")[0] for name in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            own.add(node.name)
    return used - own


def begin():
    global tests
    with open("/tmp/spar/tests.json", encoding="utf-8") as file:
        tests = json.loads(file.read())


def play(number):
    setup, test, entry = tests["setup"], tests["tests"][number], tests["entry_point"]
    trees = [ast.parse(setup, "<setup>"), Counted().visit(ast.parse(test, "<tests>"))]
    space = {"__name__": "tests", "__builtins__": builtins}
    for name in sorted(names_of(ast.Module(trees[0].body + trees[1].body, []))):
        if name in sys.stdlib_module_names:
            space[name] = importlib.import_module(name)
        elif not hasattr(builtins, name) and not name.startswith("__spar_"):
            space[name] = Remote({"n": name})
    def passed():
        run.passed += 1
    def failed():
        run.failed += 1
    space.update(__spar_passed__=passed, __spar_failed__=failed, __spar_error__=Exception)
    run.place = run.passed = run.failed = 0
    run.asked = None
    random.seed(0)
    exec(compile(trees[0], "<setup>", "exec"), space)
    if entry is not None:
        space[entry] = Remote({"n": entry})
    exec(compile(trees[1], "<tests>", "exec"), space)
    if entry is not None:
        space["check"](space[entry])


def step():
    """Runs test `number`, with one more answer where there is one."""
    global run
    with open("/tmp/spar/asked.json", encoding="utf-8") as file:
        order = json.loads(file.read())
    if order["answer"] is None:
        run = Run()
    else:
        run.answers.append((json.dumps(run.asked), order["answer"]))
    error = broken = None
    try:
        play(order["test"])
    except (Ask, Unrepeatable) as stop:
        if isinstance(stop, Unrepeatable):
            broken = "it asks for something else when it runs again"
    except BaseException as cause:
        error = f"{type(cause).__name__}: {cause}"[:1000]
        if isinstance(cause, (ImportError, SyntaxError)) and not hasattr(cause, "of_program"):
            broken = error
    told = {"number": order["number"]}
    if broken is not None:
        told["broken"] = broken
    elif run.asked is not None:
        told["ask"] = run.asked
    else:
        told.update(passed=run.passed, failed=run.failed, error=error)
    with open("/tmp/spar/told.json", "w", encoding="utf-8") as file:
        file.write(json.dumps(told))
''',
        "<spar_judge>",
        "exec",
    ),
    _module.__dict__,
)
_module.begin()
