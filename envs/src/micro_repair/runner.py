import io, json, sys


def run():
    given, out, dumps = json.loads(sys.argv.pop()), sys.stdout, json.dumps

    class Nowhere(io.TextIOBase):
        def write(self, text):
            return len(text)

    sys.stdout = sys.stderr = Nowhere()
    names, broken = {"__name__": "program"}, None
    try:
        exec(compile(given["program"], "program", "exec", dont_inherit=True), names)
    except BaseException as error:
        broken = type(error).__name__
    for arguments in given["arguments"]:
        try:
            if broken:
                told = {"raises": broken}
            else:
                told = {"value": names[given["function"]](*arguments)}
            line = dumps(told)
        except BaseException as error:
            line = dumps({"raises": type(error).__name__})
        out.write(line + "\n")
        out.flush()


run()
