import { AGENT_ENVIRONMENT, AGENT_NODE_OPTIONS } from "../instance/describe-programs.ts";

/**
 * Returns the text of the program that Nomad starts from a link or a copy in its plugin_dir. The file's name is the
 * label of the `plugin` block. `node` and `program` are absolute paths without characters that a shell interprets.
 */
export function nomadDriverLauncher(node: string, program: string): string {
  const environment = Object.entries(AGENT_ENVIRONMENT).map(([name, value]) => `export ${name}=${value}\n`);
  return `#!/bin/sh\n${environment.join("")}exec ${node} ${AGENT_NODE_OPTIONS.join(" ")} ${program} "$@"\n`;
}
