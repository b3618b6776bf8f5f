import assert from "node:assert/strict";
import { test } from "node:test";
import { fencesOf } from "./doc-fences.ts";
import { settingsFiles } from "./doc-settings.ts";

const fileOf = settingsFiles(
  new Map([
    ["agent.yaml", "| `http` | keys |\n| `labels` | map |\n| `http.listen` | text |\n"],
    ["coordinator.yaml", "| `names` | list |\n| `http.listen` | text |\n| `http.tls` | boolean |\n"],
  ]),
);
const found = (page: string) => fencesOf("a.md", page).map(fileOf);

test("finds the configuration file by the keys of an example", () => {
  assert.deepEqual(found("```yaml\nlabels: { a: b }\nhttp:\n  listen: x\n```\n"), ["agent.yaml"]);
  assert.deepEqual(found("In `agent.yaml`:\n```yaml\nhttp: { tls: true }\n```\n"), ["coordinator.yaml"]);
  assert.deepEqual(found("```yaml\n  names: [a.example]\n```\n"), ["coordinator.yaml"]);
  assert.deepEqual(found("```yaml\nserver: a.example:7600\n```\n"), [undefined]);
  assert.deepEqual(found("```sh\nls\n```\n"), [undefined]);
  assert.deepEqual(found("```yaml\nlabels: {}\nresources:\n  - name: web\n```\n"), [undefined]);
});

test("finds it by the text above if both files have the keys", () => {
  const example = "```yaml\nhttp: { listen: a }\n```\n";
  assert.deepEqual(found(`In \`coordinator.yaml\`:\n\n${example}`), ["coordinator.yaml"]);
  assert.deepEqual(found(`In \`/etc/forage/agent.yaml\`:\n\n${example}`), ["agent.yaml"]);
});
