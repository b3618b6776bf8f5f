import { CliError } from "../errors.ts";

const NAME =
  /^(?<repository>[\w.[\]-]+(:\d+)?(\/[\w.-]+)*?)(?<tag>:[\w][\w.-]{0,127})?(?<digest>@sha256:[0-9a-f]{64})?$/;
const REGISTRY = /^[^/]*[.:][^/]*\/|^localhost\//;

/** Returns the full form of an image's name: `web` becomes `docker.io/library/web:latest`. Throws for other texts. */
export function fullName(name: string): string {
  const { repository = "", tag = "", digest = "" } = NAME.exec(name)?.groups ?? {};
  if (repository === "") throw new CliError("USAGE", `"${name}" is no name of an image`);
  const path = REGISTRY.test(repository) ? repository : `docker.io/${repository}`;
  const full = /^docker\.io\/[^/]+$/.test(path) ? path.replace("/", "/library/") : path;
  return `${full}${tag === "" && digest === "" ? ":latest" : tag}${digest}`;
}

/** Returns the digest that a name ends with. */
export function digestIn(name: string): string | undefined {
  return /@(sha256:[0-9a-f]{64})$/.exec(name)?.[1];
}

/** Reports whether a node asks the registry even for an image that it has, if no pull policy says otherwise. */
export function isMoving(fullName: string): boolean {
  return fullName.endsWith(":latest");
}
