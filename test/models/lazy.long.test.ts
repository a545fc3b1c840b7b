// What is loaded when: importing the package, naming a model, calling one. Real processes, and the files they say they loaded.
// Not how long it takes: that is the figure `import` of the bench.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..', '..')
const built = join(root, '.build', 'src')
const published = join(root, 'dist')

/** The files below a folder that a process loads when it runs this code, as its coverage names them. */
async function loaded(folder: string, code: string): Promise<readonly string[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'terret-lazy-'))
  try {
    const program = join(scratch, 'program.mjs')
    const coverage = join(scratch, 'coverage')
    writeFileSync(program, code.replace('ENTRY', pathToFileURL(join(folder, 'index.js')).href))
    await promisify(execFile)(process.execPath, [program], { env: { NODE_V8_COVERAGE: coverage } })
    const prefix = `${pathToFileURL(folder).href}/`
    return readdirSync(coverage)
      .flatMap((file) => (JSON.parse(readFileSync(join(coverage, file), 'utf8')) as Coverage).result)
      .filter(({ url }) => url.startsWith(prefix))
      .map(({ url }) => url.slice(prefix.length))
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

type Coverage = { readonly result: readonly { readonly url: string }[] }

/** What reads answers, and what brings them. */
const READERS =
  /^models\/(http\/(exchange|framing|transport)|protocols\/(chat|messages|responses)\/\w+-(protocol|reply))\.js$/

/** What only some sessions need, and the planner of graphs. */
const RIDERS =
  /^(runtime\/(money\/(allowance|holds)|turn\/(budgeted-model|child-orders)|commit\/(charges|family))|graphs\/graph-(agent|planner))\.js$/

function readersIn(files: readonly string[]): readonly string[] {
  return files.filter((file) => READERS.test(file))
}

/** The published files that one of them imports when it is loaded. */
function importedBy(file: string): readonly string[] {
  const text = readFileSync(join(published, file), 'utf8')
  return [...text.matchAll(/^(?:im|ex)port (?:[^"';]* from )?"(\.[^"]+)";$/gm)].map(([, to = '']) =>
    join(dirname(file), to),
  )
}

describe('what is loaded', () => {
  it('B-LAZY-1: importing the package and naming a model of each protocol loads nothing that calls one', async () => {
    const files = await loaded(
      built,
      `import { Harness, model } from 'ENTRY'
for (const name of ['openai:a', 'anthropic:b', 'groq:c']) new Harness({ model: model(name, { key: 'k' }) })`,
    )
    expect(files).toContain('harness.js')
    expect(readersIn(files)).toEqual([])
  })

  it('B-LAZY-2: the first call of a model loads the protocol it speaks and no other', async () => {
    const server = createServer((request, out) => request.resume().on('end', () => out.writeHead(401).end()))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const files = await loaded(
        built,
        `import { Harness, model } from 'ENTRY'
const harness = new Harness({ model: model('anthropic:b', { key: 'k', baseUrl: '${baseUrl}' }) })
await harness.run('go')
await harness.close()`,
      )
      expect(files).toEqual(
        expect.arrayContaining(['models/http/exchange.js', 'models/protocols/messages/messages-protocol.js']),
      )
      expect(readersIn(files).filter((file) => /protocols\/(chat|responses)/.test(file))).toEqual([])
    } finally {
      server.close()
    }
  })

  it('B-COMPRESS-15: a run without compression or with small results loads nothing of the router, and one with large ones loads the kinds it needs', async () => {
    const run = (options: string, count = 200): string => `import { defineTool, Harness, scripted } from 'ENTRY'
const rows = Array.from({ length: ${count} }, (_, id) => ({ id, name: 'a name' }))
const list = defineTool({ name: 'list', description: 'd', input: { type: 'object' }, effect: 'read', execute: () => rows })
const harness = new Harness({ model: scripted([{ calls: [{ tool: 'list' }] }, 'Hello.']), tools: [list], secrets: {}${options} })
if ((await harness.run('go')).status !== 'completed') throw new Error('not completed')
await harness.close()`
    const small = ['context/compress/marker.js', 'context/compress/retrieve-tool.js']
    const router = (files: readonly string[]) => files.filter((file) => file.startsWith('context/compress/')).toSorted()
    expect(router(await loaded(built, run('')))).toEqual(small)
    expect(router(await loaded(built, run(", results: { compression: 'full' }", 10)))).toEqual(small)
    const used = await loaded(built, run(", results: { compression: 'full' }"))
    expect(used).toEqual(
      expect.arrayContaining(['context/compress/shorten-content.js', 'context/compress/shorten-json.js']),
    )
    expect(router(used)).not.toContain('context/compress/shorten-log.js')
  })

  it('B-LAZY-4: a run without a budget, subagents and graphs loads none of their code, and one with them does', async () => {
    const run = (options: string): string => `import { Harness, scripted } from 'ENTRY'
const harness = new Harness({ model: scripted(['Hello.']), secrets: {}${options} })
if ((await harness.run('go')).status !== 'completed') throw new Error('not completed')
await harness.close()`
    const plain = await loaded(built, run(''))
    expect(plain.filter((file) => RIDERS.test(file))).toEqual([])
    const paid = await loaded(built, run(', budget: { runUsd: 1_000 }'))
    expect(paid).toEqual(expect.arrayContaining(['runtime/commit/charges.js', 'runtime/money/allowance.js']))
    const parent = await loaded(built, run(", subagents: { clerk: { description: 'Does it.' } }"))
    expect(parent).toContain('runtime/commit/family.js')
  })

  it('B-LAZY-3: as published, importing the package loads five files', async () => {
    const files = await loaded(published, `import 'ENTRY'`)
    expect(files.map((file) => file.replace(/-.{8}\.js$/, ''))).toEqual(
      expect.arrayContaining(['index.js', 'chunks/core', 'chunks/kernel', 'chunks/stores']),
    )
    expect(files.length).toBeLessThanOrEqual(5)
    for (const file of files) expect(readFileSync(join(published, file), 'utf8')).not.toMatch(/^import .* from "node:/m)
  })

  it('B-LAZY-7: a command keeps what was compiled of it where Node can, and importing the package keeps nothing', async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'terret-lazy-'))
    try {
      const env = { ...process.env, TMPDIR: scratch, TERRET_HOME: join(scratch, 'home') }
      const run = (args: readonly string[]) => promisify(execFile)(process.execPath, args, { cwd: root, env })
      const kept = (): boolean => existsSync(join(scratch, 'node-compile-cache'))
      await run(['--input-type=module', '-e', `import '${pathToFileURL(join(published, 'index.js')).href}'`])
      expect(kept()).toBe(false)
      await run([join(published, 'cli', 'main.js'), 'models'])
      expect(kept()).toBe('enableCompileCache' in process.getBuiltinModule('node:module'))
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  })

  it('B-LAZY-6: as published, no file imports itself through others', () => {
    const imports = new Map(
      readdirSync(published, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.js') && !file.startsWith('web'))
        .map((file) => [file, importedBy(file)] as const),
    )
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      (imports.get(from) ?? []).some((next) => {
        if (next === to) return true
        if (seen.has(next)) return false
        seen.add(next)
        return reaches(next, to, seen)
      })
    expect(imports.size).toBeGreaterThan(100)
    expect([...imports.keys()].filter((file) => reaches(file, file))).toEqual([])
  })
})
