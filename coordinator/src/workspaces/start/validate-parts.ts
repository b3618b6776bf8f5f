import { type PortSpec, PortVisibility } from "@forage/proto/core";
import type { Field } from "../../api/validate/field.ts";
import { portProblem } from "../../api/validate/syntax/numbers.ts";
import { parseGoDuration } from "../go-duration.ts";

/**
 * The limit is a month: longer than any workspace should live, and short enough to detect typing
 * errors.
 */
const MAX_TIMEOUT_MS = 31 * 24 * 3600 * 1000;

/** Checks a time-out. An empty one means the default. */
export function checkTimeout(text: string, field: Field): void {
  if (text === "") return;
  const ms = parseGoDuration(text);
  if (ms === undefined) field.invalid("must be a Go duration such as 1h30m");
  else if (ms <= 0 || ms > MAX_TIMEOUT_MS) field.invalid("must be more than 0 and at most 744h");
}

export function checkPort({ port, visibility }: PortSpec, field: Field): void {
  field.at("port").check(portProblem(port));
  const known: readonly number[] = [PortVisibility.PRIVATE, PortVisibility.PUBLIC];
  if (!known.includes(visibility))
    field.at("visibility").invalid("must be PORT_VISIBILITY_PRIVATE or PORT_VISIBILITY_PUBLIC");
}
