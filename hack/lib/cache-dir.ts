/** Returns the directory for downloads, builds and images between runs. Removing it costs only time. */
export function cacheDir(): string {
  return process.env.FORAGE_CACHE || "/var/cache/forage";
}
