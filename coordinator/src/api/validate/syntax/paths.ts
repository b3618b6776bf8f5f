import { controlProblem, lengthProblem } from "./text.ts";

/** Each returns what is wrong with the path, or undefined. */

/** The kernel's PATH_MAX, less the NUL at its end. */
const MAX_PATH_BYTES = 4095;

/** Returns the fault of an absolute path, which must not contain `..`. */
export function absolutePathProblem(path: string): string | undefined {
  if (path === "") return "must not be empty";
  return path.startsWith("/") ? descentProblem(path) : "must be an absolute path";
}

/** Returns the fault of a relative path, which must not lead out of its parent with `..`. */
export function relativePathProblem(path: string): string | undefined {
  if (path === "") return "must not be empty";
  return path.startsWith("/") ? "must be a relative path" : descentProblem(path);
}

/** Returns the fault of a mount path of a container. The runtime's notation of mounts splits at ':' and ','. */
export function mountPathProblem(path: string): string | undefined {
  const problem = absolutePathProblem(path);
  if (problem !== undefined) return problem;
  if (/[:,]/.test(path)) return "must not hold ':' or ','";
  return normalPath(path) === "/" ? "must not be the root of the container" : undefined;
}

/** The path without repeated or closing slashes and without `.`, to tell whether two paths are the same. */
export function normalPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return `${path.startsWith("/") ? "/" : ""}${parts.join("/")}`;
}

function descentProblem(path: string): string | undefined {
  if (path.split("/").includes("..")) return "must not hold '..'";
  return lengthProblem(path, MAX_PATH_BYTES) ?? controlProblem(path);
}
