"""The computer: requests to the HTTP server that runs inside OSWorld's virtual machine (`desktop_env/server/main.py` in its repository)."""

import http.client
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# Of one answer: files that are judged come this way.
MOST_BYTES = 256 << 20
# The server itself ends a command after 120 seconds, and waits for a window for 1800.
COMMAND_SECS, WINDOW_SECS = 150, 1810
# Lies on a computer that somebody has used.
MARK = "/tmp/.spar-used"
# The server is spoken to directly, whatever proxy there is.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class MachineError(RuntimeError):
    """The computer did not do its part."""


class Unreachable(MachineError):
    """Nothing answered, or not in time."""


class Refused(MachineError):
    """The server answered that it did not do what it was asked."""

    def __init__(self, told, status):
        super().__init__(told)
        self.status = status


class Machine:
    """One computer. `retry_secs` are waited before a picture is asked for again, and `wait_secs` at the most until the server answers at all."""

    def __init__(self, address, wait_secs, retry_secs):
        self.address, self.wait_secs, self.retry_secs = address.rstrip("/"), wait_secs, retry_secs

    def ask(self, method, path, data=None, kind="application/json", timeout=60):
        """The bytes of an answer."""
        request = urllib.request.Request(self.address + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", kind)
        try:
            with OPENER.open(request, timeout=timeout) as answer:
                got = answer.read(MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            told = error.read(500).decode(errors="replace")
            raise Refused(f"{method} {path} was answered with {error.code}: {told}", error.code) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"{method} {path}: {error}; is OSWorld's virtual machine up at {self.address} (variable OSWORLD)?"
            ) from error
        if len(got) > MOST_BYTES:
            raise MachineError(f"{method} {path} was answered with more than {MOST_BYTES} bytes")
        return got

    def json(self, method, path, /, timeout=60, **body):
        got = self.ask(method, path, json.dumps(body).encode() if method == "POST" else None, timeout=timeout)
        try:
            return json.loads(got)
        except ValueError as error:
            raise MachineError(f"{method} {path} was answered with what is no JSON: {got[:200]!r}") from error

    def field(self, method, path, name, /, **body):
        """A field of an answer."""
        got = self.json(method, path, **body)
        if not isinstance(got, dict) or name not in got:
            raise MachineError(f"{method} {path} was answered without `{name}`")
        return got[name]

    def wait(self):
        """Waits until the server answers."""
        until = time.monotonic() + self.wait_secs
        while True:
            try:
                return self.platform()
            except Unreachable:
                if time.monotonic() >= until:
                    raise
            time.sleep(min(2.0, self.wait_secs))

    def platform(self):
        """`Linux`, `Windows` or `Darwin`."""
        return self.ask("GET", "/platform").decode(errors="replace").strip()

    def screen_size(self):
        got = self.json("POST", "/screen_size")
        try:
            return int(got["width"]), int(got["height"])
        except (TypeError, KeyError, ValueError) as error:
            raise MachineError(f"POST /screen_size was answered with {got!r}") from error

    def _again(self, look):
        """What only looks can be asked again: the desktop may not be up when the server is."""
        for left in (2, 1, 0):
            try:
                return look()
            except MachineError:
                if not left:
                    raise
            time.sleep(self.retry_secs)

    def screenshot(self):
        """The screen as (type, bytes)."""
        def look():
            picture = self.ask("GET", "/screenshot")
            for kind, start in (("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff")):
                if picture.startswith(start):
                    return kind, picture
            raise MachineError(f"GET /screenshot was answered with what is no picture: {picture[:20]!r}")
        return self._again(look)

    def accessibility(self):
        """The accessibility tree as XML."""
        return self._again(lambda: self.field("GET", "/accessibility", "AT", timeout=180))

    def terminal(self):
        """What stands in the terminal in front; empty where none is."""
        return self._again(lambda: self.field("GET", "/terminal", "output", timeout=180)) or ""

    def execute(self, command, shell=False, path="/execute"):
        """Runs a command to its end: `output`, `error` and `returncode`. Refused where it cannot be started or takes too long."""
        done = self.json("POST", path, timeout=COMMAND_SECS, command=command, shell=shell)
        if not isinstance(done, dict) or not {"output", "error", "returncode"} <= set(done):
            raise MachineError(f"POST {path} was answered with {done!r}")
        return done

    def python(self, code):
        """What a program prints."""
        done = self.execute(["python", "-c", code])
        if done["returncode"]:
            raise MachineError(f"`{code}` failed: {done['error'][-500:]}")
        return done["output"].strip()

    def file(self, path):
        """A file's bytes; None where there is none."""
        form = urllib.parse.urlencode({"file_path": path}).encode()
        try:
            return self.ask("POST", "/file", form, "application/x-www-form-urlencoded", timeout=300)
        except Refused as refused:
            # What is a folder is no file either, and the server fails on it.
            if refused.status in (404, 500):
                return None
            raise

    def upload(self, path, content):
        mark = uuid.uuid4().hex
        name = path.replace("\\", "/").rsplit("/", 1)[-1].replace('"', "_")
        head = (
            f'--{mark}\r\nContent-Disposition: form-data; name="file_path"\r\n\r\n{path}\r\n'
            f'--{mark}\r\nContent-Disposition: form-data; name="file_data"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        form = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        self.ask("POST", "/setup/upload", form, f"multipart/form-data; boundary={mark}", timeout=600)

    def begin(self, revert, reuse):
        """Makes sure that nobody has used the computer since it was started: `revert`, a line of sh on this machine,
        brings it back to where it began. With `reuse` it is taken as it is. What it runs: see `platform`."""
        if revert:
            done = subprocess.run(["sh", "-c", revert], stdin=subprocess.DEVNULL, capture_output=True, timeout=self.wait_secs)
            if done.returncode:
                told = (done.stdout + done.stderr)[-500:].decode(errors="replace")
                raise MachineError(f"`{revert}` (variable OSWORLD_REVERT) exited with {done.returncode}: {told}")
        platform = self.wait()
        if reuse:
            return platform
        if self.file(MARK) is not None:
            raise MachineError(
                "the virtual machine was used before, so an episode would begin with what another has left: "
                + ("the command in OSWORLD_REVERT did not bring it back" if revert else
                   "start it anew, name the command that does in OSWORLD_REVERT, or set OSWORLD_REUSE to yes")
            )
        self.upload(MARK, f"{os.getpid()}\n".encode())
        return platform
