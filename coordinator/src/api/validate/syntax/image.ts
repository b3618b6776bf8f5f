/** An image reference: registry host and port, lower-case path, tag, digest. The grammar is that of distribution. */
const IMAGE_REFERENCE =
  /^(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9-]+(?=:\d)|\[[0-9a-fA-F:]+\])(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-fA-F]{32,})?$/;

export function imageProblem(image: string): string | undefined {
  if (image === "") return "must not be empty";
  if (image.length > 512) return "must have at most 512 characters";
  return IMAGE_REFERENCE.test(image)
    ? undefined
    : "is not an image reference such as registry.example/team/app:v1";
}
