import type { Lifecycle, LifecycleHandler } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { portProblem } from "../syntax/numbers.ts";
import { validateCommand } from "./arguments.ts";
import { validateHttpGet } from "./probe.ts";

export function validateLifecycle({ postStart, preStop }: Lifecycle, field: Field): void {
  if (postStart !== undefined) validateHandler(postStart, field.at("post_start"));
  if (preStop !== undefined) validateHandler(preStop, field.at("pre_stop"));
}

function validateHandler({ action }: LifecycleHandler, field: Field): void {
  switch (action?.$case) {
    case "exec":
      validateCommand(action.value.command, field.at("exec").at("command"));
      return;
    case "httpGet":
      validateHttpGet(action.value, field.at("http_get"));
      return;
    case "tcpSocket":
      field.at("tcp_socket").at("port").check(portProblem(action.value.port));
      return;
    case undefined:
      field.invalid("must have one of exec, http_get, tcp_socket");
      return;
    default:
      action satisfies never;
  }
}
