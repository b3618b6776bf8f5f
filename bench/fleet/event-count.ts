import { bearerMetadata, channelCredentials } from "@forage/identity/credentials";
import { type ListEventsResponse, OperatorServiceClient } from "@forage/proto/forage/operator/v1/operator";
import type { CoordinatorProcess } from "./coordinator-process.ts";

/** Returns the number of events of one reason that the coordinator keeps, at most 10,000. */
export async function eventCount(
  { address, caPem, token }: CoordinatorProcess,
  reason: string,
): Promise<number> {
  const operator = new OperatorServiceClient(address, channelCredentials({ caPem }));
  const filter = { kind: "", name: "", type: "", reason, since: undefined };
  const request = { namespace: "", filter, after: 0n, limit: 10_000 };
  try {
    const { events } = await new Promise<ListEventsResponse>((resolve, reject) =>
      operator.listEvents(request, bearerMetadata(token), (error, response) =>
        error ? reject(error) : resolve(response),
      ),
    );
    return events.length;
  } finally {
    operator.close();
  }
}
