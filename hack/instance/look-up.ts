import { DestinationClient, type Update } from "@forage/proto/destination";
import { credentials } from "@grpc/grpc-js";

const ANSWER_LIMIT_MS = 3_000;

/** Looks up the endpoints of `name` once at a Destination's plain-text listener. Returns each as `host:port`. */
export function lookUp(listener: string, name: string, signal: AbortSignal): Promise<string[]> {
  const client = new DestinationClient(listener, credentials.createInsecure());
  return new Promise<string[]>((resolve, reject) => {
    const stream = client.get(
      { scheme: "", path: name, contextToken: "" },
      { deadline: Date.now() + ANSWER_LIMIT_MS },
    );
    signal.addEventListener("abort", () => stream.cancel(), { once: true });
    stream.on("error", reject);
    stream.once("data", (update: Update) => {
      resolve(addressesOf(update));
      // Otherwise it would continue to send changes.
      stream.cancel();
    });
  }).finally(() => client.close());
}

function addressesOf({ update }: Update): string[] {
  if (update?.$case !== "add") return [];
  return update.value.addrs.flatMap(({ addr }) => {
    const ip = addr?.ip?.ip;
    if (!addr || ip?.$case !== "ipv4") return [];
    const bytes = [24, 16, 8, 0].map((shift) => (ip.value >>> shift) & 255);
    return `${bytes.join(".")}:${addr.port}`;
  });
}
