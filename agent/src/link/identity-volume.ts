import type { Pod, PodContainer } from "../pods/pod.ts";
import type { FilesSource, Volume } from "../volumes/volumes.ts";

/** The directory with `token`, `namespace` and `ca.crt` in every container of a pod with a service account. */
export const IDENTITY_PATH = "/var/run/secrets/forage.dev/serviceaccount";

const VOLUME = "forage-identity";
// Readable by the owner only. In a volume with an `fs_group`, the group can read whatever the owner can.
const FILE_MODE = 0o600;

/**
 * Returns the pod with its token mounted in its containers, unless they mount something else there. Returns a pod
 * without a service account unchanged. `authorityPem` is the authority of the coordinator that the pod should trust;
 * undefined if unknown.
 */
export function mountIdentity(pod: Pod, authorityPem?: string): Pod {
  const { serviceAccount, volumes } = pod;
  if (serviceAccount === undefined || volumes === undefined) return pod;
  if (volumes.volumes.some(({ name }) => name === VOLUME)) {
    throw new Error(`volume ${VOLUME}: the name is taken by the service account's token`);
  }
  const source = identitySource(pod, authorityPem);
  const volume: Volume = { name: VOLUME, source };
  return {
    ...pod,
    containers: pod.containers.map(withMount),
    ...(pod.initContainers && { initContainers: pod.initContainers.map(withMount) }),
    volumes: { ...volumes, volumes: [...volumes.volumes, volume] },
  };
}

function identitySource(pod: Pod, authorityPem: string | undefined): FilesSource {
  const { objects, namespace, serviceAccount, containers, initContainers = [] } = pod;
  const encoder = new TextEncoder();
  const { identityToken } = objects ?? {};
  const uids = new Set([...containers, ...initContainers].map((it) => it.user?.uid));
  const [uid] = uids;
  return {
    type: "files",
    secret: true,
    title: `the token of service account ${serviceAccount}`,
    ...(identityToken !== undefined && {
      contents: new Map([
        ["token", encoder.encode(identityToken)],
        ["namespace", encoder.encode(namespace)],
        ...(authorityPem === undefined ? [] : [["ca.crt", encoder.encode(authorityPem)] as const]),
      ]),
    }),
    items: [],
    defaultMode: FILE_MODE,
    optional: false,
    // The common user of all containers. Containers with different users share the files through `fs_group`.
    ...(uids.size === 1 && uid !== undefined && { ownerUid: uid }),
  };
}

function withMount(container: PodContainer): PodContainer {
  const mounts = container.mounts ?? [];
  if (mounts.some(({ mountPath }) => mountPath.replace(/\/+$/, "") === IDENTITY_PATH)) return container;
  const mount = { volume: VOLUME, mountPath: IDENTITY_PATH, subPath: "", readOnly: true };
  return { ...container, mounts: [...mounts, mount] };
}
