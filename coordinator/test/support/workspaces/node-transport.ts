import type {
  SyncRequest,
  SyncResponse,
  UploadRequest,
  UploadResponse,
} from "@forage/proto/forage/workspaces/v1/workspaces";

/** Carries the calls of one fake node to WorkspaceNodeService. */
export interface NodeTransport {
  sync(receiver: SyncReceiver): SyncStream;
  /** Sends the parts of one archive. */
  upload(parts: readonly UploadRequest[]): Promise<UploadResponse>;
  close(): void;
}

export interface SyncReceiver {
  receive(response: SyncResponse): void;
  /** Called when the stream has ended with an error. */
  fail(error: Error): void;
}

/** An open Sync stream. */
export interface SyncStream {
  write(request: SyncRequest): void;
  cancel(): void;
}
