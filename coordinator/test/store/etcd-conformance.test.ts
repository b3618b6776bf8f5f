import { after, before } from "node:test";
import { type EtcdServer, startEtcd } from "../../../hack/lib/etcd-server.ts";
import { conformance } from "../../src/store/conformance.ts";
import { connectEtcd, openStore } from "./etcd-bench.ts";

let etcd: EtcdServer | undefined;
let stores = 0;

before(async () => {
  etcd = await startEtcd();
});

after(() => etcd?.close());

conformance("etcd", async (options) => {
  const client = connectEtcd(etcd?.endpoint ?? "", `/case-${++stores}/`);
  return { store: await openStore(client, options), dispose: async () => {} };
});
