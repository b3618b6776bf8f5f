import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { podUidOf } from "../../agent/src/pods/container-name.ts";
import { HostOfFakes } from "../../agent/test/host-of-fakes.ts";
import { type Member, startCluster } from "../../coordinator/test/support/coordinator-cluster.ts";
import { aContainerService, aRequest, aService } from "../../coordinator/test/support/requests.ts";
import { type EtcdServer, startEtcdCluster } from "../../hack/lib/etcd-server.ts";
import { TcpRelay } from "../../hack/lib/tcp-relay.ts";
import { waitFor } from "../../hack/lib/wait-for.ts";
import { buildDescriptor } from "../../proto/test/descriptor.ts";
import { StoredHistory } from "./stored-history.ts";

const SIZE = 3;
/** The machine may be busy with other tests. */
export const LIMIT_MS = 120_000;
export const STILL = "still.shop.svc.cluster.local:80";
const STILL_REPLICAS = 2;

/** The index of the host that bypasses the relays by using the addresses that coordinators report. */
export const LEARNING_HOST = 0;

/** Three coordinators, three members of etcd and three hosts, with a relay between each two of them. */
export interface Scene {
  readonly members: readonly Member[];
  readonly etcd: readonly EtcdServer[];
  readonly hosts: readonly HostOfFakes[];
  readonly history: StoredHistory;
  /** Returns the relays from a coordinator to each member of etcd. */
  waysToEtcd(member: Member): readonly TcpRelay[];
  /** Returns the relays from each host to a coordinator. LEARNING_HOST may bypass its relay. */
  waysOfHosts(member: Member): readonly TcpRelay[];
  /** Returns the containers of the workload that nothing changes. */
  still(): readonly { readonly id: string; readonly pid: number | undefined }[];
}

export async function aScene(t: TestContext): Promise<Scene> {
  const etcd = await startEtcdCluster(SIZE);
  t.after(() => Promise.all(etcd.map((it) => it.close())));
  const relay = async (target: () => string): Promise<TcpRelay> => {
    const made = await TcpRelay.start(() => addressOf(target()));
    t.after(() => made.close());
    return made;
  };
  const toEtcd: TcpRelay[][] = [];
  for (let at = 0; at < SIZE; at++)
    toEtcd.push(await Promise.all(etcd.map(({ endpoint }) => relay(() => endpoint.replace("http://", "")))));
  const previous = await previousVersion(t);
  const members = await startCluster(t, {
    endpointsOf: (at) => toEtcd[at]?.map(({ address }) => `http://${address}`) ?? [],
    environmentOf: () => previous,
    settings: { rollout: { stableSeconds: 0 } },
  });
  const toMembers = await Promise.all(
    members.map(({ address }) => Promise.all(members.map(() => relay(() => address)))),
  );
  const history = await StoredHistory.follow(etcd.map(({ endpoint }) => endpoint));
  t.after(() => history.close());
  const addressesFor = (host: number): string[] => toMembers.map((ways) => ways[host]?.address ?? "");
  const hosts = await Promise.all(members.map((member, at) => aHostOf(t, at, member, addressesFor(at))));
  await begin(members, hosts);
  const placeOf = <T>(all: readonly T[], member: Member): T => {
    const found = all[members.indexOf(member)];
    if (found === undefined) throw new RangeError("there is no such coordinator");
    return found;
  };
  return {
    ...{ members, etcd, hosts, history },
    waysToEtcd: (member) => placeOf(toEtcd, member),
    waysOfHosts: (member) => placeOf(toMembers, member),
    still: () => stillOf(hosts),
  };
}

/** Returns the environment of a coordinator that uses the wire format of the previous version. */
async function previousVersion(t: TestContext): Promise<Readonly<Record<string, string>>> {
  const dir = await mkdtemp(join(tmpdir(), "forage-wire-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const descriptor = join(dir, "descriptor");
  await writeFile(descriptor, toBinary(FileDescriptorSetSchema, await buildDescriptor()));
  const preload = join(import.meta.dirname, "previous-version.ts");
  return { NODE_OPTIONS: `--import=${preload}`, FORAGE_WIRE_DESCRIPTOR: descriptor };
}

/** Returns the uids of pods of which several containers run. */
export function doubledPods(hosts: readonly HostOfFakes[]): string[] {
  const uids = hosts.flatMap(({ runtime }) =>
    runtime.containers.filter(({ state }) => state === "running").map(({ labels }) => podUidOf(labels) ?? ""),
  );
  return uids.filter((uid, at) => uids.indexOf(uid) !== at);
}

async function aHostOf(
  t: TestContext,
  at: number,
  member: Member,
  addresses: readonly string[],
): Promise<HostOfFakes> {
  const dir = await mkdtemp(join(tmpdir(), "forage-cluster-host-"));
  const asked = { ttlSeconds: 0, nodeName: "", reusable: false, labels: {}, taints: [] };
  const tokenFile = join(dir, "token");
  const makeToken = () =>
    member
      .operator()
      .createJoinToken(asked)
      .catch(() => undefined);
  const { token } = await waitFor(makeToken, { what: "a host gets a join token", limitMs: LIMIT_MS });
  await writeFile(tokenFile, token, { mode: 0o600 });
  const [coordinator = "", ...more] = addresses;
  const number = at + 1;
  const settings = {
    coordinator,
    coordinators: more.join(),
    "join-token-file": tokenFile,
    "node-name": `node-${number}`,
  };
  const learnsAddresses = at === LEARNING_HOST;
  const host = await HostOfFakes.make(t, { dir, settings, address: `127.0.0.${number}`, learnsAddresses });
  await host.start({ random: Math.random });
  return host;
}

/** Deploys the workload that nothing changes. */
async function begin(members: readonly Member[], hosts: readonly HostOfFakes[]): Promise<void> {
  const [first] = members;
  const container = { name: "main", image: "localhost/forage/busybox:1", args: ["still"] };
  const port = { name: "http", containerPort: 8080, protocol: "TCP" };
  const spec = { scaling: { replicas: STILL_REPLICAS }, container: { ...container, ports: [port] } };
  const resources = [aService("still", "still"), aContainerService("still", spec)];
  const request = aRequest("still", resources, { bundle: "still" });
  const isApplied = (): Promise<boolean> =>
    first?.forage.applyResources(request).then(
      () => true,
      () => false,
    ) ?? Promise.resolve(false);
  // Before all hosts are ready, the placement of replicas would depend on the machine's speed.
  const hasAll = async (count: number): Promise<boolean> => {
    const answer = await first
      ?.operator()
      .listNodes({})
      .catch(() => undefined);
    return answer?.nodes.filter(({ ready }) => ready).length === count;
  };
  await waitFor(() => hasAll(hosts.length), { what: "all hosts are ready", limitMs: LIMIT_MS });
  await waitFor(isApplied, { what: "the first workload is applied", limitMs: LIMIT_MS });
  await waitFor(() => stillOf(hosts).length === STILL_REPLICAS, {
    what: "the first workload runs",
    limitMs: LIMIT_MS,
  });
}

function stillOf(hosts: readonly HostOfFakes[]) {
  return hosts
    .flatMap(({ runtime }) => runtime.containers)
    .filter(({ spec, state }) => state === "running" && JSON.stringify(spec).includes('"still"'))
    .map(({ id, pid }) => ({ id, pid }));
}

function addressOf(address: string): { readonly host: string; readonly port: number } {
  const [host = "", port = ""] = address.split(":");
  return { host, port: Number(port) };
}
