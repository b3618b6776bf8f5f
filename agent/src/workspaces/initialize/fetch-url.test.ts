import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { CertificateAuthority } from "@forage/identity/ca";

test("an agent with OpenSSL's authorities trusts Node's own and additional ones for downloads, not the host's", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "forage-fetch-"));
  t.after(() => rm(dir, { recursive: true }));
  const authority = await CertificateAuthority.create("download", { nowMs: Date.now, randomBytes });
  const { chainPem, keyPem } = await authority.issueServer({ dnsNames: ["localhost"], ipAddresses: [] });
  const server = createServer({ cert: chainPem, key: keyPem }, (_, response) => response.end("content"));
  t.after(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const bundle = join(dir, "ca.crt");
  await writeFile(bundle, authority.certPem);
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`;

  assert.equal(await fetchWith({ NODE_EXTRA_CA_CERTS: bundle }, url), "content");
  assert.match(await fetchWith({ SSL_CERT_FILE: bundle }, url), /^UNAVAILABLE .*certificate/);
});

/** Runs `fetchUrl` in a process with an agent's option and the variables. Returns the content or the error. */
async function fetchWith(env: Readonly<Record<string, string>>, url: string): Promise<string> {
  const program = `
    import { fetchUrl } from ${JSON.stringify(join(import.meta.dirname, "fetch-url.ts"))};
    try {
      const options = { refuse: () => undefined, signal: new AbortController().signal };
      for await (const chunk of fetchUrl("url", ${JSON.stringify(url)}, options)) process.stdout.write(chunk);
    } catch (error) {
      process.stdout.write(error.code + " " + error.message);
    }`;
  const args = ["--use-openssl-ca", "--input-type=module", "--eval", program];
  return (await promisify(execFile)(process.execPath, args, { env })).stdout;
}
