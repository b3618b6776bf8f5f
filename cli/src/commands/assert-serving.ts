import type { Resource } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import type { Bundle } from "../manifest/bundles.ts";
import { pause } from "../pause.ts";
import { routeWord } from "../view/routes.ts";

/**
 * The longest wait. Nodes publish ports and gateways accept routes within seconds, but a
 * certificate by ACME takes longer.
 */
const WAIT_MS = 60_000;
const PAUSE_MS = 500;

/**
 * Resolves once every service and route of the bundles is served. After `WAIT_MS`, throws a
 * CliError that names the others.
 */
export async function assertServing(
  context: Context,
  coordinator: Coordinator,
  bundles: readonly Bundle[],
): Promise<void> {
  const { world, signal } = context;
  const untilMs = world.nowMs() + WAIT_MS;
  while (true) {
    const idle = await notServing(coordinator, bundles);
    if (idle.length === 0) return;
    if (world.nowMs() >= untilMs) throw new CliError("REFUSED", ["not serving:", ...idle].join("\n"));
    await pause(PAUSE_MS, signal);
  }
}

async function notServing(coordinator: Coordinator, bundles: readonly Bundle[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { request } of bundles) {
    const names = request.resources.flatMap(({ name, spec }) =>
      spec?.$case === "service" || spec?.$case === "route" ? [`${spec.$case}/${name}`] : [],
    );
    if (names.length === 0) continue;
    const { namespace } = request;
    const { resources } = await list(coordinator, namespace);
    const found = new Map(resources.map((resource) => [`${resource.kind}/${resource.name}`, resource]));
    for (const name of names) {
      const why = whyNot(found.get(name));
      if (why !== "") lines.push(`  ${name}: ${why}; forage why ${name} -n ${namespace}`);
    }
  }
  return lines;
}

/**
 * Lists the resources. While the coordinator restarts the list is empty, so that the caller
 * retries.
 */
async function list(coordinator: Coordinator, namespace: string): Promise<{ resources: Resource[] }> {
  try {
    return await coordinator.call(operator.listResources, { namespace, labels: {} });
  } catch (error) {
    if (error instanceof CallError && error.passing) return { resources: [] };
    throw error;
  }
}

function whyNot(resource: Resource | undefined): string {
  if (resource === undefined) return "it does not exist";
  const { kind, message, readyEndpoints, route } = resource;
  if (kind === "service" && message !== "") return message;
  if (kind === "service" && readyEndpoints === 0) return "it has no ready endpoints";
  const word = routeWord(resource);
  if (route === undefined) return kind === "route" ? "no gateway has applied it" : "";
  return word === "Programmed" ? "" : `its route: ${word}`;
}
