import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  // The server puts its path in front: it knows below which prefix it is mounted. <base> would have to be allowed to pages.
  base: "./",
  // The server puts a new one in its place with each page: scripts without it are not executed.
  html: { cspNonce: "NONCE" },
  plugins: [react(), tailwindcss()],
  build: {
    target: "es2022",
    emptyOutDir: true,
    // build.ts reads from it what is loaded at first.
    manifest: "manifest.json",
    // Fonts as data: would be refused by the page's own policy.
    assetsInlineLimit: 0,
  },
});
