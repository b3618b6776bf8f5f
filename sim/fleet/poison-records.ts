import { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  CertificateRecord,
  EventRecord,
  IssuerPauseRecord,
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
import { InstanceSecretsRecord } from "@forage/proto/forage/workspaces/v1/records";
import { encodeJsonRecord } from "../../coordinator/src/model/codec.ts";
import type { Poisons } from "./poison-store.ts";
import {
  ABSURD,
  asking,
  BEFORE,
  container,
  HUGE,
  MOST,
  NAMESPACE,
  node,
  POISON_NODE,
  pod,
  put,
  raw,
  resource,
  workload,
} from "./poison-store.ts";

/** Invalid records of all kinds other than workloads. */
export const poisonedRecords: Poisons = {
  "pod: no template": (on) => [
    pod("bare", { template: undefined, node: on }),
    pod("dangling", { templateRef: "none", node: on }),
  ],
  "pod: no dates": (on) => [
    pod("dated", {
      node: on,
      boundAt: ABSURD,
      createdAt: BEFORE,
      drainingSince: ABSURD,
      drainCause: "rebalance",
    }),
    pod("stopping", { node: on, stoppingSince: ABSURD }),
    pod("drained", { node: on, drainingSince: BEFORE, drainCause: "drain" }),
    workload("dated", {}),
  ],
  "pod: nobody's": (on) => [
    pod("orphan", { workloadKind: "nonsense", workloadName: "", node: on }),
    pod("lost", { node: "gone", job: { run: "none", index: HUGE } }),
    pod("twin", { uid: "", node: on }),
  ],
  "pod: too much for its node": (on) => [
    pod("large", { node: on, template: { container: asking("5Pi"), sidecars: [asking("5Pi", "side")] } }),
    workload("large", {}),
  ],
  "pod status: nonsense": (on) => [
    workload("sick", {}),
    pod("sick", { node: on }),
    put(`statuses/${NAMESPACE}/sick`, PodStatusRecord, {
      ...{ node: "elsewhere", observedAt: ABSURD, readySince: BEFORE },
      status: PodStatus.fromPartial({
        ...{ uid: "another", phase: 99, ready: true, podIp: "banana", podIps: ["", ":::"] },
        containers: [
          { name: "", restartCount: HUGE, lastTermination: { exitCode: -HUGE, finishedAt: ABSURD } },
        ],
        hostPorts: [{ container: "x", containerPort: MOST, hostPort: MOST, protocol: "Nonsense" }],
      } as object),
    }),
  ],
  "pod template: nothing in it": (on) => [
    put(`pod-templates/${NAMESPACE}/container_service/shared/none`, PodTemplateRecord, {}),
    pod("shared", { templateRef: "none", template: undefined, node: on }),
  ],
  "service: ports that are none": () => [
    resource("service", "service", "ports", {
      target: "",
      ports: [{ port: 0, targetPort: MOST, nodePort: HUGE, protocol: "Nonsense" }, { name: "named" }],
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
    put(`service-addresses/${NAMESPACE}/addressed`, ServiceAddressRecord, {
      ...{
        namespace: NAMESPACE,
        name: "addressed",
        virtualIps: ["banana", ""],
        loadBalancerIps: ["::::"],
        announcedBy: "nobody",
      },
      ...{ nodePorts: [{ port: 0, protocol: "", nodePort: MOST }], releasedAt: ABSURD },
    }),
    put(`service-addresses/${NAMESPACE}/unnamed`, ServiceAddressRecord, { releasedAt: ABSURD }),
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
            backends: [{ serviceName: "", port: 0, weight: MOST }],
            filters: [{}],
            timeout: "banana",
          },
        ],
        priority: -HUGE,
      },
      { createdAt: ABSURD },
    ),
  ],
  "secret: content that can't be opened": () => [
    put(`objects/${NAMESPACE}/secret/sealed`, ObjectRecord, {
      ...{
        namespace: NAMESPACE,
        kind: "secret",
        name: "sealed",
        versions: ["v1", "gone"],
        createdAt: ABSURD,
      },
    }),
    put(`object-versions/${NAMESPACE}/secret/sealed/v1`, ObjectVersionRecord, {
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
    put(`objects/${NAMESPACE}/config_map/empty`, ObjectRecord, {
      namespace: NAMESPACE,
      kind: "config_map",
      name: "empty",
      versions: ["v1"],
    }),
    put(`object-versions/${NAMESPACE}/config_map/empty/v1`, ObjectVersionRecord, {
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
    put(`objects/${NAMESPACE}/registry_credential/none`, ObjectRecord, {
      namespace: NAMESPACE,
      kind: "registry_credential",
      name: "none",
    }),
  ],
  "claim: no size": (on) => [
    put(`objects/${NAMESPACE}/claim/data`, ObjectRecord, {
      ...{ namespace: NAMESPACE, kind: "claim", name: "data", createdAt: BEFORE },
      spec: {
        $case: "claim",
        value: { capacity: "banana", capacityBytes: 2n ** 63n, node: on, deleting: true },
      },
    }),
    put(`objects/${NAMESPACE}/claim/bare`, ObjectRecord, {
      namespace: NAMESPACE,
      kind: "claim",
      name: "bare",
    }),
    workload("claims", { volumes: [{ name: "data", source: { $case: "claim", value: { name: "bare" } } }] }),
  ],
  "priority class: no value": () => [
    put("objects//priority_class/none", ObjectRecord, { kind: "priority_class", name: "none" }),
    workload("class", { podConfig: { priorityClassName: "none" } }),
  ],
  "namespace policy and quota: no amounts": () => [
    put(`namespaces/${NAMESPACE}`, NamespaceRecord, {
      name: NAMESPACE,
      quota: { pods: "banana", cpu: "-1", "": "", nonsense: "1" },
      policies: [{ profile: "nonsense", hostPaths: ["../.."] } as object],
      updatedAt: ABSURD,
    }),
    workload("ruled", {}),
  ],
  "node: an absurd record": () => [
    ...node("record", {
      taints: [
        { key: "", effect: "Nonsense", addedAt: ABSURD },
        { key: "gpu", effect: "NoExecute", addedAt: BEFORE },
      ],
      labels: { "": "", "forage.dev/gateway": " " },
      unreachableSince: ABSURD,
      notReadySince: BEFORE,
      drain: { startedAt: ABSURD, deadline: ABSURD, bootId: "x", uncordonOnReturn: true },
      certificateEnds: ABSURD,
    }),
    pod("there", { node: `${POISON_NODE}-record` }),
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
        conditions: [{ type: "", status: "Nonsense", since: ABSURD }],
        networks: ["banana/99"],
        claims: [{ namespace: "", name: "" }],
      },
    ),
  "rollout: of nothing": () => [
    put("rollouts/r-poison", RolloutRecord, {
      ...{ id: "r-poison", namespace: NAMESPACE, createdAt: ABSURD },
      resources: [
        { kind: "nonsense", name: "" },
        { kind: "container_service", name: "gone", action: "nonsense", status: 99 },
      ],
    }),
    put("rollouts/r-unnamed", RolloutRecord, { createdAt: BEFORE }),
  ],
  "revision: of nothing": () => [
    workload("revised", {}),
    put(`revisions/${NAMESPACE}/container_service/revised/0000000001`, RevisionRecord, {
      ...{
        namespace: NAMESPACE,
        kind: "container_service",
        name: "revised",
        number: 1,
        good: true,
        restartedAt: ABSURD,
        templateHash: "x",
      },
      resource: { name: "revised", spec: { $case: "containerService", value: {} } },
    }),
    put(`workload-statuses/${NAMESPACE}/container_service/revised`, WorkloadStatusRecord, {
      ...{ namespace: NAMESPACE, kind: "container_service", name: "revised" },
      status: {
        $case: "containerService",
        value: {
          attempt: {
            generation: 1n,
            state: 4,
            rolledBackTo: 1,
            startedAt: ABSURD,
            progressedAt: BEFORE,
            progress: -HUGE,
          },
        },
      },
    }),
  ],
  "scale: more than is allowed": () => [
    workload("scaled", {
      scaling: { replicas: 1, autoscaling: { minReplicas: 1, maxReplicas: 3, metrics: [] } },
    }),
    put(`scales/${NAMESPACE}/scaled`, ScaleRecord, {
      namespace: NAMESPACE,
      name: "scaled",
      replicas: MOST,
      scaledAt: ABSURD,
    }),
  ],
  "API token and join token: no token": () => [
    { type: "put", key: "api-tokens/null", value: encodeJsonRecord(null) },
    { type: "put", key: "api-tokens/list", value: encodeJsonRecord([{}]) },
    { type: "put", key: "join-tokens/null", value: encodeJsonRecord(null) },
    { type: "put", key: "api-token-uses/null", value: encodeJsonRecord("x") },
    { type: "put", key: "coordinator-tokens/null", value: encodeJsonRecord(null) },
    raw("coordinator-tokens/raw", 1, 0x7b),
  ],
  "event: at no date": () => [
    put("events/0000000000000001", EventRecord, {
      sequence: 1n,
      firstAt: ABSURD,
      lastAt: ABSURD,
      count: MOST,
    }),
  ],
  "certificate and issuer: no keys": () => [
    put("certificates/poison.example", CertificateRecord, {
      ...{ hostname: "poison.example", issuer: "nobody", renewAt: ABSURD, retryAt: BEFORE },
      key: { keyId: "unknown", nonce: Buffer.of(1), ciphertext: Buffer.of(2) },
    }),
    put("certificate-issuers/pause", IssuerPauseRecord, { failures: MOST, until: ABSURD }),
    raw("certificates/raw.example", 1, 255, 255, 255),
    raw("certificate-issuers/self-signed", 1, 255, 255, 255),
    raw("certificate-issuers/acme/raw", 1, 255, 255, 255),
  ],
  "issuer pause: no pause": () => [raw("certificate-issuers/pause", 1, 255, 255, 255)],
  "workspace secret: no key": () => [
    put("workspaces/secrets/poison", InstanceSecretsRecord, {
      key: { keyId: "unknown", nonce: Buffer.of(1), ciphertext: Buffer.of(2) },
    }),
    raw("workspaces/secrets/raw", 1, 255, 255, 255),
  ],
  "notification: no place": () => [
    { type: "put", key: "notifications/null", value: encodeJsonRecord(null) },
    raw("notifications/raw", 1, 0x7b),
  ],
  "records that can't be decoded": () => [
    raw(`statuses/${NAMESPACE}/raw`, 1, 255, 255, 255),
    raw("rollouts/r-raw", 1, 255, 255, 255),
    raw("api-tokens/raw", 1, 0x7b),
    raw(`reports/${POISON_NODE}-raw`, 1, 255, 255, 255),
    raw("events/0000000000000002", 1, 255, 255, 255),
    raw(`applies/${NAMESPACE}/raw`, 1, 255, 255, 255),
  ],
};
