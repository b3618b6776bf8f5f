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
  /**
   * The owner's namespace. Undefined if there is no owner; then every client may see the profile.
   */
  readonly namespace: string | undefined;
  readonly bytes: Buffer;
  /** The error that ends the stream, if there is no answer. */
  readonly problem: string | undefined;
}

/**
 * Returns the topic of the profile for the service or pod to which a path leads. The topic changes
 * when an address gets another owner.
 */
export function profileSubject(
  path: ServicePath | AddressPath,
  clientNode: string,
  directory: Directory,
): Subject<PublishedProfile> {
  const node = path.type === "address" && nodeDecides(path, directory) ? clientNode : "";
  return {
    key: keyOf(path, node),
    evaluate: (previous) => {
      const target =
        path.type === "service" ? targetOfName(path, directory) : targetOfAddress(path, node, directory);
      return evaluate(target, path, directory, previous);
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
 * Reports whether the answer depends on the client's node. Each host has its own pod network, so
 * the same pod IP can mean another pod on another host. All other answers are equal for all nodes.
 */
function nodeDecides({ ip }: AddressPath, { virtualIps, addresses }: Directory): boolean {
  return virtualIps(ip).length === 0 && addresses.podsAt(ip).length > 0;
}

function keyOf(path: ServicePath | AddressPath, clientNode: string): string {
  if (path.type === "address") return `profile/${path.ip}/${path.port}/${clientNode}`;
  return `profile/${path.namespace}/${path.service}/${path.hostname}/${path.port}`;
}

function evaluate(
  target: Target,
  path: ServicePath | AddressPath,
  directory: Directory,
  previous: PublishedProfile | undefined,
): Evaluation<PublishedProfile> {
  const namespace = namespaceOf(target);
  const problem = target.type === "ambiguous" ? target.problem : undefined;
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
  if (path.type === "address") {
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
  if (target.type === "service") keys.push(dependency.routes(target.service.record.namespace));
  // Another service may select the pod, and the zone of the node may change.
  if (target.type === "pod") {
    keys.push(dependency.services(target.pod.record.namespace), dependency.node(target.pod.record.node));
    keys.push(dependency.workload(target.pod.workloadKey));
  }
  return keys;
}

function namespaceOf(target: Target): string | undefined {
  if (target.type === "service") return target.service.record.namespace;
  return target.type === "pod" ? target.pod.record.namespace : undefined;
}

function profileOf(target: Target, directory: Directory): DestinationProfile {
  switch (target.type) {
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
  // Proxies support TCP only, so a port of another protocol counts as missing.
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

function profileOfPod(target: Extract<Target, { type: "pod" }>, { state, hints }: Directory) {
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
