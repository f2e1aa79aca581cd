/** A query to the encryption module of the project. `user`, `metadata` and `context` are JSON objects as texts. */
export type EncryptionQuery =
  /** Returns which handlers are registered: `json`, `blob`, `context`. */
  | { kind: "encryption_handlers" }
  /** Returns the encryption context of a request, as JSON. */
  | { kind: "encryption_context"; user: string; metadata: string }
  | {
      kind: "encrypt";
      context: string;
      items: { model: string; field: string; format: "json" | "blob"; text: string }[];
    }
  | { kind: "decrypt"; items: { field: string; text: string }[] };

/** The result for one value. */
export type EncryptionResult<R extends object> = R | EncryptionFailure;

export interface EncryptionFailure {
  error: { name: string; message: string };
}

/** The result of each kind of query. `context` is the one that was stored with the value. */
export interface EncryptionResults {
  encryption_handlers: string[];
  encryption_context: string;
  encrypt: EncryptionResult<{ text: string }>[];
  decrypt: EncryptionResult<{ text: string; context: string }>[];
}
