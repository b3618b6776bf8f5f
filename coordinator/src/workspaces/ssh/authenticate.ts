import type { AuthContext, ParsedKey } from "ssh2";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { isSameToken } from "../owner-token.ts";

/** Keys of a workspace beyond this number are not tried. */
const MAX_KEYS = 100;
/** The weakest signature that RSA keys may make; SHA-1 is broken. */
const RSA_HASHES = ["sha256", "sha512"];

/** Reads a line of `authorized_keys`. Returns undefined for other text. */
export type ParseKey = (line: string) => ParsedKey | undefined;

/** A user name is `META_ID`, or `META_ID#TOKEN` for clients that can't send a password. */
export function workspaceOf(username: string, directory: WorkspaceDirectory): ReachableWorkspace | undefined {
  return directory.byMetaId(splitUser(username).metaId);
}

/** Reports whether one request of a client proves that it may use the workspace. */
export function authenticates(context: AuthContext, workspace: ReachableWorkspace, parse: ParseKey): boolean {
  switch (context.method) {
    case "none": {
      const { token } = splitUser(context.username);
      return token !== undefined && isSameToken(token, workspace.ownerToken);
    }
    case "password":
      return isSameToken(context.password, workspace.ownerToken);
    case "publickey":
      return workspace.sshKeys.slice(0, MAX_KEYS).some((line) => {
        const key = parse(line);
        if (key === undefined || key.type === "ssh-dss" || !key.getPublicSSH().equals(context.key.data))
          return false;
        // A client asks first whether a key would do.
        if (context.signature === undefined || context.blob === undefined) return true;
        if (key.type === "ssh-rsa" && !RSA_HASHES.includes(context.hashAlgo ?? "")) return false;
        return key.verify(context.blob, context.signature, context.hashAlgo) === true;
      });
    default:
      return false;
  }
}

function splitUser(username: string): { readonly metaId: string; readonly token: string | undefined } {
  const at = username.indexOf("#");
  if (at < 0) return { metaId: username, token: undefined };
  return { metaId: username.slice(0, at), token: username.slice(at + 1) };
}
