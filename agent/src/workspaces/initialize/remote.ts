import { WorkspaceError } from "../workspace-error.ts";

export interface Remote {
  /** The URL without credentials. */
  readonly url: string;
  /** The credentials of the URL, decoded. */
  readonly credentials?: Credentials;
}

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

const URL_LENGTH_MAX = 2_048;

/**
 * Checks the URL of a remote repository. @throws WorkspaceError INVALID for a URL that is not http or https. The
 * message doesn't repeat the URL, which may contain a password.
 */
export function parseRemote(field: string, text: string): Remote {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:"))
    throw new WorkspaceError(
      "INVALID",
      `${field}: it must be an http or https URL; other protocols are not cloned`,
    );
  const { username, password } = url;
  url.username = "";
  url.password = "";
  url.hash = "";
  if (username === "" && password === "") return { url: url.href };
  return { url: url.href, credentials: { user: decode(username), password: decode(password) } };
}

/** Returns the host and path, for messages. */
export function shownRemote({ url }: Remote): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

/** Returns the line of git's credential store. git sends it only to the server that it names. */
export function credentialLine({ url }: Remote, { user, password }: Credentials): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${encodeURIComponent(user)}:${encodeURIComponent(password)}@${host}\n`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
