import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { CONFIG_SCHEMA } from "../config.ts";
import { CONFIG_MARKS, shownConfig } from "./shown-config.ts";

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

test("every setting of coordinator.yaml is marked as shown or left out", () => {
  const schema = z.toJSONSchema(CONFIG_SCHEMA, { io: "input", unrepresentable: "any" });
  assert.deepEqual(unmarked(schema as JsonSchema, CONFIG_MARKS, ""), []);
  const { nodes: _, ...lacking } = CONFIG_MARKS;
  const { email: _email, ...acme } = CONFIG_MARKS.certificates.acme as Readonly<Record<string, unknown>>;
  const changed = { ...lacking, certificates: { ...CONFIG_MARKS.certificates, acme } };
  assert.deepEqual(unmarked(schema as JsonSchema, changed, ""), ["certificates.acme.email", "nodes"]);
});

test("a configuration is shown without arguments of workspaces and the paths of webhooks", () => {
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

/** Returns the paths of settings without a mark. A group needs marks of its own, so that a new setting in it has none. */
function unmarked(schema: JsonSchema, marks: unknown, path: string): string[] {
  if (schema.items !== undefined) return unmarked(schema.items, marks, path);
  if (schema.properties === undefined) return typeof marks === "string" ? [] : [path];
  if (typeof marks !== "object" || marks === null) return [path];
  const byKey = new Map<string, unknown>(Object.entries(marks));
  return Object.entries(schema.properties).flatMap(([key, inner]) =>
    unmarked(inner, byKey.get(key), path === "" ? key : `${path}.${key}`),
  );
}
