import type { RegistryAccess } from "./parse-registries.ts";

const HUB = "docker.io";
const HUB_SERVER = "https://registry-1.docker.io";

/** Returns containerd's `hosts.toml` for a registry. Pure. */
export function hostsFile(registry: string, access: RegistryAccess): string {
  const server = registry === HUB ? HUB_SERVER : `https://${registry}`;
  const mirrors = access.mirrors.map((mirror) => [
    "",
    `[host.${text(mirror)}]`,
    `capabilities = ["pull", "resolve"]`,
    // With a path, containerd would add the API's own to it.
    ...(new URL(mirror).pathname === "/" ? [] : ["override_path = true"]),
    ...tlsLines(access),
  ]);
  return `${[`server = ${text(server)}`, ...tlsLines(access), ...mirrors.flat()].join("\n")}\n`;
}

function tlsLines({ caFile, client }: RegistryAccess): readonly string[] {
  return [
    ...(caFile === undefined ? [] : [`ca = ${text(caFile)}`]),
    ...(client === undefined ? [] : [`client = [[${text(client.certFile)}, ${text(client.keyFile)}]]`]),
  ];
}

/** JSON's strings are basic strings of TOML. */
function text(value: string): string {
  return JSON.stringify(value);
}
