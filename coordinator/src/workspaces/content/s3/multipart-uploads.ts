import { ListMultipartUploadsCommand, type MultipartUpload, type S3Client } from "@aws-sdk/client-s3";

/**
 * Lists the multipart uploads under a prefix that are neither completed nor aborted. The SDK has no
 * paginator for them.
 */
export async function* paginateListMultipartUploads(
  client: S3Client,
  Bucket: string,
  Prefix: string,
): AsyncGenerator<MultipartUpload> {
  let marker: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } = {};
  while (true) {
    const page = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix, ...marker }));
    yield* page.Uploads ?? [];
    const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = page;
    if (!IsTruncated || NextKeyMarker === undefined) return;
    marker = {
      KeyMarker: NextKeyMarker,
      ...(NextUploadIdMarker !== undefined && { UploadIdMarker: NextUploadIdMarker }),
    };
  }
}
