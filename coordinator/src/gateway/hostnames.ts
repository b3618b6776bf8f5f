import { ANY_HOSTNAME } from "./route.ts";

/** Returns the hostnames that cover this one, the nearest first. Each covers all names below it, however deep. Pure. */
export function coveringHostnames(hostname: string, all: ReadonlySet<string>): string[] {
  if (hostname === ANY_HOSTNAME) return [];
  const labels = (hostname.startsWith("*.") ? hostname.slice(2) : hostname).split(".");
  const found: string[] = [];
  // A wildcard doesn't cover itself, and "*.example.com" covers only what is below example.com.
  for (let from = 1; from < labels.length; from++) {
    const wildcard = `*.${labels.slice(from).join(".")}`;
    if (all.has(wildcard)) found.push(wildcard);
  }
  if (all.has(ANY_HOSTNAME)) found.push(ANY_HOSTNAME);
  return found;
}
