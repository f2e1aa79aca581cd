import type { App } from "../../platform/http/route.ts";
import type { Control } from "../control.ts";

/** Where tarballs are brought, below any prefix and mount. */
const UPLOAD = /\/v2\/uploads\/[^/]+$/;

/** Whether a request brings a tarball, which is counted while it arrives. */
export const isSourceUpload = (method: string, path: string): boolean => method === "PUT" && UPLOAD.test(path);

/** What the URLs of `upload-url` lead to. They have their permission in them, so no key is asked for. */
export function serveUploads(app: App, mounts: readonly string[], { uploads }: Control): void {
  for (const mount of mounts) {
    app.put(`${mount}/v2/uploads/:name`, async (context) => {
      const { req } = context;
      const length = req.header("content-length");
      const received = await uploads.receive(
        {
          object_path: `uploads/${req.param("name")}`,
          token: req.query("token") ?? "",
          declared_bytes: length === undefined ? undefined : Number(length),
        },
        piecesOf(req.raw),
      );
      return context.json(received);
    });
  }
}

/** The body, which is not touched before it is asked for: one that was refused unseen is let run out, and the connection stays. */
async function* piecesOf(request: Request): AsyncGenerator<Uint8Array> {
  yield* request.body ?? [];
}
