import type { GatewayCertificate } from "@forage/proto/forage/agent/v1/agent";
import { type JsonObject, typed } from "./json.ts";

/** Returns a certificate with its key as Envoy's secret. A replacement is used from the next handshake on. */
export function secretOf({ id, chainPem, keyPem }: GatewayCertificate): JsonObject {
  return typed("extensions.transport_sockets.tls.v3.Secret", {
    name: id,
    tls_certificate: {
      certificate_chain: { inline_string: chainPem },
      private_key: { inline_string: keyPem },
    },
  });
}
