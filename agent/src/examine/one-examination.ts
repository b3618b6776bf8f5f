import type { Config } from "../config.ts";
import type { ExamineHost } from "../sessions/serve-examine.ts";

/** Returns a function that examines this host for one caller at a time. Its code is loaded at the first call. */
export function oneExamination(config: Config): ExamineHost {
  let isBusy = false;
  return async function* ({ peers }) {
    if (isBusy) throw new Error("the host is being examined: try again in half a minute");
    isBusy = true;
    try {
      const { examineHost } = await import("./examine-host.ts");
      const { tryConnection } = await import("./examine-peer.ts");
      const { checkedHost, measureFrom } = await import("../setup/checked-host.ts");
      const probes = { connection: tryConnection, path: measureFrom };
      yield* examineHost(peers, { config, host: checkedHost(), probes });
    } finally {
      isBusy = false;
    }
  };
}
