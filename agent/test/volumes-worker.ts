import { VolumeHost } from "./volume-host.ts";
import { busyPods } from "./volumes-work.ts";

// `volumes-worker.ts DIRECTORY` prepares and releases pods until it is killed.
const host = new VolumeHost(process.argv[2] ?? "");
const { signal } = new AbortController();
const volumes = await host.start(["kept"]);
process.send?.("ready");
for (let round = 0; ; round += 1) {
  await Promise.all(
    busyPods(round).map(async ({ pod, mounts }) => {
      await volumes.prepare(pod, signal);
      await volumes.binds(pod.uid, "web", mounts, signal);
      await volumes.update(pod, signal);
      if (pod.uid !== "kept") await volumes.release(pod.uid, signal);
    }),
  );
}
