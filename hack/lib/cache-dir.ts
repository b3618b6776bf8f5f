/** Where downloads, builds and images are kept between runs; removing it costs only time. */
export function cacheDir(): string {
  return process.env.FORAGE_CACHE || "/var/cache/forage";
}
