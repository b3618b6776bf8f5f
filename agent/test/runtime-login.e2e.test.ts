import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildBusyboxImage } from "../../hack/lib/busybox-image.ts";
import type { Registry } from "../../hack/lib/registry.ts";
import { parseRegistries } from "../src/registries/parse-registries.ts";
import { writeRegistries } from "../src/registries/write-registries.ts";
import { NerdctlRuntime } from "../src/runtime/nerdctl/nerdctl-runtime.ts";
import type { RegistryLogin } from "../src/runtime/runtime.ts";
import { type NerdctlUnderTest, openNerdctl } from "./nerdctl-under-test.ts";
import { type PrivateRegistry, startPrivateRegistry, startTlsRegistry } from "./private-registry.ts";
import { rejectsWith } from "./runtime-contract.ts";

// Docker's usual encoding can't represent a name with a colon; a password may contain any characters.
const LOGIN = { username: "robot$team", password: 'p:"ä\\s s3cr3t' };

let it: NerdctlUnderTest;
let open: Registry;
let registry: PrivateRegistry;
before(async () => {
  it = await openNerdctl();
  open = await it.host.startRegistry();
  registry = await startPrivateRegistry(open, LOGIN);
});
after(async () => {
  await registry?.close();
  await it?.close();
});

const login = (change: Partial<RegistryLogin> = {}): RegistryLogin => ({
  server: registry.address,
  ...LOGIN,
  ...change,
});

async function published(name: string): Promise<string> {
  await it.publish(open, name);
  return `${registry.address}/${name}`;
}

test("without a login, with a wrong one or with one for another registry, the pull is denied", async ({
  signal,
}) => {
  const image = await published("forage/denied:1");
  await rejectsWith("IMAGE_DENIED", it.runtime.pull(image, signal));
  await rejectsWith(
    "IMAGE_DENIED",
    it.runtime.pull(image, signal, { credentials: [login({ password: "wrong" })] }),
  );
  const before = registry.askers.length;
  const elsewhere = login({ server: "docker.io", password: "of-the-hub" });
  await rejectsWith("IMAGE_DENIED", it.runtime.pull(image, signal, { credentials: [elsewhere] }));
  assert.ok(registry.askers.slice(before).every((asker) => asker === ""));
  assert.equal(await it.runtime.hasImage(image, signal), false);
});

test("finds the matching login among several", async ({ signal }) => {
  const image = await published("forage/found:1");
  const credentials = [
    login({ server: "registry.example", password: "for-another-registry" }),
    login({ password: "old" }),
    login({ server: `https://${registry.address}/v2/` }),
  ];
  const before = registry.askers.length;
  await it.runtime.pull(image, signal, { credentials });
  assert.equal(await it.runtime.hasImage(image, signal), true);
  const asked = registry.askers.slice(before);
  assert.ok(asked.some((asker) => asker.endsWith(":old")));
  assert.ok(asked.every((asker) => !asker.includes("for-another-registry")));
});

test("a login is in no argument, environment or named file, and leaves nothing behind", async ({
  signal,
}) => {
  const image = await published("forage/quiet:1");
  const spy = join(it.host.dir, "spy");
  const seen = join(it.host.dir, "seen");
  // Records everything of a login that nerdctl's caller could see: arguments, variables, and every file below the
  // agent's own directory.
  const script = `#!/bin/sh
{ printf '%s\\n' "$@"; env; ls -laR ${it.options.stateDir}; grep -rs . ${it.options.stateDir}; } >>${seen}
exec ${it.host.nerdctlPath} "$@"
`;
  writeFileSync(spy, script, { mode: 0o755 });
  const runtime = new NerdctlRuntime({ ...it.options, nerdctlPath: spy });
  await runtime.pull(image, signal, { credentials: [login()] });
  const text = readFileSync(seen, "utf8");
  assert.match(text, /DOCKER_CONFIG=/);
  assert.equal(text.includes("s3cr3t"), false);
  assert.equal(text.includes(Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString("base64")), false);
  assert.deepEqual(
    readdirSync(it.options.stateDir).filter((name) => name.startsWith(".")),
    [],
  );
  assert.equal(statSync(it.options.stateDir).mode & 0o077, 0);
  await runtime.close();
});

test("no error contains a login", async ({ signal }) => {
  const image = `${registry.address}/forage/missing:1`;
  const error: unknown = await it.runtime.pull(image, signal, { credentials: [login()] }).catch((it) => it);
  assert.ok(error instanceof Error);
  assert.equal(`${error.stack}${JSON.stringify(error)}`.includes("s3cr3t"), false);
});

test("an image comes from the mirror of its registry, if a configured authority has signed its certificate", async ({
  signal,
}) => {
  await it.publish(open, "forage/mirrored:1");
  // No server listens on this port.
  const image = "127.0.0.1:1/forage/mirrored:1";
  const mirror = await startTlsRegistry(open, join(it.host.dir, "mirror-ca.crt"));
  try {
    const mirrors = [`https://${mirror.address}`];
    const pullWith = async (name: string, access: object): Promise<void> => {
      const registries = parseRegistries({ "127.0.0.1:1": { mirrors, ...access } });
      const registryHostsDirs = await writeRegistries(
        join(it.host.dir, name),
        registries,
        (registry, cause) => assert.fail(new Error(registry, { cause })),
      );
      assert.ok(registryHostsDirs);
      const runtime = new NerdctlRuntime({ ...it.options, registryHostsDirs });
      await runtime.pull(image, signal).finally(() => runtime.close());
    };
    await assert.rejects(pullWith("untrusted", {}));
    assert.equal(await it.runtime.hasImage(image, signal), false);
    await pullWith("trusted", { caFile: mirror.caFile });
    assert.equal(await it.runtime.hasImage(image, signal), true);
  } finally {
    await mirror.close();
  }
});

test("for an image of other platforms, the message names them", async ({ signal }) => {
  const archive = await buildBusyboxImage({ name: "localhost/forage/foreign:1", architecture: "s390x" });
  const { digest } = await open.pushImage(archive, "forage/foreign:1");
  await pushIndex("forage/foreign", digest);
  const image = `${open.address}/forage/foreign:index`;
  const pull = it.runtime.pull(image, signal);
  await rejectsWith("IMAGE_INVALID", pull);
  await assert.rejects(pull, /is for linux\/s390x; this host is linux\/(amd64|arm64)/);
  assert.equal(await it.runtime.hasImage(image, signal), false);
});

test("rejects an image of another platform without an index, also if it is already stored", async ({
  signal,
}) => {
  const archive = await buildBusyboxImage({ name: "localhost/forage/alone:1", architecture: "s390x" });
  const { reference: image } = await open.pushImage(archive, "forage/alone:1");
  const says = /is for linux\/s390x; this host is linux\/(amd64|arm64)/;
  await assert.rejects(it.runtime.pull(image, signal), says);
  await rejectsWith("IMAGE_INVALID", it.runtime.hasImage(image, signal));
  assert.equal(await it.runtime.removeImage(image, signal), "removed");
});

async function pushIndex(name: string, digest: string): Promise<void> {
  const base = `http://${open.address}/v2/${name}/manifests`;
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = await (await fetch(`${base}/${digest}`, { headers: { accept: mediaType } })).arrayBuffer();
  const index = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [
      { mediaType, digest, size: manifest.byteLength, platform: { architecture: "s390x", os: "linux" } },
    ],
  };
  const headers = { "content-type": index.mediaType };
  const answer = await fetch(`${base}/index`, { method: "PUT", headers, body: JSON.stringify(index) });
  assert.equal(answer.ok, true);
}
