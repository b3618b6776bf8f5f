import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseSource } from "../manifest/document.ts";
import { type Converted, convertKubernetes, isKubernetes } from "./convert.ts";

function convert(yaml: string): Converted {
  const { documents, problems } = parseSource({ name: "k8s.yaml", text: yaml });
  assert.deepEqual(problems, []);
  assert.ok(documents.every(isKubernetes), yaml);
  return convertKubernetes(documents);
}

const META = "metadata: {name: web}";
const POD =
  "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}}";
const DEPLOYMENT = `{apiVersion: apps/v1, kind: Deployment, ${META}, spec: {${POD}}}`;
const service = (spec: string): string => `{apiVersion: v1, kind: Service, ${META}, spec: {${spec}}}`;
const ingress = (spec: string, more = ""): string =>
  `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web${more}}, spec: {${spec}}}`;
const autoscaler = (spec: string): string =>
  `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, ${META}, spec: {scaleTargetRef: {kind: Deployment, name: web}, ${spec}}}`;
const secret = (fields: string): string => `{apiVersion: v1, kind: Secret, ${META}, ${fields}}`;

function written({ parts, problems, losses }: Converted): readonly object[] {
  assert.deepEqual([problems, losses], [[], []]);
  return parts.map(({ written: each }) => each);
}

describe("workloads", () => {
  test("gives a StatefulSet with one replica a claim with the name that it has in Kubernetes", () => {
    const claims =
      "volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]";
    const set = (more: string): string =>
      `{apiVersion: apps/v1, kind: StatefulSet, ${META}, spec: {${POD}, ${claims}${more}}}`;
    const [claim, workload] = written(convert(set("")));
    assert.deepEqual(claim, { name: "data-web-0", labels: {}, claim: { capacity: "1Gi" } });
    const spec = (workload as { container_service: Record<string, unknown> }).container_service;
    assert.deepEqual(spec.volumes, [{ name: "data", pvc: { claim_name: "data-web-0" } }]);
    assert.deepEqual(spec.update_strategy, {
      type: "RollingUpdate",
      rolling_update: { max_unavailable: "1", max_surge: "0" },
    });
    const { problems, losses } = convert(set(", replicas: 3"));
    assert.match(problems[0]?.message ?? "", /a claim for each of 3 ordinals/);
    assert.match(losses[0]?.message ?? "", /pods with ordinals/);
  });

  test("reports a DaemonSet as a loss, and converts it to a workload with at most one pod on each node", () => {
    const { parts, losses } = convert(`{apiVersion: apps/v1, kind: DaemonSet, ${META}, spec: {${POD}}}`);
    assert.match(losses[0]?.message ?? "", /a DaemonSet has no counterpart/);
    assert.match(JSON.stringify(parts[0]?.written), /"topology_key":"kubernetes.io\/hostname"/);
  });

  test("converts restarting init containers to sidecars, and omits the mounts of lost volumes", () => {
    const { parts, losses } = convert(
      `{apiVersion: apps/v1, kind: Deployment, ${META}, spec: {template: {spec: {
        initContainers: [{name: proxy, image: p, restartPolicy: Always}, {name: first, image: f}],
        containers: [{name: web, image: w, volumeMounts: [{name: cloud, mountPath: /c}, {name: tmp, mountPath: /t}]}, {name: second, image: s}],
        volumes: [{name: cloud, csi: {driver: d}}, {name: tmp}]}}}}`,
    );
    assert.deepEqual(
      losses.map(({ path }) => path),
      ["spec.template.spec.volumes[0].csi"],
    );
    const spec = parts[0]?.written.container_service as Record<string, readonly Record<string, unknown>[]>;
    assert.deepEqual(
      spec.sidecars?.map(({ name }) => name),
      ["proxy", "second"],
    );
    assert.deepEqual(
      spec.init_containers?.map(({ name }) => name),
      ["first"],
    );
    assert.deepEqual(spec.volumes, [{ name: "tmp", empty_dir: {} }]);
    assert.deepEqual((spec.container as unknown as Record<string, unknown>).volume_mounts, [
      { name: "tmp", mount_path: "/t" },
    ]);
  });

  test("gives the autoscaler's workload limits, a size within them and a target", () => {
    const [workload] = written(
      convert(`${DEPLOYMENT}\n---\n${autoscaler("minReplicas: 2, maxReplicas: 5")}`),
    );
    assert.deepEqual((workload as { container_service: { scaling: unknown } }).container_service.scaling, {
      replicas: 2,
      autoscaling: { min_replicas: 2, max_replicas: 5, target_cpu_utilization_percent: 80 },
    });
    assert.match(
      convert(autoscaler("maxReplicas: 5")).problems[0]?.message ?? "",
      /names no workload of the files/,
    );
    for (const metric of ["metric: {name: queue}, target: {type: Value}", "target: {value: 5}"])
      assert.match(
        convert(
          `${DEPLOYMENT}\n---\n${autoscaler(`maxReplicas: 5, metrics: [{type: External, external: {${metric}}}]`)}`,
        ).problems[0]?.message ?? "",
        /has no name, or no target with a value/,
      );
    const two = `${DEPLOYMENT}\n---\n${autoscaler("maxReplicas: 5")}\n---\n${autoscaler("maxReplicas: 6")}`;
    assert.match(convert(two).problems[0]?.message ?? "", /as another autoscaler does/);
  });

  test("keeps the absence of retries of a job, and accepts only one container", () => {
    const job = (spec: string, more = ""): string =>
      `{apiVersion: batch/v1, kind: Job, ${META}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}${more}]${spec}}}}}`;
    assert.deepEqual(written(convert(job("")))[0], {
      name: "web",
      job: {
        container: { name: "a", image: "a" },
        job_config: { restart_policy: "Never" },
        pod_config: { labels: {}, annotations: { "forage.dev/backoff-limit": "0" } },
      },
    });
    const paths = [job(", initContainers: [{name: i, image: i}]"), job("", ", {name: b, image: b}")].map(
      (yaml) => convert(yaml).losses[0]?.path,
    );
    assert.deepEqual(paths, ["spec.template.spec.initContainers", "spec.template.spec.containers[1]"]);
  });
});

describe("services and routes", () => {
  test("connects a service with the workload that it selects, by the names of its ports", () => {
    const [, made] = written(
      convert(
        `${DEPLOYMENT}\n---\n${service("selector: {app: web}, ports: [{port: 80, targetPort: http}]")}`,
      ),
    );
    assert.deepEqual(made, {
      name: "web",
      service: { target: "web", ports: [{ port: 80, target_port: 8080 }] },
    });
  });

  test("refuses a service that selects no workload or several", () => {
    const selecting = service("selector: {app: web}, ports: [{port: 80}]");
    assert.match(convert(selecting).problems[0]?.message ?? "", /selects no workload of the files/);
    const other = DEPLOYMENT.replace(META, "metadata: {name: canary}");
    const { problems } = convert([DEPLOYMENT, other, selecting].join("\n---\n"));
    assert.match(problems[0]?.message ?? "", /selects several workloads \(web, canary\)/);
    for (const spec of ["type: ExternalName, externalName: a.example", "ports: [{port: 80}]"]) {
      const { parts, losses } = convert(service(spec));
      assert.deepEqual([parts.length, losses.length], [0, 1], spec);
    }
  });

  test("converts an Ingress to one route for each host, with its certificate", () => {
    const rule = (host: string): string =>
      `{host: ${host}, http: {paths: [{path: /a, pathType: Exact, backend: {service: {name: web, port: {number: 80}}}}]}}`;
    const found = written(
      convert(
        ingress(
          `tls: [{hosts: [a.example], secretName: a-tls}], rules: [${rule("a.example")}, ${rule('"*.b.example"')}]`,
        ),
      ),
    );
    const rules = [
      { matches: [{ path: { type: "Exact", value: "/a" } }], backends: [{ service: "web", port: 80 }] },
    ];
    assert.deepEqual(found, [
      {
        name: "web-a-example",
        route: { hostnames: ["a.example"], rules, tls: { mode: "Terminate", certificate_ref: "a-tls" } },
      },
      { name: "web-any-b-example", route: { hostnames: ["*.b.example"], rules } },
    ]);
  });

  test("reports settings of an ingress controller, and ports without a number", () => {
    const backend = "defaultBackend: {service: {name: web, port: {name: http}}}";
    const { losses, problems } = convert(
      ingress(
        backend,
        ", annotations: {nginx.ingress.kubernetes.io/rewrite-target: /, kubernetes.io/ingress.class: nginx}",
      ),
    );
    assert.deepEqual(
      losses.map(({ path }) => path),
      ['metadata.annotations["nginx.ingress.kubernetes.io/rewrite-target"]'],
    );
    assert.match(problems[0]?.message ?? "", /write the port's number/);
    assert.equal(convert(ingress("{}".slice(1, 1))).problems[0]?.path, "spec");
  });
});

test("keeps annotations of a service that Forage supports, and reports those of other programs as lost", () => {
  const annotations = [
    "forage.dev/load-balancer-ip: 10.0.0.1",
    "kubectl.kubernetes.io/last-applied-configuration: '{}'",
    "service.beta.kubernetes.io/aws-load-balancer-type: nlb",
  ];
  const service = `{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {${annotations.join(", ")}}}, spec: {selector: {app: web}, ports: [{port: 80}]}}`;
  const { parts, losses } = convert(`${DEPLOYMENT}\n---\n${service}`);
  assert.deepEqual(
    losses.map(({ path }) => path),
    ['metadata.annotations["service.beta.kubernetes.io/aws-load-balancer-type"]'],
  );
  const written = parts.map((it) => (it.written as { service?: { annotations: unknown } }).service);
  assert.deepEqual(written.find((it) => it !== undefined)?.annotations, {
    "forage.dev/load-balancer-ip": "10.0.0.1",
  });
});

describe("objects", () => {
  test("prefers the text of a secret to its data, and shows no values in messages", () => {
    const [made] = written(convert(secret("data: {a: b25l, c: Yw==}, stringData: {a: two}")));
    assert.deepEqual(made, { name: "web", labels: {}, secret: { data: { a: "dHdv", c: "Yw==" } } });
    const { problems } = convert(secret("data: {password: hunter2-canary}"));
    assert.equal(problems[0]?.path, "data.password");
    assert.doesNotMatch(JSON.stringify(problems), /hunter2/);
  });

  test("converts a Docker configuration to a registry credential", () => {
    const config = (auths: object): string =>
      secret(
        `type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: ${Buffer.from(JSON.stringify({ auths })).toString("base64")}}`,
      );
    const auth = Buffer.from("me:pass:word").toString("base64");
    const [made] = written(convert(config({ "https://index.docker.io/v1/": { auth } })));
    assert.deepEqual(made, {
      name: "web",
      labels: {},
      registry_credential: { server: "docker.io", username: "me", password: "pass:word" },
    });
    assert.match(
      convert(config({ a: { auth }, b: { auth } })).losses[0]?.message ?? "",
      /holds 2 registries/,
    );
    assert.match(convert(config({ a: {} })).problems[0]?.message ?? "", /holds no \.dockerconfigjson/);
    assert.match(convert(secret("type: own.example/x")).losses[0]?.message ?? "", /"own.example\/x" has no/);
  });

  test("needs no namespace objects, and reports policies requested by their labels", () => {
    const of = (labels: string): Converted =>
      convert(`{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: ${labels}}}`);
    assert.deepEqual(written(of("{team: a}")), []);
    assert.match(
      of("{pod-security.kubernetes.io/enforce: restricted}").losses[0]?.message ?? "",
      /forage namespace policy set/,
    );
  });
});

describe("kinds", () => {
  test("reports other kinds as losses, and other versions as problems", () => {
    assert.match(
      convert("{apiVersion: apps/v1, kind: Deploymnt}").losses[0]?.message ?? "",
      /"Deploymnt" is not read \(did you mean "Deployment"\?\)/,
    );
    const { problems } = convert(`{apiVersion: extensions/v1beta1, kind: Ingress, ${META}}`);
    assert.match(problems[0]?.message ?? "", /must be networking\.k8s\.io\/v1/);
    assert.match(convert("{apiVersion: v1, kind: Secret}").problems[0]?.message ?? "", /no metadata\.name/);
  });

  test("refuses a document that expands to too many values", () => {
    const words = Array.from({ length: 600 }, () => "w").join(", ");
    const containers = Array.from({ length: 600 }, (_, i) => `{name: c${i}, image: a, args: *many}`);
    const { problems } = convert(
      `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {}}, spec: {template: {metadata: {finalizers: &many [${words}]}, spec: {containers: [${containers.join(", ")}]}}}}`,
    );
    assert.match(problems[0]?.message ?? "", /stands for more than 200000 values/);
  });
});
