import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { InputStream, OutputStream } from "../world.ts";
import { Terminal } from "./terminal.ts";

function aTerminal(raw: boolean) {
  const modes: boolean[] = [];
  const stdin = Object.assign(new PassThrough(), {
    setRawMode: (mode: boolean) => modes.push(mode),
  }) as InputStream;
  const stdout = Object.assign(new PassThrough(), { columns: 80, rows: 24 }) as OutputStream;
  return { terminal: new Terminal({ stdin, stdout }, { raw }), modes, stdout };
}

test("sets raw mode, and restores the terminal once", () => {
  const { terminal, modes } = aTerminal(true);
  assert.deepEqual(modes, [true]);
  terminal.close();
  terminal.close();
  assert.deepEqual(modes, [true, false]);
});

test("does not change a terminal on which only output is drawn", () => {
  const { terminal, modes } = aTerminal(false);
  terminal.close();
  assert.deepEqual(modes, []);
});

test("reports its size, and its changes until it is closed", () => {
  const { terminal, stdout } = aTerminal(false);
  const sizes: unknown[] = [];
  assert.deepEqual(terminal.size(), { columns: 80, rows: 24 });
  terminal.onResize((size) => sizes.push(size));
  Object.assign(stdout, { columns: 100 });
  stdout.emit("resize");
  terminal.close();
  stdout.emit("resize");
  Object.assign(stdout, { columns: 0, rows: 0 });
  assert.equal(terminal.size(), undefined);
  assert.deepEqual(sizes, [{ columns: 100, rows: 24 }]);
  assert.equal(stdout.listenerCount("resize"), 0);
});
