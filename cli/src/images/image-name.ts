import { CliError } from "../errors.ts";

const NAME =
  /^(?<repository>[\w.[\]-]+(:\d+)?(\/[\w.-]+)*?)(?<tag>:[\w][\w.-]{0,127})?(?<digest>@sha256:[0-9a-f]{64})?$/;
const REGISTRY = /^[^/]*[.:][^/]*\/|^localhost\//;

/**
 * Returns the full form of an image's name: `web` becomes `docker.io/library/web:latest`. Throws
 * for invalid names.
 */
export function fullName(name: string): string {
  const { repository = "", tag = "", digest = "" } = NAME.exec(name)?.groups ?? {};
  if (repository === "") throw new CliError("USAGE", `"${name}" is not the name of an image`);
  const path = REGISTRY.test(repository) ? repository : `docker.io/${repository}`;
  const full = /^docker\.io\/[^/]+$/.test(path) ? path.replace("/", "/library/") : path;
  return `${full}${tag === "" && digest === "" ? ":latest" : tag}${digest}`;
}

/** Returns the digest at the end of a name; undefined if it has none. */
export function digestIn(name: string): string | undefined {
  return /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
}

/**
 * Reports whether a node queries the registry even for an image that it has, unless a pull policy
 * prevents it.
 */
export function isMoving(fullName: string): boolean {
  return fullName.endsWith(":latest");
}
