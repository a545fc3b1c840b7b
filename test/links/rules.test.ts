// Rules on paths see where links lead: to deny and to ask either spelling is enough, to allow both must fit.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Harness, judge, type Policy, type Rule, scripted } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { jsonlSearchTool } from '../../src/tools/jsonl/jsonl-search.ts'

let root = ''
const at = (path: string): string => join(root, path)
const put = (path: string, said = `${path} needle\n`): void => {
  mkdirSync(join(at(path), '..'), { recursive: true })
  writeFileSync(at(path), said)
}

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'terret-links-')))
  put('docs/a.md')
  put('src/a.ts')
  put('secrets/key.txt')
  put('secrets/rows.jsonl', '{"needle":"key"}\n')
  symlinkSync('../src', at('docs/guide'))
  symlinkSync('secrets', at('plain'))
  symlinkSync('plain', at('chain'))
  symlinkSync('secrets/key.txt', at('note.txt'))
  symlinkSync('secrets/new.txt', at('dangling.txt'))
  symlinkSync(at('secrets'), at('absolute'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const verdict = (rule: Rule, path: string, more: Partial<Policy> = {}): string =>
  judge({ rules: [rule], ...more }, { tool: 'edit', args: { path }, approval: 'ask', root }).type

const shown = async (rule: Rule, tool: string, args: Json): Promise<string> => {
  let seen = ''
  const script = scripted([{ calls: [{ tool, args }] }, 'done'])
  const model = {
    ...script,
    call: ((request, context) => (
      (seen = JSON.stringify(request.messages)), script.call(request, context)
    )) as typeof script.call,
  }
  const harness = new Harness({
    model,
    tools: [...fileTools({ root }), jsonlSearchTool({ root })],
    approvals: { policy: { rules: [rule] } },
  })
  await harness.run('go')
  await harness.close()
  return seen.slice(seen.indexOf('"tool"'))
}

describe('rules on paths', () => {
  it('B-LINK-5: allow only if the path and the place that links lead to both fit', () => {
    const rule: Rule = { effect: 'allow', tool: 'edit', path: 'docs/**' }
    expect(verdict(rule, 'docs/a.md')).toBe('allow')
    expect(verdict(rule, 'docs/guide/a.ts')).toBe('ask')
    expect(verdict({ ...rule, path: ['docs/**', 'src/**'] }, 'docs/guide/a.ts')).toBe('allow')
    expect(verdict({ ...rule, path: `${root}/docs/**` }, 'docs/guide/a.ts')).toBe('ask')
  })

  it.each(['plain/key.txt', 'chain/key.txt', 'absolute/key.txt', 'note.txt', 'dangling.txt', 'chain/../plain/new.txt'])(
    'B-LINK-6: deny what is reached through a link: %s',
    (path) => {
      expect(verdict({ effect: 'deny', path: 'secrets/**' }, path)).toBe('deny')
      expect(verdict({ effect: 'deny', path: `${root}/secrets/**` }, path)).toBe('deny')
    },
  )

  it('B-LINK-6: ask about what is reached through a link, and a rule that names a link means its target too', () => {
    expect(verdict({ effect: 'ask', path: 'src/**', class: 'source' }, 'docs/guide/a.ts')).toBe('ask')
    expect(verdict({ effect: 'deny', path: 'docs/guide/**' }, 'src/a.ts')).toBe('deny')
  })

  it('B-LINK-7: `..` after a link is judged as Terret reads it and as the system would', () => {
    mkdirSync(at('deep/down'), { recursive: true })
    put('deep/secrets/x')
    symlinkSync('deep/down', at('jump'))
    expect(verdict({ effect: 'deny', path: 'deep/secrets/**' }, 'jump/../secrets/x')).toBe('deny')
    expect(verdict({ effect: 'allow', path: 'open/**' }, 'open/../jump/../secrets/x')).toBe('ask')
  })

  it('B-LINK-8: writeRoots hold for the place that links lead to', () => {
    const roots = { writeRoots: [at('docs')], base: root }
    const allow: Rule = { effect: 'allow' }
    expect(verdict(allow, 'docs/a.md', roots)).toBe('allow')
    expect(verdict(allow, 'docs/guide/a.ts', roots)).toBe('deny')
    expect(verdict(allow, 'docs/../plain/x', { writeRoots: [root], base: root })).toBe('allow')
  })

  it.each([
    ['search', { pattern: 'needle' }],
    ['glob', { pattern: '**' }],
    ['list', {}],
    ['list', { path: '.' }],
    ['jsonl_search', {}],
    ['search', { pattern: 'needle', path: 'chain' }],
    ['list', { path: 'plain' }],
    ['read', { path: 'note.txt' }],
  ])('B-LINK-9: %s with %j shows nothing that is denied', async (tool, args) => {
    for (const rule of [
      { effect: 'deny', path: 'secrets/**' },
      { effect: 'deny', tool: 'read', path: 'secrets/**' },
    ] as const) {
      const seen = await shown(rule, tool, args)
      expect(seen).not.toMatch(/key\.txt needle|"secrets\/|secrets\/key|rows\.jsonl|needle\\*":\\*"key/)
    }
  })
})
