import { messageOf } from "@forage/common/message-of";
import type { Config } from "../../config.ts";
import { diskCheck } from "./check-disk.ts";
import { cgroupCheck, kernelCheck } from "./check-kernel.ts";
import { clockCheck, coordinatorCheck, networkCheck, portsCheck } from "./check-network.ts";
import { dnsCheck, mtuCheck } from "./check-paths.ts";
import { cniCheck, containerdCheck, programsCheck } from "./check-programs.ts";
import { type CheckedHost, type Finding, failure, type HostCheck } from "./finding.ts";

const CHECKS: readonly HostCheck[] = [
  ...[kernelCheck, cgroupCheck, programsCheck, containerdCheck, cniCheck],
  ...[portsCheck, networkCheck, dnsCheck, clockCheck, coordinatorCheck, mtuCheck, diskCheck],
];

/** Examines the host and returns all findings. A check that throws also gives a finding. */
export async function checkHost(host: CheckedHost, config: Config): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { name, run } of CHECKS) {
    const found = await run(host, config).catch((error: unknown) => [
      failure(messageOf(error), "run forage-agent check as root"),
    ]);
    findings.push(...found.map((finding) => ({ check: name, ...finding })));
  }
  return findings;
}

/** Returns one line for each finding and one for each remedy. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, result, message, remedy }) => [
    `${result.padEnd(7)}  ${check.padEnd(width)}  ${oneLine(message)}`,
    ...(remedy === undefined ? [] : [`${" ".repeat(width + 11)}${remedy}`]),
  ]);
  return `${lines.join("\n")}\n`;
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, " ");
}
