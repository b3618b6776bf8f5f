import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { buildRegistry } from "./descriptor.ts";

const PAGE = new URL("../../docs/reference/workspace-manager.md", import.meta.url);
const FILES = ["core", "content-service-api/initializer"];

test("the page about WorkspaceManager lists every field and value of the contract, and no others", async () => {
  const registry = await buildRegistry();
  const files = FILES.map((name) => registry.getFile(`${name}.proto`) ?? assert.fail(name));
  const expected = files.flatMap(({ messages, enums }) => [
    ...messages.flatMap(namesOfMessage),
    ...enums.flatMap(namesOfEnum),
  ]);
  const { names, empty } = readPage(readFileSync(PAGE, "utf8"));
  assert.deepEqual([...names].sort(), [...expected].sort());
  assert.deepEqual(empty, []);
});

/** Returns the names of a message's fields. A message without fields is represented by its own name. */
function namesOfMessage(message: DescMessage): string[] {
  const own = nameOf(message);
  const fields = message.fields.map(({ name }) => `${own}.${name}`);
  return [
    ...(fields.length === 0 ? [own] : fields),
    ...message.nestedMessages.flatMap(namesOfMessage),
    ...message.nestedEnums.flatMap(namesOfEnum),
  ];
}

function namesOfEnum(type: DescEnum): string[] {
  return type.values.map(({ name }) => `${nameOf(type)}.${name}`);
}

/** Returns the name without the package. */
function nameOf({ typeName }: DescMessage | DescEnum): string {
  return typeName.replace(/^(wsman|contentservice)\./, "");
}

/** Reads the names of types from third-level headings, and of their fields from the first cells of rows. */
function readPage(text: string): { readonly names: Set<string>; readonly empty: readonly string[] } {
  const names = new Set<string>();
  const empty: string[] = [];
  for (const section of text.split(/^### /m).slice(1)) {
    const type = section.split("\n", 1)[0]?.trim() ?? "";
    const rows = [...section.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)];
    if (rows.length === 0) names.add(type);
    for (const [, field = "", behaviour = ""] of rows) {
      names.add(`${type}.${field}`);
      if (behaviour.trim() === "") empty.push(`${type}.${field}`);
    }
  }
  return { names, empty };
}
