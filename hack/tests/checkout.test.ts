import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

// These check the whole checkout, so one run of the tests reports all its faults.
const root = join(import.meta.dirname, "..", "..");
const bin = join(root, "node_modules", ".bin");

// With more checkers, each derives most types again. With rare garbage collections, it takes a third less processor time.
test("the types are correct", () =>
  check(join(bin, "tsc"), ["-p", "tsconfig.json", "--pretty", "false", "--checkers", "2"], { GOGC: "400" }));

test("format and style are correct", () =>
  check(join(bin, "biome"), ["check", "--error-on-warnings", "--colors=off", "."]));

test("imports have the allowed directions", () => check(process.execPath, ["hack/check-imports.ts"]));

test("files that other tests write into the checkout meanwhile are not checked", {
  skip: existsSync(join(root, ".git")) ? false : "there is no repository",
}, async () => {
  const written = ["hack/site/.vitepress/.temp/page.md.js", "dist/agent.mjs", "dist.agent.1/agent.mjs"];
  const args = ["-c", `safe.directory=${root}`, "check-ignore", ...written];
  const { stdout } = await promisify(execFile)("git", args, { cwd: root });
  assert.deepEqual(stdout.trim().split("\n"), written);
});

async function check(
  file: string,
  args: readonly string[],
  extraEnv: Readonly<Record<string, string>> = {},
): Promise<void> {
  const env = { ...process.env, ...extraEnv };
  await promisify(execFile)(file, args, { cwd: root, env, maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: unknown) => {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error(`${stdout}${stderr}`.split("\n").slice(0, 60).join("\n"));
    },
  );
}
