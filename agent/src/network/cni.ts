import { access } from "node:fs/promises";
import { isIPv4, isIPv6 } from "node:net";
import { join } from "node:path";
import type { InstanceNames } from "./instance-names.ts";
import { NetworkError } from "./network.ts";
import type { PodCidr } from "./pod-cidr.ts";
import { CommandFailed, type RunCommand } from "./run-command.ts";

/** The name of the link's end in the pod. */
export const POD_INTERFACE = "eth0";
const CNI_VERSION = "1.0.0";

export interface CniOptions {
  readonly names: InstanceNames;
  readonly podCidr: PodCidr;
  /** Undefined: pods have no IPv6. */
  readonly podCidr6: PodCidr | undefined;
  /** The directory of the CNI plugins. */
  readonly pluginDir: string;
  /** The directory of host-local's leases. */
  readonly leaseDir: string;
  /** The MTU of the uplink. Undefined: the kernel's default. */
  readonly mtu?: number;
  readonly run: RunCommand;
}

/** The result of the bridge plugin. */
export interface CniAttachment {
  readonly address: string;
  readonly address6?: string;
  /** The host's end of the pod's link. */
  readonly hostInterface: string;
}

/** Calls the bridge plugin for named namespaces, without a configuration file. */
export class Cni {
  readonly #options: CniOptions;
  readonly #config: string;

  constructor(options: CniOptions) {
    this.#options = options;
    this.#config = JSON.stringify(bridgeConfig(options));
  }

  /** Connects the namespace to the bridge and assigns addresses. */
  async add(namespace: string): Promise<CniAttachment> {
    return readAttachment(await this.#call("ADD", namespace));
  }

  /** Removes the link and the lease. Accepts that they no longer exist. */
  async remove(namespace: string): Promise<void> {
    await this.#call("DEL", namespace);
  }

  async #call(command: "ADD" | "DEL", namespace: string): Promise<string> {
    const { run, pluginDir } = this.#options;
    const env = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: namespace,
      CNI_NETNS: `/run/netns/${namespace}`,
      CNI_IFNAME: POD_INTERFACE,
      CNI_PATH: pluginDir,
    };
    try {
      return await run(join(pluginDir, "bridge"), [], { env, input: this.#config });
    } catch (error) {
      throw error instanceof CommandFailed ? pluginError(command, error) : error;
    }
  }
}

function bridgeConfig({ names, podCidr, podCidr6, leaseDir, mtu }: CniOptions): object {
  const cidrs = podCidr6 === undefined ? [podCidr] : [podCidr, podCidr6];
  return {
    cniVersion: CNI_VERSION,
    name: names.cniNetwork,
    type: "bridge",
    bridge: names.bridge,
    isGateway: true,
    // The agent masquerades in its own nftables table. The plugin would need iptables and leave chains behind.
    ipMasq: false,
    // Without hairpin mode, a pod can't reach itself through a host port where bridged frames pass the IP hooks.
    hairpinMode: true,
    ...(mtu === undefined ? {} : { mtu }),
    ipam: {
      type: "host-local",
      ranges: cidrs.map(({ text, gateway }) => [{ subnet: text, gateway }]),
      routes: [{ dst: "0.0.0.0/0" }, ...(podCidr6 === undefined ? [] : [{ dst: "::/0" }])],
      dataDir: leaseDir,
    },
  };
}

function readAttachment(output: string): CniAttachment {
  const result: unknown = JSON.parse(output);
  const { ips, interfaces } = result as {
    ips?: { address?: string }[];
    interfaces?: { name?: string; sandbox?: string }[];
  };
  const addresses = ips?.map((it) => it.address?.split("/")[0] ?? "") ?? [];
  const address = addresses.find((it) => isIPv4(it));
  const address6 = addresses.find((it) => isIPv6(it));
  // The plugin lists the bridge, the host's end and the pod's end, in this order.
  const hostInterface = interfaces?.[1]?.name;
  if (address === undefined || hostInterface === undefined) {
    throw new NetworkError("SETUP_FAILED", `unexpected output of the bridge plugin: ${output}`, {
      retryable: false,
    });
  }
  return { address, ...(address6 !== undefined && { address6 }), hostInterface };
}

// Plugins report errors as JSON on standard output.
function pluginError(call: string, failed: CommandFailed): NetworkError {
  const message = readMessage(failed.stdout) ?? failed.message;
  const full = /no IP addresses available/.test(message);
  return new NetworkError(full ? "NO_ADDRESS_LEFT" : "SETUP_FAILED", `CNI bridge ${call}: ${message}`, {
    retryable: true,
    cause: failed,
  });
}

function readMessage(stdout: string): string | undefined {
  try {
    const { msg, details } = JSON.parse(stdout) as { msg?: string; details?: string };
    return [msg, details].filter(Boolean).join("; ") || undefined;
  } catch {
    return undefined;
  }
}

/** Throws a NetworkError with instructions if the plugin is not installed. */
export async function assertPlugin(directory: string, plugin: string): Promise<void> {
  const path = join(directory, plugin);
  await access(path).catch((cause) => {
    const message = `CNI plugin ${path} is missing: install containernetworking-plugins or set the directory`;
    throw new NetworkError("SETUP_FAILED", message, { retryable: false, cause });
  });
}
