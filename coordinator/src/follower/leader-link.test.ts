import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { clusterName } from "@forage/identity";
import { CertificateAuthority } from "@forage/identity/ca";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { waitFor } from "../../../hack/lib/wait-for.ts";
import { serverMaterial } from "../identity.ts";
import { systemClock } from "../time/clock.ts";
import { LeaderLink } from "./leader-link.ts";

const NEVER = new AbortController().signal;

test("lets calls wait while there is no leader, and while the last one can't be reached", async (t) => {
  const { link, startServer } = await start(t);
  const first = await startServer();
  const waiting = link.client(NEVER);
  link.observe({ holder: "a", name: "a", addresses: [first.address] });
  await waiting;

  first.stop();
  const isLost = (): Promise<boolean> =>
    link.client(NEVER, 0).then(
      () => false,
      () => true,
    );
  await waitFor(isLost, { what: "the end of the connection is noticed", limitMs: 10_000 });
  await assert.rejects(link.client(NEVER, 300), {
    code: "UNAVAILABLE",
    message: `a leads and can't be reached at ${first.address}: try again`,
  });
  const held = link.client(NEVER);
  link.observe(undefined);
  await assert.rejects(link.client(NEVER, 10), {
    code: "UNAVAILABLE",
    message: "no coordinator leads at the moment: try again",
  });
  const second = await startServer();
  link.observe({ holder: "b", name: "b", addresses: [second.address] });
  const client = await held;
  assert.equal(client.getChannel().getTarget(), `dns:${second.address}`);
});

test("ends the wait when the call or the link ends", async (t) => {
  const { link } = await start(t);
  const gone = new AbortController();
  const waits = [link.client(gone.signal), link.client(NEVER)].map((it) =>
    assert.rejects(it, { code: "UNAVAILABLE" }),
  );
  gone.abort();
  await waits[0];
  link.close();
  await waits[1];
});

async function start(t: TestContext) {
  const authority = await CertificateAuthority.create(clusterName("test"), { nowMs: Date.now, randomBytes });
  const link = new LeaderLink({ authority, self: "self", clock: systemClock });
  t.after(() => link.close());
  const startServer = async () => {
    const { chainPem, keyPem } = await serverMaterial(authority, ["127.0.0.1"]);
    const pair = { cert_chain: Buffer.from(chainPem), private_key: Buffer.from(keyPem) };
    const server = new Server();
    const credentials = ServerCredentials.createSsl(Buffer.from(authority.certPem), [pair], true);
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    t.after(() => server.forceShutdown());
    return { address: `127.0.0.1:${port}`, stop: () => server.forceShutdown() };
  };
  return { link, startServer };
}
