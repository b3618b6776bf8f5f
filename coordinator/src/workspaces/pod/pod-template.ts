import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { EnvVar } from "@forage/proto/forest/v1/forage";
import { NOT_READY_TAINT, UNREACHABLE_TAINT } from "../../state/node-taints.ts";
import type { WorkspaceClassSettings, WorkspaceSettings } from "../settings.ts";
import type { Variable } from "./environment.ts";

/** A label that agents report on nodes that can hold the content of workspaces. */
export const WORKSPACES_LABEL = "forage.dev/workspaces";
/** Label of pods with the instance they belong to. */
export const INSTANCE_LABEL = "forage.dev/workspace";

/** Gitpod's images have this user, and the content belongs to it. */
const WORKSPACE_USER = 33_333n;

export interface TemplateInput {
  readonly record: InstanceRecord;
  readonly environment: readonly Variable[];
  readonly settings: WorkspaceSettings;
  readonly class: WorkspaceClassSettings;
  readonly graceSeconds: number;
}

/** Returns the name of an instance's pod, and of the secret with the values of its environment. */
export function podNameOf(id: string): string {
  return `ws-${id}`;
}

/** Returns the template of a workspace's pod. Pure. It holds no values of the request's environment, only references to their secret. */
export function podTemplateOf(input: TemplateInput): PodTemplate {
  const { record, settings, class: size, graceSeconds } = input;
  const { readiness, hostMounts } = settings;
  const mounts = hostMounts.map(({ hostPath, mountPath }, index) => ({
    name: `host-${index}`,
    hostPath,
    mountPath,
  }));
  return PodTemplate.fromPartial({
    container: {
      name: "workspace",
      image: record.spec?.workspaceImage ?? "",
      command: settings.command,
      args: settings.args,
      workingDir: "/workspace",
      env: input.environment.map((variable, index) => envVar(variable, index, podNameOf(record.id))),
      resources: resourcesOf(size, record.fixedResources),
      volumeMounts: [
        { name: "workspace", mountPath: "/workspace" },
        ...mounts.map(({ name, mountPath }) => ({ name, mountPath, readOnly: true })),
      ],
      ...(readiness !== undefined && {
        readinessProbe: {
          handler: { $case: "httpGet", value: { path: readiness.path, port: readiness.port } },
          periodSeconds: 1,
          timeoutSeconds: 5,
          failureThreshold: 3,
        },
      }),
      securityContext: { runAsUser: WORKSPACE_USER, runAsGroup: WORKSPACE_USER },
    },
    volumes: mounts.map(({ name, hostPath }) => ({
      name,
      source: { $case: "hostPath", value: { path: hostPath, type: "Directory" } },
    })),
    podConfig: {
      restartPolicy: "Never",
      terminationGracePeriodSeconds: graceSeconds,
      nodeSelector: { [WORKSPACES_LABEL]: "true", ...size.nodeSelector },
      // The content is on the node: a pod elsewhere would not have it, so that none is evicted because its node is away.
      tolerations: [UNREACHABLE_TAINT, NOT_READY_TAINT].map((key) => ({
        key,
        operator: "Exists",
        effect: "NoExecute",
      })),
      imagePullSecrets: settings.imagePullSecrets,
      priorityClassName: size.priorityClass,
    },
    providedVolumes: [{ name: "workspace", provider: "workspace", id: record.id }],
  });
}

/** Names a key in the secret with the environment's values; names of variables may hold what keys can't. */
export function environmentKey(index: number): string {
  return `env-${index}`;
}

function envVar({ name, source }: Variable, index: number, secretName: string): EnvVar {
  const reference =
    source.type === "value"
      ? { secretName, key: environmentKey(index) }
      : { secretName: source.secret, key: source.key };
  return { name, valueSource: { $case: "secretRef", value: reference } };
}

/** Returns the resources of the pod. With fixed resources, a workspace gets what it requests and no more. */
function resourcesOf({ cpu, memory, cpuLimit, memoryLimit }: WorkspaceClassSettings, fixed: boolean) {
  return {
    requests: { cpu, memory },
    limits: fixed ? { cpu, memory } : { cpu: cpuLimit ?? "", memory: memoryLimit ?? "" },
  };
}
