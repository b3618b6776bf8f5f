import { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  EventRecord,
  NamespaceRecord,
  ObjectRecord,
  ObjectVersionRecord,
  PodStatusRecord,
  PodTemplateRecord,
  RevisionRecord,
  RolloutRecord,
  ScaleRecord,
  ServiceAddressRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { encodeJsonRecord } from "../../src/model/codec.ts";
import type { Poisons } from "./poison-store.ts";
import {
  absurd,
  asking,
  before,
  container,
  huge,
  most,
  namespace,
  node,
  pod,
  poisonNode,
  put,
  raw,
  resource,
  workload,
} from "./poison-store.ts";

/** Everything else that the store holds. */
export const poisonedRecords: Poisons = {
  "pod: no template": (on) => [
    pod("bare", { template: undefined, node: on }),
    pod("dangling", { templateRef: "none", node: on }),
  ],
  "pod: no dates": (on) => [
    pod("dated", {
      node: on,
      boundAt: absurd,
      createdAt: before,
      drainingSince: absurd,
      drainCause: "rebalance",
    }),
    pod("stopping", { node: on, stoppingSince: absurd }),
    pod("drained", { node: on, drainingSince: before, drainCause: "drain" }),
    workload("dated", {}),
  ],
  "pod: nobody's": (on) => [
    pod("orphan", { workloadKind: "nonsense", workloadName: "", node: on }),
    pod("lost", { node: "gone", job: { run: "none", index: huge } }),
    pod("twin", { uid: "", node: on }),
  ],
  "pod: too much for its node": (on) => [
    pod("large", { node: on, template: { container: asking("5Pi"), sidecars: [asking("5Pi", "side")] } }),
    workload("large", {}),
  ],
  "pod status: nonsense": (on) => [
    workload("sick", {}),
    pod("sick", { node: on }),
    put(`statuses/${namespace}/sick`, PodStatusRecord, {
      ...{ node: "elsewhere", observedAt: absurd, readySince: before },
      status: PodStatus.fromPartial({
        ...{ uid: "another", phase: 99, ready: true, podIp: "banana", podIps: ["", ":::"] },
        containers: [
          { name: "", restartCount: huge, lastTermination: { exitCode: -huge, finishedAt: absurd } },
        ],
        hostPorts: [{ container: "x", containerPort: most, hostPort: most, protocol: "Nonsense" }],
      } as object),
    }),
  ],
  "pod template: nothing in it": (on) => [
    put(`pod-templates/${namespace}/container_service/shared/none`, PodTemplateRecord, {}),
    pod("shared", { templateRef: "none", template: undefined, node: on }),
  ],
  "service: ports that are none": () => [
    resource("service", "service", "ports", {
      target: "",
      ports: [{ port: 0, targetPort: most, nodePort: huge, protocol: "Nonsense" }, { name: "named" }],
      type: "Nonsense",
      sessionAffinity: "ClientIP",
      annotations: {
        "forage.dev/session-affinity-seconds": "banana",
        "forage.dev/load-balancer-ip": "banana,,",
      },
    }),
    resource("service", "service", "balanced", {
      target: "web",
      type: "LoadBalancer",
      ports: [{ port: 70_000 }],
      annotations: { "forage.dev/load-balancer-ip": "300.1.1.1" },
    }),
  ],
  "service address: no addresses": () => [
    resource("service", "service", "addressed", { target: "web", ports: [{ port: 80 }] }),
    put(`service-addresses/${namespace}/addressed`, ServiceAddressRecord, {
      ...{
        namespace,
        name: "addressed",
        virtualIps: ["banana", ""],
        loadBalancerIps: ["::::"],
        announcedBy: "nobody",
      },
      ...{ nodePorts: [{ port: 0, protocol: "", nodePort: most }], releasedAt: absurd },
    }),
    put(`service-addresses/${namespace}/unnamed`, ServiceAddressRecord, { releasedAt: absurd }),
  ],
  "route: rules that are none": () => [
    resource(
      "route",
      "route",
      "rules",
      {
        hostnames: ["", "*.*", "a b", "x".repeat(5_000)],
        rules: [
          {
            matches: [
              {
                path: { type: "RegularExpression", value: "(" },
                headers: [{ name: "", type: "Nonsense", value: "(" }],
              },
            ],
            backends: [{ serviceName: "", port: 0, weight: most }],
            filters: [{}],
            timeout: "banana",
          },
        ],
        priority: -huge,
      },
      { createdAt: absurd },
    ),
  ],
  "secret: content that can't be opened": () => [
    put(`objects/${namespace}/secret/sealed`, ObjectRecord, {
      ...{ namespace, kind: "secret", name: "sealed", versions: ["v1", "gone"], createdAt: absurd },
    }),
    put(`object-versions/${namespace}/secret/sealed/v1`, ObjectVersionRecord, {
      version: "v1",
      content: {
        $case: "sealed",
        value: { keyId: "unknown", nonce: Uint8Array.of(1), ciphertext: Uint8Array.of(2) },
      },
    }),
    workload("sealed", {
      container: {
        ...container,
        envFrom: [{ source: { $case: "secret", value: { name: "sealed" } } }],
      } as object,
    }),
    resource("route", "route", "tls", {
      targetService: "web",
      hostnames: ["tls.example"],
      tls: { mode: "Terminate", certificateRef: "sealed" },
    }),
  ],
  "config map: no content": () => [
    put(`objects/${namespace}/config_map/empty`, ObjectRecord, {
      namespace,
      kind: "config_map",
      name: "empty",
      versions: ["v1"],
    }),
    put(`object-versions/${namespace}/config_map/empty/v1`, ObjectVersionRecord, {
      version: "v1",
      content: { $case: "plain", value: Uint8Array.of(255, 255) },
    }),
    workload("config", {
      container: {
        ...container,
        envFrom: [{ source: { $case: "configMap", value: { name: "empty" } } }],
      } as object,
    }),
  ],
  "registry credential: no registry": () => [
    put(`objects/${namespace}/registry_credential/none`, ObjectRecord, {
      namespace,
      kind: "registry_credential",
      name: "none",
    }),
  ],
  "claim: no size": (on) => [
    put(`objects/${namespace}/claim/data`, ObjectRecord, {
      ...{ namespace, kind: "claim", name: "data", createdAt: before },
      spec: {
        $case: "claim",
        value: { capacity: "banana", capacityBytes: 2n ** 63n, node: on, deleting: true },
      },
    }),
    put(`objects/${namespace}/claim/bare`, ObjectRecord, { namespace, kind: "claim", name: "bare" }),
    workload("claims", { volumes: [{ name: "data", source: { $case: "claim", value: { name: "bare" } } }] }),
  ],
  "priority class: no value": () => [
    put("objects//priority_class/none", ObjectRecord, { kind: "priority_class", name: "none" }),
    workload("class", { podConfig: { priorityClassName: "none" } }),
  ],
  "namespace policy and quota: no amounts": () => [
    put(`namespaces/${namespace}`, NamespaceRecord, {
      name: namespace,
      quota: { pods: "banana", cpu: "-1", "": "", nonsense: "1" },
      policies: [{ profile: "nonsense", hostPaths: ["../.."] } as object],
      updatedAt: absurd,
    }),
    workload("ruled", {}),
  ],
  "node: an absurd record": () => [
    ...node("record", {
      taints: [
        { key: "", effect: "Nonsense", addedAt: absurd },
        { key: "gpu", effect: "NoExecute", addedAt: before },
      ],
      labels: { "": "", "forage.dev/gateway": " " },
      unreachableSince: absurd,
      notReadySince: before,
      drain: { startedAt: absurd, deadline: absurd, bootId: "x", uncordonOnReturn: true },
      certificateEnds: absurd,
    }),
    pod("there", { node: `${poisonNode}-record` }),
  ],
  "node: an absurd report": () =>
    node(
      "report",
      {},
      {
        ...{
          allocatable: { cpu: "lots", memory: "-1", pods: "1e99" },
          capacity: { cpu: "" },
          address: "banana",
        },
        addresses: ["", "::::"],
        conditions: [{ type: "", status: "Nonsense", since: absurd }],
        networks: ["banana/99"],
        claims: [{ namespace: "", name: "" }],
      },
    ),
  "rollout: of nothing": () => [
    put("rollouts/r-poison", RolloutRecord, {
      ...{ id: "r-poison", namespace, createdAt: absurd },
      resources: [
        { kind: "nonsense", name: "" },
        { kind: "container_service", name: "gone", action: "nonsense", status: 99 },
      ],
    }),
    put("rollouts/r-unnamed", RolloutRecord, { createdAt: before }),
  ],
  "revision: of nothing": () => [
    workload("revised", {}),
    put(`revisions/${namespace}/container_service/revised/0000000001`, RevisionRecord, {
      ...{
        namespace,
        kind: "container_service",
        name: "revised",
        number: 1,
        good: true,
        restartedAt: absurd,
        templateHash: "x",
      },
      resource: { name: "revised", spec: { $case: "containerService", value: {} } },
    }),
    put(`workload-statuses/${namespace}/container_service/revised`, WorkloadStatusRecord, {
      ...{ namespace, kind: "container_service", name: "revised" },
      status: {
        $case: "containerService",
        value: {
          attempt: {
            generation: 1n,
            state: 4,
            rolledBackTo: 1,
            startedAt: absurd,
            progressedAt: before,
            progress: -huge,
          },
        },
      },
    }),
  ],
  "scale: more than is allowed": () => [
    workload("scaled", {
      scaling: { replicas: 1, autoscaling: { minReplicas: 1, maxReplicas: 3, metrics: [] } },
    }),
    put(`scales/${namespace}/scaled`, ScaleRecord, {
      namespace,
      name: "scaled",
      replicas: most,
      scaledAt: absurd,
    }),
  ],
  "API token and join token: no token": () => [
    { kind: "put", key: "api-tokens/null", value: encodeJsonRecord(null) },
    { kind: "put", key: "api-tokens/list", value: encodeJsonRecord([{}]) },
    { kind: "put", key: "join-tokens/null", value: encodeJsonRecord(null) },
    { kind: "put", key: "api-token-uses/null", value: encodeJsonRecord("x") },
  ],
  "event: at no date": () => [
    put("events/0000000000000001", EventRecord, {
      sequence: 1n,
      firstAt: absurd,
      lastAt: absurd,
      count: most,
    }),
  ],
  "records that can't be decoded": () => [
    raw(`statuses/${namespace}/raw`, 1, 255, 255, 255),
    raw("rollouts/r-raw", 1, 255, 255, 255),
    raw("api-tokens/raw", 1, 0x7b),
    raw(`reports/${poisonNode}-raw`, 1, 255, 255, 255),
    raw("events/0000000000000002", 1, 255, 255, 255),
    raw(`applies/${namespace}/raw`, 1, 255, 255, 255),
  ],
};
