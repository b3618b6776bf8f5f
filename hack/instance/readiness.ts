import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../common/src/message-of.ts";
import { SetupError } from "../lib/setup-error.ts";
import { waitFor } from "../lib/wait-for.ts";
import { askForage, type ForageCommand } from "./forage-command.ts";
import { type Instance, instancePaths } from "./instance.ts";
import { readProgramRecord } from "./program.ts";

// Each takes half a second on an idle machine. A loaded machine gets more time.
const COORDINATOR_LIMIT_MS = 30_000;
const NODE_LIMIT_MS = 60_000;
// If a program ended this often at its start, its log contains the reason.
const TOO_MANY_RESTARTS = 2;

export async function waitForCoordinator(instance: Instance, signal: AbortSignal): Promise<void> {
  const url = `http://${instance.http}/readyz`;
  let last = "no answer yet";
  const failIfRestarting = restartWatch(instance, "coordinator");
  await waitFor(
    async () => {
      failIfRestarting();
      last = await ask(url, signal);
      return last === "";
    },
    {
      what: `${url} says ready`,
      limitMs: COORDINATOR_LIMIT_MS,
      signal,
      explain: () => `${last}\n${logEnd(instance, "coordinator")}`,
    },
  );
}

/** Gives the node's agent a join token. An agent that has already joined needs none. */
export async function giveJoinToken(instance: Instance, forage: ForageCommand): Promise<void> {
  const paths = instancePaths(instance.dataDir);
  if (existsSync(join(paths.agentData, "identity"))) return;
  const { token } = (await askForage(forage, ["token", "create", "--node", instance.nodeName])) as {
    token: string;
  };
  writeFileSync(paths.joinToken, `${token}\n`, { mode: 0o600 });
}

/** Makes the node a gateway. Its agent may not do that, because gateways receive the private keys of routes. */
export async function makeGateway(instance: Instance, forage: ForageCommand): Promise<void> {
  await askForage(forage, ["node", "label", instance.nodeName, "forage.dev/gateway=default"]);
}

export async function waitForNode(
  instance: Instance,
  forage: ForageCommand,
  signal: AbortSignal,
): Promise<void> {
  let last = "the coordinator has received nothing from it";
  const failIfRestarting = restartWatch(instance, "agent");
  await waitFor(
    async () => {
      failIfRestarting();
      const nodes = (await askForage(forage, ["node", "ls"])) as {
        name: string;
        ready?: boolean;
        message?: string;
      }[];
      const node = nodes.find(({ name }) => name === instance.nodeName);
      if (node) last = node.message || "not ready";
      return node?.ready === true;
    },
    {
      what: `node ${instance.nodeName} is ready`,
      limitMs: NODE_LIMIT_MS,
      everyMs: 100,
      signal,
      explain: () => `${last}\n${logEnd(instance, "agent")}`,
    },
  );
}

/** Returns an empty text if the program is ready, and otherwise its answer. */
async function ask(url: string, signal: AbortSignal): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]) });
    return response.ok ? "" : await response.text();
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** Returns a function that throws if the program has ended several times since now. */
function restartWatch(instance: Instance, name: "coordinator" | "agent"): () => void {
  const { programs } = instancePaths(instance.dataDir);
  const restarts = (): number => readProgramRecord(programs, name)?.restarts ?? 0;
  const before = restarts();
  return () => {
    if (restarts() - before < TOO_MANY_RESTARTS) return;
    throw new SetupError(
      "NOT_READY",
      `the ${name} ends again and again:\n${logEnd(instance, name)}`,
      "see the message above",
    );
  };
}

function logEnd(instance: Instance, name: string): string {
  const path = join(instancePaths(instance.dataDir).logs, `${name}.log`);
  try {
    return `${path}:\n${readFileSync(path, "utf8").trimEnd().split("\n").slice(-12).join("\n")}`;
  } catch {
    return `no log in ${path}`;
  }
}
