/** Makes any code that reads the property of the object throw. Copies of the object are not affected: making one throws. */
export function poison(object: object | undefined, property: string): void {
  if (object === undefined) throw new Error("there is nothing to poison");
  Object.defineProperty(object, property, {
    enumerable: true,
    get() {
      throw new Error("poison");
    },
  });
}
