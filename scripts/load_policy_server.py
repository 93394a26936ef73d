#!/usr/bin/env python3
"""Load `spar serve policy`: many streaming clients, random cancels, weight swaps.

    spar serve policy CHECKPOINTS/1 --port 8000 --weights-root CHECKPOINTS &
    scripts/load_policy_server.py --url http://127.0.0.1:8000 --pid $! --weights 2 3 1

Needs Python alone. Every client asks, reads its stream to the end or hangs up in the middle, and asks again. Of
every answer it checks that the stream is whole, and that the versions of its tokens never fall, are none
that was replaced before the request, and none that was never published. Prints progress, and at the end
errors, tokens per second, the memory of the server over time, and what it still holds; exits with 1 when
something was wrong.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from urllib.parse import urlsplit

WORDS = "You see a door box lamp desk open close look at the and go to north south east west".split()


class Load:
    def __init__(self, arguments):
        self.arguments = arguments
        url = urlsplit(arguments.url)
        self.host, self.port = url.hostname, url.port
        self.end = time.monotonic() + arguments.seconds
        self.counts = {"finished": 0, "cancelled": 0, "refused": 0, "tokens": 0, "mixed": 0}
        self.errors = []
        # The least and the greatest version that a token may carry now.
        self.least = self.greatest = 0
        self.rss = []

    async def request(self, method, path, body=None):
        """The connection's streams and the status of an answer whose head was read."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        text = json.dumps(body).encode() if body is not None else b""
        key = f"authorization: Bearer {self.arguments.api_key}\r\n" if self.arguments.api_key else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\nconnection: close\r\n{key}"
            f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
        )
        writer.write(head.encode() + text)
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        while (await reader.readline()) not in (b"\r\n", b""):
            pass
        return reader, writer, status

    async def whole(self, method, path, body=None):
        reader, writer, status = await self.request(method, path, body)
        text = await reader.read()
        writer.close()
        return status, text.decode()

    async def client(self, number):
        rng = random.Random(number)
        while time.monotonic() < self.end:
            try:
                await self.ask(rng)
            except Exception as error:  # Whatever it is, it is counted.
                self.errors.append(f"client {number}: {type(error).__name__}: {error}")
                await asyncio.sleep(1)

    async def ask(self, rng):
        tokens = rng.randint(8, self.arguments.max_tokens)
        shared = " ".join(WORDS[:6]) if rng.random() < 0.5 else ""
        prompt = f"{shared} {' '.join(rng.choices(WORDS, k=rng.randint(4, 60)))}"
        body = {
            "prompt": prompt, "max_tokens": tokens, "stream": True, "ignore_eos": True,
            "return_token_ids": True, "temperature": 0.9,
        }
        leave_at = rng.randint(1, tokens) if rng.random() < self.arguments.cancel else None
        least = self.least
        reader, writer, status = await self.request("POST", "/v1/completions", body)
        try:
            if status == 429:
                self.counts["refused"] += 1
                await reader.read()
                await asyncio.sleep(rng.uniform(0.5, 1.5))
                return
            assert status == 200, f"status {status}: {await reader.read()}"
            versions, is_whole = [], False
            while line := await reader.readline():
                if not line.startswith(b"data: "):
                    continue
                data = line[6:].strip()
                if data == b"[DONE]":
                    is_whole = True
                    break
                event = json.loads(data)
                assert "error" not in event, event["error"]
                for choice in event["choices"]:
                    versions += choice.get("policy_versions") or []
                if leave_at is not None and len(versions) >= leave_at:
                    self.counts["cancelled"] += 1
                    return
            assert is_whole, "the stream broke off"
            assert len(versions) == tokens, f"{len(versions)} tokens of {tokens}"
            assert versions == sorted(versions), f"versions fall: {versions}"
            assert least <= versions[0] and versions[-1] <= self.greatest, (
                f"versions {versions[0]} to {versions[-1]}, allowed were {least} to {self.greatest}"
            )
            self.counts["mixed"] += versions[0] != versions[-1]
            self.counts["finished"] += 1
        finally:
            self.counts["tokens"] += len(versions) if status == 200 else 0
            writer.close()

    async def swap(self):
        swaps = self.arguments.weights
        for place, path in enumerate(swaps):
            await asyncio.sleep(self.arguments.seconds / (len(swaps) + 1))
            # From the request on, tokens may carry the next version; from the answer on, no
            # request begins with an older one.
            self.greatest += 1
            status, text = await self.whole("POST", "/weights", {"path": path})
            if status != 200:
                self.errors.append(f"swap to {path}: {text}")
                continue
            version = json.loads(text[text.index("{"): text.rindex("}") + 1])["version"]
            if version != self.greatest:
                self.errors.append(f"swap {place} became version {version}, not {self.greatest}")
            self.least = version
            print(f"weights {path} are version {version}", flush=True)

    def memory(self):
        if self.arguments.pid is None:
            return None
        with open(f"/proc/{self.arguments.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    async def watch(self):
        start, last = time.monotonic(), 0
        while time.monotonic() < self.end:
            await asyncio.sleep(self.arguments.every)
            rss, tokens = self.memory(), self.counts["tokens"]
            self.rss.append(rss)
            rate = (tokens - last) / self.arguments.every
            last = tokens
            memory = "" if rss is None else f", {rss:.0f} MiB"
            print(f"{time.monotonic() - start:5.0f} s: {rate:7.0f} tokens/s{memory}, {self.counts}", flush=True)

    async def metrics(self):
        _, text = await self.whole("GET", "/metrics")
        lines = (line.split(" ") for line in text.splitlines() if line.startswith("spar_"))
        return {name: float(value) for name, value in lines}

    async def run(self):
        start = time.monotonic()
        clients = [self.client(number) for number in range(self.arguments.clients)]
        await asyncio.gather(self.swap(), self.watch(), *clients)
        seconds = time.monotonic() - start
        for _ in range(100):
            left = await self.metrics()
            if left["spar_requests_running"] + left["spar_requests_waiting"] == 0:
                break
            await asyncio.sleep(0.2)
        print(f"\n{self.arguments.clients} clients, {seconds:.0f} s, {self.counts['tokens'] / seconds:.0f} tokens/s")
        print(json.dumps(self.counts))
        names = ["spar_requests_running", "spar_requests_waiting", "spar_kv_memory_used_bytes",
                 "spar_kv_memory_prefix_bytes", "spar_requests_cancelled_total", "spar_requests_interrupted_total",
                 "spar_prompt_tokens_total", "spar_prompt_tokens_cached_total"]
        print("the server at the end: " + ", ".join(f"{name[5:]} {left[name]:.0f}" for name in names))
        print(f"mean batch {left['spar_step_sequences_total'] / max(left['spar_steps_total'], 1):.1f}")
        for name in names[:3]:
            if left[name] != 0:
                self.errors.append(f"{name} is {left[name]} though nothing runs")
        rss = [value for value in self.rss if value is not None]
        if len(rss) >= 8:
            quarter = len(rss) // 4
            early, late = (sum(part) / len(part) for part in (rss[quarter:2 * quarter], rss[-quarter:]))
            print(f"memory {early:.0f} MiB in the second quarter, {late:.0f} MiB in the last")
            if late > 1.1 * early + 8:
                self.errors.append("memory grows")
        for error in self.errors[:20]:
            print(f"error: {error}")
        print(f"{len(self.errors)} errors")
        return 1 if self.errors else 0


def main():
    parser = argparse.ArgumentParser(description="Load a policy server.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--api-key")
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--cancel", type=float, default=0.25, help="share of answers that are left")
    parser.add_argument("--weights", nargs="*", default=[], help="folders to swap to, evenly in time")
    parser.add_argument("--pid", type=int, help="the server's process, to watch its memory")
    parser.add_argument("--every", type=float, default=10, help="seconds between lines")
    sys.exit(asyncio.run(Load(parser.parse_args()).run()))


if __name__ == "__main__":
    main()
