import { diskPressure } from "../../capacity/disk-pressure.ts";
import { failure, type HostCheck, ok } from "./finding.ts";

export const diskCheck: HostCheck = {
  name: "disk",
  run: async (host, { dataDir }) => {
    const space = await host.space(dataDir);
    if (space === undefined)
      return [failure(`${dataDir}: its filesystem can't be read`, "set dataDir in agent.yaml")];
    const { pressure, message } = diskPressure(space, false);
    const text = `${dataDir}: ${message}`;
    return pressure
      ? [failure(text, "free space or use a larger disk; the node gets no pods with so little")]
      : [ok(text)];
  },
};
