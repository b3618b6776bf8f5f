import type { AuthContext, ParsedKey } from "ssh2";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { isSameToken } from "../owner-token.ts";

/** The most keys of a workspace that are compared. */
const MAX_KEYS = 100;
/** The hashes accepted in signatures of RSA keys; SHA-1 is broken. */
const RSA_HASHES = ["sha256", "sha512"];

/** Parses a line of `authorized_keys`. Returns undefined for other text. */
export type ParseKey = (line: string) => ParsedKey | undefined;

/**
 * Returns the workspace that the user name means. The name is `META_ID`, or `META_ID#TOKEN` for
 * clients that can't send a password.
 */
export function workspaceOf(username: string, directory: WorkspaceDirectory): ReachableWorkspace | undefined {
  return directory.byMetaId(splitUser(username).metaId);
}

/** The credential with which a client proved that it may use the workspace. */
export type Proof =
  | { readonly type: "token"; readonly token: string }
  | { readonly type: "key"; readonly line: string };

/** Reports whether the proof is still valid after a change of the workspace. */
export function isValid(proof: Proof, { ownerToken, sshKeys }: ReachableWorkspace): boolean {
  switch (proof.type) {
    case "token":
      return isSameToken(proof.token, ownerToken);
    case "key":
      return sshKeys.includes(proof.line);
    default:
      return proof satisfies never;
  }
}

/**
 * Returns the proof that one request of a client contains, or undefined if it contains no valid
 * one.
 */
export function proofOf(
  context: AuthContext,
  workspace: ReachableWorkspace,
  parse: ParseKey,
): Proof | undefined {
  const byToken = (token: string): Proof | undefined =>
    isSameToken(token, workspace.ownerToken) ? { type: "token", token } : undefined;
  switch (context.method) {
    case "none": {
      const { token } = splitUser(context.username);
      return token === undefined ? undefined : byToken(token);
    }
    case "password":
      return byToken(context.password);
    case "publickey": {
      const found = workspace.sshKeys.slice(0, MAX_KEYS).find((line) => {
        const key = parse(line);
        if (key === undefined || key.type === "ssh-dss" || !key.getPublicSSH().equals(context.key.data))
          return false;
        // A client first asks, without a signature, whether the key would be accepted.
        if (context.signature === undefined || context.blob === undefined) return true;
        if (key.type === "ssh-rsa" && !RSA_HASHES.includes(context.hashAlgo ?? "")) return false;
        return key.verify(context.blob, context.signature, context.hashAlgo) === true;
      });
      return found === undefined ? undefined : { type: "key", line: found };
    }
    default:
      return undefined;
  }
}

function splitUser(username: string): { readonly metaId: string; readonly token: string | undefined } {
  const at = username.indexOf("#");
  if (at < 0) return { metaId: username, token: undefined };
  return { metaId: username.slice(0, at), token: username.slice(at + 1) };
}
