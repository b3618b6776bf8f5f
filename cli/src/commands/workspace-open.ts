import { LOGIN_PATH, LOGIN_VALIDITY_MS, makeLoginCode } from "@forage/identity/workspace-login";
import { AdmissionLevel, PortVisibility, type WorkspaceStatus } from "@forage/proto/core";
import { defineCommand } from "../command/definition.ts";
import { contextOf, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { findWorkspace, WORKSPACE_OPERAND } from "./find-workspace.ts";

export const open = defineCommand({
  name: "open",
  summary: "Print a link that opens a workspace in a browser",
  details: `The link logs a browser in once and is valid for ${LOGIN_VALIDITY_MS / 60_000} minutes. It needs a token with the role editor. A public port and a workspace that admits everyone get a plain URL.`,
  operands: [WORKSPACE_OPERAND],
  flags: {
    port: {
      type: "text",
      hint: "PORT",
      help: "a port that the workspace exposes, in place of the workspace itself",
    },
  },
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { world } = context;
    const text = invocation.flags.port;
    if (text !== undefined && !/^\d{1,5}$/.test(text))
      throw new CliError("USAGE", `--port must be a number, not ${JSON.stringify(text)}`);
    const port = text === undefined ? undefined : Number(text);
    const status = await withCoordinator(context, (coordinator) =>
      findWorkspace(coordinator, invocation.operands[0] ?? ""),
    );
    world.stdout.write(`${loginLink(status, port, world.nowMs())}\n`);
    return EXIT.ok;
  },
});

/** Returns a link that logs in, or the plain URL if everyone may visit the workspace or port. */
export function loginLink(status: WorkspaceStatus, port: number | undefined, nowMs: number): string {
  const exposed = status.spec?.exposedPorts.find((candidate) => candidate.port === port);
  if (port !== undefined && exposed === undefined)
    throw new CliError("NOT_FOUND", `workspace ${status.id} does not expose port ${port}: expose it first`);
  const text = exposed?.url ?? status.spec?.url ?? "";
  if (!URL.canParse(text)) throw new CliError("NOT_FOUND", `workspace ${status.id} has no URL`);
  const isPublic =
    status.auth?.admission === AdmissionLevel.ADMIT_EVERYONE || exposed?.visibility === PortVisibility.PUBLIC;
  if (isPublic) return text;
  const ownerToken = status.auth?.ownerToken ?? "";
  if (ownerToken === "")
    throw new CliError("DENIED", `this token can't open workspace ${status.id}: it needs the role editor`);
  const url = new URL(text);
  const code = makeLoginCode({ ownerToken, host: url.hostname, nowMs });
  return `${url.origin}${LOGIN_PATH}?code=${code}`;
}
