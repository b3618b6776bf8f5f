import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { stringify } from "yaml";
import { type Config, readConfig } from "../config.ts";
import { SIGNING_AUTHORITY_KEY } from "../model/keys.ts";
import { openVault } from "../objects/open-vault.ts";
import { createMemoryStore } from "../store/index.ts";
import { openIssuer } from "./open-issuer.ts";

const DIRECTORY = "https://acme.example/directory";

test("has no issuer by default", (t) => {
  assert.deepEqual(read(t, undefined), { issuer: "off" });
  assert.deepEqual(read(t, { issuer: "self-signed" }), { issuer: "self-signed" });
});

test("accepts an authority given by its directory and with its terms agreed to", (t) => {
  const acme = { directory: DIRECTORY, email: "ops@example.com", termsAgreed: true };
  assert.deepEqual(read(t, { issuer: "acme", acme }), { issuer: "acme", acme });
});

test("refuses invalid settings with the requirement", (t) => {
  const bad: readonly (readonly [object, RegExp])[] = [
    [{ issuer: "vault" }, /certificates\.issuer: /],
    [{ issuer: "acme" }, /certificates\.acme: must name the authority's directory/],
    [{ issuer: "acme", acme: { directory: DIRECTORY } }, /certificates\.acme\.termsAgreed: must be true/],
    [
      { issuer: "off", acme: { directory: DIRECTORY, termsAgreed: true } },
      /set certificates\.issuer to acme/,
    ],
    [{ issuer: "self-signed", acme: { directory: DIRECTORY } }, /certificates\.acme: is for the issuer acme/],
    [
      { issuer: "acme", acme: { directory: "http://acme.example/directory", termsAgreed: true } },
      /certificates\.acme\.directory: must be an https URL/,
    ],
    [{ issuer: "acme", acme: { directory: "nowhere", termsAgreed: true } }, /must be an https URL/],
    [
      { issuer: "acme", acme: { directory: DIRECTORY, termsAgreed: true, email: "ops" } },
      /must be a mail address/,
    ],
    [{ issuer: "acme", acme: { directory: DIRECTORY, termsAgreed: true, caFile: "ca.pem" } }, /acme\.caFile/],
    [{ issuer: "acme", acme: { directory: DIRECTORY, termsAgreed: true, url: "x" } }, /url/],
  ];
  for (const [settings, message] of bad) assert.throws(() => read(t, settings), message);
});

test("reports unusable files at the start, without their content", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-certificates-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = (name: string, text: string, mode = 0o600): string => {
    writeFileSync(join(dir, name), text);
    chmodSync(join(dir, name), mode);
    return join(dir, name);
  };
  const open = (more: object) =>
    opened(t, { issuer: "acme", acme: { directory: DIRECTORY, termsAgreed: true, ...more } });
  const binding = (hmacKeyFile: string) => ({ externalAccountBinding: { keyId: "me", hmacKeyFile } });
  const canary = "canary with blanks in it";
  await assert.rejects(open({ caFile: join(dir, "none") }), /acme\.caFile: .*ENOENT/);
  await assert.rejects(open({ caFile: file("empty", "") }), /holds no certificate in PEM/);
  await assert.rejects(open(binding(join(dir, "none"))), /hmacKeyFile: /);
  await assert.rejects(open(binding(file("open", "a".repeat(32), 0o644))), /hmacKeyFile: /);
  await assert.rejects(open(binding(file("odd", canary))), (error: Error) => {
    assert.match(error.message, /must hold one key in base64url/);
    return !error.message.includes(canary);
  });
  const good = await open(binding(file("good", `${"a".repeat(43)}\n`)));
  good?.close();
});

test("starts with an unreadable authority, and reports it at each attempt", async (t) => {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const vault = await openVault([{ id: "k", bytes: randomBytes(32) }], store);
  await store.txn([], [{ type: "put", key: SIGNING_AUTHORITY_KEY, value: Uint8Array.of(1, 255, 255, 255) }]);
  const settings = read(t, { issuer: "self-signed" });
  const found = await openIssuer({ settings, cluster: "test", store, vault, clock, randomBytes });
  const issuer = found?.issuer({} as never);
  await assert.rejects(issuer?.issue("a.test", new AbortController().signal) ?? Promise.resolve(), {
    name: "IssueError",
    message: /development CA can't be used/,
  });
});

function read(t: TestContext, certificates: object | undefined): Config["certificates"] {
  const dir = mkdtempSync(join(tmpdir(), "forage-certificates-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "coordinator.yaml");
  writeFileSync(file, stringify({ dataDir: dir, ...(certificates && { certificates }) }));
  return readConfig(["--config", file], {}).certificates;
}

async function opened(t: TestContext, settings: object) {
  const clock = new VirtualClock();
  const store = createMemoryStore({ clock });
  const vault = await openVault([{ id: "k", bytes: randomBytes(32) }], store);
  return openIssuer({ settings: read(t, settings), cluster: "test", store, vault, clock, randomBytes });
}
