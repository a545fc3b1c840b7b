// The published JavaScript: one file per entry and shared chunks, because loading an ES module costs about a millisecond
// of CPU each, and `import 'terret'` must stay cheap. Types come from tsc (tsconfig.build.json).
import { defineConfig } from 'rolldown'

export default defineConfig({
  input: {
    index: 'src/index.ts',
    'kernel/index': 'src/kernel/index.ts',
    'stores/sqlite': 'src/stores/sqlite.ts',
    'tools/index': 'src/tools/index.ts',
    'cli/main': 'src/cli/main.ts',
  },
  platform: 'node',
  external: [/^node:/, /^@photostructure\/sqlite/, /^@vscode\/ripgrep/],
  output: { dir: 'dist', format: 'esm', chunkFileNames: 'chunks/[name]-[hash].js' },
})
