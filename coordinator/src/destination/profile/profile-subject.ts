import { DestinationProfile } from "@forage/proto/destination";
import { dependency, zoneOfNode } from "../../endpoints/change-keys.ts";
import {
  findService,
  listedPort,
  protocolOf,
  type ServiceEntry,
  servicesBefore,
} from "../../endpoints/endpoints.ts";
import { opaqueByPod } from "../../endpoints/pod-opaque.ts";
import { CoordinatorError } from "../../errors.ts";
import type { Evaluation, Subject } from "../../feed/topic.ts";
import { toTcpAddress } from "../../ip/address.ts";
import { workloadKey } from "../../model/workload.ts";
import type { Directory } from "../directory.ts";
import { noHints } from "../hints/annotations.ts";
import { isOpaque } from "../hints/hints-of.ts";
import type { AddressPath, ServicePath } from "../path.ts";
import { endpointProfile } from "./endpoint-profile.ts";
import { emptyProfile, serviceProfile, unknownProfile } from "./service-profile.ts";
import { routesOf } from "./service-routes.ts";
import { type Target, targetOfAddress, targetOfName } from "./target.ts";

/** The state of a stream of profiles. */
export interface PublishedProfile {
  /** The owner's namespace. Undefined if there is none; then every client may see the profile. */
  readonly namespace: string | undefined;
  readonly bytes: Buffer;
  /** Set when there is no answer; the stream ends with it. */
  readonly problem: string | undefined;
}

/** The profile of a service or of the one pod that a path leads to. Its key can change with what is at an address. */
export function profileSubject(
  path: ServicePath | AddressPath,
  clientNode: string,
  directory: Directory,
): Subject<PublishedProfile> {
  const node = path.kind === "address" && nodeDecides(path, directory) ? clientNode : "";
  return {
    key: keyOf(path, node),
    look: (previous) => {
      const target =
        path.kind === "service" ? targetOfName(path, directory) : targetOfAddress(path, node, directory);
      return lookAt(target, path, directory, previous);
    },
    messages: (from, to) => {
      // A subscriber may come from another topic with an equal profile.
      if (from !== undefined && sameProfile(from, to)) return [];
      if (to.problem !== undefined) throw new CoordinatorError("FAILED_PRECONDITION", to.problem);
      return [to.bytes];
    },
  };
}

/**
 * Reports whether the answer depends on the node: each host has its own pod network, so a pod's IP means another pod
 * elsewhere. All other answers are the same for everyone.
 */
function nodeDecides({ ip }: AddressPath, { virtualIps, addresses }: Directory): boolean {
  return virtualIps(ip).length === 0 && addresses.podsAt(ip).length > 0;
}

function keyOf(path: ServicePath | AddressPath, clientNode: string): string {
  if (path.kind === "address") return `profile/${path.ip}/${path.port}/${clientNode}`;
  return `profile/${path.namespace}/${path.service}/${path.hostname}/${path.port}`;
}

function lookAt(
  target: Target,
  path: ServicePath | AddressPath,
  directory: Directory,
  previous: PublishedProfile | undefined,
): Evaluation<PublishedProfile> {
  const namespace = namespaceOf(target);
  const problem = target.kind === "ambiguous" ? target.problem : undefined;
  const bytes = Buffer.from(DestinationProfile.encode(profileOf(target, directory)).finish());
  const next = { namespace, problem, bytes };
  const state = previous !== undefined && sameProfile(previous, next) ? previous : next;
  return { state, dependsOn: dependenciesOf(target, path, directory) };
}

function sameProfile(a: PublishedProfile, b: PublishedProfile): boolean {
  return a.namespace === b.namespace && a.problem === b.problem && a.bytes.equals(b.bytes);
}

function dependenciesOf(
  target: Target,
  path: ServicePath | AddressPath,
  { state, virtualIps }: Directory,
): string[] {
  const keys: string[] = [];
  if (path.kind === "address") {
    keys.push(dependency.address(path.ip));
    for (const { namespace, service } of virtualIps(path.ip))
      keys.push(dependency.service(namespace, service));
  } else {
    keys.push(dependency.service(path.namespace, path.service));
    const service = findService(state, path.namespace, path.service);
    if (path.hostname !== "" && service !== undefined) {
      keys.push(dependency.workload(workloadKey(path.namespace, "container_service", service.spec.target)));
    }
  }
  if (target.kind === "service") keys.push(dependency.routes(target.service.record.namespace));
  // Another service may come to stand before the pod, and the node's zone may change.
  if (target.kind === "pod") {
    keys.push(dependency.services(target.pod.record.namespace), dependency.node(target.pod.record.node));
    keys.push(dependency.workload(target.pod.workloadKey));
  }
  return keys;
}

function namespaceOf(target: Target): string | undefined {
  if (target.kind === "service") return target.service.record.namespace;
  return target.kind === "pod" ? target.pod.record.namespace : undefined;
}

function profileOf(target: Target, directory: Directory): DestinationProfile {
  switch (target.kind) {
    case "service":
      return profileOfService(target.service, target.port, directory);
    case "pod":
      return profileOfPod(target, directory);
    case "unknown":
    case "ambiguous":
      return unknownProfile;
    default:
      return target satisfies never;
  }
}

function profileOfService(entry: ServiceEntry, port: number, { state, hints, domain }: Directory) {
  const { namespace, name } = entry.record;
  const listed = listedPort(entry.spec.ports, port);
  // Proxies speak TCP; ports of other protocols are none to them.
  if (listed === undefined || protocolOf(listed) !== "TCP") return emptyProfile;
  const known = hints.of(entry.record);
  return serviceProfile(
    {
      namespace,
      service: name,
      port,
      opaque: isOpaque(known, listed),
      hints: known,
      routes: routesOf(state, namespace, name),
    },
    domain,
  );
}

function profileOfPod(target: Extract<Target, { kind: "pod" }>, { state, hints }: Directory) {
  const { pod, containerPort, ip, port } = target;
  const address = toTcpAddress(ip, port);
  if (address === undefined) return unknownProfile;
  const { namespace, name, node, workloadName } = pod.record;
  const before = servicesBefore(state, pod, containerPort)[0];
  return endpointProfile(
    {
      address,
      namespace,
      pod: name,
      node,
      zone: zoneOfNode(state.node(node)),
      workload: workloadName,
      port: before?.port ?? { port: containerPort, name: "" },
      hints: before && hints.of(before.entry.record),
      opaque: opaqueByPod(pod.record.template, containerPort),
    },
    noHints,
  );
}
