import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { WORKSPACES_SCHEMA } from "../settings.ts";
import type { Variable } from "./environment.ts";
import { podTemplateOf } from "./pod-template.ts";

const SETTINGS = WORKSPACES_SCHEMA.parse({
  ...{ enabled: true, command: ["/ide/start"], args: ["--port", "23000"], imagePullSecrets: ["registry"] },
  readiness: { path: "/ready", port: 22_999 },
  hostMounts: [{ hostPath: "/opt/ide", mountPath: "/ide" }],
  classes: [
    {
      ...{ id: "large", cpu: "2", memory: "4Gi", cpuLimit: "4", memoryLimit: "8Gi" },
      ...{ nodeSelector: { disk: "ssd" }, priorityClass: "people" },
    },
  ],
});

function templateOf(change: Partial<InstanceRecord> = {}, environment: readonly Variable[] = []) {
  const [size] = SETTINGS.classes;
  const record = InstanceRecord.fromPartial({ id: "i1", spec: { workspaceImage: "image:1" }, ...change });
  return podTemplateOf({
    ...{ record, environment, settings: SETTINGS, class: size ?? assert.fail(), graceSeconds: 30 },
  });
}

test("takes resources, node labels and priority of the pod from the class", () => {
  const { container, podConfig } = templateOf();
  assert.partialDeepStrictEqual(container?.resources?.requests, { cpu: "2", memory: "4Gi" });
  assert.partialDeepStrictEqual(container?.resources?.limits, { cpu: "4", memory: "8Gi" });
  assert.deepEqual(podConfig?.nodeSelector, { "forage.dev/workspaces": "true", disk: "ssd" });
  assert.equal(podConfig?.priorityClassName, "people");
  const fixed = templateOf({ fixedResources: true }).container?.resources;
  assert.partialDeepStrictEqual(fixed?.limits, { cpu: "2", memory: "4Gi" });
});

test("runs the container once, as Gitpod's user, in the workspace's volume, with a read-only editor", () => {
  const { container, podConfig, volumes } = templateOf();
  assert.equal(container?.image, "image:1");
  assert.deepEqual([container?.command, container?.args], [["/ide/start"], ["--port", "23000"]]);
  assert.equal(container?.workingDir, "/workspace");
  assert.equal(container?.securityContext?.runAsUser, 33_333n);
  assert.equal(container?.securityContext?.runAsGroup, 33_333n);
  const mounts = container?.volumeMounts.map(({ mountPath, readOnly }) => [mountPath, readOnly]);
  assert.deepEqual(mounts, [
    ["/workspace", false],
    ["/ide", true],
  ]);
  assert.equal(volumes.length, 1);
  assert.deepEqual(container?.readinessProbe?.handler, {
    $case: "httpGet",
    value: { ...httpGetOf(container), path: "/ready", port: 22_999 },
  });
  assert.equal(podConfig?.restartPolicy, "Never");
  assert.deepEqual(podConfig?.imagePullSecrets, ["registry"]);
});

test("contains only references to the values of the environment", () => {
  const template = templateOf({}, [
    { name: "TOKEN", source: { type: "value", value: "s3cr3t" } },
    { name: "API_KEY", source: { type: "secret", secret: "tokens", key: "api" } },
  ]);
  assert.equal(Buffer.from(PodTemplate.encode(template).finish()).includes("s3cr3t"), false);
  const references = template.container?.env.map(({ name, valueSource }) => [
    name,
    valueSource?.$case === "secretRef" ? [valueSource.value.secretName, valueSource.value.key] : [],
  ]);
  assert.deepEqual(references, [
    ["TOKEN", ["ws-i1", "env-0"]],
    ["API_KEY", ["tokens", "api"]],
  ]);
});

function httpGetOf(container: PodTemplate["container"]): object {
  const handler = container?.readinessProbe?.handler;
  return handler?.$case === "httpGet" ? handler.value : {};
}
