// The packed package in the hands of other tools: a bundler for browsers, a bundler for servers, and a strict compiler.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, it, onTestFinished } from 'vitest'
import { root, unpackAlone } from './packed.ts'

const TIMEOUT = { timeout: 120_000 }
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Record<string, unknown>
}
const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')

/** Bundles a program of one file, and returns what it still imports and what the bundler complained about. */
async function bundleFile(folder: string, text: string, platform: 'browser' | 'node') {
  const input = join(folder, 'program.mjs')
  writeFileSync(input, text)
  const complaints: string[] = []
  const bundle = await rolldown({
    input,
    platform,
    cwd: folder,
    onLog: (_level, { message }) => complaints.push(message),
  })
  const { output } = await bundle.write({ dir: join(folder, 'out'), format: 'esm' })
  const imports = output.flatMap((file) => (file.type === 'chunk' ? [...file.imports, ...file.dynamicImports] : []))
  const own = new Set(output.map((file) => file.fileName))
  return { complaints, outside: [...new Set(imports)].filter((name) => !own.has(name)) }
}

it('B-NEXT-3: terret/view and terret/kernel bundle for a browser, and run there without Node', TIMEOUT, async () => {
  const folder = unpackAlone()
  const text = `import { EMPTY, fold } from 'terret/kernel'
import * as view from 'terret/view'
const created = { seq: 1, at: 0, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' }
globalThis.shown = [fold(EMPTY, created).agent, view.timelineOf([created]).length, view.clean('a\\u200bb')]
globalThis.all = Object.keys(view).length\n`
  expect(await bundleFile(folder, text, 'browser')).toEqual({ complaints: [], outside: [] })
  // A browser has neither process nor Buffer.
  const page = `delete globalThis.process; delete globalThis.Buffer
await import('./out/program.js')
console.log(JSON.stringify(globalThis.shown), globalThis.all > 20)\n`
  writeFileSync(join(folder, 'page.mjs'), page)
  const printed = execFileSync(process.execPath, [join(folder, 'page.mjs')], { encoding: 'utf8' })
  expect(printed).toBe('["a",1,"a\\\\u{200b}b"] true\n')
})

it(
  'B-NEXT-2: packed into one file by a bundler, the store says to leave terret out of the bundle',
  TIMEOUT,
  async () => {
    const folder = unpackAlone()
    const text = `import { sqlite } from 'terret'
sqlite('a.db').open().catch(({ code, message }) => console.log(code, message))\n`
    await bundleFile(folder, text, 'node')
    // As if Node had an SQLite that is too old, and the driver were left behind, as bundlers do with native packages.
    const run = `Object.defineProperty(process.versions, 'sqlite', { value: '3.40.0' }); await import('./out/program.js')\n`
    writeFileSync(join(folder, 'run.mjs'), run)
    const printed = execFileSync(process.execPath, [join(folder, 'run.mjs')], { cwd: folder, encoding: 'utf8' })
    expect(printed).toMatch(/^store_unsupported .*serverExternalPackages: \['terret'\] in next\.config\.mjs/)
  },
)

it(
  'B-NEXT-5: where the driver is installed, the store says only to leave terret out of the bundle',
  TIMEOUT,
  async () => {
    const folder = unpackAlone(['@photostructure/sqlite'])
    const text = `import { sqlite } from 'terret'
sqlite('a.db').open().catch(({ code, message }) => console.log(code, message))\n`
    await bundleFile(folder, text, 'node')
    // Bundles of servers are copied to places that have no packages.
    const away = mkdtempSync(join(tmpdir(), 'terret-bundle-'))
    onTestFinished(() => rmSync(away, { recursive: true, force: true }))
    renameSync(join(folder, 'out'), join(away, 'out'))
    const run = `Object.defineProperty(process.versions, 'sqlite', { value: '3.40.0' }); await import('./out/program.js')\n`
    writeFileSync(join(away, 'run.mjs'), run)
    const printed = execFileSync(process.execPath, [join(away, 'run.mjs')], { cwd: folder, encoding: 'utf8' })
    expect(printed).toMatch(
      /^store_unsupported @photostructure\/sqlite is installed, .*serverExternalPackages: \['terret'\]/,
    )
    expect(printed).not.toContain('install @')
  },
)

it.each([
  ['typescript', 'nodenext', 'nodenext'],
  ['typescript', 'esnext', 'bundler'],
  ['typescript-5.9', 'nodenext', 'nodenext'],
])(
  'B-NEXT-4: with %s and --module %s a program compiles with terret and zod alone, libraries checked',
  TIMEOUT,
  (compiler, module, moduleResolution) => {
    const folder = unpackAlone(['zod'])
    const imports = entries.map((entry, i) => `export * as entry${i} from '${entry.replace('.', 'terret')}'\n`).join('')
    const program = `import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite } from 'terret'
const input = z.object({ city: z.string() })
const execute = async ({ city }: { readonly city: string }) => city
const tools = [defineTool({ name: 'look', description: 'Looks.', input, effect: 'read', execute })]
export const harness = new Harness({ model: scripted(['Hello.']), tools, store: sqlite('a.db') })\n`
    writeFileSync(join(folder, 'program.ts'), imports + program)
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2022',
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      types: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))
    const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  },
)
