import { readBytesField } from "@forage/common/bytes-field";
import { UploadRequest, WorkspaceNodeServiceService } from "@forage/proto/forage/workspaces/v1/workspaces";

/** The most bytes of one archive that a node may send before the coordinator has written them. */
export const CONTENT_WINDOW_BYTES = 1024 * 1024;

/** The field number of `UploadRequest.data`. */
const DATA_FIELD = 2;

/** The definition of the service, with a decoder that does not copy the data of uploads. */
export const NODE_SERVICE = {
  ...WorkspaceNodeServiceService,
  upload: { ...WorkspaceNodeServiceService.upload, requestDeserialize: decodeUploadRequest },
};

function decodeUploadRequest(message: Buffer): UploadRequest {
  const value = readBytesField(message, DATA_FIELD);
  return value === undefined ? UploadRequest.decode(message) : { part: { $case: "data", value } };
}
