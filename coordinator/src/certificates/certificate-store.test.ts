import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { ISSUER_PAUSE_KEY } from "../model/keys.ts";
import { openVault, reseal } from "../objects/open-vault.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { AccountRecords } from "./acme/account.ts";
import { type CertificateState, emptyCertificateState } from "./certificate-state.ts";
import { CertificateStore } from "./certificate-store.ts";
import { keepAuthority } from "./self-signed/keep-authority.ts";

const old = { id: "old", bytes: randomBytes(32) };
const fresh = { id: "fresh", bytes: randomBytes(32) };
const DIRECTORY = "https://acme.test/";
const log = pino({ level: "silent" });

const FULL: CertificateState = {
  hostname: "*.a.test",
  issuer: DIRECTORY,
  certificate: { chainPem: "chain", keyPem: "key", notBeforeMs: 1_000, notAfterMs: 9_000 },
  renewAtMs: 6_000,
  failures: 3,
  error: "dns: no",
  failedAtMs: 7_000,
  retryAtMs: 8_000,
  retryAtRequested: true,
  renewalRequestedAtMs: 6_500,
};

async function start() {
  const store = createMemoryStore({ clock: new VirtualClock() });
  const vault = await openVault([old], store);
  return { store, vault, records: new CertificateStore({ store, vault, log }) };
}

test("loads certificates of any number and size as they were stored", async () => {
  const { records } = await start();
  const many = Array.from({ length: 250 }, (_, i) => ({ ...FULL, hostname: `h${i}.test` }));
  for (const state of [FULL, emptyCertificateState("b.test", "x"), ...many]) await records.save(state);
  const loaded = await records.load();
  assert.equal(loaded.size, 252);
  assert.deepEqual(loaded.get("*.a.test"), FULL);
  assert.deepEqual(loaded.get("h249.test"), { ...FULL, hostname: "h249.test" });
  const bare = Object.entries(loaded.get("b.test") ?? {}).filter(([, value]) => value !== undefined);
  assert.deepEqual(Object.fromEntries(bare), emptyCertificateState("b.test", "x"));
  await records.forget("b.test");
  assert.equal((await records.load()).size, 251);
});

test("loads and removes the pause of the issuer", async () => {
  const { records } = await start();
  const pause = { failures: 2, error: "away", untilMs: 5_000, isRequested: true };
  assert.equal(await records.loadPause(), undefined);
  await records.savePause(pause);
  assert.deepEqual(await records.loadPause(), pause);
  await records.savePause(undefined);
  assert.equal(await records.loadPause(), undefined);
});

test("skips an unreadable state, and loads the others", async () => {
  const { store, records } = await start();
  await records.save(FULL);
  await records.save({ ...FULL, hostname: "b.test" });
  // The record of another hostname.
  const stored = await store.get("certificates/b.test");
  await put(store, "certificates/c.test", stored?.value ?? new Uint8Array());
  await put(store, "certificates/d.test", Uint8Array.of(1, 255, 255, 255));
  await put(store, "certificates/b.test", Uint8Array.of(9));
  assert.deepEqual([...(await records.load()).keys()], ["*.a.test"]);
});

test("ignores an unreadable pause", async () => {
  const { store, records } = await start();
  await put(store, ISSUER_PAUSE_KEY, Uint8Array.of(1, 255, 255, 255));
  assert.equal(await records.loadPause(), undefined);
});

test("encrypts all keys of issuers and certificates again with a new first key", async () => {
  const { store, vault, records } = await start();
  await records.save(FULL);
  await records.save(emptyCertificateState("none.test", "x"));
  await records.savePause({ failures: 1, error: "away", untilMs: 1, isRequested: false });
  const account = await new AccountRecords({ store, vault, directory: DIRECTORY }).load();
  const keep = (from: typeof vault) =>
    keepAuthority({ store, vault: from, cluster: "test", make: () => ({ nowMs: 0, randomBytes }) });
  const authority = await keep(vault);
  assert.equal((await reseal([fresh, old], store)).rewritten, 4, "and the key for versions");
  assert.equal((await reseal([fresh, old], store)).rewritten, 0);
  const after = await openVault([fresh], store);
  const loaded = await new CertificateStore({ store, vault: after, log }).load();
  assert.equal(loaded.get("*.a.test")?.certificate?.keyPem, "key");
  assert.equal(loaded.size, 2);
  assert.deepEqual(await new AccountRecords({ store, vault: after, directory: DIRECTORY }).load(), account);
  assert.deepEqual(await keep(after), authority);
});

async function put(store: Store, key: string, value: Uint8Array): Promise<void> {
  await store.txn([], [{ type: "put", key, value }]);
}
