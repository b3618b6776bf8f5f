import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { InstanceSecrets, InstanceSecretsRecord } from "@forage/proto/forage/workspaces/v1/records";
import { decodeRecord } from "../model/codec.ts";
import { openVault, reseal } from "../objects/open-vault.ts";
import { createMemoryStore } from "../store/index.ts";
import { secretsKey } from "./keys.ts";
import { openSecrets, secretsWrite } from "./records.ts";

test("encrypts secrets of workspaces again with a new key, after which the old key can be removed", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const [old, fresh] = [
    { id: "old", bytes: Buffer.alloc(32, 1) },
    { id: "new", bytes: Buffer.alloc(32, 2) },
  ];
  const secrets = InstanceSecrets.fromPartial({
    ownerToken: "a token",
    envvars: [{ name: "A", value: "secret" }],
  });
  const write = secretsWrite("instance", secrets, await openVault([old], store));
  assert.ok(write.type === "put" && !Buffer.from(write.value).includes("a token"));
  await store.txn([], [write]);
  assert.deepEqual(await reseal([fresh, old], store), { rewritten: 2, unreadable: [] });
  const stored = await store.get(secretsKey("instance"));
  const record = decodeRecord(
    InstanceSecretsRecord,
    secretsKey("instance"),
    stored?.value ?? Buffer.alloc(0),
  );
  assert.deepEqual(openSecrets("instance", record, await openVault([fresh], store)), secrets);
  await store.close();
});
