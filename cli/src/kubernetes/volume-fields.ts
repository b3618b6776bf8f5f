import type { Field } from "../conversion/field.ts";
import {
  type Draft,
  flag,
  list,
  lost,
  oneOf,
  part,
  type ReadField,
  type Rule,
  type Rules,
  readFields,
  type Scope,
  text,
} from "./rules.ts";

/** Reads permission bits: octal with a leading 0, else decimal, as Kubernetes reads YAML. */
const mode: ReadField = (field, into, key) => {
  const written = field.text();
  const [, octal] = /^0o?([0-7]{1,4})$/.exec(written) ?? [];
  const name = key === "mode" ? "mode" : "default_mode";
  if (octal !== undefined) into[name] = Number.parseInt(octal, 8);
  else if (/^\d{1,4}$/.test(written)) into[name] = Number(written);
  else field.fail("must be permission bits such as 0644");
};

export const KEY_TO_PATH_FIELDS: Rules = { key: text, mode, path: text };

export const CONFIG_MAP_VOLUME_FIELDS: Rules = {
  defaultMode: mode,
  items: list(KEY_TO_PATH_FIELDS),
  name: (field, into) => {
    into.config_map_name = field.text();
  },
  optional: flag,
};

export const SECRET_VOLUME_FIELDS: Rules = {
  defaultMode: mode,
  items: list(KEY_TO_PATH_FIELDS),
  optional: flag,
  secretName: text,
};

export const EMPTY_DIR_FIELDS: Rules = {
  medium: oneOf(["", "Memory"], "has no counterpart"),
  sizeLimit: text,
};

export const CLAIM_VOLUME_FIELDS: Rules = { claimName: text, readOnly: flag };

export const HOST_PATH_FIELDS: Rules = {
  path: text,
  type: oneOf(["", "Directory", "File", "DirectoryOrCreate", "FileOrCreate"], "has no counterpart"),
};

export const NFS_FIELDS: Rules = { path: text, readOnly: flag, server: text };

const CLOUD = lost("has no counterpart: use a claim, a directory of the host or NFS");

export const VOLUME_FIELDS: Rules = {
  awsElasticBlockStore: CLOUD,
  azureDisk: CLOUD,
  azureFile: CLOUD,
  cephfs: CLOUD,
  cinder: CLOUD,
  configMap: part(CONFIG_MAP_VOLUME_FIELDS),
  csi: CLOUD,
  downwardAPI: lost("has no counterpart: give facts about the pod as variables"),
  emptyDir: part(EMPTY_DIR_FIELDS),
  ephemeral: lost("has no counterpart: use emptyDir, or a claim"),
  fc: CLOUD,
  flexVolume: CLOUD,
  flocker: CLOUD,
  gcePersistentDisk: CLOUD,
  gitRepo: lost("has no counterpart: fetch it in an init container"),
  glusterfs: CLOUD,
  hostPath: part(HOST_PATH_FIELDS),
  image: lost("has no counterpart: copy the files in an init container with that image"),
  iscsi: CLOUD,
  name: text,
  nfs: part(NFS_FIELDS),
  persistentVolumeClaim: (field, into, _key, scope) => {
    into.pvc = readFields(field, CLAIM_VOLUME_FIELDS, scope);
  },
  photonPersistentDisk: CLOUD,
  portworxVolume: CLOUD,
  projected: lost("has no counterpart: mount each source on its own"),
  quobyte: CLOUD,
  rbd: CLOUD,
  scaleIO: CLOUD,
  secret: part(SECRET_VOLUME_FIELDS),
  storageos: CLOUD,
  vsphereVolume: CLOUD,
} satisfies Readonly<Record<string, Rule>>;

export interface Volumes {
  readonly volumes: readonly Draft[];
  /** The names of volumes whose source can't be converted. */
  readonly lost: ReadonlySet<string>;
}

/** Reads the volumes of a pod. A volume without a source is an empty directory. */
export function readVolumes(field: Field | undefined, scope: Scope): Volumes {
  const volumes: Draft[] = [];
  const lostNames = new Set<string>();
  for (const item of field?.items() ?? []) {
    const sources = item.entries().filter(([key]) => key !== "name");
    const volume = readFields(item, VOLUME_FIELDS, scope);
    if (Object.keys(volume).length > 1) volumes.push(volume);
    else if (sources.length === 0) volumes.push({ ...volume, empty_dir: {} });
    else lostNames.add(String(volume.name));
  }
  return { volumes, lost: lostNames };
}
