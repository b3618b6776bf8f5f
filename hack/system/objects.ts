import { readFileSync } from "node:fs";
import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import {
  type Object as ForageObject,
  OperatorServiceClient,
  PutObjectRequest,
} from "@forage/proto/forage/operator/v1/operator";
import type { System } from "./system.ts";

/**
 * Creates or replaces an object such as a secret, config map or claim through the API. Rejects with the coordinator's
 * error.
 */
export async function putObject(
  { grpc, caFile, tokenFile }: Pick<System, "grpc" | "caFile" | "tokenFile">,
  namespace: string,
  object: Parameters<typeof ForageObject.fromPartial>[0],
): Promise<void> {
  const client = new OperatorServiceClient(grpc, channelCredentials({ caPem: readFileSync(caFile, "utf8") }));
  const metadata = bearerMetadata(readFileSync(tokenFile, "utf8").trim());
  const request = PutObjectRequest.fromPartial({ namespace, object: { namespace, ...object } });
  try {
    await new Promise<void>((resolve, reject) => {
      client.putObject(request, metadata, (error) => (error === null ? resolve() : reject(error)));
    });
  } finally {
    client.close();
  }
}
