import { Notification, TestNotificationResponse } from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, printOne, withCoordinator } from "../context.ts";
import { EXIT } from "../exit-code.ts";
import type { Column } from "../output/table.ts";

const columns: readonly Column<Notification>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "RECEIVER", value: ({ origin }) => origin },
  { title: "TYPES", value: ({ types }) => types.join(",") },
  { title: "REASONS", value: ({ reasons }) => listed(reasons) },
  { title: "KINDS", value: ({ kinds }) => listed(kinds), wide: true },
  { title: "NAMESPACES", value: ({ namespaces }) => listed(namespaces), wide: true },
  { title: "SENT", value: ({ delivered }) => String(delivered), alignRight: true },
  { title: "DROPPED", value: ({ dropped }) => String(dropped), alignRight: true },
  { title: "PROBLEM", value: ({ problem }) => problem, whenFilled: true },
];

const list = defineCommand({
  name: "ls",
  summary: "List the receivers of events",
  details:
    "They are in the configuration of the coordinator. Numbers count from the time when this coordinator took the lead.",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { notifications } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listNotifications, {}),
    );
    printListing(context, {
      columns,
      rows: notifications,
      json: Notification.toJSON,
      name: ({ name }) => `notification/${name}`,
      none: "events are sent nowhere: see notifications in the coordinator's configuration",
    });
    return EXIT.ok;
  },
});

const test = defineCommand({
  name: "test",
  summary: "Send a message to a receiver, and show its answer",
  details:
    "The message has one event with the reason NotificationTest, is signed like any other, and is not sent again.",
  operands: [{ name: "NAME", required: true, help: "the receiver's name in the configuration" }],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.testNotification, { name }),
    );
    const { delivered, delivery, reason } = response;
    printOne(
      context,
      () => TestNotificationResponse.toJSON(response),
      () =>
        delivered ? `${name} has accepted the message ${delivery}\n` : `${name} was not reached: ${reason}\n`,
    );
    return delivered ? EXIT.ok : EXIT.failed;
  },
});

export const notification = groupCommands("notification", "Show and test the receivers of events", [
  list,
  test,
]);

function listed(values: readonly string[]): string {
  return values.length === 0 ? "any" : values.join(",");
}
