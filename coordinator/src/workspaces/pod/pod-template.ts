import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import type { EnvVar } from "@forage/proto/forest/v1/forage";
import { NOT_READY_TAINT, UNREACHABLE_TAINT } from "../../state/node-taints.ts";
import type { WorkspaceClassSettings, WorkspaceSettings } from "../settings.ts";
import type { Variable } from "./environment.ts";

/** The label of nodes whose agents can hold the content of workspaces. */
export const WORKSPACES_LABEL = "forage.dev/workspaces";
/** The label of pods that names their workspace instance. */
export const INSTANCE_LABEL = "forage.dev/workspace";

/** The user id that Gitpod's images define. The content belongs to this user. */
const WORKSPACE_USER = 33_333n;

export interface TemplateInput {
  readonly record: InstanceRecord;
  readonly environment: readonly Variable[];
  readonly settings: WorkspaceSettings;
  readonly class: WorkspaceClassSettings;
  readonly graceSeconds: number;
}

/**
 * Returns the name of an instance's pod, which is also the name of the secret with its environment.
 */
export function podNameOf(id: string): string {
  return `ws-${id}`;
}

/**
 * Returns the template of a workspace's pod. Values of the request's environment are not in it,
 * only references to their secret.
 */
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
      // The pod tolerates an unreachable node without limit: its content is on that node, so a pod
      // elsewhere would not have it.
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

/**
 * Returns the key of a variable in the secret. Names of variables may contain characters that keys
 * may not.
 */
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

/** Returns the resources of the pod. With fixed resources, the limits equal the requests. */
function resourcesOf({ cpu, memory, cpuLimit, memoryLimit }: WorkspaceClassSettings, fixed: boolean) {
  return {
    requests: { cpu, memory },
    limits: fixed ? { cpu, memory } : { cpu: cpuLimit ?? "", memory: memoryLimit ?? "" },
  };
}
