import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "../../common/src/message-of.ts";
import { parseAddress } from "../instance/flags.ts";
import { SetupError } from "../lib/setup-error.ts";
import { PARTS, type Part } from "./install-files.ts";

export interface InstallFlags {
  /** The parts in the order of their start. */
  readonly parts: readonly Part[];
  readonly coordinator: string | undefined;
  readonly joinTokenFile: string | undefined;
  /** Whether Envoy is installed on the host, with which it serves routes. */
  readonly gateway: boolean;
  readonly start: boolean;
  readonly root: string;
  readonly remove: boolean;
}

/** `startDir` is the base of relative paths. */
export function parseInstallFlags(argv: readonly string[], startDir: string): InstallFlags {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    coordinator: text,
    "join-token-file": text,
    gateway: flag,
    "no-start": flag,
    root: text,
    remove: flag,
  };
  const { values, positionals } = parse(() =>
    parseArgs({ args: [...argv], options, allowPositionals: true }),
  );
  const [what = "all", ...others] = positionals;
  if (others.length > 0 || !["coordinator", "agent", "all"].includes(what)) {
    throw new SetupError("BAD_USAGE", `install what? ${positionals.join(" ")}`, "coordinator, agent or all");
  }
  if (values.coordinator !== undefined) parseAddress(values.coordinator, "--coordinator");
  if (values.gateway && what === "coordinator")
    throw new SetupError(
      "BAD_USAGE",
      "--gateway is for hosts with an agent",
      "sudo hack/install agent --gateway",
    );
  const path = values["join-token-file"];
  return {
    parts: what === "all" ? PARTS : [what as Part],
    coordinator: values.coordinator,
    joinTokenFile: path === undefined ? undefined : resolve(startDir, path),
    gateway: values.gateway ?? false,
    start: !values["no-start"],
    root: values.root === undefined ? "/" : resolve(startDir, values.root),
    remove: values.remove ?? false,
  };
}

function parse<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const message = messageOf(error);
    throw new SetupError("BAD_USAGE", message, "sudo hack/install --help", { cause: error });
  }
}
