import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  // The server adds its path, which depends on the mount prefix. A <base> element would need a wider content security policy.
  base: "./",
  // The server replaces the nonce in each response. The browser executes scripts with the nonce only.
  html: { cspNonce: "NONCE" },
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2022",
    emptyOutDir: true,
    // Read by build.ts to compute the size of the first page.
    manifest: "manifest.json",
    // The content security policy rejects fonts as data: URLs.
    assetsInlineLimit: 0,
  },
});
