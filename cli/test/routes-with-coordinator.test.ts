import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { RealCoordinator } from "./real-coordinator.ts";
import { type Result, type RunOptions, runCommand } from "./run-command.ts";

const root = join(import.meta.dirname, "../..");
const coordinator = new RealCoordinator();
const LIMIT = { timeout: 120_000 };
const forage = (line: string, options: RunOptions = {}): Promise<Result> =>
  runCommand(line.split(" "), { ...options, env: { ...coordinator.env, ...options.env } });

before(() => coordinator.start());
after(() => coordinator.close());

test("applies the example with routes as documented", LIMIT, async () => {
  const manifest = readFileSync(join(root, "examples/routes.yaml"), "utf8");
  const { stderr } = await forage("apply -f -", { stdin: manifest });
  assert.match(stderr, /^route\/shop: done: GatewayNotFound: no node is gateway "default"/m, stderr);
  const { stdout } = await forage("route ls -n routes");
  assert.match(stdout, /^service\/next +next\.shop\.example\.com .* GatewayNotFound /m);
  assert.match(stdout, /^route\/shop +shop\.example\.com .* GatewayNotFound /m);
  const described = await forage("describe route/shop -n routes");
  assert.match(described.stdout, /^ *ResolvedRefs +yes /m);
  assert.match(described.stdout, /^ *shop\.example\.com +- +4\/4$/m);
});

test("applies the manifest of the reference, and reports what is missing", LIMIT, async () => {
  const reference = readFileSync(join(root, "docs/reference/routes.md"), "utf8");
  const [, manifest = ""] = /^```yaml\n([\s\S]*?)^```/m.exec(reference) ?? [];
  const { stderr } = await forage("apply -f -", { stdin: manifest });
  assert.match(stderr, /^route\/front: done: .*there is no service "web".*; CertificateNotFound: /m, stderr);
});

test("the coordinator accepts every manifest of the how-tos", LIMIT, async () => {
  const pages = globSync("docs/how-to/*.md", { cwd: root });
  const manifests = pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/^( *)```yaml\n([\s\S]*?)^ *```/gm)]
      .map(([, indent = "", text = ""]) => ({
        page,
        text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      }))
      .filter(({ text }) => /^resources:$/m.test(text)),
  );
  assert.ok(manifests.length >= 2, "manifests are found");
  for (const { page, text } of manifests) {
    const { exitCode, stderr } = await forage("plan -f -", { stdin: text });
    assert.equal(exitCode, 1, `${page}: ${stderr}`);
  }
});
