import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { ObjectVersionRecord, Sealed } from "@forage/proto/forage/store/v1/store";
import { fullStore } from "../../test/support/full-store.ts";
import { decodeRecord, encodeRecord } from "../model/codec.ts";
import { objectVersionKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { openVault, reseal } from "./open-vault.ts";
import type { Vault } from "./vault.ts";

const old = { id: "old", bytes: randomBytes(32) };
const fresh = { id: "fresh", bytes: randomBytes(32) };
const DB: ObjectName = { namespace: "shop", kind: "secret", name: "db" };
const content = (text: string) => ({ password: Buffer.from(text), user: Buffer.from("root") });

test("gives the same version to the same content of the same object only", async () => {
  const vault = await openVault([fresh], createMemoryStore({ clock: new VirtualClock() }));
  const version = vault.versionOf(DB, content("a"));
  assert.match(version, /^[0-9a-f]{64}$/);
  assert.equal(vault.versionOf(DB, { user: Buffer.from("root"), password: Buffer.from("a") }), version);
  const others = [
    vault.versionOf(DB, content("b")),
    vault.versionOf({ ...DB, name: "other" }, content("a")),
    vault.versionOf({ ...DB, namespace: "other" }, content("a")),
    vault.versionOf({ ...DB, kind: "config_map" }, content("a")),
    (await openVault([fresh], createMemoryStore({ clock: new VirtualClock() }))).versionOf(DB, content("a")),
  ];
  assert.equal(new Set([version, ...others]).size, 6);
});

test("stores secrets encrypted, and config maps in plain text", async () => {
  const vault = await openVault([fresh], createMemoryStore({ clock: new VirtualClock() }));
  for (const [kind, isPlain] of [
    ["secret", false],
    ["registry_credential", false],
    ["config_map", true],
  ] as const) {
    const record = vault.record({ ...DB, kind }, content("hunter2-canary"), "v1", 1);
    const bytes = Buffer.from(encodeRecord(ObjectVersionRecord, record));
    assert.equal(bytes.includes("hunter2-canary"), isPlain, kind);
    assert.equal(vault.open({ ...DB, kind }, record).password?.toString(), "hunter2-canary");
  }
});

test("encrypts everything with a new first key at a start, after which the old key is not needed, without changing versions", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const before = await openVault([old], store);
  const names = Array.from({ length: 40 }, (_, i) => ({ ...DB, name: `s${i}` }));
  for (const name of names) await put(store, before, name);
  await put(store, before, { ...DB, kind: "config_map" });
  const version = before.versionOf(DB, content("a"));

  assert.equal((await reseal([fresh, old], store)).rewritten, 41, "every secret and the key for versions");
  assert.equal((await reseal([fresh, old], store)).rewritten, 0);
  const after = await openVault([fresh], store);
  assert.equal(after.versionOf(DB, content("a")), version);
  for (const name of names)
    assert.equal(after.open(name, await read(store, name)).password?.toString(), name.name);
});

test("skips records that can't be decoded, without failing the start", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const vault = await openVault([old], store);
  for (const name of ["a", "z"]) await put(store, vault, { ...DB, name });
  const damaged = ["object-versions/shop/secret/m/v1", "certificates/m", "certificate-issuers/self-signed"];
  const foreign = Sealed.fromPartial({
    keyId: "gone",
    nonce: Buffer.of(1),
    ciphertext: Buffer.of(2),
  });
  const version = ObjectVersionRecord.fromPartial({ content: { $case: "sealed", value: foreign } });
  for (const key of damaged)
    await store.txn([], [{ type: "put", key, value: Uint8Array.of(1, 255, 255, 255) }]);
  const missing = "object-versions/shop/secret/n/v1";
  await store.txn([], [{ type: "put", key: missing, value: encodeRecord(ObjectVersionRecord, version) }]);

  const { rewritten, unreadable, stopped } = await reseal([fresh, old], store);
  assert.equal(rewritten, 3, "both secrets and the key for versions");
  assert.equal(stopped, undefined);
  const keys = unreadable.map(({ key }) => key).sort();
  assert.deepEqual(keys, [...damaged, missing].sort());
});

test("stops encrypting when the store rejects writes, without failing the start", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  await put(store, await openVault([old], store), DB);
  const { rewritten, stopped } = await reseal([fresh, old], fullStore(store));
  assert.equal(rewritten, 0);
  assert.match(String(stopped), /no space left/);
});

test("reports a missing key by its id at the start", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  await openVault([old], store);
  await assert.rejects(openVault([fresh], store), /key old: put it back into the secret key file/);
});

test("rejects a record that was moved to another object", async () => {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const vault = await openVault([fresh], store);
  const record = vault.record(DB, content("a"), "v1", 1);
  assert.throws(() => vault.open({ ...DB, name: "other" }, record), /was changed on disk/);
});

async function put(store: Store, vault: Vault, name: ObjectName): Promise<void> {
  const value = encodeRecord(ObjectVersionRecord, vault.record(name, content(name.name), "v1", 1));
  await store.txn([], [{ type: "put", key: objectVersionKey(name, "v1"), value }]);
}

async function read(store: Store, name: ObjectName): Promise<ObjectVersionRecord> {
  const key = objectVersionKey(name, "v1");
  return decodeRecord(ObjectVersionRecord, key, (await store.get(key))?.value ?? new Uint8Array());
}
