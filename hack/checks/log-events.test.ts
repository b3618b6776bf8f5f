import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

// A call with its arguments, whose parentheses may be nested two deep.
const LOG_CALL = /\blog\??\.(?:debug|info|warn|error|fatal)\(\s*((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)/g;

test("every entry of the daemons' logs is an event with fields, without prose", () => {
  const root = join(import.meta.dirname, "..", "..");
  const wrong = globSync("{agent,coordinator}/src/**/*.ts", { cwd: root })
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((path) => {
      const source = readFileSync(join(root, path), "utf8");
      return [...source.matchAll(LOG_CALL)]
        .filter(([, call = ""]) => !isEntry(call))
        .map(([call]) => `${path}: ${call.replaceAll(/\s+/g, " ").slice(0, 120)}`);
    });
  assert.deepEqual(wrong, []);
});

/** Reports whether a call has one argument, which names its event. A variable may hold the name. */
function isEntry(call: string): boolean {
  const text = call.trim().replace(/,$/, "");
  const name = /^\{\s*(?:\.\.\.[^,]+,\s*)*event(?:: (?:"([^"]*)"|[^",}]+))?[,\s}]/.exec(text);
  // A variable may hold the whole entry.
  if (/^[a-z]\w*$/i.test(text)) return true;
  return name !== null && text.endsWith("}") && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name[1] ?? "held");
}
