import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { type S3Server, startS3Server } from "../../hack/lib/s3-server.ts";
import { contentStoreConformance } from "../src/workspaces/content/conformance.ts";
import { S3ContentStore, type S3ContentStoreOptions } from "../src/workspaces/content/s3/s3-content-store.ts";

// The first start on a machine downloads the server.
const START_LIMIT_MS = 6 * 60_000;
const never = new AbortController().signal;
const put = { maxBytes: 1024 ** 3, verify: () => {}, signal: never };
let server: S3Server;
let stores = 0;

before(
  async () => {
    server = await startS3Server();
  },
  { timeout: START_LIMIT_MS },
);
after(() => server?.close());

// Each store has its own prefix in the same bucket.
contentStoreConformance("S3", async () => ({ store: open(), dispose: async () => {} }));

test("reports an unreachable S3 server and wrong credentials as UNAVAILABLE", async () => {
  const away = open({ endpoint: "http://127.0.0.1:9" });
  await assert.rejects(away.stat("o/w/a"), { code: "UNAVAILABLE", message: /ECONNREFUSED/ });
  await away.close();
  const credentials = { ...server.credentials, secretAccessKey: "wrong" };
  const stranger = open({ credentials });
  await assert.rejects(stranger.stat("o/w/a"), { code: "UNAVAILABLE", message: /SignatureDoesNotMatch/ });
  await stranger.close();
});

test("removes only old data of writes that never ended", async () => {
  const clock = new VirtualClock();
  const prefix = "remains/";
  const store = open({ prefix, monotonicMs: clock.monotonicMs });
  // Data and an index entry of another store, which this store must not remove.
  const other = open({ prefix: `${prefix}data/o/w/lost/` });
  await other.put("x", one("left behind"), put);
  await store.put("o/w/a", one("kept"), put);
  assert.equal(await store.removeRemains(60_000), 0);
  clock.advance(59_000);
  assert.equal(await store.removeRemains(60_000), 0);
  clock.advance(1_000);
  assert.equal(await store.removeRemains(60_000), 2);
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.read("o/w/a", { offsetBytes: 0, signal: never })) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), "kept");
  await Promise.all([store.close(), other.close()]);
});

async function* one(text: string) {
  yield Buffer.from(text);
}

function open(given: Partial<S3ContentStoreOptions> = {}): S3ContentStore {
  stores += 1;
  return new S3ContentStore({
    name: "main",
    endpoint: server.endpoint,
    region: "us-east-1",
    bucket: server.bucket,
    prefix: `store${stores}/`,
    forcePathStyle: true,
    credentials: server.credentials,
    randomName: (length) => randomBytes(length).toString("hex").slice(0, length),
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
    ...given,
  });
}
