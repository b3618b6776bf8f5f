import type { KeyToPath, Volume } from "@forage/proto/forest/v1/forage";
import type { Field } from "../field.ts";
import { serverProblem } from "../syntax/hosts.ts";
import { configKeyProblem, dnsLabelProblem, dnsSubdomainProblem } from "../syntax/names.ts";
import { modeProblem } from "../syntax/numbers.ts";
import { absolutePathProblem, normalPath, relativePathProblem } from "../syntax/paths.ts";
import { quantityProblem } from "../syntax/quantity.ts";
import { choiceProblem } from "../syntax/text.ts";

const HOST_PATH_TYPES = [
  "DirectoryOrCreate",
  "Directory",
  "FileOrCreate",
  "File",
  "Socket",
  "CharDevice",
  "BlockDevice",
];

export function validateVolume({ name, source }: Volume, field: Field): void {
  field.at("name").check(dnsLabelProblem(name));
  switch (source?.$case) {
    case "emptyDir": {
      const at = field.at("empty_dir");
      at.at("medium").check(choiceProblem(source.value.medium, ["Memory"]));
      const { sizeLimit } = source.value;
      if (sizeLimit !== "") at.at("size_limit").check(quantityProblem("ephemeral-storage", sizeLimit));
      return;
    }
    case "secret": {
      const at = field.at("secret");
      at.at("secret_name").check(dnsSubdomainProblem(source.value.secretName));
      validateFiles(source.value, at);
      return;
    }
    case "configMap": {
      const at = field.at("config_map");
      at.at("config_map_name").check(dnsSubdomainProblem(source.value.configMapName));
      validateFiles(source.value, at);
      return;
    }
    case "pvc":
      field.at("pvc").at("claim_name").check(dnsSubdomainProblem(source.value.claimName));
      return;
    case "hostPath": {
      const at = field.at("host_path");
      at.at("path").check(absolutePathProblem(source.value.path));
      at.at("type").check(choiceProblem(source.value.type, HOST_PATH_TYPES));
      return;
    }
    case "nfs": {
      const at = field.at("nfs");
      at.at("server").check(serverProblem(source.value.server));
      at.at("path").check(absolutePathProblem(source.value.path));
      return;
    }
    case undefined:
      field.invalid("must have one of empty_dir, secret, config_map, pvc, host_path, nfs");
      return;
    default:
      source satisfies never;
  }
}

function validateFiles(
  { items, defaultMode }: { readonly items: readonly KeyToPath[]; readonly defaultMode: number },
  field: Field,
): void {
  field.at("default_mode").check(modeProblem(defaultMode));
  const paths = new Set<string>();
  for (const [index, { key, path, mode }] of items.entries()) {
    const at = field.at("items").item(index);
    at.at("key").check(configKeyProblem(key));
    at.at("path").check(filePathProblem(path));
    at.at("mode").check(modeProblem(mode));
    if (paths.has(normalPath(path))) at.at("path").invalid("is the path of another item");
    paths.add(normalPath(path));
  }
}

/** Validates the path of an item. Names that begin with '..' are reserved for the versions of the content. */
function filePathProblem(path: string): string | undefined {
  return relativePathProblem(path) ?? (path.startsWith("..") ? "must not begin with '..'" : undefined);
}
