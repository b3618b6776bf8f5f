import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "../../../hack/lib/etcd-server.ts";
import { conformance } from "../../src/store/conformance.ts";
import { connectEtcd, openStore } from "./etcd-bench.ts";
import { testEtcd } from "./etcd-contract.ts";

let server: EtcdServer | undefined;
let stores = 0;

before(async () => {
  server = await startEtcd();
});

after(() => server?.close());

conformance("etcd", async (options) => {
  const client = connectEtcd(server?.endpoint ?? "", `/case-${++stores}/`);
  return { store: await openStore(client, options), dispose: async () => {} };
});

testEtcd("etcd", async () => {
  const etcd = connectEtcd(server?.endpoint ?? "", `/case-${++stores}/`);
  return { etcd, pause: () => sleep(100) };
});
