import assert from "node:assert/strict";
import { test } from "node:test";
import type { Config } from "../config.ts";
import { SETTINGS } from "../settings.ts";
import { CONFIG_MARKS, configText } from "./shown-config.ts";

test("every setting of agent.yaml is marked as shown or left out", () => {
  assert.deepEqual(unmarked(CONFIG_MARKS), []);
  const { podAccess: _, ...lacking } = CONFIG_MARKS;
  assert.deepEqual(unmarked(lacking), ["podAccess.metadata", "podAccess.host", "podAccess.hostPorts"]);
});

test("a value without a mark is left out of the shown configuration", () => {
  const text = configText({ dataDir: "/data", added: "canary" } as unknown as Config);
  assert.deepEqual(JSON.parse(text), { dataDir: "/data", added: "[left out]" });
});

/**
 * Returns the settings without a mark. In the configuration, quantities are numbers of bytes, and their names end
 * accordingly.
 */
function unmarked(marks: object): string[] {
  return SETTINGS.map(({ path }) => path).filter(
    (path) => markAt(marks, path) === undefined && markAt(marks, `${path}Bytes`) === undefined,
  );
}

function markAt(marks: object, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (group, key) =>
        typeof group === "object" && group !== null
          ? Object.entries(group).find(([name]) => name === key)?.[1]
          : undefined,
      marks,
    );
}
