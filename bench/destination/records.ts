import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  NodeRecord,
  NodeStatusRecord,
  PodRecord,
  PodStatusRecord,
  ResourceRecord,
} from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey, podKey, reportKey, resourceKey, statusKey } from "../../coordinator/src/model/keys.ts";
import type { Op } from "../../coordinator/src/store/index.ts";

const NAMESPACE = "shop";
const NAME = "web";
const ZONES = 3;

/** Returns the operations that create a service of one port. */
export function serviceOps(): Op[] {
  const value = { target: NAME, ports: [{ name: "http", port: 80, targetPort: 8080 }] };
  const resource = ForageResource.fromPartial({ name: NAME, spec: { $case: "service", value } });
  const record = ResourceRecord.fromPartial({ namespace: NAMESPACE, kind: "service", name: NAME, resource });
  return [put(resourceKey(NAMESPACE, "service", NAME), encodeRecord(ResourceRecord, record))];
}

export function nodeOps(index: number): Op[] {
  const node = nodeName(index);
  const labels = { "topology.kubernetes.io/zone": `zone-${index % ZONES}` };
  const record = NodeRecord.fromPartial({ name: node, labels });
  const report = NodeStatusRecord.fromPartial({ name: node, report: { address: `192.0.2.${index + 1}` } });
  return [
    put(nodeKey(node), encodeRecord(NodeRecord, record)),
    put(reportKey(node), encodeRecord(NodeStatusRecord, report)),
  ];
}

export function nodeName(index: number): string {
  return `node-${index}`;
}

export function podOps(index: number, node: string): Op[] {
  const record = PodRecord.fromPartial({
    uid: `uid-${index}`,
    namespace: NAMESPACE,
    name: `${NAME}-${index}`,
    workloadKind: "container_service",
    workloadName: NAME,
    node,
  });
  return [
    put(podKey(NAMESPACE, record.name), encodeRecord(PodRecord, record)),
    ...statusOps(index, node, true),
  ];
}

export function statusOps(index: number, node: string, ready: boolean): Op[] {
  const hostPorts = [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_000 + index }];
  const status = PodStatus.fromPartial({ uid: `uid-${index}`, phase: PodPhase.RUNNING, ready, hostPorts });
  const record = PodStatusRecord.fromPartial({ node, status });
  return [put(statusKey(NAMESPACE, `${NAME}-${index}`), encodeRecord(PodStatusRecord, record))];
}

function put(key: string, value: Uint8Array): Op {
  return { type: "put", key, value };
}
