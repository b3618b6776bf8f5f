import { spawn } from "node:child_process";
import { once } from "node:events";
import { basename, join } from "node:path";
import { execPath } from "node:process";
import type { TestContext } from "node:test";
import type { IpFamily } from "@forage/common/ip";
import { ServiceState, ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { systemClock } from "../src/clock.ts";
import { instanceNames } from "../src/network/instance-names.ts";
import type { PodSandbox } from "../src/network/network.ts";
import { runCommand } from "../src/network/run-command.ts";
import { KnownServices } from "../src/services/known-services.ts";
import { ServiceRules } from "../src/services/service-rules.ts";
import { HostUnderTest } from "./host-under-test.ts";
import {
  HOST_ADDRESS,
  HOST_ADDRESS6,
  makeOutsideHost,
  OUTSIDE_ADDRESS,
  OUTSIDE_ADDRESS6,
} from "./outside-host.ts";

type Fields = Parameters<typeof ServiceState.fromPartial>[0];
export type Endpoints = NonNullable<Fields["endpoints"]>;

/** The addresses of the scene in one address family. */
export interface SceneAddresses {
  readonly family: IpFamily;
  readonly podCidr: string;
  readonly gateway: string;
  readonly range: string;
  readonly virtualIp: string;
  readonly otherVirtualIp: string;
  /** A virtual IP that no service has. */
  readonly unusedVirtualIp: string;
  readonly host: string;
  readonly outside: string;
  readonly loopback: string;
}

export const PLACES: Readonly<Record<IpFamily, SceneAddresses>> = {
  4: {
    family: 4,
    podCidr: "10.64.0.0/16",
    gateway: "10.64.0.1",
    range: "10.96.0.0/16",
    virtualIp: "10.96.0.5",
    otherVirtualIp: "10.96.0.9",
    unusedVirtualIp: "10.96.200.200",
    host: HOST_ADDRESS,
    outside: OUTSIDE_ADDRESS,
    loopback: "127.0.0.1",
  },
  6: {
    family: 6,
    podCidr: "fd64::/64",
    gateway: "fd64::1",
    range: "fd96::/112",
    virtualIp: "fd96::5",
    otherVirtualIp: "fd96::9",
    unusedVirtualIp: "fd96::c8c8",
    host: HOST_ADDRESS6,
    outside: OUTSIDE_ADDRESS6,
    loopback: "::1",
  },
};

/** Two pods on a host, another host beside it, and the host's rules for services in one address family. */
export interface Scene {
  readonly host: HostUnderTest;
  readonly outside: string;
  readonly a: PodSandbox;
  readonly b: PodSandbox;
  readonly rules: ServiceRules;
  /** Starts another agent on the same host. The previous one receives no further changes. */
  restarted(): Promise<void>;
  readonly problems: string[];
  /** The service's endpoints: a and b on this host, and the other host. */
  readonly endpoints: {
    readonly a: Endpoints[number];
    readonly b: Endpoints[number];
    readonly far: Endpoints[number];
  };
  set(...services: readonly Fields[]): Promise<void>;
}

export const NODE_PORT = 30_080;
export const OUTSIDE_PORT = 21_500;
const signal = new AbortController().signal;

/** Sets up the scene. The number distinguishes the hosts of one test file. */
export async function setUpScene(t: TestContext, number: number, places: SceneAddresses): Promise<Scene> {
  const { family, podCidr, gateway } = places;
  const outside = await makeOutsideHost(t);
  const host = await HostUnderTest.setUp(t, number, { podCidr6: family === 6 ? podCidr : undefined });
  const network = host.open();
  t.after(() => network.close());
  await network.start([], signal);
  const a = await network.attach("a", signal);
  const b = await network.attach("b", signal);
  await Promise.all([
    host.answer(nameOf(a), "a", 8080),
    host.answer(nameOf(b), "b", 8080),
    answerOutside(t, outside),
  ]);
  const problems: string[] = [];
  const onProblem = (event: string, error: unknown): number => problems.push(`${event}: ${error}`);
  const services = await KnownServices.open({
    dir: join(host.dataDir, "services"),
    clock: systemClock,
    onError: (error) => onProblem("services", error),
  });
  const { servicesTable: table, bridge } = instanceNames(host.instance);
  const parts = {
    services,
    viewpoint: { node: "here", reach: [4, 6] as const },
    table,
    podCidr,
    bridge,
    gateway,
    run: runCommand,
    onProblem,
  };
  const started: ServiceRules[] = [];
  const start = async (): Promise<ServiceRules> => {
    const rules = new ServiceRules(parts);
    started.push(rules);
    await rules.start();
    return rules;
  };
  const rules = await start();
  t.after(async () => {
    for (const it of started) await it.close();
    await services.close();
  });
  const podIp = ({ address, address6 }: PodSandbox): object =>
    family === 4 ? { podIp: address } : { podIpv6: address6 };
  const hostIp = (ip: string): object => (family === 4 ? { hostIp: ip } : { hostIpv6: ip });
  const endpoint = (pod: string, fields: object): Endpoints[number] => ({
    pod,
    node: "here",
    ...hostIp(places.host),
    hostPorts: [1, 1],
    ...fields,
  });
  return {
    host,
    outside,
    a,
    b,
    rules,
    restarted: async () => {
      for (const it of started) await it.close();
      await start();
    },
    problems,
    endpoints: {
      a: endpoint("a", podIp(a)),
      b: endpoint("b", podIp(b)),
      far: endpoint("far", {
        node: "there",
        ...hostIp(places.outside),
        hostPorts: [OUTSIDE_PORT, OUTSIDE_PORT],
      }),
    },
    set: async (...given) => {
      const upserts = given.map((fields) => aService({ virtualIps: [places.virtualIp], ...fields }));
      let changed: ReadonlySet<string> = new Set();
      const stop = services.subscribe((keys) => {
        changed = keys;
      });
      services.apply(
        ServiceUpdate.fromPartial({
          full: true,
          upserts,
          clusterDomain: "cluster.local",
          virtualIpRanges: [PLACES[4].range, PLACES[6].range],
        }),
      );
      stop();
      await rules.update(changed);
    },
  };
}

function aService(fields: Fields): ServiceState {
  const port = { port: 80, targetPort: 8080, nodePort: NODE_PORT };
  return ServiceState.fromPartial({
    namespace: "shop",
    name: "web",
    type: "NodePort",
    ports: [
      { ...port, name: "tcp", protocol: "TCP" },
      { ...port, name: "udp", protocol: "UDP" },
    ],
    ...fields,
  });
}

async function answerOutside(t: TestContext, namespace: string): Promise<void> {
  const script = join(import.meta.dirname, "answer.ts");
  const args = ["netns", "exec", namespace, execPath, script, "far", String(OUTSIDE_PORT)];
  const child = spawn("ip", args, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
}

export function nameOf({ namespacePath }: PodSandbox): string {
  return basename(namespacePath);
}

export function who(answer: string): string {
  return answer.split(" ")[0] ?? "";
}
