import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { renderDocument } from "../output/document.ts";
import { readBundles } from "./bundles.ts";
import { writeResource } from "./write-manifest.ts";

const NOWHERE = { namespace: "default", flagNamespace: undefined };

function read(text: string) {
  return readBundles([{ name: "a.yaml", text }], NOWHERE).flatMap(({ request }) => request.resources);
}

test("writes a resource that reads back as equal", () => {
  const text = `
- name: a
  container_service:
    scaling: { replicas: 0 }
    container:
      name: main
      image: app
      env: [{ name: A_b, secret_ref: { secret_name: s, key: k_x } }]
      resources: { limits: { memory: 1Gi, extended: { "nvidia.com/gpu_x": "1" } } }
      readiness_probe: { http_get: { path: /, port: 80 }, period_seconds: 3 }
    volumes: [{ name: v, empty_dir: {} }]
    pod_config: { annotations: { snake_case: camelCase }, node_selector: { zone_a: b } }
- { name: b, container_service: { container: { name: main, image: app } } }
- name: c
  container_service:
    scaling: { autoscaling: { min_replicas: 1, max_replicas: 3, scale_down_stabilization: 90s } }
    container: { name: main, image: app }
- { name: d, service: { target: a, ports: [{ port: 80 }], annotations: { a_b: c } } }
- { name: e, route: { hostnames: [a.example], rules: [{ timeout: 1.5s, matches: [{ path: { value: / } }] }] } }
- { name: f, cron_job: { schedule: "* * * * *", container: { name: main, image: app }, job_config: { backoff_limit: 2 } } }
`;
  const resources = read(`resources:${text.replaceAll("\n", "\n  ")}`);
  assert.equal(resources.length, 6);
  const written = resources.map(writeResource);
  assert.deepEqual(read(renderDocument("yaml", { resources: written })), resources);
  assert.doesNotMatch(JSON.stringify(written), /secretName|emptyDir|podConfig/);
});

test("writes every example so that it reads back as equal", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../examples/hello.yaml"), "utf8");
  const resources = read(text);
  assert.deepEqual(read(renderDocument("yaml", { resources: resources.map(writeResource) })), resources);
});
