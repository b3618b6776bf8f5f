/** Returns the directory for downloads, builds and images between runs. If it is removed, they are made again. */
export function cacheDir(): string {
  return process.env.FORAGE_CACHE || "/var/cache/forage";
}
