/** The origin of the hosted Studio. */
export const STUDIO_ORIGIN = "https://smith.langchain.com";

/** The web origins that may use the agent server and the experiments, besides the server's own. */
export interface CorsSettings {
  /** Permitted origins, `*` for all. Empty if not configured. */
  origins: readonly string[];
  /** Matches a complete origin. */
  origin_pattern: RegExp | undefined;
  /** Whether the hosted Studio may use the agent server. */
  studio: boolean;
  /** Undefined permits all methods, and the headers that a page requests. */
  methods: readonly string[] | undefined;
  headers: readonly string[] | undefined;
  /** Response headers that pages may read, besides those that clients need. */
  exposed: readonly string[];
  max_age_s: number | undefined;
}
