import { endProcess, findProcesses } from "./process-identity.ts";

/**
 * Ends the gateways' proxies whose configuration is below this directory. They outlive the agents that started them.
 */
export async function endProxies(dir: string): Promise<void> {
  const ours = (word: string | undefined): boolean => word?.startsWith(`${dir}/`) === true;
  const found = findProcesses((argv) => ours(argv[argv.indexOf("--config-path") + 1]) && argv.length > 1);
  await Promise.all(found.map((identity) => endProcess(identity, { graceMs: 2_000 })));
}
