import { randomUUID } from "node:crypto";
import { systemClock as clock } from "@forage/common/clock";
import {
  connectToEtcd,
  ETCD_SCHEMA,
  type EtcdStore,
  openEtcdStore,
} from "../../coordinator/src/store/index.ts";

/** Opens a new store in etcd. The directory contains the coordinator's id. */
export async function openInEtcd(endpoint: string, dir: string, prefix: string): Promise<EtcdStore> {
  const settings = ETCD_SCHEMA.parse({ endpoints: [endpoint], prefix });
  const { nowMs } = clock;
  const connection = await connectToEtcd({ settings, dir, hostName: "bench", clock, nowMs });
  return openEtcdStore({ ...connection, clock, random: Math.random, newId: randomUUID });
}
