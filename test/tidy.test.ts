// The house as a test: layout, purity, sizes, names and promises in writing. Each rule also proves that it can fail.
// The rules themselves are in test/tidy/. Behaviour of the product is tested elsewhere.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SCHEMAS } from '../src/archive/event-schema.ts'
import {
  anyTypes,
  bannedFileNames,
  classicalSyntax,
  defaultExports,
  focusedOrSkippedTests,
  impureKernel,
  longFunctions,
  unfinishedComments,
  uninjected,
  unparsable,
} from './tidy/code.ts'
import {
  deadFiles,
  entriesOf,
  importDirection,
  lonelyFiles,
  outsideBrowser,
  sidewaysTools,
  upwardRuntime,
} from './tidy/imports.ts'
import { deadLinks, deadPaths, foreignNames, unfoldedEvents, unloggedEvents, unnamedFolders } from './tidy/records.ts'
import { parse, readSources, readText, readTexts, repository, type SourceFile, type TextFile } from './tidy/source.ts'

const everything = readTexts('.')
const sources = readSources(['src', 'sim', 'bench', 'test', 'examples', 'scripts', 'web'])
const src = within('src/')
const kernel = within('src/kernel/')

describe('the scan', () => {
  it('finds the repository, its sources and the kernel', () => {
    expect(everything.length).toBeGreaterThan(0)
    expect(src.length).toBeGreaterThan(0)
    expect(kernel.length).toBeGreaterThan(0)
    expect(kernel.map((file) => file.path)).toContain('src/kernel/event.ts')
  })

  it('finds nothing, and does not crash, in a folder that is not there', () => {
    expect(readSources(['no/such/folder'])).toEqual([])
  })

  it('can read every source file', () => {
    expect(unparsable(sources)).toEqual([])
    expect(unparsable([parse('src/a.ts', 'const = 1')])).toHaveLength(1)
  })
})

describe('imports', () => {
  it('go only in the direction of the table', () => {
    expect(importDirection(sources)).toEqual([])
  })

  it.each(['src/client/index.ts', 'src/view/index.ts', 'src/kernel/index.ts'])(
    'of %s reach nothing of Node and no package',
    (entry) => {
      expect(outsideBrowser(sources, entry)).toEqual([])
    },
  )

  it('of Node are found behind another file, and types are not counted', () => {
    const entry = parse(
      'src/a.ts',
      "import { b } from './b.ts'\nimport type { C } from 'pg'\nimport { type D } from 'pg'",
    )
    const other = parse('src/b.ts', "import { hash } from 'node:crypto'")
    expect(outsideBrowser([entry, other], 'src/a.ts')).toEqual([
      'src/b.ts:1 imports node:crypto, which a browser does not have',
    ])
  })

  it.each([
    ['src/kernel/fold.ts', '../runtime/loop/drive.ts', 'kernel imports runtime'],
    ['src/models/model.ts', '../tools/core/tool.ts', 'models imports tools'],
    ['src/tools/core/run-tool.ts', '../../models/model.ts', 'tools imports models'],
    ['src/stores/sqlite/sqlite.ts', '../../runtime/loop/leases.ts', 'stores imports runtime'],
    ['src/runtime/loop/drive.ts', '../../harness.ts', 'runtime imports harness'],
    ['src/server/http.ts', '../stores/sqlite.ts', 'server imports stores'],
    ['src/harness.ts', './cli/main.ts', 'harness imports cli'],
    ['src/harness.ts', '../test/contract/store.ts', 'harness imports test/contract/store.ts'],
    ['web/app.ts', '../src/runtime/loop/drive.ts', 'web imports runtime'],
    ['web/app.ts', '../src/server/http.ts', 'web imports server'],
    ['sim/world.ts', '../src/models/local/scripted.ts', 'sim imports models'],
  ])('from %s to %s are reported', (path, target, message) => {
    for (const statement of [`import '${target}'`, `import type { A } from '${target}'`, `export * from '${target}'`]) {
      expect(importDirection([parse(path, statement)])).toEqual([`${path}:1 ${message}`])
    }
    expect(importDirection([parse(path, `const a = await import('${target}')`)])).toEqual([`${path}:1 ${message}`])
    expect(importDirection([parse(path, `type A = import('${target}').A`)])).toEqual([`${path}:1 ${message}`])
  })

  it('along the table are not reported', () => {
    const runtime = parse(
      'src/runtime/loop/drive.ts',
      "import '../../kernel/next.ts'\nimport './leases.ts'\nimport 'node:fs'",
    )
    const web = parse('web/app.ts', "import '../src/kernel/fold.ts'\nimport '../src/server/wire.ts'")
    expect(importDirection([runtime, web, parse('src/harness.ts', "import './runtime/loop/drive.ts'")])).toEqual([])
  })

  it('are reported from a folder that has no place in the table', () => {
    expect(importDirection([parse('src/plugins/load.ts', '')])).toHaveLength(1)
  })

  it('go only down in the runtime: loop, commit, turn, then hooks and money, state, guard and redact', () => {
    expect(upwardRuntime(src)).toEqual([])
  })

  it.each([
    ['src/runtime/commit/family.ts', '../loop/drive.ts', 'runtime/commit imports runtime/loop'],
    ['src/runtime/turn/end-run.ts', '../commit/commit-draft.ts', 'runtime/turn imports runtime/commit'],
    ['src/runtime/hooks/hooks.ts', '../money/holds.ts', 'runtime/hooks imports runtime/money'],
    ['src/runtime/state/agent.ts', '../turn/run-call.ts', 'runtime/state imports runtime/turn'],
    ['src/runtime/guard/guard.ts', '../state/agent.ts', 'runtime/guard imports runtime/state'],
  ])('from %s up to %s are reported', (path, target, message) => {
    expect(upwardRuntime([parse(path, `import type { A } from '${target}'`)])).toEqual([`${path}:1 ${message}`])
    expect(upwardRuntime([parse(path, `const a = await import('${target}')`)])).toHaveLength(1)
  })

  it('down in the runtime, within a room and out of it are not reported, and a file without a room is', () => {
    const text = "import './flights.ts'\nimport '../state/agent.ts'\nimport '../../kernel/fold.ts'"
    expect(upwardRuntime([parse('src/runtime/loop/drive.ts', text)])).toEqual([])
    expect(upwardRuntime([parse('src/runtime/a.ts', ''), parse('src/runtime/other/a.ts', '')])).toHaveLength(2)
  })

  it('never go sideways between tools', () => {
    expect(sidewaysTools(src)).toEqual([])
    expect(sidewaysTools([parse('src/tools/files/edit-tool.ts', "import './read-tool.ts'")])).toHaveLength(1)
    expect(sidewaysTools([parse('src/tools/web/web-fetch.ts', "import '../shell/bash.ts'")])).toHaveLength(1)
    expect(sidewaysTools([parse('src/tools/web/web-fetch.ts', "import '../core/tool.ts'")])).toEqual([])
    expect(sidewaysTools([parse('src/tools/files/file-tools.ts', "import './read-tool.ts'")])).toEqual([])
    expect(sidewaysTools([parse('src/tools/builtin.ts', "import './web/web-fetch.ts'")])).toEqual([])
  })

  it('reach every file of src from the exports and bin of package.json', () => {
    const entries = entriesOf(JSON.parse(readText('package.json')) as { exports?: unknown; bin?: unknown })
    expect(entries.length).toBeGreaterThan(0)
    // The pages are an entry of their own: vite.config.ts builds them.
    expect(deadFiles(src, [...entries, 'src/web/main.tsx', 'src/web/file/main.tsx'])).toEqual([])
  })

  it('report a dead file and a missing entry', () => {
    const manifest = { bin: { a: 'dist/cli.js' }, exports: { '.': { types: './dist/a.d.ts', default: './dist/a.js' } } }
    const files = [parse('src/a.ts', "export * from './b.ts'"), parse('src/b.ts', ''), parse('src/dead.ts', '')]
    expect(entriesOf(manifest)).toEqual(['src/a.ts', 'src/cli.ts'])
    expect(deadFiles(files, entriesOf(manifest))).toEqual([
      'src/cli.ts:1 is an entry and is not there',
      'src/dead.ts:1 is reached by no entry of package.json',
    ])
  })
})

describe('the kernel', () => {
  it('is pure: no clock, no randomness, no I/O, no outside imports', () => {
    expect(impureKernel(kernel)).toEqual([])
  })

  it.each([
    "import 'node:fs'",
    "import { z } from 'zod'",
    'const t = Date.now()',
    'const t = new Date(0)',
    'const r = Math.random()',
    'const e = process.env',
    "void fetch('x')",
    'setTimeout(f, 1)',
    'crypto.subtle',
    'performance.now()',
    "console.log('x')",
    'const g = globalThis',
    'const o = { fetch }',
    'type T = Date',
  ])('is reported as impure for %s', (text) => {
    expect(impureKernel([parse('src/kernel/a.ts', text)])).not.toEqual([])
  })

  it('may name a member as it likes', () => {
    const text =
      "import './b.ts'\ntype A = { fetch: string; process(): void }\nconst n = Math.max(a.process, { fetch: 1 }.fetch)"
    expect(impureKernel([parse('src/kernel/a.ts', text)])).toEqual([])
  })
})

describe('time and randomness', () => {
  const timed = [
    'runtime',
    'sessions',
    'live',
    'archive',
    'view',
    'workflows',
    'tools',
    'models',
    'stores',
    'context',
    'agents',
    'memory',
    'graphs',
    'scripts',
    'harness',
  ]
  /** The real clocks: one that holds the process while something runs, one for stores that never does. */
  const platform = ['src/runtime/state/machine.ts', 'src/stores/plan/system-clock.ts']

  it('are injected everywhere but in the two files that hold the real ones', () => {
    const folders = timed.flatMap((area) => [...within(`src/${area}/`), ...within(`src/${area}.ts`)])
    expect(uninjected(folders.filter((file) => !platform.includes(file.path)))).toEqual([])
  })

  it.each([
    'Date.now()',
    'const clock = Date.now',
    'new Date()',
    'Date()',
    'Math.random()',
    'setTimeout(f, 1)',
    'setInterval(f, 1)',
    'crypto.randomUUID()',
    'globalThis.Date.now()',
    'AbortSignal.timeout(5)',
    "import { randomUUID } from 'node:crypto'",
    "import { setTimeout as sleep } from 'node:timers/promises'",
  ])('are reported when taken directly by %s', (text) => {
    expect(uninjected([parse('src/runtime/a.ts', text)])).not.toEqual([])
  })

  it('may be taken from a port', () => {
    expect(uninjected([parse('src/runtime/a.ts', 'clock.now(); timers.setTimeout(f, 1); new Date(at)')])).toEqual([])
  })
})

describe('folders', () => {
  it('of src hold more than one thing', () => {
    expect(lonelyFiles(src.map(({ path }) => path))).toEqual([])
    expect(lonelyFiles(['src/a/b/one.ts', 'src/a/two.ts', 'src/a/three.ts'])).toEqual([
      'src/a/b/one.ts:1 is alone in its folder',
    ])
    expect(lonelyFiles(['src/a/index.ts', 'src/a/b/one.ts', 'src/a/b/two.ts'])).toEqual([])
  })

  it('of src, of its runtime and of its tools are named in AGENTS.md or the tour', () => {
    expect(unnamedFolders(src, pagesOfRooms())).toEqual([])
    const page = {
      path: 'docs/tour.md',
      text: 'see `src/a/` and `src/runtime/loop/drive.ts`, but not src/b/ or `src/cc/`',
    }
    const files = [
      'src/a/x.ts',
      'src/b/x.ts',
      'src/c/x.ts',
      'src/runtime/loop/x.ts',
      'src/runtime/turn/x.ts',
      'src/x.ts',
    ]
    expect(
      unnamedFolders(
        files.map((path) => parse(path, '')),
        [page],
      ),
    ).toEqual([
      'src/b:1 is named in none of docs/tour.md',
      'src/c:1 is named in none of docs/tour.md',
      'src/runtime/turn:1 is named in none of docs/tour.md',
    ])
  })

  it('and files that AGENTS.md and the tour name are there', () => {
    const exists = (path: string): boolean => existsSync(join(repository, path))
    expect(deadPaths(pagesOfRooms(), exists)).toEqual([])
    const text =
      '`src/a.ts`, `src/gone.ts`\n`src/riders/` and `src/a.ts#L3` or `terret/kernel`\n`test/here/`: `b.ts`, `c/`'
    const there = new Set(['src/a.ts', 'test/here/', 'test/here/b.ts'])
    expect(deadPaths([{ path: 'AGENTS.md', text }], (path) => there.has(path))).toEqual([
      'AGENTS.md:1 names src/gone.ts, which is not there',
      'AGENTS.md:2 names src/riders/, which is not there',
      'AGENTS.md:3 names test/here/c/, which is not there',
    ])
  })
})

describe('sizes', () => {
  it('of functions stay within 70 lines', () => {
    expect(longFunctions(sources)).toEqual([])
  })

  it('of functions are measured with their own lines, and without the tests they declare', () => {
    const body = 'go()\n'.repeat(69)
    expect(longFunctions([parse('src/a.ts', `function f() {\n${body}}`)])).toHaveLength(1)
    expect(longFunctions([parse('src/a.ts', `const f = () => {\n${body}}`)])).toHaveLength(1)
    expect(longFunctions([parse('src/a.ts', `class A { f() {\n${body}} }`)])).toHaveLength(1)
    expect(longFunctions([parse('src/a.ts', `function f() {\n${'go()\n'.repeat(68)}}`)])).toEqual([])
    const suite = "it('x', () => {\n1\n2\n})\n".repeat(30)
    expect(longFunctions([parse('test/a.test.ts', `describe('a', () => {\n${suite}})`)])).toEqual([])
    expect(longFunctions([parse('test/a.test.ts', `it('x', () => {\n${body}})`)])).toHaveLength(1)
  })
})

describe('the language', () => {
  it('has no any', () => {
    expect(anyTypes(sources)).toEqual([])
    expect(anyTypes([parse('src/a.ts', 'const a: any = 1')])).toHaveLength(1)
    expect(anyTypes([parse('src/a.ts', 'const any = 1 as unknown')])).toEqual([])
  })

  it('has no default export', () => {
    expect(defaultExports(sources)).toEqual([])
    expect(defaultExports([parse('src/a.ts', 'export default 1')])).toHaveLength(1)
    expect(defaultExports([parse('src/a.ts', 'const a = 1\nexport { a as default }')])).toHaveLength(1)
  })

  it('has no enum, no decorator, and no inheritance but from Error', () => {
    expect(classicalSyntax(sources)).toEqual([])
    for (const text of ['enum A { B }', 'class A extends B {}', '@sealed class A {}']) {
      expect(classicalSyntax([parse('src/a.ts', text)])).toHaveLength(1)
    }
    expect(classicalSyntax([parse('src/a.ts', 'class Fault extends Error {}')])).toEqual([])
  })

  it('leaves no work in comments', () => {
    expect(unfinishedComments(sources)).toEqual([])
    for (const word of ['TODO', 'FIXME', 'XXX']) {
      expect(unfinishedComments([parse('src/a.ts', `// ${word}: later`)])).toHaveLength(1)
    }
    expect(unfinishedComments([parse('src/a.ts', "const a = 'TODO'")])).toEqual([])
  })

  it('names files after the noun they define', () => {
    expect(bannedFileNames(sources)).toEqual([])
    for (const path of [
      'src/utils.ts',
      'src/tools/helpers/a.ts',
      'src/store-manager.ts',
      'src/base.ts',
      'src/a.impl.ts',
    ]) {
      expect(bannedFileNames([{ path, text: '' }])).toHaveLength(1)
    }
    expect(bannedFileNames([{ path: 'src/database.ts', text: '' }])).toEqual([])
  })
})

describe('tests', () => {
  it('that `npm test` leaves out are run by .ci/run', () => {
    const commands = readText('.ci/run').split('\n')
    expect(commands).toContain('npm test')
    // A part of them for each commit, and all of them each night.
    expect(commands).toContain('npm run test:long -- "${long[@]}"')
    expect(commands).toContain('npm run attacks -- "${share[@]}"')
    expect(readText('.github/workflows/nightly.yml')).toMatch(/run: \.ci\/run\n\s+env:\n\s+TERRET_RUNS: all\n/)
  })

  it('are neither focused nor skipped', () => {
    expect(focusedOrSkippedTests(within('test/'))).toEqual([])
    expect(focusedOrSkippedTests([parse('test/a.test.ts', "it.only('x', f)")])).toHaveLength(1)
    expect(focusedOrSkippedTests([parse('test/a.test.ts', "describe.skip.each([1])('x', f)")])).toHaveLength(1)
    expect(focusedOrSkippedTests([parse('test/a.test.ts', "it('x', (t) => t.skip())")])).toHaveLength(1)
    expect(focusedOrSkippedTests([parse('test/a.test.ts', "it.skipIf(old)('x', f)")])).toEqual([])
  })
})

describe('every event type', () => {
  const types = (SCHEMAS['Event']?.oneOf ?? []).map(({ $ref = '' }) => $ref.slice('#/$defs/'.length))

  it('is found in the schema, which is made of the types', () => {
    expect(types).toContain('user.message')
    expect(types).toContain('call.reviewed')
  })

  it('has a case in fold', () => {
    expect(unfoldedEvents(types, parse('src/kernel/fold.ts', readText('src/kernel/fold.ts')))).toEqual([])
    const fold = parse('src/kernel/fold.ts', "switch (e.type) { case 'a': case 'b': break }")
    expect(unfoldedEvents(['a', 'b', 'c'], fold)).toEqual(['src/kernel/fold.ts:1 has no case for c'])
  })

  it('is in a golden log', () => {
    const golden = readTexts('test/golden').filter((file) => file.path.endsWith('.jsonl'))
    expect(unloggedEvents(types, golden)).toEqual([])
    const log = { path: 'test/golden/a.jsonl', text: '{"seq":1,"type":"a"}\n{"seq":2,"body":{"type":"b"}}\n' }
    expect(unloggedEvents(['a', 'b', 'c'], [log])).toEqual(['test/golden:1 no log holds c'])
  })
})

describe('what is written', () => {
  const pages = everything.filter((file) => /^[^/]+\.md$|^docs\/.*\.md$/.test(file.path))

  it('has no dead relative link', () => {
    expect(pages.length).toBeGreaterThan(0)
    expect(deadLinks(pages, (path) => existsSync(join(repository, path)))).toEqual([])
  })

  it('and links to nowhere is reported', () => {
    const text =
      '[a](guide/a.md#top)\n[b](../README.md)\n[c](https://example.com/x)\n[d](#here)\n`[e](code.md)`\n[f](gone.md)'
    const there = new Set(['docs/guide/a.md', 'README.md'])
    const page = { path: 'docs/tour.md', text }
    expect(deadLinks([page], (path) => there.has(path))).toEqual([
      'docs/tour.md:6 links to gone.md, which is not there',
    ])
  })

  it('in the changelog has a place for what is not released yet', () => {
    expect(hasUnreleased(readText('CHANGELOG.md'))).toBe(true)
    expect(hasUnreleased('# Changelog\n\n## 0.1.0\n')).toBe(false)
  })

  it('speaks of the project alone', () => {
    expect(foreignNames(everything)).toEqual([])
  })

  it('and names a machine or a package registry is reported', () => {
    const path = ['', 'work', 'main', 'src'].join('/')
    const host = ['https:', '', 'registry'].join('/').concat('.example.org')
    expect(foreignNames([{ path: 'docs/a.md', text: `ok\nsee ${path}` }])).toEqual([
      'docs/a.md:2 names a path of one machine',
    ])
    expect(foreignNames([{ path: 'a.json', text: `"resolved": "${host}/x"` }])).toHaveLength(1)
    expect(foreignNames([{ path: 'docs/a.md', text: 'see docs/work/a and https://example.com/work/b' }])).toEqual([])
  })
})

/** The two pages that say where things are. */
function pagesOfRooms(): readonly TextFile[] {
  return ['AGENTS.md', 'docs/tour.md'].map((path) => ({ path, text: readText(path) }))
}

function within(prefix: string): readonly SourceFile[] {
  return sources.filter((file) => file.path.startsWith(prefix))
}

function hasUnreleased(changelog: string): boolean {
  return /^## \[Unreleased\]/m.test(changelog)
}
