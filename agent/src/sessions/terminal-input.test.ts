import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { spawn } from "@lydell/node-pty";
import { until } from "../../test/until.ts";
import { TerminalInputs } from "./terminal-input.ts";

/** Starts a script in a terminal whose other end this process holds, as a shim does for its container. */
function startInTerminal(t: TestContext, script: string) {
  const terminal = spawn("sh", ["-c", script], { cols: 80, rows: 24 });
  let output = "";
  terminal.onData((data) => {
    output += data;
  });
  t.after(() => terminal.kill("SIGKILL"));
  const shows = (text: string) => until(`the output contains ${text}`, () => output.includes(text));
  return { pid: terminal.pid, shows };
}

test("writes to the terminal of a program, changes its size, and sends its signals", async (t) => {
  // Must not be mistaken for the terminal of the tested program.
  startInTerminal(t, "exec sleep 100");
  const script =
    "trap 'echo interrupted' INT; echo ready; while :; do read line && echo got $line && stty size; done";
  const { pid, shows } = startInTerminal(t, script);
  startInTerminal(t, "exec sleep 100");
  await shows("ready");
  const input = await new TerminalInputs().open(pid);
  input.resize(101, 33);
  input.resize(0, 70_000);
  await input.write(Buffer.from("one\n"));
  await shows("got one\r\n33 101");
  await input.write(Buffer.from("\x03"));
  await shows("interrupted");
  input.close();
  const again = await new TerminalInputs().open(pid);
  await again.write(Buffer.from("two\n"));
  await shows("got two");
  again.close();
  await assert.rejects(again.write(Buffer.from("three\n")), /the terminal is closed/);
});

test("waits with more input until the terminal accepts it, and ends the wait with the session", async (t) => {
  const { pid, shows } = startInTerminal(t, "stty raw -echo; echo ready; exec sleep 100");
  await shows("ready");
  const input = await new TerminalInputs().open(pid);
  const write = input.write(Buffer.alloc(1_000_000, "x"));
  const later = setImmediate(() => input.close());
  await assert.rejects(write, /the terminal is closed/);
  clearImmediate(later);
});

test("rejects if no input can be passed on", async (t) => {
  const { pid, shows } = startInTerminal(t, "echo ready; exec sleep 100");
  await shows("ready");
  await assert.rejects(new TerminalInputs("/no/such/perl").open(pid), /needs perl, which this node lacks/);
  // The parent of this process holds no terminal of this process.
  await assert.rejects(
    new TerminalInputs().open(process.pid),
    /keeps the other end of its terminal to itself/,
  );
});
