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

const hostname = { name: "HOSTNAME", required: true, help: "such as app.example.com" } as const;

const list = defineCommand({
  name: "ls",
  summary: "List the certificates that the coordinator gets by itself",
  details:
    "Those are for routes that terminate TLS and name no secret. Who makes them is a setting of the coordinator.",
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
          : "no route asks for a certificate",
    });
    return EXIT.ok;
  },
});

const describe = defineCommand({
  name: "describe",
  summary: "Tell all that is known of a hostname's certificate",
  operands: [hostname],
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
  summary: "Have another certificate made now, before its time or after a failure that is mended",
  details: `The one there is serves until the other has come. Waits that the authority has asked for are kept, as its limits are
what keeps other hostnames from getting theirs.`,
  operands: [hostname],
  run: async (invocation) => {
    const context = contextOf(invocation);
    const [name = ""] = invocation.operands;
    const response = await withCoordinator(context, (coordinator) =>
      coordinator.call(operator.renewCertificate, { hostname: name }),
    );
    printOne(
      context,
      () => RenewCertificateResponse.toJSON(response),
      () =>
        `certificate/${name} is asked for again; to see how it goes: forage certificate describe ${name}\n`,
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

export const certificate = groupCommands(
  "certificate",
  "Look at certificates that the coordinator gets for routes",
  [list, describe, renew, authority],
);
