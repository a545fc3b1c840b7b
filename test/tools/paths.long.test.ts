// The guard against the world: whatever is asked, nothing outside the roots is read or changed. Asserted on files, not texts.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { ToolFailure } from '../../src/tools/core/tool-output.ts'
import { containsPath, createPathGuard, locatePath } from '../../src/tools/files/path-guard.ts'
import { CANARY, Workbench } from './workbench.ts'
import { runs } from '../runs.ts'

let bench: Workbench
beforeEach(() => {
  bench = new Workbench()
})
afterEach(() => bench.remove())

describe('the guard', () => {
  it('B-FILES-1: compares segments, so a twin by prefix, dots, and absolute paths lead nowhere', async () => {
    expect(containsPath('/ws', '/ws-evil/a')).toBe(false)
    expect(containsPath('/ws', '/ws/a')).toBe(true)
    const call = bench.tools()
    const twin = `${bench.root}-evil/canary.txt`
    for (const path of [twin, '../ws-evil/canary.txt', 'a/../../ws-evil/canary.txt', `/proc/self/root${twin}`]) {
      expect(await call('read', { path })).toMatchObject({ ok: false, kind: 'Denied' })
      const written = await call('write', { path, content: 'x' })
      expect(written).toMatchObject({ kind: 'Denied', metadata: { error_type: 'PathValidationError' } })
      await call('edit', { path, old_string: 'nobody', new_string: 'x' })
    }
    expect(bench.canary).toBe(CANARY)
  })

  it('B-FILES-2: resolves links of every shape: to a file, a folder, in a chain, in a loop, to nothing, through /proc', async () => {
    const link = (name: string, target: string) => symlinkSync(target, join(bench.root, name))
    link('file', join(bench.outside, 'canary.txt'))
    link('folder', bench.outside)
    link('chain', 'folder')
    link('loop', 'loop')
    link('dangling', join(bench.outside, 'new.txt'))
    link('danglingFolder', join(bench.outside, 'later'))
    link('magic', `/proc/self/cwd/../../../../../..${bench.outside}`)
    const call = bench.tools()
    const paths = [
      'file',
      'folder/canary.txt',
      'folder/new.txt',
      'folder/a/b/new.txt',
      'chain/canary.txt',
      'chain/new.txt',
    ]
    for (const path of [...paths, 'loop', 'dangling', 'danglingFolder/x', 'magic/canary.txt', 'magic/new.txt']) {
      expect(await call('read', { path })).toMatchObject({ ok: false, kind: 'Denied' })
      expect(await call('write', { path, content: 'x' })).toMatchObject({ ok: false, kind: 'Denied' })
      expect(await call('write', { path, content: 'x', append: true })).toMatchObject({ ok: false })
      expect(await call('edit', { path, old_string: 'nobody', new_string: 'x' })).toMatchObject({ ok: false })
    }
    for (const path of ['folder', 'chain', 'magic']) {
      expect(await call('list', { path })).toMatchObject({ kind: 'Denied' })
      expect(await call('glob', { path, pattern: '*' })).toMatchObject({ kind: 'Denied' })
      expect(await call('search', { path, pattern: 'nobody' })).toMatchObject({ kind: 'Denied' })
    }
    expect(bench.canary).toBe(CANARY)
    expect(readdirSync(bench.outside)).toEqual(['canary.txt'])
  })

  it('B-FILES-3: follows links that stay inside, and writes to what they name', async () => {
    bench.put('real/a.txt', 'one\n')
    symlinkSync('real', join(bench.root, 'alias'))
    symlinkSync('real/a.txt', join(bench.root, 'a'))
    const call = bench.tools()
    expect(await call('write', { path: 'alias/b.txt', content: 'b' })).toMatchObject({ ok: true })
    expect(await call('write', { path: 'a', content: 'two\n' })).toMatchObject({ ok: true })
    expect([bench.text('real/b.txt'), bench.text('real/a.txt')]).toEqual(['b', 'two\n'])
    expect(lstatSync(join(bench.root, 'a')).isSymbolicLink()).toBe(true)
  })

  it('B-FILES-4: refuses FIFOs, devices, folders, /proc, NUL, and files over the cap, without hanging', async () => {
    const call = bench.tools({ root: '/', fileBytesMax: 1_000_000 })
    const fifo = join(bench.root, 'fifo')
    expect(spawnSync('/usr/bin/env', ['mkfifo', fifo]).status).toBe(0)
    const sparse = bench.put('sparse', '')
    truncateSync(sparse, 1_000_000_000_000)
    for (const path of [
      fifo,
      sparse,
      bench.root,
      '/dev/zero',
      '/proc/self/environ',
      '/proc/1/root/etc/passwd',
      'a\0b',
      '/',
    ]) {
      expect(await call('read', { path, limit: 1 })).toMatchObject({ ok: false, kind: 'Denied' })
      expect(await call('write', { path, content: 'x' })).toMatchObject({ ok: false, kind: 'Denied' })
    }
  })

  it('B-FILES-5: does not write to a file that has a second hard link', async () => {
    linkSync(join(bench.outside, 'canary.txt'), join(bench.root, 'innocent.txt'))
    const call = bench.tools()
    expect(await call('write', { path: 'innocent.txt', content: 'x' })).toMatchObject({ kind: 'Denied' })
    expect(await call('edit', { path: 'innocent.txt', old_string: 'nobody', new_string: 'x' })).toMatchObject({
      ok: false,
    })
    expect([bench.canary, bench.text('innocent.txt')]).toEqual([CANARY, CANARY])
  })

  it('B-FILES-6: never writes what runs by itself: there or missing, in any case, at any depth, through links', async () => {
    const call = bench.tools({ protect: ['deploy.key'] })
    const names = ['.git/hooks/pre-commit', '.git/config', '.git', '.bashrc', '.zshrc', '.profile', '.bash_profile']
    const more = [
      '.zprofile',
      '.vscode/tasks.json',
      '.mcp.json',
      '.terret/x',
      'terret.json',
      '.npmrc',
      '.envrc',
      'deploy.key',
    ]
    const variants = (name: string) => [
      name,
      name.toUpperCase(),
      `sub/${name}`,
      `./a/../${name}`,
      join(bench.root, name),
    ]
    const odd = ['.git./config', '.gi\u200ct/config', '.BashRC ', '．npmrc', '.npmrc::$DATA']
    for (const path of [...[...names, ...more].flatMap(variants), ...odd]) {
      expect([path, (await call('write', { path, content: 'x' })).kind]).toEqual([path, 'Denied'])
    }
    expect(readdirSync(bench.root)).toEqual([])

    bench.put('scripts/hooks/pre-commit', 'safe')
    bench.put('.git/HEAD', 'ref')
    symlinkSync('../scripts/hooks', join(bench.root, '.git', 'hooks'))
    symlinkSync('.git', join(bench.root, 'dotgit'))
    for (const path of ['.git/hooks/pre-commit', 'scripts/hooks/pre-commit', 'dotgit/HEAD', 'dotgit/config']) {
      expect([path, (await call('write', { path, content: 'x' })).kind]).toEqual([path, 'Denied'])
      expect((await call('edit', { path, old_string: 'safe', new_string: 'x' })).ok).toBe(false)
    }
    expect([bench.text('scripts/hooks/pre-commit'), bench.text('.git/HEAD')]).toEqual(['safe', 'ref'])
    const part = bench.tools({ write: ['scripts'] })
    expect(await part('write', { path: 'scripts/hooks/pre-commit', content: 'x' })).toMatchObject({ kind: 'Denied' })
    expect(bench.text('scripts/hooks/pre-commit')).toBe('safe')
    expect(await call('read', { path: '.git/HEAD' })).toMatchObject({ ok: true })
  })

  it('B-FILES-7: an empty list allows nothing, a missing list the root, and a list exactly what it names', async () => {
    bench.put('src/a.txt', 'a')
    bench.put('out/b.txt', 'b')
    const none = bench.tools({ read: [], write: [] })
    expect(await none('read', { path: 'src/a.txt' })).toMatchObject({ kind: 'Denied' })
    expect(await none('write', { path: 'src/a.txt', content: 'x' })).toMatchObject({ kind: 'Denied' })
    const some = bench.tools({ read: ['src'], write: ['out'] })
    expect(await some('read', { path: 'src/a.txt' })).toMatchObject({ ok: true })
    expect(await some('read', { path: 'out/b.txt' })).toMatchObject({ kind: 'Denied' })
    expect(await some('write', { path: 'src/a.txt', content: 'x' })).toMatchObject({ kind: 'Denied' })
    expect(await some('write', { path: 'out/new/c.txt', content: 'x' })).toMatchObject({ ok: true })
    expect(() => createPathGuard({ root: bench.root, write: [bench.outside] })).toThrow(Fault)
    expect(() => createPathGuard({ root: join(bench.root, 'missing') })).toThrow(Fault)
    expect([bench.text('src/a.txt'), bench.text('out/new/c.txt')]).toEqual(['a', 'x'])
  })

  it('B-FILES-8: a root that is swapped for a link after the start is refused', async () => {
    const call = bench.tools()
    renameSync(bench.root, `${bench.root}-moved`)
    symlinkSync(bench.outside, bench.root)
    expect((await call('write', { path: 'canary.txt', content: 'x' })).ok).toBe(false)
    expect((await call('read', { path: 'canary.txt' })).ok).toBe(false)
    expect(bench.canary).toBe(CANARY)
  })
})

const step = fc.constantFrom(
  '..',
  '.',
  '',
  'a',
  'b',
  'in',
  'out',
  'chain',
  'up',
  'loop',
  'ü',
  'u\u0308',
  'a.',
  'A',
  '\\',
  '~',
  '...',
  'file',
)
const start = fc.constantFrom('', '', '/', 'ROOT/', 'ROOT-evil/', 'ROOT/../', '/proc/self/root/', '//')

describe('any path', () => {
  it('B-FILES-9: what the guard allows is, with every link resolved, inside a root', async () => {
    bench.put('a/b/file', 'inside')
    bench.put('a./ü/file', 'inside')
    symlinkSync('a', join(bench.root, 'in'))
    symlinkSync(bench.outside, join(bench.root, 'out'))
    symlinkSync('../out', join(bench.root, 'a', 'chain'))
    symlinkSync('..', join(bench.root, 'up'))
    symlinkSync('loop', join(bench.root, 'loop'))
    const guarded = createPathGuard({ root: bench.root })
    const call = bench.tools()
    const path = fc
      .tuple(start, fc.array(step, { maxLength: 7 }))
      .map(([head, steps]) => `${head.replace('ROOT', bench.root)}${steps.join('/')}`)
    let allowed = 0
    await fc.assert(
      fc.asyncProperty(path, fc.constantFrom('read', 'write'), async (text, access) => {
        const place = await locatePath(guarded, text, access).catch((error: unknown) => error)
        if (place instanceof Error) {
          expect(place).toBeInstanceOf(ToolFailure)
          return
        }
        allowed += 1
        const { path: real } = place as { readonly path: string }
        const existing = deepestExisting(real)
        expect(realpathSync(existing)).toBe(existing)
        expect(existing === bench.root || existing.startsWith(`${bench.root}/`)).toBe(true)
        await call(access, { path: text, content: 'x' }).catch(() => null)
      }),
      { numRuns: runs(1500) },
    )
    expect(allowed).toBeGreaterThan(runs(100))
    expect(bench.canary).toBe(CANARY)
    expect(readdirSync(bench.outside)).toEqual(['canary.txt'])
    expect(readdirSync(bench.folder).toSorted()).toEqual(['ws', 'ws-evil'])
  })
})

function deepestExisting(path: string): string {
  return existsSync(path) ? path : deepestExisting(join(path, '..'))
}

/** Another process: it flips as fast as it can until it is told to stop, and says how often it did. */
function spawnRacer(folder: string, hidden: string, link: string, target: string) {
  const source = `
    const { renameSync, rmSync, symlinkSync } = require('node:fs')
    const [folder, hidden, link, target] = process.argv.slice(1)
    // The writer makes missing folders, so any step may find something in its way.
    const attempt = (step) => { try { step() } catch {} }
    let flips = 0
    const flip = () => {
      for (let i = 0; i < 20; i++) {
        attempt(() => symlinkSync(target, link))
        attempt(() => renameSync(folder, hidden))
        attempt(() => { renameSync(link, folder); flips++ })
        attempt(() => rmSync(folder, { recursive: true, force: true }))
        attempt(() => renameSync(hidden, folder))
        attempt(() => rmSync(hidden, { recursive: true, force: true }))
      }
      setImmediate(flip)
    }
    process.stdin.once('data', () => { process.stdout.write(String(flips)); process.exit(0) })
    flip()`
  const child = spawn(process.execPath, ['-e', source, folder, hidden, link, target], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const closed = once(child, 'close')
  const stop = async (): Promise<number> => {
    child.stdin.write('stop')
    await closed
    return Number(said)
  }
  return { stop }
}

describe('a race', () => {
  it('B-FILES-10: a folder that turns into a link and back while files are written and read never lets anything out or in', async () => {
    mkdirSync(join(bench.root, 'd'))
    bench.put('d/canary.txt', 'inside')
    const call = bench.tools()
    const [folder, hidden, link] = [join(bench.root, 'd'), join(bench.root, 'hidden'), join(bench.root, 'link')]
    const racer = spawnRacer(folder, hidden, link, bench.outside)
    let written = 0
    const leaks: string[] = []
    for (let turn = 0; turn < 300; turn++) {
      const wrote = await call('write', { path: 'd/canary.txt', content: `mine ${turn}` })
      if (wrote.ok) written += 1
      await call('write', { path: `d/new/${turn}.txt`, content: 'mine' })
      const read = await call('read', { path: 'd/canary.txt' })
      if (read.content.includes('nobody')) leaks.push(read.content)
    }
    const flips = await racer.stop()
    expect(leaks).toEqual([])
    expect(bench.canary).toBe(CANARY)
    expect(readdirSync(bench.outside)).toEqual(['canary.txt'])
    expect(flips).toBeGreaterThan(300)
    expect(written).toBeGreaterThan(0)
    // Two processes that do nothing else, beside whatever the machine does.
  }, 120_000)
})
