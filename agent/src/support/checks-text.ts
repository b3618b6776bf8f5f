import type { Config } from "../config.ts";

/** Examines this host, and returns the findings as text. The code of the checks is loaded at the first call. */
export async function checksText(config: Config): Promise<string> {
  const { checkHost } = await import("../setup/check/check-host.ts");
  const { checkedHost } = await import("../setup/checked-host.ts");
  const findings = await checkHost(checkedHost(), config);
  return `${JSON.stringify(findings, undefined, 2)}\n`;
}
