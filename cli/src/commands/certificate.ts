import {
  Certificate,
  GetCertificateAuthorityResponse,
  RenewCertificateResponse,
} from "@forage/proto/forage/operator/v1/operator";
import { operator } from "../client/coordinator.ts";
import { defineCommand, groupCommands } from "../command/definition.ts";
import { contextOf, printListing, printOne, withCoordinator } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { certificateColumns, describeCertificate } from "../view/certificates.ts";

const HOSTNAME = { name: "HOSTNAME", required: true, help: "such as app.example.com" } as const;

const list = defineCommand({
  name: "ls",
  summary: "List the certificates that the coordinator gets by itself",
  details:
    "These certificates are for routes that terminate TLS and name no secret. The coordinator's setting certificates.issuer chooses the issuer.",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const { certificates, issuer } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listCertificates, { hostname: "" }),
    );
    printListing(context, {
      columns: certificateColumns(context.world.nowMs()),
      rows: certificates,
      json: Certificate.toJSON,
      name: (it) => `certificate/${it.hostname}`,
      none:
        issuer === ""
          ? "the cluster has no issuer of certificates: see certificates.issuer in the coordinator's configuration"
          : "no route needs a certificate",
    });
    return EXIT.ok;
  },
});

const describe = defineCommand({
  name: "describe",
  summary: "Show the certificate of a hostname in detail",
  operands: [HOSTNAME],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const { certificates } = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.listCertificates, { hostname: name }),
    );
    const [found] = certificates;
    if (found === undefined)
      throw new CliError(
        "NOT_FOUND",
        `there is no certificate for "${name}": \`forage certificate ls\` lists them`,
      );
    printOne(
      context,
      () => Certificate.toJSON(found),
      () => describeCertificate(found, context.world.nowMs(), context.paint),
    );
    return EXIT.ok;
  },
});

const renew = defineCommand({
  name: "renew",
  summary: "Renew a certificate now, before its time or after the cause of a failure is removed",
  details: `The present certificate serves until the new one is issued. The command respects waiting times that the authority has set,
because its limits apply to all hostnames together.`,
  operands: [HOSTNAME],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.renewCertificate, { hostname: name }),
    );
    printOne(
      context,
      () => RenewCertificateResponse.toJSON(response),
      () => `certificate/${name} is being renewed; to follow it: forage certificate describe ${name}\n`,
    );
    return EXIT.ok;
  },
});

const authority = defineCommand({
  name: "ca",
  summary: "Print the root of the development CA, for the trust stores of clients",
  run: async (invocation) => {
    const context = contextOf(invocation);
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.getCertificateAuthority, {}),
    );
    printOne(
      context,
      () => GetCertificateAuthorityResponse.toJSON(response),
      () => response.certificatePem,
    );
    return EXIT.ok;
  },
});

export const certificate = groupCommands("certificate", "Show and renew the certificates of routes", [
  list,
  describe,
  renew,
  authority,
]);
