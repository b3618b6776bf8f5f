import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { CertificateHandlers } from "../../certificates/handlers.ts";
import { CoordinatorError } from "../../errors.ts";
import { toEpochMs } from "../../model/timestamp.ts";
import { type ApiCallOptions, assertPrivate, type Bound, callAs, failed } from "./call.ts";

export interface CertificateRouteOptions extends ApiCallOptions {
  readonly handlers: CertificateHandlers;
}

/**
 * Adds the routes for certificates of the cluster's issuer: JSON below `/api/v1/certificates`.
 * Tokens, roles and checks are the same as for gRPC. Only loopback and TLS connections are served,
 * because requests contain the token.
 */
export function addCertificateRoutes(
  app: Hono<{ Bindings: HttpBindings }>,
  options: CertificateRouteOptions,
): void {
  const served = (work: Work) => (c: Bound) => serve(c, work, options);
  app.get("/api/v1/certificates", served(list));
  app.get("/api/v1/certificates/:hostname", served(one));
  app.post("/api/v1/certificates/:hostname/renew", served(renew));
  app.get("/api/v1/certificateauthority", served(authority));
}

type Work = (c: Bound, options: CertificateRouteOptions) => Promise<Record<string, unknown>>;

async function serve(c: Bound, work: Work, options: CertificateRouteOptions): Promise<Response> {
  try {
    assertPrivate(c);
    return c.json(await work(c, options), 200, { "cache-control": "no-store" });
  } catch (error) {
    return failed(c, error);
  }
}

const list: Work = async (c, options) => {
  const { certificates, issuer } = await ask(c, "", options);
  return { items: certificates.map(jsonOf), issuer };
};

const one: Work = async (c, options) => {
  const hostname = hostnameOf(c);
  const [found] = (await ask(c, hostname, options)).certificates;
  if (found !== undefined) return jsonOf(found);
  throw new CoordinatorError("NOT_FOUND", `there is no certificate for "${hostname}"`);
};

const renew: Work = async (c, options) => {
  const request = { hostname: hostnameOf(c) };
  const { handlers } = options;
  const { certificate } = await callAs(c, "renewCertificate", request, handlers.renewCertificate, options);
  return certificate === undefined ? {} : jsonOf(certificate);
};

const authority: Work = async (c, options) => {
  const { getCertificateAuthority } = options.handlers;
  return { ...(await callAs(c, "getCertificateAuthority", {}, getCertificateAuthority, options)) };
};

function ask(c: Bound, hostname: string, options: CertificateRouteOptions) {
  return callAs(c, "listCertificates", { hostname }, options.handlers.listCertificates, options);
}

function hostnameOf(c: Bound): string {
  return c.req.param("hostname") ?? "";
}

function jsonOf(certificate: Certificate): Record<string, unknown> {
  const { hostname, state, message, issuer, chainPem, failures } = certificate;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  return {
    hostname,
    state,
    ...(message !== "" && { message }),
    issuer,
    ...(chainPem !== "" && { chainPem }),
    notBefore: time(toEpochMs(certificate.notBefore)),
    notAfter: time(toEpochMs(certificate.notAfter)),
    renewAt: time(toEpochMs(certificate.renewAt)),
    ...(failures > 0 && {
      failures,
      failedAt: time(toEpochMs(certificate.failedAt)),
      retryAt: time(toEpochMs(certificate.retryAt)),
    }),
  };
}
