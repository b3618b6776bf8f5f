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
    // containerd would append the API's path to a path.
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

/** Quotes text. JSON strings are valid basic strings of TOML. */
function text(value: string): string {
  return JSON.stringify(value);
}
