import type { Config } from "../config.ts";
import type { ExamineHost } from "../sessions/serve-examine.ts";

/** Returns the examination of this host, which one caller at a time may ask for. Its code is loaded when it is needed for the first time. */
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
