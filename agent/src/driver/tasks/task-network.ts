import { isIPv4 } from "node:net";
import {
  NetworkIsolationSpec_NetworkIsolationMode as Mode,
  type TaskConfig,
} from "@forage/proto/plugins/drivers/proto/driver";
import type { PortMapping } from "../../network/network.ts";
import { HOST_NETWORK, NO_NETWORK } from "../../runtime/runtime.ts";
import type { TaskOptions } from "../config/task-options.ts";
import { DriverError } from "../driver-error.ts";

/** The source of a task's network. */
export type TaskNetwork =
  | { readonly type: "namespace"; readonly path: string }
  /** The driver creates a network for the task and publishes its ports. */
  | {
      readonly type: "own";
      readonly ports: readonly PortMapping[];
      readonly portMap: Readonly<Record<string, number>>;
    };

/** Returns the network of a task. Nomad's namespace takes precedence over the job's `network_mode`. Pure. */
export function taskNetwork(task: TaskConfig, options: TaskOptions): TaskNetwork {
  const { mode = Mode.HOST, path = "" } = task.networkIsolationSpec ?? {};
  if (path !== "") return { type: "namespace", path };
  if (mode === Mode.NONE) return { type: "namespace", path: NO_NETWORK };
  if (mode === Mode.GROUP) throw new DriverError("INVALID", "the allocation's network has no namespace");
  if (mode === Mode.TASK && (options.networkMode ?? "bridge") === "bridge") return own(task, options);
  switch (options.networkMode) {
    case "bridge":
      return own(task, options);
    case "none":
      return { type: "namespace", path: NO_NETWORK };
    case "host":
    case undefined:
      return { type: "namespace", path: HOST_NETWORK };
    default:
      return options.networkMode satisfies never;
  }
}

function own(task: TaskConfig, { ports: labels }: TaskOptions): TaskNetwork {
  const known = portsOf(task);
  const found = labels.map((label) => {
    const port = known.find((it) => it.label === label);
    if (port === undefined)
      throw new DriverError("INVALID", `ports: the task's network has no port ${JSON.stringify(label)}`);
    return port;
  });
  const ports = found.flatMap(({ label, value, to, hostIp }) =>
    (["TCP", "UDP"] as const).map((protocol) => ({
      container: label,
      containerPort: to > 0 ? to : value,
      protocol,
      hostPort: value,
      ...(hostIp !== undefined && { hostIp }),
    })),
  );
  return {
    type: "own",
    ports,
    portMap: Object.fromEntries(found.map(({ label, value, to }) => [label, to > 0 ? to : value])),
  };
}

interface LabelledPort {
  readonly label: string;
  readonly value: number;
  /** The port in the task. 0 or less: the same as `value`. */
  readonly to: number;
  /** Undefined: all addresses of the host. */
  readonly hostIp: string | undefined;
}

const ANY_ADDRESSES: readonly string[] = ["", "0.0.0.0", "::"];

function portsOf({ resources }: TaskConfig): readonly LabelledPort[] {
  const networks = resources?.allocatedResources?.networks ?? [];
  const own = networks.flatMap((it) => [...it.reservedPorts, ...it.dynamicPorts]);
  return [
    ...(resources?.ports ?? []).map((it) => ({ ...it, hostIp: hostIpOf(it.label, it.hostIp) })),
    ...own.map(({ label, value }) => ({ label, value, to: 0, hostIp: undefined })),
  ];
}

function hostIpOf(label: string, hostIp: string): string | undefined {
  if (ANY_ADDRESSES.includes(hostIp)) return undefined;
  if (isIPv4(hostIp)) return hostIp;
  throw new DriverError(
    "INVALID",
    `port ${JSON.stringify(label)}: host_ip ${JSON.stringify(hostIp)} is not an IPv4 address, and the driver's bridge has no others`,
  );
}
