// Keeps a JavaScript session: a line with a name and a number of bytes on standard input, then so many bytes of code.
//
// Behind the output of each piece, both streams get a mark with the name: E and the exit code, or X where the code ended
// the session. The value of a last expression is printed unless it is undefined; a promise is waited for.
"use strict";
const vm = require("node:vm");
globalThis.require = require;
let buffered = Buffer.alloc(0);
let busy = false;

function mark(kind, name, code) {
  const text = `\x1e${kind}${name} ${code}\x1e`;
  process.stdout.write(text);
  process.stderr.write(text);
}

async function run(name, text) {
  let code = 0;
  const onExit = (status) => mark("X", name, status & 255);
  process.once("exit", onExit);
  try {
    const value = await vm.runInThisContext(text, { filename: "<session>" });
    if (value !== undefined) console.log(value);
  } catch (error) {
    code = 1;
    console.error(error instanceof Error ? error.stack.split("\n    at Script.runInThisContext")[0] : `Uncaught ${String(error)}`);
  }
  process.removeListener("exit", onExit);
  mark("E", name, code);
}

async function go() {
  if (busy) return;
  busy = true;
  for (;;) {
    const end = buffered.indexOf(10);
    if (end < 0) break;
    const [name, size] = buffered.toString("utf8", 0, end).split(" ");
    const from = end + 1;
    const to = from + Number(size);
    if (buffered.length < to) break;
    const text = buffered.toString("utf8", from, to);
    buffered = buffered.subarray(to);
    await run(name, text);
  }
  busy = false;
}

process.stdin.on("data", (bytes) => {
  buffered = Buffer.concat([buffered, bytes]);
  go();
});
process.stdin.on("end", () => process.exit(0));
