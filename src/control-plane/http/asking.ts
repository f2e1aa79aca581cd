import type { Context } from "hono";
import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import type { Env } from "../../platform/http/route.ts";
import type { Asking } from "../deployments.ts";

/** Who asks, and by which address. */
export const askingOf = (context: Context<Env>, options: BaseUrlOptions): Asking => ({
  caller: context.get("caller"),
  base_url: baseUrlOf(context, options),
});
