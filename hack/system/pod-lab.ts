import type { RunResult } from "../lib/run.ts";
import { startTestHost, type TestHost } from "../lib/test-host.ts";
import { waitFor } from "../lib/wait-for.ts";
import { type System, type SystemOptions, startSystem } from "./system.ts";

/** A part of a manifest, with the names of the contract. */
export type Json = Readonly<Record<string, unknown>>;

/** A host to which many pods are applied at once and then inspected one by one. */
export interface PodLab {
  readonly host: TestHost;
  readonly system: System;
  /**
   * Stores a container_service for each entry, all in one request, and doesn't wait for their pods. Containers without
   * an image get busybox.
   */
  apply(services: Readonly<Record<string, Json>>): Promise<void>;
  /** Returns the error message of a refused apply. Throws if it isn't refused. */
  refused(services: Readonly<Record<string, Json>>): Promise<string>;
  /** Waits until the condition holds for the service's pod, and returns the pod. */
  until(service: string, what: string, holds: (pod: LabPod) => boolean | Promise<boolean>): Promise<LabPod>;
  ready(service: string): Promise<LabPod>;
  /** Returns the complete output of a script of `shell`, once it has ended. */
  output(service: string, container?: string): Promise<string>;
  /** Runs a command in the pod, once the pod runs. */
  exec(service: string, command: readonly string[], container?: string): Promise<RunResult>;
  close(): Promise<void>;
}

/** A pod in the output of `forage get pods -o json`. */
export interface LabPod {
  readonly uid: string;
  readonly name: string;
  readonly workloadName: string;
  readonly node?: string;
  readonly unschedulable?: string;
  readonly stopping?: boolean;
  readonly stopReason?: string;
  readonly status?: {
    readonly phase?: string;
    readonly ready?: boolean;
    readonly reason?: string;
    readonly message?: string;
    readonly podIp?: string;
    readonly containers?: readonly LabContainer[];
    readonly hostPorts?: readonly {
      readonly containerPort: number;
      readonly hostPort: number;
      readonly protocol: string;
    }[];
  };
}

export interface LabContainer {
  readonly name: string;
  readonly restartCount?: number;
  readonly ready?: boolean;
  readonly started?: boolean;
  readonly init?: boolean;
  readonly containerId?: string;
  readonly running?: object;
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: LabTermination;
  readonly lastTermination?: LabTermination;
  readonly terminations?: readonly LabTermination[];
}

export interface LabTermination {
  readonly exitCode?: number;
  readonly signal?: number;
  readonly reason?: string;
  readonly message?: string;
}

const NAMESPACE = "e2e";
/** Many pods start at the same time, and the machine may be busy. */
const LIMIT_MS = 120_000;
const CHECK_EVERY_MS = 200;
/** The exit code of `forage exec` when it could not run the command. */
const EXEC_FAILED = 125;
const DONE = "(that is all)\n";

export interface PodLabOptions {
  /** Additional settings of the agent. They may name files in the host's directory. */
  readonly agent?: (dir: string) => SystemOptions["agent"];
  readonly coordinator?: SystemOptions["coordinator"];
}

export async function startPodLab({ agent, coordinator }: PodLabOptions = {}): Promise<PodLab> {
  const host = await startTestHost();
  try {
    const system = await startSystem(host, {
      agent: agent?.(host.dir) ?? {},
      coordinator: coordinator ?? {},
    });
    return labOn(host, system);
  } catch (error) {
    await host.close();
    throw error;
  }
}

/** Returns a container that runs the script and then stays. It ignores SIGTERM, so give its pod a short grace period. */
export function shell(script: string): { readonly command: readonly string[] } {
  return { command: ["sh", "-c", `${script}\nprintf '${DONE.trim()}\\n'; exec sleep 1000000`] };
}

export function containerOf(pod: LabPod, name = "main"): LabContainer | undefined {
  return pod.status?.containers?.find((container) => container.name === name);
}

function labOn(host: TestHost, system: System): PodLab {
  const send = (services: Readonly<Record<string, Json>>): Promise<RunResult> =>
    system.forageInProcess(["apply", "--detach", "-f", "-"], manifestOf(services, host.image));
  const until: PodLab["until"] = async (service, what, holds) => {
    let seen: LabPod | undefined;
    return waitFor(
      async () => {
        const pods = await system.ask<LabPod[]>(["get", "pods", "-n", NAMESPACE]);
        seen = pods.find(({ workloadName, stopping }) => workloadName === service && stopping !== true);
        return seen !== undefined && (await holds(seen)) ? seen : undefined;
      },
      {
        what: `${service}: ${what}`,
        limitMs: LIMIT_MS,
        everyMs: CHECK_EVERY_MS,
        explain: () => JSON.stringify(seen, undefined, 1),
      },
    );
  };
  const running = (service: string, container = "main"): Promise<LabPod> =>
    until(service, `${container} runs`, (pod) => containerOf(pod, container)?.running !== undefined);
  const read: PodLab["output"] = async (service, container) => {
    const { name } = await running(service, container);
    let text = "";
    await waitFor(
      async () => {
        const logs = ["logs", name, "-n", NAMESPACE, ...(container === undefined ? [] : ["-c", container])];
        text = (await system.forageInProcess(logs)).stdout.replaceAll("\r\n", "\n");
        return text.endsWith(DONE);
      },
      {
        what: `${service} has written everything`,
        limitMs: LIMIT_MS,
        everyMs: CHECK_EVERY_MS,
        explain: () => text,
      },
    );
    return text.slice(0, -DONE.length);
  };
  // Output doesn't change once it is complete, and each read starts a process.
  const outputs = new Map<string, Promise<string>>();
  return {
    host,
    system,
    until,
    apply: async (services) => {
      const { exitCode, stderr } = await send(services);
      if (exitCode !== 0) throw new Error(`apply: ${stderr}`);
    },
    refused: async (services) => {
      const { exitCode, stderr } = await send(services);
      if (exitCode === 0) throw new Error(`${Object.keys(services).join(", ")}: was not refused`);
      return stderr;
    },
    ready: (service) => until(service, "is ready", ({ status }) => status?.ready === true),
    output: (service, container) => {
      const key = `${service} ${container}`;
      const output = outputs.get(key) ?? read(service, container);
      outputs.set(key, output);
      return output;
    },
    exec: async (service, command, container) => {
      const { name } = await running(service, container);
      const options = ["-n", NAMESPACE, ...(container === undefined ? [] : ["-c", container])];
      const run = () => system.forageInProcess(["exec", name, ...options, "--", ...command]);
      // On a busy host the agent may open the session too late, and then the command has not run.
      const isTooLate = ({ exitCode, stderr }: RunResult): boolean =>
        exitCode === EXEC_FAILED && stderr.includes("did not open the session within");
      const attempt = async () => {
        const result = await run();
        return isTooLate(result) ? undefined : result;
      };
      return waitFor(attempt, { what: `${service}: a session is opened`, limitMs: LIMIT_MS });
    },
    close: () => host.close(),
  };
}

function manifestOf(services: Readonly<Record<string, Json>>, image: string): string {
  const withImage = (container: unknown, name: string): object => ({ name, image, ...(container as object) });
  const resources = Object.entries(services).map(([name, spec]) => ({
    name,
    container_service: {
      ...spec,
      container: withImage(spec.container, "main"),
      ...listOf(spec, "sidecars", (it, index) => withImage(it, `side-${index}`)),
      ...listOf(spec, "init_containers", (it, index) => withImage(it, `init-${index}`)),
      pod_config: { termination_grace_period_seconds: 1, ...(spec.pod_config as object | undefined) },
    },
  }));
  return JSON.stringify({ namespace: NAMESPACE, resources });
}

function listOf(spec: Json, field: string, each: (item: unknown, index: number) => object): Json {
  const list = spec[field];
  return Array.isArray(list) ? { [field]: list.map(each) } : {};
}
