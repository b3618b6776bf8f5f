import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { joinTask, readToken } from "./join-task.ts";

const line = { words: ["join", "10.0.0.1:7600"], tokenFile: undefined, epoch: undefined, newStore: false };

test("accepts an address with join, and reads the token from standard input or a file", () => {
  assert.deepEqual(joinTask(line), { address: "10.0.0.1:7600", tokenFile: undefined });
  assert.deepEqual(joinTask({ ...line, tokenFile: "-" }), { address: "10.0.0.1:7600", tokenFile: undefined });
  assert.deepEqual(joinTask({ ...line, words: ["join", "[::1]:7600"], tokenFile: "/t" }), {
    address: "[::1]:7600",
    tokenFile: "/t",
  });
  assert.equal(joinTask({ ...line, words: [] }), undefined);
});

test("refuses a token on the command line, an invalid address, and flags of other tasks", () => {
  assert.throws(
    () => joinTask({ ...line, words: ["join", "10.0.0.1:7600", "FCT1.x"] }),
    /the token comes from standard input or --token-file/,
  );
  for (const address of ["", "10.0.0.1", "a b:1", ":7600"])
    assert.throws(() => joinTask({ ...line, words: ["join", address] }), /join needs HOST:PORT/, address);
  assert.throws(() => joinTask({ ...line, newStore: true }), /neither --epoch nor --new-store/);
  assert.throws(
    () => joinTask({ ...line, words: ["verify"], tokenFile: "/t" }),
    /--token-file is only for join/,
  );
});

test("requires the token to be one line of limited length", async () => {
  assert.equal(await readToken(undefined, Readable.from(["FCT1", ".x\n", "more"])), "FCT1.x");
  await assert.rejects(readToken(undefined, Readable.from(["\n"])), /standard input: holds no token/);
  await assert.rejects(readToken(undefined, Readable.from(["x".repeat(2_000)])), /too long for a token/);
  await assert.rejects(readToken("/nonexistent", Readable.from([])), /--token-file: \/nonexistent/);
});
