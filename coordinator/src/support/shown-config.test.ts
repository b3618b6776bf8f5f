import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { CONFIG_SCHEMA } from "../config.ts";
import { CONFIG_MARKS, shownConfig } from "./shown-config.ts";

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

test("marks every setting of coordinator.yaml as shown or removed", () => {
  const schema = z.toJSONSchema(CONFIG_SCHEMA, { io: "input", unrepresentable: "any" });
  assert.deepEqual(unmarked(schema as JsonSchema, CONFIG_MARKS, ""), []);
  const { nodes: _, ...lacking } = CONFIG_MARKS;
  const { email: _email, ...acme } = CONFIG_MARKS.certificates.acme as Readonly<Record<string, unknown>>;
  const changed = { ...lacking, certificates: { ...CONFIG_MARKS.certificates, acme } };
  assert.deepEqual(unmarked(schema as JsonSchema, changed, ""), ["certificates.acme.email", "nodes"]);
});

test("shows a configuration without arguments of workspaces and paths of webhooks", () => {
  const config = CONFIG_SCHEMA.parse({
    dataDir: "/var/lib/forage",
    workspaces: { args: ["--password=canary"] },
    notifications: [
      { name: "ops", url: "https://hooks.example/canary?key=canary", secretFile: "/etc/forage/hook" },
    ],
  });
  const shown = JSON.stringify(shownConfig(config));
  assert.doesNotMatch(shown, /canary/);
  assert.match(shown, /"url":"https:\/\/hooks\.example"/);
  assert.match(shown, /"secretFile":"\/etc\/forage\/hook"/);
  assert.match(shown, /"args":"1 left out"/);
});

/**
 * Returns the paths of settings without a mark. A group needs marks for each setting, so that a new
 * setting has none.
 */
function unmarked(schema: JsonSchema, marks: unknown, path: string): string[] {
  if (schema.items !== undefined) return unmarked(schema.items, marks, path);
  if (schema.properties === undefined) return typeof marks === "string" ? [] : [path];
  if (typeof marks !== "object" || marks === null) return [path];
  const byKey = new Map<string, unknown>(Object.entries(marks));
  return Object.entries(schema.properties).flatMap(([key, inner]) =>
    unmarked(inner, byKey.get(key), path === "" ? key : `${path}.${key}`),
  );
}
