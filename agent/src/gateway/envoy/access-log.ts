import { type JsonObject, typed } from "./json.ts";

const COMMON = {
  time: "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
  client: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
  duration_ms: "%DURATION%",
  received_bytes: "%BYTES_RECEIVED%",
  sent_bytes: "%BYTES_SENT%",
  backend: "%UPSTREAM_CLUSTER%",
  endpoint: "%UPSTREAM_HOST%",
  // The reason if there is no response or it is not the backend's: "UF" for a failed connection, and so on.
  flags: "%RESPONSE_FLAGS%",
};

const REQUEST = {
  ...COMMON,
  protocol: "%PROTOCOL%",
  method: "%REQ(:METHOD)%",
  host: "%REQ(:AUTHORITY)%",
  path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
  status: "%RESPONSE_CODE%",
  details: "%RESPONSE_CODE_DETAILS%",
  route: "%ROUTE_NAME%",
  forwarded_for: "%REQ(X-FORWARDED-FOR)%",
  user_agent: "%REQ(USER-AGENT)%",
  request_id: "%REQ(X-REQUEST-ID)%",
};

const STREAM = {
  ...COMMON,
  server_name: "%REQUESTED_SERVER_NAME%",
};

/**
 * Configures the access log: a JSON object on each line, for each request or for each stream that is passed on
 * encrypted.
 */
export function accessLog(path: string, of: "request" | "stream"): JsonObject[] {
  return [
    {
      name: "file",
      typed_config: typed("extensions.access_loggers.file.v3.FileAccessLog", {
        path,
        log_format: { json_format: of === "request" ? REQUEST : STREAM },
      }),
    },
  ];
}
