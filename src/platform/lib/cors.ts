/** The origin of the hosted Studio. */
export const STUDIO_ORIGIN = "https://smith.langchain.com";

/** Which web pages of other origins may use the agent server and the experiments API, and how. */
export interface CorsSettings {
  /** Permitted origins, `*` for all. */
  origins: readonly string[];
  /** Matches a complete origin. */
  origin_pattern: RegExp | undefined;
  /** Whether the hosted Studio may use the agent server. */
  studio: boolean;
  /** Permitted methods and request headers. If undefined, all are permitted. */
  methods: readonly string[] | undefined;
  headers: readonly string[] | undefined;
  /** Additional response headers that pages may read. */
  exposed: readonly string[];
  max_age_s: number | undefined;
}
