import type { Field } from "../conversion/field.ts";
import { eachField, losing, memory } from "./read-amounts.ts";
import type { Mapping, Mount, ServiceDraft } from "./service-draft.ts";

/**
 * Reads the field `volumes`: named volumes become claims, absolute paths become directories of the
 * host, and those without a source become empty directories.
 */
export function readVolumes(field: Field, { mounts }: ServiceDraft): void {
  for (const item of field.items()) {
    const mount = item.kind === "map" ? readLongVolume(item) : readShortVolume(item);
    if (mount !== undefined) mounts.push(mount);
  }
}

/** Reads the field `tmpfs`: one path or several. */
export function readTmpfs(field: Field, { mounts }: ServiceDraft): void {
  for (const item of field.oneOrMore()) {
    const [path = "", options] = item.text().split(":");
    if (options !== undefined) item.lose(`has the options "${options}", which have no counterpart`);
    mounts.push({ source: { empty_dir: { medium: "Memory" } }, path, readOnly: false });
  }
}

function readShortVolume(item: Field): Mount | undefined {
  const [first = "", second, mode, ...rest] = item.text().split(":");
  const [source, path] = second === undefined ? [undefined, first] : [first, second];
  if (!path.startsWith("/") || rest.length > 0) return item.fail("must be [SOURCE:]/PATH[:ro]");
  const options = mode === undefined ? [] : mode.split(",");
  for (const option of options)
    if (!["ro", "rw", "z", "Z"].includes(option))
      item.lose(`has the option "${option}" without a counterpart`);
  const readOnly = options.includes("ro");
  const found = source === undefined ? { empty_dir: {} } : sourceOf(item, source);
  return found && { source: found, path, readOnly };
}

function sourceOf(item: Field, source: string): Mapping | undefined {
  if (source.startsWith("/")) return { host_path: { path: source } };
  if (/^[.~]/.test(source))
    return item.lose(
      `"${source}" is a path of this machine: put files into a config map, a secret or the image`,
    );
  return { pvc: { claim_name: source } };
}

function readLongVolume(item: Field): Mount | undefined {
  let [type, source, target, subPath, size]: (string | undefined)[] = ["volume"];
  let readOnly = false;
  eachField(item, {
    type: (field) => {
      type = field.text();
    },
    source: (field) => {
      source = field.text();
    },
    target: (field) => {
      target = field.text();
    },
    read_only: (field) => {
      readOnly = field.switch();
    },
    bind: losing("has options without a counterpart"),
    volume: (field) =>
      eachField(field, {
        nocopy: losing("has no counterpart: claims begin empty"),
        subpath: (value) => {
          subPath = value.text();
        },
        labels: losing("has no counterpart"),
      }),
    tmpfs: (field) =>
      eachField(field, {
        size: (value) => {
          size = memory(value);
        },
        mode: losing("has no counterpart"),
      }),
    consistency: losing("has no counterpart"),
  });
  if (target === undefined) return item.fail("has no target");
  const tmpfs = { empty_dir: { medium: "Memory", ...(size !== undefined && { size_limit: size }) } };
  const found = type === "tmpfs" ? tmpfs : namedSource(item, type ?? "", source);
  return found && { source: found, path: target, ...(subPath !== undefined && { subPath }), readOnly };
}

function namedSource(item: Field, type: string, source: string | undefined): Mapping | undefined {
  if (type === "volume" && source === undefined) return { empty_dir: {} };
  if (type === "volume") return { pvc: { claim_name: source } };
  if (type === "bind") return source === undefined ? item.fail("has no source") : sourceOf(item, source);
  return item.lose(`has the type "${type}", which has no counterpart`);
}

/**
 * Reads the field `secrets`. Each becomes one file from a secret with a single key of the same
 * name.
 */
export function readSecrets(field: Field, draft: ServiceDraft): void {
  for (const item of field.items()) {
    const { name, target } = readFile(item, (each) => `/run/secrets/${each}`);
    const items = [{ key: name, path: name }];
    draft.mounts.push({
      source: { secret: { secret_name: name, items } },
      path: target.startsWith("/") ? target : `/run/secrets/${target}`,
      subPath: name,
      readOnly: true,
    });
  }
}

/**
 * Reads the field `configs`. Each becomes one file from a config map with a single key of the same
 * name.
 */
export function readConfigs(field: Field, draft: ServiceDraft): void {
  for (const item of field.items()) {
    const { name, target } = readFile(item, (each) => `/${each}`);
    const items = [{ key: name, path: name }];
    draft.mounts.push({
      source: { config_map: { config_map_name: name, items } },
      path: target,
      subPath: name,
      readOnly: true,
    });
  }
}

function readFile(
  item: Field,
  usual: (name: string) => string,
): { readonly name: string; readonly target: string } {
  if (item.kind === "scalar") return { name: item.text(), target: usual(item.text()) };
  let [name, target]: (string | undefined)[] = [];
  const rights = losing("has no counterpart: files belong to the pod's fs_group");
  eachField(item, {
    source: (field) => {
      name = field.text();
    },
    target: (field) => {
      target = field.text();
    },
    ...{ uid: rights, gid: rights, mode: rights },
  });
  if (name === undefined) item.fail("has no source");
  return { name: name ?? "", target: target ?? usual(name ?? "") };
}

/**
 * Reads the top-level volumes, secrets or configs. They are objects that an apply does not create.
 */
export function readObjects(field: Field, remedy: (name: string) => string): void {
  for (const [name, value] of field.entries()) {
    eachField(value, {
      external: (each) => {
        each.switch();
      },
      name: (each) => {
        if (each.text() !== name) each.lose("differs from the name that services use, which is the object's");
      },
      ...Object.fromEntries(
        ["file", "environment", "content"].map((key) => [key, losing(`is not read: ${remedy(name)}`)]),
      ),
      ...Object.fromEntries(
        ["driver", "driver_opts", "labels", "template_driver"].map((key) => [
          key,
          losing("has no counterpart"),
        ]),
      ),
    });
  }
}
