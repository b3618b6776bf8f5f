/** Matches the names of the owner cookies of all workspaces. */
const OWNER_COOKIE = /^_.*_ws_.*_owner_$/;

/**
 * Returns the name of the cookie that holds a workspace's owner token: `_HOST_ws_INSTANCE_owner_`.
 */
export function ownerCookieName(host: string, instanceId: string): string {
  return `_${host.replaceAll(/[ .-]/g, "_")}_ws_${instanceId}_owner_`;
}

/** Returns the value of a cookie in a Cookie header, or undefined if it is absent. */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  for (const [found, value] of cookiesOf(header)) if (found === name) return value;
  return undefined;
}

/** Returns the Cookie header without owner cookies, or undefined if nothing is left. */
export function withoutOwnerCookies(header: string): string | undefined {
  const kept = header.split(";").filter((cookie) => !OWNER_COOKIE.test(nameOf(cookie)));
  return kept.length === 0 ? undefined : kept.join(";").trim();
}

/**
 * Returns a Set-Cookie header for a host-only cookie: scripts can't read it, and no other host
 * receives it.
 */
export function ownerCookie(name: string, token: string, secure: boolean): string {
  return `${name}=${encodeURIComponent(token)}; Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
}

function* cookiesOf(header: string | undefined): Generator<readonly [name: string, value: string]> {
  for (const cookie of (header ?? "").split(";")) {
    const at = cookie.indexOf("=");
    if (at > 0)
      yield [
        nameOf(cookie),
        cookie
          .slice(at + 1)
          .trim()
          .replace(/^"(.*)"$/, "$1"),
      ];
  }
}

function nameOf(cookie: string): string {
  const at = cookie.indexOf("=");
  return (at < 0 ? cookie : cookie.slice(0, at)).trim();
}
