// `glob` and `search` on the real ripgrep: what they find, where they stop, and what they never run.
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Workbench } from './workbench.ts'

let bench: Workbench
beforeEach(() => {
  bench = new Workbench()
})
afterEach(() => bench.remove())

/** A stand-in for the binary: ripgrep cannot be made to fail halfway when one is root. */
function fakeRipgrep(script: string): string {
  const file = join(bench.folder, 'rg')
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  return file
}

const begin = '{"type":"begin","data":{"path":{"text":"./a.txt"}}}'
const match = '{"type":"match","data":{"lines":{"text":"hit\\n"},"line_number":3,"submatches":[{"start":0}]}}'

describe('glob', () => {
  it('B-FILES-60: finds files by pattern, the newest first, and at most as many as asked', async () => {
    for (const [index, name] of ['old.ts', 'src/mid.ts', 'src/deep/new.ts', 'src/x.md'].entries()) {
      utimesSync(bench.put(name, ''), 1000 + index, 1000 + index)
    }
    const call = bench.tools()
    expect((await call('glob', { pattern: '*.ts' })).content).toBe('src/deep/new.ts\nsrc/mid.ts\nold.ts')
    expect((await call('glob', { pattern: 'src/*.{ts,md}' })).content).toBe('src/x.md\nsrc/mid.ts')
    expect((await call('glob', { pattern: '*.ts', path: 'src' })).content).toBe('src/deep/new.ts\nsrc/mid.ts')
    const two = await call('glob', { pattern: '**/*.ts', limit: 2 })
    expect(two.metadata).toMatchObject({ files: 2, more: true })
    expect(two.content.startsWith('src/deep/new.ts\nsrc/mid.ts\n')).toBe(true)
    expect(await call('glob', { pattern: '*.rs' })).toMatchObject({ ok: true, metadata: { files: 0 } })
    expect(await call('glob', { pattern: '{' })).toMatchObject({ kind: 'InvalidInput' })
    expect(await call('glob', { pattern: '!x' })).toMatchObject({ kind: 'InvalidInput' })
  })

  it('B-FILES-61: shows 200 of very many files and says there are more', async () => {
    for (let index = 0; index < 450; index++) bench.put(`many/${index}.txt`, '')
    const found = await bench.tools()('glob', { pattern: '*.txt' })
    expect(found.metadata).toMatchObject({ files: 200, more: true })
  })

  it('B-FILES-62: leaves out node_modules and its like, unless they are asked for', async () => {
    for (const name of ['node_modules', '.git', 'target', 'dist', 'build', 'vendor', '.next', '__pycache__', '.venv']) {
      bench.put(`${name}/a.txt`, 'needle')
      bench.put(`sub/${name}/a.txt`, 'needle')
    }
    bench.put('.hidden/a.txt', 'needle')
    const call = bench.tools()
    expect((await call('glob', { pattern: '*.txt' })).content).toBe('.hidden/a.txt')
    expect((await call('search', { pattern: 'needle' })).metadata).toMatchObject({ files: 1 })
    expect((await call('glob', { pattern: '*.txt', include_ignored: true })).metadata).toMatchObject({ files: 19 })
    expect((await call('glob', { pattern: 'dist/*.txt' })).content).toBe('dist/a.txt')
    expect((await call('search', { pattern: 'needle', path: 'node_modules' })).metadata).toMatchObject({ files: 1 })
    expect((await call('search', { pattern: 'needle', include_ignored: true })).metadata).toMatchObject({ files: 19 })
  })
})

describe('search', () => {
  it('B-FILES-63: groups matches by file, in order of path, within its limits', async () => {
    for (let index = 10; index < 70; index++) bench.put(`f${index}.txt`, 'hit\n'.repeat(12))
    const found = await bench.tools()('search', { pattern: 'hi[t]' })
    expect(found.metadata).toMatchObject({ files: 50, matches: 500, more: true })
    const groups = found.content.split('\n').filter((line) => line.startsWith('f'))
    expect([groups[0], groups.at(-1)]).toEqual(['f10.txt', 'f59.txt'])
    const few = await bench.tools()('search', { pattern: 'hit', max_files: 1, max_matches_per_file: 2 })
    expect(few.content.split('\n').slice(0, 4)).toEqual([
      'f10.txt',
      '  1: hit',
      '  2: hit',
      '  (more matches in this file)',
    ])
  })

  it('B-FILES-64: searches one file, plain text, any case, a kind of file, and shows lines around', async () => {
    bench.put('a.ts', 'one\nTwo (x)\nthree\n')
    bench.put('b.md', 'Two (x)\n')
    const call = bench.tools()
    expect((await call('search', { pattern: 'Two', path: 'a.ts' })).content).toBe('a.ts\n  2: Two (x)')
    expect((await call('search', { pattern: '(x)', literal: true, glob: '*.md' })).content).toBe('b.md\n  1: Two (x)')
    expect((await call('search', { pattern: 'two', ignore_case: true, glob: '*.ts', context: 1 })).content).toBe(
      'a.ts\n  1- one\n  2: Two (x)\n  3- three',
    )
    expect(await call('search', { pattern: 'nothing like it' })).toMatchObject({ ok: true, content: '(no matches)' })
    expect(await call('search', { pattern: '(' })).toMatchObject({ ok: false, kind: 'InvalidInput' })
    expect(await call('search', { pattern: 'x', path: 'none' })).toMatchObject({ kind: 'NotFound' })
  })

  it('B-FILES-65: cuts long lines around the match, and survives lines of megabytes and bytes that are no text', async () => {
    bench.put('long.txt', `${'é'.repeat(3000)}needle${'z'.repeat(3000)}\n`)
    bench.put('huge.txt', `${'y'.repeat(6_000_000)}needle\nneedle after\n`)
    bench.put('latin.txt', Buffer.from('caf\xe9 needle\n', 'latin1'))
    const { ok, content } = await bench.tools()('search', { pattern: 'needle' })
    expect(ok).toBe(true)
    const rows = content.split('\n')
    expect(rows.every((row) => row.length < 200)).toBe(true)
    expect(rows.find((row) => row.includes('é'))).toContain('needle')
    expect(content).toContain('2: needle after')
    expect(content).toContain('latin.txt')
  })

  it('B-FILES-66: what looks like an option, a shell or a config is only a pattern', async () => {
    const proof = join(bench.folder, 'proof')
    bench.put('evil.sh', `#!/bin/sh\ntouch ${proof}\n`)
    chmodSync(join(bench.root, 'evil.sh'), 0o755)
    bench.put('rc', `--pre=${join(bench.root, 'evil.sh')}\n`)
    bench.put('a.txt', '--pre $(touch x) ; `touch x`\n')
    const call = bench.tools()
    const before = process.env['RIPGREP_CONFIG_PATH']
    process.env['RIPGREP_CONFIG_PATH'] = join(bench.root, 'rc')
    try {
      const evil = [
        `--pre=${join(bench.root, 'evil.sh')}`,
        `$(touch ${proof})`,
        `; touch ${proof}`,
        '-f/etc/passwd',
        '--files',
      ]
      for (const text of evil) {
        await call('search', { pattern: text })
        await call('search', { pattern: 'a', glob: text })
        await call('search', { pattern: text, literal: true, path: 'a.txt' })
        await call('glob', { pattern: text })
      }
    } finally {
      if (before === undefined) delete process.env['RIPGREP_CONFIG_PATH']
      else process.env['RIPGREP_CONFIG_PATH'] = before
    }
    expect(existsSync(proof)).toBe(false)
    expect(existsSync(join(bench.root, 'x'))).toBe(false)
    expect((await call('search', { pattern: '--pre', path: 'a.txt' })).metadata).toMatchObject({ matches: 1 })
  })

  it('B-FILES-67: does not go through links to the outside', async () => {
    symlinkSync(bench.outside, join(bench.root, 'out'))
    symlinkSync(join(bench.outside, 'canary.txt'), join(bench.root, 'link.txt'))
    mkdirSync(join(bench.root, 'empty'))
    const call = bench.tools()
    expect((await call('search', { pattern: 'nobody', include_ignored: true })).metadata).toMatchObject({ matches: 0 })
    expect((await call('glob', { pattern: '*' })).metadata).toMatchObject({ files: 0 })
  })

  it('B-FILES-68: code 2 with matches is part of an answer with a warning; without matches it is a failure', async () => {
    const some = bench.tools({
      ripgrep: fakeRipgrep(`printf '%s\\n' '${begin}' '${match}'; echo 'rg: ./b: broken' >&2; exit 2`),
    })
    const part = await some('search', { pattern: 'hit' })
    expect(part).toMatchObject({ ok: true, metadata: { matches: 1, partial: true, warning: 'rg: ./b: broken' } })
    expect(part.content).toContain('a.txt\n  3: hit')
    const garbled = bench.tools({ ripgrep: fakeRipgrep(`echo '{ no json'; exec sleep 60`) })
    expect(await garbled('search', { pattern: 'hit' })).toMatchObject({ ok: false })
    const none = bench.tools({ ripgrep: fakeRipgrep(`echo 'rg: broken' >&2; exit 2`) })
    expect(await none('search', { pattern: 'hit' })).toMatchObject({ ok: false, kind: 'Failed' })
    expect(await none('glob', { pattern: '*' })).toMatchObject({ ok: false, kind: 'Failed' })
  })

  it('B-FILES-69: a stopped search ends its process; a missing ripgrep is Unavailable', async () => {
    const pid = join(bench.folder, 'pid')
    const slow = bench.tools({ ripgrep: fakeRipgrep(`echo $$ > ${pid}.tmp; mv ${pid}.tmp ${pid}; exec sleep 60`) })
    const stop = new AbortController()
    const running = slow('search', { pattern: 'hit' }, bench.context(stop.signal))
    await expect.poll(() => existsSync(pid)).toBe(true)
    stop.abort()
    expect(await running).toMatchObject({ ok: false, kind: 'Interrupted' })
    expect(existsSync(`/proc/${readFileSync(pid, 'utf8').trim()}`)).toBe(false)
    const missing = bench.tools({ ripgrep: join(bench.folder, 'no-such-rg') })
    expect(await missing('search', { pattern: 'hit' })).toMatchObject({ ok: false, kind: 'Unavailable' })
    expect(await missing('glob', { pattern: '*' })).toMatchObject({ ok: false, kind: 'Unavailable' })
  })
})
