// The package as a stranger gets it: packed, installed in an empty folder, and run as the README says.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { VERSION } from '../src/index.ts'
import { deadLinks } from './tidy/records.ts'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'terret-package-'))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly devDependencies: Record<string, string>
  readonly exports: Record<string, unknown>
}

/** The first TypeScript block under a heading, as plain JavaScript: examples that are run use no type syntax. */
function exampleOf(heading: string, file = 'README.md'): string {
  const text = readFileSync(join(root, file), 'utf8')
  const block = /```ts\n([\s\S]*?)```/.exec(text.slice(text.indexOf(heading)))
  if (!block?.[1]) throw new Error(`${file} has no example under "${heading}"`)
  return block[1]
}

function run(
  file: string,
  args: readonly string[] = [],
  cwd = folder,
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync(process.execPath, [file, ...args], { cwd, encoding: 'utf8', timeout: 30_000 })
}

/** What the recipes need beside terret and zod, in the versions of this repository. */
const besides = ['ai', 'hono', 'express', '@modelcontextprotocol/client', '@modelcontextprotocol/server-filesystem']
const recipes = readdirSync(join(root, 'docs', 'recipes')).filter((name) => name !== 'README.md')

describe('the package', () => {
  beforeAll(() => {
    const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
      cwd: root,
      encoding: 'utf8',
    })
    const tarball = join(folder, packed.trim().split('\n').at(-1) ?? '')
    writeFileSync(join(folder, 'package.json'), '{ "name": "stranger", "private": true, "type": "module" }\n')
    execFileSync(
      'npm',
      ['install', '--silent', '--no-audit', '--no-fund', tarball, `zod@${manifest.devDependencies.zod}`],
      { cwd: folder, stdio: 'pipe' },
    )
    for (const name of besides) {
      mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
    }
  }, 120_000)

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('B-PACK-1: installed in an empty folder, it runs the README example as written, in two processes', () => {
    writeFileSync(join(folder, 'readme-agent.mjs'), exampleOf('## First example'))
    const printed = ["requires_action { order: 'A-17', usd: 40 }\n", 'completed A-17 got 40 USD back.\n']
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    for (const stdout of printed) {
      expect(run('readme-agent.mjs')).toMatchObject({ status: 0, stdout, stderr: '' })
      expect(readme).toContain(`node agent.mjs         # ${stdout.trim()}`)
    }
  })

  it('B-PACK-8: the programs of the quickstart and of the guide on limits run as written', () => {
    writeFileSync(join(folder, 'agent.mjs'), exampleOf('# Quickstart', 'docs/guide/quickstart.md'))
    expect(run('agent.mjs').stdout).toContain("requires_action publish { page: 'news.html' }")
    expect(run('agent.mjs').stdout).toContain('completed The news are online.')
    writeFileSync(join(folder, 'limits.mjs'), exampleOf('# Limits', 'docs/guide/limits.md'))
    expect(run('limits.mjs').stdout).toBe('completed 5 look look look report\n')
  })

  it('B-PACK-14: the programs of the guides on long results and on files of sessions run as written', () => {
    writeFileSync(join(folder, 'long.mjs'), exampleOf('## Long results', 'docs/guide/tools.md'))
    expect(run('long.mjs')).toMatchObject({ stdout: 'Line 20000 is: order 20000\n40000 lines\n', stderr: '' })
    writeFileSync(join(folder, 'files.mjs'), exampleOf('## Files', 'docs/guide/sessions.md'))
    expect(run('files.mjs')).toMatchObject({ stdout: 'And lavender. 4 messages\n', stderr: '' })
  })

  it('B-COMPRESS-26: the programs of the guide on context run as written', () => {
    writeFileSync(join(folder, 'context.mjs'), exampleOf('## What a large result becomes', 'docs/guide/context.md'))
    const printed = [
      '36 lines, the failed order among them: true',
      'The original begins with {"id":0,"status":"shipped"},',
      'json true true\n',
    ]
    expect(run('context.mjs')).toMatchObject({ stdout: printed.join('\n'), stderr: '' })
    writeFileSync(join(folder, 'way.mjs'), exampleOf('## The way of a fresh result', 'docs/guide/context.md'))
    const told = ['Read 26400 characters.', 'A long report. Case 4711 is open.', '26400 true\n']
    expect(run('way.mjs')).toMatchObject({ stdout: told.join('\n'), stderr: '' })
  })

  it('B-UI-19: the programs of the guide on user interfaces run as written', () => {
    writeFileSync(join(folder, 'text.mjs'), exampleOf('## Only the text', 'docs/guide/ui.md'))
    expect(run('text.mjs')).toMatchObject({ status: 0, stdout: 'It is 4 °C and raining.', stderr: '' })
    writeFileSync(join(folder, 'chat.mjs'), exampleOf('## A chat with the AI SDK', 'docs/guide/ui.md'))
    const { status, stdout, stderr } = run('chat.mjs')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('"delta":"Hello, Ana."')
    expect(stdout).toContain("role: 'assistant'")
  })

  it('B-PACK-11: its guides, recipes and examples link only to what it brings, and import only what it exports', () => {
    const installed = join(folder, 'node_modules', 'terret')
    const texts = readdirSync(installed, { recursive: true, encoding: 'utf8' })
      .filter((path) => /^(docs|examples)\/.*\.(md|tsx?)$|^llms\.txt$/.test(path))
      .map((path) => ({ path, text: readFileSync(join(installed, path), 'utf8') }))
    for (const place of ['docs/guide/', 'docs/recipes/', 'examples/'])
      expect(texts.filter(({ path }) => path.startsWith(place)).length).toBeGreaterThan(10)
    expect(deadLinks(texts, (path) => existsSync(join(installed, path)))).toEqual([])
    const entries = Object.keys(manifest.exports).map((entry) => entry.replace('.', 'terret'))
    const strange = texts.flatMap(({ path, text }) => {
      const imports = /\.tsx?$/.test(path) ? [...text.matchAll(/ from '((?:\.|terret)[^']*)'/g)] : []
      return imports
        .map(([, name = '']) => name)
        .filter((name) =>
          name.startsWith('.') ? !existsSync(join(installed, dirname(path), name)) : !entries.includes(name),
        )
    })
    expect(strange).toEqual([])
  })

  it.each(recipes)('B-PACK-12: the recipe %s runs as written, and prints what its page says', (name) => {
    const page = readFileSync(join(root, 'docs', 'recipes', name), 'utf8')
    const program = exampleOf('# ', join('docs', 'recipes', name))
    const starts = [...page.matchAll(/```text\n([\s\S]*?)```/g)].map(([, printed]) => printed)
    expect(starts.length).toBeGreaterThan(0)
    expect(program.split('\n').length - 1).toBeLessThanOrEqual(60)
    const place = join(folder, name)
    mkdirSync(place)
    writeFileSync(join(place, 'recipe.mjs'), program)
    for (const printed of starts)
      expect(run('recipe.mjs', [], place)).toMatchObject({
        status: page.includes('its exit code is 1') ? 1 : 0,
        stdout: printed,
        stderr: '',
      })
  })

  it('B-PACK-2: it keeps sessions in an SQLite file, and another process reads them', () => {
    const write = `import { Harness, scripted, sqlite } from 'terret'
const store = sqlite('kept.db'); const harness = new Harness({ model: scripted(['kept']), store })
console.log((await harness.run('keep this')).sessionId); await harness.close(); await store.close()`
    const read = `import { sqlite } from 'terret/sqlite'
const store = sqlite('kept.db'); console.log((await store.read(process.argv[2], 0)).events.at(-1).type); await store.close()`
    writeFileSync(join(folder, 'write.mjs'), write)
    writeFileSync(join(folder, 'read.mjs'), read)
    const session = run('write.mjs').stdout.trim()
    expect(run('read.mjs', [session])).toMatchObject({ status: 0, stdout: 'run.settled\n' })
  })

  it('B-PACK-3: the kernel alone folds a log without touching Node', () => {
    writeFileSync(
      join(folder, 'kernel.mjs'),
      `import { EMPTY, fold, next } from 'terret/kernel'
const s = fold(EMPTY, { seq: 1, at: 0, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' })
console.log(next(s, { now: 0, epoch: 0 }).waiting)`,
    )
    expect(run('kernel.mjs')).toMatchObject({ status: 0, stdout: 'input\n' })
  })

  it('B-PACK-4: the terret command helps, runs its demo without a terminal, and says what to do about a wrong word', () => {
    const command = join('node_modules', 'terret', 'dist', 'cli', 'main.js')
    expect(run(command, ['--help'])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('terret <command> [words] [flags]') as string,
    })
    expect(run(command, ['--version'])).toMatchObject({ status: 0, stdout: `${VERSION}\n` })
    expect(run(command, ['demo'])).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/^✗ draft +kill -9 [\s\S]*Allow it: /m) as string,
    })
    expect(run(command, ['frob'])).toMatchObject({
      status: 2,
      stderr: 'terret: There is no command "frob". Run `terret --help` to see what there is.\n',
    })
    expect(run(command, ['--frob'])).toMatchObject({ status: 2 })
  })
})

describe('the examples', () => {
  const examples: readonly (readonly [string, string])[] = [
    ['01-hello', 'completed: It is 4 °C and raining in Oslo.'],
    ['02-approval', 'completed: The news are online.'],
    ['03-files', 'The meeting is on Tuesday.\nSigned.'],
    ['04-mcp', 'The sum of 19 and 23 is 42.'],
    ['05-models', 'completed {"city":"Oslo","celsius":4} $0.0195\nlimit usd 1 request was made'],
    ['06-hooks', 'audit: end_turn, 1 held back'],
    ['07-sessions', 'refused: session_busy\nrequires_action (paused): measure ok'],
    ['08-streaming', 'a late reader: 10 events, 1 of them before the question\nleft early: interrupted'],
    ['09-tracing', 'The log gives the same 9 spans again.'],
    ['10-subagents', 'completed: I found this. One page says of Oslo: 4 °C and rain. I found this. Volume 26'],
    ['11-wake', 'worker: 1 looked at\nThe bread is out of the oven.'],
    ['12-memory', 'second: Switch the VPN on first.\nthe same bytes again: true'],
    ['14-ag-ui', 'later: user assistant tool assistant → The news are online.'],
    ['15-run-context', 'sessions of acme: 1\n{ open: 2 }'],
  ]

  it('B-PACK-6: every example is in the list of those that are run here', () => {
    const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts'))
    expect(files.map((name) => name.replace('.ts', '')).sort()).toEqual(examples.map(([name]) => name))
  })

  it('B-PACK-9: npm start with nobody there shows each node and each kill, stops at the approval with exit code 0, and the command it prints writes the report', () => {
    const data = join(folder, 'data')
    const options = { cwd: root, encoding: 'utf8', input: '', timeout: 60_000 } as const
    const { status, stderr } = spawnSync('npm', ['start', '--silent', '--', '--data', data], options)
    expect({ status, stderr }).toMatchObject({ status: 0 })
    for (const name of ['plan', 'search', 'extract', 'draft', 'review', 'propose'])
      expect(stderr).toMatch(new RegExp(`^✓ ${name} `, 'm'))
    expect(stderr.match(/^✗ \w+ +kill -9 \d+/gm)).toHaveLength(2)
    const [, command = ''] = /^ *Allow it: +(.*)$/m.exec(stderr) ?? []
    const { status: ended, stdout } = spawnSync('sh', ['-c', command], options)
    const report = stdout.trim()
    try {
      expect([ended, readFileSync(report, 'utf8')]).toEqual([0, expect.stringMatching(/^# What does a sick-room need/)])
    } finally {
      rmSync(report, { force: true })
    }
  })

  it.each(examples)('B-PACK-7: example %s runs to its end without a terminal', (name, said) => {
    const file = join(root, '.build', 'examples', `${name}.js`)
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
      cwd: root,
      encoding: 'utf8',
      input: '',
      timeout: 30_000,
    })
    expect({ status, stderr, said: stdout.includes(said) ? said : stdout }).toEqual({ status: 0, stderr: '', said })
  })
})
