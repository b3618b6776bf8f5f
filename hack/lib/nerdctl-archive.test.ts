import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { downloadNerdctl } from "./nerdctl-archive.ts";

test("the program of an archive with the right checksum is installed", async (t) => {
  const { target, archive } = await aSite(t);

  assert.equal(await downloadNerdctl(target, { archive }), true);

  assert.equal(readFileSync(target, "utf8"), "#!/bin/sh\n");
  assert.equal(statSync(target).mode & 0o111, 0o111);
});

test("an archive with another checksum is refused and leaves nothing behind", async (t) => {
  const { target, archive } = await aSite(t);
  const other = { ...archive, sha256: "0".repeat(64) };

  await assert.rejects(downloadNerdctl(target, { archive: other }), { code: "DOWNLOAD_FAILED" });

  assert.equal(existsSync(target), false);
});

test("continues if an archive can't be downloaded, because there is an alternative", async (t) => {
  const { target, archive } = await aSite(t);

  assert.equal(
    await downloadNerdctl(target, { archive: { ...archive, url: `${archive.url}.absent` } }),
    false,
  );
  const nobody = { ...archive, url: "http://127.0.0.1:9/nerdctl.tar.gz" };
  assert.equal(await downloadNerdctl(target, { archive: nobody }), false);
});

async function aSite(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "forage-archive-"));
  t.after(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, "nerdctl"), "#!/bin/sh\n", { mode: 0o755 });
  execFileSync("tar", ["--create", "--gzip", "--file", join(dir, "a.tar.gz"), "--directory", dir, "nerdctl"]);
  const content = readFileSync(join(dir, "a.tar.gz"));
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/a.tar.gz" ? 200 : 404;
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const sha256 = createHash("sha256").update(content).digest("hex");
  return {
    target: join(dir, "cache", "nerdctl"),
    archive: { url: `http://127.0.0.1:${port}/a.tar.gz`, sha256 },
  };
}
