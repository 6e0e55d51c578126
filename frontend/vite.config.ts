// Builds the page into the Python package: `index.js` (what TensorBoard imports) and content-hashed chunks in `assets/`.
import { readFileSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";
import type { Plugin, Rollup } from "vite";

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

/** The pages that are loaded together: what is shown next is most often another view of the same place. */
const CHUNK_OF: Record<string, string> = {
  ...Object.fromEntries(
    ["op_types", "modules", "ops", "kernels", "launches", "tensor_cores", "roofline"].map((page) => [page, "explore"]),
  ),
  ...Object.fromEntries(["memory", "plan", "energy"].map((page) => [page, "memory"])),
  ...Object.fromEntries(["compare", "runs"].map((page) => [page, "compare"])),
  ...Object.fromEntries(["advice", "tried", "reports"].map((page) => [page, "findings"])),
};

type Module = ReturnType<Rollup.PluginContext["getModuleInfo"]>;

/**
 * Which chunk a module lies in. What the first page needs is `shared`, what pages of several chunks need is `parts`, the rest lies
 * with its pages. So chunks import one another in one direction, and an exported file can hold them one after the other.
 */
function chunks(): Rollup.GetManualChunk {
  let placed: Map<string, string> | null = null;
  return (id, { getModuleIds, getModuleInfo }) => {
    // Vite's helper around dynamic imports is used by several chunks. In a chunk of its own it leaves `index.js` what it
    // is written as: the module whose address is the base of the routes.
    if (id.includes("vite/preload-helper")) return "preload";
    placed ??= place([...getModuleIds()], getModuleInfo);
    return placed.get(id);
  };
}

function place(ids: string[], getModuleInfo: (id: string) => Module): Map<string, string> {
  const below = (start: readonly string[]): Set<string> => {
    const found = new Set(start);
    for (const id of found) for (const imported of getModuleInfo(id)?.importedIds ?? []) found.add(imported);
    return found;
  };
  const eager = below(ids.filter((id) => id.endsWith("/shell/mount.tsx")));
  const chunksOf = new Map<string, Set<string>>();
  for (const entry of ids.filter((id) => (getModuleInfo(id)?.dynamicImporters ?? []).some((by) => eager.has(by)))) {
    const page = /\/views\/(\w+)\//.exec(entry)?.[1];
    if (page === undefined) continue;
    for (const id of below([entry])) chunksOf.set(id, (chunksOf.get(id) ?? new Set()).add(CHUNK_OF[page] ?? page));
  }
  const result = new Map<string, string>();
  for (const [id, names] of chunksOf) if (!eager.has(id)) result.set(id, names.size === 1 ? [...names][0]! : "parts");
  // Nothing outside the shell imports it.
  for (const id of eager) if (!/\/src\/shell\//.test(id)) result.set(id, "shared");
  return result;
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
    rollupOptions: {
      // What TensorBoard imports; and what an exported HTML file does, which shares all other chunks with it.
      input: { index: "src/index.ts", standalone: "src/standalone/open.ts" },
      preserveEntrySignatures: "strict",
      output: {
        format: "es",
        entryFileNames: ({ name }) => (name === "index" ? "index.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
        manualChunks: chunks(),
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/loadPages.ts"],
    restoreMocks: true,
    // One environment for all files of a worker: making one for each took two thirds of the time.
    isolate: false,
  },
});
