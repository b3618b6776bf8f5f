import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { IdentityIssuer } from "../objects/identity-issuer.ts";

/**
 * The time for which verifiers may cache the keys. A new key must be published for longer before it
 * is used to sign.
 */
const CACHE_SECONDS = 300;
const HEADERS = { "cache-control": `public, max-age=${CACHE_SECONDS}` };

/**
 * Adds the routes that verifiers of pods' identity tokens need. They serve public keys only, so
 * callers need no credentials.
 */
export function addIdentityRoutes(
  app: Hono<{ Bindings: HttpBindings }>,
  issuer: Pick<IdentityIssuer, "issuer" | "publicKeys">,
): void {
  app.get("/.well-known/jwks.json", (c) => c.json({ keys: issuer.publicKeys() }, 200, HEADERS));
  app.get("/.well-known/openid-configuration", (c) => {
    const base = issuer.issuer.startsWith("https://")
      ? issuer.issuer.replace(/\/$/, "")
      : new URL(c.req.url).origin;
    return c.json(
      {
        issuer: issuer.issuer,
        jwks_uri: `${base}/.well-known/jwks.json`,
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["ES256"],
      },
      200,
      HEADERS,
    );
  });
}
