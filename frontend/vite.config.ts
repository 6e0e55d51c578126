// Builds the page into the Python package: `index.js` (what TensorBoard imports) and content-hashed chunks in `assets/`.
import { readFileSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";
import type { Plugin } from "vite";

const root = new URL("./", import.meta.url);

/** Puts the licence texts of what is bundled next to the bundle. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle() {
      const lock = JSON.parse(readFileSync(new URL("package-lock.json", root), "utf8"));
      const texts = Object.entries(
        lock.packages as Record<string, { dev?: boolean; version: string; license?: string }>,
      )
        .filter(([path, entry]) => path && !entry.dev)
        .map(([path, entry]) => {
          const folder = new URL(`${path}/`, root);
          const bodies = readdirSync(folder, { withFileTypes: true })
            .filter((file) => file.isFile() && /^(licen[cs]e|notice)(\.(md|txt))?$/i.test(file.name))
            .map((file) => readFileSync(new URL(file.name, folder), "utf8").trim());
          return [
            `${path.replace(/^.*node_modules\//, "")} ${entry.version} (${entry.license ?? "see below"})`,
            ...bodies,
          ].join("\n\n");
        });
      this.emitFile({
        type: "asset",
        fileName: "assets/third-party-licenses.txt",
        source: texts.join(`\n\n${"-".repeat(80)}\n\n`),
      });
    },
  };
}

export default defineConfig({
  // Relative addresses: the page is served under whatever prefix TensorBoard and a notebook's proxy put before it.
  base: "./",
  publicDir: false,
  plugins: [licences()],
  build: {
    target: "es2022",
    outDir: "../tb_dlprof_plugin/static",
    emptyOutDir: true,
    modulePreload: false,
    chunkSizeWarningLimit: 800,
    rollupOptions: {
      // What TensorBoard imports; and what an exported HTML file does, which shares all other chunks with it.
      input: { index: "src/index.ts", standalone: "src/standalone/open.ts" },
      preserveEntrySignatures: "strict",
      output: {
        format: "es",
        entryFileNames: ({ name }) => (name === "index" ? "index.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
        // Vite's helper around dynamic imports is used by several chunks. In a chunk of its own it leaves `index.js` what it
        // is written as: the module whose address is the base of the routes.
        manualChunks: (id) => (id.includes("vite/preload-helper") ? "preload" : undefined),
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    // One environment for all files of a worker: making one for each took two thirds of the time.
    isolate: false,
  },
});
