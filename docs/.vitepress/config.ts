import { defineConfig } from "vitepress";

const page = (text: string, link: string) => ({ text, link });

/** The documentation as a site: `npm run docs` builds docs/.site and fails on a link to a page that does not exist. */
export default defineConfig({
  title: "Threadmill",
  description: "An open, self-hosted server for LangGraph agents.",
  srcDir: "..",
  srcExclude: ["**/node_modules/**", "dist/**", "test/**", "bench/**", ".*/**"],
  outDir: ".site",
  cacheDir: ".site/.cache",
  rewrites: { "README.md": "index.md" },
  // Files of the repository that are not pages.
  ignoreDeadLinks: [/LICENSE$/, /^http:\/\/localhost/],
  // The pages contain no Vue expressions. With the usual delimiters, `{{ env.NAME }}` in a table would be one.
  vue: { template: { compilerOptions: { delimiters: ["{%vue", "vue%}"] } } },
  themeConfig: {
    search: { provider: "local" },
    nav: [page("Documentation", "/docs/"), page("Architecture", "/ARCHITECTURE")],
    sidebar: [
      {
        text: "Use",
        items: [
          page("Graphs", "/docs/graphs"),
          page("Python graphs", "/docs/python"),
          page("Streaming", "/docs/streaming"),
          page("Thread protocol", "/docs/thread-protocol"),
          page("Run states", "/docs/run-states"),
          page("Threads", "/docs/threads"),
          page("Crons", "/docs/crons"),
          page("Store", "/docs/store"),
          page("Webhooks", "/docs/webhooks"),
          page("MCP", "/docs/mcp"),
          page("A2A", "/docs/a2a"),
          page("Custom routes", "/docs/custom-routes"),
          page("UI components", "/docs/ui-components"),
          page("AG-UI", "/docs/ag-ui"),
          page("Tracing", "/docs/tracing"),
          page("Experiments", "/docs/experiments"),
          page("Annotation queues", "/docs/annotation-queues"),
          page("Prompts", "/docs/prompts"),
          page("Deploy an agent", "/docs/deploy"),
          page("OAuth", "/docs/oauth"),
          page("Example agents", "/examples/README"),
        ],
      },
      {
        text: "Operate",
        items: [
          page("Configuration", "/docs/configuration"),
          page("Access", "/docs/access"),
          page("Custom authentication", "/docs/custom-auth"),
          page("Security", "/docs/security"),
          page("Control plane", "/docs/control-plane"),
          page("Reliability", "/docs/reliability"),
          page("Performance", "/docs/performance"),
          page("Errors", "/docs/errors"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Auth Service API", "/docs/auth-service"),
          page("Agent server clients", "/docs/compatibility"),
          page("LangSmith clients", "/docs/compatibility-langsmith"),
          page("Glossary", "/docs/glossary"),
        ],
      },
      {
        text: "Internals",
        items: [
          page("Architecture", "/ARCHITECTURE"),
          page("Run engine", "/docs/internals/engine"),
          page("Streams", "/docs/internals/streams"),
          page("Graph hosts", "/docs/internals/graph-hosts"),
          page("Database", "/docs/internals/database"),
          page("Experiments", "/docs/internals/experiments"),
          page("Control plane", "/docs/internals/deployments"),
          page("Secrets and OAuth tokens", "/docs/internals/secrets-and-tokens"),
          page("Libraries considered", "/docs/internals/libraries"),
          page("Testing", "/docs/testing"),
          page("Contributing", "/CONTRIBUTING"),
          page("Changelog", "/CHANGELOG"),
        ],
      },
    ],
  },
});
