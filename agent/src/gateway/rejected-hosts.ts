import { readFile, rename, writeFile } from "node:fs/promises";
import { GatewayHost } from "@forage/proto/forage/agent/v1/agent";

/** A host that Envoy rejects in its current form. */
export interface RejectedHosts {
  readonly host: GatewayHost;
  /** Envoy's error message. */
  readonly reason: string;
  /** The accepted form that is served instead. Undefined: none. */
  readonly former: GatewayHost | undefined;
}

interface Entry {
  readonly host: string;
  readonly reason: string;
  readonly former: string;
}

/** Reads the hosts that an earlier agent had rejected. Empty if the file can't be read. */
export async function readRejectedHosts(path: string): Promise<RejectedHosts[]> {
  try {
    const entries = JSON.parse(await readFile(path, "utf8")) as readonly Entry[];
    return entries.map(({ host, reason, former }) => ({
      host: decode(host),
      reason,
      former: former === "" ? undefined : decode(former),
    }));
  } catch {
    return [];
  }
}

/** Writes the rejected hosts. The file is stored with Envoy's files, because it is useful only with them. */
export async function writeRejectedHosts(path: string, held: readonly RejectedHosts[]): Promise<void> {
  const entries = held.map(({ host, reason, former }): Entry => {
    return { host: encode(host), reason, former: former === undefined ? "" : encode(former) };
  });
  await writeFile(`${path}.tmp`, JSON.stringify(entries), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}

function encode(host: GatewayHost): string {
  return Buffer.from(GatewayHost.encode(host).finish()).toString("base64");
}

function decode(text: string): GatewayHost {
  return GatewayHost.decode(Buffer.from(text, "base64"));
}
