/** Makes the object throw when the property is read. Copies throw when they are made. */
export function poison(object: object | undefined, property: string): void {
  if (object === undefined) throw new Error("there is nothing to poison");
  Object.defineProperty(object, property, {
    enumerable: true,
    get() {
      throw new Error("poison");
    },
  });
}
