/**
 * Returns the body of a response that sends each chunk after the client has read the one before.
 * `end` is called once. If the source throws after the first chunk, the last chunk is `failure` of
 * the error.
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
