import { type CoreOptions, startCore as real } from "../../coordinator/src/core.ts";
import { PREFIXES } from "../../coordinator/src/model/keys.ts";

export * from "../../coordinator/src/core.ts";

const AGAIN_MS = 60_000;

/** Writes the statuses of workloads again every minute, also if they have not changed. */
export const startCore: typeof real = (options) => {
  writeAgain(options);
  return real(options);
};

function writeAgain({ clock, store }: Pick<CoreOptions, "clock" | "store">): void {
  clock.schedule(AGAIN_MS, () => {
    writeAgain({ clock, store });
    writeAll(store).catch(() => undefined);
  });
}

async function writeAll(store: CoreOptions["store"]): Promise<void> {
  const { records } = await store.range(PREFIXES.workloadStatuses);
  await store.txn(
    [],
    records.map(({ key, value }) => ({ type: "put", key, value })),
  );
}
