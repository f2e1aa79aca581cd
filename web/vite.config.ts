import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  // Files are named relative to <base>, which the server writes: it knows below which prefix it is mounted.
  base: "./",
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
