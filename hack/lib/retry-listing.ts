const TRIES = 5;

/** Lists containers with `nerdctl ps`. It fails if a container is removed while it runs, and is then run again. */
export async function retryListing<T>(list: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await list();
    } catch (error) {
      if (tries === TRIES || !/: not found/.test(String(error))) throw error;
    }
  }
}
