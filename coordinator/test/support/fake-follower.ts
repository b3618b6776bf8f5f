import type { TestContext } from "node:test";
import { channelCredentials } from "@forage/identity/credentials";
import {
  CoordinatorServiceService,
  FollowerServiceService,
  GetSupportFilesResponse,
  ReportRequest,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { Client, Metadata, Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { serverMaterial } from "../../src/identity.ts";
import { callsOf } from "./calls.ts";
import type { World } from "./world.ts";

/** The file parts that a follower sends, and the error that ends them, if any. */
export interface FollowerAnswer {
  readonly parts: readonly (readonly [path: string, content: string, problem?: string])[];
  readonly error?: { readonly code: number; readonly details: string };
}

/** Serves like a follower, and reports to the leader under this name. Returns its address. */
export async function startFakeFollower(
  t: TestContext,
  { authority, address: leader, caPem }: World,
  name: string,
  answer: FollowerAnswer,
): Promise<string> {
  const { chainPem, keyPem } = await serverMaterial(authority, ["127.0.0.1"]);
  const pair = { cert_chain: Buffer.from(chainPem), private_key: Buffer.from(keyPem) };
  const server = new Server();
  server.addService(FollowerServiceService, {
    getSupportFiles: (call: ServerWritableStream<unknown, GetSupportFilesResponse>) => {
      for (const [path, content, problem = ""] of answer.parts)
        call.write(GetSupportFilesResponse.fromPartial({ path, content: Buffer.from(content), problem }));
      if (answer.error === undefined) call.end();
      else call.emit("error", answer.error);
    },
  });
  const credentials = ServerCredentials.createSsl(Buffer.from(authority.certPem), [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  t.after(() => server.forceShutdown());
  const address = `127.0.0.1:${port}`;
  const own = await authority.issueCoordinator(`follower-${port}`);
  const client = new Client(leader, channelCredentials({ caPem, certPem: own.chainPem, keyPem: own.keyPem }));
  t.after(() => client.close());
  const report = ReportRequest.fromPartial({ name, addresses: [address] });
  await callsOf(CoordinatorServiceService, client, new Metadata()).report(report);
  return address;
}
