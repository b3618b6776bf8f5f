import assert from "node:assert/strict";
import { test } from "node:test";
import { withHost } from "../lib/test-host.ts";
import { startSystem } from "../system/system.ts";

const LIMIT = { timeout: 180_000 };
const CANARY = "canary-7b41d0";

/** Returns manifests of a server that answers with values of a secret and a config map, and stores data in a claim. */
function manifests(image: string): string {
  const script =
    'echo "$MODE $PASSWORD" > /data/index.html; cat /etc/app/page >> /data/index.html; exec httpd -f -p 8080 -h /data';
  const container = {
    name: "main",
    image,
    command: ["sh", "-c", script],
    env: [{ name: "PASSWORD", valueFrom: { secretKeyRef: { name: "db", key: "password" } } }],
    envFrom: [{ configMapRef: { name: "app" } }],
    ports: [{ name: "http", containerPort: 8080 }],
    readinessProbe: { httpGet: { path: "/index.html", port: "http" }, periodSeconds: 1 },
    volumeMounts: [
      { name: "data", mountPath: "/data" },
      { name: "app", mountPath: "/etc/app" },
    ],
  };
  const labels = { app: "blog" };
  const metadata = { name: "blog", namespace: "e2e" };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "e2e" } },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        replicas: 1,
        strategy: { type: "Recreate" },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [container],
            volumes: [
              { name: "data", persistentVolumeClaim: { claimName: "blog" } },
              { name: "app", configMap: { name: "app", items: [{ key: "page.txt", path: "page" }] } },
            ],
          },
        },
      },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: labels, ports: [{ port: 80, targetPort: "http" }] },
    },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "db", namespace: "e2e" },
      stringData: { password: CANARY },
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "app", namespace: "e2e" },
      data: { MODE: "quiet", "page.txt": "a page\n" },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata,
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "16Mi" } } },
    },
  ]
    .map((document) => JSON.stringify(document))
    .join("\n---\n");
}

test("Kubernetes manifests run on a real host with their secret, config map and claim", LIMIT, async (t) => {
  const host = await withHost(t);
  const system = await startSystem(host);
  const written = manifests(host.image);
  const diff = await system.forage(["diff", "-f", "-"], written);
  assert.equal(diff.exitCode, 1, diff.stderr);
  assert.match(diff.stdout, /e2e secret\/db create/);
  const applied = await system.forage(["apply", "-f", "-"], written);
  assert.equal(applied.exitCode, 0, applied.stderr);
  assert.match(
    applied.stderr,
    /e2e secret\/db created\n.*e2e config\/app created\n.*e2e claim\/blog created/s,
  );
  const endpoints = ["get", "endpoints", "blog", "-n", "e2e"];
  const [endpoint] = await system.ask<{ address: string; port: number }[]>(endpoints);
  const answer = await fetch(`http://${endpoint?.address}:${endpoint?.port}/index.html`);
  assert.equal(await answer.text(), `quiet ${CANARY}\na page\n`);

  const plan = await system.forage(["plan", "-f", "-"], written);
  assert.equal(plan.exitCode, 0, plan.stdout);
  const changed = await system.forage(["diff", "-f", "-"], written.replace(CANARY, "changed-7b41d0"));
  assert.match(changed.stdout, /data\.password/);
  for (const { stdout, stderr } of [diff, applied, plan, changed])
    assert.doesNotMatch(stdout + stderr, /7b41d0/);
});
