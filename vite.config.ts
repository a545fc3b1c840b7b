// The inspector's pages: src/web into dist/web, with a hash in every name. `npm run build` runs it after the package's own build.
import { readdirSync, readFileSync } from 'node:fs'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** Texts of the licenses of all packages of which something is in the pages. */
const licenses: Plugin = {
  name: 'licenses',
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []))
    const source = licensesOf(chunks)
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source })
  },
}

/** Of the packages that these modules are of. */
export function licensesOf(modules: readonly string[]): string {
  const names = modules.flatMap((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? [])
  return [...new Set(names)].toSorted().map(licenseOf).join('\n\n')
}

function licenseOf(name: string): string {
  const folder = `node_modules/${name}`
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each))
  if (file !== undefined) return `== ${name}\n\n${readFileSync(`${folder}/${file}`, 'utf8').trim()}\n`
  const { license, author } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Readonly<
    Record<string, unknown>
  >
  if (typeof license !== 'string') throw new Error(`${name} is in the pages and has no license`)
  const by =
    typeof author === 'string' ? author : ((author as { readonly name?: string } | undefined)?.name ?? 'its authors')
  return `== ${name}\n\n${license}, by ${by}\n`
}

const SESSION =
  /src.(web.views|web.pages.(one-session|session|compare)|web.data.(log-window|other-logs)|kernel|view)|marked/
const GROUPS = [
  { name: 'first', tags: ['$initial' as const], priority: 2 },
  { name: 'session', test: SESSION, priority: 1 },
  { name: 'pages', test: /src.web.(pages|parts)/ },
]

export default defineConfig({
  root: 'src/web',
  // The server writes the place where it is mounted into the first page.
  base: './',
  plugins: [react(), licenses],
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    // Nothing inline: the pages' policy allows files of the server alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
    // A file of its own for each page would cost more requests and weigh a tenth more: these are loaded together.
    rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
  },
  // In development `terret serve` answers what is read.
  server: { proxy: { '/v1': 'http://127.0.0.1:4100' } },
})
