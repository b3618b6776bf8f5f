import { ANY_HOSTNAME } from "./route.ts";

/**
 * Returns the wildcard hostnames that cover this one, the nearest first. A wildcard covers names at
 * any depth.
 */
export function coveringHostnames(hostname: string, all: ReadonlySet<string>): string[] {
  if (hostname === ANY_HOSTNAME) return [];
  const labels = (hostname.startsWith("*.") ? hostname.slice(2) : hostname).split(".");
  const found: string[] = [];
  // A wildcard does not cover itself, and "*.example.com" covers only names below example.com.
  for (let from = 1; from < labels.length; from++) {
    const wildcard = `*.${labels.slice(from).join(".")}`;
    if (all.has(wildcard)) found.push(wildcard);
  }
  if (all.has(ANY_HOSTNAME)) found.push(ANY_HOSTNAME);
  return found;
}
