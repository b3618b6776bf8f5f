import { CreateCoordinatorTokenResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand } from "../command/definition.ts";
import { contextOf, printOne, withCoordinator } from "../context.ts";
import { durationFlag } from "../duration-flag.ts";
import { EXIT } from "../exit-code.ts";
import { assertAddress } from "./assert-address.ts";

export const coordinatorAdd = defineCommand({
  name: "add",
  summary: "Print the command with which a further coordinator gets the keys of the cluster",
  details: `The command is run on the new host, where the coordinator is installed and configured but has not been started.
It contains a token that can be used once. The token gives access to the key of the cluster's authority and to the keys of secrets: keep it secret.`,
  flags: {
    ttl: { type: "text", hint: "DURATION", help: "how long the token is valid: 15m, at most 30m" },
    coordinator: {
      type: "text",
      hint: "HOST:PORT",
      help: "address at which the new host reaches this coordinator, if it is another than the coordinator knows",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { flags } = invocation;
    const ttlSeconds = flags.ttl === undefined ? 0 : Math.ceil(durationFlag("--ttl", flags.ttl) / 1000);
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.createCoordinatorToken, { ttlSeconds }),
    );
    const address = flags.coordinator ?? response.coordinators[0] ?? context.settings.endpoint().server;
    assertAddress(address);
    // `echo` is a builtin of the shell, so the token is in no command line that other users of the
    // host can read.
    const command = `echo ${response.token} | sudo forage-coordinator join ${address} --config /etc/forage/coordinator.yaml`;
    printOne(
      context,
      () => ({
        command,
        ...(CreateCoordinatorTokenResponse.toJSON(response) as Readonly<Record<string, unknown>>),
      }),
      () => `${command}\n`,
    );
    return EXIT.ok;
  },
});
