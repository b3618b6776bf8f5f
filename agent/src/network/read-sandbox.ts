import { stat } from "node:fs/promises";
import { POD_INTERFACE } from "./cni.ts";
import { listLinks } from "./host-links.ts";
import type { InstanceNames } from "./instance-names.ts";
import { isNamespace, listNamespaces, namespacePath } from "./network-namespaces.ts";
import { CommandFailed, type RunCommand } from "./run-command.ts";
import type { SandboxRecord } from "./sandbox-records.ts";

/** An interface inside a pod's namespace as `ip -json address show` prints it. */
interface InnerLink {
  /** The interface index of the other end, in the host's namespace. */
  readonly link_index?: number;
  readonly addr_info?: readonly {
    readonly family: string;
    readonly local: string;
    readonly scope?: string;
  }[];
}

/** Reads a sandbox from the kernel. Returns undefined if the namespace is gone or has no link. */
export async function readSandbox(
  run: RunCommand,
  { bridge }: InstanceNames,
  namespace: string,
): Promise<SandboxRecord | undefined> {
  if (!(await isNamespace(namespace))) return undefined;
  const [inner] = await innerLinks(run, namespace);
  const addresses = inner?.addr_info?.filter(({ scope }) => scope === "global") ?? [];
  const address = addresses.find(({ family }) => family === "inet")?.local;
  const address6 = addresses.find(({ family }) => family === "inet6")?.local;
  const ports = await listLinks(run, ["master", bridge]);
  const hostInterface = ports.find(({ ifindex }) => ifindex === inner?.link_index)?.ifname;
  if (address === undefined || hostInterface === undefined) return undefined;
  return { namespace, address, ...(address6 !== undefined && { address6 }), hostInterface };
}

/** Returns the namespace of the process if it belongs to this instance, else undefined. */
export async function namespaceOfProcess(names: InstanceNames, pid: number): Promise<string | undefined> {
  const own = await identityOf(`/proc/${pid}/ns/net`);
  if (own === undefined) return undefined;
  for (const name of await listNamespaces(names.namespacePrefix)) {
    if ((await identityOf(namespacePath(name))) === own) return name;
  }
  return undefined;
}

async function innerLinks(run: RunCommand, namespace: string): Promise<readonly InnerLink[]> {
  try {
    const text = await run("ip", ["-n", namespace, "-json", "address", "show", "dev", POD_INTERFACE]);
    return JSON.parse(text || "[]");
  } catch (error) {
    // The namespace exists but is not connected yet.
    if (error instanceof CommandFailed) return [];
    throw error;
  }
}

async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}/${ino}`;
  } catch {
    return undefined;
  }
}
