import type { GetDestination } from "@forage/proto/destination";
import { assertNamespace } from "../rpc/access.ts";
import type { CallContext } from "../rpc/caller.ts";
import { readContextToken } from "./context-token.ts";
import type { Directory } from "./directory.ts";
import { endpointSubject } from "./endpoint-subject.ts";
import { follow } from "./follow.ts";
import { dependency, zoneOfNode } from "./keys.ts";
import { parseServicePath } from "./path.ts";

export interface DestinationOptions {
  readonly directory: Directory;
  /** Whether callers need a token: not on the plain-text listener, which is for neighbours only. */
  readonly authorize: boolean;
}

/** The endpoints of one service port, as encoded Updates: complete at once, then each change. */
export async function* getDestination(
  request: GetDestination,
  context: CallContext,
  { directory, authorize }: DestinationOptions,
): AsyncGenerator<Buffer> {
  const { board, state, domain } = directory;
  const path = parseServicePath(request.path, domain);
  if (authorize) assertNamespace(context.caller, context.method, path.namespace);
  const { node } = readContextToken(request.contextToken);
  yield* follow(board, {
    subject: () => endpointSubject(path, zoneOfNode(state.node(node)), directory),
    alsoOn: node === "" ? [] : [dependency.node(node)],
    signal: context.signal,
  });
}
