import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv } from "node:process";
import { systemClock } from "../../agent/src/clock.ts";
import { type RunCommand, runCommand } from "../../agent/src/network/run-command.ts";
import { KnownServices } from "../../agent/src/services/known-services.ts";
import { ServiceRules } from "../../agent/src/services/service-rules.ts";
import { heartbeat } from "../fleet/heartbeats.ts";
import { helloOf } from "../fleet/pod-answers.ts";
import { HEARTBEAT_MS, joinAndConnect } from "../fleet/socket-agents.ts";

/** The options of the process, as JSON in its only argument. */
export interface KernelAgentOptions {
  readonly address: string;
  readonly caPem: string;
  readonly token: string;
  readonly name: string;
  /** The network namespace whose rules the agent manages. */
  readonly network: string;
}

/** The process's message to its parent. */
export interface AppliedRules {
  readonly name: string;
  /** Milliseconds of this machine's monotonic clock, which all processes share. */
  readonly atMs: number;
  /** The `namespace/name` of each changed service, with the number of its endpoints. */
  readonly endpoints: readonly (readonly [key: string, count: number])[];
  /** The processor time of this process so far, in milliseconds, without nft's. */
  readonly cpuMs: number;
}

/** An agent without pods that applies the service rules of a real agent in a network namespace that the parent made. */
async function main(): Promise<void> {
  const { network, name, token, address, caPem } = JSON.parse(argv[2] ?? "{}") as KernelAgentOptions;
  const dir = mkdtempSync(join(tmpdir(), "forage-bench-kernel-"));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  process.once("SIGTERM", () => process.exit(0));
  process.once("disconnect", () => process.exit(0));
  const fail = (what: string, error: unknown): never => {
    console.error(what, error);
    process.exit(1);
  };
  const services = await KnownServices.open({
    dir,
    clock: systemClock,
    onError: (error) => fail("services", error),
  });
  const run: RunCommand = (file, args, options) =>
    runCommand("nsenter", [`--net=/run/netns/${network}`, "--", file, ...args], options);
  const rules = new ServiceRules({
    services,
    viewpoint: { node: name, reach: [4, 6] },
    table: "forage_bench_services",
    podCidr: "10.64.0.0/16",
    gateway: "10.64.0.1",
    bridge: "lo",
    run,
    onProblem: fail,
  });
  await rules.start();
  services.subscribe(async (changed) => {
    await rules.update(changed);
    const { user, system } = process.cpuUsage();
    const applied: AppliedRules = {
      name,
      atMs: Number(process.hrtime.bigint()) / 1e6,
      endpoints: [...changed].map((key) => [key, services.services.get(key)?.endpoints.length ?? 0]),
      cpuMs: (user + system) / 1000,
    };
    process.send?.(applied);
  });
  const { stream } = await joinAndConnect({ address, caPem }, token, name);
  stream.on("error", (error) => fail("stream", error));
  stream.on("data", ({ message }) => {
    if (message?.$case === "services") services.apply(message.value);
  });
  stream.write({ message: { $case: "hello", value: helloOf(name, { address: "192.0.2.250", pods: 0 }) } });
  setInterval(() => stream.write(heartbeat()), HEARTBEAT_MS);
}

if (import.meta.main) await main();
