import { pinsOf } from "@forage/identity";
import { parseCoordinatorToken } from "@forage/identity/coordinator-token";
import { channelCredentials } from "@forage/identity/credentials";
import type { PinnedToken } from "@forage/identity/pinned-token";
import { probeServer } from "@forage/identity/probe-server";
import {
  CoordinatorEnrollmentServiceClient,
  type JoinResponse,
} from "@forage/proto/forage/coordinator/v1/coordinator";
import { Metadata } from "@grpc/grpc-js";
import { type Config, ConfigError, hostPort } from "../config.ts";
import { giveKeysToOwner } from "../give-to-owner.ts";
import type { Clock } from "../time/clock.ts";
import { assertHasNoKeys, writeKeyFiles } from "./key-files.ts";

export interface JoinOptions {
  readonly config: Pick<Config, "dataDir" | "store" | "secretKeyFile">;
  /** The address (HOST:PORT) of the gRPC port of a coordinator of the cluster. */
  readonly address: string;
  /** A token from `forage coordinator add`. */
  readonly token: string;
  /** The name of this host. */
  readonly name: string;
  readonly clock: Pick<Clock, "nowMs">;
  readonly signal: AbortSignal;
}

export interface JoinResult {
  readonly joined: string;
  /** The paths of written files in the data directory. */
  readonly files: readonly string[];
  /** Steps that the operator must take before this coordinator can lead. */
  readonly toDo: readonly string[];
}

const JOIN_TIMEOUT_MS = 30_000;
const AUTHORITY = "authority/ca.pem";
const SECRET_KEYS = "keys/secrets.keys";

/**
 * Receives the keys of a cluster from one of its coordinators, so that this host's coordinator can
 * follow. The other coordinator's root is compared with the pin in the token before the secret is
 * sent.
 */
export async function joinCluster(options: JoinOptions): Promise<JoinResult> {
  const { config, address, signal } = options;
  const { dataDir } = config;
  const token = parseCoordinatorToken(options.token);
  if (config.store.etcd === undefined)
    throw new ConfigError(
      "the configuration has no `store.etcd`: several coordinators share a store in etcd, so take the configuration of the first one",
    );
  await assertHasNoKeys(dataDir);
  const { host, port } = hostPort(address);
  const { rootPem } = await probeServer(host, port, [token.pin], signal);
  const { files } = await callJoin(options, rootPem, token);
  const authority = files.find(({ path }) => path === AUTHORITY);
  if (authority === undefined || !pinsOf(authority.content.toString("utf8")).includes(token.pin))
    throw new ConfigError(`${address} sent no ${AUTHORITY} of the cluster that the token is for`);
  try {
    const written = await writeKeyFiles(dataDir, files);
    return { joined: address, files: written, toDo: secretKeysToDo(config, written) };
  } finally {
    await giveKeysToOwner(dataDir);
  }
}

/**
 * Returns the operator's steps for the key of secrets, which may be outside of the data directory.
 */
function secretKeysToDo({ secretKeyFile }: JoinOptions["config"], files: readonly string[]): string[] {
  if (secretKeyFile !== undefined)
    return [`put the same secretKeyFile on this host as on the other coordinators: ${secretKeyFile}`];
  if (files.includes(SECRET_KEYS)) return [];
  return [
    "give this coordinator the same secret keys as the others, which have them in a secretKeyFile or a systemd credential",
  ];
}

async function callJoin(
  { address, name, clock }: JoinOptions,
  rootPem: string,
  { id, secret }: PinnedToken,
): Promise<JoinResponse> {
  const client = new CoordinatorEnrollmentServiceClient(address, channelCredentials({ caPem: rootPem }));
  const request = { tokenId: id, tokenSecret: secret, name };
  const deadline = clock.nowMs() + JOIN_TIMEOUT_MS;
  try {
    return await new Promise((resolve, reject) => {
      client.join(request, new Metadata(), { deadline }, (error, response) => {
        if (error !== null) reject(new Error(`${address} refuses: ${error.details}`, { cause: error }));
        else resolve(response);
      });
    });
  } finally {
    client.close();
  }
}
