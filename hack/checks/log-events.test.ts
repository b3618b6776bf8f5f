import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

// A call with its arguments, as far as these nest parentheses two deep.
const LOG_CALL = /\blog\??\.(?:info|warn|error|fatal)\(\s*((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)/g;

test("every log line of the daemons has a fixed kebab-case event", () => {
  const root = join(import.meta.dirname, "..", "..");
  const unnamed = globSync("{agent,coordinator}/src/**/*.ts", { cwd: root })
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((path) => {
      const source = readFileSync(join(root, path), "utf8");
      return [...source.matchAll(LOG_CALL)]
        .filter(([, call = ""]) => !isNamed(call))
        .map(([call]) => `${path}: ${call.replaceAll(/\s+/g, " ").slice(0, 120)}`);
    });
  assert.deepEqual(unnamed, []);
});

/** Reports whether a call has an `event`, or an event in place of the message. A variable may hold one. */
function isNamed(call: string): boolean {
  if (/\bevent\b/.test(call)) return true;
  const strings = [...call.matchAll(/"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)];
  const last = strings.at(-1);
  return last === undefined || /^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(last[1] ?? "");
}
