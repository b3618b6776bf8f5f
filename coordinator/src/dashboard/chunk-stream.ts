/**
 * Returns the body of a response that sends each chunk when the client has taken the one before. `end` is called once. An error
 * after the first chunk is sent as the last chunk that `failure` makes of it.
 */
export function chunkStream(
  chunks: AsyncGenerator<Uint8Array>,
  failure: (error: unknown) => Uint8Array,
  end: () => void,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done, value } = await chunks.next();
        if (!done) return controller.enqueue(value);
      } catch (error) {
        controller.enqueue(failure(error));
      }
      end();
      controller.close();
    },
    cancel: async () => {
      end();
      await chunks.return(undefined);
    },
  });
}
