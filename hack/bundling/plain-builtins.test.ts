import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { bundlePrograms } from "./bundle-programs.ts";

const LOADS_FETCH = `console.log(process.moduleLoadList.some((it) => it.includes("deps/undici")));`;

test("a bundle that imports node:http doesn't load fetch", async (t) => {
  const bundle = await bundled(
    t,
    `import http, { createServer } from "node:http";
     import * as all from "http";
     console.log(typeof createServer, all.createServer === http.createServer);
     ${LOADS_FETCH}`,
  );
  const output = execFileSync(process.execPath, [bundle], { encoding: "utf8" });
  assert.equal(output, "function true\nfalse\n");
});

test("a bundle that imports a property of node:http that loads fetch is refused", async (t) => {
  const source = `import { WebSocket } from "node:http"; console.log(WebSocket);`;
  await assert.rejects(bundled(t, source), /No matching export .* for import "WebSocket"/);
});

async function bundled(t: TestContext, source: string): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "forage-bundle-"));
  t.after(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, "main.ts"), source);
  await bundlePrograms({ root, outDir: join(root, "dist"), programs: { one: "main.ts" } });
  return join(root, "dist", "one.mjs");
}
