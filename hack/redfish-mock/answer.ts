/** The body of a resource or of an error. */
export type Body = Record<string, unknown>;

/** One answer before it is encoded. */
export interface Answer {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  /** Absent if there is no content. A string is sent as XML. */
  body?: Body | string;
}

/** A successful answer. */
export function success(status: number, body?: Body | string, headers: Record<string, string> = {}): Answer {
  return { status, headers, ...(body !== undefined && { body }) };
}

/** Resolutions of the messages of DMTF's Base registry that the mock uses: what the client should do. */
const RESOLUTIONS = {
  AccessDenied: "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.",
  ActionNotSupported: "Do not submit the action again.",
  ActionParameterMissing:
    "Supply the action with the required parameter in the request body when the request is resubmitted.",
  ActionParameterValueNotInList: "Choose a value from the enumeration list for the parameter and resubmit the request.",
  CreateLimitReachedForResource: "Delete resources and resubmit the request if the operation failed.",
  GeneralError: "None.",
  InsufficientPrivilege: "Use an account that has the privilege and resubmit the request.",
  MalformedJSON: "Ensure that the request body is valid JSON and resubmit the request.",
  NoOperation: "Add properties in the JSON object and resubmit the request.",
  NoValidSession: "Establish a session before attempting any operations.",
  OperationNotAllowed: "Send the request with a method that the resource allows.",
  PreconditionFailed: "Try the operation again using the current ETag.",
  PropertyMissing: "Ensure that the property is in the request body and has a valid value and resubmit the request.",
  PropertyUnknown:
    "Remove the unknown property from the request body and resubmit the request if the operation failed.",
  PropertyValueNotInList: "Choose a value from the enumeration list for the property and resubmit the request.",
  QueryNotSupported: "Remove the query parameters and resubmit the request if the operation failed.",
  ResourceAlreadyExists: "Do not repeat the create operation as the resource has already been created.",
  ResourceInUse: "Remove the condition and resubmit the request if the operation failed.",
  ResourceMissingAtURI: "Place a valid resource at the URI or correct the URI and resubmit the request.",
  SessionLimitExceeded: "Reduce the number of other sessions before trying to establish the session.",
  ServiceTemporarilyUnavailable: "Wait for the indicated retry duration and retry the operation.",
} as const;

export type MessageId = keyof typeof RESOLUTIONS;

/** An error answer in Redfish's form (DSP0266, "Error responses"). */
export function failure(
  status: number,
  messageId: MessageId,
  message: string,
  options: { headers?: Record<string, string>; property?: string } = {},
): Answer {
  const { headers = {}, property } = options;
  const info = {
    "@odata.type": "#Message.v1_2_1.Message",
    MessageId: `Base.1.18.${messageId}`,
    Message: message,
    MessageArgs: [],
    MessageSeverity: status >= 500 ? "Critical" : "Warning",
    Resolution: RESOLUTIONS[messageId],
    ...(property !== undefined && { RelatedProperties: [`#/${property}`] }),
  };
  return {
    status,
    headers,
    body: { error: { code: info.MessageId, message, "@Message.ExtendedInfo": [info] } },
  };
}
