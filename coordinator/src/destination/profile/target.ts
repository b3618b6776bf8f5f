import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { addressOfNode } from "../../endpoints/change-keys.ts";
import {
  findService,
  listedPort,
  protocolOf,
  type ServiceEntry,
  targetPortOf,
} from "../../endpoints/endpoints.ts";
import { addressKey } from "../../ip/address.ts";
import { workloadKey } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Directory } from "../directory.ts";
import type { AddressPath, ServicePath } from "../path.ts";

/** The target of a path. */
export type Target =
  | { readonly type: "service"; readonly service: ServiceEntry; readonly port: number }
  | {
      readonly type: "pod";
      readonly pod: PodEntry;
      readonly containerPort: number;
      /** The address in the profile's endpoint. */
      readonly ip: string;
      readonly port: number;
    }
  | { readonly type: "unknown" }
  | { readonly type: "ambiguous"; readonly problem: string };

const UNKNOWN: Target = { type: "unknown" };

/** Returns the service with the name, or one of its pods by its hostname. */
export function targetOfName(path: ServicePath, { state }: Directory): Target {
  const service = findService(state, path.namespace, path.service);
  if (service === undefined) return UNKNOWN;
  if (path.hostname === "") return { type: "service", service, port: path.port };
  const pod = state.pod(path.namespace, path.hostname);
  const behind = workloadKey(path.namespace, "container_service", service.spec.target);
  if (service.spec.type !== "Headless" || pod?.workloadKey !== behind || !isRunning(pod)) return UNKNOWN;
  const containerPort = targetPortOf(service.spec.ports, path.port);
  const protocol = protocolOf(listedPort(service.spec.ports, path.port));
  const port = pod.status?.hostPorts.find(
    (p) => p.containerPort === containerPort && p.protocol === protocol,
  )?.hostPort;
  const ip = addressOfNode(state.node(pod.record.node));
  return port === undefined || addressKey(ip) === undefined
    ? UNKNOWN
    : { type: "pod", pod, containerPort, ip, port };
}

/**
 * Returns the service with the virtual IP, or the pod with this host address and port or pod IP.
 * Pods of different hosts can have the same IP; `clientNode` then decides.
 */
export function targetOfAddress(path: AddressPath, clientNode: string, directory: Directory): Target {
  const services = directory.virtualIps(path.ip);
  if (services.length > 1) return ambiguous(path, "services");
  const [named] = services;
  if (named !== undefined) {
    const service = findService(directory.state, named.namespace, named.service);
    return service === undefined ? UNKNOWN : { type: "service", service, port: path.port };
  }
  const onHosts = podsByHostPort(path, directory);
  const found = onHosts.length > 0 ? onHosts : podsByIp(path, clientNode, directory);
  if (found.length > 1) return ambiguous(path, "pods; the context token can name the node that is meant");
  const [only] = found;
  return only === undefined ? UNKNOWN : { type: "pod", ...only, ip: path.ip, port: path.port };
}

interface Found {
  readonly pod: PodEntry;
  readonly containerPort: number;
}

function podsByHostPort({ ip, port }: AddressPath, { addresses, state }: Directory): Found[] {
  return addresses.nodesAt(ip).flatMap(({ name }) =>
    state.podsOnNode(name).flatMap((pod): Found[] => {
      const mapping = pod.status?.hostPorts.find((p) => p.hostPort === port && p.protocol === "TCP");
      return mapping === undefined || !isRunning(pod) ? [] : [{ pod, containerPort: mapping.containerPort }];
    }),
  );
}

function podsByIp({ ip, port }: AddressPath, clientNode: string, { addresses, state }: Directory): Found[] {
  const pods = addresses.podsAt(ip).filter(isRunning);
  const near =
    state.node(clientNode) === undefined ? pods : pods.filter(({ record }) => record.node === clientNode);
  return near.map((pod) => ({ pod, containerPort: port }));
}

/**
 * Reports whether the pod runs, even if it is not ready or is stopping: a client that connects to a
 * pod's own address means exactly this pod.
 */
function isRunning({ status }: PodEntry): boolean {
  return status?.phase === PodPhase.RUNNING;
}

function ambiguous({ ip, port }: AddressPath, what: string): Target {
  return { type: "ambiguous", problem: `${ip}:${port} belongs to several ${what}` };
}
