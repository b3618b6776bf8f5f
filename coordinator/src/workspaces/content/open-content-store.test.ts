import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { CONTENT_SCHEMA } from "./content-settings.ts";
import { openContentStore } from "./open-content-store.ts";

test("opens a directory in the data directory by default", async (t) => {
  const { dir, open } = await setUp(t);
  const store = await open({});
  assert.equal(store.name, "main");
  assert.ok(existsSync(join(dir, "workspace-content")));
  await store.close();
});

test("opens a bucket with the credentials in a file that only its owner can read", async (t) => {
  const { dir, open } = await setUp(t);
  const credentialsFile = join(dir, "s3.yaml");
  const s3 = { endpoint: "http://127.0.0.1:9", bucket: "archives", credentialsFile };
  await assert.rejects(open({ s3 }), { code: "FAILED_PRECONDITION", message: /can't be read/ });
  await writeFile(credentialsFile, "accessKeyId: a\nsecretAccessKey: b\n", { mode: 0o600 });
  const store = await open({ s3 });
  await store.close();
  await chmod(credentialsFile, 0o644);
  await assert.rejects(open({ s3 }), { code: "FAILED_PRECONDITION", message: /set its mode to 600/ });
});

test("reports the keys missing in a credentials file without its content", async (t) => {
  const { dir, open } = await setUp(t);
  const credentialsFile = join(dir, "s3.yaml");
  const s3 = { bucket: "archives", credentialsFile };
  for (const text of ["accessKeyId: topsecret\n", "topsecret", "{topsecret", "- topsecret\n"]) {
    await writeFile(credentialsFile, text, { mode: 0o600 });
    await assert.rejects(open({ s3 }), (error: Error) => {
      assert.match(error.message, /credentialsFile: .*s3.yaml (must hold|is not valid YAML)/);
      assert.doesNotMatch(error.message, /topsecret/);
      return true;
    });
  }
});

async function setUp(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "forage-content-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const open = (settings: object) =>
    openContentStore({
      settings: CONTENT_SCHEMA.parse(settings),
      dataDir: dir,
      randomName: () => "name",
      clock: new VirtualClock(),
    });
  return { dir, open };
}
