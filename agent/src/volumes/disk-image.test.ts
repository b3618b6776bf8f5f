import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { canUseImages } from "./disk-image.ts";
import { Mounts } from "./mounts.ts";
import { ChildRunner } from "./run-child.ts";

const signal = AbortSignal.timeout(60_000);

test("tests loop devices with a file of one block, and removes the device and the file", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "forage-images-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const sizes: number[] = [];
  const detached: (string | undefined)[] = [];
  const children = new (class extends ChildRunner {
    override async run(_: string, args: readonly string[]) {
      if (args.includes("--find")) sizes.push(statSync(args.at(-1) ?? "").size);
      if (args.includes("--detach")) detached.push(args.at(-1));
      return { exitCode: 0, stdout: "/dev/loop4000\n", stderr: "" };
    }
  })();
  assert.equal(await canUseImages(directory, { children, mounts: new Mounts(children) }, signal), true);
  assert.deepEqual(sizes, [4096]);
  assert.deepEqual(detached, ["/dev/loop4000"]);
  assert.deepEqual(readdirSync(directory), []);
});
