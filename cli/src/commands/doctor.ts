import type { ExamineNodesResponse } from "@forage/proto/forage/operator/v1/operator";
import manifest from "../../package.json" with { type: "json" };
import { type Coordinator, operator } from "../client/coordinator.ts";
import { servedValidity, type Validity, validityOf } from "../client/explain-clock.ts";
import { defineCommand } from "../command/definition.ts";
import { type Context, contextOf, printListing, withCoordinator } from "../context.ts";
import {
  examineCertificates,
  examineClock,
  examineNode,
  examinePods,
  examineVersions,
} from "../doctor/examine.ts";
import { examineHosts } from "../doctor/examine-hosts.ts";
import { type Finding, type FindingState, lifetimeFinding } from "../doctor/finding.ts";
import { CliError, type CliErrorCode } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Style } from "../output/paint.ts";

const STYLES: Readonly<Record<FindingState, Style>> = {
  ok: "good",
  warning: "busy",
  problem: "bad",
  unknown: "faint",
};
/**
 * The number of days before its expiry by which a coordinator should have renewed its certificate.
 */
const SERVER_CERTIFICATE_DAYS = 3;
const AUTHORITY_DAYS = 90;
const LOG_REMEDY = "on its host: systemctl status forage-coordinator";

export const doctor = defineCommand({
  name: "doctor",
  summary:
    "Examine this command's settings, the coordinator and every node, and name a remedy for each problem",
  details: `Checks settings, connection, clocks, versions, certificates, nodes, gateways and pods, and changes nothing. With the role admin,
agents also examine their hosts as forage-agent check does: disk, programs, name servers and the clock, and whether each of up to 100 nodes
is reached from some others, with full-sized packets too. --no-hosts leaves this out. Exit codes: 0 no problem, 1 at least one; warnings don't count.`,
  flags: {
    all: { type: "switch", help: "also list the checks that found nothing wrong" },
    "no-hosts": { type: "switch", help: "don't have agents examine their hosts" },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const findings = await examineAll(context, { hosts: !invocation.flags["no-hosts"] });
    const shown = invocation.flags.all ? findings : findings.filter(({ state }) => state !== "ok");
    printListing(context, {
      columns: [
        { title: "SUBJECT", value: ({ subject }) => subject },
        { title: "CHECK", value: ({ check }) => check },
        { title: "STATE", value: ({ state }) => state, style: ({ state }) => STYLES[state] },
        { title: "MESSAGE", value: ({ message }) => message },
        { title: "REMEDY", value: ({ remedy }) => remedy, whenFilled: true },
      ],
      rows: shown,
      json: (finding) => finding,
      name: ({ subject, check }) => `${subject}/${check}`,
      none: `nothing is wrong: ${findings.length} checks`,
    });
    return findings.some(({ state }) => state === "problem") ? EXIT.failed : EXIT.ok;
  },
});

/** Examines this command's settings, the coordinator and every node. */
export async function examineAll(context: Context, options: { readonly hosts: boolean }): Promise<Finding[]> {
  const settings = await examined(
    "client",
    "settings",
    "name the coordinator, its CA file and a token by flags, variables or a context",
    async () => examineEndpoint(context),
  );
  if (settings.some(({ state }) => state === "problem")) return settings;
  const fleet = await withCoordinator(context, (coordinator) => examineFleet(context, coordinator, options));
  return [...settings, ...fleet];
}

function examineEndpoint({ settings, world }: Context): Finding[] {
  const { server, caFile, caPem, tokenSource } = settings.endpoint();
  const authority = validityOf(caPem);
  const remedy = "use the CA file of this coordinator (--ca-file)";
  const about = `${settings.place()}, token from ${tokenSource}`;
  const usable: Finding = { subject: "client", check: "settings", state: "ok", message: about, remedy: "" };
  const message = `the CA file ${caFile} holds no certificate`;
  if (authority === undefined)
    return [{ subject: "client", check: "authority", state: "problem", message, remedy }];
  const endsMs = authority.to.getTime();
  const limits = { endsMs, nowMs: world.nowMs(), warnDays: AUTHORITY_DAYS, remedy };
  return [usable, { ...lifetimeFinding(`authority of ${server}`, limits) }];
}

async function examineFleet(
  context: Context,
  coordinator: Coordinator,
  { hosts }: { readonly hosts: boolean },
): Promise<Finding[]> {
  const { world, settings } = context;
  const { server, otherServers } = settings.endpoint();
  const answers = await examined("coordinator", "answers", LOG_REMEDY, async () => {
    const { nodes } = await coordinator.call(operator.listNodes, {});
    const nowMs = world.nowMs();
    return [
      { subject: "coordinator", check: "answers", state: "ok", message: `${nodes.length} nodes`, remedy: "" },
      ...examineClock(nodes, nowMs),
      ...examineVersions(nodes, manifest.version),
      ...nodes.flatMap((node) => examineNode(node, nowMs)),
    ];
  });
  // If the coordinator can't be reached, further examinations would only repeat this.
  if (answers.some(({ subject, state }) => subject === "coordinator" && state === "problem")) return answers;
  return [
    ...answers,
    ...(await examineServers([server, ...otherServers], world.nowMs())),
    ...(await examined("certificates", "list", "", async () => {
      const { certificates } = await coordinator.call(operator.listCertificates, { hostname: "" });
      return examineCertificates(certificates, world.nowMs());
    })),
    ...(await examined("pods", "list", "", async () => {
      const request = { namespace: "", labels: {}, workload: "", node: "", name: "" };
      return examinePods((await coordinator.call(operator.listPods, request)).pods);
    })),
    ...(hosts ? await examineNodes(coordinator) : []),
  ];
}

/** A refusal by an older or busy coordinator indicates nothing about the hosts. */
function examineNodes(coordinator: Coordinator): Promise<Finding[]> {
  const remedy = "use a token with the role admin and a coordinator of this version, or --no-hosts";
  const examine = async (): Promise<Finding[]> => {
    const examined: ExamineNodesResponse[] = [];
    for await (const node of coordinator.stream(operator.examineNodes, { nodes: [] })) examined.push(node);
    return examineHosts(examined);
  };
  return examined("hosts", "examined", remedy, examine, ["DENIED", "REFUSED"]);
}

/**
 * Examines each coordinator on its own: the answers so far may come from any of them, while another
 * is down.
 */
async function examineServers(servers: readonly string[], nowMs: number): Promise<Finding[]> {
  const findings = await Promise.all(
    servers.map(async (server): Promise<Finding> => {
      const subject = servers.length === 1 ? "coordinator" : `coordinator ${server}`;
      const validity = await servedValidity(server);
      if (validity !== undefined) return examineServerCertificate(subject, validity, nowMs);
      const message = "it does not answer; the commands use another one";
      return { subject, check: "answers", state: "warning", message, remedy: LOG_REMEDY };
    }),
  );
  return servers.length === 1 ? findings.filter(({ check }) => check !== "answers") : findings;
}

function examineServerCertificate(subject: string, validity: Validity, nowMs: number): Finding {
  const remedy = "restart the coordinator, which makes itself a new certificate";
  const limits = { endsMs: validity.to.getTime(), nowMs, warnDays: SERVER_CERTIFICATE_DAYS, remedy };
  return lifetimeFinding(subject, limits);
}

/**
 * Runs an examination, and converts its error to a finding. A call that the token does not permit
 * is not a problem of the fleet.
 */
async function examined(
  subject: string,
  check: string,
  remedy: string,
  examine: () => Promise<Finding[]>,
  unknown: readonly CliErrorCode[] = ["DENIED"],
): Promise<Finding[]> {
  try {
    return await examine();
  } catch (error) {
    if (!(error instanceof CliError) || error.code === "INTERRUPTED" || error.code === "TIMED_OUT")
      throw error;
    const state = unknown.includes(error.code) ? "unknown" : "problem";
    return [{ subject, check, state, message: error.message, remedy }];
  }
}
