/** The origin of the hosted Studio. */
export const STUDIO_ORIGIN = "https://smith.langchain.com";

/** Which web pages may use the agent server and the experiments, besides those of the service itself. */
export interface CorsSettings {
  /** Origins that are listed, `*` for all. Empty when nothing was said. */
  origins: readonly string[];
  /** Matches a whole origin. */
  origin_pattern: RegExp | undefined;
  /** The hosted Studio may use the agent server. */
  studio: boolean;
  /** Undefined: every method, and the headers that a page asks for. */
  methods: readonly string[] | undefined;
  headers: readonly string[] | undefined;
  /** Headers of answers that pages may read, besides those that clients need. */
  exposed: readonly string[];
  max_age_s: number | undefined;
}
