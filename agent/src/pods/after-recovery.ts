import { type PodVolumes, VolumeError } from "../volumes/volumes.ts";

/**
 * Returns volumes whose operations reject with `UNAVAILABLE` until they have been recovered. A damaged claim can delay
 * the recovery for long, and pods without volumes must not wait for it.
 */
export function afterRecovery(volumes: PodVolumes, isRecovered: () => boolean): PodVolumes {
  const whenRecovered = async <Result>(use: () => Promise<Result>): Promise<Result> => {
    if (!isRecovered())
      throw new VolumeError("UNAVAILABLE", "this host's volumes have not been recovered yet");
    return use();
  };
  return {
    recover: (pods, signal) => volumes.recover(pods, signal),
    prepare: (pod, signal) => whenRecovered(() => volumes.prepare(pod, signal)),
    binds: (uid, container, mounts, signal) =>
      whenRecovered(() => volumes.binds(uid, container, mounts, signal)),
    update: (pod, signal) => whenRecovered(() => volumes.update(pod, signal)),
    release: (uid, signal) => whenRecovered(() => volumes.release(uid, signal)),
    claims: () => volumes.claims(),
    removeClaim: (namespace, name, signal) =>
      whenRecovered(() => volumes.removeClaim(namespace, name, signal)),
    close: () => volumes.close(),
  };
}
