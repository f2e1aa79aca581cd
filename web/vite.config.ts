import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Moves the styles behind the shell of index.html: browsers draw nothing that follows a style sheet before it has loaded. */
const stylesAfterShell: Plugin = {
  name: "styles-after-shell",
  transformIndexHtml: {
    order: "post",
    handler(html) {
      const styles = html.match(/<link rel="stylesheet"[^>]*>/g) ?? [];
      const rest = styles.reduce((text, link) => text.replace(link, ""), html);
      return rest.replace("</body>", () => `${styles.join("\n")}\n  </body>`);
    },
  },
};

export default defineConfig({
  root: import.meta.dirname,
  // The server adds its path, which depends on the mount prefix. A <base> element would need a wider content security policy.
  base: "./",
  // The server replaces the nonce in each response. The browser executes scripts with the nonce only.
  html: { cspNonce: "NONCE" },
  plugins: [react(), tailwindcss(), stylesAfterShell],
  build: {
    target: "es2022",
    emptyOutDir: true,
    // Read by build.ts to compute the size of the first page.
    manifest: "manifest.json",
    // The content security policy rejects fonts as data: URLs.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // By default each module that two pages share is a file of its own: 35 requests for the comparison of experiments, 6 at a time.
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"], priority: 1 },
            { name: "shared", minShareCount: 3, maxModuleSize: 5_000 },
          ],
        },
      },
    },
  },
});
