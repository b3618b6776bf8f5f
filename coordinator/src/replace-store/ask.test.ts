import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { ask } from "./ask.ts";

for (const [answer, agrees] of [
  ["y", true],
  ["Yes", true],
  ["", false],
  ["no", false],
  ["yesterday", false],
] as const)
  test(`${agrees ? "accepts" : "declines"} the answer "${answer}" on a terminal`, async () => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough();
    input.write(`${answer}\n`);
    assert.equal(await ask("Replace it?", { yes: false, input, output }), agrees);
    assert.match(String(output.read()), /Replace it\? \[y\/N\]/);
  });

test("requires the flag without a terminal", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  await assert.rejects(
    ask("Replace it?", { yes: false, input, output }),
    /no terminal for the confirmation: repeat the command with --yes/,
  );
  assert.equal(await ask("Replace it?", { yes: true, input, output }), true);
});

test("treats a closed terminal as no", async () => {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  input.end();
  assert.equal(await ask("Replace it?", { yes: false, input, output: new PassThrough() }), false);
});
