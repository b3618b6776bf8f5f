import assert from "node:assert/strict";
import { test } from "node:test";
import { examplesIn } from "./how-to-settings.ts";

test("finds the examples of configuration files, without manifests and indentation", () => {
  const page = [
    "Add the labels to `agent.yaml`:",
    "   ```yaml\n   labels: { a: b }\n   gateway:\n     image: x\n   ```",
    "Restart it. In `coordinator.yaml`, set:",
    "```yaml\nnames: [a.example]\n```",
    "```yaml\nnamespace: shop\nresources:\n  - name: web\n```",
    "The command has `~/.config/forage/config.yaml`:\n```yaml\nserver: a.example:7600\n```",
    "```sh\nls\n```\n",
  ].join("\n");
  assert.deepEqual(examplesIn(page), [
    { file: "agent.yaml", text: "labels: { a: b }\ngateway:\n  image: x\n" },
    { file: "coordinator.yaml", text: "names: [a.example]\n" },
    { file: "config.yaml", text: "server: a.example:7600\n" },
  ]);
});
