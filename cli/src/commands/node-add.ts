import { CreateJoinTokenResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { durationFlag } from "../duration-flag.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { assertAddress } from "./assert-address.ts";
import { parseLabels } from "./labels.ts";
import { parseTaint } from "./node-taints.ts";

/** The most coordinators in an agent's configuration. */
const MAX_COORDINATORS = 9;

export const nodeAdd = defineCommand({
  name: "add",
  summary: "Print the command with which a host joins the fleet",
  details: `The command is run on the new host, where the agent is installed. It contains a token for one host, which can join with it once.
With several coordinators it has an address of each, so that the host joins also while one of them is away.
With NAME only a host of this name can join; a host that was reinstalled joins again under its old name this way.`,
  operands: [{ name: "NAME", help: "name of the node; default: the host's own name" }],
  flags: {
    label: { type: "list", hint: "KEY=VALUE", help: "label of the node" },
    taint: {
      type: "list",
      hint: "KEY[=VALUE]:EFFECT",
      help: "taint of the node, which it has before any pod is placed on it",
    },
    ttl: { type: "text", hint: "DURATION", help: "how long the token is valid: 15m, at most 30m" },
    coordinator: {
      type: "list",
      hint: "HOST:PORT",
      help: "address at which the host reaches a coordinator, up to 9, if it is another than the coordinators know",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags, operands } = invocation;
    const [nodeName = ""] = operands;
    const given = checked(flags.coordinator);
    const request = {
      ttlSeconds: flags.ttl === undefined ? 0 : Math.ceil(durationFlag("--ttl", flags.ttl) / 1000),
      ...{ nodeName, reusable: false },
      labels: parseLabels("--label", flags.label),
      taints: flags.taint.map(parseTaint),
    };
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.createJoinToken, request),
    );
    const addresses = addressesFor(given, response, () => context.settings.endpoint().server);
    const name = nodeName === "" ? "" : ` --name ${nodeName}`;
    // `echo` is a builtin of the shell, so the token is in no command line that other users of the
    // host can read.
    const command = `echo ${response.token} | sudo forage-agent join${name}${addresses.map((it) => ` --coordinator ${it}`).join("")}`;
    printOne(
      context,
      () => ({ command, ...(CreateJoinTokenResponse.toJSON(response) as Readonly<Record<string, unknown>>) }),
      () => `${command}\n`,
    );
    return EXIT.ok;
  },
});

/** Throws USAGE for invalid addresses, before a token is created. */
function checked(given: readonly string[]): readonly string[] {
  if (given.length > MAX_COORDINATORS) {
    const problem = `${given.length} addresses are given, and at most ${MAX_COORDINATORS} are used`;
    throw new CliError("USAGE", `--coordinator: ${problem}`);
  }
  for (const address of given) assertAddress(address);
  return given;
}

/**
 * Returns the addresses given by the operator, or else those that the coordinators report, or else
 * the one that this command uses.
 */
function addressesFor(
  given: readonly string[],
  { coordinators, allCoordinators }: CreateJoinTokenResponse,
  own: () => string,
): readonly string[] {
  const known = allCoordinators.length > 0 ? allCoordinators : coordinators.slice(0, 1);
  const chosen = [given, known].find(({ length }) => length > 0) ?? [own()];
  return checked([...new Set(chosen)].slice(0, MAX_COORDINATORS));
}
