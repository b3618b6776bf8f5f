import { controlProblem, lengthProblem } from "./text.ts";

/** The functions return what is wrong with the path, or undefined. */

/** The kernel's PATH_MAX without the terminating NUL. */
const MAX_PATH_BYTES = 4095;

/** Returns what is wrong with an absolute path, which must not contain `..`. */
export function absolutePathProblem(path: string): string | undefined {
  if (path === "") return "must not be empty";
  return path.startsWith("/") ? descentProblem(path) : "must be an absolute path";
}

/** Returns what is wrong with a relative path, which must not leave its parent with `..`. */
export function relativePathProblem(path: string): string | undefined {
  if (path === "") return "must not be empty";
  return path.startsWith("/") ? "must be a relative path" : descentProblem(path);
}

/** Returns what is wrong with a container's mount path. The runtime splits its notation of mounts at ':' and ','. */
export function mountPathProblem(path: string): string | undefined {
  const problem = absolutePathProblem(path);
  if (problem !== undefined) return problem;
  if (/[:,]/.test(path)) return "must not contain ':' or ','";
  return normalPath(path) === "/" ? "must not be the root of the container" : undefined;
}

/** Returns the path without repeated or trailing slashes and without `.`, so that equivalent paths are equal. */
export function normalPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return `${path.startsWith("/") ? "/" : ""}${parts.join("/")}`;
}

function descentProblem(path: string): string | undefined {
  if (path.split("/").includes("..")) return "must not contain '..'";
  return lengthProblem(path, MAX_PATH_BYTES) ?? controlProblem(path);
}
